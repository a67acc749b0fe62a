//! The port of the admin API: TLS, certificates that change, clients that are slow.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::entities_support::{Api, BASE};
use crate::tls_support::{Authority, connect, connector, shown};
use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::get;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use listen::{Alpn, Door, Followed as _, Kept, Limits, Look, TlsConfig, TlsFiles, admin};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// Bounds a test that fails; nothing here takes that long.
const PATIENCE: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

struct Port {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Port {
    async fn open(router: Router, tls: Option<Arc<Kept<TlsConfig>>>, limits: Limits) -> Port {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopping) = watch::channel(false);
        let door = Door::new("admin", listener, tls, limits.handshake);
        Port { address, stop, task: tokio::spawn(admin::serve(door, router, limits, stopping)) }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }
}

fn router() -> Router {
    let who = async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.to_string();
    Router::new().route("/who", get(who))
}

fn tls(folder: &Path) -> Result<Kept<TlsConfig>, String> {
    let files = TlsFiles { certificate: folder.join("s.pem"), key: folder.join("s.key"), client_authorities: None };
    TlsConfig::open("admin TLS", files, Alpn::Http).map_err(|error| error.to_string())
}

/// One request over HTTP/1.1 on a connection that stays open; the whole answer.
async fn ask<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, path: &str) -> String {
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes()).await.unwrap();
    read_answer(stream).await
}

/// An answer with its body, by its content-length.
async fn read_answer<S: AsyncRead + Unpin>(stream: &mut S) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            if body.len() >= length.parse().unwrap() {
                return text;
            }
        }
        let read = tokio::time::timeout(PATIENCE, stream.read_buf(&mut bytes)).await.expect("no answer").unwrap();
        assert!(read > 0, "the connection ended after {text:?}");
    }
}

/// What still comes until the server ends the connection.
async fn until_cut<S: AsyncRead + Unpin>(stream: &mut S) -> String {
    let mut bytes = Vec::new();
    // A reset is an end as well.
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the connection was not cut");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn both_versions_of_http_are_spoken_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    authority.issue("127.0.0.1").write(folder.path(), "s");
    let port = Port::open(router(), Some(Arc::new(tls(folder.path()).unwrap())), Limits::default()).await;

    let mut old = connect(&connector(&authority, None, &["http/1.1"]), port.address).await.unwrap();
    let own = old.get_ref().0.local_addr().unwrap().to_string();
    let answer = ask(&mut old, "/who").await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(&own), "{answer}");

    let new = connect(&connector(&authority, None, &["h2", "http/1.1"]), port.address).await.unwrap();
    let own = new.get_ref().0.local_addr().unwrap().to_string();
    assert_eq!(new.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(new)).await.unwrap();
    tokio::spawn(connection);
    let request = hyper::Request::get("https://a/who").body(Empty::<Bytes>::new()).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), own.as_bytes());

    // Without TLS there is no answer but an end.
    let mut plain = port.connect().await;
    plain.write_all(b"GET /who HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    assert!(!until_cut(&mut plain).await.contains("HTTP"));
}

#[tokio::test]
async fn a_new_certificate_is_shown_and_open_connections_stay() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let (first, second, third) =
        (authority.issue("127.0.0.1"), authority.issue("127.0.0.1"), authority.issue("127.0.0.1"));
    first.write(folder.path(), "s");
    let kept = Arc::new(tls(folder.path()).unwrap());
    assert!(kept.current().seconds_left().unwrap() > 0);
    let port = Port::open(router(), Some(Arc::clone(&kept)), Limits::default()).await;
    let client = connector(&authority, None, &[]);
    let mut open = connect(&client, port.address).await.unwrap();
    assert_eq!(shown(&open), first.der());
    assert!(ask(&mut open, "/who").await.contains("200 OK"));

    second.write(folder.path(), "s");
    assert_eq!(kept.look(true), Look::Renewed);
    assert_eq!(shown(&connect(&client, port.address).await.unwrap()), second.der());
    assert!(ask(&mut open, "/who").await.contains("200 OK"), "it goes on with the certificate it began with");

    // The key of another certificate, half a file, none: the old pair stays, and what is said names the file.
    std::fs::write(folder.path().join("s.pem"), &third.certificate).unwrap();
    let Look::Failed(why) = kept.look(true) else { panic!("a key that does not match was taken") };
    assert!(why.contains("/s.key is not that of the first certificate in ") && why.contains("/s.pem"), "{why}");
    let half = &third.key[..third.key.len() / 2];
    std::fs::write(folder.path().join("s.key"), half).unwrap();
    let Look::Failed(why) = kept.look(true) else { panic!("half a key was taken") };
    assert!(why.contains("/s.key: ") && why.contains("END line"), "{why}");
    assert!(!half.lines().skip(1).any(|line| why.contains(line)), "nothing of the key is told: {why}");
    std::fs::write(folder.path().join("s.key"), "").unwrap();
    let Look::Failed(why) = kept.look(true) else { panic!("no key was taken") };
    assert!(why.contains("/s.key: there is no private key"), "{why}");
    assert_eq!(shown(&connect(&client, port.address).await.unwrap()), second.der());

    third.write(folder.path(), "s");
    assert_eq!(kept.look(true), Look::Renewed);
    assert_eq!(shown(&connect(&client, port.address).await.unwrap()), third.der());
}

