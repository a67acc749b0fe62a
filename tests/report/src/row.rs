//! What became of one request.

use serde::{Deserialize, Serialize, Serializer};

/// What the filters made of one request. Texts are for people: bytes that are no UTF-8 and control bytes are escaped.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The recording's file and the entry's number in it (`FILE#NUMBER`).
    pub id: String,
    /// When it ran on the replay's clock, in milliseconds since the Unix epoch.
    pub at: u64,
    /// The method.
    pub method: String,
    /// The host that was asked for.
    pub host: String,
    /// The path with its query, at most 2 KiB of it.
    pub path: String,
    /// Who asked: the identity that the filters go by, or the address of the connection.
    pub caller: String,
    /// The name of its route; empty outside of all routes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub route: String,
    /// What the filters did.
    pub effect: Effect,
    /// The status that the client gets.
    pub status: u16,
    /// The status that the client got when it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_status: Option<u16>,
    /// The action that was decided on, in its word (`deny`, `tarpit`, ...); `none` where nothing was.
    pub action: String,
    /// The score; 0 where there was nothing to weigh.
    #[serde(serialize_with = "finite")]
    pub score: f64,
    /// What weighed, in the order of its detection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<Signal>,
    /// The rules that matched and are logged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// The plugin that decided or had something to say; empty where none had.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub plugin: String,
    /// Why, in the filters' words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// How long it was held on the replay's clock, in milliseconds.
    #[serde(default)]
    pub held_millis: u64,
    /// What it took, in microseconds of real time; 0 where it was not measured.
    #[serde(default)]
    pub micros: u64,
    /// The trap with its backtrace, where the filter died of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// What the recording did not tell or what was guessed, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It passed, and there was nothing to say about it.
    #[default]
    Passed,
    /// It passed; there was an event about it (a dry run, a score below every tier, a rule that only logs).
    Observed,
    /// It passed later than it would have, or was challenged: not refused for good.
    Slowed,
    /// It was answered in the backend's place, or the backend's answer was withheld.
    Blocked,
    /// The filter died of it or never let it go on.
    Failed,
}

impl Row {
    /// The path without its query.
    pub fn path_only(&self) -> &str {
        self.path.split_once('?').map_or(&*self.path, |(path, _)| path)
    }
}

impl Effect {
    /// All of them, from nothing to the worst.
    pub const ALL: [Self; 5] = [Self::Passed, Self::Observed, Self::Slowed, Self::Blocked, Self::Failed];

    /// Its word, as in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Observed => "observed",
            Self::Slowed => "slowed",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
        }
    }
}

/// A signal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Signal {
    /// Its name (`waf:block`, `ban`, ...).
    pub name: String,
    /// What it adds to the score.
    #[serde(serialize_with = "finite")]
    pub weight: f64,
}

/// A rule that matched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rule {
    /// Its id.
    pub id: u64,
    /// Its message; empty where it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub msg: String,
}

/// JSON has no infinity, and what it has in its place is no number for whoever reads it back.
fn finite<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    let value = if value.is_nan() { 0.0 } else { value.clamp(f64::MIN, f64::MAX) };
    serializer.serialize_f64(value)
}
