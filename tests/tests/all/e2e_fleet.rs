//! Two Envoys with two workers each, two control planes on one Redis: a ban of one node holds on every worker of the other.

use std::net::Ipv4Addr;

use palisade_tests::http::Request;
use palisade_tests::process::wait_for;

use crate::kill::{PATIENCE, Site, SiteStore};

/// Bans each way, before and after the kill.
const BANS: u8 = 4;

#[test]
fn a_ban_of_one_node_holds_on_every_worker_of_the_other_also_without_one_control_plane() {
    let mut site = Site::start(SiteStore::Redis);
    let ban_each_way = |site: &Site, net: u8| {
        for number in 0..BANS {
            let from = usize::from(number % 2);
            let caller = Ipv4Addr::new(127, 33, net, number + 1);
            let (own, other) = (&site.nodes[from], &site.nodes[1 - from]);
            assert_eq!(Request::get("/").send_from(caller, other.address).unwrap().status, 200);
            assert_eq!(Request::get("/?attack=1").send_from(caller, own.address).unwrap().status, 403);
            let mut last = Vec::new();
            wait_for("every worker refuses", PATIENCE, || {
                let ask = || Request::get("/").send_from(caller, other.address).map(|answer| answer.status);
                last = other.envoy().every_worker(ask).unwrap_or_else(|why| panic!("{why}"));
                last.iter().all(|status| *status == 403).then_some(())
            })
            .unwrap_or_else(|why| {
                panic!("{why}: {caller} at {}: {last:?}\n{}", other.name, other.envoy().log_tail(40))
            });
        }
    };
    ban_each_way(&site, 1);
    site.controls[0].kill();
    ban_each_way(&site, 2);
    site.controls[0].restart();
    site.controls[1].kill();
    ban_each_way(&site, 3);
    for node in &site.nodes {
        assert!(node.envoy().vm_failures().is_empty(), "{:?}", node.envoy().vm_failures());
    }
}
