//! Tables of the control plane in a real Envoy: they change while requests are served, on every worker.
//!
//! `PALISADE_TABLES_SECONDS` makes the test of half a million ranges longer; it prints what was sent and how long it took
//! (`make bench-tables`).

#![allow(clippy::disallowed_methods, reason = "a gateway's time is measured, in no filter")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use snapshot::{Step, TableKind};
use tables::{LabelWidth, RangeOps, RangesBuilder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use xds::bootstrap::CONTROL_PLANE_CLUSTER;
use xds::resources::{FilterInput, build};

use crate::xds_support::{self, ControlPlane, Envoy, backend, gateway, get, until};

const TABLE: &str = "feed";
const ROWS: u32 = 500_000;
/// How many ranges change at once.
const CHANGED: u32 = 10;

fn probe() -> FilterInput {
    xds_support::probe(vec![Step { plugin: "probe-table".into(), config: TABLE.into(), ..Step::default() }])
}

/// The address of a row: each is a range of 16 addresses, with a gap behind it.
fn address(row: u32, offset: u32) -> IpAddr {
    Ipv4Addr::from(0x0b00_0000 + row * 32 + offset).into()
}

fn base(rows: u32) -> Vec<u8> {
    let mut builder = RangesBuilder::new(LabelWidth::Two);
    (0..rows).for_each(|row| builder.set(address(row, 0), address(row, 15), 1 + row % 100).unwrap());
    builder.build().unwrap()
}

/// Gives ten ranges, from a row on, a label.
fn ops(row: u32, label: u32) -> Vec<u8> {
    let mut ops = RangeOps::new(LabelWidth::Two);
    (row..row + CHANGED).for_each(|row| ops.set(address(row, 0), address(row, 15), label).unwrap());
    ops.finish()
}

async fn lookup(listener: SocketAddr, address: IpAddr) -> Option<(u16, String)> {
    get(listener, "a", &format!("/?{address}")).await
}

/// A connection that is kept: one worker serves all of its requests, and none waits for a handshake.
struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Connection {
    async fn open(listener: SocketAddr) -> Self {
        let stream = TcpStream::connect(listener).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, received: Vec::new() }
    }

    /// Status and body of a response, which has a content-length.
    async fn get(&mut self, target: &str) -> (u16, String) {
        let request = format!("GET {target} HTTP/1.1\r\nhost: a\r\n\r\n");
        self.stream.write_all(request.as_bytes()).await.unwrap();
        loop {
            let text = String::from_utf8_lossy(&self.received).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                let length: usize = length.parse().unwrap();
                if body.len() >= length {
                    self.received.clear();
                    return (head.split(' ').nth(1).unwrap().parse().unwrap(), body[..length].to_owned());
                }
            }
            assert!(self.stream.read_buf(&mut self.received).await.unwrap() > 0, "the gateway has closed: {text}");
        }
    }
}

