//! One directory: what is known of it, and when it is due.

use lists::{Failure, Validators};
use serde::Serialize;

use super::WantedDirectory;
use super::fetch::FetchedKeys;
use super::jwks::KeySet;
use crate::control::fetching::{LIFETIME, Schedule};

/// How often a directory is fetched, in milliseconds: a key that its owner withdraws counts for that long.
pub(super) const INTERVAL: u64 = 3_600_000;

/// Keys that were fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FetchedSet {
    pub(super) set: KeySet,
    /// When they were fetched or found unchanged, in milliseconds since 1970.
    pub(super) fetched_at: u64,
    pub(super) validators: Validators,
    /// The identifier and the URL that they were fetched from.
    pub(super) source: String,
}

/// A directory of keys.
#[derive(Debug)]
pub(super) struct KeyDirectory {
    pub(super) wanted: WantedDirectory,
    /// The last keys that were taken.
    pub(super) current: Option<FetchedSet>,
    schedule: Schedule,
}

/// A directory as the console shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(in super::super) struct DirectoryShown {
    /// What is fetched.
    pub(in super::super) url: String,
    /// `directory`, `jwks_uri` or `cimd`.
    #[serde(rename = "type")]
    pub(in super::super) kind: &'static str,
    /// The first bot that names it.
    pub(in super::super) bot: String,
    /// Gateways verify by it.
    pub(in super::super) in_force: bool,
    /// The keys in force.
    pub(in super::super) keys: usize,
    /// The keys that cannot be used.
    pub(in super::super) ignored: u64,
    /// When it was fetched or found unchanged, in milliseconds since 1970.
    pub(in super::super) fetched_at: Option<u64>,
    /// Why the last fetch failed.
    pub(in super::super) error: Option<String>,
}

// === impl KeyDirectory ===

impl KeyDirectory {
    /// A directory that was kept, or `None` for one of which nothing is known.
    pub(super) fn new(wanted: WantedDirectory, kept: Option<FetchedSet>, now: u64) -> KeyDirectory {
        // One from the future would count for longer than its owner has confirmed it.
        let current = kept.filter(|set| set.source == source(&wanted) && set.fetched_at <= now);
        let fetched_at = current.as_ref().map(|set| set.fetched_at);
        KeyDirectory { wanted, current, schedule: Schedule::new(INTERVAL, fetched_at, now) }
    }

    /// Whether it is to be fetched now.
    pub(super) fn must_be_fetched(&mut self, now: u64) -> bool {
        self.schedule.must_be_fetched(now)
    }

    /// When it is fetched next, or ends; `None` while it is being fetched and has no end.
    pub(super) fn next(&self) -> Option<u64> {
        self.schedule.next(self.current.as_ref().map(|set| set.fetched_at))
    }

    /// Begins a fetch: the validators to ask with.
    pub(super) fn start(&mut self, now: u64) -> Validators {
        self.schedule.start();
        self.in_force(now).map(|set| set.validators.clone()).unwrap_or_default()
    }

    /// Ends a fetch; why it failed. A failure changes no keys.
    pub(super) fn ended(&mut self, outcome: Result<FetchedKeys, Failure>, now: u64, random: u32) -> Result<(), String> {
        let taken = outcome.and_then(|fetched| self.take(fetched, now));
        self.schedule.ended(taken, now, random)
    }

    fn take(&mut self, fetched: FetchedKeys, now: u64) -> Result<(), Failure> {
        match (fetched, &mut self.current) {
            (FetchedKeys::Keys(set, validators), current) => {
                *current = Some(FetchedSet { set, fetched_at: now, validators, source: source(&self.wanted) });
            }
            (FetchedKeys::Unchanged, Some(current)) => current.fetched_at = now,
            (FetchedKeys::Unchanged, None) => {
                return Err(Failure::new("the server says that the keys are unchanged, and there are none".to_owned()));
            }
        }
        Ok(())
    }

    /// The keys that gateways verify by, if they count now.
    pub(super) fn in_force(&self, now: u64) -> Option<&FetchedSet> {
        self.current.as_ref().filter(|set| set.fetched_at.saturating_add(LIFETIME) > now)
    }

    /// Why the last fetch failed.
    pub(super) fn error(&self) -> Option<&str> {
        self.schedule.error()
    }

    /// What operators know it by. Its URL may have a secret in its query.
    pub(super) fn subject(&self) -> String {
        format!("key directory of `{}` ({})", self.wanted.bot, self.wanted.label())
    }

    /// It as the console shows it.
    pub(super) fn shown(&self, now: u64) -> DirectoryShown {
        let in_force = self.in_force(now);
        DirectoryShown {
            url: self.wanted.url.clone(),
            kind: self.wanted.kind.word(),
            bot: self.wanted.bot.clone(),
            in_force: in_force.is_some(),
            keys: in_force.map_or(0, |set| set.set.keys.len()),
            ignored: in_force.map_or(0, |set| set.set.ignored),
            fetched_at: self.current.as_ref().map(|set| set.fetched_at),
            error: self.error().map(str::to_owned),
        }
    }
}

fn source(wanted: &WantedDirectory) -> String {
    format!("{} {}", wanted.identifier, wanted.url)
}
