//! Serves the admin API to clients that may be slow on purpose.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::header::X_CONTENT_TYPE_OPTIONS;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tower::ServiceExt as _;

use super::connection::Connection;
use super::door::{Door, PAUSE, Welcome};
use super::slow_body::TimedBody;
use super::{Limits, MAX_HEAD_BYTES, MAX_HEADERS};
use crate::Throttle;
use base::clock;

/// Requests of one HTTP/2 connection at the same time.
const STREAMS: u32 = 100;
/// How long a connection that is idle has to end after it was told to.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Serves `router` behind `door`, until `stopping` becomes true and what is under way is done. Requests carry their peer's
/// address as [`ConnectInfo`]. A body that takes longer than the limits allow reads as [`super::TooSlow`].
pub async fn serve(door: Door, router: Router, limits: Limits, stopping: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(limits.connections as usize));
    // One line a minute at most.
    let full = Throttle::<()>::after(0);
    let mut stop = stopping.clone();
    let stopped = stop.wait_for(|stop| *stop);
    tokio::pin!(stopped);
    loop {
        let accepted = async {
            if room.available_permits() == 0 {
                metrics::counter!("palisade_http_connections_full_total").increment(1);
                if full.count((), clock::now_millis()).is_some_and(|wait| wait.first) {
                    tracing::warn!(limit = limits.connections, "the admin API has reached its limit of connections");
                }
            }
            let permit = Arc::clone(&room).acquire_owned().await;
            (permit, poll_fn(|cx| door.poll_accept(cx)).await)
        };
        let (permit, accepted) = tokio::select! {
            _ = &mut stopped => break,
            accepted = accepted => accepted,
        };
        let (Ok(permit), Ok((stream, peer))) = (permit, accepted) else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (welcome, router, stopping) = (door.welcome(), router.clone(), stopping.clone());
        tokio::spawn(async move {
            metrics::gauge!("palisade_http_connections").increment(1.0);
            serve_connection(welcome, stream, peer, router, limits, stopping).await;
            metrics::gauge!("palisade_http_connections").decrement(1.0);
            drop(permit);
        });
    }
    drop(door);
    // Every connection holds a permit.
    let _all = room.acquire_many(limits.connections).await;
}

async fn serve_connection(
    welcome: Welcome,
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    limits: Limits,
    mut stopping: watch::Receiver<bool>,
) {
    let stopped = async move {
        let _ = stopping.wait_for(|stop| *stop).await;
    };
    tokio::pin!(stopped);
    let connection = tokio::select! {
        () = &mut stopped => return,
        connection = welcome.connection(stream, peer) => connection,
    };
    let Some(connection) = connection else { return };
    let builder = builder(connection.is_http2(), limits.idle);
    let activity = Arc::new(Activity::default());
    let io = TokioIo::new(Watched { connection, activity: Arc::clone(&activity) });
    let answering = Arc::clone(&activity);
    let service = hyper::service::service_fn(move |request| {
        answer(router.clone(), request, peer, limits.body, Busy::new(Arc::clone(&answering)))
    });
    let connection = builder.serve_connection(io, service);
    tokio::pin!(connection);
    let idle = activity.idle(limits.idle);
    tokio::pin!(idle);
    let mut told = false;
    let mut cut: Option<Pin<Box<Sleep>>> = None;
    loop {
        tokio::select! {
            result = connection.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(%peer, %error, "a connection has ended");
                }
                return;
            }
            () = &mut stopped, if !told => {
                told = true;
                connection.as_mut().graceful_shutdown();
            }
            () = &mut idle, if cut.is_none() => {
                told = true;
                connection.as_mut().graceful_shutdown();
                cut = Some(Box::pin(sleep(LAST_WORDS)));
            }
            () = async { if let Some(cut) = &mut cut { cut.await } }, if cut.is_some() => return,
        }
    }
}

/// The protocol is known from the handshake, or HTTP/1.1: nothing is guessed from the first bytes, for which a client could
/// take its time.
fn builder(http2: bool, idle: Duration) -> auto::Builder<TokioExecutor> {
    let builder = auto::Builder::new(TokioExecutor::new());
    let mut builder = if http2 { builder.http2_only() } else { builder.http1_only() };
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(idle)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES as usize)
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(MAX_HEAD_BYTES)
        .max_concurrent_streams(STREAMS);
    builder
}

async fn answer(
    router: Router,
    request: hyper::Request<Incoming>,
    peer: SocketAddr,
    limit: Duration,
    busy: Busy,
) -> Result<Response, Infallible> {
    if head_bytes(&request) > MAX_HEAD_BYTES as usize {
        return Ok(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.into_response());
    }
    let mut request: Request = request.map(|body| Body::new(TimedBody::new(body, limit)));
    request.extensions_mut().insert(ConnectInfo(peer));
    let mut answer = router.oneshot(request).await;
    drop(busy);
    if let Ok(response) = &mut answer {
        // No answer is anything else than it says: what clients have sent is in events and errors.
        response.headers_mut().entry(X_CONTENT_TYPE_OPTIONS).or_insert(HeaderValue::from_static("nosniff"));
    }
    answer
}

/// The size of a head. The buffer that it was read into may be larger than its limit.
fn head_bytes(request: &hyper::Request<Incoming>) -> usize {
    let uri = request.uri();
    let target = uri.path_and_query().map_or(0, |path| path.as_str().len());
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len());
    headers.fold(target, usize::saturating_add)
}

// === idle connections ===

/// What happens on a connection: requests under way, and when something last went to the client. What the client sends
/// counts for nothing, or bytes of a head that never ends would keep a connection.
struct Activity {
    began: Instant,
    busy: AtomicUsize,
    /// In milliseconds since `began`.
    last: AtomicU64,
}

impl Activity {
    fn note(&self) {
        let millis = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(millis, Ordering::Relaxed);
    }

    /// Completes when nothing has happened for `limit`.
    async fn idle(&self, limit: Duration) {
        loop {
            if self.busy.load(Ordering::Relaxed) > 0 {
                sleep(limit).await;
                continue;
            }
            let end = self.began + Duration::from_millis(self.last.load(Ordering::Relaxed)) + limit;
            if end <= Instant::now() {
                return;
            }
            sleep_until(end).await;
        }
    }
}

impl Default for Activity {
    fn default() -> Activity {
        Activity { began: Instant::now(), busy: AtomicUsize::new(0), last: AtomicU64::new(0) }
    }
}

/// A request is under way as long as there is one.
struct Busy(Arc<Activity>);

impl Busy {
    fn new(activity: Arc<Activity>) -> Busy {
        activity.busy.fetch_add(1, Ordering::Relaxed);
        Busy(activity)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.note();
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Notes what goes to the client.
struct Watched {
    connection: Connection,
    activity: Arc<Activity>,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.connection).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.connection).poll_write(cx, bytes));
        self.activity.note();
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.connection).poll_write_vectored(cx, slices));
        self.activity.note();
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(cx)
    }
}
