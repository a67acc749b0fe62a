//! Refusals, and the answers that they become.

use serde_json::{Map, Value};

use crate::decision::printable_id;
use crate::{About, Action, Category, Host, Level, Reply, Request};

/// The longest body of a refusal, in bytes.
pub const MAX_REPLY_BODY: usize = 64 * 1024;
/// The most headers that a refusal adds to its answer.
pub const MAX_REPLY_HEADERS: usize = 32;

/// The policy of a page whose plugin sets none: it may load and run nothing.
const PAGE_POLICY: &[u8] = b"default-src 'none'";

/// A plugin's refusal of a request or a response.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// HTTP status of the answer.
    pub status: u16,
    /// The category of its event.
    pub category: Category,
    /// Why, for the operator.
    pub reason: String,
    /// The caller's score counts: the threat response of the route may answer more strictly. Its answer replaces this one as a
    /// whole then.
    pub scored: bool,
    /// Headers of the answer, at most [`MAX_REPLY_HEADERS`]. They replace the usual ones of the same name.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body of the answer, at most [`MAX_REPLY_BODY`] bytes.
    pub body: ReplyBody,
    /// What its event calls the action: [`Action::Deny`], or another one that denies.
    pub action: Action,
    /// How long the answer to a request is held back, in milliseconds; it counts as a tarpit does.
    pub hold_millis: u32,
    /// What it is about.
    pub about: About,
}

