//! Groups that give way to others, between nodes and a real control plane.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use counts::Counts;

use super::*;

const HOUR: u64 = 3_600_000;

/// Two nodes with a link each.
struct Nodes {
    hub: Counts,
    clock: Arc<AtomicU64>,
    /// Name, link, node.
    nodes: Vec<(&'static str, u64, FakeHost)>,
}

impl Nodes {
    fn new() -> Self {
        let clock = Arc::new(AtomicU64::new(NOW));
        let of_hub = Arc::clone(&clock);
        let hub = Counts::new([7; 16], 1, move || of_hub.load(Ordering::Relaxed));
        let mut nodes = Self { hub, clock, nodes: Vec::new() };
        ["a", "b"].into_iter().for_each(|name| nodes.start(name));
        nodes
    }

    /// A gateway starts, in place of the one of that name.
    fn start(&mut self, name: &'static str) {
        let link = self.nodes.iter().map(|(_, link, _)| *link).max().unwrap_or(0) + 1;
        self.nodes.retain(|(known, link, _)| {
            if *known == name {
                self.hub.unlinked(name, *link);
            }
            *known != name
        });
        let host = FakeHost::at(self.clock.load(Ordering::Relaxed));
        assert!(self.hub.linked(name, link).is_some());
        learn(host.shared(), &self.hub.greeting(), host.now());
        self.nodes.push((name, link, host));
    }

    fn advance(&self, millis: u64) {
        self.clock.fetch_add(millis, Ordering::Relaxed);
        self.nodes.iter().for_each(|(_, _, host)| host.advance(millis));
    }

    fn carry(&self) {
        for (name, _, host) in &self.nodes {
            said(host).iter().for_each(|up| self.hub.take(name, up));
        }
        for (name, link, host) in &self.nodes {
            while let Some(down) = self.hub.news(name, *link) {
                learn(host.shared(), &down, host.now());
            }
        }
    }

    /// Counts a key on both: what each knows of it.
    fn count(&self, window: &Window) -> Vec<ClusterCount> {
        for (_, _, host) in &self.nodes {
            window.add(host, b"k", 1);
        }
        self.carry();
        self.nodes.iter().map(|(_, _, host)| window.get(host, b"k")).collect()
    }
}

fn numbered(number: u32) -> Window {
    Window::new(&format!("w{number}"), 60_000, 6).unwrap()
}

#[test]
fn windows_one_after_the_other_are_counted_by_all_nodes_however_many_they_are() {
    let mut nodes = Nodes::new();
    for number in 0..100 {
        if number % 40 == 0 && number > 0 {
            // A new snapshot, and then a new gateway.
            nodes.start("a");
        }
        let both = vec![count(1, 1); 2];
        assert_eq!(nodes.count(&numbered(number)), both, "{number}");
        nodes.advance(HOUR);
        nodes.hub.sweep();
    }
    let dropped = |host: &FakeHost| host.counts.borrow().get(&Metric::CountsDropped).copied();
    assert!(nodes.nodes.iter().all(|(_, _, host)| dropped(host).is_none()));
}

#[test]
fn a_window_in_use_does_not_give_way() {
    let nodes = Nodes::new();
    let (used, read) = (numbered(0), numbered(1));
    for number in 0..32 {
        nodes.count(&numbered(number));
    }
    assert_eq!(nodes.count(&numbered(32)), [count(1, 0); 2], "all are in use");
    for minute in 0..60 {
        nodes.advance(60_000);
        nodes.count(&used);
        // To look at it is a use.
        for (_, _, host) in &nodes.nodes {
            let _ = read.get(host, b"k");
        }
        if minute > 5 {
            assert_eq!(nodes.count(&numbered(40 + minute % 25)), [count(1, 1); 2], "{minute}");
        }
        nodes.hub.sweep();
    }
    let before = used.get(&nodes.nodes[0].2, b"k");
    assert!(before.own == before.others && before.own > 0);
    assert_eq!(nodes.count(&read), [count(1, 1); 2]);
}

#[test]
fn changes_of_a_group_that_gave_way_are_not_told_as_those_of_another() {
    let nodes = Nodes::new();
    let host = &nodes.nodes[0].2;
    for number in 0..32 {
        numbered(number).add(host, b"k", 5);
    }
    // They wait for a link that does not come for an hour.
    nodes.advance(HOUR);
    numbered(32).add(host, b"other", 1);
    let ups = said(host);
    let told: Vec<(String, Vec<u32>)> = ups
        .iter()
        .flat_map(|up| &up.batches)
        .flat_map(|batch| {
            let name = batch.group.as_ref().map(|group| group.name.clone()).unwrap_or_default();
            batch.counts.iter().map(move |count| (name.clone(), count.counts.clone()))
        })
        .collect();
    assert!(!told.is_empty() && told.iter().all(|told| *told == ("w32".to_owned(), vec![1])), "{told:?}");
}
