//! `session/_methods`, `_oidc_begin`, `_oidc_finish`: logins at the OpenID Connect provider.
//!
//! The provider sends the browser to the login page of the console, which posts what it has got to `_oidc_finish`: so the cookie that binds
//! a login to its browser can be `SameSite=Strict`, and a login ends with the same answers as one by password.

use std::time::Duration;

use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use oidc::{OidcError, OidcFault, Provider, Returned};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;

use super::body::{self, Body};
use super::describe::{self, Common as _};
use super::enter::{Caller, count, no_randomness, told, with_cookie};
use super::guard::no_store;
use super::login::{Source, caller};
use super::session::{cookie_of, set_cookie, wants_secure};
use super::state::Console;
use crate::error::ApiError;
use crate::names::{ID_TOKEN_COOKIE, OIDC_COOKIE};
use crate::openapi::{JSON, Operation, Routes, reference};
use accounts::{Ceremony, CeremonyKind, OIDC_MILLIS, Operator, Session, TicketSecret, Via};
use events::{AuditAction, Part};

/// The bytes of a body, at most.
const MAX_BODY: usize = 16 * 1024;
/// How often it is looked whether the provider answers.
const PROBE: Duration = Duration::from_secs(60);

/// What begins a login at the provider: nothing but the media type, which a foreign page cannot send without being asked first. It could
/// use up what the address of its visitor may try otherwise.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OidcBegin {}

/// What the provider has sent the browser back with.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OidcFinish {
    /// The parameter `state`.
    state: String,
    /// The parameter `code`, unless there is an `error`.
    code: Option<String>,
    /// The parameter `iss`, if there is one.
    iss: Option<String>,
    /// The parameter `error`, if there is one.
    error: Option<String>,
}

/// What the end of a login needs of its beginning. In the store, so that any of several control planes can end it.
#[derive(Serialize, Deserialize)]
struct Waiting {
    /// The secret in the cookie, as SHA-256 in hexadecimal.
    browser: String,
    nonce: String,
    verifier: String,
    redirect_uri: String,
}

/// What needs no session.
pub(super) fn open() -> Routes<Console> {
    let routes = Routes::new()
        .on(describe_methods(), methods)
        .on(describe_begin(), begin)
        .on(describe_finish(), finish)
        .schema::<OidcBegin>()
        .schema::<OidcFinish>();
    routes.layered(|router| router.layer(DefaultBodyLimit::max(MAX_BODY)))
}

async fn methods(State(console): State<Console>) -> Response {
    let provider = console.inner.login.provider.as_ref();
    let provider = provider
        .map(|provider| json!({ "name": provider.settings().display_name, "available": provider.problem().is_none() }));
    let passkeys = console.inner.login.site.as_ref().map(|site| json!({ "origin": site.origin() }));
    no_store(Json(json!({ "password": true, "provider": provider, "passkeys": passkeys })).into_response())
}

async fn begin(State(console): State<Console>, source: Source, headers: HeaderMap, body: Body) -> Response {
    no_store(console.oidc_begin(caller(&source, &headers), body).await.unwrap_or_else(IntoResponse::into_response))
}

async fn finish(State(console): State<Console>, source: Source, headers: HeaderMap, body: Body) -> Response {
    no_store(console.oidc_finish(caller(&source, &headers), body).await.unwrap_or_else(IntoResponse::into_response))
}

impl Console {
    pub(super) fn provider(&self) -> Result<&Provider, ApiError> {
        let missing = || ApiError::new(StatusCode::NOT_FOUND, "no_provider", "no login provider is configured");
        self.inner.login.provider.as_ref().ok_or_else(missing)
    }

