//! One fetch of one feed: the call, its answer unpacked, read and checked.

use std::io::Read as _;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use feeds::{AddressSet, Churn, FeedError, Format};
use flate2::read::MultiGzDecoder;
use outbound::{Answer, Call, Outbound};
use store::feeds::{FeedList, MAX_FEED_LIST};

use super::schedule::LONGEST_WISH;
use super::state::{Fetched, Snapshot, Validators};
use super::{FeedFormat, FetchMethod, ThreatFeed};

/// The bytes of an answer, at most.
pub(super) const MAX_ANSWER: usize = 64 << 20;
/// The bytes of a list that came compressed, at most.
pub(super) const MAX_UNPACKED: usize = 256 << 20;
/// Redirects that are followed, at most.
const REDIRECTS: u8 = 5;
/// The longest validator that is kept, in bytes.
const MAX_VALIDATOR: usize = 1024;

/// A fetch as it is to be made.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    call: Call,
    format: Format,
    max_entries: usize,
    max_ranges: usize,
    /// The list may come from a loopback or private address.
    private: bool,
    /// A hash of all of this: two fetches with the same one ask the same of the same publisher.
    pub(super) source: String,
}

/// Why there is no list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// For people.
    pub(super) why: String,
    /// How long the server asks to wait, in milliseconds.
    pub(super) wait_millis: Option<u64>,
}

/// What a list is compared with: the one in force, where both are of the same source.
pub(super) type Before = Option<Arc<[u8]>>;

// === impl Plan ===

impl Plan {
    /// The fetch of a feed.
    ///
    /// # Errors
    /// A header that cannot be sent, or a format that cannot be read; for people.
    pub(super) fn of(feed: &ThreatFeed) -> Result<Plan, String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        let mut fingerprint = vec![format!("{:?} {:?} {:?}", feed.method, feed.format, feed.options)];
        for (name, value) in &feed.headers {
            let unsendable = || format!("the header `{}` cannot be sent", name.escape_debug());
            let read = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unsendable())?;
            let mut sent = HeaderValue::from_str(value.reveal()).map_err(|_| unsendable())?;
            sent.set_sensitive(true);
            headers.insert(read, sent);
            fingerprint.push(format!("{name}: {}", value.reveal()));
        }
        fingerprint.push(feed.url.clone());
        fingerprint.push(format!("{} {}", feed.max_entries, feed.allow_private));
        let call = Call {
            method: match feed.method {
                FetchMethod::Get => Method::GET,
                FetchMethod::Post => Method::POST,
            },
            url: feed.url.clone(),
            headers,
            body: Bytes::new(),
            timeout: Duration::from_millis(feed.timeout_millis),
            max_answer_bytes: MAX_ANSWER,
            redirects: if feed.follow_redirects { REDIRECTS } else { 0 },
        };
        Ok(Plan {
            call,
            format: format(feed)?,
            max_entries: usize::try_from(feed.max_entries).unwrap_or(usize::MAX),
            max_ranges: tables::MAX_ROWS,
            private: feed.allow_private,
            source: snapshot::hex(&snapshot::content_hash(fingerprint.join("\n").as_bytes())),
        })
    }

    /// Makes the fetch. With `validators` the publisher may answer that its list is still that one.
    pub(super) async fn run(
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
        let unpacked = unpacked(&answer.body)?;
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
            return Err(format!("{churn}: it is not used unless it is refreshed with `force`"));
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
    pub(super) fn broken() -> Failure {
        Failure::new("the fetch broke off".to_owned())
    }

    pub(super) fn new(why: String) -> Failure {
        Failure { why, wait_millis: None }
    }
}

/// The headers that ask for what is another version than this one.
pub(super) fn asks_for_changes(validators: &Validators) -> HeaderMap {
    let known = [(header::IF_NONE_MATCH, &validators.etag), (header::IF_MODIFIED_SINCE, &validators.last_modified)];
    known.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?.parse().ok()?))).collect()
}

