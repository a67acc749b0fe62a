//! The check of admin keys in front of a router.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};

use super::basic::credentials;
use crate::error::ApiError;
use crate::openapi::{Operation, Routes, Security};
use accounts::{AdminKey, Scope};
use base::clock;
use events::{Audit, AuditAction, EventHub};
use listen::Throttle;
use store::Store;

/// Checks admin keys against a store. Cheap to clone.
#[derive(Clone)]
pub struct Access {
    store: Arc<dyn Store>,
    throttle: Arc<Throttle>,
    events: EventHub,
}

/// Who made a request; an extension of requests that have passed a [`guard`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The id of the admin key.
    pub key_id: String,
    /// The name of the admin key.
    pub key_name: String,
    /// Where the request came from; unknown where the API is not served over a network.
    pub source: Option<IpAddr>,
}

impl Access {
    /// Checks against the keys of this store, and tells `events` of keys that were refused.
    pub fn new(store: Arc<dyn Store>, events: EventHub) -> Access {
        Access { store, throttle: Arc::default(), events }
    }

    /// Who sent a request with these headers, when the key has `scope`.
    ///
    /// A right key always passes: a secret of 256 bits is not found by guessing, and a lock on an address would let
    /// one caller shut out all the others behind the same proxy. Throttled is what fails.
    async fn caller(&self, headers: &HeaderMap, source: Option<IpAddr>, scope: Scope) -> Result<Caller, ApiError> {
        let Some(presented) = credentials(headers) else {
            count_refusal("none");
            let what = "send the id and the secret of an admin key as HTTP basic authentication";
            return Err(match headers.contains_key(header::COOKIE) {
                true => unauthorized(&format!("{what}; a console session is not accepted here")),
                false => unauthorized(what),
            });
        };
        let now = clock::now_millis();
        let stored = self.store.admin_key(&presented.id).await?;
        let claimed = stored.as_ref().map(|key| (key.id.clone(), key.name.clone()));
        let audit = |action| {
            let audit = Audit::new(action).from(source);
            // An id that no key has may be anything, a secret in the wrong place included.
            match &claimed {
                Some((id, name)) => audit.admin_key(id, name),
                None => audit,
            }
        };
        let key = match AdminKey::verify(stored, &presented.secret, now) {
            Ok(key) => key,
            Err(refusal) => {
                metrics::counter!("palisade_login_failures_total").increment(1);
                tracing::warn!(key = %presented.id.escape_debug(), ?source, %refusal, "refused an admin key");
                if let Some(wait) = source.and_then(|source| self.throttle.failed(source, now)) {
                    count_refusal("throttled");
                    let seconds = wait.seconds;
                    let message = format!("too many failed logins from this address; try again in {seconds} s");
                    if wait.first {
                        self.events.audit(audit(AuditAction::KeyThrottled).detail(message.as_str()));
                    }
                    let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", message);
                    return Err(error.with_header(header::RETRY_AFTER, &seconds.to_string()));
                }
                count_refusal("wrong");
                self.events.audit(audit(AuditAction::KeyRefused).detail(refusal.to_string()));
                return Err(unauthorized(&refusal.to_string()));
            }
        };
        if !key.has(scope) {
            count_refusal("scope");
            let held = key.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(", ");
            let message = format!("the admin key lacks the scope `{scope}`; it has: {held}");
            self.events.audit(audit(AuditAction::KeyRefused).detail(message.as_str()));
            return Err(ApiError::new(StatusCode::FORBIDDEN, "forbidden", message));
        }
        Ok(Caller { key_id: key.id, key_name: key.name, source })
    }
}

/// Lets only requests with a suitable admin key through to `routes`, and describes what that means for them. `scope` is
/// what they need; `None` means `read` for GET and HEAD and `write` for everything else.
pub fn guard<S: Clone + Send + Sync + 'static>(routes: Routes<S>, access: Access, scope: Option<Scope>) -> Routes<S> {
    let layer = middleware::from_fn(move |request: Request, next: Next| {
        let access = access.clone();
        async move { check(access, scope, request, next).await }
    });
    routes.layered(|router| router.layer(layer)).described(move |operation| describe(operation, scope))
}

/// The scope that a request needs.
fn needed(scope: Option<Scope>, method: &Method) -> Scope {
    scope.unwrap_or(match *method {
        Method::GET | Method::HEAD => Scope::Read,
        _ => Scope::Write,
    })
}

fn describe(operation: Operation, scope: Option<Scope>) -> Operation {
    let scope = needed(scope, operation.method());
    operation
        .demands(Security::AdminKey(scope.as_str()))
        .fails(StatusCode::UNAUTHORIZED, "unauthorized", "no admin key, or one that is wrong, revoked or expired.")
        .with_header(StatusCode::UNAUTHORIZED, &header::WWW_AUTHENTICATE, true)
        .fails(StatusCode::FORBIDDEN, "forbidden", &format!("the admin key lacks the scope `{scope}`."))
        .fails(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", "too many wrong admin keys from this address.")
        .with_header(StatusCode::TOO_MANY_REQUESTS, &header::RETRY_AFTER, true)
        .fails(StatusCode::INTERNAL_SERVER_ERROR, "store_failed", "the store failed.")
        .fails(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", "the control plane is stopping.")
}

async fn check(access: Access, scope: Option<Scope>, mut request: Request, next: Next) -> Response {
    let needed = needed(scope, request.method());
    let source = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    match access.caller(request.headers(), source, needed).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller.clone());
            let mut response = next.run(request).await;
            // For the log line, which is written further out.
            response.extensions_mut().insert(caller);
            response
        }
        Err(error) => error.into_response(),
    }
}

fn count_refusal(reason: &'static str) {
    metrics::counter!("palisade_access_refusals_total", "reason" => reason).increment(1);
}

fn unauthorized(message: &str) -> ApiError {
    let error = ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message);
    error.with_header(header::WWW_AUTHENTICATE, r#"Basic realm="palisade admin api", charset="UTF-8""#)
}
