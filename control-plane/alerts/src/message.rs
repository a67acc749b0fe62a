//! What is told, before it is put into the words of a channel.

use serde::{Deserialize, Serialize};

use base::clock;
use entities::{AlertRule, AlertTrigger, Item};
use events::{self, BanMade, IdentityRef, Sighting};

use super::text::plain;

/// The longest value, in characters.
const MAX_VALUE: usize = 256;
/// The longest text that an event or an operator brings, in characters.
const MAX_DETAIL: usize = 512;
/// The tags that are told, at most.
const MAX_TAGS: usize = 10;

/// One message. Its texts are [`plain`], and may still hold what a channel reads as markup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Message {
    /// Its own id.
    pub(super) id: String,
    /// When it was made, in milliseconds since 1970.
    pub(super) at: u64,
    pub(super) rule_id: String,
    pub(super) rule_name: String,
    pub(super) trigger: AlertTrigger,
    /// An operator tries the channel.
    pub(super) test: bool,
    /// 1 to 4.
    pub(super) severity: u8,
    /// What it is about: messages with the same subject are about the same.
    pub(super) subject: String,
    pub(super) identity: Option<IdentityRef>,
    /// The id of the incident, and how many events it has.
    pub(super) incident: Option<(String, u64)>,
    pub(super) score: Option<f64>,
    pub(super) category: String,
    pub(super) action: String,
    pub(super) enforced: Option<bool>,
    pub(super) tags: Vec<String>,
    pub(super) route_id: String,
    pub(super) route_name: String,
    pub(super) node: String,
    /// The message of the event, the reason of the ban.
    pub(super) detail: String,
    pub(super) ban: Option<BanFacts>,
    /// The events, and the seconds within which they came.
    pub(super) burst: Option<(u64, u64)>,
    /// What its cooldown is kept for.
    #[serde(skip)]
    pub(super) cools: String,
    /// For how long, in milliseconds.
    #[serde(skip)]
    pub(super) cooldown: u64,
    /// When its control plane has last said that it is about to send it; another one takes it over when that is long ago.
    #[serde(default)]
    pub(super) kept_at: u64,
}

/// What is told of a ban.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BanFacts {
    /// Its end, in milliseconds since 1970.
    pub(super) until: u64,
    /// An operator, a node, the ledger.
    pub(super) by: String,
    /// `tier`, `ledger` or `hand`.
    pub(super) way: String,
}

impl Message {
    /// That an operator tries the channel.
    pub(super) fn test(rule: &Item<AlertRule>, now: u64) -> Message {
        let mut message = Message::new(rule, format!("test:{}", rule.head.id), now);
        message.test = true;
        message.detail = "An operator has asked for this message: the channel works.".to_owned();
        message
    }

    pub(super) fn incident(rule: &Item<AlertRule>, event: &Sighting, id: &str, count: u64, now: u64) -> Message {
        let id = plain(id, MAX_VALUE);
        let mut message = Message::new(rule, id.clone(), now).of_event(event);
        message.incident = Some((id, count));
        message
    }

    pub(super) fn burst(rule: &Item<AlertRule>, event: &Sighting, count: u64, now: u64) -> Message {
        let mut message = Message::new(rule, format!("burst:{}", rule.head.id), now).of_event(event);
        // All identities together: the last one is as good an example as any, and no more.
        message.incident = None;
        message.burst = Some((count, rule.burst_window_seconds));
        message
    }

    pub(super) fn ban(rule: &Item<AlertRule>, made: &BanMade, now: u64) -> Message {
        let (kind, value) = made.ban.key.split_once(':').unwrap_or(("", &made.ban.key));
        Message {
            severity: made.score.map_or(3, events::severity).max(3),
            identity: Some(identity(kind, value)),
            score: made.score,
            category: "ban".to_owned(),
            action: "ban".to_owned(),
            enforced: Some(true),
            tags: tags(&made.ban.tags),
            detail: plain(&made.ban.reason, MAX_DETAIL),
            ban: Some(BanFacts {
                until: made.ban.until,
                by: plain(&made.ban.issued_by, MAX_VALUE),
                way: made.way.word().to_owned(),
            }),
            ..Message::new(rule, format!("ban:{}", plain(&made.ban.key, MAX_VALUE)), now)
        }
    }

