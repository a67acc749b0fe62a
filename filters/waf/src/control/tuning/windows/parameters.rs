//! The parameters of a window.

use super::{MAX_COUNT, MAX_SHAPES, Window, networks, weakest};
use crate::samples::messages::Parameter;
use crate::samples::{cardinality, shape};

/// The parameters of a window, at most; beyond them, those that the fewest networks and callers have sent give way.
pub(in super::super) const MAX_PARAMETERS: usize = 2_000;

/// `<target>|<path>`. Rules do not tell names by their case.
pub(in super::super) fn parameter_key(target: &str, path: &str) -> String {
    format!("{}|{path}", target.to_ascii_lowercase())
}

impl Window {
    /// Takes what a node has seen of parameters.
    pub(super) fn learn(&mut self, parameters: &[&Parameter]) {
        for more in parameters {
            let known = self.parameters.entry(parameter_key(&more.target, &more.path)).or_insert_with(|| Parameter {
                target: more.target.clone(),
                path: more.path.clone(),
                ..Parameter::default()
            });
            let teaches = |caller: &u64| !self.suspects.contains(caller);
            add(known, more, teaches);
        }
        self.make_room_for_parameters();
    }

    /// Forgets parameters that are too many. Names that one caller makes up, or a few of one network, displace none that others send as well.
    fn make_room_for_parameters(&mut self) {
        let Some(over) = self.parameters.len().checked_sub(MAX_PARAMETERS).filter(|over| *over > 0) else { return };
        let weigh = |one: &Parameter| {
            let callers = one.shapes.iter().map(|shape| &shape.caller);
            (networks(callers), one.shapes.len(), one.count)
        };
        for key in weakest(&self.parameters, weigh).into_iter().take(over) {
            self.parameters.remove(&key);
        }
    }
}

/// Adds what else was seen of a parameter. `teaches` says whether what a caller sends counts as ordinary.
pub(in super::super) fn add(known: &mut Parameter, more: &Parameter, teaches: impl Fn(&u64) -> bool) {
    known.count = known.count.saturating_add(more.count).min(MAX_COUNT);
    for one in more.shapes.iter().filter(|one| teaches(&one.caller)) {
        shape::add(&mut known.shapes, *one, MAX_SHAPES);
    }
    cardinality::merge(&mut known.distinct, &more.distinct);
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;
    use crate::samples::messages::ValueShape;

    fn parameter(target: &str, callers: &[u64]) -> Parameter {
        let mut distinct = Vec::new();
        callers.iter().for_each(|caller| cardinality::add(&mut distinct, &caller.to_le_bytes()));
        let shapes = callers.iter().map(|caller| ValueShape::of(*caller, b"abc")).collect();
        let (config, target, path) = ("shop".to_owned(), target.to_owned(), "/a".to_owned());
        Parameter { config, target, path, count: 4, shapes, distinct }
    }

    #[test]
    fn parameters_add_up_without_suspects_and_survive_a_restart() {
        let mut windows = Windows::default();
        windows.learn(&[parameter("ARGS:q", &[1])]);
        windows.start("shop", 1);
        windows.learn(&[parameter("ARGS:q", &[1, 2]), parameter("ARGS:p", &[1])]);
        windows.suspect(&[2]);
        let put = windows.write_all();
        let mut windows = Windows::default();
        assert!(put.iter().all(|(_, bytes)| windows.load(bytes).is_some()), "after a restart too");
        windows.learn(&[parameter("ARGS:Q", &[2, 3])]);
        let window = windows.get("shop").unwrap();
        assert_eq!(window.parameters.len(), 2, "the case of a name does not count");
        let known = &window.parameters["args:q|/a"];
        assert!(known.shapes.iter().map(|one| one.caller).eq([1, 3]));
        assert_eq!((known.count, cardinality::estimate(&known.distinct)), (8, 3));
    }

    /// Two callers of one network fill the window with names that they make up, before and behind what others send.
    #[test]
    fn names_that_a_network_makes_up_shut_out_nothing() {
        let mut windows = Windows::default();
        windows.start("shop", 1);
        let (made_up, others) = ([1 << 32 | 7, 2 << 32 | 7], [5 << 32 | 1, 6 << 32 | 2]);
        let flood = |windows: &mut Windows, name: &str| {
            let all = (0..MAX_PARAMETERS + 50).map(|number| parameter(&format!("ARGS:{name}{number}"), &made_up));
            windows.learn(&all.collect::<Vec<_>>());
        };
        flood(&mut windows, "a");
        for number in 0..300 {
            windows.learn(&[parameter(&format!("ARGS:q{number}"), &others)]);
        }
        flood(&mut windows, "b");
        let window = windows.get("shop").unwrap();
        assert_eq!(window.parameters.len(), MAX_PARAMETERS);
        assert!((0..300).all(|number| window.parameters.contains_key(&format!("args:q{number}|/a"))));
    }

    /// The smallest numbers are those of the flood.
    #[test]
    fn a_network_has_its_share_of_the_callers_of_an_entry_and_a_profile() {
        let mut windows = Windows::default();
        windows.start("shop", 1);
        let flood: Vec<u64> = (1..500_u64).map(|number| number << 32 | 7).collect();
        let others: Vec<u64> = (0..9_u64).map(|number| ((10_000 + number) << 32) | (number + 10)).collect();
        for callers in flood.chunks(8).chain(others.chunks(8)).chain(flood.chunks(8)) {
            windows.learn(&[parameter("ARGS:q", callers)]);
            let matched = Matched {
                config: "shop".to_owned(),
                rule_id: 942_100,
                target: "ARGS:q".to_owned(),
                path: "/a".to_owned(),
                count: 1,
                callers: callers.to_vec(),
                ..Matched::default()
            };
            windows.take("a", &[], &[matched]);
        }
        let window = windows.get("shop").unwrap();
        let (entry, known) = (&window.entries["942100|ARGS:q|/a"], &window.parameters["args:q|/a"]);
        assert_eq!((entry.networks(), entry.callers.len()), (10, MAX_CALLERS));
        assert_eq!((networks(known.shapes.iter().map(|one| &one.caller)), known.shapes.len()), (10, MAX_SHAPES));
    }
}
