//! Whether a login has failed, by its response.

use exchange::{Body, Response};
use memchr::memmem;
use response_scan::Inspection;

use crate::EndpointKind;
use crate::credentials::{content_type, has_foreign_charset, hides_ascii};

/// What the response to a failed login looks like.
pub(crate) struct Outcomes {
    statuses: Vec<u16>,
    marker: Vec<u8>,
}

impl Outcomes {
    pub(crate) fn new(statuses: &[u32], marker: &str) -> Self {
        let statuses = statuses.iter().filter_map(|status| u16::try_from(*status).ok()).collect();
        Self { statuses, marker: marker.as_bytes().to_vec() }
    }

    /// Bodies of responses are read.
    pub(crate) fn reads_bodies(&self) -> bool {
        !self.marker.is_empty()
    }

    /// Only the body tells whether the login has failed.
    pub(crate) fn needs_body(&self, response: &Response) -> bool {
        self.reads_bodies() && (200..300).contains(&response.status) && Inspection::of(response, &[]).is_some()
    }

    /// Whether a login has succeeded; `None` where the response does not say, and where it may say so in a part of its body that was not
    /// read. Of a registration, and of a request for a new password, each counts as a failure that the backend has answered: it says the
    /// same for any account. `body` is `None` if there is one that was not read.
    pub(crate) fn of(&self, kind: EndpointKind, response: &Response, body: Option<Body<'_>>) -> Option<bool> {
        let status = response.status;
        if kind != EndpointKind::Login {
            return (200..500).contains(&status).then_some(false);
        }
        if self.statuses.contains(&status) {
            return Some(false);
        }
        match status {
            // 301, 307 and 308 send the same request elsewhere (`/login/`), and 304 answers no login.
            302 | 303 => Some(!self.marked(response.headers.get("location").unwrap_or_default())),
            200..300 if self.marker.is_empty() => Some(true),
            200..300 => self.of_body(response, body?),
            _ => None,
        }
    }

    /// Whether a body has the marker, or surely has not.
    fn of_body(&self, response: &Response, body: Body<'_>) -> Option<bool> {
        if body.complete && body.bytes.is_empty() {
            return Some(true);
        }
        let text = Inspection::of(response, &[])?.text(body, &response.headers);
        if self.marked(&text.units()) {
            return Some(false);
        }
        // A marker of ASCII has its bytes in most charsets.
        let kind = content_type(&response.headers);
        let hides = if self.marker.is_ascii() { hides_ascii(&kind) } else { has_foreign_charset(&kind) };
        let is_read = text.complete && !text.undecoded && !hides;
        is_read.then_some(true)
    }

    fn marked(&self, text: &[u8]) -> bool {
        !self.marker.is_empty() && memmem::find(text, &self.marker).is_some()
    }
}
