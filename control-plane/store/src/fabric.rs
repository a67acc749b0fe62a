//! What the decision fabric must not forget: bans, the allowlist, the ledger, incidents and what operators made of them.

use std::sync::Arc;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Held, Pending, StoreError};
use base::search::Search;

/// The most bans that are kept. A further one takes the place of one that no operator made, and is refused where there is none
/// of them: of the node that has most bans the one that ends first, so that no node evicts the bans of others beyond its share.
/// Gateways hold somewhat more.
pub const MAX_BANS: u32 = 100_000;
/// The most bans that tiers and the ledger have in force for requests of one address, or one /64 of IPv6: of identities that
/// were used there. A further one takes the place of one of them: of the node that has most of them there the one that ends first,
/// and a ban on the address itself gives way to no ban on a user or an API key. So do those of wider networks.
pub const MAX_BANS_PER_ADDRESS: u32 = 100;
/// The same for a /24 of IPv4 and a /48 of IPv6.
pub const MAX_BANS_PER_NETWORK: u32 = 1000;
/// The same for a /32 of IPv6.
pub const MAX_BANS_PER_REGION: u32 = 10_000;
/// The same for bans that come from no known address.
pub const MAX_BANS_UNPLACED: u32 = 1000;
/// So many networks within a /56 of IPv6, banned at the same time by tiers or the ledger, make a ban on the /56.
pub const NEIGHBOURS_56: u32 = 8;
/// The same for a /48. No ban but an operator's is on anything wider.
pub const NEIGHBOURS_48: u32 = 32;
/// The most bans on ranges of addresses; a further one is refused. Every worker of a gateway keeps a list of all of them,
/// which is read again as a whole after each change.
pub const MAX_RANGES: u32 = 4096;
/// The most ranges on the allowlist; a further one is refused, because every ban is held against all of them.
pub const MAX_ALLOWED_RANGES: u32 = 256;
/// The most entries of the allowlist; a further one is refused.
pub const MAX_ALLOWED: u32 = 10_000;
/// The most identities in the ledger; of more, those longest without a charge are forgotten, of a network that has more than its share
/// first, and a fiftieth more than that.
pub const MAX_LEDGER: u32 = 50_000;
/// The most states of incidents that are kept; of more, those set first are forgotten. As many as there can be incidents.
pub const MAX_WORKFLOWS: u32 = 100_000;
/// The most lifts that are remembered, of bans and of entries of the allowlist each; of more, the oldest are forgotten.
pub const MAX_LIFTS: u32 = 100_000;
/// How long a lifted ban stays known, at least, so that a gateway that was away is told: a day.
pub const LIFT_KEPT_MILLIS: u64 = 86_400_000;
/// The steps that the history of a ban has, at most; the oldest go first.
pub const MAX_STEPS: usize = 20;
/// The last moment that is kept as an end, in milliseconds since 1970: the end of the year 9999.
pub const LAST_MOMENT: u64 = 253_402_300_799_999;

