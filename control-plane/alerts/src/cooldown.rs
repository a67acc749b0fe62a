//! What was told, and for how long it is not told again.

use std::collections::{BTreeSet, HashMap};

use store::alerts::{self, Forgotten, Told};

/// Messages that are remembered, at most; the oldest go first. The store keeps as many.
const MAX_TOLD: usize = alerts::MAX_TOLD as usize;

/// A rule and the subject that it has told of.
type Key = (String, String);

/// When each rule has last told of each subject.
#[derive(Debug, Default)]
pub(super) struct Cooldown {
    told: HashMap<Key, u64>,
    by_age: BTreeSet<(u64, Key)>,
    /// What was forgotten since the store was told.
    unkept: Vec<Forgotten>,
}

impl Cooldown {
    /// Takes over what an earlier process has told, oldest first.
    pub(super) fn restore(&mut self, told: Vec<Told>) {
        for Told { rule, subject, at } in told {
            self.insert((rule, subject), at);
        }
    }

    /// What was forgotten since the last call.
    pub(super) fn unkept(&mut self) -> Vec<Forgotten> {
        std::mem::take(&mut self.unkept)
    }

    /// Whether `rule` may tell of `subject` at `now`, in milliseconds; from here on it has.
    pub(super) fn pass(&mut self, rule: &str, subject: &str, cooldown_millis: u64, now: u64) -> bool {
        let key = (rule.to_owned(), subject.to_owned());
        if let Some(at) = self.told.get(&key).copied() {
            // A clock that was set back does not hold messages up for longer.
            if now >= at && now - at < cooldown_millis {
                return false;
            }
            self.by_age.remove(&(at, key.clone()));
            self.told.remove(&key);
        }
        self.insert(key, now);
        true
    }

    /// Another control plane has told of it, at `at`.
    pub(super) fn told_elsewhere(&mut self, rule: &str, subject: &str, at: u64) {
        self.drop(rule, subject);
        self.insert((rule.to_owned(), subject.to_owned()), at);
    }

    fn insert(&mut self, key: Key, at: u64) {
        while self.told.len() >= MAX_TOLD {
            let Some((_, oldest)) = self.by_age.pop_first() else { break };
            self.told.remove(&oldest);
        }
        self.by_age.insert((at, key.clone()));
        self.told.insert(key, at);
    }

    /// `rule` may tell of `subject` again, at `now`.
    pub(super) fn forget(&mut self, rule: &str, subject: &str, now: u64) {
        self.drop(rule, subject);
        self.unkept.push(Forgotten { rule: rule.to_owned(), subject: subject.to_owned(), at: now });
    }

    /// A message that was to be told was dropped.
    pub(super) fn drop(&mut self, rule: &str, subject: &str) {
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
        cooldown.forget("r", "a", 6999);
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

    #[test]
    fn what_others_have_told_holds_here_and_what_is_forgotten_is_told_to_them() {
        let told = |subject: &str, at| Told { rule: "r".into(), subject: subject.into(), at };
        let mut cooldown = Cooldown::default();
        cooldown.restore(vec![told("a", 10), told("b", 20)]);
        assert!(!cooldown.pass("r", "a", 1000, 500) && !cooldown.pass("r", "b", 1000, 500));
        assert_eq!(cooldown.unkept(), [], "what comes from the store is there");
        cooldown.forget("r", "a", 500);
        assert!(cooldown.pass("r", "a", 1000, 500) && cooldown.pass("r", "c", 1000, 500));
        // Of one that was dropped the store knows nothing.
        cooldown.drop("r", "c");
        assert!(cooldown.pass("r", "c", 1000, 501));
        assert_eq!(cooldown.unkept(), [Forgotten { rule: "r".into(), subject: "a".into(), at: 500 }]);
        assert_eq!(cooldown.unkept(), []);
        // The claim was refused: it holds from when the other one has told.
        cooldown.told_elsewhere("r", "c", 300);
        assert!(!cooldown.pass("r", "c", 1000, 1299) && cooldown.pass("r", "c", 1000, 1300));
        assert_eq!((cooldown.told.len(), cooldown.by_age.len()), (3, 3));
    }
}
