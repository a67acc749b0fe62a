//! What the control plane believes of a node: that it is who its token or certificate says, and bans of its own callers.

use crate::xds_support;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use crate::link_support::{Worker, plain, secure};
use crate::tls_support::{Issued as Certificate, Pki, connector};
use crate::xds_support::{ControlPlane, until};
use entities::EntityService;
use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use events::Exporter;
use fabric::Fabric;
use link::NodePort;
use listen::NodeTokens;
use serde_json::{Value, json};
use snapshot::{BanChange, BanRequest, KeptTable, KeptTables, LoadReport, Up};
use store::fabric::{Ban, FabricStore as _, Issued, Note};
use store::{SqliteOptions, SqliteStore, Store};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request};

const HOUR: u64 = 3_600_000;

fn now() -> u64 {
    base::clock::now_millis()
}

fn load(node: &str) -> Up {
    let load = LoadReport { filter: "preset".into(), version: "v".into(), ..LoadReport::default() };
    Up { node: node.into(), loads: vec![load], ..Up::default() }
}

fn event(node: &str) -> Vec<u8> {
    let event = json!({
        "@type": "SvcSecurityEvent", "@timestamp": base::clock::rfc3339(now()),
        "event": { "category": "threat", "action": "deny", "outcome": "blocked" },
        "source": { "ip": "192.0.2.9" }, "threat": { "score": 95 }, "route": { "id": "r", "node": node },
    });
    event.to_string().into_bytes()
}

fn port(folder: &Path, tokens: &str) -> NodePort {
    let file = folder.join("tokens");
    std::fs::write(&file, tokens).unwrap();
    NodePort { tokens: Some(Arc::new(NodeTokens::open(file).unwrap())), ..NodePort::default() }
}

const TOKENS: &str = "node=edge-1 first-token-0123456789\nnode=core-* second-token-0123456789\nshared-token-0123456789\n\
     node=pod-* derive=one-secret-0123456789\n";

/// The nodes that are known, and whether each is who it says by more than its word.
fn nodes(control_plane: &ControlPlane) -> Vec<(String, bool)> {
    control_plane.hub.nodes().into_iter().map(|node| (node.id, node.bound)).collect()
}

#[tokio::test]
async fn a_token_speaks_for_its_own_nodes_alone() {
    let folder = tempfile::tempdir().unwrap();
    let control_plane = ControlPlane::start_with(port(folder.path(), TOKENS), Vec::new()).await;
    let channel = plain(control_plane.address).await;
    let (first, second, shared) =
        (Some("first-token-0123456789"), Some("second-token-0123456789"), Some("shared-token-0123456789"));
    for (token, claimed) in [(first, "edge-2"), (first, "core-1"), (second, "edge-1"), (second, "core")] {
        let worker = Worker::admitted(channel.clone(), token).await;
        worker.say(load(claimed)).await;
        assert_eq!(worker.end().await, Code::PermissionDenied, "{claimed}");
    }
    // Who is for several must say which it is.
    let worker = Worker::admitted(channel.clone(), second).await;
    worker.say(load("")).await;
    assert_eq!(worker.end().await, Code::InvalidArgument);
    assert_eq!(nodes(&control_plane), [], "nothing that they said was taken");
    let mut open = Vec::new();
    for (token, claimed) in [(first, ""), (second, "core-1"), (shared, "shared-1")] {
        let worker = Worker::admitted(channel.clone(), token).await;
        worker.say(load(claimed)).await;
        open.push(worker);
    }
    let derived = listen::NodeTokens::derived(b"one-secret-0123456789", "pod-7");
    let worker = Worker::admitted(channel.clone(), Some(&derived)).await;
    worker.say(load("pod-8")).await;
    assert_eq!(worker.end().await, Code::PermissionDenied);
    let worker = Worker::admitted(channel.clone(), Some(&derived)).await;
    worker.say(load("")).await;
    open.insert(0, worker);
    // What is for several is no more than their word.
    let expected = [("core-1", false), ("edge-1", true), ("pod-7", true), ("shared-1", false)];
    let expected = expected.map(|(node, bound)| (node.to_owned(), bound));
    until("the nodes", async || (nodes(&control_plane) == expected).then_some(())).await;
    // A stream is one node's, whatever lets it in.
    let worker = open.pop().unwrap();
    worker.say(load("edge-1")).await;
    assert_eq!(worker.end().await, Code::PermissionDenied);
}