/// The part of a [`Store`](super::Store) that the decision fabric needs. Times are in milliseconds since 1970. What was
/// answered with `Ok` is durable, and each call is one transaction: a [`Note`] is kept with the change, or neither is.
pub trait FabricStore: Send + Sync + 'static {
    /// Puts a ban in force, unless the allowlist or a later lift speaks against it.
    ///
    /// Where one stands already, the later end holds; the evidence is that of the ban with the later end, or of the one by
    /// hand (see [`Ban::by_hand`]), and the history of both is kept. A ban that no operator made is counted to the place that
    /// it came from ([`MAX_BANS_PER_ADDRESS`] and the wider ones) and may make one on the networks around it: see
    /// [`bans_widen`](Self::bans_widen).
    fn ban_issue(&self, ban: Ban, now: u64) -> Pending<'_, Issued> {
        let issued = self.bans_issue(vec![ban], now, Note::none());
        Box::pin(async move { issued.await?.pop().ok_or(StoreError::Closed) })
    }

    /// [`ban_issue`](Self::ban_issue) for many, each in its turn, in one transaction: the outcome of each.
    fn bans_issue(&self, bans: Vec<Ban>, now: u64, note: Note<Vec<Issued>>) -> Pending<'_, Vec<Issued>>;

    /// Bans the IPv6 networks of 56 and 48 bits around each of these identities in which [`NEIGHBOURS_56`] and
    /// [`NEIGHBOURS_48`] networks as wide as that identity are banned, not by hand and since the wider ban was lifted
    /// last, for as long as the longest of those bans. Answers the bans that this has made; an identity that is no address or
    /// network of IPv6 makes none. If there is none to make, nothing is written and `note` is dropped.
    fn bans_widen(&self, keys: Vec<String>, now: u64, note: Note<Vec<Ban>>) -> Pending<'_, Vec<Ban>>;

    /// Moves the end of a ban that is in force at `step.at`, whatever its origin, and makes it an operator's up to there; `None` where
    /// there is none.
    fn ban_extend(&self, key: &str, by_millis: u64, step: Step, note: Note<Option<Ban>>) -> Pending<'_, Option<Ban>>;

    /// Lifts the ban on an identity and remembers that; false where there was none in force.
    fn ban_lift(&self, key: &str, now: u64, note: Note<bool>) -> Pending<'_, bool>;

    /// Lifts every ban; answers the keys of those that were in force.
    fn bans_lift_all(&self, now: u64, note: Note<Vec<String>>) -> Pending<'_, Vec<String>>;

    /// The bans in force at `now`, by key.
    fn bans(&self, now: u64) -> Pending<'_, Vec<Ban>>;

    /// How many bans are in force at `now`.
    fn bans_count(&self, now: u64) -> Pending<'_, u64>;

    /// A part of the bans in force at `now`, by key, and how many there are that the query asks for.
    fn bans_page(&self, now: u64, query: BanQuery) -> Pending<'_, BanPage>;

    /// Of the bans in force at `now` those on these keys, and those on ranges; by key.
    fn bans_on(&self, now: u64, keys: Vec<String>) -> Pending<'_, Vec<Ban>>;

    /// Of the bans in force at `now` those of exactly these keys, in their order: what is around them, such as ranges, is not among them.
    fn bans_named(&self, now: u64, keys: Vec<String>) -> Pending<'_, Vec<Ban>>;

    /// The keys of all bans in force at `now`, in no order.
    fn bans_keys(&self, now: u64) -> Pending<'_, Vec<String>>;

    /// The ban in force on an identity at `now`.
    fn ban(&self, key: &str, now: u64) -> Pending<'_, Option<Ban>>;

    /// The bans in force at `now` without their evidence, in no order. Of a shared store that cannot be reached, those that were known last.
    fn bans_standing(&self, now: u64) -> Pending<'_, Vec<Standing>>;

    /// The keys of bans (`true`) or entries of the allowlist (`false`) that were taken back, and of which a gateway may not
    /// know yet. Of a shared store that cannot be reached, those that were known last.
    fn lifted(&self, bans: bool) -> Pending<'_, Vec<String>>;

    /// Notes bans and entries of the allowlist as taken back that were in force once and are not any more: a gateway may hold them for as long
    /// as they would have lasted. Answers the keys of those, without the ones that hold at `now`. See [`Setback`](super::Setback).
    fn note_lost(&self, lost: Held, now: u64) -> Pending<'_, Held>;

    /// Puts an identity on the allowlist, or replaces its entry, and forgets it and `charged` in the ledger: the network by
    /// which an address of IPv6 is charged. With `lift` its ban is lifted, and those within where it is a range. `None` where
    /// the allowlist is full.
    fn allow(
        &self,
        entry: Allowance,
        charged: &str,
        lift: bool,
        note: Note<Option<Vec<String>>>,
    ) -> Pending<'_, Option<Vec<String>>>;

    /// Takes an identity off the allowlist; false where it was not on it.
    fn disallow(&self, key: &str, now: u64, note: Note<bool>) -> Pending<'_, bool>;

    /// The entries of the allowlist that hold at `now`, by key. Of a shared store that cannot be reached, those that were known last.
    fn allowlist(&self, now: u64) -> Pending<'_, Vec<Allowance>>;

    /// Charges identities, in this order, and bans each whose total within the window reaches the threshold. Its total is
    /// consumed then, also where the allowlist refuses the ban. Answers the outcome for those that reached it.
    fn ledger_charge(
        &self,
        charges: Vec<Charge>,
        rules: LedgerRules,
        now: u64,
        note: Note<Vec<Promotion>>,
    ) -> Pending<'_, Vec<Promotion>>;

    /// The total of an identity since a moment, that moment not included.
    fn ledger_score(&self, key: &str, since: u64) -> Pending<'_, f64>;

    /// The highest totals since a moment, highest first, at most `limit`.
    fn ledger_top(&self, since: u64, limit: u32) -> Pending<'_, Vec<(String, f64)>>;

    /// Forgets an identity; false where there was no ledger entry.
    fn ledger_forget(&self, key: &str, note: Note<bool>) -> Pending<'_, bool>;

    /// Forgets charges at or before a moment.
    fn ledger_sweep(&self, until: u64) -> Pending<'_, ()>;

    /// Sets the state of an incident.
    fn workflow_put(&self, workflow: Workflow, note: Note<()>) -> Pending<'_, ()>;

    /// Clears the states of incidents, each unless it was set after the moment given with it.
    fn workflows_clear(&self, cleared: Vec<(String, u64)>, note: Note<()>) -> Pending<'_, ()>;

    /// Every state of an incident, by key.
    fn workflows(&self) -> Pending<'_, Vec<Workflow>>;

    /// Adds to incidents, each by `merge` of what is kept (JSON, if there is any) and the row given; answers the rows as they are now.
    /// Removes others by key, unless they were seen after the time given with them.
    fn incidents_merge(
        &self,
        added: Vec<IncidentRow>,
        merge: MergeIncident,
        removed: Vec<(String, u64)>,
    ) -> Pending<'_, Vec<IncidentRow>>;

    /// The incidents with these keys, by key; those that there are.
    fn incidents_of(&self, keys: Vec<String>) -> Pending<'_, Vec<IncidentRow>>;

    /// The incidents by key, from the first one after a key (empty for all), at most `limit`.
    fn incidents(&self, after: &str, limit: u32) -> Pending<'_, Vec<IncidentRow>>;

    /// Forgets bans and entries that have ended, lifts that every gateway must know by now, and states of incidents set at
    /// or before `workflows_until`.
    fn fabric_sweep(&self, now: u64, workflows_until: u64) -> Pending<'_, ()>;
}

