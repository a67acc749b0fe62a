//! The provider: requests to it, and what is kept of its answers.

use std::fmt;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use base::clock;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use form_urlencoded::{Serializer, byte_serialize};
use outbound::{Pool, PoolTrust};
use serde::Deserialize;
use tokio::sync::Mutex;

use super::backoff::Backoff;
use super::error::{OidcError, foreign};
use super::flow::{Begun, Finished, Returned, not_exchanged, random};
use super::keys::Keys;
use super::logout::{self, MAX_HINT};
use super::metadata::{self, Metadata, SecretIn};
use super::person::{self, Person};
use super::settings::{LogoutAt, Settings, SettingsProblem};
use super::token::{self, Claims, Expected, TokenProblem};

/// The bytes of an answer of the provider, at most.
const MAX_ANSWER: usize = 256 * 1024;
/// How long connections to the provider are kept.
const IDLE: Duration = Duration::from_secs(30);
/// How long a logout waits for metadata that are not there.
const LOGOUT_PATIENCE: Duration = Duration::from_secs(2);
/// How long metadata and keys are used before they are read again, in milliseconds: an hour.
const FRESH_MILLIS: u64 = 3_600_000;
/// Keys are read again for an unknown id after so many milliseconds: tokens with made up ids cost the provider little.
const KEYS_AGAIN_MILLIS: u64 = 60_000;

/// Tells the time in milliseconds since 1970.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The provider. Cheap to clone.
#[derive(Clone)]
pub struct Provider(Arc<Inner>);

struct Inner {
    settings: Settings,
    pool: Pool,
    clock: Clock,
    kept: Mutex<Kept>,
    failures: StdMutex<Failures>,
}

#[derive(Default)]
struct Kept {
    metadata: Option<(Arc<Metadata>, u64)>,
    keys: Option<KeptKeys>,
}

/// The keys, and when they were read, in milliseconds since 1970.
#[derive(Clone)]
struct KeptKeys {
    keys: Arc<Keys>,
    at: u64,
}

/// What the provider did not answer when it was last asked for it.
#[derive(Default)]
struct Failures {
    metadata: Backoff,
    keys: Backoff,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: String,
    access_token: Option<String>,
}

#[derive(Deserialize)]
struct TokenError {
    error: String,
}

// === impl Provider ===

impl Provider {
    /// A provider with these settings. Nothing is sent yet.
    ///
    /// # Errors
    /// The settings cannot be used, or there are no certificates to trust.
    pub fn new(settings: Settings, clock: Clock) -> Result<Provider, SettingsProblem> {
        settings.check()?;
        let trust = match (&settings.ca_file, settings.is_tls()) {
            (Some(file), _) => PoolTrust::File(file),
            (None, true) => PoolTrust::System,
            (None, false) => PoolTrust::NoTls,
        };
        let pool = Pool::new(trust, IDLE).map_err(|error| SettingsProblem::new(format!("--oidc-issuer: {error}")))?;
        Ok(Provider(Arc::new(Inner { settings, pool, clock, kept: Mutex::default(), failures: StdMutex::default() })))
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Asks the provider for its metadata, whatever is kept of them, and for its keys, unless they were read within the hour.
    ///
    /// # Errors
    /// Why it gives none that can be used.
    pub async fn probe(&self) -> Result<(), OidcError> {
        let metadata = Arc::new(self.read_metadata().await?);
        let (mut kept, now) = (self.0.kept.lock().await, self.now());
        kept.metadata = Some((Arc::clone(&metadata), now));
        let is_known = kept.keys.as_ref().is_some_and(|kept| is_fresh(kept.at, now, FRESH_MILLIS));
        if is_known && self.failures().keys.reason().is_none() {
            Ok(())
        } else {
            self.read_keys(&metadata, &mut kept).await.map(drop)
        }
    }

    /// Why the provider did not give its metadata or its keys when it was last asked for them; `None` while it does.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let failures = self.failures();
        failures.metadata.reason().or(failures.keys.reason()).map(str::to_owned)
    }

    /// Begins a login with this state, which the provider sends back.
    ///
    /// # Errors
    /// [`OidcFault::Provider`](super::OidcFault::Provider); also if the operating system gives no random bytes.
    pub async fn begin(&self, state: &str) -> Result<Begun, OidcError> {
        let metadata = self.metadata().await?;
        Begun::new(&self.0.settings, &metadata, state).map_err(|error| OidcError::provider(no_random(&error)))
    }

