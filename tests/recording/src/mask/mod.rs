//! Recordings without their secrets.
//!
//! A masked value is replaced by one that is made from it with a key that nobody keeps: equal values stay equal, so that
//! sessions and callers can still be told apart, and none can be found out from it.

mod body;
mod value;

use std::collections::BTreeSet;

use crate::Entry;
use crate::traffic::Headers;

use value::Values;

/// A value that is masked in one place is masked wherever it stands in its entry, from this many bytes on. Shorter ones
/// would be found in the middle of anything.
const FOUND_ANYWHERE: usize = 6;
/// Headers that say how a message is read. What stands in them is known to everybody: a secret that is the same is a word.
const NO_SECRETS: [&[u8]; 6] =
    [b":method", b":scheme", b"content-type", b"content-encoding", b"content-length", b"transfer-encoding"];

/// What is secret. Names are compared without regard to case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secrets {
    /// Headers. Of `cookie` and `set-cookie` the names and attributes are kept, of `authorization` and
    /// `proxy-authorization` the scheme.
    pub headers: BTreeSet<String>,
    /// Parameters of the query, decoded, wherever there is a URL in a header.
    pub query: BTreeSet<String>,
    /// Fields of forms, decoded: of URL-encoded ones and of multipart.
    pub form: BTreeSet<String>,
    /// Keys of JSON objects at any depth. A list or an object becomes a string.
    pub json: BTreeSet<String>,
}

/// Masks entries. The same value becomes the same everywhere as long as it is one `Mask`.
pub struct Mask {
    secrets: Secrets,
    values: Values,
}

impl Default for Secrets {
    /// `authorization`, `proxy-authorization`, `cookie`, `set-cookie` and `x-api-key`.
    fn default() -> Self {
        let headers = ["authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"];
        Self { headers: headers.map(str::to_owned).into(), ..Self::none() }
    }
}

impl Secrets {
    /// Nothing is secret.
    #[must_use]
    pub fn none() -> Self {
        let none = BTreeSet::new;
        Self { headers: none(), query: none(), form: none(), json: none() }
    }

    fn lower(mut self) -> Self {
        for names in [&mut self.headers, &mut self.query, &mut self.form, &mut self.json] {
            *names = std::mem::take(names).into_iter().map(|name| name.to_lowercase()).collect();
        }
        self
    }
}

impl Mask {
    /// A mask with a random key.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn new(secrets: Secrets) -> std::io::Result<Self> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(std::io::Error::other)?;
        Ok(Self::with_key(secrets, key))
    }

    /// A mask with a key of one's own: recordings that are masked with the same key can be compared. Who has the key can
    /// find out short values by trying.
    #[must_use]
    pub fn with_key(secrets: Secrets, key: [u8; 32]) -> Self {
        Self { secrets: secrets.lower(), values: Values::new(key) }
    }

    /// Masks the secrets of an entry, and notes which. [`crate::traffic::Request::wire`] goes where something was masked,
    /// and so does a compressed body that may hold a secret field. `content-length` is kept right.
    pub fn apply(&self, entry: &mut Entry) {
        let mut run = Run { mask: self, found: Vec::new(), names: BTreeSet::new(), notes: Vec::new() };
        let (request, response) = (&mut entry.exchange.request, &mut entry.exchange.response);
        let lengths = (request.body.len(), response.body.len());
        for headers in [&mut request.headers, &mut request.trailers, &mut response.headers, &mut response.trailers] {
            run.headers(headers);
        }
        run.body(&mut request.body, &request.headers, "request");
        run.body(&mut response.body, &response.headers, "response");
        if run.names.is_empty() && run.notes.is_empty() {
            return;
        }
        run.found.sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
        run.found.dedup();
        for headers in [&mut request.headers, &mut request.trailers, &mut response.headers, &mut response.trailers] {
            let may_have = headers.iter_mut().filter(|(name, _)| !NO_SECRETS.contains(&name.as_slice()));
            may_have.for_each(|(_, value)| run.sweep(value));
        }
        run.sweep(&mut request.body);
        run.sweep(&mut response.body);
        for note in &mut entry.notes {
            let mut bytes = std::mem::take(note).into_bytes();
            run.sweep(&mut bytes);
            *note = String::from_utf8_lossy(&bytes).into_owned();
        }
        fit(&mut request.headers, lengths.0, request.body.len());
        fit(&mut response.headers, lengths.1, response.body.len());
        request.wire.clear();
        if !run.names.is_empty() {
            let names: Vec<String> = run.names.into_iter().collect();
            entry.notes.push(format!("masked: {}", names.join(", ")));
        }
        entry.notes.append(&mut run.notes);
    }
}

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mask").field("secrets", &self.secrets).finish_non_exhaustive()
    }
}

