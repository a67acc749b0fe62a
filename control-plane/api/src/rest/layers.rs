//! What every request goes through: an id, a line in the log, metrics, error bodies in JSON.

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::Response;
use tracing::Instrument as _;

use super::AppState;
use crate::access::{Caller, only_hosts};
use crate::error::ApiError;
use accounts::Operator;
use base::clock::Stopwatch;
use telemetry::within;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Puts the common layers around all routes.
pub(super) fn wrap(routes: Router, state: &AppState) -> Router {
    let group = state.config.entity_group.clone();
    let routes = routes
        .fallback(move |uri: Uri| {
            let group = group.clone();
            async move {
                let path = uri.path().escape_debug();
                ApiError::not_found(format!("there is nothing at `{path}`; the entities are under /apis/{group}/v1/"))
            }
        })
        .method_not_allowed_fallback(|| async {
            let message = "this path exists, but not with this method; the Allow header lists those it has";
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
        });
    only_hosts(routes, &state.config.hosts).layer(middleware::from_fn(observe))
}

async fn observe(mut request: Request, next: Next) -> Response {
    let watch = Stopwatch::start();
    let id = request_id(&request);
    request.headers_mut().insert(REQUEST_ID, id.clone());
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    // The pattern and not the path: ids must not become labels.
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or_default(), %method, path);
    let work = within(id.to_str().unwrap_or_default(), next.run(request));
    let mut response = work.instrument(span.clone()).await;
    let (status, seconds) = (response.status().as_u16(), watch.seconds());
    let labels =
        [("method", known_method(method.as_str()).to_owned()), ("route", route), ("status", status.to_string())];
    metrics::counter!("palisade_http_requests_total", &labels).increment(1);
    metrics::histogram!("palisade_http_request_seconds", &labels).record(seconds);
    let key = response.extensions().get::<Caller>().map(|caller| caller.key_id.as_str());
    let operator = response.extensions().get::<Operator>().map(|operator| operator.name.as_str());
    tracing::info!(parent: &span, status, seconds, key, operator, "answered");
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// Methods become labels of metrics, so a caller must not be able to make them up.
fn known_method(method: &str) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method).unwrap_or("other")
}

/// The caller's own request id where it is sane, else a new one.
fn request_id(request: &Request) -> HeaderValue {
    let sane = |value: &&HeaderValue| {
        (1..=128).contains(&value.len())
            && value.as_bytes().iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte))
    };
    let given = request.headers().get(REQUEST_ID).filter(sane).cloned();
    given
        .or_else(|| HeaderValue::from_str(&uuid::Uuid::new_v4().to_string()).ok())
        .unwrap_or(HeaderValue::from_static("-"))
}
