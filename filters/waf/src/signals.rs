//! What the WAF tells the threat response, and the event of a refusal that it only would have made.

use exchange::{Action, Category, Decision, Exchange, Host, Outcome, SecurityEvent, Signal, SignalRule};
use seclang::{Intervention, MatchedRule, REPORTED_INPUTS, Transaction};

use crate::refusal::reason;
use crate::samples::target::{Input, Target};
use crate::{PLUGIN, State, Waf};

/// The detector, as signals name it.
const SOURCE: &str = "waf.seclang";
/// The tag of a signal for what the rules found and did not refuse.
const MATCH: &str = "waf:match";
/// The tag of a signal for what was not inspected to its end, because a limit was met.
pub(crate) const LIMIT: &str = "waf:limit";
/// The tag of a signal for a body that is not what its headers say.
pub(crate) const BODY_ERROR: &str = "waf:body_error";

/// The names in TX of a request's anomaly score, of the core rule set 4 and 3, and of the score from which it is denied.
const SCORES: [&[u8]; 2] = [b"blocking_inbound_anomaly_score", b"anomaly_score"];
const THRESHOLD: &[u8] = b"inbound_anomaly_score_threshold";

/// The name in TX of the inputs whose values are what they usually are, separated by blanks: rules of profiles write it.
const USUAL: &[u8] = b"palisade_usual";
/// The part of its weight that a match at such inputs alone has.
const USUAL_PART: f64 = 0.25;
/// From how many matches on a request is not looked at for it.
const MANY_MATCHES: usize = 64;

/// The last phase of a request.
const REQUEST_PHASES: u8 = 2;
/// The matches that are looked at for the rules of a signal, at most.
const CONSIDERED_RULES: usize = 64;

/// What a signal says.
pub(crate) struct Found {
    pub(crate) tag: &'static str,
    pub(crate) weight: f64,
    /// For people.
    pub(crate) detail: String,
    /// The rules that it is about; none for a limit.
    pub(crate) rules: Vec<SignalRule>,
}

// === impl Found ===

impl Found {
    /// Of a limit, or of something that rules cannot look at.
    pub(crate) fn limit(tag: &'static str, weight: f64, detail: String) -> Found {
        Found { tag, weight, detail, rules: Vec::new() }
    }
}

// === impl Waf ===

impl Waf {
    /// What the rules found in the request without refusing it, as one signal, once.
    pub(crate) fn contribute(&self, state: &mut State, exchange: &mut Exchange, host: &dyn Host) {
        if std::mem::replace(&mut state.contributed, true) {
            return;
        }
        let demanded = state.transaction.would_block().filter(|demanded| demanded.rule_id != 0);
        state.of_request = demanded.is_some() || state.unenforced.is_some();
        let logged = |rule: &&MatchedRule| rule.logged;
        let matches = state.transaction.matched_rules();
        let (mut detail, told) = match (matches.iter().find(logged), demanded) {
            (Some(found), _) => {
                (format!("rule {}: {}", found.rule_id, String::from_utf8_lossy(&found.msg)), found.rule_id)
            }
            (None, Some(demanded)) => (reason(demanded), demanded.rule_id),
            (None, None) => return,
        };
        let more = matches.iter().filter(logged).count().saturating_sub(1);
        if more > 0 {
            detail.push_str(&format!(" and {more} more"));
        }
        let mut weight = self.weight(&state.transaction, demanded.is_some());
        // What the rules would refuse keeps its weight.
        if demanded.is_none()
            && let Some(inputs) = usual(&state.transaction)
        {
            weight *= USUAL_PART;
            detail.push_str(&format!("; a quarter of the weight, because of usual values: {inputs}"));
        }
        let rules = rules(&state.transaction, demanded, told);
        self.signal(Found { tag: MATCH, weight, detail, rules }, exchange, host);
    }

    /// What a request weighs that the rules did not refuse: as much as a refused one if they would have, otherwise the part
    /// of it that its anomaly score is of the threshold, and at least what a match weighs.
    fn weight(&self, transaction: &Transaction, would_block: bool) -> f64 {
        let (floor, block) = (self.step.match_weight, self.step.block_weight);
        if would_block {
            return floor.max(block);
        }
        let score = inbound_score(transaction);
        let part = match (score, number(transaction, THRESHOLD)) {
            (Some(score), Some(threshold)) if threshold > 0.0 => (score / threshold).clamp(0.0, 1.0),
            _ => 0.0,
        };
        floor.max(block * part)
    }