/// The masking of one entry.
struct Run<'a> {
    mask: &'a Mask,
    /// What was masked, as it may stand elsewhere, and what stands for it.
    found: Vec<(Vec<u8>, Vec<u8>)>,
    /// Where, for the note.
    names: BTreeSet<String>,
    notes: Vec<String>,
}

impl Run<'_> {
    fn headers(&mut self, headers: &mut Headers) {
        for (name, value) in headers {
            let known = String::from_utf8_lossy(name).to_lowercase();
            if self.mask.secrets.headers.contains(&known) && !value.is_empty() {
                *value = match known.as_str() {
                    "cookie" => self.cookies(value),
                    "set-cookie" => self.set_cookie(value),
                    "authorization" | "proxy-authorization" => self.credentials(value),
                    _ => self.secret(value),
                };
                self.names.insert(format!("header `{known}`"));
            }
            let query = &self.mask.secrets.query;
            if let Some(at) = value.iter().position(|byte| matches!(byte, b'?' | b'#')).filter(|_| !query.is_empty()) {
                let fields = self.fields(&value[at + 1..], query, "query parameter");
                value.truncate(at + 1);
                value.extend_from_slice(&fields);
            }
        }
    }

    fn cookies(&mut self, value: &[u8]) -> Vec<u8> {
        let cookies: Vec<Vec<u8>> = value.split(|&byte| byte == b';').map(|cookie| self.pair(cookie)).collect();
        cookies.join(&b';')
    }

    fn set_cookie(&mut self, value: &[u8]) -> Vec<u8> {
        let end = value.iter().position(|&byte| byte == b';').unwrap_or(value.len());
        [self.pair(&value[..end]), value[end..].to_vec()].concat()
    }

    /// `name=value`; what has no name is masked as a whole.
    fn pair(&mut self, pair: &[u8]) -> Vec<u8> {
        let begin = pair.iter().position(|&byte| byte == b'=').map_or(0, |at| at + 1);
        let blanks = pair[begin..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let (name, secret) = pair.split_at(begin + blanks);
        [name.to_vec(), self.secret(secret)].concat()
    }

    /// `Scheme secret`. User and password stay apart in `Basic`.
    fn credentials(&mut self, value: &[u8]) -> Vec<u8> {
        let Some((scheme, secret)) = value::scheme(value) else { return self.secret(value) };
        let basic = scheme.trim_ascii_end().eq_ignore_ascii_case(b"basic");
        let masked = match value::basic(secret).filter(|_| basic) {
            Some((user, password)) => {
                let masked = value::encode_basic(&self.secret(&user), &self.secret(&password));
                self.found.push((secret.to_vec(), masked.clone()));
                masked
            }
            None => self.secret(secret),
        };
        [scheme.to_vec(), masked].concat()
    }

    /// Fields of a query or a form; whatever comes between them stays.
    fn fields(&mut self, text: &[u8], names: &BTreeSet<String>, kind: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        for field in text.split_inclusive(|byte| matches!(byte, b'&' | b';' | b'#' | b'?')) {
            let end = field.len() - usize::from(matches!(field.last(), Some(b'&' | b';' | b'#' | b'?')));
            let (pair, separator) = field.split_at(end);
            let equals = pair.iter().position(|&byte| byte == b'=');
            let secret = equals.filter(|&at| names.contains(&value::decoded_name(&pair[..at])));
            match secret {
                Some(at) => {
                    self.names.insert(format!("{kind} `{}`", value::decoded_name(&pair[..at])));
                    out.extend_from_slice(&pair[..=at]);
                    out.extend_from_slice(&self.secret(&pair[at + 1..]));
                }
                None => out.extend_from_slice(pair),
            }
            out.extend_from_slice(separator);
        }
        out
    }

    /// What stands for a secret. It is looked for in the whole entry later, in all ways in which it may be written.
    fn secret(&mut self, secret: &[u8]) -> Vec<u8> {
        let masked = self.mask.values.mask(secret);
        let written = value::writings(secret).into_iter().filter(|secret| secret.len() >= FOUND_ANYWHERE);
        self.found.extend(written.map(|secret| (secret, masked.clone())));
        masked
    }

    fn sweep(&self, text: &mut Vec<u8>) {
        for (secret, masked) in &self.found {
            let mut rest = text.as_slice();
            let mut out = Vec::new();
            while let Some(at) = memchr::memmem::find(rest, secret) {
                out.extend_from_slice(&rest[..at]);
                out.extend_from_slice(masked);
                rest = &rest[at + secret.len()..];
            }
            if !out.is_empty() {
                out.extend_from_slice(rest);
                *text = out;
            }
        }
    }
}

/// Keeps a length right that was right.
fn fit(headers: &mut Headers, before: usize, after: usize) {
    let old = before.to_string();
    let lengths = headers.iter_mut().filter(|(name, value)| name == b"content-length" && *value == old.as_bytes());
    lengths.for_each(|(_, value)| *value = after.to_string().into_bytes());
}