    /// The error that the provider has sent the browser back with.
    #[must_use]
    pub fn denied(&self, error: &str) -> OidcError {
        OidcError::denied(format!("the provider has answered `{}`", foreign(error)))
    }

    /// Exchanges a code, and checks the ID token that comes for it.
    ///
    /// # Errors
    /// Any; nothing is changed by it.
    pub async fn finish(&self, returned: Returned<'_>) -> Result<Finished, OidcError> {
        returned.check()?;
        let (settings, metadata) = (&self.0.settings, self.metadata().await?);
        match returned.issuer {
            Some(issuer) if issuer != settings.issuer => {
                return Err(OidcError::refused("the answer is of another issuer (`iss`)"));
            }
            None if metadata.names_issuer => return Err(OidcError::refused("the answer names no issuer (`iss`)")),
            _ => {}
        }
        let tokens = self.exchange(&metadata, returned).await?;
        let expected = Expected {
            issuer: &settings.issuer,
            client_id: &settings.client_id,
            nonce: returned.nonce,
            access_token: tokens.access_token.as_deref(),
            now_seconds: self.now() / 1000,
        };
        let mut claims = self.checked(&metadata, &tokens.id_token, &expected).await?;
        if let (false, Some(userinfo), Some(token)) =
            (person::is_complete(&claims, settings), &metadata.userinfo, &tokens.access_token)
        {
            self.add_userinfo(&mut claims, userinfo, token).await?;
        }
        let keeps_token = settings.logout == LogoutAt::Provider
            && matches!(metadata.end_session, Ok(Some(_)))
            && tokens.id_token.len() <= MAX_HINT;
        Ok(Finished { person: Person::of(&claims, settings), id_token: keeps_token.then_some(tokens.id_token) })
    }

    /// Where the browser ends its session at the provider. `id_token` is what [`Finished`] had, if the browser still has it. `None` where
    /// logouts end here, or the provider has no endpoint for them.
    ///
    /// # Errors
    /// The provider does not give its metadata within 2 seconds, or has an endpoint that cannot be used: the session there goes on.
    pub async fn end_session(&self, id_token: Option<&str>) -> Result<Option<String>, OidcError> {
        let settings = &self.0.settings;
        if settings.logout == LogoutAt::ControlPlane {
            return Ok(None);
        }
        let asked = tokio::time::timeout(LOGOUT_PATIENCE, self.metadata()).await;
        let late = || OidcError::provider(format!("no metadata within {} s", LOGOUT_PATIENCE.as_secs()));
        let metadata = asked.unwrap_or_else(|_| Err(late()))?;
        let Some(end_session) = metadata.end_session.as_ref().map_err(OidcError::provider)? else { return Ok(None) };
        let state = random().map_err(|error| OidcError::provider(no_random(&error)))?;
        Ok(Some(logout::url(end_session, settings, &state, id_token)))
    }