    /// The event of a refusal that was not made, because the WAF monitors. A request that the threat response decided on has
    /// its event already.
    pub(crate) fn observe(&self, state: &State, exchange: &mut Exchange, host: &dyn Host) {
        let demanded = state.unenforced.as_ref().or(state.transaction.would_block());
        let Some(demanded) = demanded.filter(|_| state.blocked.is_none()) else {
            return;
        };
        if state.of_request && exchange.is_decided() {
            return;
        }
        let reason = reason(demanded);
        if !state.of_request && state.unenforced.is_none() {
            // The response's: the request's signal was left before, a limit's when it was met.
            let weight = self.step.match_weight.max(self.step.block_weight);
            let rules = if demanded.rule_id == 0 { Vec::new() } else { vec![rule_of(demanded)] };
            self.signal(Found { tag: MATCH, weight, detail: reason.clone(), rules }, exchange, host);
        }
        let decision = Decision::new(Action::Deny, exchange.score.total(), reason).dry_run().about(self.about());
        let event = SecurityEvent {
            category: Category::Threat,
            outcome: Outcome::Observed,
            module: PLUGIN.name,
            message: &decision.reason,
            decision: &decision,
        };
        exchange.emit(&event, host);
        // Another WAF of the chain may have the same to say.
        exchange.decision = Some(decision);
    }

    pub(crate) fn signal(&self, found: Found, exchange: &mut Exchange, host: &dyn Host) {
        if self.step.contribute {
            let Found { tag, weight, detail, rules } = found;
            let (source, kind, tag, at) = (SOURCE.into(), PLUGIN.name.into(), tag.into(), host.now());
            let signal = Signal { source, kind, weight, confidence: 1.0, tag, detail, at };
            exchange.score.add_about(signal, rules.into_iter());
        }
    }
}

/// The rules of a signal about a request: the one that refuses it or would, then those that matched and are logged, each once. `told` is
/// the rule whose message the signal's detail has.
pub(crate) fn rules(transaction: &Transaction, demanded: Option<&Intervention>, told: u64) -> Vec<SignalRule> {
    let matches = transaction.matched_rules();
    // Other messages with macros may hold what rules of a later phase mask.
    let rule = |id: u64, message: &[u8], is_fixed: bool| {
        let is_shown = is_fixed || id == told;
        SignalRule { id, message: if is_shown { String::from_utf8_lossy(message).into_owned() } else { String::new() } }
    };
    let mut rules: Vec<SignalRule> = Vec::new();
    if let Some(Intervention { rule_id, msg, .. }) = demanded.filter(|demanded| demanded.rule_id != 0) {
        let is_fixed = matches.iter().any(|found| found.rule_id == *rule_id && found.msg_is_fixed);
        rules.push(rule(*rule_id, msg, is_fixed));
    }
    for found in matches.iter().filter(|found| found.logged && found.phase <= REQUEST_PHASES).take(CONSIDERED_RULES) {
        if !rules.iter().any(|rule| rule.id == found.rule_id) {
            rules.push(rule(found.rule_id, &found.msg, found.msg_is_fixed));
        }
    }
    rules
}

/// A rule with its message, for a signal whose detail has the same one.
pub(crate) fn rule_of(demanded: &Intervention) -> SignalRule {
    SignalRule { id: demanded.rule_id, message: String::from_utf8_lossy(&demanded.msg).into_owned() }
}

/// The inputs of all matches of a request, where the value of each is what it usually is; `None` where one is not, or is no parameter.
fn usual(transaction: &Transaction) -> Option<String> {
    let matches = transaction.matched_rules();
    if matches.len() >= MANY_MATCHES {
        return None;
    }
    let usual = transaction.variable(b"TX", USUAL)?;
    let is_usual = |name: &[u8]| {
        let mut known = usual.split(|byte| *byte == b' ').filter_map(|one| one.strip_prefix(b"ARGS:"));
        known.any(|known| known.eq_ignore_ascii_case(name))
    };
    // A part of the value that a rule has captured, and what no attack is written in. What else is in TX may be of any input.
    let is_no_input =
        |variable: &[u8]| matches!(variable, [b'T', b'X', b':', b'0'..=b'9']) || variable == b"REQUEST_METHOD";
    let mut inputs: Vec<&str> = Vec::new();
    for rule in matches.iter().filter(|rule| rule.logged) {
        let mut has_input = false;
        for (variable, _) in rule.inputs().filter(|(variable, _)| !is_no_input(variable)) {
            let target = Target::read(variable)?;
            let Input::Argument(name) = target.input() else { return None };
            if !is_usual(name) {
                return None;
            }
            has_input = true;
            if !inputs.contains(&target.text()) {
                inputs.push(target.text());
            }
        }
        if !has_input || rule.earlier.len() >= REPORTED_INPUTS {
            return None;
        }
    }
    (!inputs.is_empty()).then(|| inputs.join(", "))
}

/// The anomaly score of a request.
pub(crate) fn inbound_score(transaction: &Transaction) -> Option<f64> {
    SCORES.iter().find_map(|name| number(transaction, name))
}

/// The whole number that a name of TX holds.
fn number(transaction: &Transaction, name: &[u8]) -> Option<f64> {
    let text = transaction.variable(b"TX", name)?;
    std::str::from_utf8(&text).ok()?.trim().parse::<i32>().ok().map(f64::from)
}
