//! `alert-rules`: which events cause a message, and the channel of the message.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Entity, FieldProblem, Head, References, Route, number, unused};
use kit::Secret;
use kit::checks::{Headers, count, headers, secret_url, within};
use kit::reference;

/// A rule that sends messages about events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AlertRule {
    /// False: it is not used. Default true.
    pub enabled: bool,
    /// What triggers it. Default incident.
    pub trigger: AlertTrigger,
    /// The score from which an event counts, 0 to 100. Default 70.
    #[serde(with = "number")]
    #[schemars(with = "f64")]
    pub min_score: f64,
    /// The number of events of an incident from which it alerts, 1 to 1000000. Default 1.
    pub min_count: u64,
    /// Whether only enforced actions count. Default true.
    pub enforced_only: bool,
    /// The categories of events that count; empty means all.
    pub categories: Vec<EventCategory>,
    /// The ids of the routes whose events count, at most 1000; empty means all.
    pub routes: Vec<String>,
    /// `burst`: the number of events within the window from which it alerts, 1 to 1000000. Default 100.
    pub burst_threshold: u64,
    /// `burst`: the window in seconds, 1 to 86400. Default 60.
    pub burst_window_seconds: u64,
    /// The minimum time in seconds between two messages on the same subject, 10 to 604800. Default 900.
    pub cooldown_seconds: u64,
    /// The destination of messages.
    pub channel: AlertChannel,
}

/// The trigger of an alert rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AlertTrigger {
    /// An incident that reaches the score and the count.
    #[default]
    Incident,
    /// A ban.
    Ban,
    /// Many events in a short time.
    Burst,
}

/// The category of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the words say all there is")]
pub enum EventCategory {
    Threat,
    Honeypot,
    Fail2ban,
    Challenge,
    Ban,
    Traffic,
    Api,
    Upload,
    Login,
    Objects,
    Leakage,
    SensitiveData,
    Dependency,
}

/// The destination of messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AlertChannel {
    /// The kind of channel. Default event.
    pub kind: ChannelKind,
    /// `slack`, `teams`, `webhook`: the address that the message is posted to. A secret, because it contains a token.
    /// `pagerduty`: replaces the address of the service.
    pub url: Secret,
    /// `pagerduty`: the key of the integration, a secret.
    pub routing_key: Secret,
    /// Headers of the call; their values are secrets.
    pub headers: Headers,
    /// The timeout of the call in milliseconds, 1 to 600000. Default 10000.
    pub timeout_millis: u64,
}

/// A kind of channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChannelKind {
    /// An incoming webhook of Slack.
    Slack,
    /// An incoming webhook of Teams.
    Teams,
    /// The events API of PagerDuty.
    Pagerduty,
    /// Any URL that accepts JSON.
    Webhook,
    /// The exporters of events: the message is an event.
    #[default]
    Event,
}

// === impl AlertTrigger, EventCategory, ChannelKind ===

impl AlertTrigger {
    /// As documents have it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            AlertTrigger::Incident => "incident",
            AlertTrigger::Ban => "ban",
            AlertTrigger::Burst => "burst",
        }
    }
}

impl EventCategory {
    /// As documents and events have it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            EventCategory::Threat => "threat",
            EventCategory::Honeypot => "honeypot",
            EventCategory::Fail2ban => "fail2ban",
            EventCategory::Challenge => "challenge",
            EventCategory::Ban => "ban",
            EventCategory::Traffic => "traffic",
            EventCategory::Api => "api",
            EventCategory::Upload => "upload",
            EventCategory::Login => "login",
            EventCategory::Objects => "objects",
            EventCategory::Leakage => "leakage",
            EventCategory::SensitiveData => "sensitive_data",
            EventCategory::Dependency => "dependency",
        }
    }
}

impl ChannelKind {
    /// As documents have it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            ChannelKind::Slack => "slack",
            ChannelKind::Teams => "teams",
            ChannelKind::Pagerduty => "pagerduty",
            ChannelKind::Webhook => "webhook",
            ChannelKind::Event => "event",
        }
    }
}