fn format(feed: &ThreatFeed) -> Result<Format, String> {
    let options = &feed.options;
    Ok(match feed.format {
        FeedFormat::CidrLines => Format::CidrLines,
        FeedFormat::Csv => Format::Csv {
            column: usize::try_from(options.column.unwrap_or(0)).unwrap_or(usize::MAX),
            separator: match options.separator {
                None => b',',
                Some(separator) => {
                    let byte = u8::try_from(separator).ok().filter(u8::is_ascii);
                    byte.ok_or_else(|| "the separator is not one byte".to_owned())?
                }
            },
            skip_header: options.skip_header.unwrap_or(false),
        },
        FeedFormat::JsonArray => Format::JsonArray(options.field.clone()),
        FeedFormat::JsonPath => {
            let path = options.path.as_deref().unwrap_or_default();
            Format::JsonPath(feeds::Path::from_str(path).map_err(|error| error.to_string())?)
        }
        FeedFormat::Misp => Format::Misp,
    })
}

/// A list that came compressed, whatever the headers say: many publishers serve files as they lie on their disks.
pub(super) fn unpacked(body: &[u8]) -> Result<Option<Vec<u8>>, String> {
    unpacked_within(body, MAX_UNPACKED)
}

/// [`unpacked`] of at most so many bytes.
pub(super) fn unpacked_within(body: &[u8], most: usize) -> Result<Option<Vec<u8>>, String> {
    if !body.starts_with(&[0x1f, 0x8b]) {
        return Ok(None);
    }
    let mut list = Vec::new();
    let limit = (most as u64).saturating_add(1);
    let read = MultiGzDecoder::new(body).take(limit).read_to_end(&mut list);
    read.map_err(|_| "the compressed file is damaged or incomplete".to_owned())?;
    if list.len() > most {
        return Err(format!("the file has more than {most} bytes when it is unpacked"));
    }
    Ok(Some(list))
}

pub(super) fn validators(headers: &HeaderMap) -> Validators {
    let text = |name: HeaderName| {
        let text = headers.get(name)?.to_str().ok().filter(|text| text.len() <= MAX_VALIDATOR)?;
        Some(text.to_owned())
    };
    Validators { etag: text(header::ETAG), last_modified: text(header::LAST_MODIFIED) }
}

/// How long a server asks to wait, where it says so in seconds.
pub(super) fn wish(headers: &HeaderMap) -> Option<u64> {
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
        assert_eq!(unpacked(b"192.0.2.1"), Ok(None));
        let packed = |bytes: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        let whole = packed(b"192.0.2.1");
        assert_eq!(unpacked(&whole), Ok(Some(b"192.0.2.1".to_vec())));
        assert_eq!(unpacked(&[whole.clone(), whole.clone()].concat()), Ok(Some(b"192.0.2.1192.0.2.1".to_vec())));
        assert!(unpacked(&whole[..whole.len() - 9]).unwrap_err().contains("incomplete"));
        let bomb = packed(&vec![b'\n'; MAX_UNPACKED + 1]);
        assert!(bomb.len() < MAX_ANSWER && unpacked(&bomb).unwrap_err().contains("when it is unpacked"));
    }

    #[test]
    fn what_changes_the_answer_changes_the_source() {
        let source = |feed: &ThreatFeed| Plan::of(feed).unwrap().source;
        let feed = ThreatFeed { url: "https://a/".into(), ..ThreatFeed::default() };
        assert_eq!(source(&feed), source(&ThreatFeed { weight: 1.0, tag: "x".into(), ..feed.clone() }));
        for other in [
            ThreatFeed { url: "https://b/".into(), ..feed.clone() },
            ThreatFeed { method: FetchMethod::Post, ..feed.clone() },
            ThreatFeed { format: FeedFormat::Misp, ..feed.clone() },
            ThreatFeed { max_entries: 7, ..feed.clone() },
            ThreatFeed { allow_private: true, ..feed.clone() },
            ThreatFeed { headers: [("Key".to_owned(), "x".into())].into(), ..feed.clone() },
        ] {
            assert_ne!(source(&feed), source(&other), "{other:?}");
        }
    }
}
