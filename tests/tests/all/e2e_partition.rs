//! Two control planes on one Redis, each with a real gateway, of which one is cut off from the Redis.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use palisade_tests::console::Console;
use palisade_tests::control_plane::{ControlPlane, ENTITIES};
use palisade_tests::gateway::{Gateway, preset, route, threat_policy, waf_config};
use palisade_tests::http::Request;
use palisade_tests::process::wait_for;
use palisade_tests::proxy::{Network, Proxy};
use palisade_tests::redis::Redis;
use serde_json::json;

use crate::e2e_shared_store::gateway_of;

const PATIENCE: Duration = Duration::from_secs(30);
/// Connections of one look: the kernel divides them between the gateways, so that all of them at one gateway are as good as impossible.
const CONNECTIONS: usize = 24;

#[test]
fn gateways_go_on_while_their_control_plane_is_cut_off_and_have_the_same_afterwards() {
    let redis = Redis::start();
    let network = Proxy::start(redis.address());
    let store = |address: SocketAddr| ["--store".to_owned(), format!("redis://{address}?timeout_millis=500")];
    let gateway = Gateway::start_with(&store(network.address()), |control, backend| {
        control.create("waf-configs", &waf_config("demo", json!({"rules": ["@import_preset crs"], "block": false})));
        control.create("threat-policies", &threat_policy("demo", json!({"dry_run": false})));
        control.create("routes", &route("demo", backend, preset("demo", "demo")));
    });
    let Gateway { envoy: mut first, control: one, backend: _backend, address } = gateway;
    let console = Console::login(&one);
    let other = ControlPlane::start_beside_on(&one, &store(redis.address()));
    let mut second = gateway_of(&other, address);
    let [known, new, refused, free] = [1, 2, 3, 4].map(|last| Ipv4Addr::new(127, 0, 41, last));
    let ban = |ip: Ipv4Addr| json!({ "ref": format!("ip:{ip}") });
    assert_eq!(console.post("_ban", &ban(known))["done"], true);
    until(address, known, &[403]);

    network.set(Network::BlackHole);
    // Longer than the turn to lead lasts: no request fails meanwhile, and the ban that is known holds at both.
    wait_for("the one that is cut off does not lead, and the other one does", PATIENCE, || {
        assert_eq!(statuses(address, free), BTreeSet::from([200]));
        assert_eq!(statuses(address, known), BTreeSet::from([403]));
        (!leads(&one) && leads(&other)).then_some(())
    })
    .unwrap();
    let refusal = console.try_answer("security/_ban", &ban(refused)).unwrap();
    assert!(refusal.status >= 500, "{}", refusal.text());
    assert_eq!(Request::get("/readyz").send(one.rest()).unwrap().status, 503);
    assert_eq!(console.at(&other).post("_ban", &ban(new))["done"], true);
    until(address, new, &[200, 403]);

    network.set(Network::Whole);
    until(address, new, &[403]);
    until(address, known, &[403]);
    assert_eq!(statuses(address, refused), BTreeSet::from([200]), "what was refused is nowhere");
    let _event = one.event("the store works again", |event| {
        event["event"]["module"] == "store"
            && event["message"].as_str().is_some_and(|text| text.contains("works again"))
    });
    other.patch("routes", "demo", &json!({"enabled": false}));
    wait_for("the route is disabled at both", PATIENCE, || {
        let answer = one.call("GET", &format!("{ENTITIES}/routes/demo"), None).json();
        (answer["enabled"] == false).then_some(())
    })
    .unwrap();
    for envoy in [&mut first, &mut second] {
        assert!(envoy.lives());
        let failures = envoy.vm_failures();
        assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
    }
}

fn leads(control: &ControlPlane) -> bool {
    let metrics = Request::get("/metrics").send(control.rest()).expect("metrics").text();
    metrics.lines().any(|line| line == "palisade_control_plane_leads 1")
}

/// What callers from an address are answered at both gateways.
fn statuses(address: SocketAddr, source: Ipv4Addr) -> BTreeSet<u16> {
    let send = |_| Request::get("/").send_from(source, address).expect("an answer").status;
    (0..CONNECTIONS).map(send).collect()
}

fn until(address: SocketAddr, source: Ipv4Addr, wanted: &[u16]) {
    let wanted = wanted.iter().copied().collect();
    let reached = wait_for("the change is in force", PATIENCE, || (statuses(address, source) == wanted).then_some(()));
    reached.unwrap_or_else(|why| panic!("{source}: {:?}, not {wanted:?}: {why}", statuses(address, source)));
}
