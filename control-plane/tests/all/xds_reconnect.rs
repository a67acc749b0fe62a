//! ADS over gRPC without an Envoy: what a client that comes back is sent.

use crate::xds_support::{ControlPlane, gateway, noop_filter, until};
use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use envoy_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use xds::resources::build;
use xds::{Kind, ResourceSet};

struct Client {
    requests: mpsc::Sender<DeltaDiscoveryRequest>,
    responses: Streaming<DeltaDiscoveryResponse>,
}

impl Client {
    async fn connect(control_plane: &ControlPlane, first: DeltaDiscoveryRequest) -> Client {
        let mut client =
            AggregatedDiscoveryServiceClient::connect(format!("http://{}", control_plane.address)).await.unwrap();
        let (requests, receiver) = mpsc::channel(8);
        requests.send(first).await.unwrap();
        let responses = client.delta_aggregated_resources(ReceiverStream::new(receiver)).await.unwrap().into_inner();
        Client { requests, responses }
    }

    async fn next(&mut self) -> DeltaDiscoveryResponse {
        self.responses.message().await.unwrap().expect("the stream has ended")
    }
}

fn request(kind: Kind) -> DeltaDiscoveryRequest {
    let node = Node { id: "client".into(), ..Node::default() };
    DeltaDiscoveryRequest { node: Some(node), type_url: kind.type_url().into(), ..Default::default() }
}

fn set(text: &str) -> ResourceSet {
    build(&gateway(([127, 0, 0, 1], 80).into(), vec![noop_filter("preset", text)])).unwrap()
}

#[tokio::test]
async fn nothing_unchanged_is_sent_again() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    control_plane.hub.publish(set("one"));
    let mut first = request(Kind::Extension);
    first.resource_names_subscribe = vec!["palisade.preset".into()];
    let mut client = Client::connect(&control_plane, first.clone()).await;
    let response = client.next().await;
    assert_eq!(response.resources.len(), 1);
    let held = response.resources[0].version.clone();
    drop(client);

    // It comes back with what it holds, as it would to another control plane that compiled the same: the first thing that
    // it hears of is the next change.
    let other = ControlPlane::start(Vec::new()).await;
    other.hub.publish(set("one"));
    first.initial_resource_versions.insert("palisade.preset".into(), held.clone());
    let mut client = Client::connect(&other, first).await;
    // Requests are handled in order, so what comes first shows what was not sent for the one before.
    client.requests.send(request(Kind::Cluster)).await.unwrap();
    assert_eq!(client.next().await.type_url, Kind::Cluster.type_url());
    other.hub.publish(set("two"));
    let response = client.next().await;
    assert_eq!(response.resources.len(), 1);
    assert_ne!(response.resources[0].version, held);
    let answer = DeltaDiscoveryRequest { response_nonce: response.nonce, ..request(Kind::Extension) };
    client.requests.send(answer).await.unwrap();
    other.hub.publish(set("two"));
    other.hub.publish(set("three"));
    assert_eq!(client.next().await.resources.len(), 1);
}

#[tokio::test]
async fn a_client_without_a_name_is_told_so() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let mut client =
        AggregatedDiscoveryServiceClient::connect(format!("http://{}", control_plane.address)).await.unwrap();
    let first = DiscoveryRequest { type_url: Kind::Cluster.type_url().into(), ..DiscoveryRequest::default() };
    let mut responses = client.stream_aggregated_resources(tokio_stream::once(first)).await.unwrap().into_inner();
    let status = responses.message().await.unwrap_err();
    assert!(status.message().contains("node.id"), "{status:?}");
    assert!(control_plane.hub.nodes().is_empty());
}

#[tokio::test]
async fn before_the_first_set_nothing_is_said() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let mut client =
        AggregatedDiscoveryServiceClient::connect(format!("http://{}", control_plane.address)).await.unwrap();
    let node = Node { id: "client".into(), ..Node::default() };
    let first = DiscoveryRequest {
        node: Some(node),
        type_url: Kind::Listener.type_url().into(),
        ..DiscoveryRequest::default()
    };
    let (requests, receiver) = mpsc::channel(1);
    requests.send(first).await.unwrap();
    let mut responses = client.stream_aggregated_resources(ReceiverStream::new(receiver)).await.unwrap().into_inner();
    until("the client is known", async || control_plane.hub.nodes().pop()).await;
    control_plane.hub.publish(set("one"));
    let response = responses.message().await.unwrap().expect("the stream has ended");
    assert_eq!(response.resources.len(), 1, "an empty answer would have taken down its listeners");
}
