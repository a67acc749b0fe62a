//! Recordings of traffic and replays of them, so that each control plane that shares the store has them.
//!
//! Contents (the bytes of a recording, the result of a replay) are kept in chunks beside the rows: on a file store in a folder, on a shared
//! one at the server, where control planes read them only when they need them. They are written before the row that shows them, and a row
//! that goes says so first ([`ReplayStore::contents_sweep`]), so that a process that is killed leaves nothing that is half there.

use super::Pending;

/// The bytes of a chunk of contents, at most: 512 KiB. Each one but the last has as many, so another number is another form of contents.
pub const MAX_CHUNK: usize = 512 << 10;
/// The chunks of one recording or result, at most: 64 GiB.
pub const MAX_CHUNKS: u32 = 131_072;
/// The bytes of a name of contents, at most. It is of letters, digits and `_`.
pub const MAX_OWNER: usize = 64;

/// The chunks of contents of so many bytes, numbered from 0.
#[must_use]
pub fn chunks(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(MAX_CHUNK as u64)).unwrap_or(MAX_CHUNKS).min(MAX_CHUNKS)
}

/// The part of a [`Store`](super::Store) that recordings and replays need. What was answered with `Ok` is durable.
pub trait ReplayStore: Send + Sync + 'static {
    /// Makes room for a recording, which is not listed before [`recording_publish`](Self::recording_publish). One of this id that was begun
    /// earlier, and not published, is begun anew.
    fn recording_begin(&self, recording: RecordingRow, room: RecordingRoom) -> Pending<'_, RecordingBegun>;

    /// Lists a recording, whose contents are all there; false where it is not begun (any more).
    fn recording_publish(&self, id: &str) -> Pending<'_, bool>;

    /// Gives up a recording that was begun and is not listed, and removes its contents; false where there is none.
    fn recording_abandon(&self, id: &str) -> Pending<'_, bool>;

    /// The recordings that were begun and are not listed, oldest first.
    fn recordings_begun(&self) -> Pending<'_, Vec<RecordingRow>>;

    /// The recordings that are listed, oldest first.
    fn recordings(&self) -> Pending<'_, Vec<RecordingRow>>;

    /// Removes a listed recording with its contents, unless a replay that has not ended needs it.
    fn recording_remove(&self, id: &str) -> Pending<'_, RecordingRemoved>;

    /// Adds a replay. Its runner may have at most `most` of them that have not ended.
    fn replay_add(&self, replay: NewReplay, most: u32) -> Pending<'_, ReplayAdded>;

    /// The replays, in the order in which they were added.
    fn replays(&self) -> Pending<'_, Vec<ReplayRow>>;

    /// One replay.
    fn replay(&self, id: &str) -> Pending<'_, Option<ReplayRow>>;

    /// Says of replays, by id, that their runner is still there, and how they are (JSON). Answers the ids of those that have not ended, in
    /// the same order: what is missing was ended by another.
    fn replays_beat(&self, runner: &str, notes: Vec<(String, String)>) -> Pending<'_, Vec<String>>;

    /// Ends a replay, and forgets those that were added first where more have ended than are kept; false, and nothing is changed, where
    /// it has ended already or is not as [`ReplayEnd::beat`] says. Contents of a replay that ends without a result, and a result that
    /// comes after such an end, are removed.
    fn replay_end(&self, end: ReplayEnd, keep: KeptReplays) -> Pending<'_, bool>;

    /// Writes a chunk of contents, in the place of the one of that number; false where it, its number or its owner's name is longer than
    /// allowed. The owner is a recording that was begun, or a replay that has not ended.
    fn content_put(&self, owner: &str, number: u32, bytes: Vec<u8>) -> Pending<'_, bool>;

    /// A chunk of contents.
    fn content(&self, owner: &str, number: u32) -> Pending<'_, Option<Vec<u8>>>;

    /// Removes contents whose rows are gone and that were not removed then: the process was killed, or the medium failed.
    fn contents_sweep(&self) -> Pending<'_, ()>;
}

/// What is known of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingRow {
    /// Its id, which owns its contents.
    pub id: String,
    /// When it was added, in milliseconds since 1970.
    pub added_millis: u64,
    /// The bytes of its contents, which are in so many [`chunks`].
    pub bytes: u64,
    /// What its owner keeps beside that, JSON.
    pub json: String,
}

/// How much there may be of all recordings, those included that are not listed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingRoom {
    /// How many.
    pub recordings: u64,
    /// The bytes of all contents.
    pub bytes: u64,
}

/// The answer to a recording that is to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingBegun {
    /// It is begun: its contents may be written.
    Begun,
    /// It is listed already; nothing was changed.
    Listed,
    /// Contents of its name are being removed; nothing was changed. To be tried again after [`ReplayStore::contents_sweep`].
    Removing,
    /// There is no room beside these; nothing was changed.
    Full {
        /// How many there are.
        recordings: u64,
        /// The bytes of their contents.
        bytes: u64,
    },
}

/// The answer to a recording that is to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingRemoved {
    /// It is gone.
    Removed,
    /// There is none with this id.
    Unknown,
    /// A replay that has not ended needs it.
    InUse,
}

/// A replay that is to be added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewReplay {
    /// Its id, which owns its result.
    pub id: String,
    /// The id of the recording.
    pub recording: String,
    /// The control plane that runs it.
    pub runner: String,
    /// What its owner keeps, JSON.
    pub json: String,
}

/// The answer to a replay that is to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayAdded {
    /// It is added.
    Added,
    /// There is no such recording.
    UnknownRecording,
    /// Its runner has this many that have not ended, as many as may.
    Busy(u32),
}

/// A replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayRow {
    /// Its id.
    pub id: String,
    /// The id of the recording.
    pub recording: String,
    /// The control plane that runs it.
    pub runner: String,
    /// Grows as long as its runner is there. It depends on no clock.
    pub beat: u64,
    /// Whether it has ended.
    pub has_ended: bool,
    /// The bytes of its result, which are in so many [`chunks`]; 0 for none.
    pub result_bytes: u64,
    /// What its owner keeps, JSON.
    pub json: String,
}

/// How a replay has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayEnd {
    /// Its id.
    pub id: String,
    /// It ends only if its runner was not heard of since this beat; `None` for in any case.
    pub beat: Option<u64>,
    /// What its owner keeps, JSON.
    pub json: String,
    /// The bytes of its result, whose [`chunks`] are all there; 0 for none.
    pub result_bytes: u64,
}

/// How many replays that have ended are kept. The one that ends is kept in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptReplays {
    /// How many.
    pub replays: u64,
    /// The bytes of their results.
    pub bytes: u64,
}
