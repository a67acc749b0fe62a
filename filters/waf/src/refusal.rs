//! What is refused, by rules and by limits.

use exchange::{Category, Exchange, Host, Metric, Refusal, Verdict};
use seclang::{Intervention, InterventionKind};

use crate::{State, Waf};

/// A request whose body is over its limit.
pub(crate) const PAYLOAD_TOO_LARGE: u16 = 413;
/// A request whose body cannot be decoded.
pub(crate) const BAD_REQUEST: u16 = 400;
/// An encoding that this engine does not know.
pub(crate) const UNSUPPORTED_MEDIA_TYPE: u16 = 415;
/// A request that the engine cannot judge.
const SERVICE_UNAVAILABLE: u16 = 503;

impl Waf {
    /// What a rule demanded, as the chain carries it out; `None` where nothing was, or where nothing is to be denied.
    pub(crate) fn refusal(
        &self,
        intervention: Option<Intervention>,
        state: &mut State,
        exchange: &mut Exchange,
        of_request: bool,
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
        let reason = format!("rule {rule_id}: {}", String::from_utf8_lossy(&intervention.msg));
        state.blocked = Some(intervention);
        if of_request {
            self.signal("waf:blocked", self.step.block_weight, reason.clone(), exchange, host);
        }
        self.conclude(state, exchange, host);
        Some(Refusal { status, category: Category::Threat, reason, scored: of_request, headers })
    }

    /// An engine that met a limit of its own (a pattern that gave up) has not judged the exchange, which ends there unless
    /// the step fails open, or denies nothing anyway. The trail names the rule either way.
    pub(crate) fn failure(&self, state: &mut State, exchange: &mut Exchange, host: &dyn Host) -> Option<Refusal> {
        if state.failed || state.transaction.exceeded_limits().is_empty() {
            return None;
        }
        state.failed = true;
        host.count(Metric::PluginFailures);
        if !self.step.block || self.step.fail_open {
            return None;
        }
        let reason = "a pattern of the rules was given up at its limit: what it looks for may be there".to_owned();
        let (status, msg) = (SERVICE_UNAVAILABLE, reason.clone().into_bytes());
        state.blocked = Some(Intervention { status, rule_id: 0, kind: InterventionKind::Deny, msg });
        self.conclude(state, exchange, host);
        Some(Refusal { status, category: Category::Dependency, reason, scored: false, headers: Vec::new() })
    }

    /// A request that the rules cannot look at.
    pub(crate) fn unreadable(
        &self,
        status: u16,
        reason: String,
        state: &mut State,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Verdict {
        if !self.step.block {
            // Nothing is denied, so what can be inspected is.
            return self.phase_2(&[], false, state, exchange, host);
        }
        let blocked =
            Intervention { status, rule_id: 0, kind: InterventionKind::Deny, msg: reason.clone().into_bytes() };
        state.blocked = Some(blocked);
        self.conclude(state, exchange, host);
        Verdict::Refuse(Refusal { status, category: Category::Threat, reason, scored: true, headers: Vec::new() })
    }
}
