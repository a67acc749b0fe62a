//! What the gatherers of key directories and of published addresses share: when something is fetched, and what is kept of it.

use std::time::Duration;

use kit::Sources;
use lists::{Failure, wait};

/// What is fetched at the same time by one gatherer, at most.
pub(super) const AT_ONCE: usize = 4;
/// How long what was fetched counts after its publisher has last confirmed it, in milliseconds: addresses are given to others. An outage of a
/// publisher must not make all that it vouches for unverified at once; who keeps the control plane from reaching it makes a stolen key last no
/// longer than this.
pub(super) const LIFETIME: u64 = 7 * 86_400_000;
/// The longest sleep: clocks are set, and waits are computed with the one on the wall.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);
/// The pause before the store is asked again.
const LOAD_AGAIN: Duration = Duration::from_secs(5);
/// The longest text of an error, in characters.
const MAX_ERROR: usize = 500;

/// When one thing is fetched, and why the last fetch failed. Times are in milliseconds since 1970.
#[derive(Debug)]
pub(super) struct Schedule {
    /// How often it is fetched, in milliseconds.
    interval: u64,
    error: Option<String>,
    failures: u32,
    /// When it is fetched next, and the longest wait until then: the clock may be set back.
    due: u64,
    wait: u64,
    running: bool,
}

// === impl Schedule ===

impl Schedule {
    /// Of something that was fetched at `fetched_at`, or never.
    pub(super) fn new(interval: u64, fetched_at: Option<u64>, now: u64) -> Schedule {
        let mut schedule = Schedule { interval, error: None, failures: 0, due: now, wait: 0, running: false };
        if let Some(fetched_at) = fetched_at {
            schedule.is_due(fetched_at.saturating_add(interval), now);
        }
        schedule
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

    /// When it is fetched next, or what was fetched at `fetched_at` ends; `None` while it is being fetched and has no end.
    pub(super) fn next(&self, fetched_at: Option<u64>) -> Option<u64> {
        let end = fetched_at.map(|fetched_at| fetched_at.saturating_add(LIFETIME));
        end.into_iter().chain((!self.running).then_some(self.due)).min()
    }

    /// A fetch begins.
    pub(super) fn start(&mut self) {
        self.running = true;
    }

    /// A fetch has ended, and its outcome is taken or not; why it failed.
    pub(super) fn ended(&mut self, taken: Result<(), Failure>, now: u64, random: u32) -> Result<(), String> {
        self.running = false;
        let (mut wish, mut outcome) = (0, Ok(()));
        match taken {
            Ok(()) => (self.error, self.failures) = (None, 0),
            Err(Failure { why, wait_millis }) => {
                wish = wait_millis.unwrap_or_default();
                self.failures = self.failures.saturating_add(1);
                let why: String = why.chars().take(MAX_ERROR).collect();
                self.error = Some(why.clone());
                outcome = Err(why);
            }
        }
        self.is_due(now.saturating_add(wait(self.interval, self.failures, random).max(wish)), now);
        outcome
    }

    /// Why the last fetch failed.
    pub(super) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }
}

/// How long to sleep until the first of these times behind `now`.
pub(super) fn sleep(next: impl Iterator<Item = u64>, now: u64) -> Duration {
    let next = next.filter(|next| *next > now).min();
    next.map_or(LONGEST_SLEEP, |next| Duration::from_millis(next - now).min(LONGEST_SLEEP))
}

/// The document of this name, as soon as the store answers. `what` is what it has, in the plural, for people.
pub(super) async fn load(sources: &Sources, name: &str, what: &str) -> Option<Vec<u8>> {
    loop {
        match sources.store.document(name).await {
            Ok(document) => return document,
            Err(error) => sources.trouble(&format!("{what} could not be read: {error}")),
        }
        tokio::time::sleep(LOAD_AGAIN).await;
    }
}

/// Removes the documents whose names begin with `prefix`, but for those that are wanted. `what` is what one has, for people.
pub(super) async fn forget(sources: &Sources, prefix: &str, wanted: &[String], what: &str) {
    let Ok(names) = sources.store.document_names(prefix).await else { return };
    for name in names.iter().filter(|name| !wanted.contains(name)) {
        if let Err(error) = sources.store.document_remove(name).await {
            sources.trouble(&format!("{what} could not be removed: {error}"));
        }
    }
}

/// Keeps a document of what `subject` is.
pub(super) async fn keep(sources: &Sources, name: &str, document: Vec<u8>, subject: &str) {
    if let Err(error) = sources.store.document_put(name, document).await {
        sources.trouble(&format!("{subject} could not be kept: {error}"));
    }
}
