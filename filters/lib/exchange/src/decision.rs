//! What is done about a request.

use std::borrow::Cow;

use snapshot::TierAction;

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
        if let Some(id) = printable_id(request_id) {
            body.extend_from_slice(b" Reference: ");
            body.extend_from_slice(id.as_bytes());
        }
        body.push(b'\n');
        let headers = vec![
            ("content-type".to_owned(), b"text/plain; charset=utf-8".to_vec()),
            ("cache-control".to_owned(), b"no-store".to_vec()),
        ];
        Self { status, headers, body }
    }
}

/// A request's id that answers may show: not empty, at most 64 bytes, and only characters that mean nothing in HTML or JSON.
#[must_use]
pub fn printable_id(id: &[u8]) -> Option<&str> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    let shown = (1..=64).contains(&id.len()) && id.iter().all(plain);
    std::str::from_utf8(id).ok().filter(|_| shown)
}

/// What a decision is about, for programs that read events: its reason says it to people. Each part is empty where there is none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// The policy that was followed, as `collection/id`.
    pub policy: String,
    /// Tag of the pattern that the event reports; the request may have those of others as well ([`Signal::tag`](crate::Signal)).
    pub tag: Cow<'static, str>,
    /// Who or what the pattern was found at: a kind of objects (`/orders/{id}`), or a pseudonym of an account.
    pub subject: String,
}

impl About {
    /// A policy, by its collection (`threat-policies`) and its id; nothing for an empty id.
    #[must_use]
    pub fn policy(collection: &str, id: &str) -> Self {
        let policy = if id.is_empty() { String::new() } else { format!("{collection}/{id}") };
        Self { policy, ..Self::default() }
    }

    /// A pattern, by its tag, and what it was found at.
    #[must_use]
    pub fn pattern(tag: &'static str, subject: String) -> Self {
        Self { tag: tag.into(), subject, ..Self::default() }
    }
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
    /// What it is about.
    pub about: About,
}

impl Decision {
    /// A decision that no tier asked for and that was not carried out, on a score from 0 to 100.
    #[must_use]
    pub fn new(action: Action, score: f64, reason: impl Into<String>) -> Self {
        Self {
            action,
            score,
            tier: None,
            dry_run: false,
            enforced: false,
            reason: reason.into(),
            held_millis: 0,
            about: About::default(),
        }
    }

    /// The same, carried out.
    #[must_use]
    pub fn enforced(mut self) -> Self {
        self.enforced = true;
        self
    }

    /// The same, of a policy in dry run or a plugin that only monitors.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// The same, with the delay of the request in milliseconds.
    #[must_use]
    pub fn held(mut self, millis: u32) -> Self {
        self.held_millis = millis;
        self
    }

    /// The same, about a policy or a pattern.
    #[must_use]
    pub fn about(mut self, about: About) -> Self {
        self.about = about;
        self
    }
}
