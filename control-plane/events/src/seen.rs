//! What alerts look at: events that came in, and bans that were made.

use super::event::SecurityEvent;
use super::incidents::{IdentityRef, Place, TimelineEntry, identity, text};
use store::fabric::Ban;

/// The tags that are taken from an event, at most.
const MAX_TAGS: usize = 16;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// An event of a node, or of the ledger.
    Event(Box<Sighting>),
    /// A ban that did not stand before.
    Ban(Box<BanMade>),
}

/// An event, as far as alerts look at it. Texts have at most 512 characters, and are whatever a caller has sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sighting {
    /// Whose it is.
    pub identity: Option<IdentityRef>,
    /// Its place among the events of that identity.
    pub place: Option<Place>,
    /// 0 to 100.
    pub score: f64,
    /// 1 to 4.
    pub severity: u8,
    /// The `event.category`.
    pub category: String,
    /// The `event.action`.
    pub action: String,
    /// The sentence for people.
    pub message: String,
    /// Its decision was enforced.
    pub enforced: bool,
    /// The id of the route; empty where the request had none.
    pub route_id: String,
    /// The name of the route.
    pub route_name: String,
    /// The node that sent it.
    pub node: String,
    /// The tags of its signals, at most 16.
    pub tags: Vec<String>,
}

/// A ban that did not stand before.
#[derive(Clone, Debug, PartialEq)]
pub struct BanMade {
    /// The ban.
    pub ban: Ban,
    /// Who has made it.
    pub way: BanWay,
    /// The score that led to it, where there is one.
    pub score: Option<f64>,
    /// The category and the id of the route of each of the identity's last events; none by hand.
    pub events: Vec<(String, String)>,
}

/// What makes a ban.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BanWay {
    /// A tier of a policy, on a gateway.
    Tier,
    /// The ledger.
    Ledger,
    /// An operator.
    Hand,
}

impl BanWay {
    /// As messages have it.
    pub fn word(self) -> &'static str {
        match self {
            BanWay::Tier => "tier",
            BanWay::Ledger => "ledger",
            BanWay::Hand => "hand",
        }
    }
}

/// An event before it has its place. `severity` is that of the hub, where the event has none.
pub(super) fn sighting(event: &SecurityEvent, ipv6_prefix: u8, severity: u8) -> Sighting {
    let blocked = event.event.outcome.as_deref() == Some("blocked");
    let given = event.event.severity.and_then(|given| u8::try_from(given).ok());
    let tags = event.threat.tags.iter().flatten().take(MAX_TAGS);
    Sighting {
        identity: identity(&event.source, ipv6_prefix),
        place: None,
        score: event.threat.score().unwrap_or(0.0),
        severity: given.unwrap_or(severity).clamp(1, 4),
        category: text(event.event.category.clone()),
        action: text(event.event.action.clone()),
        message: text(event.message.clone()),
        enforced: event.decision.enforced.unwrap_or(blocked),
        route_id: text(event.route.id.clone()),
        route_name: text(event.route.name.clone()),
        node: text(event.route.node.clone()),
        tags: tags.map(|tag| text(Some(tag.clone()))).collect(),
    }
}

/// A ban as alerts see it; `None` where it stood before. `now` is when it was asked for, `last` are the identity's last
/// events.
pub(super) fn made<'a>(
    ban: &Ban,
    way: BanWay,
    now: u64,
    last: impl Iterator<Item = &'a TimelineEntry>,
) -> Option<BanMade> {
    // One that stood keeps its history; where it also stays as it is, that began before.
    let fresh = ban.timeline.len() == 1 && ban.timeline.first().is_some_and(|step| step.at == now);
    fresh.then(|| BanMade {
        ban: ban.clone(),
        way,
        score: (ban.score > 0.0).then_some(ban.score),
        events: match way {
            BanWay::Hand => Vec::new(),
            BanWay::Tier | BanWay::Ledger => {
                last.map(|entry| (entry.category.to_string(), entry.route_id.to_string())).collect()
            }
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::fabric::Step;

    fn ban(steps: &[u64]) -> Ban {
        let step = |at: &u64| Step { at: *at, ..Step::default() };
        Ban {
            key: "ip:192.0.2.1".to_owned(),
            score: 80.0,
            timeline: steps.iter().map(step).collect(),
            ..Ban::default()
        }
    }

    #[test]
    fn only_a_ban_that_did_not_stand_before_was_made() {
        let was_made = |ban: &Ban| made(ban, BanWay::Tier, 7, std::iter::empty()).is_some();
        assert!(was_made(&ban(&[7])));
        assert!(!was_made(&ban(&[5, 7])), "one that stood was asked for again");
        assert!(!was_made(&ban(&[5])), "one that stood was left as it is");
    }

    #[test]
    fn the_last_events_belong_to_a_ban_that_they_led_to() {
        let entry = TimelineEntry { category: "threat".into(), route_id: "shop".into(), ..TimelineEntry::default() };
        let events = |way| made(&ban(&[7]), way, 7, [&entry].into_iter()).unwrap().events;
        assert_eq!(events(BanWay::Tier), [("threat".to_owned(), "shop".to_owned())]);
        assert_eq!(events(BanWay::Hand), []);
        assert_eq!(made(&ban(&[7]), BanWay::Hand, 7, std::iter::empty()).unwrap().score, Some(80.0));
        let unscored = Ban { score: 0.0, ..ban(&[7]) };
        assert_eq!(made(&unscored, BanWay::Hand, 7, std::iter::empty()).unwrap().score, None);
    }
}
