//! Who is let in to the xDS and node port: certificates of clients, tokens.

use crate::xds_support;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::link_support::{Worker, plain, secure, with};
use crate::tls_support::{Issued, Pki, connect, connector, shown};
use crate::xds_support::ControlPlane;
use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use link::NodePort;
use listen::{Followed as _, Kept, Limits, Look};
use listen::{MAX_FAILURES, NodeTokens};
use snapshot::BanChange;
use telemetry::Metrics;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;
use tonic::transport::Channel;

/// Bounds a test that fails; nothing here takes that long.
const PATIENCE: Duration = Duration::from_secs(60);

fn tokens(folder: &Path, text: &str) -> (PathBuf, Arc<Kept<NodeTokens>>) {
    let file = folder.join("tokens");
    std::fs::write(&file, text).unwrap();
    (file.clone(), Arc::new(NodeTokens::open(file).unwrap()))
}

async fn with_tokens(kept: &Arc<Kept<NodeTokens>>) -> ControlPlane {
    let port = NodePort { tokens: Some(Arc::clone(kept)), ..NodePort::default() };
    ControlPlane::start_with(port, Vec::new()).await
}

async fn code(channel: Channel, authorization: Option<&str>) -> Code {
    match Worker::open(channel, authorization).await {
        Ok(_) => Code::Ok,
        Err(status) => status.code(),
    }
}

#[tokio::test]
async fn a_stream_needs_one_of_the_tokens() {
    let metrics = Metrics::install();
    let folder = tempfile::tempdir().unwrap();
    let (_, kept) = tokens(folder.path(), "# both\nfirst-token-0123456789\n\nsecond-token-0123456789\n");
    let control_plane = with_tokens(&kept).await;
    let channel = plain(control_plane.address).await;
    for right in ["Bearer first-token-0123456789", "Bearer second-token-0123456789", "bearer first-token-0123456789"] {
        assert_eq!(code(channel.clone(), Some(right)).await, Code::Ok, "{right}");
    }
    for wrong in [
        None,
        Some("Bearer third-token-0123456789"),
        Some("Bearer first-token-012345678"),
        Some("Bearer "),
        Some("Bearer # both"),
        Some("Basic first-token-0123456789"),
        Some("first-token-0123456789"),
    ] {
        assert_eq!(code(channel.clone(), wrong).await, Code::Unauthenticated, "{wrong:?}");
    }
    let text = metrics.render();
    assert!(text.contains("palisade_node_auth_failures_total{reason=\"wrong\"}"), "{text}");
    assert!(text.contains("palisade_node_auth_failures_total{reason=\"missing\"}"), "{text}");
}

#[tokio::test]
async fn xds_needs_a_token_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let (_, kept) = tokens(folder.path(), "first-token-0123456789");
    let control_plane = with_tokens(&kept).await;
    let backend = xds_support::backend("one").await;
    let gateway = xds_support::gateway(backend, Vec::new());
    control_plane.hub.publish(xds::resources::build(&gateway).unwrap());
    let mut client = AggregatedDiscoveryServiceClient::new(plain(control_plane.address).await);
    let requests = || {
        let (sender, receiver) = mpsc::channel(1);
        let first = DeltaDiscoveryRequest {
            node: Some(Node { id: "n".into(), ..Node::default() }),
            type_url: xds::Kind::Cluster.type_url().into(),
            ..DeltaDiscoveryRequest::default()
        };
        sender.try_send(first).unwrap();
        // Held open as long as the test runs.
        std::mem::forget(sender);
        ReceiverStream::new(receiver)
    };
    let refused = client.delta_aggregated_resources(requests()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    let admitted = with(requests(), Some("Bearer first-token-0123456789"));
    let mut replies = client.delta_aggregated_resources(admitted).await.unwrap().into_inner();
    assert!(!replies.message().await.unwrap().unwrap().resources.is_empty());
}

#[tokio::test]
async fn tokens_are_rotated_and_a_stream_ends_with_its_token() {
    let folder = tempfile::tempdir().unwrap();
    let (file, kept) = tokens(folder.path(), "first-token-0123456789");
    let control_plane = with_tokens(&kept).await;
    let channel = plain(control_plane.address).await;
    let (first, second) = (Some("Bearer first-token-0123456789"), Some("Bearer second-token-0123456789"));
    let mut old = Worker::open(channel.clone(), first).await.unwrap();

    // Both are taken until everybody has the new one.
    std::fs::write(&file, "second-token-0123456789\nfirst-token-0123456789\n").unwrap();
    assert_eq!(kept.look(true), Look::Renewed);
    let mut new = Worker::open(channel.clone(), second).await.unwrap();
    let change =
        BanChange { key: "ip:192.0.2.1".into(), until_millis: 1, reason: String::new(), ..BanChange::default() };
    control_plane.link.announcer().announce(vec![change]);
    assert_eq!(old.down.message().await.unwrap().unwrap().bans.len(), 1, "the old stream goes on");

    // A file that would let nobody in is not taken over.
    std::fs::write(&file, "# nothing\n").unwrap();
    assert!(matches!(kept.look(true), Look::Failed(why) if why.contains("no token")));
    assert_eq!(code(channel.clone(), first).await, Code::Ok);

    std::fs::write(&file, "second-token-0123456789\n").unwrap();
    assert_eq!(kept.look(true), Look::Renewed);
    let ended = tokio::time::timeout(PATIENCE, old.down.message()).await.expect("the old stream stayed").unwrap_err();
    assert_eq!(ended.code(), Code::Unauthenticated);
    assert_eq!(code(channel.clone(), first).await, Code::Unauthenticated);
    let change =
        BanChange { key: "ip:192.0.2.2".into(), until_millis: 1, reason: String::new(), ..BanChange::default() };
    control_plane.link.announcer().announce(vec![change]);
    // The first one was announced while both were open.
    for _ in 0..2 {
        assert_eq!(new.down.message().await.unwrap().unwrap().bans.len(), 1, "the new stream goes on");
    }
}

