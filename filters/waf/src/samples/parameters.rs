//! Parameters of requests: what their values look like, for a profile that a request can be held against.
//!
//! Each worker looks at some of the requests that the backend has answered well. What it knows of a parameter it forgets with the report.

use std::collections::BTreeMap;

use super::callers::network_of;
use super::cardinality;
use super::messages::{MAX_SHAPES, MAX_TEXT, Parameter, ValueShape};
use super::shape;

/// The parameters of a worker between two reports, at most.
pub(super) const MAX_PARAMETERS: usize = 256;
/// The bytes of a report of them, at most, and how many reports there are at a time.
pub(super) const MAX_REPORT: usize = 40 * 1024;
pub(super) const MAX_REPORTS: usize = 2;
/// The bytes of all of them, at most: no report is full to its end.
const MAX_HELD: usize = MAX_REPORTS * (MAX_REPORT - MAX_LONGEST);
/// The bytes of the longest one.
const MAX_LONGEST: usize = 3 * MAX_TEXT + REST;
/// What a parameter takes beside its texts, in bytes, at most: shapes, registers and marks.
const REST: usize = MAX_SHAPES * 32 + cardinality::REGISTERS + 32;

/// What is known of them.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    /// By key.
    known: BTreeMap<u64, Known>,
    /// How many of them callers of a network have brought.
    brought: BTreeMap<u64, usize>,
    came: u64,
    /// Their bytes in reports, at most.
    held: usize,
    /// When they were reported, in milliseconds since the Unix epoch.
    pub(super) reported: u64,
}

/// A parameter.
#[derive(Debug)]
struct Known {
    parameter: Parameter,
    /// Its place in the order in which they came.
    came: u64,
    /// The network of the caller that has brought it.
    network: u64,
}

impl Known {
    /// How many voices it has, from 0 for one caller alone to 2 for several networks.
    fn voices(&self) -> usize {
        let callers = || self.parameter.shapes.iter().map(|one| one.caller);
        let is_of_others = callers().any(|caller| network_of(caller) != self.network);
        usize::from(callers().count() > 1).saturating_add(usize::from(is_of_others))
    }
}

impl Parameters {
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Counts a value of a caller. `make` makes what is not known yet, without its numbers. Where there is no room, one gives way that the
    /// network has brought which has brought most, so that a flood of made up names displaces itself.
    pub(super) fn add(&mut self, key: u64, (caller, value): (u64, &[u8]), make: impl FnOnce() -> Option<Parameter>) {
        if !self.known.contains_key(&key) {
            let Some(parameter) = make() else { return };
            let (more, network) = (weight(&parameter), network_of(caller));
            while self.known.len() >= MAX_PARAMETERS || self.held.saturating_add(more) > MAX_HELD {
                if !self.give_way() {
                    return;
                }
            }
            self.held = self.held.saturating_add(more);
            self.came = self.came.saturating_add(1);
            self.known.insert(key, Known { parameter, came: self.came, network });
            let brought = self.brought.entry(network).or_default();
            *brought = brought.saturating_add(1);
        }
        if let Some(Known { parameter, .. }) = self.known.get_mut(&key) {
            parameter.count = parameter.count.saturating_add(1);
            // An empty field of a form says nothing about those that are filled in.
            if !value.is_empty() {
                shape::add(&mut parameter.shapes, ValueShape::of(caller, value), MAX_SHAPES);
            }
            cardinality::add(&mut parameter.distinct, value);
        }
    }

    /// Forgets what a caller has taught: its values teach nothing.
    pub(super) fn forget(&mut self, caller: u64) {
        for known in self.known.values_mut() {
            known.parameter.shapes.retain(|one| one.caller != caller);
        }
    }

    /// Forgets one of the network that has brought most: the oldest of those with the fewest voices. False if there is none.
    fn give_way(&mut self) -> bool {
        let most = self.brought.iter().max_by_key(|(_, count)| **count).map(|(network, _)| *network);
        let of_most = self.known.iter().filter(|(_, one)| Some(one.network) == most);
        let least = of_most.min_by_key(|(_, one)| (one.voices(), one.came)).map(|(key, _)| *key);
        let Some(Known { parameter, network, .. }) = least.and_then(|key| self.known.remove(&key)) else {
            return false;
        };
        self.held = self.held.saturating_sub(weight(&parameter));
        if let Some(count) = self.brought.get_mut(&network) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.brought.remove(&network);
            }
        }
        true
    }

    /// Takes all of them, in parts that fit into a report.
    pub(super) fn take(&mut self) -> Vec<Vec<Parameter>> {
        self.held = 0;
        self.brought.clear();
        let (mut parts, mut part, mut size) = (Vec::new(), Vec::new(), 0_usize);
        for Known { parameter: one, .. } in std::mem::take(&mut self.known).into_values() {
            let more = weight(&one);
            if !part.is_empty() && size.saturating_add(more) > MAX_REPORT {
                parts.push(std::mem::take(&mut part));
                size = 0;
            }
            size = size.saturating_add(more);
            part.push(one);
        }
        if !part.is_empty() {
            parts.push(part);
        }
        parts
    }
}