#[tokio::test]
async fn xds_is_served_to_the_node_of_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let control_plane = ControlPlane::start_with(port(folder.path(), TOKENS), Vec::new()).await;
    let backend = xds_support::backend("one").await;
    control_plane.hub.publish(xds::resources::build(&xds_support::gateway(backend, Vec::new())).unwrap());
    let mut client = AggregatedDiscoveryServiceClient::new(plain(control_plane.address).await);
    let request = |id: &str| {
        let (sender, receiver) = mpsc::channel(1);
        let first = DeltaDiscoveryRequest {
            node: Some(Node { id: id.into(), ..Node::default() }),
            type_url: xds::Kind::Cluster.type_url().into(),
            ..DeltaDiscoveryRequest::default()
        };
        sender.try_send(first).unwrap();
        // Held open as long as the test runs.
        std::mem::forget(sender);
        let mut request = Request::new(ReceiverStream::new(receiver));
        request.metadata_mut().insert("authorization", "Bearer first-token-0123456789".parse().unwrap());
        request
    };
    let mut refused = client.delta_aggregated_resources(request("edge-2")).await.unwrap().into_inner();
    assert_eq!(refused.message().await.unwrap_err().code(), Code::PermissionDenied);
    assert_eq!(nodes(&control_plane), []);
    let mut taken = client.delta_aggregated_resources(request("edge-1")).await.unwrap().into_inner();
    assert!(!taken.message().await.unwrap().unwrap().resources.is_empty());
    assert_eq!(nodes(&control_plane), [("edge-1".to_owned(), true)]);
}

#[tokio::test]
async fn a_certificate_speaks_for_the_nodes_that_it_names() {
    let pki = Pki::new();
    let (tls, gateways) = (Some(Arc::clone(&pki.kept)), &pki.gateways);
    let edge = gateways.issue("edge-1.example");
    let link = async |address: SocketAddr, certificate: &Certificate| {
        let tls = connector(&pki.servers, Some(certificate), &["h2"]);
        Worker::admitted(secure(address, tls).await.unwrap(), None).await
    };
    let strict = ControlPlane::start_with(NodePort { tls: tls.clone(), ..NodePort::default() }, Vec::new()).await;
    let worker = link(strict.address, &edge).await;
    worker.say(load("edge-2.example")).await;
    assert_eq!(worker.end().await, Code::PermissionDenied);
    let worker = link(strict.address, &edge).await;
    worker.say(load("edge-1.example")).await;
    let expected = [("edge-1.example".to_owned(), true)];
    until("the node", async || (nodes(&strict) == expected).then_some(())).await;
    let wide = gateways.issue("*.edges.example");
    let worker = link(strict.address, &wide).await;
    worker.say(load("a.edges.example")).await;
    let expected = ("a.edges.example".to_owned(), false);
    until("the other", async || nodes(&strict).contains(&expected).then_some(())).await;
    // Where many share one, and the operator says so.
    let port = NodePort { tls, shared_certificates: true, ..NodePort::default() };
    let lax = ControlPlane::start_with(port, Vec::new()).await;
    let worker = link(lax.address, &edge).await;
    worker.say(load("edge-2.example")).await;
    let expected = [("edge-2.example".to_owned(), false)];
    until("the node", async || (nodes(&lax) == expected).then_some(())).await;
}

