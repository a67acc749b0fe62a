//! What the ways to log in share: throttles, the second step, and the session at the end.

use std::net::IpAddr;

use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::session::{Token, wants_secure};
use super::state::Console;
use crate::error::ApiError;
use accounts::{
    CODE_TICKET_MILLIS, Checked, MAX_PASSWORD_BYTES, Operator, Session, SessionOrigin, TicketKind, TicketSecret, Via,
};
use base::clock;
use events::{Audit, AuditAction};

/// From where a login comes.
#[derive(Clone, Copy)]
pub(super) struct Caller<'a> {
    pub(super) source: Option<IpAddr>,
    pub(super) headers: &'a HeaderMap,
}

/// What a code of a second factor turned out to be.
pub(super) enum CodeCheck {
    Right,
    /// It is wrong, or was used before.
    Wrong,
    /// Too many were wrong; none is taken for so many seconds.
    Paused(u64),
}

/// The key of the throttle for the codes of an operator, apart from the one for their password.
pub(super) fn code_key(name: &str) -> [u8; 32] {
    Sha256::new_with_prefix(b"code\0").chain_update(name).finalize().into()
}

/// The key of the throttle for the password of an operator.
pub(super) fn password_key(name: &str) -> [u8; 32] {
    Sha256::digest(name.as_bytes()).into()
}

impl Console {
    /// What follows a right password or login link: the session, or a ticket for the second step. `None` where the operator was removed or
    /// changed meanwhile.
    pub(super) async fn first_step(
        &self,
        operator: &Operator,
        via: Via,
        caller: Caller<'_>,
        now: u64,
    ) -> Result<Option<Response>, ApiError> {
        if !operator.has_second_factor() {
            return self.begin(operator, (via, false), caller, now).await;
        }
        let secret = TicketSecret::random().map_err(no_randomness)?;
        let until = now.saturating_add(CODE_TICKET_MILLIS);
        let ticket = secret.ticket(&operator.name, TicketKind::Code(via), until);
        if !self.inner.store.ticket_put(ticket, &operator.password_hash).await? {
            return Ok(None);
        }
        count("second_step");
        let answer = json!({
            "done": false, "second_factor": true, "code": operator.second_factor,
            "passkey": operator.passkeys > 0 && self.inner.login.site.is_some(), "ticket": secret.reveal(), "expires_at": clock::rfc3339(until),
        });
        Ok(Some(Json(answer).into_response()))
    }

    /// Begins a session with an id of its own, whatever the client has sent, so that no one can give a client an id beforehand. `None`
    /// where the operator was removed or changed meanwhile.
    pub(super) async fn begin(
        &self,
        operator: &Operator,
        (via, with_code): (Via, bool),
        caller: Caller<'_>,
        now: u64,
    ) -> Result<Option<Response>, ApiError> {
        let token = Token::random().map_err(no_randomness)?;
        let agent = caller.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        let session = Session {
            token_sha256: token.sha256(),
            operator: operator.name.clone(),
            created_at_millis: now,
            seen_at_millis: now,
            origin: SessionOrigin::new(caller.source, agent, via),
        };
        let (store, limit) = (&self.inner.store, self.inner.limits.per_operator);
        if !store.session_begin(session.clone(), &operator.password_hash, with_code, limit).await? {
            return Ok(None);
        }
        let mut answer = self.describe(&session, &token, operator);
        if let Some(fields) = answer.as_object_mut() {
            fields.shift_insert(0, "done".to_owned(), true.into());
        }
        let secure = wants_secure(self.inner.loopback, caller.headers);
        let cookie = token.set_cookie(self.inner.limits.absolute_millis / 1000, secure);
        Ok(Some(with_cookie(Json(answer).into_response(), &cookie)))
    }

    /// Notes a login that has succeeded.
    pub(super) fn logged_in(&self, operator: &Operator, how: &str, source: Option<IpAddr>) {
        tracing::info!(operator = %operator.name, ?source, how, "an operator has logged in");
        count("taken");
        let audit = told(AuditAction::Login, Some(operator), source);
        self.inner.events.audit(if how.is_empty() { audit } else { audit.detail(how) });
    }

    /// Checks a code, and uses it up if it is right.
    pub(super) async fn check_code(&self, name: &str, code: &str, now: u64) -> Result<CodeCheck, ApiError> {
        let store = &self.inner.store;
        let Some(factor) = store.second_factor(name).await?.filter(|factor| factor.confirmed_at_millis.is_some())
        else {
            return Ok(CodeCheck::Wrong);
        };
        if let Some(seconds) = factor.paused(now) {
            return Ok(CodeCheck::Paused(seconds));
        }
        let right = match self.proof_of(name, &factor, code, now)? {
            Some(proof) => store.second_factor_use(name, proof).await?,
            None => false,
        };
        if !right {
            store.second_factor_failed(name, now).await?;
            return Ok(CodeCheck::Wrong);
        }
        self.rewrite_secret(name, &factor).await;
        Ok(CodeCheck::Right)
    }

