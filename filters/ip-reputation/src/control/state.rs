//! What is known of one feed: the list in force, the one before, and what its publisher said last.

use lists::{Fetched, Snapshot, Validators};
use serde_json::{Value, json};

/// The longest text of an error, in characters.
const MAX_ERROR: usize = 500;

/// What is known of one feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FeedState {
    /// A hash of where and how the list is fetched: with another one, what the publisher said before means nothing.
    pub(super) source: String,
    /// Those of the version that was looked at last and that needs no second look: the list in force, or one that was rolled back.
    pub(super) validators: Validators,
    /// The list that was rolled back: it is not taken again.
    pub(super) refused: Option<[u8; 32]>,
    /// The list in force.
    pub(super) current: Option<Snapshot>,
    /// The one that a rollback restores.
    pub(super) previous: Option<Snapshot>,
    /// Why the last fetch failed.
    pub(super) error: Option<String>,
    /// The last fetch found the list unchanged.
    pub(super) not_modified: bool,
    /// The failures since the last fetch that did not fail.
    pub(super) failures: u32,
    /// When it is fetched next after the last fetch, in milliseconds since 1970.
    pub(super) retry_at: u64,
    /// Why it is not fetched at all. Not kept.
    pub(super) idle: Option<String>,
    /// Why its list is not in the table. Not kept.
    pub(super) left_out: Option<String>,
}

// === impl FeedState ===

impl FeedState {
    /// The feed is fetched from elsewhere from now on, or read in another way.
    pub(super) fn moves_to(&mut self, source: &str) {
        if self.source != source {
            self.source = source.to_owned();
            self.validators = Validators::default();
            self.refused = None;
            self.failures = 0;
        }
    }

    /// Takes the outcome of a fetch. `force`: also a list that was rolled back.
    pub(super) fn take(&mut self, fetched: Fetched, now_millis: u64, force: bool) {
        let clean = self.error.is_none();
        (self.error, self.failures) = (None, 0);
        match fetched {
            Fetched::Unchanged => self.unchanged(now_millis),
            Fetched::List(list) => {
                self.validators = list.validators.clone();
                if self.refused == Some(list.list.hash) && !force {
                    return self.unchanged(now_millis);
                }
                self.not_modified = false;
                match &mut self.current {
                    // The same addresses under another version: nothing that a rollback could restore.
                    Some(current) if current.list.hash == list.list.hash => *current = list,
                    current => {
                        let before = current.replace(list);
                        self.refused = None;
                        if clean && let Some(before) = before {
                            self.previous = Some(before);
                        }
                    }
                }
            }
        }
    }

    fn unchanged(&mut self, now_millis: u64) {
        self.not_modified = true;
        if let Some(current) = &mut self.current {
            current.fetched_at = now_millis;
        }
    }

    /// Notes that a fetch failed. The list in force stays.
    pub(super) fn failed(&mut self, why: &str) {
        self.error = Some(why.chars().take(MAX_ERROR).collect());
        self.not_modified = false;
        self.failures = self.failures.saturating_add(1);
    }

    /// Puts the previous list in force; false where there is none. It is the previous one no more, and the list that was in force
    /// is not taken again for as long as its publisher does not change it.
    pub(super) fn roll_back(&mut self) -> bool {
        let Some(previous) = self.previous.take() else { return false };
        let gone = self.current.replace(previous);
        self.refused = gone.map(|gone| gone.list.hash);
        self.not_modified = false;
        true
    }

    /// Why it does not protect as it should.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.idle.as_deref().or(self.left_out.as_deref()).or(self.error.as_deref())
    }

    /// The list in force as answers show it; without one its numbers are 0.
    pub(super) fn snapshot(&self, id: &str) -> Value {
        let current = self.current.as_ref();
        let number = |of: fn(&Snapshot) -> u64| current.map_or(0, of);
        json!({
            "feed_id": id,
            "entries": number(|list| list.entries),
            "ranges": number(|list| list.ranges),
            "rejected": number(|list| list.rejected),
            "error": self.trouble(),
            "fetched_at": current.map(|list| list.fetched_at),
            "etag": current.and_then(|list| list.validators.etag.clone()),
            "last_modified": current.and_then(|list| list.validators.last_modified.clone()),
            "not_modified": self.not_modified,
        })
    }

    /// The list that a rollback restores, as answers show it.
    pub(super) fn previous(&self) -> Value {
        self.previous.as_ref().map_or(
            Value::Null,
            |list| json!({ "entries": list.entries, "ranges": list.ranges, "fetched_at": list.fetched_at }),
        )
    }
}

