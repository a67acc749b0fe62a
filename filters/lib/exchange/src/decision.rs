//! What is done about a request.

use snapshot::TierAction;

use crate::Category;

/// An action, as tiers and events name it.
pub type Action = TierAction;

/// An answer that the gateway gives in the backend's place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reply {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Its body.
    pub body: Vec<u8>,
}

impl Reply {
    /// A refusal in plain words, without a hint at what led to it: that is for the operator, not for the caller.
    #[must_use]
    pub fn refusal(status: u16, request_id: &[u8]) -> Self {
        let mut body = match status {
            413 => b"The request is larger than this service accepts.".to_vec(),
            429 => b"Too many requests.".to_vec(),
            404 => b"Not found.".to_vec(),
            400 => b"The request could not be read.".to_vec(),
            503 => b"The service is not available.".to_vec(),
            _ => b"Request refused.".to_vec(),
        };
        // Only characters that cannot mean anything to whatever shows the page.
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
        if !request_id.is_empty() && request_id.len() <= 64 && request_id.iter().all(plain) {
            body.extend_from_slice(b" Reference: ");
            body.extend_from_slice(request_id);
        }
        body.push(b'\n');
        let headers = vec![
            ("content-type".to_owned(), b"text/plain; charset=utf-8".to_vec()),
            ("cache-control".to_owned(), b"no-store".to_vec()),
        ];
        Self { status, headers, body }
    }
}

/// A plugin's refusal of a request or a response.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// HTTP status of the answer.
    pub status: u16,
    /// The category of its event.
    pub category: Category,
    /// Why, for the operator.
    pub reason: String,
    /// The caller's score counts: the threat response of the route may answer more sternly.
    pub scored: bool,
    /// Headers of the answer beyond the usual ones.
    pub headers: Vec<(String, Vec<u8>)>,
}

/// What was decided about an exchange, and by whom.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The action in force; in dry run the one that would have been.
    pub action: Action,
    /// The score that it was taken on.
    pub score: f64,
    /// The matched tier's place in its policy.
    pub tier: Option<u32>,
    /// The policy is in dry run.
    pub dry_run: bool,
    /// The action was carried out.
    pub enforced: bool,
    /// Why, for the operator.
    pub reason: String,
    /// How long the request was held, in milliseconds.
    pub held_millis: u32,
}
