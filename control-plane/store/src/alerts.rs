//! What alert rules must not forget: what they have told, the messages that wait for their channels, and the events of bursts.

use super::Pending;

/// The most pairs of a rule and a subject that are kept; of more, those told first are forgotten.
pub const MAX_TOLD: u32 = 20_000;
/// The most messages that are kept; of more, the oldest are forgotten.
pub const MAX_WAITING: u32 = 1000;
/// The most parts of a burst that are kept; of more, the oldest are forgotten.
pub const MAX_BURST_PARTS: usize = 2002;
/// By how much the clocks of control planes may differ, in milliseconds: a claim this far ahead of a later one still counts.
pub const CLOCK_SKEW: u64 = 10_000;
/// What was told within this time, in milliseconds, is not told again for an incident that was opened again: another control plane has
/// seen the same.
pub const JUST_TOLD: u64 = 2000;

/// The part of a [`Store`](super::Store) that alert rules need. Times are in milliseconds since 1970. What was answered
/// with `Ok` is durable, and each call is one transaction.
pub trait AlertStore: Send + Sync + 'static {
    /// Claims the messages of rules, each for its subject: of several control planes that want to tell of the same, one does. The message of
    /// a claim that was taken waits until it is settled. For each claim: `None` where it was taken, else when the rule has told of
    /// the subject.
    fn alerts_note(&self, noted: AlertNotes) -> Pending<'_, Vec<Option<u64>>>;

    /// Keeps messages that wait as they are now, those that are still there.
    fn alerts_keep(&self, waiting: Vec<WaitingAlert>) -> Pending<'_, ()>;

    /// Forgets messages that were delivered or given up, by id.
    fn alerts_settle(&self, ids: Vec<String>) -> Pending<'_, ()>;

    /// What rules have told, oldest first.
    fn alerts_told(&self) -> Pending<'_, Vec<Told>>;

    /// The messages that wait, oldest first.
    fn alerts_waiting(&self) -> Pending<'_, Vec<WaitingAlert>>;

    /// Forgets what was told, and bursts whose last event was, at or before a moment.
    fn alerts_sweep(&self, until: u64) -> Pending<'_, ()>;

    /// Adds the events of a rule that waits for a burst, and answers those of all control planes that are in the window, by parts: when a
    /// part begins, and how many events it has.
    fn alerts_burst(&self, burst: Burst) -> Pending<'_, Vec<(u64, u64)>>;
}

/// What one look at events and bans has led to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlertNotes {
    /// Of what rules may tell again at once. Forgotten before claims are judged.
    pub forgotten: Vec<Forgotten>,
    /// What they want to tell.
    pub claims: Vec<Claim>,
}

/// A rule may tell of a subject again: what it has told by a moment is forgotten, but for the last [`JUST_TOLD`] of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forgotten {
    /// The id of the rule.
    pub rule: String,
    /// What it has told of.
    pub subject: String,
    /// The moment.
    pub at: u64,
}

/// A rule wants to tell of something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The rule, the subject, and when.
    pub told: Told,
    /// For so long after it was told of, the subject is not told of again, in milliseconds.
    pub cooldown: u64,
    /// The message.
    pub message: WaitingAlert,
}

/// A rule has told of something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The id of the rule.
    pub rule: String,
    /// What it has told of, such as `ban:ip:192.0.2.1`.
    pub subject: String,
    /// When.
    pub at: u64,
}

/// A message that waits for its channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingAlert {
    /// The id of the message.
    pub id: String,
    /// When it was made.
    pub at: u64,
    /// The message, JSON.
    pub json: String,
}

/// Events of a rule that waits for a burst.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Burst {
    /// The id of the rule.
    pub rule: String,
    /// The length of its window, in milliseconds: another length begins anew.
    pub window: u64,
    /// Events that are not counted yet: when their part begins, and how many.
    pub added: Vec<(u64, u64)>,
    /// Parts that begin before are forgotten.
    pub since: u64,
}
