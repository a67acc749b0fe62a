//! `svc-bouncers`: decisions of a community's decision service, and alerts back to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use kit::checks::{count, required, tag, text, url, weight, within};
use kit::{Entity, FieldProblem, Head, References, Secret, number};

use super::SourceAction;

/// Where a service on the same machine listens if nothing else is said. It needs no `allow_private`.
pub(super) const DEFAULT_URL: &str = "http://127.0.0.1:8080";

/// A connection to a decision service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SvcBouncer {
    /// False: its decisions are neither fetched nor matched. Default true.
    pub enabled: bool,
    /// The address of the service's local API. Default `http://127.0.0.1:8080`.
    pub lapi_url: String,
    /// Whether the service may be on a loopback address or a private one of IPv4 (not needed for the default address), and whether alerts
    /// ask for bans of private, loopback and link-local callers. Default false.
    pub allow_private: bool,
    /// The bouncer's key, a secret. Each bouncer needs one of its own: the service keeps by the key what it has sent.
    pub api_key: Secret,
    /// The interval of polls in seconds, 1 to 86400. Default 10.
    pub poll_interval_seconds: u64,
    /// The timeout of a call in milliseconds, 1 to 600000. Default 10000.
    pub timeout_millis: u64,
    /// The scopes of the decisions that are used. Default ip and range.
    pub scopes: Vec<DecisionScope>,
    /// Origins whose decisions are used, at most 100; empty means all.
    pub origins_filter: Vec<String>,
    /// What a match adds to the score, 0 to 100. Default 90.
    #[serde(with = "number")]
    #[schemars(with = "f64")]
    pub weight: f64,
    /// Whether a match denies regardless of the score. Default block.
    pub action: SourceAction,
    /// The tag of its signals. Default `crowd`.
    pub tag: String,
    /// Whether alerts are sent to the service. Default false.
    pub push_enabled: bool,
    /// The machine id of the sender of alerts.
    pub push_machine_id: String,
    /// The machine's password, a secret.
    pub push_password: Secret,
    /// The scenario of the alerts. Default `svc/threat-protection`.
    pub push_scenario: String,
    /// The interval of pushes in seconds, 1 to 86400. Default 10.
    pub push_interval_seconds: u64,
    /// The maximum number of alerts in a push, 1 to 1000. Default 50.
    pub push_max_batch: u64,
    /// Whether alerts ask for a decision, except on callers that are on the allowlist or, without `allow_private`, private. Default false.
    pub push_with_decision: bool,
    /// The duration of that decision, such as `4h` or `1h30m`. Default `4h`.
    pub push_decision_duration: String,
    /// Whether blocks of the WAF are sent as well. Default false.
    pub push_waf_detections: bool,
    /// Whether matches of a monitoring WAF are sent as well. Default false.
    pub push_waf_monitored: bool,
}

/// The scope of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DecisionScope {
    /// An address.
    Ip,
    /// A range of addresses.
    Range,
    /// A country.
    Country,
    /// A network, by its number.
    As,
}

// === impl SvcBouncer ===

impl Default for SvcBouncer {
    fn default() -> SvcBouncer {
        SvcBouncer {
            enabled: true,
            lapi_url: DEFAULT_URL.to_owned(),
            allow_private: false,
            api_key: Secret::default(),
            poll_interval_seconds: 10,
            timeout_millis: 10_000,
            scopes: vec![DecisionScope::Ip, DecisionScope::Range],
            origins_filter: Vec::new(),
            weight: 90.0,
            action: SourceAction::Block,
            tag: "crowd".to_owned(),
            push_enabled: false,
            push_machine_id: String::new(),
            push_password: Secret::default(),
            push_scenario: "svc/threat-protection".to_owned(),
            push_interval_seconds: 10,
            push_max_batch: 50,
            push_with_decision: false,
            push_decision_duration: "4h".to_owned(),
            push_waf_detections: false,
            push_waf_monitored: false,
        }
    }
}

