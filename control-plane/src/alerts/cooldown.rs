//! What was told, and for how long it is not told again.

use std::collections::{BTreeSet, HashMap};

/// Messages that are remembered, at most; the oldest go first.
const MAX_TOLD: usize = 20_000;

/// A rule and what it has told of.
type Told = (String, String);

/// When each rule has last told of each subject.
#[derive(Debug, Default)]
pub(super) struct Cooldown {
    told: HashMap<Told, u64>,
    by_age: BTreeSet<(u64, Told)>,
}

impl Cooldown {
    /// Whether `rule` may tell of `subject` at `now`, in milliseconds; from here on it has.
    pub(super) fn pass(&mut self, rule: &str, subject: &str, cooldown_millis: u64, now: u64) -> bool {
        let key = (rule.to_owned(), subject.to_owned());
        if let Some(at) = self.told.get(&key).copied() {
            // A clock that was set back does not hold messages up for longer.
            if now >= at && now - at < cooldown_millis {
                return false;
            }
            self.by_age.remove(&(at, key.clone()));
        }
        while self.told.len() >= MAX_TOLD {
            let Some((_, oldest)) = self.by_age.pop_first() else { break };
            self.told.remove(&oldest);
        }
        self.by_age.insert((now, key.clone()));
        self.told.insert(key, now);
        true
    }

    /// `rule` may tell of `subject` again.
    pub(super) fn forget(&mut self, rule: &str, subject: &str) {
        let key = (rule.to_owned(), subject.to_owned());
        if let Some(at) = self.told.remove(&key) {
            self.by_age.remove(&(at, key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_told_of_once_per_cooldown_and_rule() {
        let mut cooldown = Cooldown::default();
        assert!(cooldown.pass("r", "a", 1000, 5000) && cooldown.pass("r", "b", 1000, 5000));
        assert!(cooldown.pass("s", "a", 1000, 5000));
        assert!(!cooldown.pass("r", "a", 1000, 5999));
        assert!(cooldown.pass("r", "a", 1000, 6000));
        assert!(!cooldown.pass("r", "a", 1000, 6999));
        cooldown.forget("r", "a");
        assert!(cooldown.pass("r", "a", 1000, 6999));
        assert!(cooldown.pass("r", "a", 1000, 10), "a clock that was set back");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut cooldown = Cooldown::default();
        for number in 0..=MAX_TOLD as u64 {
            assert!(cooldown.pass("r", &number.to_string(), 1_000_000, number));
        }
        assert_eq!((cooldown.told.len(), cooldown.by_age.len()), (MAX_TOLD, MAX_TOLD));
        assert!(cooldown.pass("r", "0", 1_000_000, 20_001), "the oldest was forgotten");
        assert!(!cooldown.pass("r", "2", 1_000_000, 20_001));
    }
}
