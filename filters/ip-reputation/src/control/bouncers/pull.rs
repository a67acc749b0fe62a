//! One call for decisions.

use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use lists::{MAX_UNPACKED, unpacked};
use outbound::{Call, Outbound};

use super::super::SvcBouncer;
use super::stream::{self, Answer, Wanted};

/// The bytes of an answer, at most: a million decisions.
const MAX_ANSWER: usize = 256 << 20;

/// Calls of a bouncer as they are to be made.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    call: Call,
    wanted: Wanted,
    private: bool,
    /// The service and the key, hashed: the service keeps by the key what it has sent.
    pub(super) reader: String,
    /// A hash of all of this: with another one, other decisions may come.
    pub(super) source: String,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// For people.
    pub(super) why: String,
    /// The service refuses the key: it is no use to ask again soon.
    pub(super) refused: bool,
}

impl Plan {
    /// The calls of a bouncer.
    ///
    /// # Errors
    /// A key that cannot be sent, or a URL that nothing can be added to; for people.
    pub(super) fn of(bouncer: &SvcBouncer) -> Result<Plan, String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        let unsendable = |_| "the key has characters that cannot be sent".to_owned();
        let mut key = HeaderValue::from_str(bouncer.api_key.reveal()).map_err(unsendable)?;
        key.set_sensitive(true);
        headers.insert("x-api-key", key);
        if bouncer.lapi_url.contains(['?', '#']) {
            return Err("`lapi_url` has a query: the address of the service alone is expected".to_owned());
        }
        let mut scopes = bouncer.scopes.clone();
        scopes.sort_unstable();
        let words: Vec<&str> = scopes.iter().map(|scope| scope.word()).collect();
        let origins: Vec<String> = bouncer.origins_filter.iter().map(|origin| escaped(origin)).collect();
        let base = bouncer.lapi_url.trim_end_matches('/');
        // Services leave out countries and networks unless they are asked for them.
        let mut url = format!("{base}/v1/decisions/stream?scopes={}", words.join(","));
        if !origins.is_empty() {
            url.push_str("&origins=");
            url.push_str(&origins.join(","));
        }
        let call = Call {
            method: Method::GET,
            url: url.clone(),
            headers,
            body: Bytes::new(),
            timeout: Duration::from_millis(bouncer.timeout_millis),
            max_answer_bytes: MAX_ANSWER,
            // The key is for this service alone.
            redirects: 0,
        };
        let hash = |text: &str| {
            snapshot::hex(&snapshot::content_hash(format!("{text}\n{}", bouncer.api_key.reveal()).as_bytes()))
        };
        Ok(Plan {
            call,
            wanted: Wanted { scopes, origins: bouncer.origins_filter.clone() },
            private: bouncer.reaches_private(),
            reader: hash(base),
            source: hash(&format!("{url} {}", bouncer.reaches_private())),
        })
    }

    /// Asks for all decisions, or for what has changed since the call before.
    pub(super) async fn run(mut self, outbound: Outbound, all: bool) -> Result<Answer, Failure> {
        self.call.url.push_str(if all { "&startup=true" } else { "&startup=false" });
        let outbound = if self.private { outbound.reaching_private() } else { outbound };
        let answer = outbound.call(self.call).await.map_err(|error| Failure::new(error.to_string()))?;
        match answer.status {
            StatusCode::OK => {}
            StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => {
                let why = format!("the service refuses the key ({})", answer.status.as_u16());
                return Err(Failure { why, refused: true });
            }
            status => return Err(Failure::new(format!("the service answers {}", status.as_u16()))),
        }
        let wanted = self.wanted;
        let reading = tokio::task::spawn_blocking(move || {
            let unpacked = unpacked(&answer.body, MAX_UNPACKED)?;
            stream::read(unpacked.as_deref().unwrap_or(&answer.body), &wanted)
        });
        reading.await.unwrap_or_else(|_| Err("the answer could not be read".to_owned())).map_err(Failure::new)
    }
}

impl Failure {
    pub(super) fn new(why: String) -> Failure {
        Failure { why, refused: false }
    }
}

/// A value of a query.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => escaped.push(char::from(byte)),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}
