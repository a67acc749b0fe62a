//! One fetch of one list: the call, its answer unpacked, read and checked.

use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use feeds::{AddressSet, Churn, FeedError, Format};
use flate2::read::MultiGzDecoder;
use outbound::{Answer, Call, Outbound};
use store::feeds::{FeedList, MAX_FEED_LIST};

use crate::schedule::LONGEST_WISH;
use crate::{Fetched, Snapshot, Validators};

/// The bytes of an answer, at most.
pub const MAX_ANSWER: usize = 64 << 20;
/// The bytes of a list that came compressed, at most.
pub const MAX_UNPACKED: usize = 256 << 20;
/// How many times as long as its answer a list may be that came compressed: of the longest answer it is [`MAX_UNPACKED`].
const UNPACKED_TO: usize = 4;
/// Redirects that are followed, at most.
const REDIRECTS: u8 = 5;
/// The longest validator that is kept, in bytes.
const MAX_VALIDATOR: usize = 1024;

/// Where a list is, and how it is read.
#[derive(Clone, Debug)]
pub struct ListSource {
    /// The method of the call.
    pub method: Method,
    /// Its URL.
    pub url: String,
    /// Headers beside the usual ones; their values are secrets.
    pub headers: Vec<(String, String)>,
    /// How long the call takes at most.
    pub timeout: Duration,
    /// Whether redirects are followed, five at most.
    pub follow_redirects: bool,
    /// The format.
    pub format: Format,
    /// The bytes of an answer, at most; no more than [`MAX_ANSWER`].
    pub max_answer_bytes: usize,
    /// The entries of the list, at most.
    pub max_entries: usize,
    /// The list may come from a loopback or private address.
    pub private: bool,
    /// What follows for a list that has little to do with the one before, for people.
    pub refused: &'static str,
}

impl ListSource {
    /// A list of the Internet that anyone may fetch with GET: no headers, redirects are followed, 30 seconds.
    #[must_use]
    pub fn public(url: &str, format: Format, max_answer_bytes: usize, max_entries: usize) -> ListSource {
        ListSource {
            method: Method::GET,
            url: url.to_owned(),
            headers: Vec::new(),
            timeout: Duration::from_secs(30),
            follow_redirects: true,
            format,
            max_answer_bytes,
            max_entries,
            private: false,
            refused: "it is not used",
        }
    }
}

/// A fetch as it is to be made.
#[derive(Clone, Debug)]
pub struct ListFetch {
    call: Call,
    format: Format,
    max_entries: usize,
    max_ranges: usize,
    private: bool,
    refused: &'static str,
    /// A hash of all of this: two fetches with the same one ask the same of the same publisher.
    pub source: String,
}

/// Why there is no list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// For people.
    pub why: String,
    /// How long the server asks to wait, in milliseconds.
    pub wait_millis: Option<u64>,
}

/// What a list is compared with: the one in force, where both are of the same source.
pub type Before = Option<Arc<[u8]>>;

// === impl ListFetch ===

impl ListFetch {
    /// The fetch of a list. `how` stands for its method and format: another one makes another [`ListFetch::source`].
    ///
    /// # Errors
    /// A header that cannot be sent; for people.
    pub fn new(list: ListSource, how: &str) -> Result<ListFetch, String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        let mut fingerprint = vec![how.to_owned()];
        for (name, value) in &list.headers {
            let unsendable = || format!("the header `{}` cannot be sent", name.escape_debug());
            let read = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unsendable())?;
            let mut sent = HeaderValue::from_str(value).map_err(|_| unsendable())?;
            sent.set_sensitive(true);
            headers.insert(read, sent);
            fingerprint.push(format!("{name}: {value}"));
        }
        fingerprint.push(list.url.clone());
        fingerprint.push(format!("{} {}", list.max_entries, list.private));
        let call = Call {
            method: list.method,
            url: list.url,
            headers,
            body: Bytes::new(),
            timeout: list.timeout,
            max_answer_bytes: list.max_answer_bytes.min(MAX_ANSWER),
            redirects: if list.follow_redirects { REDIRECTS } else { 0 },
        };
        Ok(ListFetch {
            call,
            format: list.format,
            max_entries: list.max_entries,
            max_ranges: tables::MAX_ROWS,
            private: list.private,
            refused: list.refused,
            source: snapshot::hex(&snapshot::content_hash(fingerprint.join("\n").as_bytes())),
        })
    }

    /// Makes the fetch. With `validators` the publisher may answer that its list is still that one.
    ///
    /// # Errors
    /// No list that can be used: the server cannot be reached, answers with something else, or the list would do harm.
    pub async fn run(
        mut self,
        outbound: Outbound,
        validators: Validators,
        before: Before,
        now_millis: u64,
    ) -> Result<Fetched, Failure> {
        let conditional = self.ask_for_changes(&validators);
        let outbound = if self.private { outbound.reaching_private() } else { outbound };
        let answer = outbound.call(self.call.clone()).await.map_err(|error| Failure::new(error.to_string()))?;
        match answer.status {
            StatusCode::OK => {}
            StatusCode::NOT_MODIFIED if conditional => return Ok(Fetched::Unchanged),
            status => {
                let why = format!("the server answers {}", status.as_u16());
                return Err(Failure { why, wait_millis: wish(&answer.headers) });
            }
        }
        let reading = tokio::task::spawn_blocking(move || self.read(&answer, before.as_deref(), now_millis));
        let read = reading.await.unwrap_or_else(|_| Err("the list could not be read".to_owned()));
        read.map(Fetched::List).map_err(Failure::new)
    }

    /// Asks for the list only if it is another one than before; whether there is one to ask by.
    fn ask_for_changes(&mut self, validators: &Validators) -> bool {
        let known = asks_for_changes(validators);
        let any = !known.is_empty();
        self.call.headers.extend(known);
        any
    }

    /// Reads and checks a list. It may take seconds.
    fn read(&self, answer: &Answer, before: Option<&[u8]>, now_millis: u64) -> Result<Snapshot, String> {
        let unpacked =
            unpacked(&answer.body, self.call.max_answer_bytes.saturating_mul(UNPACKED_TO).min(MAX_UNPACKED))?;
        let list = unpacked.as_deref().unwrap_or(&answer.body);
        if list.trim_ascii_start().starts_with(b"<") {
            return Err("the server answers with a page, and not with a list".to_owned());
        }
        let parsed = feeds::parse(&self.format, list, self.max_entries);
        let parsed = parsed.map_err(|error| error.to_string())?;
        feeds::check(&parsed.addresses).map_err(|error| error.to_string())?;
        if parsed.addresses.is_empty() {
            return Err(FeedError::Empty(parsed.rejected).to_string());
        }
        if parsed.addresses.len() > self.max_ranges {
            let (ranges, most) = (parsed.addresses.len(), self.max_ranges);
            return Err(format!("the list makes {ranges} ranges, and gateways keep at most {most}"));
        }
        let before = before.and_then(|before| AddressSet::from_bytes(before).ok());
        if let Some(churn) = before.and_then(|before| Churn::between(&before, &parsed.addresses)) {
            return Err(format!("{churn}: {}", self.refused));
        }
        let bytes = parsed.addresses.to_bytes();
        if bytes.len() > MAX_FEED_LIST {
            return Err(format!("the list takes {} bytes, more than is kept", bytes.len()));
        }
        Ok(Snapshot {
            list: FeedList { hash: snapshot::content_hash(&bytes), bytes: bytes.into() },
            entries: parsed.entries as u64,
            ranges: parsed.addresses.len() as u64,
            rejected: parsed.rejected as u64,
            fetched_at: now_millis,
            validators: validators(&answer.headers),
            source: self.source.clone(),
        })
    }
}

