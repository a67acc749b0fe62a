//! A real Envoy, a small backend and a small client for the xDS tests.
#![allow(clippy::disallowed_methods, reason = "tests of a real process wait for it")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use events::EventHub;
use fabric::{BanRules, Bans};
use link::{LinkHub, NodePort};
use prost::Message;
use serde_json::Value;
use snapshot::{LinkSettings, Snapshot, Step};
use store::{SqliteOptions, SqliteStore, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use xds::Hub;
use xds::bootstrap::{BootstrapInput, CONTROL_PLANE_CLUSTER, bootstrap};
use xds::resources::{BackendInput, FilterInput, Gateway, ListenerSettings, RouteInput};

/// No condition of a test takes this long on any machine; it bounds a test that fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate has a parent folder").to_owned()
}

fn envoy_binary() -> PathBuf {
    let path =
        std::env::var_os("PALISADE_ENVOY").map_or_else(|| repository().join(".cache/envoy/envoy"), PathBuf::from);
    assert!(
        path.is_file(),
        "these tests need a real Envoy and there is none at {}: run `make envoy`, or set PALISADE_ENVOY",
        path.display()
    );
    path
}

/// The .wasm file of a filter; `make filters` builds it.
fn module(filter: &str) -> String {
    let folder = std::env::var_os("PALISADE_FILTERS").map(PathBuf::from);
    let module = folder.unwrap_or_else(|| repository().join("target/filters")).join(format!("{filter}.wasm"));
    assert!(module.exists(), "{} is missing: run `make filters`", module.display());
    module.display().to_string()
}

/// The .wasm file of the filter that does nothing.
pub(crate) fn noop_module() -> String {
    module("noop")
}

/// The preset as it is shipped, with these global steps and a link that is flushed every 100 ms; `make filters` builds it.
pub(crate) fn preset(steps: Vec<Step>) -> FilterInput {
    linked("preset", steps)
}

/// The filter of small plugins for tests, with all steps in it.
pub(crate) fn probe(steps: Vec<Step>) -> FilterInput {
    linked("probe", steps)
}

fn linked(filter: &str, global: Vec<Step>) -> FilterInput {
    let link = Some(LinkSettings { cluster: CONTROL_PLANE_CLUSTER.into(), flush_millis: 100, max_queued: 100 });
    let snapshot = Snapshot { filter: filter.into(), composite: true, global, link, ..Snapshot::default() };
    let snapshot = snapshot::seal(&snapshot).encode_to_vec();
    FilterInput { name: filter.into(), module_path: module(filter), snapshot }
}

/// A snapshot that the no-op filter takes, with `text` in it.
pub(crate) fn sealed(filter: &str, text: &str) -> Vec<u8> {
    let identity = snapshot::IdentitySource { api_key_header: text.into(), ..Default::default() };
    snapshot::seal(&snapshot::Snapshot { filter: filter.into(), identity: Some(identity), ..Default::default() })
        .encode_to_vec()
}

/// A filter of the no-op module.
pub(crate) fn noop_filter(name: &str, text: &str) -> FilterInput {
    FilterInput { name: name.into(), module_path: noop_module(), snapshot: sealed(name, text) }
}

/// A gateway on a port of the system's choosing with one route for every host and path.
pub(crate) fn gateway(backend: SocketAddr, filters: Vec<FilterInput>) -> Gateway {
    Gateway {
        listener: ListenerSettings { address: "127.0.0.1".into(), port: 0, ..ListenerSettings::default() },
        routes: vec![RouteInput {
            id: "r1".into(),
            envoy_route: "r1".into(),
            backend: Some(BackendInput {
                address: backend.ip().to_string(),
                port: backend.port(),
                ..BackendInput::default()
            }),
            metadata: BTreeMap::from([("svc-policy".into(), "p1".into())]),
            ..RouteInput::default()
        }],
        filters,
        control_plane_cluster: None,
        ecds_only: false,
    }
}

