//! What is refused, by rules and by limits.

use exchange::{About, Category, Exchange, Host, Metric, Refusal, Verdict};
use seclang::{EngineMode, Intervention, InterventionKind, Uninspected};

use crate::signals::{BODY_ERROR, Found, LIMIT, rule_of, rules};
use crate::{Half, State, Waf};

/// A request whose body is over its limit.
pub(crate) const PAYLOAD_TOO_LARGE: u16 = 413;
/// A request whose body cannot be decoded.
pub(crate) const BAD_REQUEST: u16 = 400;
/// An encoding that this engine does not know.
pub(crate) const UNSUPPORTED_MEDIA_TYPE: u16 = 415;
/// A response that the engine cannot judge.
const BAD_GATEWAY: u16 = 502;
/// A request that the engine cannot judge.
const SERVICE_UNAVAILABLE: u16 = 503;
/// The longest name of a value that a reason shows, in bytes.
const MAX_NAME: usize = 128;

impl Waf {
    /// Whether anything is refused in this exchange: the configuration blocks, and the engine is in blocking mode, which
    /// `SecRuleEngine` or a `ctl` of a rule can change.
    pub(crate) fn blocks(&self, state: &State) -> bool {
        self.step.block && state.transaction.mode() == EngineMode::On
    }

    /// The refusal that a rule demanded; `None` if no rule demanded one, or if the configuration only monitors.
    pub(crate) fn refusal(
        &self,
        intervention: Option<Intervention>,
        state: &mut State,
        exchange: &mut Exchange,
        half: Half,
        host: &dyn Host,
    ) -> Option<Refusal> {
        let mut intervention = intervention.filter(|_| self.step.block)?;
        let headers = match &intervention.kind {
            InterventionKind::Redirect(url) => vec![("location".to_owned(), url.clone())],
            _ => Vec::new(),
        };
        let status = if (200..=599).contains(&intervention.status) { intervention.status } else { 403 };
        let rule_id = intervention.rule_id;
        // Rules of the last phase may mask what the message shows.
        self.log(state, host);
        if let Some(masked) = state.transaction.would_block().filter(|masked| masked.rule_id == rule_id) {
            intervention.msg.clone_from(&masked.msg);
        }
        let mut reason = reason(&intervention);
        if rule_id == 0 {
            // A limit of the engine, not a rule.
            let category = if half == Half::Response { Category::Dependency } else { Category::Threat };
            return Some(self.limit(LIMIT, self.refused(status, category, reason, half), state, exchange, host));
        }
        for left_out in state.transaction.uninspected() {
            reason.push_str(&format!("; {left_out}"));
        }
        let rules = match half {
            Half::Request => rules(&state.transaction, Some(&intervention), rule_id),
            Half::Response => vec![rule_of(&intervention)],
        };
        state.blocked = Some(intervention);
        let weight = self.step.block_weight;
        self.signal(Found { tag: "waf:blocked", weight, detail: reason.clone(), rules }, exchange, host);
        self.conclude(state, exchange, host);
        Some(Refusal { headers, ..self.refused(status, Category::Threat, reason, half) })
    }

    /// An engine that met a limit of its own (a pattern that gave up, the end of the budget) has not judged the exchange,
    /// which ends there unless the step fails open, or denies nothing anyway. The trail names the rule either way.
    pub(crate) fn failure(
        &self,
        state: &mut State,
        exchange: &mut Exchange,
        half: Half,
        host: &dyn Host,
    ) -> Option<Refusal> {
        if state.failed || state.transaction.exceeded_limits().is_empty() {
            return None;
        }
        state.failed = true;
        host.count(Metric::PluginFailures);
        let limits = state.transaction.exceeded_limits();
        let reason = match limits.iter().find(|limit| limit.spent.is_some()) {
            Some(limit) => format!(
                "the budget of the rules ended at rule {}, {}: what the rest looks for may be there",
                limit.rule_id,
                String::from_utf8_lossy(limit.variable.get(..MAX_NAME).unwrap_or(&limit.variable)),
            ),
            None => "a pattern of the rules was given up at its limit: what it looks for may be there".to_owned(),
        };
        if !self.blocks(state) || self.step.fail_open {
            self.signal(Found::limit(LIMIT, self.step.match_weight, reason), exchange, host);
            return None;
        }
        let refusal = self.refused(SERVICE_UNAVAILABLE, Category::Dependency, reason, half);
        Some(self.limit(LIMIT, refusal, state, exchange, host))
    }

