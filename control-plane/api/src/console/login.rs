//! `session/_login`, `_redeem`, `_login_code`, `_logout`, `_me`.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::{self, Body, BodyProblem};
use super::describe;
use super::enter::{Caller, CodeCheck, busy, code_key, count, password_key, paused, told, with_cookie};
use super::guard::no_store;
use super::session::{clear_cookie, cookie_of, wants_secure};
use super::state::Console;
use super::who::Who;
use crate::error::ApiError;
use crate::names::ID_TOKEN_COOKIE;
use crate::openapi::Routes;
use accounts::{Checked, MAX_PASSWORD_BYTES, Operator, TicketKind, TicketSecret, Via, normal_name};
use events::AuditAction;

/// The bytes of a login's body, at most.
const MAX_BODY: usize = 16 * 1024;
/// Wrong codes after which the second step ends and the login begins anew.
pub(super) const CODES_OF_A_TICKET: u32 = 5;

/// The body of a login.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Login {
    /// The operator's name, case ignored.
    name: String,
    /// The operator's password.
    password: String,
}

/// A login link.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Redeem {
    /// What follows `#login=` in it.
    token: String,
}

/// The second step of a login.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LoginCode {
    /// The `ticket` of the first step.
    ticket: String,
    /// A code of the authenticator app, or a recovery code.
    code: String,
}

/// What needs no session.
pub(super) fn open() -> Routes<Console> {
    let routes = Routes::new()
        .on(describe::login(), login)
        .on(describe::redeem(), redeem)
        .on(describe::login_code(), login_code)
        .schema::<Login>()
        .schema::<Redeem>()
        .schema::<LoginCode>();
    routes.layered(|router| router.layer(DefaultBodyLimit::max(MAX_BODY)))
}

/// What needs one.
pub(super) fn guarded() -> Routes<Console> {
    Routes::new().on(describe::logout(), logout).on(describe::me(), me)
}

pub(super) type Source = Option<Extension<ConnectInfo<SocketAddr>>>;

pub(super) fn caller<'a>(source: &Source, headers: &'a HeaderMap) -> Caller<'a> {
    Caller { source: source.as_ref().map(|Extension(info)| info.0.ip()), headers }
}

async fn login(State(console): State<Console>, source: Source, headers: HeaderMap, body: Body) -> Response {
    no_store(console.login(caller(&source, &headers), body).await.unwrap_or_else(IntoResponse::into_response))
}

async fn redeem(State(console): State<Console>, source: Source, headers: HeaderMap, body: Body) -> Response {
    no_store(console.redeem(caller(&source, &headers), body).await.unwrap_or_else(IntoResponse::into_response))
}

async fn login_code(State(console): State<Console>, source: Source, headers: HeaderMap, body: Body) -> Response {
    no_store(console.login_code(caller(&source, &headers), body).await.unwrap_or_else(IntoResponse::into_response))
}

impl Console {
    async fn login(&self, caller: Caller<'_>, body: Body) -> Result<Response, ApiError> {
        let Login { name, password } = body::read(caller.headers, body)?;
        let (now, source) = (self.now(), caller.source);
        // A name that cannot be one is treated as one that does not exist; it is throttled by what was sent.
        let name = normal_name(&name).unwrap_or(name);
        let key = password_key(&name);
        self.throttle(source, Some((&name, &key)), now).await?;
        let operator = self.inner.store.operator(&name).await?;
        let stored = operator.as_ref().and_then(Operator::password);
        let checked = match password.len() > MAX_PASSWORD_BYTES {
            // No operator has such a password.
            true => Checked::Wrong,
            false => self.inner.passwords.check(stored, password).await,
        };
        let operator = match (checked, operator) {
            (Checked::Right, Some(operator)) => operator,
            (Checked::Busy, _) => {
                self.forgive(source, Some(&key));
                return Err(busy());
            }
            (_, operator) => return Err(self.refused(operator.as_ref(), source)),
        };
        let Some(answer) = self.first_step(&operator, Via::Password, caller, now).await? else {
            // Removed, or given another password, while this one was checked.
            return Err(self.refused(Some(&operator), source));
        };
        self.forgive(source, Some(&key));
        if !operator.has_second_factor() {
            self.logged_in(&operator, "", source);
        }
        Ok(answer)
    }

    async fn redeem(&self, caller: Caller<'_>, body: Body) -> Result<Response, ApiError> {
        let Redeem { token } = body::read(caller.headers, body)?;
        let (now, source) = (self.now(), caller.source);
        self.throttle(source, None, now).await?;
        let taken = match TicketSecret::read(&token) {
            Some(secret) => self.inner.store.ticket_take(secret.sha256(), TicketKind::Link, now).await?,
            None => None,
        };
        let Some(operator) = taken else { return Err(self.link_refused(source)) };
        let Some(answer) = self.first_step(&operator, Via::Link, caller, now).await? else {
            return Err(self.link_refused(source));
        };
        self.forgive(source, None);
        if !operator.has_second_factor() {
            self.logged_in(&operator, "by a login link", source);
        }
        Ok(answer)
    }