    async fn oidc_begin(&self, caller: Caller<'_>, body: Body) -> Result<Response, ApiError> {
        let OidcBegin {} = body::read(caller.headers, body)?;
        let (now, provider) = (self.now(), self.provider()?);
        // A login that is begun counts as failed until it has ended well: each one that waits is a row in the store.
        self.throttle(caller.source, None, now).await?;
        let (state, browser) =
            (TicketSecret::random().map_err(no_randomness)?, TicketSecret::random().map_err(no_randomness)?);
        let begun = provider.begin(state.reveal()).await.map_err(|error| self.oidc_failed(&error, caller))?;
        let waiting = Waiting {
            browser: hexadecimal(&browser.sha256()),
            nonce: begun.nonce,
            verifier: begun.verifier,
            redirect_uri: provider.settings().redirect_uri.clone(),
        };
        let ceremony = Ceremony {
            sha256: state.sha256(),
            kind: CeremonyKind::Oidc,
            operator: String::new(),
            data: json!(waiting).to_string(),
            until_millis: now.saturating_add(OIDC_MILLIS),
        };
        self.inner.store.ceremony_put(ceremony).await?;
        let answer = Json(json!({ "done": true, "url": begun.url })).into_response();
        Ok(self.with_binding(answer, browser.reveal(), OIDC_MILLIS / 1000, caller))
    }

    async fn oidc_finish(&self, caller: Caller<'_>, body: Body) -> Result<Response, ApiError> {
        let OidcFinish { state, code, iss, error } = body::read(caller.headers, body)?;
        let (now, provider) = (self.now(), self.provider()?);
        self.throttle(caller.source, None, now).await?;
        let waiting = self.waiting(&state, caller, now).await?;
        let code = match (error, code) {
            (Some(error), _) => return Err(self.oidc_failed(&provider.denied(&error), caller)),
            (None, Some(code)) => code,
            (None, None) => return Err(self.not_begun("the answer of the provider has no code", caller)),
        };
        let returned = Returned {
            code: &code,
            issuer: iss.as_deref(),
            nonce: &waiting.nonce,
            verifier: &waiting.verifier,
            redirect_uri: &waiting.redirect_uri,
        };
        let finished = provider.finish(returned).await.map_err(|error| self.oidc_failed(&error, caller))?;
        let operator = self.operator_of(provider, &finished.person, caller, now).await?;
        let response = match self.inner.login.trusts_provider() {
            true => self.begin(&operator, (Via::Oidc, true), caller, now).await?,
            false => self.first_step(&operator, Via::Oidc, caller, now).await?,
        };
        let response = response.ok_or_else(|| self.not_begun("the operator was changed meanwhile", caller))?;
        // The login, and its beginning.
        self.forgive(caller.source, None);
        self.forgive(caller.source, None);
        if !operator.has_second_factor() || self.inner.login.trusts_provider() {
            self.logged_in(&operator, "via: oidc", caller.source);
        }
        let kept = match finished.id_token {
            Some(token) => self.id_token_cookie(&token, self.inner.limits.absolute_millis / 1000, caller.headers),
            // That of a login before.
            None => self.id_token_cookie("", 0, caller.headers),
        };
        Ok(with_cookie(self.with_binding(response, "", 0, caller), &kept))
    }

    /// Where the browser of an operator who has logged out goes on to: the provider, if the session was begun there and the session at
    /// the provider is to end too. The session here has ended already, so that nothing that fails here is a reason to keep it.
    pub(super) async fn provider_logout(&self, session: &Session, headers: &HeaderMap) -> Option<String> {
        let provider = self.inner.login.provider.as_ref().filter(|_| session.origin.via == Via::Oidc)?;
        let id_token = cookie_of(headers, ID_TOKEN_COOKIE);
        provider.end_session(id_token.as_deref()).await.unwrap_or_else(|error| {
            tracing::warn!(operator = %session.operator, "the session at the login provider goes on after a logout: {error}");
            None
        })
    }

    /// The cookie with the ID token, which the logout alone gets.
    pub(super) fn id_token_cookie(&self, value: &str, seconds: u64, headers: &HeaderMap) -> String {
        set_cookie(ID_TOKEN_COOKIE, "/session/_logout", value, seconds, wants_secure(self.inner.loopback, headers))
    }

