//! Tuning of an entity from recorded traffic, without a gateway.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use snapshot::IdentitySource;

use crate::{EntityEdit, EntitySource};

/// What a plugin can tune from recorded traffic.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// The collection whose entities are tuned.
    pub collection: &'static str,
    /// Begins.
    pub open: OpenTuner,
}

/// Begins to tune the entity with an id.
///
/// # Errors
/// It is not there, or does not compile; for people.
pub type OpenTuner = for<'a> fn(&str, TuningInput<'a>) -> Result<Box<dyn Tuner + 'a>, String>;

/// What is at hand for a tuner.
pub struct TuningInput<'a> {
    /// The entities.
    pub entities: &'a dyn EntitySource,
    /// How gateways tell callers apart.
    pub identity: IdentitySource,
    /// The time, in milliseconds since 1970.
    pub now_millis: u64,
}

/// An exchange that was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedExchange {
    /// When it began, in milliseconds since 1970; `None` where that is not known.
    pub at_millis: Option<u64>,
    /// The client's address and port.
    pub peer: String,
    /// The gateway's own address and port.
    pub local: String,
    /// `HTTP/1.1`.
    pub protocol: Vec<u8>,
    /// The headers of the request in their order, `:method`, `:path` and `:authority` among them.
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// The body of the request.
    pub body: Vec<u8>,
    /// The backend's status.
    pub status: u16,
    /// The headers of its response, without `:status`.
    pub response_headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// The body of its response.
    pub response_body: Vec<u8>,
}

/// The beginning of a recording that an operator has uploaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedTraffic {
    /// The id of the recording.
    pub id: String,
    /// Its name, for people.
    pub name: String,
    /// Its first exchanges that differ, in the order of time.
    pub exchanges: Vec<RecordedExchange>,
    /// The exchanges of the whole recording, those that are alike included.
    pub total: u64,
}

/// Where recorded traffic comes from.
pub trait TrafficSource: Sync {
    /// The recording that was uploaded last; `None` where there is none. It may block for a second or two.
    ///
    /// # Errors
    /// It cannot be read; for people.
    fn latest(&self) -> Result<Option<Arc<RecordedTraffic>>, String>;
}

/// Tunes one entity: it learns, proposes and tries changes, confirms and measures them, and writes them down, in this order.
pub trait Tuner {
    /// What is done otherwise than the entity says, a sentence each; for people.
    fn notes(&self) -> Vec<String>;

    /// Learns from exchanges in the order of time. They may be more than memory has room for.
    ///
    /// # Errors
    /// They cannot be run; for people.
    fn learn(&mut self, exchanges: &mut dyn Iterator<Item = RecordedExchange>) -> Result<(), String>;

    /// The trade-offs to take, by the names that the report has for them: changes that a person decides for, because attacks may pass then.
    /// Called before [`Tuner::propose`], which refuses a name that it does not know.
    fn accept(&mut self, names: &[String]);

    /// The inputs for which a rule is proposed that reports values that are not what they usually are, by the names that the report has for
    /// them. Called before [`Tuner::propose`], which refuses a name that it does not know.
    fn profile(&mut self, names: &[String]);

    /// Tries changes for what was learned. `progress` is told how many are tried, and how many there are.
    ///
    /// # Errors
    /// They cannot be tried; for people.
    fn propose(&mut self, progress: &dyn Fn(usize, usize)) -> Result<(), String>;

    /// Whether there is a change that stands the trial.
    fn has_proposals(&self) -> bool;

    /// Runs the exchanges that it has learned from once more, with the changes that are proposed, so that the report counts what they
    /// change.
    ///
    /// # Errors
    /// They cannot be run; for people.
    fn confirm(&mut self, exchanges: &mut dyn Iterator<Item = RecordedExchange>) -> Result<(), String>;

    /// Measures the changes that are proposed on other exchanges.
    ///
    /// # Errors
    /// They cannot be run; for people.
    fn measure(&mut self, exchanges: &mut dyn Iterator<Item = RecordedExchange>) -> Result<(), String>;

    /// The report.
    ///
    /// # Errors
    /// It cannot be made; for people.
    fn report(&self) -> Result<TuningReport, String>;

    /// The changes of entities that are proposed; none where there is nothing to change. `reason` is kept with them. `earlier` is the document
    /// of an entity as it was written the last time, so that what stays the same keeps its date.
    ///
    /// # Errors
    /// They cannot be written; for people.
    fn edits(&self, reason: &str, earlier: &EarlierDocument<'_>) -> Result<Vec<EntityEdit>, String>;
}

/// The document of an entity as a tuner has written it before, by collection and id.
pub type EarlierDocument<'a> = dyn Fn(&str, &str) -> Option<Value> + 'a;

/// What a tuner reports.
#[derive(Clone, Debug, PartialEq)]
pub struct TuningReport {
    /// For programs.
    pub document: Value,
    /// For people; lines without a line break at the end.
    pub text: String,
}

impl fmt::Debug for TuningInput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TuningInput").field("now_millis", &self.now_millis).finish_non_exhaustive()
    }
}
