//! Two control planes on one Redis, each with a real gateway.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use palisade_tests::bootstrap::shipped;
use palisade_tests::console::Console;
use palisade_tests::control_plane::{ControlPlane, ENTITIES};
use palisade_tests::envoy::Envoy;
use palisade_tests::figures::quantile;
use palisade_tests::gateway::{
    Gateway, WRITTEN_ADMIN_PORT, WRITTEN_XDS_PORT, preset, route, threat_policy, waf_config,
};
use palisade_tests::http::Request;
use palisade_tests::process::wait_for;
use palisade_tests::redis::Redis;
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(30);
/// The bans whose times are printed.
const BANS: u8 = 50;

#[test]
fn what_one_control_plane_decides_holds_at_the_gateway_of_the_other() {
    let mut redis = Redis::start();
    let gateway = Gateway::start_with(&["--store".to_owned(), redis.url()], |control, backend| {
        control.create("waf-configs", &waf_config("demo", json!({"rules": ["@import_preset crs"], "block": false})));
        control.create("threat-policies", &threat_policy("demo", json!({"dry_run": false})));
        control.create("routes", &route("demo", backend, preset("demo", "demo")));
    });
    let Gateway { envoy: first, control: mut one, backend: _backend, address } = gateway;
    let console = Console::login(&one);
    assert_eq!(console.post("_ban", &json!({"ref": "ip:127.0.31.1"}))["done"], true);
    let other = ControlPlane::start_beside(&one);
    let envoy = gateway_of(&other, address);
    // From here on the gateway of the second one alone answers.
    drop(first);
    until(address, Ipv4Addr::LOCALHOST, 200, &envoy);
    until(address, Ipv4Addr::new(127, 0, 31, 1), 403, &envoy);

    let mut taken = Vec::new();
    for number in 0..BANS {
        let banned = Ipv4Addr::new(127, 0, 32, number + 1);
        let start = Instant::now();
        assert_eq!(console.post("_ban", &json!({"ref": format!("ip:{banned}")}))["done"], true);
        until(address, banned, 403, &envoy);
        taken.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    let [median, most] = [0.5, 0.99].map(|part| quantile(&mut taken, part));
    println!("a ban until the other gateway refuses: median {median:.0} ms, 99th percentile {most:.0} ms of {BANS}");
    let banned = Ipv4Addr::new(127, 0, 32, 1);
    assert_eq!(console.post("_unban", &json!({"ref": format!("ip:{banned}")}))["done"], true);
    until(address, banned, 200, &envoy);
    let allowed = Ipv4Addr::new(127, 0, 33, 7);
    assert_eq!(console.post("_ban", &json!({"ref": "ip:127.0.33.0/24"}))["done"], true);
    until(address, allowed, 403, &envoy);
    assert_eq!(console.post("_allow", &json!({"ref": format!("ip:{allowed}"), "reason": "a test"}))["done"], true);
    until(address, allowed, 200, &envoy);
    until(address, Ipv4Addr::new(127, 0, 33, 8), 403, &envoy);

    // Entities, too.
    one.patch("routes", "demo", &json!({"enabled": false}));
    wait_for("the route is disabled there, too", PATIENCE, || {
        let answer = other.call("GET", &format!("{ENTITIES}/routes/demo"), None).json();
        (answer["enabled"] == false).then_some(())
    })
    .unwrap();
    one.patch("routes", "demo", &json!({"enabled": true}));
    until(address, Ipv4Addr::LOCALHOST, 200, &envoy);

    // Without the server, requests pass and bans that are known hold, also at a gateway that starts then.
    redis.kill();
    until(address, Ipv4Addr::new(127, 0, 33, 8), 403, &envoy);
    assert_eq!(status(address, Ipv4Addr::LOCALHOST), Some(200));
    drop(envoy);
    let mut envoy = gateway_of(&other, address);
    until(address, Ipv4Addr::new(127, 0, 33, 8), 403, &envoy);
    until(address, Ipv4Addr::new(127, 0, 32, 2), 403, &envoy);
    assert_eq!(status(address, Ipv4Addr::LOCALHOST), Some(200));
    redis.restart();
    one.kill();
    let console = console.at(&other);
    let late = Ipv4Addr::new(127, 0, 34, 1);
    wait_for("a ban after the server is back", PATIENCE, || {
        let answer = console.try_answer("security/_ban", &json!({"ref": format!("ip:{late}")})).ok()?;
        (answer.status == 200 && answer.json()["done"] == true).then_some(())
    })
    .unwrap();
    until(address, late, 403, &envoy);
    assert!(envoy.lives());
    let failures = envoy.vm_failures();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
}

/// A gateway of a control plane, on the port that the entities name.
pub(crate) fn gateway_of(control: &ControlPlane, address: SocketAddr) -> Envoy {
    let ports = [(WRITTEN_XDS_PORT, control.xds().port()), (WRITTEN_ADMIN_PORT, 0)];
    let envoy = Envoy::start(&shipped("xds.yaml", &ports));
    let requests = || envoy.stats("^http.*downstream_rq_2xx").values().sum::<u64>();
    // The kernel divides connections between the two: both listen on the one port.
    wait_for("a request at the second gateway", PATIENCE, || {
        let _ = Request::get("/").send(address);
        (requests() > 0).then_some(())
    })
    .unwrap_or_else(|why| panic!("{why}\n{}", envoy.log_tail(40)));
    envoy
}

fn status(address: SocketAddr, source: Ipv4Addr) -> Option<u16> {
    Some(Request::get("/").send_from(source, address).ok()?.status)
}

fn until(address: SocketAddr, source: Ipv4Addr, wanted: u16, envoy: &Envoy) {
    let reached = wait_for("the change is in force", PATIENCE, || (status(address, source)? == wanted).then_some(()));
    reached.unwrap_or_else(|why| panic!("{source} is not answered with {wanted}: {why}\n{}", envoy.log_tail(40)));
}
