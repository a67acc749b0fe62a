//! The files of a body, found as gateways find them.

use std::borrow::Cow;
use std::ops::Range;

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
    content: Content,
    pub(super) digest: Digest,
}

/// The bytes of a file.
enum Content {
    /// Those of a part of the body: most files are one, and are not copied.
    Part(Range<usize>),
    Own(Vec<u8>),
}

impl Extracted {
    /// The bytes of the file, which was found in this body.
    pub(super) fn content<'b>(&'b self, body: &'b [u8]) -> &'b [u8] {
        match &self.content {
            Content::Part(range) => body.get(range.clone()).unwrap_or_default(),
            Content::Own(bytes) => bytes,
        }
    }
}

struct Collected<'b> {
    body: &'b [u8],
    files: Vec<Extracted>,
}

impl Sink for &mut Collected<'_> {
    fn file(&mut self, file: &File<'_>) {
        let digest = Sha256::digest(file.content).into();
        if !file.content.is_empty() && !self.files.iter().any(|known| known.digest == digest) {
            let content = match part_of(self.body, file.content) {
                Some(range) => Content::Part(range),
                None => Content::Own(file.content.to_vec()),
            };
            self.files.push(Extracted { content, digest });
        }
    }

    fn sent(&mut self, content: &[u8], complete: bool) {
        self.file(&File { names: &[], media_type: None, content, complete, length: None });
    }

    fn coded(&mut self, body: &[u8], complete: bool) {
        self.sent(body, complete);
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
    let mut collected = Collected { body, files: Vec::new() };
    let max_files = usize::try_from(question.max_files).unwrap_or(usize::MAX);
    let mut finder = Finder::new(&fields, max_files, &mut collected);
    if matches!(decoded.bytes, Cow::Owned(_)) {
        finder.coded(&request, Body { bytes: body, complete }, &decoded.bytes);
    }
    finder.find(&request, Body { bytes: &decoded.bytes, complete: decoded.complete });
    Ok(collected.files)
}

/// Where a slice of a body is in it; `None` where it is no slice of this body.
fn part_of(body: &[u8], slice: &[u8]) -> Option<Range<usize>> {
    let start = slice.as_ptr().addr().checked_sub(body.as_ptr().addr())?;
    let range = start..start.checked_add(slice.len())?;
    // Addresses alone could be those of other bytes at a place that was freed: the content decides.
    body.get(range.clone()).filter(|found| *found == slice).map(|_| range)
}
