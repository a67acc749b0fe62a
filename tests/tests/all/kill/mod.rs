//! What tests with `kill -9` have in common: two gateways under load, and clients that note what was acknowledged.

mod budgets;
mod clients;
mod site;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use palisade_tests::http::Request;
use palisade_tests::load::{Load, Plan};

pub(crate) use budgets::read_objects;
pub(crate) use clients::{operate, solve};
pub(crate) use site::{Site, SiteStore};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What was acknowledged to a client.
#[derive(Debug, Clone)]
pub(crate) enum Acknowledged {
    /// An address is banned by hand.
    Banned(Ipv4Addr),
    /// A tier has banned an address, and the control plane lists it.
    Caught(Ipv4Addr),
    /// An address of the banned range is on the allowlist.
    Allowed(Ipv4Addr),
    /// The incident of an address is acknowledged.
    State(Ipv4Addr),
    /// A solution was submitted at both nodes, and this many of them accepted it.
    Puzzle(Ipv4Addr, Request, usize),
    /// A consumer has read these objects, and every question about them was answered.
    Budget(Ipv4Addr, Vec<u32>),
    /// A consumer has read objects, and some questions were not answered meanwhile.
    Uncounted,
}

/// How many there are of each kind.
fn count(all: &[Acknowledged]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for one in all {
        let name = match one {
            Acknowledged::Banned(_) => "bans by hand",
            Acknowledged::Caught(_) => "bans of tiers",
            Acknowledged::Allowed(_) => "allowlist entries",
            Acknowledged::State(_) => "incident states",
            Acknowledged::Puzzle(_, _, 0) => "puzzles refused",
            Acknowledged::Puzzle(..) => "puzzles spent",
            Acknowledged::Budget(..) => "budgets kept",
            Acknowledged::Uncounted => "consumers while the store did not answer",
        };
        *counts.entry(name).or_default() += 1;
    }
    counts
}

/// Strikes so many times under a load of clean requests, which must all be answered with 200. What was acknowledged must be in force after
/// each strike, and at the end. `victim` names what a round kills.
pub(crate) fn survive(
    site: &mut Site,
    rounds: u32,
    victim: impl Fn(u32) -> String,
    strike: impl Fn(&mut Site, u32) -> Vec<Acknowledged>,
) -> Vec<Acknowledged> {
    let loads = [0, 1].map(|node| Load::start(clean_requests(site.nodes[node].address)));
    let mut all = Vec::new();
    for round in 0..rounds {
        let fresh = strike(site, round);
        let start = Instant::now();
        site.verify(&fresh);
        let counts = count(&fresh);
        println!("round {round}: {} killed, {counts:?}, all in force after {:?}", victim(round), start.elapsed());
        all.extend(fresh);
        site.listed(&all);
    }
    // What earlier rounds have made still holds after all the later ones.
    site.verify(&all);
    for (node, report) in loads.map(Load::stop).iter().enumerate() {
        println!("node {node}: clean requests {:?}, {} without an answer", report.statuses, report.dropped);
        assert_eq!(report.statuses.keys().collect::<Vec<_>>(), [&200], "{:?}", report.statuses);
    }
    println!("{rounds} rounds: {:?}", count(&all));
    let failures: Vec<String> = site.nodes.iter().flat_map(|node| node.envoy().vm_failures()).collect();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
    all
}

/// Takes the next ones until this many are of a kind.
pub(crate) fn take(
    notes: &Receiver<Acknowledged>,
    all: &mut Vec<Acknowledged>,
    count: usize,
    of: impl Fn(&Acknowledged) -> bool,
) {
    let mut found = 0;
    while found < count {
        let next = notes.recv_timeout(PATIENCE).expect("the clients go on");
        found += usize::from(of(&next));
        all.push(next);
    }
}

/// An address of its own for each number of each round.
pub(crate) fn address(net: u8, round: u32, number: u32) -> Ipv4Addr {
    let serial = (round << 10 | number & 0x3ff).to_be_bytes();
    Ipv4Addr::new(127, net + serial[1], serial[2], serial[3])
}

fn clean_requests(to: SocketAddr) -> Plan {
    let requests = vec![
        Request::get("/search?q=garden+chairs").encode(),
        Request::post("/echo", "application/x-www-form-urlencoded", "name=Ada&city=London").encode(),
    ];
    Plan { to, connections: 4, requests, pause: Duration::from_millis(5), cpu: None }
}
