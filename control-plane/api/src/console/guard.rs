//! The check of sessions in front of a router.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, MatchedPath, Request};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};

use super::session::Token;
use super::state::Console;
use super::{describe, roles};
use crate::error::ApiError;
use crate::names::{CSRF_HEADER, NAMESPACE};
use crate::openapi::Routes;
use accounts::{Operator, Session};
use events::{Audit, AuditAction};

/// The session that a request came with; an extension of requests that have passed [`protect`], as [`Operator`] is.
#[derive(Clone, Debug)]
pub(super) struct Current {
    pub(super) session: Session,
    pub(super) token: Token,
}

/// Lets only requests with a session through to `routes`, of those that are no GET or HEAD only those with the session's token
/// against forged requests, and of all of them those that the operator's role includes (see `roles`). The handlers find the
/// [`Operator`] among the extensions. Answers are marked as not to be stored. The descriptions of the routes say all that from here on.
pub fn protect<S: Clone + Send + Sync + 'static>(routes: Routes<S>, console: Console) -> Routes<S> {
    let layer = middleware::from_fn(move |request: Request, next: Next| {
        let console = console.clone();
        async move { no_store(check(console, request, next).await) }
    });
    routes.layered(|router| router.layer(layer)).described(describe::protected)
}

async fn check(console: Console, mut request: Request, next: Next) -> Response {
    let (current, operator) = match console.current(request.headers()).await {
        Ok(found) => found,
        Err(error) => return error.into_response(),
    };
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if !reads && !current.token.is_csrf(request.headers()) {
        metrics::counter!("palisade_console_refusals_total", "reason" => "csrf").increment(1);
        let message = format!(
            "send the header `{CSRF_HEADER}` with the `csrf_token` that the login and {NAMESPACE}/session/_me answer"
        );
        return ApiError::new(StatusCode::FORBIDDEN, "csrf", message).into_response();
    }
    if let Err(error) = console.admit(&operator, &current.session, &request) {
        return error.into_response();
    }
    request.extensions_mut().insert(current);
    request.extensions_mut().insert(operator.clone());
    let mut response = next.run(request).await;
    // For the log line, which is written further out.
    response.extensions_mut().insert(operator);
    response
}

impl Console {
    /// An error if the operator's role does not include what a request asks for.
    fn admit(&self, operator: &Operator, session: &Session, request: &Request) -> Result<(), ApiError> {
        let pattern = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
        if self.inner.login.lacks_second_factor(operator, session) && !roles::is_own_account(pattern) {
            metrics::counter!("palisade_console_refusals_total", "reason" => "second_factor").increment(1);
            let message = format!(
                "a second factor is required and this operator has none; {NAMESPACE}/session/_second_factor_enrol adds one"
            );
            return Err(ApiError::new(StatusCode::FORBIDDEN, "second_factor_required", message));
        }
        let needed = roles::needed(request.method(), pattern);
        roles::demand(operator, needed).inspect_err(|_| {
            let source = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
            let detail = format!("{} {pattern}: needs `{needed}`, has `{}`", request.method(), operator.role);
            let audit = Audit::new(AuditAction::RoleRefused).operator(&operator.name, &operator.email).from(source);
            self.inner.events.audit(audit.detail(detail));
        })
    }

    /// The session that these headers carry.
    async fn current(&self, headers: &HeaderMap) -> Result<(Current, Operator), ApiError> {
        let Some(token) = Token::of_request(headers) else {
            let what = match headers.contains_key(header::AUTHORIZATION) {
                true => "an admin key is not accepted here: this endpoint wants a console session",
                false => "this endpoint wants a console session",
            };
            return Err(unauthorized(what));
        };
        let now = self.now();
        let found = self.inner.store.session(token.sha256()).await?;
        let Some((session, operator)) = found.filter(|(session, _)| session.holds(&self.inner.limits, now)) else {
            return Err(unauthorized("the console session has ended"));
        };
        if now >= session.seen_at_millis.saturating_add(self.inner.limits.touch_millis) {
            // A session that could not be touched still holds; it only ends earlier.
            if let Err(error) = self.inner.store.session_touch(session.token_sha256, now).await {
                tracing::warn!(%error, "recording the use of a console session failed");
            }
        }
        Ok((Current { session, token }, operator))
    }

    /// Whether a session still holds. This is no use of it.
    ///
    /// # Errors
    /// What the store reports.
    pub(super) async fn holds(&self, current: &Current) -> Result<bool, store::StoreError> {
        let found = self.inner.store.session(current.token.sha256()).await?;
        Ok(found.is_some_and(|(session, _)| session.holds(&self.inner.limits, self.now())))
    }
}

fn unauthorized(what: &str) -> ApiError {
    metrics::counter!("palisade_console_refusals_total", "reason" => "no_session").increment(1);
    let message = format!(
        "{what}; POST {{\"name\", \"password\"}} of an operator to {NAMESPACE}/session/_login and send the cookie it sets"
    );
    let error = ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message);
    error.with_header(header::WWW_AUTHENTICATE, r#"Session realm="palisade console""#)
}

/// Answers of the console are for the one who asked.
pub(super) fn no_store(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