#[tokio::test]
async fn events_are_those_of_the_node_that_sends_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("events.jsonl");
    let port = port(folder.path(), TOKENS);
    let control_plane = ControlPlane::start_with(port, vec![Exporter::File(file.clone())]).await;
    let worker = Worker::admitted(plain(control_plane.address).await, Some("first-token-0123456789")).await;
    worker.say(Up { node: "edge-1".into(), events: vec![event("core-1")], ..Up::default() }).await;
    let written = until("the event", async || {
        let text = std::fs::read_to_string(&file).ok()?;
        serde_json::from_str::<Value>(text.lines().next()?).ok()
    })
    .await;
    assert_eq!(written["route"], json!({"id": "r", "node": "edge-1"}), "{written}");
    let (incident, _) = &control_plane.events.incidents_since(0)[0];
    assert_eq!((&*incident.node, incident.nodes.as_slice()), ("edge-1", &["edge-1".into()][..]));
}

/// A control plane over a store, whose longest ban is an hour.
async fn stored(folder: &Path) -> (ControlPlane, Arc<SqliteStore>) {
    let store = Arc::new(SqliteStore::open(folder, SqliteOptions::default()).unwrap());
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let control_plane = ControlPlane::start_over(NodePort::default(), any, Vec::new(), Arc::clone(&store)).await;
    (control_plane, store)
}