    async fn exchange(&self, metadata: &Metadata, returned: Returned<'_>) -> Result<Tokens, OidcError> {
        let (headers, form) = self.token_request(metadata, returned)?;
        let (status, body) = self.call(Method::POST, &metadata.token, headers, form.into()).await?;
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|_| {
                OidcError::provider("the answer of the token endpoint has no ID token, or cannot be read")
            });
        }
        let error =
            serde_json::from_slice(&body).map_or_else(|_| String::new(), |TokenError { error }| foreign(&error));
        Err(not_exchanged(status, &error))
    }

    /// The headers and the body of a request for tokens.
    fn token_request(&self, metadata: &Metadata, returned: Returned<'_>) -> Result<(HeaderMap, String), OidcError> {
        let settings = &self.0.settings;
        let secret = settings.secret().map_err(|error| OidcError::provider(format!("the client secret: {error}")))?;
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", returned.code)
            .append_pair("redirect_uri", returned.redirect_uri)
            .append_pair("code_verifier", returned.verifier);
        match (&secret, metadata.secret_in) {
            (Some(secret), SecretIn::Header) => {
                // RFC 6749, section 2.3.1: both parts are form-encoded before they are joined.
                let part = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let basic = STANDARD.encode(format!("{}:{}", part(&settings.client_id), part(secret)));
                headers.insert(header::AUTHORIZATION, sensitive(&format!("Basic {basic}"))?);
            }
            (Some(secret), SecretIn::Body) => {
                form.append_pair("client_id", &settings.client_id).append_pair("client_secret", secret);
            }
            (None, _) => {
                form.append_pair("client_id", &settings.client_id);
            }
        }
        Ok((headers, form.finish()))
    }

    /// Checks an ID token; with a newer set of keys if this one lacks the key.
    async fn checked(&self, metadata: &Metadata, token: &str, expected: &Expected<'_>) -> Result<Claims, OidcError> {
        let first = self.keys(metadata, FRESH_MILLIS).await?;
        let signed_with = match token::check(token, &first.keys, expected) {
            Ok(claims) => return Ok(claims),
            Err(TokenProblem::Wrong(what)) => return Err(OidcError::token(what)),
            Err(TokenProblem::NoKey(key)) => format!("the ID token is signed with {key}"),
        };
        let newer = self.keys(metadata, KEYS_AGAIN_MILLIS).await.map_err(|error| {
            let (uri, read) = (&metadata.keys, clock::rfc3339(first.at));
            OidcError::provider(format!(
                "{signed_with}, which the key set ({uri}, read at {read}) lacks, and it cannot be read again: {error}"
            ))
        })?;
        token::check(token, &newer.keys, expected).map_err(|problem| match problem {
            TokenProblem::Wrong(what) => OidcError::token(what),
            TokenProblem::NoKey(_) => self.unknown_key(&signed_with, metadata, &newer),
        })
    }

    /// Says which key is missing where, since when, and what to do.
    fn unknown_key(&self, signed_with: &str, metadata: &Metadata, kept: &KeptKeys) -> OidcError {
        let again = kept.at.saturating_add(KEYS_AGAIN_MILLIS);
        let what = format!(
            "{signed_with}; the key set ({}, read at {}) has {}. A login from {} on reads it again. The provider has to publish a key \
             there a minute before it signs with it",
            metadata.keys,
            clock::rfc3339(kept.at),
            kept.keys.named(),
            clock::rfc3339(again),
        );
        OidcError::unknown_key(what, again.saturating_sub(self.now()))
    }

    /// Adds the claims that only the userinfo endpoint has. What the ID token says stays.
    async fn add_userinfo(&self, claims: &mut Claims, userinfo: &Uri, access_token: &str) -> Result<(), OidcError> {
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, sensitive(&format!("Bearer {access_token}"))?)]);
        let (status, body) = self.call(Method::GET, userinfo, headers, Bytes::new()).await?;
        if !status.is_success() {
            let what = format!("the userinfo endpoint has answered {status}");
            // RFC 6750, section 3.1: it is about this access token, and other logins may go on.
            let is_of_token = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            return Err(if is_of_token { OidcError::token(what) } else { OidcError::provider(what) });
        }
        let more: Claims = serde_json::from_slice(&body).map_err(|error| {
            OidcError::provider(format!("the answer of the userinfo endpoint cannot be read: {error}"))
        })?;
        if more.get("sub") != claims.get("sub") {
            // OpenID Connect Core, section 5.3.2: the answer may be of another person.
            return Err(OidcError::token("the userinfo endpoint has answered about another person (`sub`)"));
        }
        for (name, value) in more {
            claims.entry(name).or_insert(value);
        }
        Ok(())
    }

    /// The metadata; older ones where the provider cannot be reached now.
    async fn metadata(&self) -> Result<Arc<Metadata>, OidcError> {
        let (mut kept, now) = (self.0.kept.lock().await, self.now());
        if let Some((metadata, at)) = &kept.metadata
            && is_fresh(*at, now, FRESH_MILLIS)
        {
            return Ok(Arc::clone(metadata));
        }
        let paused = self.failures().metadata.pause(now).map(OidcError::provider);
        let error = match paused {
            Some(error) => error,
            None => match self.read_metadata().await {
                Ok(metadata) => {
                    let metadata = Arc::new(metadata);
                    kept.metadata = Some((Arc::clone(&metadata), now));
                    return Ok(metadata);
                }
                Err(error) => error,
            },
        };
        kept.metadata.as_ref().map(|(older, _)| Arc::clone(older)).ok_or(error)
    }

    async fn read_metadata(&self) -> Result<Metadata, OidcError> {
        let read = self.ask_for_metadata().await;
        note(&mut self.failures().metadata, &read, self.now());
        read
    }

    async fn ask_for_metadata(&self) -> Result<Metadata, OidcError> {
        let address = metadata::address(&self.0.settings.issuer);
        let uri: Uri = address.parse().map_err(|_| OidcError::provider(format!("{address} is no URL")))?;
        let (status, body) = self.call(Method::GET, &uri, HeaderMap::new(), Bytes::new()).await?;
        if !status.is_success() {
            return Err(OidcError::provider(format!("{address} has answered {status}")));
        }
        Metadata::read(&body, &self.0.settings).map_err(|what| OidcError::provider(format!("{address}: {what}")))
    }

    /// The keys, read again if they are older than `millis`. After a failure they are not asked for again during its pause, whatever
    /// the logins need: each would wait for the provider, and ask it, in vain.
    async fn keys(&self, metadata: &Metadata, millis: u64) -> Result<KeptKeys, OidcError> {
        let (mut kept, now) = (self.0.kept.lock().await, self.now());
        if let Some(keys) = &kept.keys
            && is_fresh(keys.at, now, millis)
        {
            return Ok(keys.clone());
        }
        let paused = self.failures().keys.pause(now).map(OidcError::provider);
        match paused {
            Some(error) => Err(error),
            None => self.read_keys(metadata, &mut kept).await,
        }
    }

    async fn read_keys(&self, metadata: &Metadata, kept: &mut Kept) -> Result<KeptKeys, OidcError> {
        let at = self.now();
        let read = self.ask_for_keys(&metadata.keys).await;
        note(&mut self.failures().keys, &read, self.now());
        let keys = KeptKeys { keys: Arc::new(read?), at };
        kept.keys = Some(keys.clone());
        Ok(keys)
    }

    async fn ask_for_keys(&self, uri: &Uri) -> Result<Keys, OidcError> {
        let (status, body) = self.call(Method::GET, uri, HeaderMap::new(), Bytes::new()).await?;
        if !status.is_success() {
            return Err(OidcError::provider(format!("{uri} has answered {status}")));
        }
        Keys::read(&body).map_err(|what| OidcError::provider(format!("{uri}: {what}")))
    }

    fn now(&self) -> u64 {
        (self.0.clock)()
    }

    fn failures(&self) -> MutexGuard<'_, Failures> {
        self.0.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One request. Redirects are not followed; time and size are capped.
    async fn call(
        &self,
        method: Method,
        uri: &Uri,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), OidcError> {
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let (pool, timeout) = (&self.0.pool, self.0.settings.timeout);
        let place =
            format!("{}://{}", uri.scheme_str().unwrap_or_default(), uri.authority().map_or("", |host| host.as_str()));
        let sending = pool.request(method, uri, headers, body, MAX_ANSWER);
        match tokio::time::timeout(timeout, sending).await {
            Ok(Ok((status, _, Some(body)))) => Ok((status, body)),
            Ok(Ok((_, _, None))) => {
                let what = format!("{place}: the answer breaks off, or is longer than {} KiB", MAX_ANSWER / 1024);
                Err(OidcError::provider(what))
            }
            Ok(Err(error)) => Err(OidcError::provider(format!("{place}: {error}"))),
            Err(_) => Err(OidcError::provider(format!("{place}: no answer within {} s", timeout.as_secs_f64()))),
        }
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("issuer", &self.0.settings.issuer).finish_non_exhaustive()
    }
}