    /// Ends the wait for this state, if it was begun by this browser.
    async fn waiting(&self, state: &str, caller: Caller<'_>, now: u64) -> Result<Waiting, ApiError> {
        let ceremony = match TicketSecret::read(state) {
            Some(state) => self.inner.store.ceremony_take(state.sha256(), CeremonyKind::Oidc, now).await?,
            None => None,
        };
        let waiting = ceremony.and_then(|ceremony| serde_json::from_str::<Waiting>(&ceremony.data).ok());
        let waiting =
            waiting.ok_or_else(|| self.not_begun("the state is not known, was used, or has expired", caller))?;
        let browser = cookie_of(caller.headers, OIDC_COOKIE).and_then(|value| TicketSecret::read(&value));
        let browser = browser.map(|secret| hexadecimal(&secret.sha256())).unwrap_or_default();
        let same: bool = browser.as_bytes().ct_eq(waiting.browser.as_bytes()).into();
        if same { Ok(waiting) } else { Err(self.not_begun("the login was begun in another browser", caller)) }
    }

    /// Notes a login that fails because of the provider or its answer. The client is told no more than it can act on.
    fn oidc_failed(&self, error: &OidcError, caller: Caller<'_>) -> ApiError {
        let (status, word, message) = match error.fault() {
            OidcFault::Provider => {
                self.inner.events.trouble(Part::Login, "oidc", &error.to_string());
                let message =
                    "the login provider does not answer as it should; the log of the control plane has the reason";
                (StatusCode::SERVICE_UNAVAILABLE, "provider_failed", message)
            }
            OidcFault::Denied => (
                StatusCode::UNAUTHORIZED,
                "provider_denied",
                "the provider has refused the login, or it was cancelled there",
            ),
            OidcFault::Token => (
                StatusCode::UNAUTHORIZED,
                "token_refused",
                "the ID token of the provider is not accepted; the audit log has the reason",
            ),
            OidcFault::UnknownKey { .. } => (
                StatusCode::SERVICE_UNAVAILABLE,
                "provider_key_unknown",
                "the login provider has signed with a key that its key set does not have; the audit log names the key and says what to do",
            ),
            OidcFault::Refused => return self.not_begun(&error.to_string(), caller),
        };
        self.oidc_refused(None, &error.to_string(), caller);
        let answer = ApiError::new(status, word, message);
        match error.fault() {
            OidcFault::UnknownKey { retry_seconds } => {
                answer.with_header(header::RETRY_AFTER, &retry_seconds.to_string())
            }
            _ => answer,
        }
    }

    /// One answer for every login that does not fit to its beginning.
    fn not_begun(&self, why: &str, caller: Caller<'_>) -> ApiError {
        self.oidc_refused(None, why, caller);
        let message =
            "this login does not belong to this browser, has ended, or its answer is not valid; begin it anew";
        ApiError::new(StatusCode::UNAUTHORIZED, "login_refused", message)
    }

    pub(super) fn oidc_refused(&self, operator: Option<&Operator>, why: &str, caller: Caller<'_>) {
        tracing::warn!(source = ?caller.source, why, "refused a login by the provider");
        metrics::counter!("palisade_login_failures_total").increment(1);
        count("refused");
        let audit = told(AuditAction::LoginRefused, operator, caller.source);
        self.inner.events.audit(audit.detail(format!("via: oidc: {why}")));
    }

    /// Adds the cookie that binds a login to its browser. `Strict`: it comes back with a request of the console's own page.
    fn with_binding(&self, response: Response, value: &str, seconds: u64, caller: Caller<'_>) -> Response {
        let secure = wants_secure(self.inner.loopback, caller.headers);
        with_cookie(response, &set_cookie(OIDC_COOKIE, "/session", value, seconds, secure))
    }

