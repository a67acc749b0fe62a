use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use std::time::Duration;

use axum::http::header;

use super::*;
use crate::queue::Queue;
use crate::sinks::{Backoff, Notices, Then, run};

/// One request as the server has seen it.
type Seen = (HeaderMap, String);

/// A server that gives the answers it was told to give, then 200 for good. A status of 0 is no answer at all.
#[derive(Clone)]
struct Server {
    answers: Arc<Mutex<Vec<u16>>>,
    seen: UnboundedSender<Seen>,
}

async fn answer(State(server): State<Server>, headers: HeaderMap, body: String) -> axum::response::Response {
    server.seen.send((headers, body)).unwrap();
    let status = {
        let mut answers = server.answers.lock().unwrap();
        if answers.is_empty() { 200 } else { answers.remove(0) }
    };
    match status {
        0 => std::future::pending().await,
        301 => (StatusCode::MOVED_PERMANENTLY, [(header::LOCATION, "/elsewhere")]).into_response(),
        429 => (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "0")]).into_response(),
        status => StatusCode::from_u16(status).unwrap().into_response(),
    }
}

fn router(answers: &[u16]) -> (Router, UnboundedReceiver<Seen>) {
    let (seen, requests) = unbounded_channel();
    let server = Server { answers: Arc::new(Mutex::new(answers.to_vec())), seen };
    (Router::new().fallback(answer).with_state(server), requests)
}

async fn serve(answers: &[u16]) -> (String, UnboundedReceiver<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (router, requests) = router(answers);
    tokio::spawn(async move { axum::serve(listener, router).await });
    (format!("http://{address}/collect?key=s3cret"), requests)
}

fn options(url: &str) -> ServerOptions {
    // Long enough for a machine that is busy: no test waits for it to pass but the one that says so.
    let timeout = Duration::from_secs(60);
    ServerOptions { url: url.parse().unwrap(), headers_file: None, ca_file: None, timeout }
}

fn webhook(url: &str) -> Webhook {
    Webhook::new(options(url)).unwrap()
}

fn batch(texts: &[&str]) -> Vec<Line> {
    texts.iter().map(|text| text.as_bytes().into()).collect()
}

/// An exporter that tries again at once, on a queue of so many lines.
fn exporter(url: &str, lines: usize) -> (Arc<Queue>, tokio::task::JoinHandle<()>) {
    let queue = Arc::new(Queue::new("test".to_owned(), Bounds { lines, bytes: 1 << 20 }));
    let backoff = Backoff::new(Duration::from_micros(1), Duration::from_micros(1), || 1.0);
    let notices = Notices { others: Vec::new(), clock: || 0 };
    (queue.clone(), tokio::spawn(run(webhook(url), queue, backoff, notices)))
}

#[tokio::test]
async fn a_batch_is_one_request_with_the_headers_of_the_file() {
    let (url, mut requests) = serve(&[]).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "Authorization: Bearer one\nUser-Agent: me").unwrap();
    let mut webhook = Webhook::new(ServerOptions { headers_file: Some(file.path().into()), ..options(&url) }).unwrap();
    webhook.write(&batch(&["{\"a\":1}", "{\"b\":2}"])).await.unwrap();
    let (headers, body) = requests.recv().await.unwrap();
    assert_eq!(body, "{\"a\":1}\n{\"b\":2}\n");
    assert_eq!(headers["content-type"], "application/x-ndjson");
    assert_eq!(
        (&headers["authorization"], &headers["user-agent"]),
        (&"Bearer one".parse().unwrap(), &"me".parse().unwrap())
    );

    std::fs::write(file.path(), "Authorization: Bearer two").unwrap();
    webhook.write(&batch(&["{}"])).await.unwrap();
    assert_eq!(requests.recv().await.unwrap().0["authorization"], "Bearer two", "a secret can be replaced");

    std::fs::remove_file(file.path()).unwrap();
    let failure = webhook.write(&batch(&["{}"])).await.unwrap_err();
    assert_eq!(failure.then, Then::Retry(None), "nothing is sent without its secret");
    assert!(requests.try_recv().is_err());
}

#[tokio::test]
async fn an_answer_decides_and_order_is_kept() {
    let (url, mut requests) = serve(&[500, 429, 200, 400]).await;
    let (queue, task) = exporter(&url, 100);
    queue.push("first".as_bytes().into());
    queue.drained().await;
    for text in ["refused", "last"] {
        queue.push(text.as_bytes().into());
        queue.drained().await;
    }
    let figures = queue.figures();
    assert_eq!((figures.written, figures.dropped, figures.retries, figures.error), (2, 1, 2, None));
    let mut bodies = Vec::new();
    while let Ok((_, body)) = requests.try_recv() {
        bodies.push(body);
    }
    assert_eq!(bodies, ["first\n", "first\n", "first\n", "refused\n", "last\n"]);
    task.abort();
}