#[tokio::test]
async fn guesses_are_throttled_and_a_right_token_passes_nonetheless() {
    let folder = tempfile::tempdir().unwrap();
    let (_, kept) = tokens(folder.path(), "first-token-0123456789");
    let control_plane = with_tokens(&kept).await;
    let channel = plain(control_plane.address).await;
    let mut codes = Vec::new();
    for number in 0..=MAX_FAILURES {
        codes.push(code(channel.clone(), Some(&format!("Bearer guess-{number}"))).await);
    }
    let (last, others) = codes.split_last().unwrap();
    assert!(others.iter().all(|code| *code == Code::Unauthenticated), "{codes:?}");
    assert_eq!(*last, Code::ResourceExhausted);
    assert_eq!(code(channel, Some("Bearer first-token-0123456789")).await, Code::Ok);
}

impl Pki {
    /// What becomes of a link with this certificate and token.
    async fn enters(&self, address: SocketAddr, certificate: Option<&Issued>, token: Option<&str>) -> Code {
        match secure(address, connector(&self.servers, certificate, &["h2"])).await {
            Ok(channel) => code(channel, token).await,
            Err(_) => Code::Unavailable,
        }
    }
}

#[tokio::test]
async fn a_gateway_needs_a_certificate_of_the_right_authority() {
    let pki = Pki::new();
    let port = NodePort { tls: Some(Arc::clone(&pki.kept)), ..NodePort::default() };
    let control_plane = ControlPlane::start_with(port, Vec::new()).await;
    let address = control_plane.address;
    let (ours, foreign) = (pki.gateways.issue("gateway-1"), pki.servers.issue("gateway-1"));
    assert_eq!(pki.enters(address, Some(&ours), None).await, Code::Ok);
    assert_ne!(pki.enters(address, None, None).await, Code::Ok);
    assert_ne!(pki.enters(address, Some(&foreign), None).await, Code::Ok);

    // Another authority takes its place; who has come before stays.
    let channel = secure(address, connector(&pki.servers, Some(&ours), &["h2"])).await.unwrap();
    let _worker = Worker::open(channel.clone(), None).await.unwrap();
    std::fs::write(pki.folder.path().join("gateways.pem"), pki.servers.pem()).unwrap();
    assert_eq!(pki.kept.look(true), Look::Renewed);
    assert_eq!(pki.enters(address, Some(&foreign), None).await, Code::Ok);
    assert_ne!(pki.enters(address, Some(&ours), None).await, Code::Ok);
    assert_eq!(code(channel, None).await, Code::Ok);

    // And another certificate of the server.
    let renewed = pki.servers.issue("127.0.0.1");
    renewed.write(pki.folder.path(), "s");
    assert_eq!(pki.kept.look(true), Look::Renewed);
    let stream = connect(&connector(&pki.servers, Some(&foreign), &["h2"]), address).await.unwrap();
    assert_eq!(shown(&stream), renewed.der());
}

#[tokio::test]
async fn where_both_are_set_both_are_needed() {
    let pki = Pki::new();
    let (_, kept) = tokens(pki.folder.path(), "first-token-0123456789");
    let port = NodePort { tls: Some(Arc::clone(&pki.kept)), tokens: Some(kept), ..NodePort::default() };
    let control_plane = ControlPlane::start_with(port, Vec::new()).await;
    let (ours, token) = (pki.gateways.issue("gateway-1"), Some("Bearer first-token-0123456789"));
    assert_eq!(pki.enters(control_plane.address, Some(&ours), token).await, Code::Ok);
    assert_eq!(pki.enters(control_plane.address, Some(&ours), None).await, Code::Unauthenticated);
    assert_ne!(pki.enters(control_plane.address, None, token).await, Code::Ok);
}

#[tokio::test]
async fn a_connection_that_nobody_is_let_in_on_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let (_, kept) = tokens(folder.path(), "first-token-0123456789");
    let limits = Limits { opening: Duration::from_millis(300), ..Limits::default() };
    let port = NodePort { tokens: Some(kept), limits, ..NodePort::default() };
    let control_plane = ControlPlane::start_with(port, Vec::new()).await;

    let mut silent = TcpStream::connect(control_plane.address).await.unwrap();
    let mut bytes = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, silent.read_to_end(&mut bytes)).await.expect("a silent connection stayed");

    // A stream that is let in keeps its connection.
    let channel = plain(control_plane.address).await;
    let mut worker = Worker::open(channel, Some("Bearer first-token-0123456789")).await.unwrap();
    let longer = tokio::time::timeout(Duration::from_millis(900), worker.down.message()).await;
    assert!(longer.is_err(), "the stream has ended: {longer:?}");
}