fn no_random(error: &std::io::Error) -> String {
    format!("the operating system gives no random bytes: {error}")
}

/// Whether what was read at a time is younger than `millis`. What was read in the future was read before the clock was set back: how old it
/// is is not known.
fn is_fresh(at: u64, now: u64, millis: u64) -> bool {
    now.checked_sub(at).is_some_and(|age| age < millis)
}

/// Notes how a request has ended.
fn note<T>(backoff: &mut Backoff, asked: &Result<T, OidcError>, now: u64) {
    match asked {
        Ok(_) => backoff.succeeded(),
        Err(error) => backoff.failed(error.to_string(), now),
    }
}

/// The value of a header that no log shows.
fn sensitive(text: &str) -> Result<HeaderValue, OidcError> {
    let mut value =
        HeaderValue::from_str(text).map_err(|_| OidcError::provider("a token cannot be sent in a header"))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_in_the_future_is_not_fresh() {
        let now = 10 * FRESH_MILLIS;
        assert!(is_fresh(now, now, FRESH_MILLIS) && is_fresh(now - FRESH_MILLIS + 1, now, FRESH_MILLIS));
        assert!(!is_fresh(now - FRESH_MILLIS, now, FRESH_MILLIS));
        assert!(!is_fresh(now + 1, now, FRESH_MILLIS), "the clock was set back");
    }
}