// === impl Failure ===

impl Failure {
    /// A fetch that ended without an outcome.
    #[must_use]
    pub fn broken() -> Failure {
        Failure::new("the fetch broke off".to_owned())
    }

    /// A failure after which the server asks for no wait.
    #[must_use]
    pub fn new(why: String) -> Failure {
        Failure { why, wait_millis: None }
    }
}

/// The headers that ask for what is another version than this one.
#[must_use]
pub fn asks_for_changes(validators: &Validators) -> HeaderMap {
    let known = [(header::IF_NONE_MATCH, &validators.etag), (header::IF_MODIFIED_SINCE, &validators.last_modified)];
    known.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?.parse().ok()?))).collect()
}

/// A file that came compressed, whatever the headers say: many publishers serve files as they lie on their disks. `None` for one that did not.
///
/// # Errors
/// It is damaged, or has more than `most` bytes.
pub fn unpacked(body: &[u8], most: usize) -> Result<Option<Vec<u8>>, String> {
    if !body.starts_with(&[0x1f, 0x8b]) {
        return Ok(None);
    }
    let mut file = Vec::new();
    let limit = (most as u64).saturating_add(1);
    let read = MultiGzDecoder::new(body).take(limit).read_to_end(&mut file);
    read.map_err(|_| "the compressed file is damaged or incomplete".to_owned())?;
    if file.len() > most {
        return Err(format!("the file has more than {most} bytes when it is unpacked"));
    }
    Ok(Some(file))
}

/// What a publisher calls the version that it answers with.
#[must_use]
pub fn validators(headers: &HeaderMap) -> Validators {
    let text = |name: HeaderName| {
        let text = headers.get(name)?.to_str().ok().filter(|text| text.len() <= MAX_VALIDATOR)?;
        Some(text.to_owned())
    };
    Validators { etag: text(header::ETAG), last_modified: text(header::LAST_MODIFIED) }
}

/// How long a server asks to wait, where it says so in seconds: in milliseconds, a day at most.
#[must_use]
pub fn wish(headers: &HeaderMap) -> Option<u64> {
    let seconds: u64 = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(seconds.saturating_mul(1000).min(LONGEST_WISH))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn compressed_lists_are_unpacked_and_bounded() {
        assert_eq!(unpacked(b"192.0.2.1", 100), Ok(None));
        let packed = |bytes: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        let whole = packed(b"192.0.2.1");
        assert_eq!(unpacked(&whole, 9), Ok(Some(b"192.0.2.1".to_vec())));
        assert_eq!(unpacked(&[whole.clone(), whole.clone()].concat(), 100), Ok(Some(b"192.0.2.1192.0.2.1".to_vec())));
        assert!(unpacked(&whole[..whole.len() - 9], 100).unwrap_err().contains("incomplete"));
        assert!(unpacked(&whole, 8).unwrap_err().contains("more than 8 bytes"));
        let bomb = packed(&vec![b'\n'; MAX_UNPACKED + 1]);
        assert!(bomb.len() < MAX_ANSWER && unpacked(&bomb, MAX_UNPACKED).unwrap_err().contains("when it is unpacked"));
    }
}
