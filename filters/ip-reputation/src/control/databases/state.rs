//! What is known of one database.

use std::net::IpAddr;
use std::sync::Arc;

use lists::Validators;
use serde_json::{Value, json};

use super::download::Format;
use super::networks::{CountryCode, Networks, Read};
use super::places::Places;

/// The longest text of an error, in characters.
const MAX_ERROR: usize = 500;

/// What a database has.
#[derive(Clone, Debug)]
pub(in crate::control) enum Content {
    /// Networks.
    Networks(Arc<Networks>),
    /// Places.
    Places(Arc<Places>),
}

/// A database that was fetched.
#[derive(Clone, Debug)]
pub(in crate::control) struct Fetched {
    pub(in crate::control) content: Content,
    /// How the file is read.
    pub(super) format: Format,
    /// The SHA-256 of the file as it is kept.
    pub(super) hash: [u8; 32],
    /// The entries that are used.
    pub(super) entries: u64,
    /// The entries that are not used.
    pub(super) rejected: u64,
    /// A hash of where and how it was fetched.
    pub(super) source: String,
}

/// What is known of one database.
#[derive(Clone, Debug, Default)]
pub(in crate::control) struct DatabaseState {
    /// A hash of where and how it is fetched.
    pub(super) source: String,
    /// What the publisher calls the version in force.
    pub(super) validators: Validators,
    /// The database in force.
    pub(in crate::control) current: Option<Fetched>,
    /// When it was fetched, or found unchanged, in milliseconds since 1970; 0 without one.
    pub(super) fetched_at: u64,
    /// Why the last fetch failed.
    pub(super) error: Option<String>,
    /// The last fetch found it unchanged.
    pub(super) not_modified: bool,
    /// The failures since the last fetch that did not fail.
    pub(super) failures: u32,
    /// When it is fetched next after the last fetch, in milliseconds since 1970.
    pub(super) retry_at: u64,
    /// Why it is not fetched at all. Not kept.
    pub(super) idle: Option<String>,
    /// Why it is not in a table. Not kept.
    pub(super) left_out: Option<String>,
}

// === impl Content ===

impl Content {
    /// The ranges that it makes.
    pub(super) fn ranges(&self) -> usize {
        match self {
            Self::Networks(networks) => networks.len(),
            Self::Places(places) => places.countries().len(),
        }
    }
}

impl From<Read<Networks>> for Read<Content> {
    fn from(Read { content, entries, rejected }: Read<Networks>) -> Read<Content> {
        Read { content: Content::Networks(Arc::new(content)), entries, rejected }
    }
}

impl From<Read<Places>> for Read<Content> {
    fn from(Read { content, entries, rejected }: Read<Places>) -> Read<Content> {
        Read { content: Content::Places(Arc::new(content)), entries, rejected }
    }
}

// === impl DatabaseState ===

impl DatabaseState {
    /// The database is fetched from elsewhere from now on, or read in another way.
    pub(super) fn moves_to(&mut self, source: &str) {
        if self.source != source {
            self.source = source.to_owned();
            (self.validators, self.failures) = (Validators::default(), 0);
        }
    }

    /// Takes a database; `None` where the one in force is still that of the publisher.
    pub(super) fn take(&mut self, fetched: Option<(Fetched, Validators)>, now_millis: u64) {
        (self.error, self.failures, self.fetched_at) = (None, 0, now_millis);
        self.not_modified = fetched.is_none();
        if let Some((fetched, validators)) = fetched {
            self.validators = validators;
            self.current = Some(fetched);
        }
    }

    /// Notes that a fetch failed. The database in force stays.
    pub(super) fn failed(&mut self, why: &str) {
        self.error = Some(why.chars().take(MAX_ERROR).collect());
        self.not_modified = false;
        self.failures = self.failures.saturating_add(1);
    }

    /// Why it does not serve as it should.
    pub(in crate::control) fn trouble(&self) -> Option<&str> {
        self.idle.as_deref().or(self.left_out.as_deref()).or(self.error.as_deref())
    }

    /// The networks in force, of a database of networks.
    pub(in crate::control) fn networks(&self) -> Option<&Arc<Networks>> {
        match &self.current.as_ref()?.content {
            Content::Networks(networks) => Some(networks),
            Content::Places(_) => None,
        }
    }

    /// The places in force, of a database of places.
    pub(in crate::control) fn places(&self) -> Option<&Arc<Places>> {
        match &self.current.as_ref()?.content {
            Content::Places(places) => Some(places),
            Content::Networks(_) => None,
        }
    }

    /// The country of an address as gateways have it by this database.
    pub(in crate::control) fn country_in_table(&self, address: IpAddr) -> Option<CountryCode> {
        let (label, ..) = self.places().filter(|_| self.is_in_table())?.countries().find(address)?;
        CountryCode::of_label(label)
    }

    /// It is not left out of the table that gateways get.
    pub(in crate::control) fn is_in_table(&self) -> bool {
        self.left_out.is_none()
    }

    /// The numbers of the database in force: entries, ranges and rejected entries; 0 without one.
    pub(super) fn numbers(&self) -> (u64, u64, u64) {
        self.current.as_ref().map_or((0, 0, 0), |fetched| {
            (fetched.entries, u64::try_from(fetched.content.ranges()).unwrap_or(u64::MAX), fetched.rejected)
        })
    }

    /// The database in force as answers show it; without one its numbers are 0.
    pub(in crate::control) fn snapshot(&self, id: &str) -> Value {
        let (entries, ranges, rejected) = self.numbers();
        let has = self.current.is_some();
        json!({
            "database_id": id,
            "entries": entries,
            "ranges": ranges,
            "rejected": rejected,
            "error": self.trouble(),
            "fetched_at": has.then_some(self.fetched_at),
            "etag": has.then(|| self.validators.etag.clone()).flatten(),
            "last_modified": has.then(|| self.validators.last_modified.clone()).flatten(),
            "not_modified": self.not_modified,
        })
    }
}
