//! ADS against a real Envoy, in both protocols.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::xds_support::{ControlPlane, Envoy, backend, gateway, get, noop_filter, until};
use snapshot::LoadReport;
use xds::resources::{BackendInput, BackendTls, RouteInput, build};
use xds::{Hub, Kind, NodeStatus, TypeStatus};

fn node(hub: &Hub) -> NodeStatus {
    hub.nodes().into_iter().next().unwrap_or_default()
}

fn of_kind(hub: &Hub, kind: Kind) -> TypeStatus {
    node(hub).types.into_iter().find(|status| status.type_url == kind.type_url()).unwrap_or_default()
}

/// Waits until Envoy has taken everything that it was sent.
async fn settled(hub: &Hub) {
    until("every type is acknowledged", async || {
        let types = node(hub).types;
        (types.len() == Kind::ALL.len() && types.iter().all(|status| status.acked_version == status.sent_version))
            .then_some(())
    })
    .await;
}

/// Sends requests one after another until told to end: every answer must be 200. Gives the number of answers.
fn load(address: SocketAddr, done: Arc<AtomicBool>) -> tokio::task::JoinHandle<u32> {
    tokio::spawn(async move {
        let mut count = 0;
        while !done.load(Ordering::Relaxed) {
            let answer = get(address, "any.test", "/").await;
            assert_eq!(answer.as_ref().map(|(status, _)| *status), Some(200), "after {count} requests: {answer:?}");
            count += 1;
        }
        count
    })
}

async fn serves_changes_and_survives_refusals(delta: bool) {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let hub = &control_plane.hub;
    let (one, two) = (backend("one").await, backend("two").await);
    hub.publish(build(&gateway(one, vec![noop_filter("preset", "first")])).unwrap());
    let envoy = Envoy::start(control_plane.address, delta).await;
    let listener = envoy.listener().await;
    until("the first answer", async || get(listener, "any.test", "/x").await.filter(|answer| answer.1 == "one")).await;
    settled(hub).await;
    assert_eq!((node(hub).id.as_str(), node(hub).version.as_str(), node(hub).connected), ("test-node", "1.40.0", true));

    // Another backend and another snapshot, under load.
    let done = Arc::new(AtomicBool::new(false));
    let requests = load(listener, done.clone());
    hub.publish(build(&gateway(two, vec![noop_filter("preset", "second")])).unwrap());
    until("the new backend", async || get(listener, "any.test", "/").await.filter(|answer| answer.1 == "two")).await;
    settled(hub).await;
    done.store(true, Ordering::Relaxed);
    assert!(requests.await.unwrap() > 0);
    let (_, clusters) = get(envoy.admin, "localhost", "/clusters").await.unwrap();
    assert!(!clusters.contains(&one.to_string()), "the old backend is gone");

    // A snapshot that the filter refuses: the old one keeps serving, the reason is on record.
    hub.publish(build(&gateway(two, vec![noop_filter("preset", "palisade-refuse-me")])).unwrap());
    let nack = until("the refusal", async || of_kind(hub, Kind::Extension).nack).await;
    assert!(!nack.reason.is_empty() && nack.resources == ["palisade.preset"], "{nack:?}");
    assert_ne!(of_kind(hub, Kind::Extension).acked_version, nack.version);
    assert_eq!(get(listener, "any.test", "/").await, Some((200, "two".into())));
    let report = LoadReport {
        filter: "preset".into(),
        version: "v".into(),
        error: "rule 7 is no rule".into(),
        ..LoadReport::default()
    };
    hub.report_load("test-node", report);
    let reason = of_kind(hub, Kind::Extension).nack.unwrap().reason;
    assert!(reason.contains("rule 7 is no rule"), "{reason}");

    // A backend that Envoy refuses: neither routes nor listener follow.
    let mut bad = gateway(two, vec![noop_filter("preset", "third")]);
    let tls = BackendTls { authorities: "/nowhere/authorities.pem".into(), ..BackendTls::default() };
    bad.routes[0].backend =
        Some(BackendInput { address: "127.0.0.1".into(), port: 9, tls: Some(tls), ..BackendInput::default() });
    hub.publish(build(&bad).unwrap());
    let nack = until("the refusal", async || of_kind(hub, Kind::Cluster).nack).await;
    assert!(nack.reason.contains("/nowhere/authorities.pem"), "{nack:?}");
    assert_eq!(get(listener, "any.test", "/").await, Some((200, "two".into())));

    // And back to what is good.
    hub.publish(build(&gateway(one, vec![noop_filter("preset", "fourth")])).unwrap());
    until("the good backend", async || get(listener, "any.test", "/").await.filter(|answer| answer.1 == "one")).await;
    settled(hub).await;
    assert!(node(hub).types.iter().all(|status| status.nack.is_none()));
}