/// The events (JSON) that are to be sent of a change. They are made from its outcome within its transaction, and kept in
/// the outbox ([`Store::kept_events`](super::Store::kept_events)) until they were sent.
pub struct Note<T>(Option<NoteMaker<T>>);

/// Makes the events of an outcome. Must not call the store.
type NoteMaker<T> = Box<dyn FnOnce(&T) -> Vec<String> + Send>;

impl<T> Note<T> {
    /// No event.
    #[must_use]
    pub fn none() -> Note<T> {
        Note(None)
    }

    /// The events that `make` returns; none where it returns none.
    #[must_use]
    pub fn new(make: impl FnOnce(&T) -> Vec<String> + Send + 'static) -> Note<T> {
        Note(Some(Box::new(make)))
    }

    /// The events of this outcome.
    #[must_use]
    pub fn events(self, outcome: &T) -> Vec<String> {
        self.0.map_or_else(Vec::new, |make| make(outcome))
    }
}

impl<T> fmt::Debug for Note<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Note").field(&self.0.is_some()).finish()
    }
}

/// A ban as gateways are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The banned identity or range.
    pub key: String,
    /// Until when.
    pub until: u64,
    /// Until when by an operator's hand; 0 where no operator made it.
    pub hand_until: u64,
    /// Why, for people.
    pub reason: String,
}

