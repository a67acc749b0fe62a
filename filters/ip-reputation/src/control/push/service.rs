//! Calls of a machine to a decision service: the login, alerts, and the sign of life.

use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use outbound::{Answer, Call, Outbound};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::SvcBouncer;
use super::queue::Form;

/// The bytes of an answer, at most: ids of alerts, or a token.
const MAX_ANSWER: usize = 256 << 10;
/// The longest token, in bytes.
const MAX_TOKEN: usize = 8 << 10;
/// A token is used until so long before its end, in milliseconds; without a readable end for so long; and never longer than a day.
const MARGIN: u64 = 60_000;
const UNKNOWN_LIFE: u64 = 600_000;
const LONGEST_LIFE: u64 = 86_400_000;

/// How alerts of a bouncer are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) machine: Machine,
    pub(super) form: Form,
    pub(super) interval: Duration,
    pub(super) batch: usize,
    pub(super) rules: bool,
    pub(super) monitored: bool,
    /// Bans of private addresses may be asked for.
    pub(super) bans_private: bool,
}

/// A machine at a service. With another one, the token is another one.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Machine {
    /// The address of the service, without a slash at the end.
    pub(super) base: String,
    id: String,
    password: String,
    timeout: Duration,
    private: bool,
}

/// What lets a machine in, and until when, in milliseconds since 1970.
#[derive(Clone)]
pub(super) struct Token {
    value: HeaderValue,
    until: u64,
}

/// Why a call has failed, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The service does not let the machine in: it is no use to ask again soon.
    Refused(String),
    /// The token is of no use any more.
    LoggedOut,
    /// The service does not take these alerts, and would not take them later.
    Rejected(String),
    /// The service answers with an error of its own; it may be about these alerts.
    Broken(String),
    /// There is no answer.
    Unreachable(String),
}

impl Plan {
    /// Of a bouncer that is to push.
    ///
    /// # Errors
    /// The service's address has a query; for people.
    pub(super) fn of(bouncer: &SvcBouncer) -> Result<Plan, String> {
        if bouncer.lapi_url.contains(['?', '#']) {
            return Err("`lapi_url` has a query: the address of the service alone is expected".to_owned());
        }
        Ok(Plan {
            machine: Machine {
                base: bouncer.lapi_url.trim_end_matches('/').to_owned(),
                id: bouncer.push_machine_id.clone(),
                password: bouncer.push_password.reveal().to_owned(),
                timeout: Duration::from_millis(bouncer.timeout_millis),
                private: bouncer.reaches_private(),
            },
            form: Form {
                scenario: bouncer.push_scenario.clone(),
                decision: bouncer.push_with_decision.then(|| bouncer.push_decision_duration.clone()),
            },
            interval: Duration::from_secs(bouncer.push_interval_seconds),
            batch: usize::try_from(bouncer.push_max_batch).unwrap_or(1).max(1),
            rules: bouncer.push_waf_detections,
            monitored: bouncer.push_waf_monitored,
            bans_private: bouncer.allow_private,
        })
    }
}

impl std::fmt::Debug for Machine {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("base", &self.base).field("id", &self.id).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct LoggedIn {
    token: String,
    #[serde(default)]
    expire: String,
}

impl Machine {
    /// Logs in.
    pub(super) async fn login(&self, outbound: &Outbound, scenario: &str, now: u64) -> Result<Token, Failure> {
        let body = json!({ "machine_id": self.id, "password": self.password, "scenarios": [scenario] });
        let answer = self.call(outbound, Method::POST, "/v1/watchers/login", None, Some(&body)).await?;
        match answer.status {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let why = format!("the service refuses the machine or its password ({})", answer.status.as_u16());
                return Err(Failure::Refused(why));
            }
            status => return Err(broken(status, "the login")),
        }
        // Nothing of the answer is repeated: it may have the token.
        let unreadable = || Failure::Broken("the answer to the login has no token".to_owned());
        let LoggedIn { token, expire } = serde_json::from_slice(&answer.body).map_err(|_| unreadable())?;
        if token.is_empty() || token.len() > MAX_TOKEN {
            return Err(unreadable());
        }
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| unreadable())?;
        value.set_sensitive(true);
        let life = base::clock::rfc3339_millis(&expire).map_or(UNKNOWN_LIFE, |end| end.saturating_sub(now));
        let life = life.min(LONGEST_LIFE);
        // The clocks may differ: a token that seems to end at once is used for a while, and replaced when it is refused.
        Ok(Token { value, until: now.saturating_add(life.saturating_sub(MARGIN).max(MARGIN)) })
    }

    /// Sends alerts. They are there once this is `Ok`.
    pub(super) async fn send(&self, outbound: &Outbound, token: &Token, alerts: &[Value]) -> Result<(), Failure> {
        let body = Value::Array(alerts.to_vec());
        let answer = self.call(outbound, Method::POST, "/v1/alerts", Some(token), Some(&body)).await?;
        match answer.status {
            StatusCode::OK | StatusCode::CREATED => Ok(()),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Failure::LoggedOut),
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS | StatusCode::NOT_FOUND => {
                let why = format!("the service answers {} to alerts", answer.status.as_u16());
                Err(Failure::Unreachable(why))
            }
            status if status.is_client_error() => {
                Err(Failure::Rejected(format!("the service does not take the alerts ({})", status.as_u16())))
            }
            status => Err(broken(status, "alerts")),
        }
    }

    /// Says that the machine is alive.
    pub(super) async fn beat(&self, outbound: &Outbound, token: &Token) -> Result<(), Failure> {
        let answer = self.call(outbound, Method::GET, "/v1/heartbeat", Some(token), None).await?;
        match answer.status {
            StatusCode::OK => Ok(()),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Failure::LoggedOut),
            // A service without it takes alerts all the same.
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => Ok(()),
            status => Err(broken(status, "a sign of life")),
        }
    }

    async fn call(
        &self,
        outbound: &Outbound,
        method: Method,
        path: &str,
        token: Option<&Token>,
        body: Option<&Value>,
    ) -> Result<Answer, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let agent = concat!("palisade/", env!("CARGO_PKG_VERSION"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
        if body.is_some() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(token) = token {
            headers.insert(header::AUTHORIZATION, token.value.clone());
        }
        let call = Call {
            method,
            url: format!("{}{path}", self.base),
            headers,
            body: body.map(|body| Bytes::from(body.to_string())).unwrap_or_default(),
            timeout: self.timeout,
            max_answer_bytes: MAX_ANSWER,
            // Password and token are for this service alone.
            redirects: 0,
        };
        let outbound = if self.private { outbound.reaching_private() } else { outbound.clone() };
        outbound.call(call).await.map_err(|error| Failure::Unreachable(error.to_string()))
    }
}

impl Token {
    /// Whether it is still good.
    pub(super) fn holds(&self, now: u64) -> bool {
        now < self.until
    }
}

fn broken(status: StatusCode, what: &str) -> Failure {
    Failure::Broken(format!("the service answers {} to {what}", status.as_u16()))
}