    /// Checks the password of an operator who has a session, before something that a session alone must not do. Right for one who
    /// has no password.
    ///
    /// # Errors
    /// 403 `wrong_password`, 429, 503 `busy`.
    pub(super) async fn demand_password(
        &self,
        operator: &Operator,
        password: Option<String>,
        source: Option<IpAddr>,
        now: u64,
    ) -> Result<(), ApiError> {
        let Some(hash) = operator.password() else { return Ok(()) };
        let wrong =
            || ApiError::new(StatusCode::FORBIDDEN, "wrong_password", "the current password is missing or wrong");
        let password = password.ok_or_else(wrong)?;
        let key = password_key(&operator.name);
        self.throttle(source, Some((&operator.name, &key)), now).await?;
        let checked = match password.len() > MAX_PASSWORD_BYTES {
            true => Checked::Wrong,
            false => self.inner.passwords.check(Some(hash), password).await,
        };
        match checked {
            Checked::Wrong => return Err(wrong()),
            Checked::Right | Checked::Busy => self.forgive(source, Some(&key)),
        }
        if checked == Checked::Busy { Err(busy()) } else { Ok(()) }
    }

    /// The same for a code of the second factor.
    ///
    /// # Errors
    /// 403 `wrong_code`, 429.
    pub(super) async fn demand_code(
        &self,
        name: &str,
        code: &str,
        source: Option<IpAddr>,
        now: u64,
    ) -> Result<(), ApiError> {
        let key = code_key(name);
        self.throttle(source, Some((name, &key)), now).await?;
        match self.check_code(name, code, now).await? {
            CodeCheck::Right => {
                self.forgive(source, Some(&key));
                Ok(())
            }
            CodeCheck::Wrong => Err(wrong_code()),
            CodeCheck::Paused(seconds) => Err(paused(seconds)),
        }
    }

    /// Counts an attempt as failed before it is checked, so that many at the same time are no way around the count; by the address, and
    /// by the name where there is one.
    ///
    /// What is told to wait is not checked, so it is no guess and counts on one side alone: an address that waits must not
    /// make any number of names wait, and who insists on a name that waits must not use up what the others behind the
    /// same address have.
    pub(super) async fn throttle(
        &self,
        source: Option<IpAddr>,
        name: Option<(&str, &[u8; 32])>,
        now: u64,
    ) -> Result<(), ApiError> {
        let by_address = source.and_then(|source| self.inner.addresses.failed(source, now));
        let (wait, what) = match by_address {
            Some(wait) => (wait, "from this address"),
            None => {
                let Some(wait) = name.and_then(|(_, key)| self.inner.names.count(*key, now)) else {
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
            let operator = match name {
                Some((name, _)) => self.inner.store.operator(name).await.unwrap_or_default(),
                None => None,
            };
            let audit = told(AuditAction::LoginThrottled, operator.as_ref(), source);
            self.inner.events.audit(audit.detail(message.as_str()));
        }
        Err(too_many(&message, seconds))
    }

    /// Takes the count of [`Console::throttle`] back.
    pub(super) fn forgive(&self, source: Option<IpAddr>, name: Option<&[u8; 32]>) {
        if let Some(source) = source {
            self.inner.addresses.succeeded(source);
        }
        if let Some(name) = name {
            self.inner.names.forgive(name);
        }
    }

    /// What login and `_me` answer of a session.
    pub(super) fn describe(&self, session: &Session, token: &Token, operator: &Operator) -> Value {
        json!({
            "operator": {
                "name": operator.name, "email": operator.email, "role": operator.role,
                "has_password": operator.password().is_some(), "second_factor": operator.second_factor,
                "passkeys": operator.passkeys,
            },
            "second_factor_required": self.inner.login.lacks_second_factor(operator, session),
            "csrf_token": token.csrf(),
            "created_at": clock::rfc3339(session.created_at_millis),
            "expires_at": clock::rfc3339(session.ends_at(&self.inner.limits)),
            "idle_seconds": self.inner.limits.idle_millis / 1000,
        })
    }
}

pub(super) fn count(outcome: &'static str) {
    metrics::counter!("palisade_console_logins_total", "outcome" => outcome).increment(1);
}

/// What happened to a login. A name is told only where an operator has it: others may be passwords in the wrong place.
pub(super) fn told(action: AuditAction, operator: Option<&Operator>, source: Option<IpAddr>) -> Audit {
    let audit = Audit::new(action).from(source);
    match operator {
        Some(operator) => audit.operator(&operator.name, &operator.email),
        None => audit,
    }
}

/// Adds a cookie beside those that the response has.
pub(super) fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
    response
}

pub(super) fn busy() -> ApiError {
    let message = "too many logins at the same time; try again in a few seconds";
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message).with_header(header::RETRY_AFTER, "5")
}

pub(super) fn wrong_code() -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, "wrong_code", "the code is wrong or was used before")
}

pub(super) fn paused(seconds: u64) -> ApiError {
    too_many(&format!("too many wrong codes; try again in {seconds} s"), seconds)
}

pub(super) fn no_randomness(error: std::io::Error) -> ApiError {
    let message = format!("the operating system gives no random bytes: {error}");
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "no_randomness", message)
}

fn too_many(message: &str, seconds: u64) -> ApiError {
    let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", message);
    error.with_header(header::RETRY_AFTER, &seconds.to_string())
}
