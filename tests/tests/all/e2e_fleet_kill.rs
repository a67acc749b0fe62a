//! `kill -9` of control planes that share a Redis, of the Redis, and of Envoys, under load: what was acknowledged holds, on every
//! node; no puzzle is spent twice, and no budget exceeded while the store answers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use palisade_tests::process::wait_for;
use serde_json::json;

use crate::kill::{Acknowledged, PATIENCE, Site, SiteStore, operate, read_objects, solve, survive, take};

/// Rounds with one kill each, unless `PALISADE_FLEET_KILL_ROUNDS` names another number.
const ROUNDS: u32 = 3;

/// What is killed.
#[derive(Clone, Copy, Debug)]
enum Victim {
    ControlPlane(usize),
    Redis,
    Node(usize),
}

impl Victim {
    fn of(round: u32) -> Victim {
        let number = round as usize / 3 % 2;
        match round % 3 {
            0 => Victim::Redis,
            1 => Victim::ControlPlane(number),
            _ => Victim::Node(number),
        }
    }

    fn kill(self, site: &mut Site) {
        match self {
            Victim::ControlPlane(number) => site.controls[number].kill(),
            Victim::Redis => site.redis.as_mut().unwrap().kill(),
            Victim::Node(number) => {
                site.counters.set(number, None);
                site.nodes[number].kill();
            }
        }
    }

    fn restart(self, site: &mut Site) {
        match self {
            Victim::ControlPlane(number) => site.controls[number].restart(),
            Victim::Redis => site.redis.as_mut().unwrap().restart(),
            Victim::Node(number) => {
                site.nodes[number].start();
                site.count_at(number);
            }
        }
    }
}

#[test]
fn what_was_acknowledged_holds_after_kill_9_of_any_part_of_a_fleet() {
    let rounds = std::env::var("PALISADE_FLEET_KILL_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
    let mut site = Site::start(SiteStore::Redis);
    let all = survive(&mut site, rounds, |round| format!("{:?}", Victim::of(round)), strike);
    if all.iter().any(|one| matches!(one, Acknowledged::Uncounted)) {
        let told = |event: &serde_json::Value| event["threat"]["tags"] == json!(["objects:budget_uncounted"]);
        wait_for("an event of objects that were not counted", PATIENCE, || {
            site.controls.iter().any(|control| control.events().iter().any(told)).then_some(())
        })
        .unwrap();
    }
}

/// One round: calls of all kinds, a kill in the midst of them, and more calls while the victim is away and is back.
fn strike(site: &mut Site, round: u32) -> Vec<Acknowledged> {
    let stop = AtomicBool::new(false);
    let (sender, notes) = channel();
    let mut all = Vec::new();
    let (consoles, addresses) = (site.consoles.clone(), [0, 1].map(|node| site.nodes[node].address));
    let counters = site.counters.clone();
    let victim = Victim::of(round);
    thread::scope(|scope| {
        let (stop, consoles, counters) = (&stop, &consoles, &counters);
        let (for_operator, for_callers, for_consumers) = (sender.clone(), sender.clone(), sender);
        scope.spawn(move || operate(consoles, addresses, round, stop, &for_operator));
        scope.spawn(move || solve(addresses, round, stop, &for_callers));
        scope.spawn(move || read_objects(addresses, round, counters, stop, &for_consumers));
        take(&notes, &mut all, 1, |one| matches!(one, Acknowledged::Budget(..)));
        // Another number in each round, so that the kill comes at other moments.
        take(&notes, &mut all, 6 + round as usize * 7 % 29, |_| true);
        victim.kill(site);
        match victim {
            // Without the store objects pass uncounted.
            Victim::Redis => take(&notes, &mut all, 1, |one| matches!(one, Acknowledged::Uncounted)),
            _ => take(&notes, &mut all, 4, |one| matches!(one, Acknowledged::Puzzle(..))),
        }
        victim.restart(site);
        take(&notes, &mut all, 8, |_| true);
        take(&notes, &mut all, 1, |one| matches!(one, Acknowledged::Banned(..)));
        stop.store(true, Ordering::Relaxed);
        all.extend(&notes);
    });
    all
}
