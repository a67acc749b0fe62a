//! One fetch of one database: the call, its answer unpacked, read and checked.

use std::io::Write as _;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use lists::{Failure, MAX_ANSWER, MAX_UNPACKED, Validators, asks_for_changes, unpacked, validators, wish};
use outbound::{Answer, Call, Outbound};
use serde::{Deserialize, Serialize};

use super::super::{AsnDatabase, AsnFormat, GeoDatabase};
use super::networks::Read;
use super::state::{Content, Fetched};
use super::{DatabaseKind, iptoasn, mmdb, url};

/// Redirects that are followed, at most.
const REDIRECTS: u8 = 5;
/// From this number of ranges on, a database with less than half of those of the one before is refused.
const COMPARED_FROM: usize = 1000;
/// The most ranges of a database of networks that an entity may allow.
const MAX_ENTRIES: usize = 10_000_000;

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Format {
    /// Networks, as lines.
    IptoasnTsv,
    /// Networks, in the MaxMind format.
    NetworksMmdb,
    /// Places, in the MaxMind format.
    PlacesMmdb,
}

/// A fetch as it is to be made.
#[derive(Clone)]
pub(super) struct Plan {
    /// With the placeholders of the month.
    url: String,
    headers: HeaderMap,
    timeout: Duration,
    format: Format,
    /// A compressed file is taken.
    gzip: bool,
    max_answer: usize,
    max_unpacked: usize,
    max_entries: usize,
    /// The database may come from a loopback or private address.
    private: bool,
    /// A hash of all of this: two fetches with the same one ask the same of the same publisher.
    pub(super) source: String,
}

/// A database that was fetched, and its file.
pub(super) struct Download {
    pub(super) fetched: Fetched,
    pub(super) validators: Validators,
    /// Compressed.
    pub(super) file: Bytes,
}

// === impl Format ===

impl Format {
    pub(super) fn kind(self) -> DatabaseKind {
        match self {
            Self::IptoasnTsv | Self::NetworksMmdb => DatabaseKind::Asn,
            Self::PlacesMmdb => DatabaseKind::Geo,
        }
    }

    fn read(self, file: Bytes, max_entries: usize) -> Result<Read<Content>, String> {
        Ok(match self {
            Self::IptoasnTsv => iptoasn::read(&file, max_entries)?.into(),
            Self::NetworksMmdb => mmdb::networks(file, max_entries)?.into(),
            Self::PlacesMmdb => mmdb::places(file)?.into(),
        })
    }
}

/// Reads a file that was kept. It may take seconds.
///
/// # Errors
/// It is damaged; for people.
pub(super) fn read(format: Format, file: Bytes) -> Result<Read<Content>, String> {
    let unpacked = unpacked(&file, usize::MAX)?;
    format.read(unpacked.map_or(file, Bytes::from), MAX_ENTRIES)
}

// === impl Plan ===

impl Plan {
    /// The fetch of a database of networks.
    pub(super) fn of_networks(database: &AsnDatabase) -> Plan {
        let AsnDatabase { url, gzip, max_entries, allow_private, timeout_millis, .. } = database;
        let format = match database.format {
            AsnFormat::IptoasnTsv => Format::IptoasnTsv,
            AsnFormat::Mmdb => Format::NetworksMmdb,
        };
        let source = format!("{format:?} {gzip} {max_entries} {allow_private}\n{url}");
        Plan {
            url: url.clone(),
            headers: headers(),
            timeout: Duration::from_millis(*timeout_millis),
            format,
            gzip: *gzip,
            max_answer: MAX_ANSWER,
            max_unpacked: MAX_UNPACKED,
            max_entries: usize::try_from(*max_entries).unwrap_or(usize::MAX),
            private: *allow_private,
            source: hashed(&source),
        }
    }

