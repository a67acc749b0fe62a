//! The demo backend: HTTP/1.1 and h2c on one port, with an answer for every kind of traffic that a gateway meets.

mod shop;

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, UPGRADE};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::{Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

type Answer = Response<BoxBody<Bytes, Infallible>>;

const WEBSOCKET_GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const PAGE: &str = "<!doctype html>\n<html lang=\"en\"><head><title>Demo shop</title></head>\n\
    <body><h1>Demo shop</h1><p>Search: <a href=\"/search?q=garden+chairs\">garden chairs</a>.</p></body></html>\n";
const LEAK: &str = "<html><body><h1>Error</h1><pre>You have an error in your SQL syntax; check the manual that \
    corresponds to your MySQL server version for the right syntax to use near '''' at line 1\n\
    Warning: mysql_fetch_array() expects parameter 1 to be resource, boolean given in /var/www/shop/item.php on line 42\
    </pre></body></html>\n";

/// A running backend. Dropping it closes its port.
///
/// | path | answer |
/// |---|---|
/// | `/echo` and every path not named here with a body | JSON: method, path, version, headers, trailers, body_length, body_sha256 |
/// | `/status/NNN` | that status |
/// | `/reflect` | what the posted JSON describes: `{status, headers, body or encodedBody (base64)}` |
/// | `/slow?millis=N` | a page, N ms late (200, at most 10,000) |
/// | `/sse` | an event stream: one event per 200 ms, without an end |
/// | `/ws` | upgrades, then sends back every byte that comes |
/// | `/leak` | an SQL error page, status 500 |
/// | `/shop` and below | a small shop for browsers: pages, forms, a sign-in, JSON |
/// | any other | an HTML page |
#[derive(Debug)]
pub struct Backend {
    address: SocketAddr,
    requests: Arc<AtomicU64>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Backend {
    /// Starts one on a free loopback port.
    ///
    /// # Panics
    ///
    /// When no port is free.
    #[must_use]
    pub fn start() -> Self {
        Self::start_on(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a loopback port is free")
    }

    /// Starts one on a given address.
    ///
    /// # Errors
    ///
    /// When the address is taken.
    ///
    /// # Panics
    ///
    /// When the system has no thread left.
    pub fn start_on(address: SocketAddr) -> std::io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let requests = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&requests);
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("backend".into()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
            runtime.block_on(async move {
                tokio::select! {
                    () = serve(listener, counter) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { address, requests, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many requests have reached it.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the backend has been printed, and shows as a missing answer.
            let _ = thread.join();
        }
    }
}

async fn serve(listener: std::net::TcpListener, requests: Arc<AtomicU64>) {
    let listener = TcpListener::from_std(listener).expect("a listening socket");
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        // Without it a small answer waits for the acknowledgement of the one before.
        let _ = stream.set_nodelay(true);
        let requests = Arc::clone(&requests);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                requests.fetch_add(1, Ordering::Relaxed);
                async move { Ok::<_, Infallible>(answer(request).await) }
            });
            let mut server = auto::Builder::new(TokioExecutor::new());
            server.http1().max_headers(2000).max_buf_size(2 << 20);
            server.http2().max_header_list_size(2 << 20);
            // The peer went away: that is its right.
            let _ = server.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(request: Request<Incoming>) -> Answer {
    let path = request.uri().path().to_owned();
    match path.as_str() {
        "/slow" => {
            let millis = request
                .uri()
                .query()
                .and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("millis=")))
                .and_then(|millis| millis.parse().ok())
                .unwrap_or(200_u64);
            tokio::time::sleep(Duration::from_millis(millis.min(10_000))).await;
            page(StatusCode::OK, "text/html; charset=utf-8", PAGE)
        }
        "/sse" => {
            let mut response = Response::new(Ticks::default().boxed());
            set(&mut response, CONTENT_TYPE, "text/event-stream");
            set(&mut response, HeaderName::from_static("cache-control"), "no-store");
            response
        }
        "/ws" => upgrade(request),
        "/leak" => page(StatusCode::INTERNAL_SERVER_ERROR, "text/html; charset=utf-8", LEAK),
        "/reflect" => reflect(request).await,
        "/echo" => echo(request).await,
        path if path.starts_with(shop::ROOT) => {
            let method = request.method().clone();
            // A connection is kept only if the body was read.
            let _ = request.into_body().collect().await;
            shop::answer(&method, path)
        }
        _ => match path.strip_prefix("/status/").and_then(|code| code.parse().ok()) {
            Some(code) => page(code, "text/plain", "as asked\n"),
            None if request.body().is_end_stream() => page(StatusCode::OK, "text/html; charset=utf-8", PAGE),
            None => echo(request).await,
        },
    }
}

fn page(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()).boxed());
    *response.status_mut() = status;
    set(&mut response, CONTENT_TYPE, content_type);
    response
}

fn set(response: &mut Answer, name: HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}

