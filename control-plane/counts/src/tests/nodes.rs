//! Two nodes whose filters count, each with a link.

use exchange::fake::FakeHost;
use exchange::shared_counts::{ClusterCount, Window, learn, news};
use exchange::{Host as _, Metric};
use snapshot::CountsDown;

use super::*;

const HOUR: u64 = 3_600_000;

struct Nodes {
    hub: Counts,
    /// Name, link, node.
    nodes: Vec<(&'static str, u64, FakeHost)>,
}

impl Nodes {
    fn new() -> Self {
        let mut nodes = Self { hub: counts(), nodes: Vec::new() };
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
        let host = FakeHost::at(CLOCK.get());
        assert!(self.hub.linked(name, link).is_some());
        learn(host.shared(), &self.hub.greeting(), host.now());
        self.nodes.push((name, link, host));
    }

    fn advance(&self, millis: u64) {
        CLOCK.set(CLOCK.get() + millis);
        self.nodes.iter().for_each(|(_, _, host)| host.advance(millis));
    }

    /// Takes what each node has to say, and gives each what it is to learn.
    fn carry(&self) {
        for (name, _, host) in &self.nodes {
            while let Some(up) = news(host.shared(), host.now()) {
                self.hub.take(name, &up);
                let down = CountsDown { now_millis: host.now(), taken: up.number, ..CountsDown::default() };
                learn(host.shared(), &down, host.now());
            }
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
        self.counted(window)
    }

    /// What each node knows of the key.
    fn counted(&self, window: &Window) -> Vec<ClusterCount> {
        self.nodes.iter().map(|(_, _, host)| window.get(host, b"k")).collect()
    }
}

fn numbered(number: u32) -> Window {
    Window::new(&format!("w{number}"), 60_000, 6).unwrap()
}

fn known(own: u32, others: u32) -> ClusterCount {
    ClusterCount { own, others }
}

#[test]
fn windows_one_after_the_other_are_counted_by_all_nodes_however_many_they_are() {
    let mut nodes = Nodes::new();
    for number in 0..100 {
        if number % 40 == 0 && number > 0 {
            // A new snapshot, and then a new gateway.
            nodes.start("a");
        }
        assert_eq!(nodes.count(&numbered(number)), [known(1, 1); 2], "{number}");
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
    assert_eq!(nodes.count(&numbered(32)), [known(1, 0); 2], "all are in use");
    for minute in 0..60 {
        nodes.advance(60_000);
        nodes.count(&used);
        // To look at it is a use.
        nodes.counted(&read);
        if minute > 5 {
            assert_eq!(nodes.count(&numbered(40 + minute % 25)), [known(1, 1); 2], "{minute}");
        }
        nodes.hub.sweep();
    }
    assert!(nodes.counted(&used).iter().all(|count| count.own == count.others && count.own > 0));
    assert_eq!(nodes.count(&read), [known(1, 1); 2]);
}
