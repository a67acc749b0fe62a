//! `kill -9` of the control plane and of Envoys under load: what was acknowledged holds, on every node.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use serde_json::json;

use crate::kill::{Acknowledged, Site, SiteStore, operate, solve, survive, take};

/// Rounds with one kill each, unless `PALISADE_FABRIC_KILL_ROUNDS` names another number.
const ROUNDS: u32 = 4;

#[test]
fn what_was_acknowledged_holds_after_kill_9_of_any_part() {
    let rounds = std::env::var("PALISADE_FABRIC_KILL_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
    let mut site = Site::start(SiteStore::File);
    survive(&mut site, rounds, |round| victim(round).to_owned(), strike);
}

/// A node without requests has nothing to report to the control plane, and must learn of its bans all the same.
#[test]
fn a_quiet_node_is_told_of_bans_after_the_control_plane_has_come_back() {
    let mut site = Site::start(SiteStore::File);
    let mut banned = Ipv4Addr::new(127, 64, 0, 1);
    site.on_both(banned, 403, "the range that is banned from the beginning");
    for round in 1..=3 {
        // An event that waits would be a reason to open a link.
        for node in &site.nodes {
            let _ = site.controls[0].event("the refusal", |event| {
                event["source"]["ip"] == banned.to_string() && event["route"]["node"] == node.name
            });
        }
        site.controls[0].kill();
        for node in &site.nodes {
            node.until_it_is_alone();
        }
        site.controls[0].restart();
        banned = Ipv4Addr::new(127, 32, 0, round);
        assert_eq!(site.consoles[0].post("_ban", &json!({"ref": format!("ip:{banned}")}))["done"], true);
        site.on_both(banned, 403, "a ban by hand");
    }
}

fn victim(round: u32) -> &'static str {
    ["the control plane", "node 0", "the control plane", "node 1"][round as usize % 4]
}

/// One round: calls of all kinds, a kill in the midst of them, and more calls while the victim is away and is back.
fn strike(site: &mut Site, round: u32) -> Vec<Acknowledged> {
    let stop = AtomicBool::new(false);
    let (sender, notes) = channel();
    let mut all = Vec::new();
    let (consoles, addresses) = (site.consoles.clone(), [0, 1].map(|node| site.nodes[node].address));
    thread::scope(|scope| {
        let (stop, consoles) = (&stop, &consoles);
        let (for_operator, for_callers) = (sender.clone(), sender);
        scope.spawn(move || operate(consoles, addresses, round, stop, &for_operator));
        scope.spawn(move || solve(addresses, round, stop, &for_callers));
        // Another number in each round, so that the kill comes at other moments.
        take(&notes, &mut all, 6 + round as usize * 7 % 29, |_| true);
        match victim(round) {
            "node 0" => site.nodes[0].kill(),
            "node 1" => site.nodes[1].kill(),
            _ => site.controls[0].kill(),
        }
        // The operator may have no control plane meanwhile.
        take(&notes, &mut all, 4, |one| matches!(one, Acknowledged::Puzzle(..)));
        match victim(round) {
            "node 0" => site.nodes[0].start(),
            "node 1" => site.nodes[1].start(),
            _ => site.controls[0].restart(),
        }
        take(&notes, &mut all, 8, |_| true);
        stop.store(true, Ordering::Relaxed);
        all.extend(&notes);
    });
    all
}