// === impl AlertRule ===

impl Default for AlertRule {
    fn default() -> AlertRule {
        AlertRule {
            enabled: true,
            trigger: AlertTrigger::default(),
            min_score: 70.0,
            min_count: 1,
            enforced_only: true,
            categories: Vec::new(),
            routes: Vec::new(),
            burst_threshold: 100,
            burst_window_seconds: 60,
            cooldown_seconds: 900,
            channel: AlertChannel::default(),
        }
    }
}

impl Entity for AlertRule {
    const COLLECTION: &'static str = "alert-rules";
    const KIND: &'static str = "alert-rule";

    fn check(&self, _head: &Head, refs: &dyn References) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        if !(0.0..=100.0).contains(&self.min_score) {
            problems.push(FieldProblem::new("/min_score", "no score ever reaches it").expected("0 to 100"));
        }
        problems.extend(within("/min_count", self.min_count, 1..=1_000_000));
        problems.extend(count("/routes", self.routes.len(), 1000));
        for (index, id) in self.routes.iter().enumerate() {
            problems.extend(reference(refs, Route::COLLECTION, id, format!("/routes/{index}")));
        }
        problems.extend(within("/burst_threshold", self.burst_threshold, 1..=1_000_000));
        problems.extend(within("/burst_window_seconds", self.burst_window_seconds, 1..=86_400));
        problems.extend(within("/cooldown_seconds", self.cooldown_seconds, 10..=604_800));
        let channel = self.channel.check(self.enabled);
        problems.extend(channel.into_iter().map(|problem| problem.under("/channel")));
        problems
    }

    fn is_enabled(&self) -> bool {
        self.enabled
    }

    fn unused(&self, _head: &Head) -> Vec<FieldProblem> {
        let categories = self.categories.iter().enumerate();
        categories
            .filter_map(|(index, category)| unused::of_category(category.word(), format!("/categories/{index}")))
            .collect()
    }
}

// === impl AlertChannel ===

impl Default for AlertChannel {
    fn default() -> AlertChannel {
        AlertChannel {
            kind: ChannelKind::default(),
            url: Secret::default(),
            routing_key: Secret::default(),
            headers: Headers::new(),
            timeout_millis: 10_000,
        }
    }
}

impl AlertChannel {
    fn check(&self, enabled: bool) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        let missing = |pointer: &str, what: &str| {
            let problem = FieldProblem::new(pointer, format!("the channel needs {what}"));
            problem.expected("a value, or `enabled: false`")
        };
        match self.kind {
            ChannelKind::Slack | ChannelKind::Teams | ChannelKind::Webhook if enabled && !self.url.is_set() => {
                problems.push(missing("/url", "a URL that messages are posted to"));
            }
            ChannelKind::Pagerduty if enabled && !self.routing_key.is_set() => {
                problems.push(missing("/routing_key", "the key of an integration"));
            }
            _ => {}
        }
        if self.url.is_set() {
            problems.extend(secret_url("/url", &self.url));
        }
        problems.extend(headers("/headers", &self.headers));
        problems.extend(within("/timeout_millis", self.timeout_millis, 1..=600_000));
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_documents() {
        for word in ["incident", "ban", "burst"] {
            assert_eq!(serde_json::from_value::<AlertTrigger>(word.into()).unwrap().word(), word);
        }
        for word in ["slack", "teams", "pagerduty", "webhook", "event"] {
            assert_eq!(serde_json::from_value::<ChannelKind>(word.into()).unwrap().word(), word);
        }
        for word in [
            "threat",
            "honeypot",
            "fail2ban",
            "challenge",
            "ban",
            "traffic",
            "api",
            "upload",
            "login",
            "objects",
            "leakage",
            "sensitive_data",
            "dependency",
        ] {
            assert_eq!(serde_json::from_value::<EventCategory>(word.into()).unwrap().word(), word);
        }
    }
}