/// The body of a refusal. The gateway leaves it out of the answer to a HEAD request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ReplyBody {
    /// A sentence for the status, and the request's id for a conversation with the operator.
    #[default]
    Text,
    /// A JSON object of texts. The request's id is added as `reference`.
    Json(Vec<(&'static str, String)>),
    /// A page. It may load and run nothing, unless the refusal has a `content-security-policy` of its own.
    Html(Vec<u8>),
    /// Anything else, as it is.
    Bytes {
        /// Its media type.
        content_type: &'static str,
        /// The bytes.
        bytes: Vec<u8>,
    },
}

impl Refusal {
    /// A refusal that is not scored, with the usual headers and body. `reason` is for the operator.
    #[must_use]
    pub fn new(status: u16, category: Category, reason: impl Into<String>) -> Self {
        Self {
            status,
            category,
            reason: reason.into(),
            scored: false,
            headers: Vec::new(),
            body: ReplyBody::Text,
            action: Action::Deny,
            hold_millis: 0,
            about: About::default(),
        }
    }

    /// Lets the threat response of the route answer more strictly.
    #[must_use]
    pub fn scored(mut self) -> Self {
        self.scored = true;
        self
    }

    /// Adds a header to the answer.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Is another action than a denial.
    #[must_use]
    pub fn action(mut self, action: Action) -> Self {
        self.action = action;
        self
    }

    /// Holds the answer back.
    #[must_use]
    pub fn held(mut self, millis: u32) -> Self {
        self.hold_millis = millis;
        self
    }

    /// Is about a policy or a pattern.
    #[must_use]
    pub fn about(mut self, about: About) -> Self {
        self.about = about;
        self
    }

    /// Answers with another body.
    #[must_use]
    pub fn body(mut self, body: ReplyBody) -> Self {
        self.body = body;
        self
    }

    /// The answer to a request. What is over a bound is replaced or left out, and logged: the refusal stands.
    #[must_use]
    pub fn reply(&self, request: &Request, host: &dyn Host) -> Reply {
        let mut reply = match self.rendered(&request.id) {
            Some((content_type, body)) if body.len() <= MAX_REPLY_BODY => Reply {
                status: self.status,
                headers: vec![
                    ("content-type".to_owned(), content_type.as_bytes().to_vec()),
                    ("cache-control".to_owned(), b"no-store".to_vec()),
                ],
                body,
            },
            Some(_) => {
                let message = "palisade: the body of a refusal is longer than 64 KiB; the usual one was sent";
                host.log(Level::Error, message);
                Reply::refusal(self.status, &request.id)
            }
            None => Reply::refusal(self.status, &request.id),
        };
        if matches!(self.body, ReplyBody::Html(_)) {
            reply.headers.push(("content-security-policy".to_owned(), PAGE_POLICY.to_vec()));
        }
        if self.headers.len() > MAX_REPLY_HEADERS {
            host.log(Level::Error, "palisade: a refusal has more than 32 headers; the others were left out");
        }
        let own = self.headers.get(..MAX_REPLY_HEADERS).unwrap_or(&self.headers);
        reply.headers.retain(|(usual, _)| !own.iter().any(|(name, _)| name.eq_ignore_ascii_case(usual)));
        reply.headers.extend(own.iter().cloned());
        reply
    }

    /// The media type and the body; `None` for the usual text.
    fn rendered(&self, request_id: &[u8]) -> Option<(&'static str, Vec<u8>)> {
        match &self.body {
            ReplyBody::Text => None,
            ReplyBody::Json(fields) => {
                let text = |(name, value): &(&'static str, String)| ((*name).to_owned(), Value::from(value.as_str()));
                let mut object: Map<String, Value> = fields.iter().map(text).collect();
                if let Some(id) = printable_id(request_id) {
                    object.insert("reference".to_owned(), id.into());
                }
                Some(("application/json", Value::from(object).to_string().into_bytes()))
            }
            ReplyBody::Html(page) => Some(("text/html; charset=utf-8", page.clone())),
            ReplyBody::Bytes { content_type, bytes } => Some((content_type, bytes.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeHost;

    fn refusal() -> Refusal {
        Refusal::new(405, Category::Api, "no such method")
    }

    fn reply(refusal: &Refusal, id: &[u8]) -> (Reply, usize) {
        let host = FakeHost::at(0);
        let reply = refusal.reply(&Request { id: id.to_vec(), ..Request::default() }, &host);
        let logged = host.logged.borrow().len();
        (reply, logged)
    }

    fn header<'a>(reply: &'a Reply, name: &str) -> Vec<&'a [u8]> {
        reply.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_slice()).collect()
    }

    #[test]
    fn each_body_has_its_type_and_is_not_stored() {
        let json = ReplyBody::Json(vec![("error", "a \"quoted\" word".to_owned())]);
        for (body, content_type, expected) in [
            (ReplyBody::Text, &b"text/plain; charset=utf-8"[..], &b"Request refused. Reference: a-1\n"[..]),
            (json, b"application/json", br#"{"error":"a \"quoted\" word","reference":"a-1"}"#),
            (ReplyBody::Html(b"<p>no".to_vec()), b"text/html; charset=utf-8", b"<p>no"),
            (ReplyBody::Bytes { content_type: "image/gif", bytes: vec![0, 255] }, b"image/gif", &[0, 255]),
        ] {
            let page = matches!(body, ReplyBody::Html(_));
            let (reply, logged) = reply(&refusal().body(body), b"a-1");
            assert_eq!((reply.status, reply.body.as_slice(), logged), (405, expected, 0));
            assert_eq!(header(&reply, "content-type"), [content_type]);
            assert_eq!(header(&reply, "cache-control"), [b"no-store"]);
            assert_eq!(header(&reply, "content-security-policy").len(), usize::from(page));
        }
    }

    #[test]
    fn an_id_that_could_mean_something_is_left_out_of_json() {
        let (reply, _) = reply(&refusal().body(ReplyBody::Json(vec![("error", "x".to_owned())])), b"<b>");
        assert_eq!(reply.body, br#"{"error":"x"}"#);
    }

    #[test]
    fn own_headers_replace_the_usual_ones() {
        let own = refusal().body(ReplyBody::Html(Vec::new())).header("Cache-Control", "max-age=1");
        let own = own.header("content-security-policy", "default-src 'self'").header("allow", "GET");
        let own = own.header("set-cookie", "a=1").header("set-cookie", "b=2");
        let (reply, _) = reply(&own, b"");
        assert_eq!(
            (header(&reply, "cache-control").len(), header(&reply, "Cache-Control")),
            (0, vec![&b"max-age=1"[..]])
        );
        assert_eq!(header(&reply, "content-security-policy"), [b"default-src 'self'"]);
        assert_eq!((header(&reply, "allow").len(), header(&reply, "set-cookie").len()), (1, 2));
    }

    #[test]
    fn bounds_hold_and_the_refusal_stands() {
        let page = |length| refusal().body(ReplyBody::Html(vec![b'x'; length]));
        assert_eq!(reply(&page(MAX_REPLY_BODY), b"").0.body.len(), MAX_REPLY_BODY);
        let (long, logged) = reply(&page(MAX_REPLY_BODY + 1), b"");
        assert_eq!((long.status, long.body.as_slice(), logged), (405, &b"Request refused.\n"[..], 1));
        assert_eq!(header(&long, "content-type"), [b"text/plain; charset=utf-8"]);
        let many = (0..=MAX_REPLY_HEADERS).fold(refusal(), |refusal, at| refusal.header(&format!("x-{at}"), "1"));
        let (many, logged) = reply(&many, b"");
        assert_eq!((many.headers.len(), header(&many, "x-31").len(), header(&many, "x-32").len()), (34, 1, 0));
        assert_eq!(logged, 1);
    }
}