fn ask(key: &str, until_millis: u64) -> BanRequest {
    let issued_at_millis = now();
    BanRequest { key: key.into(), until_millis, reason: "tier".into(), issued_at_millis, ..BanRequest::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_bans_no_range_and_not_for_longer_than_any_policy_does() {
    let folder = tempfile::tempdir().unwrap();
    let (control_plane, store) = stored(folder.path()).await;
    let range = Ban { until: now() + HOUR, by_hand: true, issued_by: "alice".into(), ..Ban::default() };
    let range = Ban { key: "ip:10.0.0.0/8".into(), ..range };
    assert!(matches!(store.ban_issue(range, now()).await.unwrap(), Issued::Live(_)));
    let mut worker = Worker::admitted(plain(control_plane.address).await, None).await;
    assert_eq!(worker.bans().await.len(), 1, "what stands");
    let until = now() + 1000 * HOUR;
    let refused =
        ["ip:0.0.0.0/1", "ip:10.0.0.0/8", "ip:2001:db8::/32", "ip:2001:db8::/48", "ip:2001:db8::/63", "no-identity"];
    let mut bans: Vec<BanRequest> = refused.iter().map(|key| ask(key, until)).collect();
    bans.extend(["ip:192.0.2.1", "ip:2001:db8:1:2::/64", "ip:2001:db8:1:3::7"].map(|key| ask(key, until)));
    bans.push(ask("ip:192.0.2.2", now() - 1));
    worker.say(Up { node: "n1".into(), bans, ..Up::default() }).await;
    let told = worker.bans().await;
    let keys: Vec<&str> = told.iter().map(|change| change.key.as_str()).collect();
    assert_eq!(keys, ["ip:192.0.2.1", "ip:2001:db8:1:2::/64", "ip:2001:db8:1:3::/64"], "nothing else is told");
    assert!(told.iter().all(|change| change.until_millis <= now() + HOUR && change.until_millis > now()), "{told:?}");
    let there: Vec<String> = store.bans(now()).await.unwrap().into_iter().map(|ban| ban.key).collect();
    assert_eq!(there.len(), 4, "{there:?}");
    assert!(store.bans(now()).await.unwrap().iter().all(|ban| ban.until <= now() + HOUR));
}

#[tokio::test]
async fn ids_of_nodes_and_what_they_report_have_bounds() {
    let control_plane = ControlPlane::start_with(NodePort::default(), Vec::new()).await;
    let channel = plain(control_plane.address).await;
    let long = "x".repeat(257);
    for id in ["", "a b", "a\nb", "a\u{7f}", "g\u{fc}nther", long.as_str()] {
        let worker = Worker::admitted(channel.clone(), None).await;
        worker.say(load(id)).await;
        assert_eq!(worker.end().await, Code::InvalidArgument, "{id:?}");
        let mut client = AggregatedDiscoveryServiceClient::new(channel.clone());
        let (sender, receiver) = mpsc::channel(1);
        let node = Some(Node { id: id.into(), ..Node::default() });
        sender.try_send(DeltaDiscoveryRequest { node, ..DeltaDiscoveryRequest::default() }).unwrap();
        let mut refused = client.delta_aggregated_resources(ReceiverStream::new(receiver)).await.unwrap().into_inner();
        assert_eq!(refused.message().await.unwrap_err().code(), Code::InvalidArgument, "{id:?}");
    }
    assert_eq!(nodes(&control_plane), []);
    // The control plane keeps what each worker has said of its tables last.
    let table = |name: usize, state: usize, refused: usize| KeptTable {
        name: "n".repeat(name),
        state: vec![0; state],
        refused: "r".repeat(refused),
        ..KeptTable::default()
    };
    let most = vec![table(128, 32, 1024); 64];
    for (wrong, tables) in [
        ("tables", vec![table(1, 0, 0); 65]),
        ("a name", vec![table(129, 0, 0)]),
        ("a state", vec![table(1, 31, 0)]),
        ("a state", vec![table(1, 33, 0)]),
        ("a reason", vec![table(1, 0, 1025)]),
        ("anything", most),
    ] {
        let worker = Worker::admitted(channel.clone(), None).await;
        worker.say(Up { node: "n".into(), tables: Some(KeptTables { tables }), ..Up::default() }).await;
        if wrong == "anything" {
            worker.say(load("n")).await;
            until("the node", async || control_plane.hub.nodes().pop()).await;
        } else {
            assert_eq!(worker.end().await, Code::InvalidArgument, "{wrong}");
        }
    }
    let id = "x".repeat(256);
    let worker = Worker::admitted(channel, None).await;
    let report = LoadReport {
        filter: "f".repeat(1 << 20),
        version: "v".repeat(1 << 20),
        error: "e".repeat(1 << 20),
        ..LoadReport::default()
    };
    worker.say(Up { node: id.clone(), loads: vec![report], ..Up::default() }).await;
    let node = until("the node", async || control_plane.hub.nodes().into_iter().find(|node| node.id == id)).await;
    let filter = &node.filters[0];
    assert_eq!((node.id, filter.filter.len(), filter.version.len(), filter.error.len()), (id, 256, 256, 4096));
}

#[tokio::test]
async fn a_ban_that_could_not_be_recorded_says_so() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let mut worker = Worker::admitted(plain(control_plane.address).await, None).await;
    control_plane.store.close().await.unwrap();
    let asked = ask("ip:192.0.2.1", now() + HOUR);
    worker.say(Up { node: "n1".into(), bans: vec![asked.clone()], ..Up::default() }).await;
    let told = worker.bans().await;
    // Nodes keep what they have of an operator beside it.
    let expected = BanChange {
        key: asked.key,
        until_millis: asked.until_millis,
        reason: asked.reason,
        unrecorded: true,
        ..BanChange::default()
    };
    assert_eq!(told, [expected]);
}

/// A denial, as a gateway reports it, of a caller of these parts.
fn denial(source: &Value, score: f64) -> Vec<u8> {
    let event = json!({
        "@type": "SvcSecurityEvent", "@timestamp": base::clock::rfc3339(now()), "source": source,
        "event": { "category": "threat", "action": "deny", "outcome": "blocked", "module": "x" },
        "threat": { "score": score }, "decision": { "enforced": true },
    });
    event.to_string().into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_bans_no_range_through_the_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let (control_plane, store) = stored(folder.path()).await;
    let entities = EntityService::open(Arc::clone(&store) as Arc<dyn Store>).await.unwrap();
    let (events, link) = (control_plane.events.clone(), control_plane.link.announcer().clone());
    let kept = Arc::clone(&store) as Arc<dyn Store>;
    let fabric = Fabric::new(kept, entities, events, link, Arc::new(base::clock::now_millis));
    tokio::spawn(fabric.keep_ledger());
    let mut worker = Worker::admitted(plain(control_plane.address).await, None).await;
    let refused = [
        json!({ "ip": "0.0.0.0/1" }),
        json!({ "ip": "192.0.2.0/24" }),
        json!({ "ip": "2001:db8::/48" }),
        json!({ "ip": "2001:db8::/64" }),
        json!({ "ip": "garbage1" }),
        json!({ "ip": "192.0.2.1", "user": "a\nb", "apikey": "x".repeat(129) }),
    ];
    let mut reports: Vec<Vec<u8>> = refused[..5].iter().map(|source| denial(source, 1000.0)).collect();
    // A network that is wider than those that callers are judged by is that of the address.
    reports.push(denial(&json!({ "ip": "2001:db8:7:7::1", "network": "2001:db8:7::/48" }), 1000.0));
    reports.push(denial(&refused[5], 1000.0));
    worker.say(Up { node: "edge-1".into(), events: reports, ..Up::default() }).await;
    let mut told = Vec::new();
    while told.len() < 2 {
        told.extend(worker.bans().await.into_iter().map(|change| change.key));
    }
    assert_eq!(told, ["ip:2001:db8:7:7::/64", "ip:192.0.2.1"]);
    let there = store.bans(now()).await.unwrap();
    let there: Vec<_> = there.iter().map(|ban| (ban.key.as_str(), ban.address.as_str(), ban.node.as_str())).collect();
    assert_eq!(there, [("ip:192.0.2.1", "192.0.2.1", "edge-1"), ("ip:2001:db8:7:7::/64", "2001:db8:7:7::1", "edge-1")]);
    assert_eq!(store.ledger_top(0, 10).await.unwrap(), [], "and no other identity is charged");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_asks_in_vain_ends_no_ban_that_stands() {
    let folder = tempfile::tempdir().unwrap();
    let (control_plane, store) = stored(folder.path()).await;
    let hand = |key: &str| Ban {
        key: key.into(),
        until: now() + HOUR,
        by_hand: true,
        issued_by: "alice".into(),
        ..Ban::default()
    };
    store.ban_issue(hand("ip:2001:db8:1:2::/64"), now()).await.unwrap();
    let ours = store::fabric::Allowance { key: "ip:2001:db8:1:2::9".into(), added_at: now(), ..Default::default() };
    store.allow(ours, "", false, Note::none()).await.unwrap();
    let mut worker = Worker::admitted(plain(control_plane.address).await, None).await;
    // Who is allowed comes first.
    while worker.bans().await.is_empty() {}
    let asked = BanRequest { address: "2001:db8:1:2::9".into(), ..ask("ip:2001:db8:1:2::/64", now() + HOUR) };
    worker.say(Up { node: "n1".into(), bans: vec![asked], ..Up::default() }).await;
    let told = worker.bans().await;
    assert!(told[0].until_millis > now() && told[0].hand_until_millis > now(), "{told:?}");
    // One that stands nowhere is to be let go.
    let asked = BanRequest { address: "2001:db8:1:2::9".into(), ..ask("user:ada", now() + HOUR) };
    worker.say(Up { node: "n1".into(), bans: vec![asked], ..Up::default() }).await;
    let told = worker.bans().await;
    assert_eq!((told[0].key.as_str(), told[0].until_millis), ("user:ada", 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_neighbours_is_banned_as_one_on_every_node() {
    let folder = tempfile::tempdir().unwrap();
    let (control_plane, store) = stored(folder.path()).await;
    let mut worker = Worker::admitted(plain(control_plane.address).await, None).await;
    let net = |number: u32| ask(&format!("ip:2001:db8:1:{number:x}::/64"), now() + HOUR);
    worker.say(Up { node: "n1".into(), bans: (0..7).map(net).collect(), ..Up::default() }).await;
    assert_eq!(worker.bans().await.len(), 7);
    worker.say(Up { node: "n1".into(), bans: vec![net(7)], ..Up::default() }).await;
    let told: Vec<String> = worker.bans().await.into_iter().map(|change| change.key).collect();
    assert_eq!(told, ["ip:2001:db8:1:7::/64", "ip:2001:db8:1::/56"]);
    // Its audit note survives a crash: it is stored with the ban.
    let kept = store.kept_events(0).await.unwrap();
    assert!(kept.len() == 1 && kept[0].event.contains("ip:2001:db8:1::/56"), "{kept:?}");
}

/// A gateway that takes everything and refuses its listener, until it is told otherwise.
#[tokio::test]
async fn what_gateways_refuse_is_a_problem_until_they_take_it() {
    let control_plane = ControlPlane::start_with(NodePort::default(), Vec::new()).await;
    let backend = xds_support::backend("one").await;
    let publish = |filters| {
        let resources = xds::resources::build(&xds_support::gateway(backend, filters)).unwrap();
        control_plane.hub.publish(resources);
    };
    publish(Vec::new());
    let mut client = AggregatedDiscoveryServiceClient::new(plain(control_plane.address).await);
    let (sender, receiver) = mpsc::channel(4);
    let listeners = || DeltaDiscoveryRequest {
        node: Some(Node { id: "edge-1".into(), ..Node::default() }),
        type_url: xds::Kind::Listener.type_url().into(),
        ..DeltaDiscoveryRequest::default()
    };
    sender.send(listeners()).await.unwrap();
    let stream = client.delta_aggregated_resources(ReceiverStream::new(receiver)).await.unwrap();
    let mut stream = stream.into_inner();
    let look = || {
        palisade::health::look_at_nodes(&control_plane.hub, &control_plane.events);
        control_plane.events.troubles()
    };
    let answer = stream.message().await.unwrap().unwrap();
    assert_eq!(look(), [], "it has not said anything yet");
    let why = "unable to open file '/no/such/dir/x'";
    let refusal = envoy_types::pb::google::rpc::Status { code: 13, message: why.into(), ..Default::default() };
    let refused = DeltaDiscoveryRequest { response_nonce: answer.nonce, error_detail: Some(refusal), ..listeners() };
    sender.send(refused).await.unwrap();
    let troubles = until("the problem", async || Some(look()).filter(|troubles| !troubles.is_empty())).await;
    let [trouble] = troubles.as_slice() else { panic!("{troubles:?}") };
    assert_eq!((trouble.part.as_str(), trouble.subject.as_str()), ("nodes", "refusals"));
    assert!(trouble.reason.contains("edge-1 (") && trouble.reason.contains(why), "{trouble:?}");
    // What comes next is taken.
    let filter = xds_support::noop_filter("preset", "two");
    publish(vec![filter]);
    let answer = stream.message().await.unwrap().unwrap();
    sender.send(DeltaDiscoveryRequest { response_nonce: answer.nonce, ..listeners() }).await.unwrap();
    until("it is over", async || look().is_empty().then_some(())).await;
    // Who refuses and goes away is not counted.
    let refusal = envoy_types::pb::google::rpc::Status { code: 13, message: why.into(), ..Default::default() };
    publish(Vec::new());
    let answer = stream.message().await.unwrap().unwrap();
    let refused = DeltaDiscoveryRequest { response_nonce: answer.nonce, error_detail: Some(refusal), ..listeners() };
    sender.send(refused).await.unwrap();
    until("it refuses", async || (!look().is_empty()).then_some(())).await;
    drop((sender, stream));
    until("it is gone", async || look().is_empty().then_some(())).await;
}
