//! Evasions and harmless requests: sent, answered, judged.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::case::{Case, Expect};
use crate::wire::{Answers, Ended, Patience, exchange};

/// How long an answer is waited for.
const FIRST: Duration = Duration::from_secs(30);
/// How long another answer on the same connection is waited for: one to a request that was smuggled in.
const MORE: Duration = Duration::from_millis(600);
/// A case that takes longer is named on standard error while the others run.
const SLOW: Duration = Duration::from_secs(5);
/// Connections at a time.
const AT_ONCE: usize = 8;

/// What came of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Refused with a status.
    Blocked,
    /// Answered as if nothing was wrong.
    Passed,
    /// Answered, and what is dangerous did not reach the backend.
    Disarmed,
    /// The connection or the stream was closed without an answer.
    Reset,
    /// No answer, and none is due: the gateway waits for the rest of the request.
    Held,
    /// A clean client noticed, or the gateway does not answer any more.
    Stalled,
    /// Nobody listens.
    Gone,
}

impl Verdict {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Passed => "passed",
            Self::Disarmed => "disarmed",
            Self::Reset => "reset",
            Self::Held => "held",
            Self::Stalled => "stalled",
            Self::Gone => "gone",
        }
    }
}

/// A case with its verdict.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The case's id.
    pub id: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether that is what must happen.
    pub expected: bool,
    /// The statuses, or how the connection ended.
    pub seen: String,
}

/// Where to, and under which name.
#[derive(Debug, Clone)]
pub struct Target {
    /// The address.
    pub address: SocketAddr,
    /// The host that requests name.
    pub host: String,
}

/// Sends cases, a few at a time, and returns their outcomes in their order.
///
/// # Errors
///
/// What is wrong with a case.
///
/// # Panics
///
/// When a thread of the run panicked.
pub fn run(target: &Target, cases: &[&Case]) -> Result<Vec<Outcome>, String> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(index) else { break };
                    let start = Instant::now();
                    let outcome = one(target, case);
                    if start.elapsed() > SLOW {
                        eprintln!("{} took {} s", case.id, start.elapsed().as_secs());
                    }
                    outcomes.lock().expect("no thread of the run panics").push((index, outcome));
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().expect("no thread of the run panics");
    outcomes.sort_by_key(|(index, _)| *index);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Sends one case.
///
/// # Errors
///
/// What is wrong with it.
pub fn one(target: &Target, case: &Case) -> Result<Outcome, String> {
    let sending = case.sending(&target.host).map_err(|why| format!("{}: {why}", case.id))?;
    let raw = case.request(&target.host).is_ok_and(|request| request.is_none());
    let patience = Patience { first: case.wait.unwrap_or(FIRST), more: if raw { MORE } else { Duration::ZERO } };
    let answers = exchange(target.address, &sending, patience);
    let verdict = verdict(case, &answers);
    Ok(Outcome { id: case.id.clone(), verdict, expected: expected(case, verdict), seen: seen(&answers) })
}

/// The statuses of a connection as text, or how it ended.
#[must_use]
pub fn seen(answers: &Answers) -> String {
    if let Some(ended) = answers.ended {
        return format!("{ended:?}").to_lowercase();
    }
    let runs = answers.statuses.chunk_by(|one, other| one == other);
    let text = |run: &[u16]| match run {
        [status] => status.to_string(),
        [status, ..] => format!("{status} x {}", run.len()),
        [] => String::new(),
    };
    runs.map(text).collect::<Vec<_>>().join(" ")
}

/// What a connection's answers mean for a case.
#[must_use]
pub fn verdict(case: &Case, answers: &Answers) -> Verdict {
    match answers.ended {
        Some(Ended::Refused) => return Verdict::Gone,
        Some(Ended::Silent) => return Verdict::Held,
        Some(Ended::Closed | Ended::NoHttp) => return Verdict::Reset,
        None => {}
    }
    // A redirection sends the client elsewhere: the attack has not reached the backend.
    let good = answers.statuses.iter().filter(|status| **status < 300).count();
    if good <= case.harmless_answers && case.expect != Expect::Allowed {
        return if answers.statuses.is_empty() { Verdict::Reset } else { Verdict::Blocked };
    }
    match &case.absent {
        Some(text) if !answers.text.contains(text.as_str()) => Verdict::Disarmed,
        _ if good > 0 => Verdict::Passed,
        _ => Verdict::Blocked,
    }
}

fn expected(case: &Case, verdict: Verdict) -> bool {
    match case.expect {
        Expect::Refused => matches!(verdict, Verdict::Blocked | Verdict::Reset) || waits(case, verdict),
        Expect::Harmless => {
            matches!(verdict, Verdict::Blocked | Verdict::Reset | Verdict::Disarmed) || waits(case, verdict)
        }
        Expect::Allowed => verdict == Verdict::Passed,
        Expect::Survived => verdict != Verdict::Stalled,
    }
}

/// Silence is an answer only to a request of which the rest is missing; such a case says how long it waits.
fn waits(case: &Case, verdict: Verdict) -> bool {
    verdict == Verdict::Held && case.wait.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case;

    fn judged(expect: &str, answers: Answers) -> (Verdict, bool) {
        let file =
            format!("family: f\nkind: evasion\ncases:\n- {{id: a, shows: s, {expect}, request: {{target: /}}}}\n");
        let case = case::read(&file).unwrap().remove(0);
        let verdict = verdict(&case, &answers);
        (verdict, expected(&case, verdict))
    }

    fn statuses(statuses: &[u16]) -> Answers {
        Answers { statuses: statuses.to_vec(), ..Answers::default() }
    }

    #[test]
    fn answers_are_judged_by_what_is_expected() {
        assert_eq!(judged("expect: refused", statuses(&[403])), (Verdict::Blocked, true));
        assert_eq!(judged("expect: refused", statuses(&[200])), (Verdict::Passed, false));
        assert_eq!(judged("expect: refused", statuses(&[400, 200])), (Verdict::Passed, false));
        assert_eq!(judged("expect: refused, harmless_answers: 1", statuses(&[200, 400])), (Verdict::Blocked, true));
        assert_eq!(judged("expect: refused, harmless_answers: 1", statuses(&[200, 200])), (Verdict::Passed, false));
        assert_eq!(judged("expect: allowed, why: w", statuses(&[200])), (Verdict::Passed, true));
        assert_eq!(judged("expect: allowed, why: w", statuses(&[403])), (Verdict::Blocked, false));
        let answer = Answers { text: "x-evil".into(), ..statuses(&[200]) };
        assert_eq!(judged("expect: harmless, absent: evil", answer.clone()), (Verdict::Passed, false));
        assert_eq!(judged("expect: harmless, absent: other", answer), (Verdict::Disarmed, true));
        let silent = Answers { ended: Some(Ended::Silent), ..Answers::default() };
        assert_eq!(judged("expect: refused", silent.clone()), (Verdict::Held, false));
        assert_eq!(judged("expect: refused, wait_millis: 10", silent), (Verdict::Held, true));
        let gone = Answers { ended: Some(Ended::Refused), ..Answers::default() };
        assert_eq!(judged("expect: refused", gone), (Verdict::Gone, false));
    }
}
