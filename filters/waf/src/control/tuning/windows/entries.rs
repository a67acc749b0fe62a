//! The entries of a window.

use prost::Message as _;

use super::{Entry, MAX_CALLERS, MAX_COUNT, MAX_ENTRIES, MAX_SHAPES, Window, entry_key, weakest};
use crate::samples::messages::Matched;
use crate::samples::{callers, shape};

/// How many more entries, or how much more of [`MAX_HELD`], there may be until some give way: all are looked at then.
const SLACK: usize = 8;
/// What entries take where they are kept, in bytes, but for a few: a window is written every few seconds.
const MAX_HELD: usize = 8 * 1024 * 1024;

impl Window {
    /// Counts a match.
    pub(super) fn count(&mut self, matched: &Matched) {
        let key = entry_key(matched.rule_id, &matched.target, &matched.path);
        let entry = self.entries.entry(key).or_insert_with(|| Entry {
            rule_id: matched.rule_id,
            target: matched.target.clone(),
            path: matched.path.clone(),
            ..Entry::default()
        });
        let before = if entry.count == 0 { 0 } else { entry.encoded_len() };
        entry.count = entry.count.saturating_add(matched.count).min(MAX_COUNT);
        entry.would_block = entry.would_block.saturating_add(matched.would_block).min(MAX_COUNT);
        entry.alone = entry.alone.saturating_add(matched.alone).min(MAX_COUNT);
        entry.paranoia = matched.paranoia;
        for caller in matched.callers.iter().filter(|caller| !self.suspects.contains(caller)) {
            callers::add(&mut entry.callers, *caller, MAX_CALLERS);
        }
        for one in matched.shapes.iter().filter(|one| !self.suspects.contains(&one.caller)) {
            shape::add(&mut entry.shapes, *one, MAX_SHAPES);
        }
        let now = entry.encoded_len();
        self.held = self.held.saturating_sub(before).saturating_add(now);
        if self.entries.len() > MAX_ENTRIES + MAX_ENTRIES / SLACK || self.held > MAX_HELD + MAX_HELD / SLACK {
            self.make_room();
        }
    }

    /// Takes over entries that were kept.
    pub(super) fn load_entries(&mut self, entries: Vec<Entry>) {
        for mut entry in entries {
            // Those of older releases are in no order.
            entry.callers.sort_unstable();
            self.entries.insert(entry_key(entry.rule_id, &entry.target, &entry.path), entry);
        }
        self.make_room();
    }

    /// Forgets entries that are too many, of the fewest networks and callers first: what one caller makes up displaces nothing that others
    /// send as well. What they have counted is left out.
    fn make_room(&mut self) {
        self.held = self.entries.values().map(Entry::encoded_len).sum();
        for key in weakest(&self.entries, |one| (one.networks(), one.callers.len(), one.count)) {
            if self.entries.len() <= MAX_ENTRIES && self.held <= MAX_HELD {
                break;
            }
            let Some(entry) = self.entries.remove(&key) else { continue };
            self.held = self.held.saturating_sub(entry.encoded_len());
            self.left_out = self.left_out.saturating_add(entry.count).min(MAX_COUNT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;

    fn matched(target: &str, callers: &[u64]) -> Matched {
        Matched {
            config: "shop".to_owned(),
            rule_id: 942_100,
            target: target.to_owned(),
            path: "/a".to_owned(),
            count: 2,
            callers: callers.to_vec(),
            ..Matched::default()
        }
    }

    fn counted(window: &Window) -> u64 {
        window.left_out + window.entries.values().map(|entry| entry.count).sum::<u64>()
    }

    /// A scan comes first, and again; what two networks send meanwhile is there at the end.
    #[test]
    fn a_flood_of_entries_keeps_to_its_room_and_shuts_out_nothing() {
        let mut windows = Windows::default();
        windows.start("shop", 1);
        let scan = |windows: &mut Windows, name: &str| {
            let all = (0..MAX_ENTRIES + 5_000)
                .map(|number| matched(&format!("ARGS:{name}{number}"), &[1 << 32 | 7, 2 << 32 | 7]));
            windows.take("a", &[], &all.collect::<Vec<_>>());
        };
        scan(&mut windows, "a");
        for number in 0..100 {
            windows.take("b", &[], &[matched(&format!("ARGS:q{number}"), &[3 << 32 | 1, 4 << 32 | 2])]);
        }
        scan(&mut windows, "b");
        let window = windows.get("shop").unwrap();
        assert!((MAX_ENTRIES..=MAX_ENTRIES + MAX_ENTRIES / SLACK).contains(&window.entries.len()));
        assert!((0..100).all(|number| window.entries.contains_key(&format!("942100|ARGS:q{number}|/a"))));
        assert_eq!(counted(window), 2 * (2 * (MAX_ENTRIES as u64 + 5_000) + 100));
    }

    #[test]
    fn long_names_take_no_more_than_there_is() {
        let mut windows = Windows::default();
        windows.start("shop", 1);
        let many: Vec<u64> = (0..32).map(|number| number << 32 | number).collect();
        for number in 0..12_000 {
            let matched = matched(&format!("ARGS:{}{number}", "n".repeat(240)), &many);
            windows.take("a", &[], &[Matched { path: format!("/{}", "p".repeat(500)), ..matched }]);
        }
        let put = windows.write_all();
        assert!(put.len() == 1 && put[0].1.len() < 10 * 1024 * 1024, "{}", put[0].1.len());
        let mut again = Windows::default();
        assert!(again.load(&put[0].1).is_some());
        let (window, again) = (windows.get("shop").unwrap(), again.get("shop").unwrap());
        assert_eq!((counted(window), counted(again)), (24_000, 24_000));
        assert!(window.left_out > 0 && again.held <= MAX_HELD);
    }

    #[test]
    fn callers_of_an_entry_are_bounded() {
        let mut windows = Windows::default();
        windows.start("shop", 1);
        windows.take("a", &[], &[matched("ARGS:p3", &(0..500).collect::<Vec<_>>())]);
        assert_eq!(windows.get("shop").unwrap().entries["942100|ARGS:p3|/a"].callers.len(), MAX_CALLERS);
    }
}
