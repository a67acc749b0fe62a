//! `_live`: events as they come, as server-sent events (WHATWG HTML, section 9.2).

use std::convert::Infallible;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

use super::search::entry;
use super::{Events, query};
use crate::console::guard::Current;
use crate::console::state::Console;
use crate::error::ApiError;
use crate::query::Parameters;
use accounts::Operator;
use base::clock;
use events::{LiveBatch, LiveStream, MAX_WAITING_EVENTS};

/// How often something is sent, if only a sign of life.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How often it is looked at whether the session still holds.
const SESSION: Duration = Duration::from_secs(5);
/// The parts that wait for the connection. What comes meanwhile waits in the listener's queue, which knows its bounds.
const PARTS: usize = 4;
/// The bytes after which a part takes no further event.
const PART_BYTES: usize = 64 << 10;

pub(super) async fn live(
    State((console, events)): Events,
    Extension(current): Extension<Current>,
    Extension(operator): Extension<Operator>,
    Query(parameters): Parameters,
) -> Result<Response, ApiError> {
    let filters = query::filters(&parameters)?;
    let Some(stream) = events.live.listen(filters, &operator.name) else {
        let message = "too many streams of events are open; close one, or try again later";
        let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message);
        return Err(error.with_header(header::RETRY_AFTER, "30"));
    };
    let (sender, parts) = mpsc::channel(PARTS);
    tokio::spawn(serve(stream, sender, console, current, events.stopping.clone()));
    let body = Body::from_stream(ReceiverStream::new(parts));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        // A proxy that collects answers before it passes them on would show nothing.
        (header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    Ok((headers, body).into_response())
}

type Sender = mpsc::Sender<Result<Bytes, Infallible>>;

/// Sends until the session or the control plane ends, or the client has gone.
async fn serve(
    mut stream: LiveStream,
    sender: Sender,
    console: Console,
    current: Current,
    mut stopping: watch::Receiver<bool>,
) {
    let stopped = async {
        // An error means that the sender is gone, which is a reason to stop as well.
        let _ = stopping.wait_for(|stop| *stop).await;
    };
    let reason = tokio::select! {
        () = feed(&mut stream, &sender) => return,
        () = sender.closed() => return,
        () = session_ends(&console, &current) => "session",
        () = stopped => "shutdown",
    };
    // A client that takes nothing sees the end of the stream alone.
    let _full = sender.try_send(Ok(part("end", &json!({ "reason": reason }))));
}

async fn feed(stream: &mut LiveStream, sender: &Sender) {
    let hello = json!({ "heartbeat_seconds": HEARTBEAT.as_secs(), "queue": MAX_WAITING_EVENTS });
    if sender.send(Ok(part("hello", &hello))).await.is_err() {
        return;
    }
    loop {
        let parts = match tokio::time::timeout(HEARTBEAT, stream.next()).await {
            Ok(batch) => texts(&batch),
            Err(_) => vec![part("heartbeat", &json!({ "at": clock::rfc3339(clock::now_millis()) }))],
        };
        for part in parts {
            if sender.send(Ok(part)).await.is_err() {
                return;
            }
        }
    }
}

/// Waits for the end of a session. Looking at it does not keep it alive.
async fn session_ends(console: &Console, current: &Current) {
    loop {
        tokio::time::sleep(SESSION).await;
        // A store that fails ends no session.
        if let Ok(false) = console.holds(current).await {
            return;
        }
    }
}

/// The events of a batch, several in a part.
fn texts(batch: &LiveBatch) -> Vec<Bytes> {
    let mut parts = Vec::new();
    let mut text = Vec::new();
    if batch.dropped > 0 {
        text.extend(part("dropped", &json!({ "count": batch.dropped })));
    }
    for event in &batch.events {
        text.extend(part("event", &entry(event.at_millis, &event.line)));
        if text.len() >= PART_BYTES {
            parts.push(std::mem::take(&mut text).into());
        }
    }
    if !text.is_empty() {
        parts.push(text.into());
    }
    parts
}

/// One server-sent event. JSON has no line ends of its own.
fn part(name: &str, data: &Value) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}
