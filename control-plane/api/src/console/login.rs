//! `session/_login`, `session/_logout`, `session/_me`.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::body::{self, Body, BodyProblem};
use super::describe;
use super::guard::{Current, no_store};
use super::session::{Token, clear_cookie, wants_secure};
use super::state::Console;
use crate::error::ApiError;
use crate::openapi::Routes;
use accounts::{Checked, MAX_PASSWORD_BYTES, Operator, Session, normal_name};
use base::clock;
use events::{Audit, AuditAction};

/// The bytes of a login's body, at most.
const MAX_BODY: usize = 16 * 1024;

/// The body of a login.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Login {
    /// The operator's name, case ignored.
    name: String,
    /// The operator's password.
    password: String,
}

/// What needs no session.
pub(super) fn open() -> Routes<Console> {
    let routes = Routes::new().on(describe::login(), login).schema::<Login>();
    routes.layered(|router| router.layer(DefaultBodyLimit::max(MAX_BODY)))
}

/// What needs one.
pub(super) fn guarded() -> Routes<Console> {
    Routes::new().on(describe::logout(), logout).on(describe::me(), me)
}

async fn login(
    State(console): State<Console>,
    source: Option<Extension<ConnectInfo<SocketAddr>>>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let source = source.map(|Extension(info)| info.0.ip());
    no_store(match console.login(source, &headers, body).await {
        Ok(answer) => answer,
        Err(error) => error.into_response(),
    })
}

impl Console {
    async fn login(&self, source: Option<IpAddr>, headers: &HeaderMap, body: Body) -> Result<Response, ApiError> {
        let Login { name, password } = body::read(headers, body)?;
        let now = self.now();
        // A name that cannot be one is treated as one that does not exist; it is throttled by what was sent.
        let name = normal_name(&name).unwrap_or(name);
        let name_sha256: [u8; 32] = Sha256::digest(name.as_bytes()).into();
        self.throttle(source, &name, &name_sha256, now).await?;
        let operator = self.inner.store.operator(&name).await?;
        let stored = operator.as_ref().map(|operator| operator.password_hash.clone());
        let checked = match password.len() > MAX_PASSWORD_BYTES {
            // Not a password that anybody has.
            true => Checked::Wrong,
            false => self.inner.passwords.check(stored, password).await,
        };
        let operator = match (checked, operator) {
            (Checked::Right, Some(operator)) => operator,
            (Checked::Busy, _) => {
                self.forgive(source, &name_sha256);
                let error = ApiError::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "busy",
                    "too many logins at the same time; try again in a few seconds",
                );
                return Err(error.with_header(header::RETRY_AFTER, "5"));
            }
            (_, operator) => return Err(self.refused(operator.as_ref(), source)),
        };
        let token = Token::random().map_err(|error| {
            let message = format!("the operating system gives no random bytes: {error}");
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "no_randomness", message)
        })?;
        let session = Session {
            token_sha256: token.sha256(),
            operator: operator.name.clone(),
            created_at_millis: now,
            seen_at_millis: now,
        };
        let limit = self.inner.limits.per_operator;
        if !self.inner.store.session_begin(session.clone(), &operator.password_hash, limit).await? {
            // Removed, or given another password, while this one was checked.
            return Err(self.refused(Some(&operator), source));
        }
        self.forgive(source, &name_sha256);
        tracing::info!(operator = %operator.name, ?source, "an operator has logged in");
        count("taken");
        self.inner.events.audit(told(AuditAction::Login, Some(&operator), source));
        let mut answer = self.describe(&session, &token, &operator);
        if let Some(fields) = answer.as_object_mut() {
            fields.shift_insert(0, "done".to_owned(), true.into());
        }
        let secure = wants_secure(self.inner.loopback, headers);
        let cookie = token.set_cookie(self.inner.limits.absolute_millis / 1000, secure);
        Ok(with_cookie(Json(answer).into_response(), &cookie))
    }

    /// Counts the login as failed before it is checked, so that many at the same time are no way around the count.
    ///
    /// What is told to wait is not checked, so it is no guess and counts on one side alone: an address that waits must not
    /// make any number of names wait, and who insists on a name that waits must not use up what the others behind the
    /// same address have.
    async fn throttle(
        &self,
        source: Option<IpAddr>,
        name: &str,
        name_sha256: &[u8; 32],
        now: u64,
    ) -> Result<(), ApiError> {
        let by_address = source.and_then(|source| self.inner.addresses.failed(source, now));
        let (wait, what) = match by_address {
            Some(wait) => (wait, "from this address"),
            None => {
                let Some(wait) = self.inner.names.count(*name_sha256, now) else {
                    return Ok(());
                };
                if let Some(source) = source {
                    self.inner.addresses.succeeded(source);
                }
                (wait, "for this name")
            }
        };
        metrics::counter!("palisade_console_refusals_total", "reason" => "throttled").increment(1);
        count("throttled");
        let seconds = wait.seconds;
        let message = format!("too many failed logins {what}; try again in {seconds} s");
        if wait.first {
            // Without the name where the store cannot say whose it is.
            let operator = self.inner.store.operator(name).await.unwrap_or_default();
            let audit = told(AuditAction::LoginThrottled, operator.as_ref(), source);
            self.inner.events.audit(audit.detail(message.as_str()));
        }
        let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", message);
        Err(error.with_header(header::RETRY_AFTER, &seconds.to_string()))
    }

    fn forgive(&self, source: Option<IpAddr>, name: &[u8; 32]) {
        if let Some(source) = source {
            self.inner.addresses.succeeded(source);
        }
        self.inner.names.forgive(name);
    }

    fn refused(&self, operator: Option<&Operator>, source: Option<IpAddr>) -> ApiError {
        metrics::counter!("palisade_login_failures_total").increment(1);
        count("refused");
        // Some type their password where the name belongs: what is no operator's name is not written down.
        let shown = operator.map_or("(nobody)", |operator| &operator.name);
        tracing::warn!(operator = %shown, ?source, "refused a console login");
        let why = if operator.is_some() { "the password is wrong" } else { "the name is not known" };
        self.inner.events.audit(told(AuditAction::LoginRefused, operator, source).detail(why));
        ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", "the name is not known or the password is wrong")
    }

    fn describe(&self, session: &Session, token: &Token, operator: &Operator) -> Value {
        json!({
            "operator": { "name": operator.name, "email": operator.email },
            "csrf_token": token.csrf(),
            "created_at": clock::rfc3339(session.created_at_millis),
            "expires_at": clock::rfc3339(session.ends_at(&self.inner.limits)),
            "idle_seconds": self.inner.limits.idle_millis / 1000,
        })
    }
}

