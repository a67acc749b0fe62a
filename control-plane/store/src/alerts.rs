//! What alert rules must not forget: what they have told, and the messages that wait for their channels.

use super::Pending;

/// The most pairs of a rule and a subject that are kept; of more, those told first are forgotten.
pub const MAX_TOLD: u32 = 20_000;
/// The most messages that are kept; of more, the oldest are forgotten.
pub const MAX_WAITING: u32 = 1000;

/// The part of a [`Store`](super::Store) that alert rules need. Times are in milliseconds since 1970. What was answered
/// with `Ok` is durable, and each call is one transaction.
pub trait AlertStore: Send + Sync + 'static {
    /// Notes what rules have told, forgets what they may tell again, and keeps messages until they are settled: all of it,
    /// or nothing.
    fn alerts_note(&self, noted: AlertNotes) -> Pending<'_, ()>;

    /// Forgets messages that were delivered or given up, by id.
    fn alerts_settle(&self, ids: Vec<String>) -> Pending<'_, ()>;

    /// What rules have told, oldest first.
    fn alerts_told(&self) -> Pending<'_, Vec<Told>>;

    /// The messages that wait, oldest first.
    fn alerts_waiting(&self) -> Pending<'_, Vec<WaitingAlert>>;

    /// Forgets what was told at or before a moment.
    fn alerts_sweep(&self, until: u64) -> Pending<'_, ()>;
}

/// What one look at events and bans has led to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlertNotes {
    /// What was told. A rule that has told of the subject before tells of it later now.
    pub told: Vec<Told>,
    /// Pairs of a rule and a subject of which it may tell again at once. Forgotten before `told` is noted.
    pub forgotten: Vec<(String, String)>,
    /// The messages.
    pub waiting: Vec<WaitingAlert>,
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