#[tokio::test]
async fn whoever_is_slow_with_the_handshake_or_the_head_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    Authority::new().issue("127.0.0.1").write(folder.path(), "s");
    let limits = Limits { handshake: SHORT, idle: SHORT, ..Limits::default() };
    let secure = Port::open(router(), Some(Arc::new(tls(folder.path()).unwrap())), limits).await;
    assert_eq!(until_cut(&mut secure.connect().await).await, "", "a handshake that does not begin");

    let plain = Port::open(router(), None, limits).await;
    assert_eq!(until_cut(&mut plain.connect().await).await, "", "a request that does not begin");
    let mut stream = plain.connect().await;
    let drip = async {
        // A byte now and then, for ever: only the server can end it.
        let head = b"GET /who HTTP/1.1\r\nhost: a\r\nx-long: ".iter().chain(std::iter::repeat(&b'a'));
        for byte in head {
            if stream.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, drip).await.expect("a head that drips was not cut");

    let mut stream = plain.connect().await;
    assert!(ask(&mut stream, "/who").await.contains("200 OK"));
    assert_eq!(until_cut(&mut stream).await, "", "a connection that is left open");
}

#[tokio::test]
async fn an_idle_http2_connection_is_told_to_go() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    authority.issue("127.0.0.1").write(folder.path(), "s");
    let limits = Limits { idle: SHORT, ..Limits::default() };
    let port = Port::open(router(), Some(Arc::new(tls(folder.path()).unwrap())), limits).await;
    let stream = connect(&connector(&authority, None, &["h2"]), port.address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let ended = tokio::spawn(connection);
    let request = hyper::Request::get("https://a/who").body(Empty::<Bytes>::new()).unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), 200);
    let ended = tokio::time::timeout(PATIENCE, ended).await.expect("the idle connection stayed");
    ended.unwrap().unwrap();

    // A client that says nothing at all, not even the preface.
    let mut silent = connect(&connector(&authority, None, &["h2"]), port.address).await.unwrap();
    until_cut(&mut silent).await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_answered_with_408() {
    let api = Api::new().await;
    let port = Port::open(api.router.clone(), None, Limits { body: SHORT, ..Limits::default() }).await;
    let mut stream = port.connect().await;
    let head = format!(
        "POST {BASE}/waf-rulesets HTTP/1.1\r\nhost: a\r\nauthorization: {}\r\ncontent-type: application/json\r\n\
         content-length: 1000\r\n\r\n{{",
        api.authorization
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = until_cut(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("too_slow"), "{answer}");
}

#[tokio::test]
async fn who_does_not_read_the_answer_makes_room_for_others() {
    // More than the buffers of a connection hold.
    let large = get(async || vec![b'a'; 64 * 1024 * 1024]);
    let limits = Limits { idle: SHORT, connections: 1, ..Limits::default() };
    let port = Port::open(router().route("/large", large), None, limits).await;
    let mut deaf = port.connect().await;
    deaf.write_all(b"GET /large HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    deaf.readable().await.unwrap();
    assert!(ask(&mut port.connect().await, "/who").await.contains("200 OK"));
}

#[tokio::test]
async fn a_request_that_takes_its_time_in_the_server_is_not_cut() {
    let go = Arc::new(Notify::new());
    let waits = Arc::clone(&go);
    let slow = get(async move || {
        waits.notified().await;
        "done"
    });
    let limits = Limits { idle: Duration::from_millis(50), ..Limits::default() };
    let port = Port::open(Router::new().route("/slow", slow), None, limits).await;
    let mut stream = port.connect().await;
    stream.write_all(b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    // Far longer than a connection may be idle: were it cut, this would end.
    let mut byte = [0];
    let early = tokio::time::timeout(Duration::from_millis(500), stream.read(&mut byte)).await;
    assert!(early.is_err(), "{early:?}");
    go.notify_one();
    assert!(read_answer(&mut stream).await.ends_with("done"));
}

#[tokio::test]
async fn heads_are_of_a_bounded_size() {
    let port = Port::open(router(), None, Limits::default()).await;
    let mut stream = port.connect().await;
    let head =
        |size| format!("GET /who HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx-long: {}\r\n\r\n", "a".repeat(size));
    stream.write_all(head(60_000).as_bytes()).await.unwrap();
    assert!(until_cut(&mut stream).await.starts_with("HTTP/1.1 200"));
    for size in [65_600, 100_000, 1_000_000] {
        let mut stream = port.connect().await;
        // The server answers before it has read all of it, and what was not read may take the answer with it.
        let _ = stream.write_all(head(size).as_bytes()).await;
        let answer = until_cut(&mut stream).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    }
    let mut stream = port.connect().await;
    let many: String = (0..101).map(|number| format!("x-{number}: 1\r\n")).collect();
    stream.write_all(format!("GET /who HTTP/1.1\r\n{many}\r\n").as_bytes()).await.unwrap();
    assert!(until_cut(&mut stream).await.starts_with("HTTP/1.1 431"));
}

#[tokio::test(flavor = "multi_thread")]
async fn more_connections_than_there_is_room_for_wait() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, seen) = (Arc::clone(&now), Arc::clone(&most));
    let counting = get(async move || {
        seen.fetch_max(counted.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(20)).await;
        counted.fetch_sub(1, Ordering::SeqCst);
        "counted"
    });
    let limits = Limits { connections: 2, ..Limits::default() };
    let port = Port::open(Router::new().route("/", counting), None, limits).await;
    let address = port.address;
    let clients = (0..12).map(|_| {
        tokio::spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            assert!(ask(&mut stream, "/").await.ends_with("counted"));
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    assert!(most.load(Ordering::SeqCst) <= 2, "{most:?} at the same time");
}

#[tokio::test]
async fn the_end_waits_for_what_is_under_way_and_for_nothing_else() {
    let (began, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, waits) = (Arc::clone(&began), Arc::clone(&go));
    let slow = get(async move || {
        begins.notify_one();
        waits.notified().await;
        "done"
    });
    let port = Port::open(router().route("/slow", slow), None, Limits::default()).await;
    let mut idle = port.connect().await;
    assert!(ask(&mut idle, "/who").await.contains("200 OK"));
    let mut busy = port.connect().await;
    busy.write_all(b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    began.notified().await;

    port.stop.send_replace(true);
    assert_eq!(until_cut(&mut idle).await, "", "nothing is under way here");
    assert!(!port.task.is_finished());
    go.notify_one();
    assert!(until_cut(&mut busy).await.ends_with("done"));
    tokio::time::timeout(PATIENCE, port.task).await.expect("the server did not end").unwrap();
    assert!(TcpStream::connect(port.address).await.is_err(), "nobody listens any more");
}

#[test]
fn files_that_cannot_be_used_are_told_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let open = || tls(folder.path()).unwrap_err();
    assert!(open().contains("/s.pem: No such file"), "{}", open());
    let (one, other) = (Authority::new().issue("a"), Authority::new().issue("a"));
    one.write(folder.path(), "s");
    std::fs::write(folder.path().join("s.key"), &other.key).unwrap();
    assert!(open().contains("/s.key is not that of"), "{}", open());
    std::fs::write(folder.path().join("s.pem"), "hello").unwrap();
    assert!(open().contains("/s.pem: it contains no certificate"), "{}", open());
    one.write(folder.path(), "s");
    let files = TlsFiles {
        certificate: folder.path().join("s.pem"),
        key: folder.path().join("s.key"),
        client_authorities: Some(folder.path().join("s.key")),
    };
    let error = TlsConfig::open("xDS TLS", files, Alpn::Grpc).unwrap_err().to_string();
    assert!(error.contains("/s.key: it contains no certificate"), "{error}");
}