/// A ban with its evidence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ban {
    /// The banned identity, such as `ip:192.0.2.7`.
    #[serde(skip)]
    pub key: String,
    /// Why, for people.
    pub reason: String,
    /// The tags of the signals that led to it.
    pub tags: Vec<String>,
    /// The score that led to it; 0 by hand.
    pub score: f64,
    /// Since when.
    pub issued_at: u64,
    /// Until when.
    #[serde(skip)]
    pub until: u64,
    /// The operator, the node, or `ledger`.
    pub issued_by: String,
    /// An operator did it, or did it first: such a ban is enforced in a dry run as well, and never gives way to another.
    pub by_hand: bool,
    /// Until when by an operator's hand, who may have asked for less than `until`; 0 where no operator made it. The store sets
    /// it.
    #[serde(skip)]
    pub hand_until: u64,
    /// The address whose request led to it first; empty by hand, and where the gateway gives none.
    pub address: String,
    /// The node that asked for it first, or on whose word the ledger did; empty by hand. Such bans share the room fairly by it.
    #[serde(skip)]
    pub node: String,
    /// The signals that led to it, as far as they are known.
    pub signals: Vec<Value>,
    /// What was done with it, oldest first, at most [`MAX_STEPS`].
    pub timeline: Vec<Step>,
}

/// Which bans are asked for. What is `None` does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BanQuery {
    /// Only the ban on this key.
    pub key: Option<String>,
    /// Only those for this reason.
    pub reason: Option<String>,
    /// Only those that this operator or node, or the ledger, has issued.
    pub issued_by: Option<String>,
    /// Only those whose key, reason, issuer or one of whose tags has a text in it, or that are on the identity that it is.
    pub search: Option<Search>,
    /// How many are left out at the beginning.
    pub skip: u64,
    /// How many are read at most.
    pub take: u64,
}

/// A part of the bans.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BanPage {
    /// How many there are in all.
    pub total: u64,
    /// Those of the part, by key.
    pub bans: Vec<Ban>,
}

/// One thing that was done with a ban.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Step {
    /// When.
    pub at: u64,
    /// `ban` or `extend`.
    pub action: String,
    /// Who.
    pub by: String,
    /// What else there is to say.
    pub detail: String,
}

/// The outcome of a request for a ban.
#[derive(Clone, Debug, PartialEq)]
pub enum Issued {
    /// It is in force; this is how it stands.
    Live(Ban),
    /// The allowlist has the identity; with the entry.
    Allowlisted(Allowance),
    /// It was asked for before the one on this identity was lifted, at this time.
    Lifted(u64),
    /// There are [`MAX_RANGES`] bans on ranges, or [`MAX_BANS`], and all of them by hand.
    Full,
}

/// An entry of the allowlist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// The identity or the range.
    pub key: String,
    /// Why, for people.
    pub reason: String,
    /// The operator.
    pub added_by: String,
    /// Since when.
    pub added_at: u64,
    /// Until when; `None` for good.
    pub until: Option<u64>,
}

/// What an identity is charged with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Charge {
    /// The identity.
    pub key: String,
    /// How much; more than 0.
    pub points: f64,
    /// When.
    pub at: u64,
    /// The address that it comes from; empty where none is known.
    pub address: String,
    /// The node that reports it; empty where it is not known.
    pub node: String,
}

/// When the ledger bans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LedgerRules {
    /// How long a charge counts.
    pub window_millis: u64,
    /// The total from which an identity is banned.
    pub threshold: f64,
    /// For how long.
    pub ban_millis: u64,
}

/// An identity that has reached the threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct Promotion {
    /// The identity.
    pub key: String,
    /// The address that its last charge came from; empty where none is known.
    pub address: String,
    /// Its total, which is consumed.
    pub total: f64,
    /// The outcome of its ban.
    pub issued: Issued,
}

/// What operators made of an incident.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workflow {
    /// The identity whose incident it is.
    pub key: String,
    /// `acknowledged` or `resolved`.
    pub state: String,
    /// The operator.
    pub by: String,
    /// When.
    pub at: u64,
    /// What they had to say.
    pub note: String,
}

/// Makes one incident (JSON) of what is kept of it and what is added.
pub type MergeIncident = Arc<dyn Fn(Option<&str>, &str) -> String + Send + Sync>;

/// An incident as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncidentRow {
    /// The identity whose it is.
    pub key: String,
    /// The incident, JSON.
    pub json: String,
}
