//! How a submission is checked: its form, then spent on this node, then spent everywhere, and only then worth a clearance.

use exchange::{
    Action, Answer, Ask, Category, Decision, Exchange, Host, Outcome, Reply, SecurityEvent, Signal, Verdict, offline,
};
use snapshot::{SpendPuzzle, YesNo};

use crate::puzzle::{ClearanceClaim, Failure, Puzzle};
use crate::{Challenges, spent};

/// How long a submission waits for the control plane, in milliseconds.
pub(crate) const ASK_MILLIS: u32 = 1000;
/// What a submission is answered with that earns nothing.
const FAILED: u16 = 403;

/// What the control plane says of a puzzle, a wait or a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confirmation {
    /// It was used for the first time, and the vendor of a widget vouches for it.
    Yes,
    /// It was used before, or the vendor does not vouch for it.
    No,
    /// This gateway has no control plane.
    NoControlPlane,
    /// There is no answer.
    Unavailable,
    /// The wait was given up because of what callers send.
    Overrun,
}

impl Confirmation {
    fn read(answer: &Answer) -> Self {
        match (answer, answer.read::<SpendPuzzle>()) {
            (Answer::NoControlPlane, _) => Self::NoControlPlane,
            (Answer::Overrun, _) => Self::Overrun,
            (_, Some(YesNo { yes: true })) => Self::Yes,
            (_, Some(YesNo { yes: false })) => Self::No,
            (_, None) => Self::Unavailable,
        }
    }
}

impl Challenges {
    /// The verdict on a request that may be a submission, or come after a wait. A submission to another provider is left to later steps,
    /// unless `last`.
    pub fn access(&self, module: &str, last: bool, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        if self.widget.is_some() {
            return self.access_token(module, last, exchange, host);
        }
        match self.submitted(exchange, host.now()) {
            None => self.waited(exchange, host),
            Some(Err(Failure::OfAnother)) if !last => Verdict::Pass,
            Some(Err(failure)) => refuse(failure, module, exchange, host),
            Some(Ok(puzzle)) if spent::is_elsewhere(&puzzle, host) => {
                refuse(Failure::Elsewhere, module, exchange, host)
            }
            Some(Ok(puzzle)) if spent::spend(&puzzle, host) => {
                let question = SpendPuzzle { id: puzzle.id, until_millis: puzzle.exp };
                Verdict::Ask(Ask::new(&question, ASK_MILLIS))
            }
            Some(Ok(_)) => refuse(Failure::Spent, module, exchange, host),
        }
    }

    /// The verdict once the control plane has said whether what the request spends was spent for the first time.
    pub fn answered(&self, module: &str, answer: &Answer, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        self.confirmed(module, Confirmation::read(answer), exchange, host)
    }

    pub(crate) fn confirmed(
        &self,
        module: &str,
        answer: Confirmation,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Verdict {
        if self.widget.is_some() {
            return self.token_answered(module, answer, exchange, host);
        }
        let puzzle = match self.submitted(exchange, host.now()) {
            None => return self.waited_and_answered(module, answer, exchange, host),
            Some(Err(failure)) => return refuse(failure, module, exchange, host),
            Some(Ok(puzzle)) => puzzle,
        };
        match answer {
            Confirmation::No => return refuse(Failure::Spent, module, exchange, host),
            // Callers bring that about: it is no outage, and nothing that this node knows by itself counts for it.
            Confirmation::Overrun => return refuse(Failure::Overrun, module, exchange, host),
            Confirmation::Unavailable => {
                unanswered("puzzle", module, exchange, host);
                spent::mark_offline(host);
                // Another node may take it, or have taken it: only what this one gave for itself counts.
                if puzzle.node.is_empty() {
                    return refuse(Failure::Unconfirmed, module, exchange, host);
                }
            }
            Confirmation::Yes => offline::clear(host.shared(), host.now()),
            Confirmation::NoControlPlane => {}
        }
        self.clear(puzzle, module, exchange, host)
    }

    fn clear(&self, puzzle: Puzzle, module: &str, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        let what = format!("a puzzle of {} bits", puzzle.bits);
        let reason = format!("{what} was solved; the caller has clearance");
        let decision = passed(what, reason, module, exchange, host);
        let earned = ClearanceClaim { score: puzzle.score, ip: puzzle.ip, ua: puzzle.ua };
        self.hand_over(earned, decision, exchange, host)
    }

    /// Hands a caller the clearance that it submitted something for.
    pub(crate) fn hand_over(
        &self,
        earned: ClearanceClaim,
        decision: Decision,
        exchange: &Exchange,
        host: &dyn Host,
    ) -> Verdict {
        let cookie = self.cookie(earned, exchange, host.now());
        let mut headers = vec![("set-cookie".to_owned(), cookie), ("cache-control".to_owned(), b"no-store".to_vec())];
        headers.extend(self.delete_ticket_cookie(exchange));
        let reply = Some(Reply { status: 204, headers, body: Vec::new() });
        Verdict::Enforce { decision, hold_millis: 0, reply }
    }
}

/// Tells that a caller has earned its clearance; the decision that goes with it.
pub(crate) fn passed(what: String, reason: String, module: &str, exchange: &mut Exchange, host: &dyn Host) -> Decision {
    note(exchange, "challenge:passed", what, host);
    let decision = decision(exchange, reason, false);
    emit(Category::Challenge, Outcome::Observed, module, &decision, exchange, host);
    decision
}

/// Leaves a signal that weighs nothing: it says what happened, for events.
pub(crate) fn note(exchange: &mut Exchange, tag: &'static str, detail: String, host: &dyn Host) {
    exchange.score.add(Signal {
        source: "challenge".into(),
        kind: "challenge".into(),
        weight: 0.0,
        confidence: 1.0,
        tag: tag.into(),
        detail,
        at: host.now(),
    });
}

pub(crate) fn refuse(failure: Failure, module: &str, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
    note(exchange, "challenge:failed", failure.to_string(), host);
    let decision = decision(exchange, format!("a submitted solution was refused: {failure}"), true);
    emit(Category::Challenge, Outcome::Blocked, module, &decision, exchange, host);
    // Which of the reasons it was is for the operator.
    let body = br#"{"error":"challenge_failed"}"#.to_vec();
    let headers = vec![
        ("content-type".to_owned(), b"application/json".to_vec()),
        ("cache-control".to_owned(), b"no-store".to_vec()),
    ];
    Verdict::Enforce { decision, hold_millis: 0, reply: Some(Reply { status: FAILED, headers, body }) }
}

/// Emits the event that the control plane did not answer.
pub(crate) fn unanswered(what: &str, module: &str, exchange: &mut Exchange, host: &dyn Host) {
    let reason = format!(
        "the control plane did not say whether a {what} was spent elsewhere; what this node knows counts for now"
    );
    emit_dependency_event(reason, module, exchange, host);
}

/// Emits the event of a missing answer.
pub(crate) fn emit_dependency_event(reason: String, module: &str, exchange: &mut Exchange, host: &dyn Host) {
    let decision = decision(exchange, reason, false);
    emit(Category::Dependency, Outcome::Observed, module, &decision, exchange, host);
}

fn decision(exchange: &Exchange, reason: String, enforced: bool) -> Decision {
    Decision { enforced, ..Decision::new(Action::Challenge, exchange.score.total(), reason) }
}

fn emit(
    category: Category,
    outcome: Outcome,
    module: &str,
    decision: &Decision,
    exchange: &mut Exchange,
    host: &dyn Host,
) {
    exchange.emit(&SecurityEvent { category, outcome, module, message: &decision.reason, decision }, host);
}