    /// The fetch of a database of places.
    ///
    /// # Errors
    /// A header that cannot be sent; for people.
    pub(super) fn of_places(database: &GeoDatabase) -> Result<Plan, String> {
        let GeoDatabase { url, username, password, max_size_mb, allow_private, timeout_millis, .. } = database;
        let mut headers = headers();
        let mut source = format!("{max_size_mb} {allow_private}\n{url}\n{username}\n{}", password.reveal());
        if !username.is_empty() {
            let credentials = STANDARD.encode(format!("{username}:{}", password.reveal()));
            let value = HeaderValue::from_str(&format!("Basic {credentials}"));
            let mut value = value.map_err(|_| "the credentials cannot be sent".to_owned())?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        for (name, value) in &database.headers {
            let unsendable = || format!("the header `{}` cannot be sent", name.escape_debug());
            let read = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unsendable())?;
            let mut sent = HeaderValue::from_str(value.reveal()).map_err(|_| unsendable())?;
            sent.set_sensitive(true);
            headers.insert(read, sent);
            source.push_str(&format!("\n{name}: {}", value.reveal()));
        }
        let bytes = usize::try_from(max_size_mb.saturating_mul(1 << 20)).unwrap_or(usize::MAX);
        Ok(Plan {
            url: url.clone(),
            headers,
            timeout: Duration::from_millis(*timeout_millis),
            format: Format::PlacesMmdb,
            gzip: true,
            max_answer: bytes,
            max_unpacked: bytes,
            max_entries: usize::MAX,
            private: *allow_private,
            source: hashed(&source),
        })
    }

    /// Makes the fetch. With `validators` the publisher may answer that its database is still that one: `None`. `before` is the number of
    /// ranges that it is compared with.
    pub(super) async fn run(
        self,
        outbound: Outbound,
        validators: Validators,
        before: Option<usize>,
        now_millis: u64,
    ) -> Result<Option<Download>, Failure> {
        let outbound = if self.private { outbound.reaching_private() } else { outbound };
        let month = url::month_of(now_millis);
        let mut answer = self.call(&outbound, month, &validators).await?;
        if answer.status == StatusCode::NOT_FOUND && url::has_month(&self.url) {
            // A publisher may be late with the file of a month.
            answer = self.call(&outbound, url::month_before(month), &validators).await?;
        }
        match answer.status {
            StatusCode::OK => {}
            StatusCode::NOT_MODIFIED if validators != Validators::default() => return Ok(None),
            status => {
                let why = format!("the server answers {}", status.as_u16());
                return Err(Failure { why, wait_millis: wish(&answer.headers) });
            }
        }
        let reading = tokio::task::spawn_blocking(move || self.read(answer, before));
        let read = reading.await.unwrap_or_else(|_| Err("the database could not be read".to_owned()));
        read.map(Some).map_err(Failure::new)
    }

    async fn call(&self, outbound: &Outbound, month: (u32, u32), validators: &Validators) -> Result<Answer, Failure> {
        let mut headers = self.headers.clone();
        headers.extend(asks_for_changes(validators));
        let call = Call {
            method: Method::GET,
            url: url::with_month(&self.url, month),
            headers,
            body: Bytes::new(),
            timeout: self.timeout,
            max_answer_bytes: self.max_answer,
            redirects: REDIRECTS,
        };
        outbound.call(call).await.map_err(|error| Failure::new(error.to_string()))
    }

    /// Reads and checks a database. It may take seconds.
    fn read(&self, answer: Answer, before: Option<usize>) -> Result<Download, String> {
        let by_transfer = answer.headers.get(header::CONTENT_ENCODING).is_some();
        let unpacked = unpacked(&answer.body, self.max_unpacked)?;
        if unpacked.is_some() && !self.gzip && !by_transfer {
            return Err("the file is compressed, and `gzip` is false".to_owned());
        }
        let (plain, packed) = match unpacked {
            Some(plain) => (Bytes::from(plain), Some(answer.body)),
            None => (answer.body, None),
        };
        let Read { content, entries, rejected } = self.format.read(plain.clone(), self.max_entries)?;
        let ranges = content.ranges();
        if let Some(before) = before.filter(|before| *before >= COMPARED_FROM && ranges < *before / 2) {
            return Err(format!(
                "the database has {ranges} ranges, and the one in force {before}: it is not used unless it is refreshed with `force`"
            ));
        }
        let file = packed.map_or_else(|| compressed(&plain), Ok)?;
        let fetched = Fetched {
            content,
            format: self.format,
            hash: snapshot::content_hash(&file),
            entries: u64::try_from(entries).unwrap_or(u64::MAX),
            rejected: u64::try_from(rejected).unwrap_or(u64::MAX),
            source: self.source.clone(),
        };
        Ok(Download { fetched, validators: validators(&answer.headers), file })
    }
}

fn headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    headers
}

fn hashed(source: &str) -> String {
    snapshot::hex(&snapshot::content_hash(source.as_bytes()))
}

fn compressed(plain: &[u8]) -> Result<Bytes, String> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    let written = out.write_all(plain).and_then(|()| out.finish());
    written.map(Bytes::from).map_err(|_| "the database could not be compressed".to_owned())
}