#[cfg(test)]
mod tests {
    use store::feeds::FeedList;

    use super::*;

    fn list(name: u8) -> Snapshot {
        Snapshot {
            list: FeedList { hash: [name; 32], bytes: vec![name].into() },
            entries: u64::from(name),
            ranges: 1,
            rejected: 0,
            fetched_at: 5,
            validators: Validators { etag: Some(format!("v{name}")), last_modified: None },
            source: String::new(),
        }
    }

    fn fetched(name: u8) -> Fetched {
        Fetched::List(list(name))
    }

    /// The first bytes of the lists: in force, and previous.
    fn lists(state: &FeedState) -> (Option<u8>, Option<u8>) {
        let name = |list: &Option<Snapshot>| list.as_ref().map(|list| list.list.hash[0]);
        (name(&state.current), name(&state.previous))
    }

    #[test]
    fn a_clean_list_that_replaces_a_clean_one_makes_a_rollback_point() {
        let mut state = FeedState::default();
        state.take(fetched(1), 5, false);
        assert_eq!(lists(&state), (Some(1), None));
        state.take(fetched(2), 5, false);
        assert_eq!(lists(&state), (Some(2), Some(1)));
        state.take(Fetched::Unchanged, 9, false);
        assert_eq!((lists(&state), state.not_modified), ((Some(2), Some(1)), true));
        assert_eq!(state.current.as_ref().unwrap().fetched_at, 9);
        state.take(fetched(2), 10, false);
        assert_eq!((lists(&state), state.not_modified), ((Some(2), Some(1)), false), "the same list");
        state.failed("500");
        assert_eq!((lists(&state), state.error.as_deref(), state.failures), ((Some(2), Some(1)), Some("500"), 1));
        state.take(fetched(3), 5, false);
        assert_eq!((lists(&state), &state.error), ((Some(3), Some(1)), &None), "the one before was not clean");
        state.take(fetched(4), 5, false);
        assert_eq!(lists(&state), (Some(4), Some(3)));
    }

    #[test]
    fn a_rollback_consumes_the_previous_list_and_is_not_undone() {
        let mut state = FeedState::default();
        assert!(!state.roll_back());
        state.take(fetched(1), 5, false);
        state.take(fetched(2), 5, false);
        assert!(state.roll_back() && !state.roll_back());
        assert_eq!(lists(&state), (Some(1), None));
        assert_eq!(state.validators.etag.as_deref(), Some("v2"), "the publisher is asked for what comes after it");
        state.take(fetched(2), 7, false);
        assert_eq!((lists(&state), state.not_modified), ((Some(1), None), true));
        state.take(fetched(3), 7, false);
        assert_eq!(lists(&state), (Some(3), Some(1)));
        state.take(fetched(2), 7, false);
        assert_eq!(lists(&state), (Some(2), Some(3)), "the list had changed in between");
        assert!(state.roll_back());
        state.take(fetched(2), 7, true);
        assert_eq!(lists(&state), (Some(2), Some(3)), "by force");
    }

    #[test]
    fn another_source_makes_all_forgotten_but_the_lists() {
        let mut state = FeedState::default();
        state.moves_to("here");
        state.take(fetched(1), 5, false);
        state.take(fetched(2), 5, false);
        state.roll_back();
        state.moves_to("here");
        assert!(state.refused.is_some() && state.validators.etag.is_some());
        state.moves_to("there");
        assert_eq!((state.refused, &state.validators, lists(&state).0), (None, &Validators::default(), Some(1)));
    }

    #[test]
    fn long_errors_are_cut() {
        let mut state = FeedState::default();
        state.failed(&"\u{e4}".repeat(1000));
        assert_eq!(state.error.unwrap().chars().count(), 500);
    }
}