async fn echo(request: Request<Incoming>) -> Answer {
    let (head, body) = request.into_parts();
    let body = match body.collect().await {
        Ok(body) => body,
        Err(error) => {
            return page(StatusCode::BAD_REQUEST, "text/plain", format!("the body broke off: {error}\n"));
        }
    };
    let fields = |map: &HeaderMap| {
        let pair = |(name, value): (&HeaderName, &HeaderValue)| {
            json!([name.as_str(), String::from_utf8_lossy(value.as_bytes())])
        };
        map.iter().map(pair).collect::<Vec<Value>>()
    };
    let headers = fields(&head.headers);
    let trailers = body.trailers().map(fields).unwrap_or_default();
    let body = body.to_bytes();
    let seen = json!({
        "method": head.method.as_str(),
        "path": head.uri.path_and_query().map_or("", |path| path.as_str()),
        "version": format!("{:?}", head.version),
        "headers": headers,
        "trailers": trailers,
        "body_length": body.len(),
        "body_sha256": hex(&Sha256::digest(&body)),
    });
    page(StatusCode::OK, "application/json", seen.to_string())
}

/// Lower-case hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn reflect(request: Request<Incoming>) -> Answer {
    let body = match request.into_body().collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => {
            return page(StatusCode::BAD_REQUEST, "text/plain", format!("the body broke off: {error}\n"));
        }
    };
    let wish: Value = match serde_json::from_slice(&body) {
        Ok(wish) => wish,
        Err(error) => return page(StatusCode::BAD_REQUEST, "text/plain", format!("no JSON: {error}\n")),
    };
    let content = match wish["encodedBody"].as_str() {
        Some(encoded) => STANDARD.decode(encoded).unwrap_or_default(),
        None => wish["body"].as_str().unwrap_or_default().as_bytes().to_vec(),
    };
    let status = wish["status"]
        .as_u64()
        .and_then(|status| u16::try_from(status).ok())
        .and_then(|status| StatusCode::from_u16(status).ok())
        .unwrap_or(StatusCode::OK);
    let mut response = Response::new(Full::new(Bytes::from(content)).boxed());
    *response.status_mut() = status;
    for (name, value) in wish["headers"].as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

fn upgrade(mut request: Request<Incoming>) -> Answer {
    let Some(key) = request.headers().get("sec-websocket-key").cloned() else {
        return page(StatusCode::UPGRADE_REQUIRED, "text/plain", "ask for an upgrade to websocket\n");
    };
    tokio::spawn(async move {
        let Ok(upgraded) = hyper::upgrade::on(&mut request).await else {
            return;
        };
        let mut stream = TokioIo::new(upgraded);
        let mut buffer = vec![0; 16 << 10];
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            if stream.write_all(&buffer[..read]).await.is_err() || stream.flush().await.is_err() {
                return;
            }
        }
    });
    let mut digest = Sha1::new();
    digest.update(key.as_bytes());
    digest.update(WEBSOCKET_GUID);
    let accept = STANDARD.encode(digest.finalize());
    let mut response = page(StatusCode::SWITCHING_PROTOCOLS, "text/plain", "");
    response.headers_mut().remove(CONTENT_TYPE);
    set(&mut response, CONNECTION, "upgrade");
    set(&mut response, UPGRADE, "websocket");
    if let Ok(accept) = HeaderValue::from_str(&accept) {
        response.headers_mut().insert("sec-websocket-accept", accept);
    }
    response
}

/// An event stream that goes on until its reader leaves.
#[derive(Default)]
struct Ticks {
    count: u64,
    wait: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl Body for Ticks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(wait) = self.wait.as_mut()
            && wait.as_mut().poll(context).is_pending()
        {
            return Poll::Pending;
        }
        self.wait = Some(Box::pin(tokio::time::sleep(Duration::from_millis(200))));
        self.count += 1;
        let event = format!("data: tick {}\n\n", self.count);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(event)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{self, Connection};

    #[test]
    fn it_says_what_it_saw() {
        let backend = Backend::start();
        let to = backend.address();
        let seen = http::Request::post("/echo?a=1", "text/plain", "hello").chunked(2).send(to).unwrap().json();
        assert_eq!(seen["path"], "/echo?a=1");
        assert_eq!(seen["body_length"], 5);
        assert_eq!(seen["body_sha256"], hex(&Sha256::digest("hello")));
        assert_eq!(http::Request::get("/status/418").send(to).unwrap().status, 418);
        assert!(http::Request::get("/leak").send(to).unwrap().text().contains("SQL syntax"));
        assert_eq!(backend.requests(), 3);
    }

    #[test]
    fn it_reflects_and_streams_and_upgrades() {
        let backend = Backend::start();
        let to = backend.address();
        let wish = json!({"status": 201, "headers": {"x-a": "b"}, "encodedBody": "aGk="});
        let answer = http::Request::json("/reflect", &wish).send(to).unwrap();
        assert_eq!((answer.status, answer.header("x-a").as_deref(), answer.text().as_str()), (201, Some("b"), "hi"));

        let mut stream = Connection::open(to).unwrap();
        stream.write(&http::Request::get("/sse").encode()).unwrap();
        assert_eq!(stream.read_head().unwrap().status, 200);
        assert!(String::from_utf8(stream.read_some().unwrap()).unwrap().contains("tick 1"));

        let mut socket = Connection::open(to).unwrap();
        let upgrade = http::Request::get("/ws")
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        socket.write(&upgrade.encode()).unwrap();
        let head = socket.read_head().unwrap();
        assert_eq!(head.status, 101);
        assert_eq!(head.header("sec-websocket-accept").as_deref(), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        socket.write(b"ping").unwrap();
        assert_eq!(socket.read_some().unwrap(), b"ping");
    }
}