impl Entity for SvcBouncer {
    const COLLECTION: &'static str = "svc-bouncers";
    const KIND: &'static str = "svc-bouncer";

    fn check(&self, _head: &Head, _refs: &dyn References) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        problems.extend(url("/lapi_url", &self.lapi_url));
        let why = "an enabled bouncer needs the key that the service has given it";
        problems.extend(required("/api_key", self.api_key.is_set() || !self.enabled, why));
        problems.extend(within("/poll_interval_seconds", self.poll_interval_seconds, 1..=86_400));
        problems.extend(within("/timeout_millis", self.timeout_millis, 1..=600_000));
        if self.scopes.is_empty() {
            let problem = FieldProblem::new("/scopes", "no decision would be taken");
            problems.push(problem.expected("at least one scope, or `enabled: false`"));
        }
        for (index, scope) in self.scopes.iter().enumerate() {
            if self.scopes.iter().take(index).any(|earlier| earlier == scope) {
                let problem = FieldProblem::new(format!("/scopes/{index}"), "the scope is there twice");
                problems.push(problem.expected("each scope once"));
            }
        }
        problems.extend(count("/origins_filter", self.origins_filter.len(), 100));
        for (index, origin) in self.origins_filter.iter().enumerate() {
            let place = format!("/origins_filter/{index}");
            if origin.is_empty() || origin.contains(',') {
                let message = format!("`{}` is not an origin", origin.escape_debug());
                problems.push(FieldProblem::new(&place, message).expected("the name of an origin, such as `crowdsec`"));
            }
            problems.extend(text(&place, origin, 128));
        }
        problems.extend(weight("/weight", self.weight));
        problems.extend(tag("/tag", &self.tag));
        problems.extend(self.check_push());
        problems
    }

    fn is_enabled(&self) -> bool {
        self.enabled
    }
}

impl DecisionScope {
    /// As the service has it in queries.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Range => "range",
            Self::Country => "country",
            Self::As => "as",
        }
    }
}

impl SvcBouncer {
    /// The tag of its signals.
    pub(super) fn tag(&self) -> String {
        if self.tag.is_empty() { "crowd".to_owned() } else { self.tag.clone() }
    }

    /// Whether it may be called on loopback and private addresses.
    pub(super) fn reaches_private(&self) -> bool {
        self.allow_private || self.lapi_url.trim_end_matches('/') == DEFAULT_URL
    }

    fn check_push(&self) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        if self.enabled && self.push_enabled {
            for (pointer, present) in [
                ("/push_machine_id", !self.push_machine_id.is_empty()),
                ("/push_password", self.push_password.is_set()),
                ("/push_scenario", !self.push_scenario.is_empty()),
            ] {
                if !present {
                    let problem = FieldProblem::new(pointer, "alerts cannot be sent without it");
                    problems.push(problem.expected("a value, or `push_enabled: false`"));
                }
            }
        }
        problems.extend(text("/push_machine_id", &self.push_machine_id, 256));
        problems.extend(text("/push_scenario", &self.push_scenario, 256));
        problems.extend(within("/push_interval_seconds", self.push_interval_seconds, 1..=86_400));
        problems.extend(within("/push_max_batch", self.push_max_batch, 1..=1000));
        if !is_duration(&self.push_decision_duration) {
            let message = format!("`{}` is not a duration", self.push_decision_duration.escape_debug());
            problems.push(FieldProblem::new("/push_decision_duration", message).expected("such as `4h` or `1h30m`"));
        }
        problems
    }
}

/// Whether a text is a duration as the service writes it: whole numbers, each with h, m or s, not all of them 0.
fn is_duration(text: &str) -> bool {
    let mut digits = 0;
    let mut counts = false;
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' if digits < 9 => {
                digits += 1;
                counts |= byte != b'0';
            }
            b'h' | b'm' | b's' if digits > 0 => digits = 0,
            _ => return false,
        }
    }
    counts && digits == 0 && text.len() <= 32
}
