//! Groups of gateways, and those that take filters alone: over gRPC, and with a real Envoy whose listener is its own.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::xds_support::{ControlPlane, Envoy, backend, gateway, get, noop_filter, until};
use entities::Delivery;
use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use envoy_types::pb::envoy::service::extension::v3::extension_config_discovery_service_client::ExtensionConfigDiscoveryServiceClient;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use xds::bootstrap::{BootstrapInput, bootstrap};
use xds::resources::build;
use xds::{Hub, Kind, NodeStatus, ResourceSet};

const FILTER: &str = "palisade.preset";

fn set(text: &str, ecds_only: bool) -> ResourceSet {
    let mut gateway = gateway(([127, 0, 0, 1], 80).into(), vec![noop_filter("preset", text)]);
    gateway.ecds_only = ecds_only;
    build(&gateway).unwrap()
}

fn publish(hub: &Hub, default: &str, europe: &str) {
    hub.publish_groups(set(default, false), BTreeMap::from([("eu".to_owned(), set(europe, false))]));
}

fn node(id: &str, cluster: &str) -> Option<Node> {
    Some(Node { id: id.into(), cluster: cluster.into(), ..Node::default() })
}

fn status(hub: &Hub, id: &str) -> NodeStatus {
    hub.nodes().into_iter().find(|node| node.id == id).unwrap_or_default()
}

/// A delta client that takes everything.
struct Client {
    node: Option<Node>,
    requests: mpsc::Sender<DeltaDiscoveryRequest>,
    responses: Streaming<DeltaDiscoveryResponse>,
}

impl Client {
    /// Opens an aggregated stream, or with `alone` one for filters.
    async fn open(address: SocketAddr, node: Option<Node>, alone: bool) -> Client {
        let (requests, receiver) = mpsc::channel(8);
        let (url, receiver) = (format!("http://{address}"), ReceiverStream::new(receiver));
        let first = DeltaDiscoveryRequest {
            node: node.clone(),
            type_url: if alone { String::new() } else { Kind::Extension.type_url().into() },
            resource_names_subscribe: vec![FILTER.into()],
            ..DeltaDiscoveryRequest::default()
        };
        requests.send(first).await.unwrap();
        let responses = if alone {
            let mut client = ExtensionConfigDiscoveryServiceClient::connect(url).await.unwrap();
            client.delta_extension_configs(receiver).await
        } else {
            let mut client = AggregatedDiscoveryServiceClient::connect(url).await.unwrap();
            client.delta_aggregated_resources(receiver).await
        };
        Client { node, requests, responses: responses.unwrap().into_inner() }
    }

    /// Takes the next response; gives its kind and the versions in it.
    async fn take(&mut self) -> (Kind, Vec<String>) {
        let response = self.responses.message().await.unwrap().expect("the stream has ended");
        let kind = Kind::of_type_url(&response.type_url).unwrap();
        let answer = DeltaDiscoveryRequest { response_nonce: response.nonce, ..self.request(kind) };
        self.requests.send(answer).await.unwrap();
        (kind, response.resources.into_iter().map(|resource| resource.version).collect())
    }

    fn request(&self, kind: Kind) -> DeltaDiscoveryRequest {
        DeltaDiscoveryRequest { node: self.node.clone(), type_url: kind.type_url().into(), ..Default::default() }
    }

    async fn ask(&self, kind: Kind) {
        self.requests.send(self.request(kind)).await.unwrap();
    }
}

#[tokio::test]
async fn what_changes_in_one_group_is_sent_to_no_other() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let hub = &control_plane.hub;
    publish(hub, "default", "europe");
    let mut europe = Client::open(control_plane.address, node("e", "eu"), false).await;
    let mut rest = Client::open(control_plane.address, node("r", "palisade"), false).await;
    let (first, of_rest) = (europe.take().await, rest.take().await);
    assert_ne!(first, of_rest);
    until("both have all", async || (!status(hub, "e").behind && !status(hub, "r").behind).then_some(())).await;
    let (e, r) = (status(hub, "e"), status(hub, "r"));
    assert_eq!((e.group.as_str(), e.cluster.as_str(), e.known_group), ("eu", "eu", true));
    assert_eq!((r.group.as_str(), r.cluster.as_str(), r.known_group), ("default", "palisade", false));

    publish(hub, "default", "europe, changed");
    assert_ne!(europe.take().await, first);
    // Requests are handled in order, so what comes next shows that nothing was sent before.
    rest.ask(Kind::Cluster).await;
    assert_eq!(rest.take().await.0, Kind::Cluster);
    until("it has all", async || (!status(hub, "r").behind).then_some(())).await;

    // A group that is gone: its gateways are given the default.
    hub.publish(set("default", false));
    assert_eq!(europe.take().await, of_rest);
    assert_eq!(status(hub, "e").group, "default");
    assert!(!status(hub, "e").known_group);
}