    /// What a limit of the engine left out is in front of no rule: such a message ends here, unless nothing is denied
    /// anyway. The trail names the collection and the limit either way.
    pub(crate) fn left_out(
        &self,
        state: &mut State,
        exchange: &mut Exchange,
        half: Half,
        host: &dyn Host,
    ) -> Option<Refusal> {
        let found = state.transaction.uninspected();
        if found.len() <= state.left_out {
            return None;
        }
        state.left_out = found.len();
        let reason = found.iter().map(Uninspected::to_string).collect::<Vec<_>>().join("; ");
        // Where the beginning of a long body is enough, its end refuses nothing.
        let tolerated = found.iter().all(|found| found.tolerated);
        let (status, category) = match half {
            Half::Request if found.iter().any(|found| found.collection == "REQUEST_BODY") => {
                (PAYLOAD_TOO_LARGE, Category::Threat)
            }
            Half::Request => (BAD_REQUEST, Category::Threat),
            Half::Response => (BAD_GATEWAY, Category::Dependency),
        };
        if tolerated || !self.denies(state) {
            // A long answer is the backend's, and says nothing about the client.
            let weight = if tolerated && half == Half::Response { 0.0 } else { self.step.match_weight };
            self.signal(Found::limit(LIMIT, weight, reason.clone()), exchange, host);
            if !tolerated {
                state.unenforced.get_or_insert(demand(status, &reason));
            }
            return None;
        }
        Some(self.limit(LIMIT, self.refused(status, category, reason, half), state, exchange, host))
    }

    /// Whether what cannot be judged is refused.
    pub(crate) fn denies(&self, state: &State) -> bool {
        self.blocks(state) && !self.step.fail_open
    }

    /// A request that the rules cannot look at. Where nothing is denied, they look at `rest`, which is what there is of its
    /// body.
    pub(crate) fn unreadable(
        &self,
        status: u16,
        reason: String,
        rest: &[u8],
        state: &mut State,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Verdict {
        let tag = tag_of(status);
        // The rules that would look at the body are those of phase 2.
        state.phase = state.phase.max(2);
        if !self.denies(state) {
            self.pass_unreadable(status, &reason, state, exchange, host);
            // The first bytes of a stream come when the rules have run already.
            if state.contributed {
                return Verdict::Pass;
            }
            return self.phase_2(rest, false, state, exchange, host);
        }
        let refusal = self.refused(status, Category::Threat, reason, Half::Request);
        Verdict::Refuse(self.limit(tag, refusal, state, exchange, host))
    }

    /// A request that the rules cannot look at, or not at all of it, where nothing is denied.
    pub(crate) fn pass_unreadable(
        &self,
        status: u16,
        reason: &str,
        state: &mut State,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) {
        self.signal(Found::limit(tag_of(status), self.step.match_weight, reason.to_owned()), exchange, host);
        state.unenforced = Some(demand(status, reason));
    }

    fn refused(&self, status: u16, category: Category, reason: String, half: Half) -> Refusal {
        let refusal = Refusal::new(status, category, reason).about(self.about());
        if half == Half::Request { refusal.scored() } else { refusal }
    }

    /// What events about a refusal of this WAF are about.
    pub(crate) fn about(&self) -> About {
        About::policy("waf-configs", &self.step.id)
    }

    /// A refusal that no rule demanded: a signal of its own, beside that of the rules that matched until then.
    fn limit(
        &self,
        tag: &'static str,
        refusal: Refusal,
        state: &mut State,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Refusal {
        state.blocked = Some(demand(refusal.status, &refusal.reason));
        self.signal(Found::limit(tag, self.step.match_weight, refusal.reason.clone()), exchange, host);
        self.contribute(state, exchange, host);
        self.conclude(state, exchange, host);
        refusal
    }
}

fn tag_of(status: u16) -> &'static str {
    if status == PAYLOAD_TOO_LARGE { LIMIT } else { BODY_ERROR }
}

/// Why, for the operator.
pub(crate) fn reason(demanded: &Intervention) -> String {
    let msg = String::from_utf8_lossy(&demanded.msg);
    if demanded.rule_id == 0 { msg.into_owned() } else { format!("rule {}: {msg}", demanded.rule_id) }
}

fn demand(status: u16, reason: &str) -> Intervention {
    Intervention { status, rule_id: 0, kind: InterventionKind::Deny, msg: reason.as_bytes().to_vec() }
}
