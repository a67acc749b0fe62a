//! How a caller is asked: a page for people, JSON for everything else.

use exchange::{Exchange, Host, Reply};
use serde_json::{Value, json};

use crate::{Challenges, HEADER, flow};

impl Challenges {
    /// Asks a caller with this score for a proof, with this status.
    #[must_use]
    pub fn present(&self, exchange: &Exchange, score: f64, status: u16, host: &dyn Host) -> Reply {
        if let Some(page) = &self.widget {
            return self.present_widget(page, exchange, status, host);
        }
        let (puzzle, signed) = self.mint(exchange, score, host);
        let reference = reference(&exchange.request.id);
        match navigation(exchange) {
            Some(repeats) => {
                let wait = self.wait(exchange, score, host);
                let languages = exchange.request.headers.get("accept-language").unwrap_or_default();
                let page = self.page.render(&signed, puzzle.bits, repeats, languages, reference, wait.as_ref());
                let mut reply = page_reply(status, self.page.policy(wait.as_ref()), b"same-origin", page);
                let cookie = wait.and_then(|wait| wait.cookie);
                reply.headers.extend(cookie.map(|cookie| ("set-cookie".to_owned(), cookie)));
                reply
            }
            None => json_reply(
                status,
                &json!({
                    "error": "challenge_required",
                    "challenge": signed,
                    "difficulty": puzzle.bits,
                    "algorithm": "sha-256",
                    "header": HEADER,
                    "expires_at": puzzle.exp,
                    "reference": reference,
                }),
            ),
        }
    }

    /// Notes that a caller went on because of its clearance.
    pub fn note_passed(&self, exchange: &mut Exchange, host: &dyn Host) {
        flow::note(exchange, "challenge:passed", "the caller has clearance".to_owned(), host);
    }
}

/// A page under a content security policy, and what a browser may tell others of where it was.
pub(crate) fn page_reply(status: u16, policy: Vec<u8>, referrer: &[u8], page: Vec<u8>) -> Reply {
    let mut reply = answer(status, b"text/html; charset=utf-8", page);
    reply.headers.push(("content-security-policy".to_owned(), policy));
    reply.headers.push(("referrer-policy".to_owned(), referrer.to_vec()));
    reply.headers.push(("vary".to_owned(), b"accept-language".to_vec()));
    reply
}

/// What a program is told.
pub(crate) fn json_reply(status: u16, what: &Value) -> Reply {
    answer(status, b"application/json", what.to_string().into_bytes())
}

fn answer(status: u16, content_type: &[u8], body: Vec<u8>) -> Reply {
    let headers =
        [("cache-control", &b"no-store"[..]), ("x-content-type-options", b"nosniff"), ("content-type", content_type)];
    Reply { status, headers: headers.map(|(name, value)| (name.to_owned(), value.to_vec())).into(), body }
}

/// Whether the client is a browser that navigates, and so shows the answer as a page; if so, whether it can repeat the
/// request.
pub(crate) fn navigation(exchange: &Exchange) -> Option<bool> {
    let request = &exchange.request;
    let accepts = request.headers.all("accept").any(|line| contains(line, b"text/html"));
    let repeats = request.method == b"GET" || request.method == b"HEAD";
    let mode = request.headers.get("sec-fetch-mode");
    let navigates = match mode {
        Some(mode) => mode == b"navigate",
        // A browser without this header; a form that it sends cannot be told from a script's request.
        None => repeats,
    };
    (accepts && navigates && !request.streaming).then_some(repeats)
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word))
}

/// The request's id if an answer may show it; else empty.
pub(crate) fn reference(id: &[u8]) -> &str {
    exchange::printable_id(id).unwrap_or_default()
}