/// What the default group and `eu` come to.
fn outcomes(default: &str, europe: Result<&str, &str>) -> BTreeMap<String, Result<ResourceSet, Vec<String>>> {
    let europe = europe.map(|text| set(text, false)).map_err(|reason| vec![reason.to_owned()]);
    BTreeMap::from([("default".to_owned(), Ok(set(default, false))), ("eu".to_owned(), europe)])
}

#[tokio::test]
async fn a_group_that_cannot_be_published_keeps_what_it_has_and_holds_up_no_other() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let hub = &control_plane.hub;
    hub.publish_each(6, outcomes("one", Ok("europe")));
    let mut europe = Client::open(control_plane.address, node("e", "eu"), false).await;
    let mut rest = Client::open(control_plane.address, node("r", ""), false).await;
    let (first, of_rest) = (europe.take().await, rest.take().await);
    until("both have all", async || (!status(hub, "e").behind && !status(hub, "r").behind).then_some(())).await;

    hub.publish_each(7, outcomes("two", Err("route \"x\": no such host")));
    assert_ne!(rest.take().await, of_rest);
    // Requests are handled in order, so what comes next shows that nothing was sent before.
    europe.ask(Kind::Cluster).await;
    assert_eq!(europe.take().await.0, Kind::Cluster);
    let e = until("it has all of the last good version", async || Some(status(hub, "e")).filter(|e| !e.behind)).await;
    assert_eq!((e.group.as_str(), e.known_group), ("eu", true));
    let failure = e.not_published.unwrap();
    assert_eq!(failure.reasons, ["route \"x\": no such host"]);
    assert_eq!(status(hub, "r").not_published, None);
    hub.publish_each(8, outcomes("two", Err("another reason")));
    let publication = hub.publication_status();
    assert_eq!(publication.revision, 8);
    let [default, eu] = &publication.groups[..] else { panic!("{publication:?}") };
    assert_eq!((default.revision, &default.failure), (Some(8), &None));
    let lasting = eu.failure.clone().unwrap();
    assert_eq!(
        (eu.revision, lasting.since, lasting.reasons),
        (Some(6), failure.since, vec!["another reason".to_owned()])
    );

    hub.publish_each(9, outcomes("two", Ok("europe, mended")));
    assert_ne!(europe.take().await, first);
    assert_eq!(status(hub, "e").not_published, None);
}

#[tokio::test]
async fn a_group_that_was_never_published_is_not_served_what_others_are() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let hub = &control_plane.hub;
    hub.publish_each(1, outcomes("one", Err("no")));
    let mut rest = Client::open(control_plane.address, node("r", ""), false).await;
    let of_rest = rest.take().await;
    let mut europe = Client::open(control_plane.address, node("e", "eu"), false).await;
    let e = until("it is known", async || Some(status(hub, "e")).filter(|node| node.connected)).await;
    assert_eq!((e.group.as_str(), e.known_group, e.behind), ("eu", true, false));
    assert_eq!(hub.publication_status().groups[1].revision, None);
    hub.publish_each(2, outcomes("one", Ok("europe")));
    let first = europe.take().await;
    assert_eq!(first.0, Kind::Extension);
    assert_ne!(first, of_rest, "the first that it is sent is its own");

    // The default group as well.
    let other = ControlPlane::start(Vec::new()).await;
    let mut both = outcomes("one", Ok("europe"));
    both.insert("default".to_owned(), Err(vec!["no".to_owned()]));
    other.hub.publish_each(1, both);
    let mut europe = Client::open(other.address, node("e", "eu"), false).await;
    assert_eq!(europe.take().await, first);
    let mut rest = Client::open(other.address, node("r", ""), false).await;
    until("it is known", async || status(&other.hub, "r").connected.then_some(())).await;
    other.hub.publish_each(2, outcomes("one", Ok("europe")));
    assert_eq!(rest.take().await, of_rest);
}

