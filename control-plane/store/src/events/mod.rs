//! Stored events, searchable by what they are about.
//!
//! They are not in the tables of [`Store`](super::Store): every control plane that shares a store has a copy of those, and each change
//! waits for the disk. Events are many and may be lost, so they have a file of their own ([`EventFile`]), or a stream of a shared server
//! that such a file follows.

mod block;
mod db_file;
mod file;
mod place;
mod search;
mod segments;
mod tables;
mod terms;
#[cfg(test)]
mod tests;
mod volume;

use std::sync::Arc;

use tokio::sync::broadcast;

use super::Pending;

pub use block::{Block, MAX_BLOCK_EVENTS};
pub use file::{EventCopy, EventFile};
pub use place::{MAX_LATE_MILLIS, time as event_time};
pub use terms::{EventField, MAX_VALUE_BYTES, NewEvent};

/// How many events one query examines, at most.
pub const MAX_EXAMINED: u32 = 20_000;

/// How long no more events give way after some have, in seconds.
pub const GIVES_WAY_SECONDS: f64 = 300.0;

/// A memory of events: the oldest give way. What was appended with `Ok` survives the end of the process, however it ends; a loss of
/// power may take the last seconds.
pub trait EventStore: Send + Sync + 'static {
    /// Appends events. One that is there already, by its `@id`, node and time, is left out.
    ///
    /// # Errors
    /// Nothing was appended; with [`StoreError::Unanswered`](super::StoreError::Unanswered) it may have been.
    fn append(&self, events: Vec<NewEvent>) -> Pending<'_, ()>;

    /// Finds events, newest first.
    fn search(&self, query: EventQuery) -> Pending<'_, EventPage>;

    /// What is kept.
    fn status(&self) -> Pending<'_, EventStoreStatus>;

    /// Removes events that are too old, in small steps.
    fn sweep(&self, now_millis: u64) -> Pending<'_, ()>;

    /// Removes the older half of the events, because the room is needed for what must not be lost, and answers whether it has. At most
    /// once in [`GIVES_WAY_SECONDS`]: where something else fills the volume or the server, a removal makes no room for long.
    fn give_way(&self) -> Pending<'_, bool>;

    /// The events that other control planes append to the same store, from now on.
    fn others(&self) -> broadcast::Receiver<Arc<[u8]>>;

    /// Ends what is at work. Later calls answer [`StoreError::Closed`](super::StoreError::Closed).
    fn close(&self) -> Pending<'_, ()>;
}

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventLimits {
    /// How long an event is kept after it came, in milliseconds.
    pub age_millis: u64,
    /// The bytes of the file with its indexes; in a shared store those of the compressed events at the server.
    pub bytes: u64,
    /// The number of events.
    pub events: u64,
}

/// What is looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// What events must have, all of it.
    pub filters: Vec<(EventField, String)>,
    /// From when, in milliseconds since 1970.
    pub from_millis: u64,
    /// Before when, in milliseconds since 1970; `None` for no bound.
    pub until_millis: Option<u64>,
    /// Only events before this place: [`EventPage::next`] of the page before.
    pub before: Option<u64>,
    /// The most events.
    pub limit: u32,
}

/// A part of what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventPage {
    /// The events, newest first.
    pub events: Vec<FoundEvent>,
    /// Where the search goes on; `None` at its end.
    pub next: Option<u64>,
    /// Whether the page is full, or the search at its end; false if the query has examined [`MAX_EXAMINED`] events before.
    pub complete: bool,
    /// How many events were examined.
    pub examined: u32,
}

/// A stored event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundEvent {
    /// The time by which it is ordered, in milliseconds since 1970.
    pub at_millis: u64,
    /// The event, one line of JSON without its end.
    pub line: Vec<u8>,
}

/// The state of an event store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventStoreStatus {
    /// How many events there are.
    pub events: u64,
    /// The bytes that count towards [`EventLimits::bytes`].
    pub bytes: u64,
    /// The time of the oldest event, in milliseconds since 1970.
    pub oldest_millis: Option<u64>,
}

/// The time of a place ([`EventPage::next`]), in milliseconds since 1970.
#[must_use]
pub fn place_millis(place: u64) -> u64 {
    place::millis(place)
}