#[tokio::test]
async fn nothing_is_lost_below_the_bound() {
    let (url, mut requests) = serve(&[503, 500, 502]).await;
    let (queue, task) = exporter(&url, 2000);
    let expected: Vec<String> = (0..1700).map(|number| number.to_string()).collect();
    for text in &expected {
        queue.push(text.as_bytes().into());
    }
    queue.drained().await;
    task.abort();
    let figures = queue.figures();
    assert_eq!((figures.written, figures.dropped, figures.retries), (1700, 0, 3));
    let mut bodies = Vec::new();
    while let Ok((_, body)) = requests.try_recv() {
        bodies.push(body);
    }
    let taken: Vec<String> = bodies.iter().skip(3).flat_map(|body| body.lines().map(str::to_owned)).collect();
    assert_eq!(taken, expected);
    assert!(bodies.iter().all(|body| body.lines().count() <= 500));
}

#[tokio::test]
async fn the_oldest_go_while_nobody_listens() {
    // Bound and not listening: no other socket is given the port.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}", socket.local_addr().unwrap());
    let failure = webhook(&url).write(&batch(&["a"])).await.unwrap_err();
    assert!(failure.reason.contains("refused") && failure.then == Then::Retry(None), "{failure:?}");

    let queue = Arc::new(Queue::new("test".to_owned(), Bounds { lines: 3, bytes: 1 << 20 }));
    let backoff = Backoff::new(Duration::from_secs(3600), Duration::from_secs(3600), || 1.0);
    let task = tokio::spawn(run(webhook(&url), queue.clone(), backoff, Notices { others: Vec::new(), clock: || 0 }));
    queue.push("1".as_bytes().into());
    while queue.figures().retries == 0 {
        tokio::task::yield_now().await;
    }
    for text in ["2", "3", "4", "5"] {
        queue.push(text.as_bytes().into());
    }
    assert_eq!((queue.figures().waiting, queue.figures().dropped), (3, 2));
    // It listens, and the exporter is told not to wait for the hour to pass.
    let (router, mut requests) = router(&[]);
    let listener = socket.listen(10).unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    queue.drained().await;
    assert_eq!(requests.recv().await.unwrap().1, "3\n4\n5\n");
    let figures = queue.figures();
    assert_eq!((figures.waiting, figures.written, figures.dropped), (0, 3, 2));
    task.abort();
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up_for_now() {
    let (url, mut requests) = serve(&[0]).await;
    let mut webhook = Webhook::new(ServerOptions { timeout: Duration::from_millis(200), ..options(&url) }).unwrap();
    let failure = webhook.write(&batch(&["a"])).await.unwrap_err();
    assert_eq!((failure.then, failure.reason.as_str()), (Then::Retry(None), "no answer within 0.2 s"));
    assert_eq!(requests.recv().await.unwrap().1, "a\n");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let (url, mut requests) = serve(&[301]).await;
    let failure = webhook(&url).write(&batch(&["a"])).await.unwrap_err();
    assert!(failure.reason.contains("not followed") && failure.then == Then::Drop, "{failure:?}");
    requests.recv().await.unwrap();
    assert!(requests.try_recv().is_err(), "one request and no more");
}

#[tokio::test]
async fn tls_trusts_the_file_and_nobody_else() {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    let (router, mut requests) = router(&[]);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, router) = (acceptor.clone(), router.clone());
            tokio::spawn(async move {
                // A client that does not trust us ends it.
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = hyper_util::service::TowerToHyperService::new(router);
                let stream = hyper_util::rt::TokioIo::new(stream);
                let _ = hyper::server::conn::http1::Builder::new().serve_connection(stream, service).await;
            });
        }
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), own.cert.pem()).unwrap();
    let mut trusting = Webhook::new(ServerOptions { ca_file: Some(file.path().into()), ..options(&url) }).unwrap();
    trusting.write(&batch(&["a"])).await.unwrap();
    assert_eq!(requests.recv().await.unwrap().1, "a\n");

    let stranger = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(file.path(), stranger.cert.pem()).unwrap();
    let mut other = Webhook::new(ServerOptions { ca_file: Some(file.path().into()), ..options(&url) }).unwrap();
    let failure = other.write(&batch(&["a"])).await.unwrap_err();
    assert!(failure.reason.contains("certificate") && failure.then == Then::Retry(None), "{failure:?}");
    assert!(requests.try_recv().is_err());
}

#[test]
fn settings_that_cannot_work_are_refused_at_once() {
    for (url, what) in [
        ("ftp://host/", "https://HOST"),
        ("/path", "https://HOST"),
        ("http://user:s3cret@host/", "a user or a password"),
    ] {
        let error = Webhook::new(options(url)).unwrap_err().to_string();
        assert!(error.contains(what) && !error.contains("s3cret"), "{error}");
    }
    let url = "https://localhost/";
    let empty = tempfile::NamedTempFile::new().unwrap();
    let error = Webhook::new(ServerOptions { ca_file: Some(empty.path().into()), ..options(url) }).unwrap_err();
    assert!(error.to_string().contains("it contains no PEM certificate"), "{error}");
    let missing = Some("/no/such/file".into());
    let error = Webhook::new(ServerOptions { headers_file: missing, ..options(url) }).unwrap_err();
    assert!(error.to_string().contains("/no/such/file"), "{error}");
}

#[test]
fn what_is_shown_of_it_holds_no_secret() {
    let webhook = webhook("http://collector:8080/hooks/s3cret?key=s3cret");
    assert_eq!(webhook.origin(), "http://collector:8080");
    assert!(!format!("{webhook:?} {:?}", options("http://host/?key=s3cret")).contains("s3cret"));
}