#[tokio::test]
async fn a_node_is_behind_until_it_has_taken_everything() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let hub = &control_plane.hub;
    publish(hub, "one", "one");
    let mut client = Client::open(control_plane.address, node("e", "eu"), false).await;
    let response = client.responses.message().await.unwrap().unwrap();
    until("it is behind", async || status(hub, "e").behind_since).await;
    let answer = DeltaDiscoveryRequest { response_nonce: response.nonce, ..client.request(Kind::Extension) };
    client.requests.send(answer).await.unwrap();
    until("it has all", async || (!status(hub, "e").behind).then_some(())).await;
    // At once, before any stream has sent anything.
    publish(hub, "one", "two");
    let since = status(hub, "e").behind_since.expect("it cannot have the change yet");
    let refused = client.responses.message().await.unwrap().unwrap();
    let error = envoy_types::pb::google::rpc::Status { message: "no".into(), ..Default::default() };
    let answer = DeltaDiscoveryRequest {
        response_nonce: refused.nonce,
        error_detail: Some(error),
        ..client.request(Kind::Extension)
    };
    client.requests.send(answer).await.unwrap();
    until("the refusal", async || status(hub, "e").types[0].nack.clone()).await;
    assert_eq!(status(hub, "e").behind_since, Some(since));
    drop(client);
    until("it is gone", async || (!status(hub, "e").connected).then_some(())).await;
    assert!(status(hub, "e").behind);
    // It comes back and takes what is served now.
    let mut client = Client::open(control_plane.address, node("e", "eu"), false).await;
    client.take().await;
    until("it has all", async || (!status(hub, "e").behind).then_some(())).await;
    // What was served to it when it went is what is served now; a change while it is away is one that it lacks.
    drop(client);
    until("it is gone", async || (!status(hub, "e").connected).then_some(())).await;
    assert!(!status(hub, "e").behind);
    publish(hub, "one", "three");
    assert!(status(hub, "e").behind);
}

#[tokio::test]
async fn filters_are_served_alone_and_nothing_is_said_of_the_rest() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let hub = &control_plane.hub;
    let groups = |text: &str| BTreeMap::from([("mesh".to_owned(), set(text, true))]);
    hub.publish_groups(set("default", false), groups("one"));
    let mut aggregated = Client::open(control_plane.address, node("a", "mesh"), false).await;
    assert_eq!(aggregated.take().await.0, Kind::Extension);
    for kind in [Kind::Cluster, Kind::Listener, Kind::Route] {
        aggregated.ask(kind).await;
    }
    until("its wishes are known", async || (status(hub, "a").not_served.len() == 3).then_some(())).await;
    hub.publish_groups(set("default", false), groups("two"));
    assert_eq!(aggregated.take().await.0, Kind::Extension, "nothing was said of what is somebody else's");
    until("it has all", async || (!status(hub, "a").behind).then_some(())).await;
    assert_eq!(status(hub, "a").delivery, Delivery::Ecds);

    // On a stream of its own, which need not name the type; of a group with everything as well.
    for cluster in ["mesh", ""] {
        let id = format!("alone-{cluster}");
        let mut alone = Client::open(control_plane.address, node(&id, cluster), true).await;
        assert_eq!(alone.take().await.0, Kind::Extension);
        until("it has all", async || (!status(hub, &id).behind && status(hub, &id).connected).then_some(())).await;
        assert!(status(hub, &id).not_served.is_empty());
        alone.ask(Kind::Listener).await;
        let refused = alone.responses.message().await.unwrap_err();
        assert!(refused.message().contains(Kind::Listener.type_url()), "{refused:?}");
    }

    // State of the world.
    let url = format!("http://{}", control_plane.address);
    let mut client = ExtensionConfigDiscoveryServiceClient::connect(url).await.unwrap();
    let first = DiscoveryRequest {
        node: node("s", "mesh"),
        resource_names: vec![FILTER.into()],
        ..DiscoveryRequest::default()
    };
    let (requests, receiver) = mpsc::channel(1);
    requests.send(first).await.unwrap();
    let mut responses = client.stream_extension_configs(ReceiverStream::new(receiver)).await.unwrap().into_inner();
    let response: DiscoveryResponse = responses.message().await.unwrap().unwrap();
    assert_eq!((response.resources.len(), response.type_url.as_str()), (1, Kind::Extension.type_url()));
}