/// Waits until `check` gives something.
pub(crate) async fn until<T>(what: &str, mut check: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = check().await {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

// === Control plane ===

/// A control plane's node port; it closes with the value.
pub(crate) struct ControlPlane {
    pub(crate) hub: Hub,
    pub(crate) link: LinkHub,
    pub(crate) bans: Bans,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) events: EventHub,
    pub(crate) address: SocketAddr,
    stop: tokio::sync::oneshot::Sender<()>,
    server: tokio::task::JoinHandle<Result<(), tonic::transport::Error>>,
    /// Of a store of its own.
    folder: Option<tempfile::TempDir>,
}

impl ControlPlane {
    pub(crate) async fn start(exporters: Vec<events::Exporter>) -> ControlPlane {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), exporters).await
    }

    /// Starts one at an address that another one has given up.
    pub(crate) async fn start_at(address: SocketAddr, exporters: Vec<events::Exporter>) -> ControlPlane {
        Self::start_as(NodePort::default(), address, exporters).await
    }

    /// Starts one that lets in whom `port` says.
    pub(crate) async fn start_with(port: NodePort, exporters: Vec<events::Exporter>) -> ControlPlane {
        Self::start_as(port, SocketAddr::from(([127, 0, 0, 1], 0)), exporters).await
    }

    async fn start_as(port: NodePort, address: SocketAddr, exporters: Vec<events::Exporter>) -> ControlPlane {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(folder.path(), SqliteOptions::default()).unwrap());
        ControlPlane { folder: Some(folder), ..Self::start_over(port, address, exporters, store).await }
    }

    /// Starts one that keeps bans in `store`; the longest is an hour.
    pub(crate) async fn start_over(
        port: NodePort,
        address: SocketAddr,
        exporters: Vec<events::Exporter>,
        store: Arc<SqliteStore>,
    ) -> ControlPlane {
        let hub = Hub::new();
        let events = EventHub::new(exporters, base::clock::now_millis);
        let kept = Arc::clone(&store) as Arc<dyn Store>;
        let rules = || BanRules { longest_millis: 3_600_000, ..BanRules::default() };
        let bans = Bans::new(kept, events.clone(), base::clock::now_millis).with_rules(rules);
        let link = LinkHub::new(events.clone(), bans.clone(), hub.clone(), base::clock::now_millis);
        let counts = link::start_counts(store.as_ref(), base::clock::now_millis).await.unwrap();
        link.count_with(Arc::new(counts), Arc::clone(&store) as Arc<dyn Store>);
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let shutdown = async {
            let _asked_or_dropped = stopped.await;
        };
        let server = tokio::spawn(link::serve_with(port, listener, hub.clone(), link.clone(), shutdown));
        ControlPlane { hub, link, bans, store, events, address, stop, server, folder: None }
    }

    /// Ends it, and waits until its port is free.
    pub(crate) async fn stop(self) {
        let _already_ended = self.stop.send(());
        self.server.await.unwrap().unwrap();
        drop(self.folder);
    }
}

// === Envoy ===

/// A running Envoy; it ends with the value.
pub(crate) struct Envoy {
    folder: tempfile::TempDir,
    stop: mpsc::Sender<()>,
    thread: Option<JoinHandle<()>>,
    pub(crate) admin: SocketAddr,
}

impl Envoy {
    /// Starts one that takes everything from `control_plane`.
    pub(crate) async fn start(control_plane: SocketAddr, delta: bool) -> Envoy {
        Self::start_as("test-node", control_plane, delta).await
    }

    /// The same with another id.
    pub(crate) async fn start_as(node: &str, control_plane: SocketAddr, delta: bool) -> Envoy {
        Self::start_with(&bootstrap(&BootstrapInput {
            node_id: node.into(),
            admin: Some(("127.0.0.1".into(), 0)),
            control_plane: (control_plane.ip().to_string(), control_plane.port()),
            delta,
            ..BootstrapInput::default()
        }))
        .await
    }

    /// Starts one with a bootstrap.
    pub(crate) async fn start_with(bootstrap: &Value) -> Envoy {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("bootstrap.json"), bootstrap.to_string()).unwrap();
        let mut command = Command::new(envoy_binary());
        command
            .args(["--use-dynamic-base-id", "--concurrency", "2", "-l", "warning", "--drain-time-s", "1"])
            .arg("-c")
            .arg(path("bootstrap.json"))
            .arg("--admin-address-path")
            .arg(path("admin"))
            .arg("--log-path")
            .arg(path("envoy.log"))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let (stop, stopped) = mpsc::channel();
        // This Envoy dies with the thread that started it, so that thread waits for the end.
        let thread = std::thread::spawn(move || {
            let mut child = command.spawn().expect("Envoy could not be started");
            let _asked_or_dropped = stopped.recv();
            child.kill().expect("Envoy could not be ended");
            child.wait().expect("Envoy could not be waited for");
        });
        let mut envoy = Envoy { folder, stop, thread: Some(thread), admin: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let file = envoy.folder.path().join("admin");
        let start = Instant::now();
        envoy.admin = loop {
            if let Some(address) = std::fs::read_to_string(&file).ok().and_then(|text| text.parse().ok()) {
                break address;
            }
            assert!(start.elapsed() < PATIENCE, "Envoy did not start:\n{}", envoy.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        envoy
    }

    /// Its log.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("envoy.log")).unwrap_or_default()
    }

    /// The address of its first listener, once it is there.
    pub(crate) async fn listener(&self) -> SocketAddr {
        until("a listener", async || {
            let (_, body) = get(self.admin, "localhost", "/listeners?format=json").await?;
            let listeners: Value = serde_json::from_str(&body).ok()?;
            let address = &listeners["listener_statuses"][0]["local_address"]["socket_address"];
            let port = u16::try_from(address["port_value"].as_u64()?).ok()?;
            Some(SocketAddr::from(([127, 0, 0, 1], port)))
        })
        .await
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        let _already_ended = self.stop.send(());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
        if std::thread::panicking() {
            eprintln!("--- Envoy's log\n{}", self.log());
        }
    }
}

// === Backend and client ===

/// A backend that answers every request with `text`.
pub(crate) async fn backend(text: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut received = Vec::new();
                while let Ok(1..) = stream.read_buf(&mut received).await {
                    while let Some(end) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                        received.drain(..end + 4);
                        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len());
                        if stream.write_all(answer.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    address
}

/// GET over a connection of its own: status and body; none where there was no answer.
pub(crate) async fn get(address: SocketAddr, host: &str, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.ok()?;
    let text = String::from_utf8_lossy(&answer);
    let status = text.split(' ').nth(1)?.parse().ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    Some((status, if chunked { unchunked(body) } else { body.to_owned() }))
}

fn unchunked(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        text.push_str(&rest[..size]);
        body = rest[size..].trim_start_matches("\r\n");
    }
    text
}
