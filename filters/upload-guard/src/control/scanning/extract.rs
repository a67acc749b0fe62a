//! The files of a body, found as gateways find them.

use exchange::{Body, Headers, Request};
use files::json::Field;
use files::{File, Reason};
use sha2::{Digest as _, Sha256};

use super::cache::Digest;
use crate::body::{Finder, Sink};
use crate::{ScanFiles, codings};

/// How much longer than a body its decoded form may be.
const MAX_RATIO: u32 = 10_000;

/// A file to be scanned.
pub(super) struct Extracted {
    pub(super) content: Vec<u8>,
    pub(super) digest: Digest,
}

#[derive(Default)]
struct Collected(Vec<Extracted>);

impl Sink for &mut Collected {
    fn file(&mut self, file: &File<'_>) {
        let digest = Sha256::digest(file.content).into();
        if !file.content.is_empty() && !self.0.iter().any(|known| known.digest == digest) {
            self.0.push(Extracted { content: file.content.to_vec(), digest });
        }
    }

    // The gateway has refused what has a problem, unless it only monitors.
    fn problem(&mut self, _reason: Reason, _detail: impl Into<String>) {}
}

/// The files of a body, each content once.
///
/// # Errors
/// Why they cannot be found.
pub(super) fn files(question: &ScanFiles, body: &[u8], complete: bool) -> Result<Vec<Extracted>, String> {
    let limit = usize::try_from(question.body_limit).unwrap_or(usize::MAX);
    let decoded = codings::decoded(&question.content_encoding, Body { bytes: body, complete }, limit, MAX_RATIO);
    let decoded = decoded.map_err(|why| why.detail)?;
    let fields = question.json_fields.iter().map(|field| Field::parse(&field.path, &field.name));
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    let headers = match question.content_type.as_slice() {
        [] => Headers::default(),
        kind => Headers::from([("content-type", kind)]),
    };
    let request = Request { headers, ..Request::default() };
    let mut collected = Collected::default();
    let max_files = usize::try_from(question.max_files).unwrap_or(usize::MAX);
    let mut finder = Finder::new(&fields, max_files, &mut collected);
    finder.find(&request, Body { bytes: &decoded.bytes, complete: decoded.complete });
    Ok(collected.0)
}