/// A way to the control plane that counts the bytes that go to gateways.
async fn counted(control_plane: SocketAddr) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, count) = (listener.local_addr().unwrap(), Arc::new(AtomicU64::new(0)));
    let counter = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((gateway, _)) = listener.accept().await {
            let Ok(upstream) = TcpStream::connect(control_plane).await else { continue };
            let (mut from_gateway, mut to_gateway) = gateway.into_split();
            let (mut from_upstream, mut to_upstream) = upstream.into_split();
            tokio::spawn(async move { tokio::io::copy(&mut from_gateway, &mut to_upstream).await });
            let counter = Arc::clone(&counter);
            tokio::spawn(async move {
                let mut bytes = vec![0; 1 << 16];
                while let Ok(read @ 1..) = from_upstream.read(&mut bytes).await {
                    counter.fetch_add(read as u64, Ordering::Relaxed);
                    if to_gateway.write_all(&bytes[..read]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, count)
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_million_ranges_change_on_every_worker_while_requests_are_served() {
    let seconds = std::env::var("PALISADE_TABLES_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3_u64);
    let pause = if seconds > 10 { Duration::from_secs(10) } else { Duration::from_secs(1) };
    let control_plane = ControlPlane::start(Vec::new()).await;
    let material = control_plane.link.material();
    let backend = backend("served").await;
    let mut described = gateway(backend, vec![probe()]);
    described.control_plane_cluster = Some(CONTROL_PLANE_CLUSTER.into());
    control_plane.hub.publish(build(&described).unwrap());
    let (way, sent) = counted(control_plane.address).await;
    let envoy = Envoy::start(way, true).await;
    let listener = envoy.listener().await;
    until("a request", async || get(listener, "a", "/").await.filter(|answer| answer.1 == "served")).await;
    assert_eq!(lookup(listener, address(0, 0)).await, Some((503, "no table".into())), "it fails open, visibly");

    let begin = Instant::now();
    material.publish(TABLE, TableKind::Ranges, base(ROWS)).unwrap();
    // The two workers, and the main thread's VM, which serves no request.
    let in_force = async || (control_plane.link.in_force(TABLE) == (3, 0)).then_some(());
    until("the table on every worker", in_force).await;
    println!(
        "the base of {ROWS} ranges was on every worker after {:?}, {} bytes",
        begin.elapsed(),
        sent.load(Ordering::Relaxed)
    );
    assert_eq!(lookup(listener, address(7, 3)).await, Some((403, "8".into())));
    assert_eq!(lookup(listener, address(7, 16)).await, Some((200, "none".into())));

    // Requests of another caller meanwhile: none may be lost.
    let over = Arc::new(AtomicBool::new(false));
    let beside = tokio::spawn({
        let over = Arc::clone(&over);
        async move {
            let (mut served, mut connection) = (0_u64, Connection::open(listener).await);
            while !over.load(Ordering::Relaxed) {
                assert_eq!(connection.get("/").await, (200, "served".into()));
                served += 1;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            served
        }
    });
    // Each is served by one worker: enough of them meet both.
    let mut connections = Vec::new();
    for _ in 0..16 {
        connections.push(Connection::open(listener).await);
    }
    let (mut times, mut bytes) = (Vec::new(), Vec::new());
    let rounds = u32::try_from((seconds / pause.as_secs()).max(1)).unwrap();
    for round in 0..rounds {
        // What nodes send and get for other reasons is not counted.
        tokio::time::sleep(pause).await;
        let before = sent.load(Ordering::Relaxed);
        let (row, label, changed) = (round * 1_000, 1_000 + round, Instant::now());
        material.change(TABLE, &ops(row, label)).unwrap();
        for connection in &mut connections {
            while connection.get(&format!("/?{}", address(row, 5))).await != (403, label.to_string()) {
                assert!(changed.elapsed() < Duration::from_secs(30), "the change did not come");
            }
        }
        times.push(changed.elapsed());
        until("the change on every worker", in_force).await;
        bytes.push(sent.load(Ordering::Relaxed) - before);
    }
    over.store(true, Ordering::Relaxed);
    let served = beside.await.unwrap();
    times.sort();
    bytes.sort_unstable();
    println!(
        "{rounds} changes of {CHANGED} ranges: in force after {:?} (median), {:?} (most); {} bytes to the node for each (median), \
         {} (most); {served} requests beside them, none lost",
        times[times.len() / 2],
        times.last().unwrap(),
        bytes[bytes.len() / 2],
        bytes.last().unwrap(),
    );
    assert!(*bytes.last().unwrap() < 64 * 1024, "a change does not bring the base again: {bytes:?}");
    assert_eq!(lookup(listener, address(7, 3)).await, Some((403, if rounds > 0 { "1000" } else { "8" }.into())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_serves_while_the_control_plane_is_gone_and_catches_up_afterwards() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let at = control_plane.address;
    let material = control_plane.link.material();
    let backend = backend("served").await;
    let mut described = gateway(backend, vec![probe()]);
    described.control_plane_cluster = Some(CONTROL_PLANE_CLUSTER.into());
    control_plane.hub.publish(build(&described).unwrap());
    let envoy = Envoy::start(at, true).await;
    let listener = envoy.listener().await;
    material.publish(TABLE, TableKind::Ranges, base(1_000)).unwrap();
    let found = |row, expected: &'static str| async move {
        until("the table on every worker", async || {
            for _ in 0..8 {
                lookup(listener, address(row, 1)).await.filter(|(_, text)| text == expected)?;
            }
            Some(())
        })
        .await;
    };
    found(1, "2").await;
    control_plane.stop().await;
    found(1, "2").await;
    // Another one has more in the table, and a history of its own.
    let control_plane = ControlPlane::start_at(at, Vec::new()).await;
    control_plane.hub.publish(build(&described).unwrap());
    let material = control_plane.link.material();
    material.publish(TABLE, TableKind::Ranges, base(2_000)).unwrap();
    found(1_500, "1").await;
    material.change(TABLE, &ops(1_500, 999)).unwrap();
    found(1_500, "999").await;
    // Nothing more is published: nodes keep what they have.
    material.withdraw(TABLE);
    found(1_500, "999").await;
}