    async fn login_code(&self, caller: Caller<'_>, body: Body) -> Result<Response, ApiError> {
        let LoginCode { ticket, code } = body::read(caller.headers, body)?;
        let (now, source) = (self.now(), caller.source);
        let found = match TicketSecret::read(&ticket) {
            Some(secret) => self.inner.store.ticket(secret.sha256(), now).await?,
            None => None,
        };
        let Some((ticket, operator, via)) = found.and_then(|(ticket, operator)| match ticket.kind {
            TicketKind::Code(via) => Some((ticket, operator, via)),
            TicketKind::Link => None,
        }) else {
            self.throttle(source, None, now).await?;
            return Err(ticket_ended());
        };
        let key = code_key(&operator.name);
        self.throttle(source, Some((&operator.name, &key)), now).await?;
        match self.check_code(&operator.name, &code, now).await? {
            CodeCheck::Right => {}
            CodeCheck::Wrong => {
                self.inner.store.ticket_failed(ticket.sha256, CODES_OF_A_TICKET).await?;
                let message = "the code is wrong or was used before";
                self.inner.events.audit(told(AuditAction::LoginRefused, Some(&operator), source).detail(message));
                return Err(failed(message));
            }
            CodeCheck::Paused(seconds) => return Err(paused(seconds)),
        }
        let Some(operator) = self.inner.store.ticket_take(ticket.sha256, ticket.kind, now).await? else {
            return Err(ticket_ended());
        };
        let Some(answer) = self.begin(&operator, (via, true), caller, now).await? else {
            return Err(ticket_ended());
        };
        self.forgive(source, Some(&key));
        let how = match via {
            Via::Password => "with a second factor",
            Via::Link => "by a login link, with a second factor",
            Via::Oidc => "via: oidc, with a second factor",
            Via::Passkey => "via: passkey",
        };
        self.logged_in(&operator, how, source);
        Ok(answer)
    }

    fn refused(&self, operator: Option<&Operator>, source: Option<IpAddr>) -> ApiError {
        // Some type their password where the name belongs: what is no operator's name is not written down.
        let shown = operator.map_or("(nobody)", |operator| &operator.name);
        tracing::warn!(operator = %shown, ?source, "refused a console login");
        let why = if operator.is_some() { "the password is wrong" } else { "the name is not known" };
        self.inner.events.audit(told(AuditAction::LoginRefused, operator, source).detail(why));
        failed("the name is not known or the password is wrong")
    }

    /// One answer for every reason: a client learns nothing about links that it does not have.
    fn link_refused(&self, source: Option<IpAddr>) -> ApiError {
        tracing::warn!(?source, "refused a login link");
        let why = "the login link is not known, was used, or has expired";
        self.inner.events.audit(told(AuditAction::LoginRefused, None, source).detail(why));
        failed("the login link is not known, was used, or has expired; ask for a new one")
    }
}

async fn logout(State(console): State<Console>, who: Who, headers: HeaderMap) -> Result<Response, ApiError> {
    console.inner.store.session_end(who.current.session.token_sha256).await?;
    tracing::info!(operator = %who.operator.name, "an operator has logged out");
    console.inner.events.audit(who.audit(AuditAction::Logout));
    let cookie = clear_cookie(wants_secure(console.inner.loopback, &headers));
    let url = console.provider_logout(&who.current.session, &headers).await;
    let answer = with_cookie(Json(json!({ "done": true, "url": url })).into_response(), &cookie);
    Ok(match cookie_of(&headers, ID_TOKEN_COOKIE) {
        Some(_) => with_cookie(answer, &console.id_token_cookie("", 0, &headers)),
        None => answer,
    })
}

async fn me(State(console): State<Console>, who: Who) -> Json<Value> {
    Json(console.describe(&who.current.session, &who.current.token, &who.operator))
}

fn failed(message: &str) -> ApiError {
    metrics::counter!("palisade_login_failures_total").increment(1);
    count("refused");
    ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
}

pub(super) fn ticket_ended() -> ApiError {
    let message = "the login took too long or had too many wrong codes; begin it anew";
    ApiError::new(StatusCode::UNAUTHORIZED, "ticket_ended", message)
}

impl From<BodyProblem> for ApiError {
    fn from(problem: BodyProblem) -> ApiError {
        ApiError::new(problem.status, problem.error, problem.description)
    }
}
