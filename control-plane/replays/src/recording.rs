//! A recording that is kept.

use serde::{Deserialize, Serialize};

/// What is known of a recording. Kept as JSON in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// Its id.
    pub id: String,
    /// Its name, for people.
    pub name: String,
    /// Where it comes from.
    pub source: Source,
    /// The operator who added it.
    pub by: String,
    /// When it was added, in milliseconds since 1970.
    pub added_millis: u64,
    /// Its bytes, compressed.
    pub bytes: u64,
    /// Requests in it.
    pub requests: u64,
    /// Entries that could not be read and were left out.
    pub unreadable: u64,
    /// Why, for the first of them.
    pub reasons: Vec<String>,
    /// The time of its first request, in milliseconds since 1970; `None` if no request has a time.
    pub first_millis: Option<u64>,
    /// The time of its last request.
    pub last_millis: Option<u64>,
    /// Requests that name no route.
    pub unrouted: u64,
}

/// Where a recording comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// An operator has uploaded it.
    Upload,
    /// Stored events: there are no headers, no queries and no bodies in it.
    Events,
}