fn weight(one: &Parameter) -> usize {
    one.config.len().saturating_add(one.target.len()).saturating_add(one.path.len()).saturating_add(REST)
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    fn named(number: u64, length: usize) -> Option<Parameter> {
        let target = format!("ARGS:q{number}");
        Some(Parameter {
            config: "shop".into(),
            target,
            path: format!("/{}", "a".repeat(length)),
            ..Parameter::default()
        })
    }

    #[test]
    fn values_are_counted_until_the_report() {
        let mut parameters = Parameters::default();
        for (caller, value) in [(1, "abc"), (2, "7"), (1, "abc"), (3, "x-y")] {
            parameters.add(5, (caller, value.as_bytes()), || named(1, 3));
        }
        parameters.add(6, (1, b"z"), || None);
        let parts = parameters.take();
        assert_eq!((parts.len(), parts[0].len()), (1, 1));
        let one = &parts[0][0];
        assert_eq!((one.count, one.shapes.len(), cardinality::estimate(&one.distinct)), (4, 3, 3));
        assert!(parameters.is_empty() && parameters.take().is_empty());
    }

    #[test]
    fn made_up_names_displace_nothing_that_several_send() {
        let mut parameters = Parameters::default();
        for number in 0..5_000 {
            // A request of an ordinary caller comes after each that makes up 32 names.
            for name in 0..32 {
                parameters.add(1_000 + number * 32 + name, (666, b"x"), || named(number, 9));
            }
            parameters.add(7, (number % 50, b"name"), || named(7, 3));
        }
        let all: Vec<Parameter> = parameters.take().into_iter().flatten().collect();
        let known = all.iter().find(|one| one.path == "/aaa").unwrap();
        assert!(known.count > 4_900 && known.shapes.len() == MAX_SHAPES, "{known:?}");
    }

    #[test]
    fn names_that_two_callers_make_up_shut_out_nothing() {
        let mut parameters = Parameters::default();
        let caller = |identity: u64, network: u64| identity << 32 | network;
        // All places, twice each, of one network or of two.
        for (number, network) in (0..2 * MAX_PARAMETERS as u64).zip([1, 2].into_iter().cycle()) {
            for identity in [1, 2] {
                parameters.add(1_000 + number, (caller(identity, network), b"x"), || named(number, 9));
            }
        }
        for number in 0..100 {
            parameters.add(number, (caller(50 + number % 7, 3 + number % 5), b"name"), || named(number, 3));
            parameters.add(5_000 + number, (caller(1, 1), b"x"), || named(number, 9));
        }
        let all: Vec<Parameter> = parameters.take().into_iter().flatten().collect();
        let ordinary = all.iter().filter(|one| one.path == "/aaa").count();
        assert_eq!(ordinary, 100);
        assert!(parameters.brought.is_empty());
    }

    #[test]
    fn empty_values_are_counted_and_say_nothing() {
        let mut parameters = Parameters::default();
        for (caller, value) in [(1, ""), (2, ""), (2, "17"), (3, "")] {
            parameters.add(5, (caller, value.as_bytes()), || named(1, 3));
        }
        parameters.add(5, (4, b"18"), || None);
        parameters.forget(4);
        let one = parameters.take().remove(0).remove(0);
        assert_eq!((one.count, one.shapes.len(), one.shapes[0].shortest), (5, 1, 2));
    }

    #[test]
    fn a_flood_of_parameters_keeps_to_its_room() {
        for (length, most) in [(1, MAX_PARAMETERS), (500, MAX_PARAMETERS)] {
            let mut parameters = Parameters::default();
            for number in 0..10_000 {
                parameters.add(number, (number, &[7; 5000]), || named(number, length));
            }
            let parts = parameters.take();
            let all: usize = parts.iter().map(Vec::len).sum();
            assert!(all > 50 && all <= most && parts.len() <= MAX_REPORTS, "{all} in {}", parts.len());
            for part in parts {
                let size: usize = part.iter().map(|one| one.encoded_len() + 4).sum();
                assert!(size <= MAX_REPORT, "{size}");
            }
        }
    }
}