    /// The same with the subject that its rule does not tell of again for a while.
    pub(super) fn cooling(self, rule: &AlertRule, subject: String) -> Message {
        Message { cools: subject, cooldown: super::judge::cooldown(rule), ..self }
    }

    /// What it is about, in a line.
    pub(super) fn headline(&self) -> String {
        let who = self.identity.as_ref().map_or("unknown client".to_owned(), key);
        if self.test {
            return format!("Test of the alert rule {}", self.rule());
        }
        match self.trigger {
            AlertTrigger::Incident => {
                let count = self.incident.as_ref().map_or(0, |(_, count)| *count);
                let events = if count == 1 { "event" } else { "events" };
                format!("Incident: {who}, {count} {events}, score {}", self.score.unwrap_or(0.0))
            }
            AlertTrigger::Ban => {
                let until = self.ban.as_ref().map_or(0, |ban| ban.until);
                format!("Ban: {who} until {}", clock::rfc3339(until))
            }
            AlertTrigger::Burst => {
                let (count, seconds) = self.burst.unwrap_or_default();
                format!("Burst: {count} events within {seconds} s")
            }
        }
    }

    /// The rule's name, or its id where it has none.
    pub(super) fn rule(&self) -> &str {
        if self.rule_name.is_empty() { &self.rule_id } else { &self.rule_name }
    }

    /// What else people want to know, at most ten: what it is, and how it is. None is empty.
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let route = if self.route_name.is_empty() { &self.route_id } else { &self.route_name };
        let last = if self.burst.is_some() { "Last identity" } else { "Identity" };
        let all = [
            ("Severity", format!("{} of 4", self.severity)),
            (last, self.identity.as_ref().map_or_else(String::new, key)),
            ("Score", self.score.map_or_else(String::new, |score| score.to_string())),
            ("Category", self.category.clone()),
            ("Action", self.action_taken()),
            ("Tags", self.tags.join(", ")),
            ("Route", route.clone()),
            ("Node", self.node.clone()),
            ("Banned by", self.ban.as_ref().map_or_else(String::new, |ban| format!("{} ({})", ban.by, ban.way))),
            ("Time", clock::rfc3339(self.at)),
        ];
        all.into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name, plain(&value, MAX_VALUE)))
            .collect()
    }

    fn action_taken(&self) -> String {
        match self.enforced {
            Some(false) if !self.action.is_empty() => format!("{} (not enforced)", self.action),
            _ => self.action.clone(),
        }
    }

    fn new(rule: &Item<AlertRule>, subject: String, now: u64) -> Message {
        Message {
            id: uuid::Uuid::new_v4().to_string(),
            at: now,
            rule_id: rule.head.id.clone(),
            rule_name: plain(&rule.head.name, MAX_VALUE),
            trigger: rule.trigger,
            test: false,
            severity: 1,
            subject,
            identity: None,
            incident: None,
            score: None,
            category: String::new(),
            action: String::new(),
            enforced: None,
            tags: Vec::new(),
            route_id: String::new(),
            route_name: String::new(),
            node: String::new(),
            detail: String::new(),
            ban: None,
            burst: None,
            cools: String::new(),
            cooldown: 0,
            kept_at: now,
        }
    }

    fn of_event(self, event: &Sighting) -> Message {
        let plain = |text: &str| plain(text, MAX_VALUE);
        Message {
            severity: event.severity,
            identity: event.identity.as_ref().map(|whose| identity(&whose.kind, &whose.value)),
            score: Some(event.score),
            category: plain(&event.category),
            action: plain(&event.action),
            enforced: Some(event.enforced),
            tags: tags(&event.tags),
            route_id: plain(&event.route_id),
            route_name: plain(&event.route_name),
            node: plain(&event.node),
            detail: super::text::plain(&event.message, MAX_DETAIL),
            ..self
        }
    }
}

/// An identity as one string.
pub(super) fn key(identity: &IdentityRef) -> String {
    format!("{}:{}", identity.kind, identity.value)
}

fn identity(kind: &str, value: &str) -> IdentityRef {
    IdentityRef { kind: kind.to_owned(), value: plain(value, MAX_VALUE) }
}

fn tags(tags: &[String]) -> Vec<String> {
    tags.iter().take(MAX_TAGS).map(|tag| plain(tag, MAX_VALUE)).collect()
}