#[tokio::test(flavor = "multi_thread")]
async fn state_of_the_world_serves_changes_and_survives_refusals() {
    serves_changes_and_survives_refusals(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn delta_serves_changes_and_survives_refusals() {
    serves_changes_and_survives_refusals(true).await;
}

async fn outlives_its_control_plane(delta: bool) {
    let (one, two) = (backend("one").await, backend("two").await);
    let first = ControlPlane::start(Vec::new()).await;
    let address = first.address;
    first.hub.publish(build(&gateway(one, vec![noop_filter("preset", "first")])).unwrap());
    let envoy = Envoy::start(address, delta).await;
    let listener = envoy.listener().await;
    until("the first answer", async || get(listener, "any.test", "/").await.filter(|answer| answer.0 == 200)).await;
    settled(&first.hub).await;
    let done = Arc::new(AtomicBool::new(false));
    let requests = load(listener, done.clone());
    first.stop().await;

    // The next one knows nothing at first; the gateway goes on.
    let next = ControlPlane::start_at(address, Vec::new()).await;
    until("the gateway is back", async || node(&next.hub).connected.then_some(())).await;
    assert_eq!(get(listener, "any.test", "/").await, Some((200, "one".into())));
    next.hub.publish(build(&gateway(two, vec![noop_filter("preset", "first")])).unwrap());
    until("the new backend", async || get(listener, "any.test", "/").await.filter(|answer| answer.1 == "two")).await;
    until("the routes are acknowledged", async || {
        let status = of_kind(&next.hub, Kind::Route);
        (!status.sent_version.is_empty() && status.sent_version == status.acked_version).then_some(())
    })
    .await;
    if delta {
        assert_eq!(of_kind(&next.hub, Kind::Extension), TypeStatus::default(), "the snapshot did not change");
        done.store(true, Ordering::Relaxed);
        assert!(requests.await.unwrap() > 0);
    } else {
        // A state-of-the-world client loses the old backend a moment before its routes change.
        requests.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_of_the_world_gateway_outlives_its_control_plane() {
    outlives_its_control_plane(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delta_gateway_outlives_its_control_plane() {
    outlives_its_control_plane(true).await;
}

async fn comes_back_to_the_same(delta: bool) {
    let (one, two) = (backend("one").await, backend("two").await);
    let described = |backend| build(&gateway(backend, vec![noop_filter("preset", "first")])).unwrap();
    let first = ControlPlane::start(Vec::new()).await;
    let address = first.address;
    first.hub.publish(described(one));
    let envoy = Envoy::start(address, delta).await;
    let listener = envoy.listener().await;
    until("the first answer", async || get(listener, "any.test", "/").await.filter(|answer| answer.0 == 200)).await;
    settled(&first.hub).await;
    first.stop().await;

    // Another one with the same entities: nothing is sent again.
    let next = ControlPlane::start_at(address, Vec::new()).await;
    next.hub.publish(described(one));
    until("the gateway is back", async || (node(&next.hub).connected && !node(&next.hub).behind).then_some(())).await;
    assert_eq!(get(listener, "any.test", "/").await, Some((200, "one".into())));
    // Another backend changes clusters and routes; all that was sent before it would show beside them.
    next.hub.publish(described(two));
    until("the new backend", async || get(listener, "any.test", "/").await.filter(|answer| answer.1 == "two")).await;
    until("it has all", async || (!node(&next.hub).behind).then_some(())).await;
    for (kind, sent) in [(Kind::Cluster, true), (Kind::Route, true), (Kind::Listener, false), (Kind::Extension, false)]
    {
        let status = of_kind(&next.hub, kind);
        assert_eq!(!status.sent_version.is_empty(), sent, "{}: {status:?}", kind.word());
        assert_eq!(status.sent_version, status.acked_version);
    }
    let (_, clusters) = get(envoy.admin, "localhost", "/clusters").await.unwrap();
    assert!(!clusters.contains(&one.to_string()) && clusters.contains(&two.to_string()), "{clusters}");
    // A new Envoy, which holds nothing, is told everything.
    let fresh = Envoy::start(address, delta).await;
    let listener = fresh.listener().await;
    until("its first answer", async || get(listener, "any.test", "/").await.filter(|answer| answer.1 == "two")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_of_the_world_gateway_that_comes_back_is_sent_nothing_again() {
    comes_back_to_the_same(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delta_gateway_that_comes_back_is_sent_nothing_again() {
    comes_back_to_the_same(true).await;
}

async fn a_listener_goes_and_comes_back(delta: bool) {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let hub = &control_plane.hub;
    let served = backend("served").await;
    let described = build(&gateway(served, vec![noop_filter("preset", "first")])).unwrap();
    hub.publish(described.clone());
    let envoy = Envoy::start(control_plane.address, delta).await;
    envoy.listener().await;
    settled(hub).await;
    let mut without = described.clone();
    assert!(without.remove(Kind::Listener, xds::resources::NAME));
    hub.publish(without);
    let listeners = async || get(envoy.admin, "localhost", "/listeners").await.map(|(_, text)| text.trim().to_owned());
    until("the listener is gone", async || listeners().await.filter(String::is_empty)).await;
    // Its routes and its filter are asked for anew, and have not changed.
    hub.publish(described);
    let listener = envoy.listener().await;
    until("an answer", async || get(listener, "any.test", "/").await.filter(|answer| answer.1 == "served")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_goes_and_comes_back_by_state_of_the_world() {
    a_listener_goes_and_comes_back(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_goes_and_comes_back_by_delta() {
    a_listener_goes_and_comes_back(true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_and_paths_lead_where_they_should() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let (one, two) = (backend("one").await, backend("two").await);
    let mut gateway = gateway(one, vec![noop_filter("preset", "x")]);
    let mut special: RouteInput = gateway.routes[0].clone();
    special.id = "r2".into();
    special.envoy_route = "r2".into();
    special.hosts = vec!["API.example.com".into()];
    special.paths = vec!["/v1".into()];
    special.backend.as_mut().unwrap().port = two.port();
    gateway.routes.push(special);
    gateway.routes[0].paths = vec!["/v1/deep".into(), "/open".into()];
    control_plane.hub.publish(build(&gateway).unwrap());
    let envoy = Envoy::start(control_plane.address, true).await;
    let listener = envoy.listener().await;
    until("the first answer", async || get(listener, "x", "/open").await.filter(|answer| answer.0 == 200)).await;
    for (host, path, expected) in [
        ("api.example.com", "/v1/x", Some("two")),
        ("api.example.com:8080", "/v1", Some("two")),
        // The host's own route comes before those for any host, however long their prefix is.
        ("api.example.com", "/v1/deep", Some("two")),
        ("api.example.com", "/open", Some("one")),
        ("other.example.com", "/v1/deep", Some("one")),
        ("other.example.com", "/v1", None),
        ("api.example.com", "//open/../v1/", Some("two")),
    ] {
        let answer = get(listener, host, path).await.unwrap();
        match expected {
            Some(text) => assert_eq!(answer, (200, text.into()), "{host}{path}"),
            None => assert_eq!(answer.0, 404, "{host}{path}"),
        }
    }
    // Limits: a path of 60 KB and 900 headers reach the backend.
    let long = format!("/open/{}", "a".repeat(60_000));
    assert_eq!(get(listener, "x", &long).await.unwrap().0, 200);
    let many: String = (0..900).map(|number| format!("x-{number}: 1\r\n")).collect();
    let answer = get(listener, &format!("x\r\n{}", many.trim_end()), "/open").await.unwrap();
    assert_eq!(answer, (200, "one".into()));
}

/// Envoy waits for its clusters before it goes on to its listeners, even where there are none.
async fn listens_without_routes(delta: bool) {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let one = backend("one").await;
    let mut without = gateway(one, vec![noop_filter("preset", "first")]);
    without.routes.clear();
    control_plane.hub.publish(build(&without).unwrap());
    let envoy = Envoy::start(control_plane.address, delta).await;
    let listener = envoy.listener().await;
    until("an answer", async || get(listener, "any.test", "/").await.filter(|answer| answer.0 == 404)).await;
    settled(&control_plane.hub).await;
    // And the first route comes.
    control_plane.hub.publish(build(&gateway(one, vec![noop_filter("preset", "first")])).unwrap());
    until("the backend", async || get(listener, "any.test", "/").await.filter(|answer| answer.1 == "one")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn state_of_the_world_listens_without_routes() {
    listens_without_routes(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn delta_listens_without_routes() {
    listens_without_routes(true).await;
}
