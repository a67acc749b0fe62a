//! Incidents: the events of one identity, close together in time, as one row with a count.

mod counted;
mod merge;
mod table;
mod text;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use table::Place;
pub(super) use table::{Incidents, Unsaved};
pub use text::SharedText;
use text::Texts;

use super::event::{SecurityEvent, Source};
use base::identity::Identity;

/// The most incidents that are held where nothing else is configured.
const MAX_INCIDENTS: usize = 50_000;
/// The most signals that are kept of an incident's last event.
const MAX_SIGNALS: usize = 16;
/// The most different categories, tags, actions, routes or nodes of one incident.
const MAX_VALUES: usize = 64;
/// The longest text that is taken from an event, in characters.
const MAX_TEXT: usize = 512;

/// How long events belong together, and what is kept of them. All times are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncidentLimits {
    /// An event belongs to its identity's incident when it comes at most this long after the one before.
    pub window: u64,
    /// The last events that an incident shows.
    pub timeline: usize,
    /// A silent incident, and what operators made of one, is forgotten after this long.
    pub kept: u64,
    /// Events that come this soon after an incident was resolved were under way then, and do not open it again.
    pub reopen_grace: u64,
    /// The most incidents that are held; of more, those longest silent are forgotten: of a network that has more than its share
    /// first, and acknowledged ones last.
    pub held: usize,
}

impl Default for IncidentLimits {
    fn default() -> IncidentLimits {
        IncidentLimits {
            window: 1_800_000,
            timeline: 20,
            kept: 7 * 86_400_000,
            reopen_grace: 5_000,
            held: MAX_INCIDENTS,
        }
    }
}

/// One incident.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Incident {
    /// Its id: the one that its first event carries.
    pub id: SharedText,
    /// Whose it is.
    #[serde(rename = "ref")]
    pub identity: IdentityRef,
    /// The identity as one string, such as `ip:192.0.2.1`.
    pub key: SharedText,
    /// Time of the first event, in milliseconds since the Unix epoch.
    pub first_seen: u64,
    /// Time of the last event.
    pub last_seen: u64,
    /// Events.
    pub count: u64,
    /// Events whose decision was enforced.
    pub enforced_count: u64,
    /// The highest score.
    pub max_score: f64,
    /// Categories seen, in order of appearance; at most 64, like the lists below.
    pub categories: Vec<SharedText>,
    /// Tags seen.
    pub tags: Vec<SharedText>,
    /// Actions seen.
    pub actions: Vec<SharedText>,
    /// Names of the routes seen, or ids of routes without a name.
    pub routes: Vec<SharedText>,
    /// Message of the last event.
    pub last_message: SharedText,
    /// Node of the last event.
    pub node: SharedText,
    /// The last events, oldest first; `security.incidents.timeline` says how many.
    pub timeline: VecDeque<TimelineEntry>,
    /// Nodes seen.
    pub nodes: Vec<SharedText>,
    /// Its state, set by operators.
    pub state: IncidentState,
    /// The signals of the last event that had any, as JSON: evidence for a ban. A tree of values takes several times as much.
    #[serde(skip)]
    pub(crate) signals: Option<Box<str>>,
}

/// The state of an incident, set by operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IncidentState {
    /// No operator has handled it.
    #[default]
    Open,
    /// Someone is working on it.
    Acknowledged,
    /// It is closed.
    Resolved,
}

impl Incident {
    /// The incident with its state, which is kept apart from it.
    #[must_use]
    pub fn in_state(&self, state: IncidentState) -> Cow<'_, Incident> {
        if self.state == state {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Incident { state, ..self.clone() })
    }
}

impl IncidentState {
    /// As documents have it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            IncidentState::Open => "open",
            IncidentState::Acknowledged => "acknowledged",
            IncidentState::Resolved => "resolved",
        }
    }
}

/// An identity in two parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdentityRef {
    /// `apikey`, `user` or `ip`.
    pub kind: String,
    /// Its value.
    pub value: String,
}

/// One event in an incident's timeline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineEntry {
    /// When, in milliseconds since the Unix epoch.
    pub at: u64,
    /// Its category.
    pub category: SharedText,
    /// Its action.
    pub action: SharedText,
    /// Its score.
    pub score: f64,
    /// Whether its decision was enforced.
    pub enforced: bool,
    /// Id of the route.
    pub route_id: SharedText,
    /// Name of the route.
    pub route_name: SharedText,
    /// Its message.
    pub message: SharedText,
}

fn fresh(event: &SecurityEvent, key: &SharedText, identity: IdentityRef, at: u64) -> Incident {
    let id = event.incident.id.clone().filter(|id| !id.is_empty()).map(|id| text(Some(id)));
    Incident {
        id: id.unwrap_or_else(|| format!("{key}@{at}")).into(),
        identity,
        key: key.clone(),
        first_seen: at,
        last_seen: at,
        ..Incident::default()
    }
}

/// The most specific identity of an event that is one: api key, else user, else address, which is its network where it is
/// one of IPv6. What a node sends in place of an identity (a range, text that is no address) is none: the ledger bans by it.
pub(super) fn identity(source: &Source, ipv6_prefix: u8) -> Option<IdentityRef> {
    let given = |kind: &str, value: &Option<String>| Identity::parse(&format!("{kind}:{}", value.as_deref()?)).ok();
    let identity = given("apikey", &source.apikey)
        .or_else(|| given("user", &source.user))
        .or_else(|| caller(source.address()?, source.network.as_deref(), ipv6_prefix))?;
    Some(IdentityRef { kind: identity.kind().to_owned(), value: identity.value().to_owned() })
}

/// What an address is judged by: the network that the gateway says, if it is around the address and no wider than the one of
/// the configuration (a gateway may still have an earlier one), else that of the configuration.
fn caller(address: IpAddr, network: Option<&str>, ipv6_prefix: u8) -> Option<Identity> {
    let identity = Identity::parse(&format!("ip:{address}")).ok()?;
    let network = network.and_then(|network| Identity::parse(&format!("ip:{network}")).ok());
    let fits = |network: &Identity| {
        let width = network.network_v6().map(|network| network.prefix_len());
        network == &identity && width.is_none_or(|width| width >= ipv6_prefix)
            || network.has_own_key() && width >= Some(ipv6_prefix) && network.covers(&identity)
    };
    Some(network.filter(fits).unwrap_or_else(|| identity.charged(ipv6_prefix)))
}

pub(super) fn text(value: Option<String>) -> String {
    value.map(|text| text.chars().take(MAX_TEXT).collect()).unwrap_or_default()
}

fn note(values: &mut Vec<SharedText>, value: &SharedText) {
    if !value.is_empty() && values.len() < MAX_VALUES && !values.contains(value) {
        // Most lists have one or two entries, and there are many lists.
        if values.len() == values.capacity() {
            values.reserve_exact(values.len().max(1));
        }
        values.push(value.clone());
    }
}

#[cfg(test)]
mod tests;