    /// Looks once a minute whether the provider answers, and reports it if not. Ends at once where there is none.
    pub async fn watch_provider(self) {
        let Some(provider) = self.inner.login.provider.clone() else { return };
        let mut ticks = tokio::time::interval(PROBE);
        loop {
            ticks.tick().await;
            self.look_at(&provider).await;
        }
    }

    /// Asks the provider once, and reports whether it answers.
    pub(super) async fn look_at(&self, provider: &Provider) {
        match provider.probe().await {
            Ok(()) => self.inner.events.recovered(Part::Login, "oidc"),
            Err(error) => self.inner.events.trouble(Part::Login, "oidc", &error.to_string()),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn describe_methods() -> Operation {
    let provider = describe::object(json!({
        "name": { "type": "string", "description": "What it is called." },
        "available": { "type": "boolean", "description": "False if it did not answer when it was last asked." },
    }));
    let passkeys = describe::object(json!({
        "origin": { "type": "string", "description": "The pages that may use them." },
    }));
    let answer = describe::object(json!({
        "password": { "const": true },
        "provider": { "anyOf": [provider, { "type": "null" }], "description": "The OpenID Connect provider." },
        "passkeys": { "anyOf": [passkeys, { "type": "null" }] },
    }));
    describe::operation(
        Method::GET,
        "/session/_methods",
        "loginMethods",
        describe::sessions(),
        "Show the ways to log in",
    )
    .answers(StatusCode::OK, "What there is.", answer)
    .not_stored()
}

fn describe_begin() -> Operation {
    let url: Value = json!({ "url": { "type": "string", "description": "Where the browser goes: the provider." } });
    describe::post("/session/_oidc_begin", "oidcBegin", describe::sessions(), "Begin a login at the provider")
        .describe("Sets the cookie `palisade_oidc`, without which the login cannot end. It has ten minutes.")
        .takes("An empty object.", [(JSON, reference("OidcBegin"))])
        .example(json!({}))
        .answers(StatusCode::OK, "Where the login goes on.", describe::done(url))
        .with_provider()
        .logs_in(true)
}

fn describe_finish() -> Operation {
    describe::post("/session/_oidc_finish", "oidcFinish", describe::sessions(), "End a login at the provider")
        .describe("Takes the parameters that the provider has sent the browser back with, once.")
        .takes("The parameters.", [(JSON, reference("OidcFinish"))])
        .example(json!({ "state": "k4Yc3vQm0l0yXq1b0n9d6Jw5pT8sRz2uEo7hGf4iA1c", "code": "SplxlOBeZQQYbYS6WxSbIA" }))
        .answers(StatusCode::OK, "The session, or the ticket of the second step.", describe::first_step())
        .with_provider()
        .fails(
            StatusCode::UNAUTHORIZED,
            "login_refused",
            "the state, the browser or the code is not the one that is expected.",
        )
        .fails(
            StatusCode::UNAUTHORIZED,
            "token_refused",
            "the ID token, or what the provider says about the person, is not accepted; the audit log has the reason.",
        )
        .fails(
            StatusCode::SERVICE_UNAVAILABLE,
            "provider_key_unknown",
            "the ID token is signed with a key that the provider's key set does not have. `Retry-After` says when the set is read again.",
        )
        .with_header(StatusCode::SERVICE_UNAVAILABLE, &header::RETRY_AFTER, false)
        .fails(StatusCode::UNAUTHORIZED, "provider_denied", "the provider has refused the login.")
        .fails(StatusCode::FORBIDDEN, "not_allowed", "the person has no role, or no operator.")
        .logs_in(true)
}

/// What both have.
trait WithProvider {
    fn with_provider(self) -> Self;
}

impl WithProvider for Operation {
    fn with_provider(self) -> Operation {
        self.fails(StatusCode::NOT_FOUND, "no_provider", "no provider is configured.").fails(
            StatusCode::SERVICE_UNAVAILABLE,
            "provider_failed",
            "the provider cannot be reached, or its answers cannot be used.",
        )
    }
}