/// An Envoy whose listener, route and cluster stand in its bootstrap, with a filter from here.
fn own_listener(control_plane: SocketAddr, backend: SocketAddr, delta: bool) -> Value {
    let mut document = bootstrap(&BootstrapInput {
        node_id: "own-listener".into(),
        node_cluster: "mesh".into(),
        admin: Some(("127.0.0.1".into(), 0)),
        control_plane: (control_plane.ip().to_string(), control_plane.port()),
        ..BootstrapInput::default()
    });
    document.as_object_mut().unwrap().remove("dynamic_resources");
    let source = json!({
        "resource_api_version": "V3",
        "api_config_source": {
            "api_type": if delta { "DELTA_GRPC" } else { "GRPC" },
            "transport_api_version": "V3",
            "grpc_services": [{ "envoy_grpc": { "cluster_name": "palisade-control-plane" } }],
        },
    });
    let manager = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "own",
        "route_config": { "virtual_hosts": [{ "name": "all", "domains": ["*"], "routes": [
            { "name": "r1", "match": { "prefix": "/" }, "route": { "cluster": "own" } },
        ] }] },
        "http_filters": [
            { "name": FILTER, "config_discovery": {
                "config_source": source,
                "type_urls": ["type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm"],
            } },
            { "name": "router", "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router" } },
        ],
    });
    let address = |address: SocketAddr| json!({ "socket_address": { "address": address.ip().to_string(), "port_value": address.port() } });
    let resources = &mut document["static_resources"];
    resources["listeners"] = json!([{
        "name": "own", "address": address(([127, 0, 0, 1], 0).into()),
        "filter_chains": [{ "filters": [{ "name": "http", "typed_config": manager }] }],
    }]);
    let cluster = json!({
        "name": "own", "type": "STATIC", "load_assignment": { "cluster_name": "own", "endpoints": [
            { "lb_endpoints": [{ "endpoint": { "address": address(backend) } }] },
        ] },
    });
    resources["clusters"].as_array_mut().unwrap().push(cluster);
    document
}

async fn an_own_listener_takes_a_filter(delta: bool) {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let hub = &control_plane.hub;
    let groups = |text: &str| BTreeMap::from([("mesh".to_owned(), set(text, true))]);
    hub.publish_groups(set("default", false), groups("one"));
    let served = backend("served").await;
    let envoy = Envoy::start_with(&own_listener(control_plane.address, served, delta)).await;
    let listener = envoy.listener().await;
    until("the first answer", async || get(listener, "any.test", "/").await.filter(|answer| answer.1 == "served"))
        .await;
    let taken = async |version: &str| {
        until("the filter is taken", async || {
            let node = status(hub, "own-listener");
            let taken = node.types.first()?.acked_version.clone();
            (!node.behind && taken != version).then_some(taken)
        })
        .await
    };
    let first = taken("").await;
    assert_eq!(status(hub, "own-listener").group, "mesh");
    assert_eq!(status(hub, "own-listener").types.len(), 1);
    hub.publish_groups(set("default", false), groups("two"));
    taken(&first).await;
    hub.publish_groups(set("default", false), groups("palisade-refuse-me"));
    let nack = until("the refusal", async || status(hub, "own-listener").types.first()?.nack.clone()).await;
    assert_eq!(nack.resources, [FILTER]);
    assert!(status(hub, "own-listener").behind);
    assert_eq!(get(listener, "any.test", "/").await, Some((200, "served".into())));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envoy_with_its_own_listener_takes_a_filter_by_state_of_the_world() {
    an_own_listener_takes_a_filter(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envoy_with_its_own_listener_takes_a_filter_by_delta() {
    an_own_listener_takes_a_filter(true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_gateway_has_stays_when_its_group_becomes_somebody_elses() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let hub = &control_plane.hub;
    let served = backend("served").await;
    let described = |text: &str, ecds_only: bool| {
        let mut described = gateway(served, vec![noop_filter("preset", text)]);
        described.ecds_only = ecds_only;
        build(&described).unwrap()
    };
    for (delta, text) in [(true, "delta"), (false, "state")] {
        hub.publish(described(text, false));
        let envoy = Envoy::start(control_plane.address, delta).await;
        let listener = envoy.listener().await;
        until("the first answer", async || get(listener, "any.test", "/").await.filter(|answer| answer.0 == 200)).await;
        hub.publish(described("only the filter", true));
        until("it has all", async || {
            let node = status(hub, "test-node");
            (!node.behind && node.not_served.len() == 3).then_some(())
        })
        .await;
        assert_eq!(get(listener, "any.test", "/").await, Some((200, "served".into())));
        drop(envoy);
        until("it is gone", async || (!status(hub, "test-node").connected).then_some(())).await;
    }
}