async fn logout(
    State(console): State<Console>,
    Extension(current): Extension<Current>,
    Extension(operator): Extension<Operator>,
    source: Option<Extension<ConnectInfo<SocketAddr>>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    console.inner.store.session_end(current.session.token_sha256).await?;
    tracing::info!(operator = %current.session.operator, "an operator has logged out");
    let source = source.map(|Extension(info)| info.0.ip());
    console.inner.events.audit(told(AuditAction::Logout, Some(&operator), source));
    let cookie = clear_cookie(wants_secure(console.inner.loopback, &headers));
    Ok(with_cookie(Json(json!({ "done": true })).into_response(), &cookie))
}

async fn me(
    State(console): State<Console>,
    Extension(current): Extension<Current>,
    Extension(operator): Extension<Operator>,
) -> Json<Value> {
    Json(console.describe(&current.session, &current.token, &operator))
}

fn count(outcome: &'static str) {
    metrics::counter!("palisade_console_logins_total", "outcome" => outcome).increment(1);
}

/// What happened to a login. A name is told only where an operator has it: others may be passwords in the wrong place.
fn told(action: AuditAction, operator: Option<&Operator>, source: Option<IpAddr>) -> Audit {
    let audit = Audit::new(action).from(source);
    match operator {
        Some(operator) => audit.operator(&operator.name, &operator.email),
        None => audit,
    }
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    response
}

impl From<BodyProblem> for ApiError {
    fn from(problem: BodyProblem) -> ApiError {
        ApiError::new(problem.status, problem.error, problem.description)
    }
}
