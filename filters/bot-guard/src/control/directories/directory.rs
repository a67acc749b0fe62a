//! One directory: what is known of it, and when it is due.

use lists::{Failure, Validators, wait};
use serde::Serialize;

use super::WantedDirectory;
use super::fetch::FetchedKeys;
use super::jwks::KeySet;

/// How often a directory is fetched, in milliseconds: a key that its owner withdraws counts for that long.
pub(super) const INTERVAL: u64 = 3_600_000;
/// How long a directory counts after its owner has last confirmed it, in milliseconds. An outage of a directory must not make all requests
/// that it vouches for unverified at once; who keeps the control plane from reaching it makes a stolen key last no longer than this.
pub(super) const LIFETIME: u64 = 7 * 86_400_000;
/// The longest text of an error, in characters.
const MAX_ERROR: usize = 500;

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
    error: Option<String>,
    failures: u32,
    /// When it is fetched next, in milliseconds since 1970, and the longest wait until then: the clock may be set back.
    due: u64,
    wait: u64,
    running: bool,
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
        let mut directory =
            KeyDirectory { wanted, current, error: None, failures: 0, due: now, wait: 0, running: false };
        if let Some(fetched_at) = fetched_at {
            directory.is_due(fetched_at.saturating_add(INTERVAL), now);
        }
        directory
    }

    fn is_due(&mut self, due: u64, now: u64) {
        self.due = due;
        self.wait = due.saturating_sub(now);
    }

    /// Whether it is to be fetched now.
    pub(super) fn must_be_fetched(&mut self, now: u64) -> bool {
        self.due = self.due.min(now.saturating_add(self.wait));
        !self.running && self.due <= now
    }

    /// When it is fetched next, or ends; `None` while it is being fetched and has no end.
    pub(super) fn next(&self) -> Option<u64> {
        let end = self.current.as_ref().map(|set| set.fetched_at.saturating_add(LIFETIME));
        end.into_iter().chain((!self.running).then_some(self.due)).min()
    }

    /// Begins a fetch: the validators to ask with.
    pub(super) fn start(&mut self, now: u64) -> Validators {
        self.running = true;
        self.in_force(now).map(|set| set.validators.clone()).unwrap_or_default()
    }

    /// Ends a fetch; why it failed. A failure changes no keys.
    pub(super) fn ended(&mut self, outcome: Result<FetchedKeys, Failure>, now: u64, random: u32) -> Result<(), String> {
        self.running = false;
        let (mut wish, mut taken) = (0, Ok(()));
        match outcome.and_then(|fetched| self.take(fetched, now)) {
            Ok(()) => (self.error, self.failures) = (None, 0),
            Err(Failure { why, wait_millis }) => {
                wish = wait_millis.unwrap_or_default();
                self.failures = self.failures.saturating_add(1);
                let why: String = why.chars().take(MAX_ERROR).collect();
                self.error = Some(why.clone());
                taken = Err(why);
            }
        }
        self.is_due(now.saturating_add(wait(INTERVAL, self.failures, random).max(wish)), now);
        taken
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
        self.error.as_deref()
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
            error: self.error.clone(),
        }
    }
}

fn source(wanted: &WantedDirectory) -> String {
    format!("{} {}", wanted.identifier, wanted.url)
}
