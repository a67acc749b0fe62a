//! `session/_passkey_login_begin`, `_passkey_login`: by a passkey alone, or as the second step of another login.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;

use super::check::{Refusal, options};
use super::describe;
use super::shapes::{PasskeyCredential, request};
use crate::console::body::{self, Body};
use crate::console::enter::{Caller, code_key, count};
use crate::console::guard::no_store;
use crate::console::login::{CODES_OF_A_TICKET, Source, caller, ticket_ended};
use crate::console::state::Console;
use crate::error::ApiError;
use crate::openapi::Routes;
use accounts::{CeremonyKind, Operator, Ticket, TicketKind, TicketSecret, Via};

/// Where a login by a passkey stands.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PasskeyLoginBegin {
    /// The `ticket` of the first step; without it the passkey is all that is shown.
    ticket: Option<String>,
}

/// The answer of a passkey.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PasskeyLogin {
    /// The `ticket` of the first step, if there was one.
    ticket: Option<String>,
    /// What the browser has got from the authenticator.
    credential: PasskeyCredential,
}

pub(super) fn routes() -> Routes<Console> {
    Routes::new()
        .on(describe::login_begin(), begin)
        .on(describe::login(), login)
        .schema::<PasskeyLoginBegin>()
        .schema::<PasskeyLogin>()
}

async fn begin(State(console): State<Console>, source: Source, headers: HeaderMap, body: Body) -> Response {
    let answer = console.passkey_login_begin(caller(&source, &headers), body).await;
    no_store(answer.unwrap_or_else(IntoResponse::into_response))
}

async fn login(State(console): State<Console>, source: Source, headers: HeaderMap, body: Body) -> Response {
    let answer = console.passkey_login(caller(&source, &headers), body).await;
    no_store(answer.unwrap_or_else(IntoResponse::into_response))
}

impl Console {
    async fn passkey_login_begin(&self, caller: Caller<'_>, body: Body) -> Result<Response, ApiError> {
        let PasskeyLoginBegin { ticket } = body::read(caller.headers, body)?;
        let (now, site) = (self.now(), self.site()?);
        // A challenge counts as failed until it was answered well: each one is a row in the store.
        self.throttle(caller.source, None, now).await?;
        let (name, passkeys) = match ticket {
            None => (String::new(), Vec::new()),
            Some(ticket) => {
                let (_, operator, _) = self.second_step(&ticket, now).await?.ok_or_else(ticket_ended)?;
                let passkeys = self.inner.store.passkeys(&operator.name).await?;
                if passkeys.is_empty() {
                    return Err(ticket_ended());
                }
                (operator.name, passkeys)
            }
        };
        let challenge = self.challenge(CeremonyKind::PasskeyLogin, &name, now).await?;
        Ok(Json(options(request(site, &passkeys, &challenge))).into_response())
    }

    async fn passkey_login(&self, caller: Caller<'_>, body: Body) -> Result<Response, ApiError> {
        let PasskeyLogin { ticket, credential } = body::read(caller.headers, body)?;
        let (now, source) = (self.now(), caller.source);
        self.site()?;
        let Some(ticket) = ticket else { return self.passkey_alone(&credential, caller, now).await };
        let Some((ticket, operator, via)) = self.second_step(&ticket, now).await? else {
            self.throttle(source, None, now).await?;
            return Err(ticket_ended());
        };
        let key = code_key(&operator.name);
        self.throttle(source, Some((&operator.name, &key)), now).await?;
        if let Err(refusal) = self.check_passkey(CeremonyKind::PasskeyLogin, &operator.name, &credential, now).await? {
            self.inner.store.ticket_failed(ticket.sha256, CODES_OF_A_TICKET).await?;
            return Err(self.login_refused(&refusal, caller));
        }
        let Some(operator) = self.inner.store.ticket_take(ticket.sha256, ticket.kind, now).await? else {
            return Err(ticket_ended());
        };
        let answer = self.begin(&operator, (via, true), caller, now).await?.ok_or_else(ticket_ended)?;
        self.forgive(source, Some(&key));
        // The challenge.
        self.forgive(source, None);
        self.logged_in(&operator, &format!("via: {}, with a passkey", via.as_str()), source);
        Ok(answer)
    }

    async fn passkey_alone(
        &self,
        credential: &PasskeyCredential,
        caller: Caller<'_>,
        now: u64,
    ) -> Result<Response, ApiError> {
        let source = caller.source;
        self.throttle(source, None, now).await?;
        let operator = match self.check_passkey(CeremonyKind::PasskeyLogin, "", credential, now).await? {
            Ok(operator) => operator,
            Err(refusal) => return Err(self.login_refused(&refusal, caller)),
        };
        let gone = || ApiError::new(StatusCode::UNAUTHORIZED, "passkey_refused", "the operator was changed meanwhile");
        let answer = self.begin(&operator, (Via::Passkey, true), caller, now).await?.ok_or_else(gone)?;
        // The login, and the challenge.
        self.forgive(source, None);
        self.forgive(source, None);
        self.logged_in(&operator, "via: passkey", source);
        Ok(answer)
    }

    /// The ticket of a second step, whose it is, and what the first step was.
    async fn second_step(&self, ticket: &str, now: u64) -> Result<Option<(Ticket, Operator, Via)>, ApiError> {
        let found = match TicketSecret::read(ticket) {
            Some(secret) => self.inner.store.ticket(secret.sha256(), now).await?,
            None => None,
        };
        Ok(found.and_then(|(ticket, operator)| match ticket.kind {
            TicketKind::Code(via) => Some((ticket, operator, via)),
            TicketKind::Link => None,
        }))
    }

    fn login_refused(&self, refusal: &Refusal, caller: Caller<'_>) -> ApiError {
        metrics::counter!("palisade_login_failures_total").increment(1);
        count("refused");
        tracing::warn!(source = ?caller.source, why = refusal.why, "refused a login by a passkey");
        self.passkey_refused(refusal, StatusCode::UNAUTHORIZED, caller.source)
    }
}
