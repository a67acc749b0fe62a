//! `multipart/form-data` bodies, with the strictness flags of ModSecurity v3.
//!
//! Applications disagree about malformed bodies, and what a WAF reads differently than the application is a way around
//! it. So the parser is strict: it stops at what it does not understand and says so, and it flags what is valid but
//! read differently by others.
//!
//! A body is read piece by piece ([`Reader`]): of the content of files nothing but the size is kept, unless it is asked for,
//! or the application may read it as a message or as further fields.

mod boundary;
mod declared;
mod disposition;
mod loose;
mod nested;
mod part_reader;
mod reader;
#[cfg(test)]
mod tests;
mod transfer;

pub use declared::Declared;
pub use nested::{Nested, nested};
pub use reader::{OpenPart, Reader};
pub(crate) use transfer::{Decoder, base64_digit, decoders};

/// Limits of [`parse`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many files a body may hold; more set [`Flags::file_limit_exceeded`]. Default 100.
    pub files: usize,
    /// How many parts a body may hold; more are an error. Default 1000.
    pub parts: usize,
    /// How many header lines a part may have; more are an error. Default 32.
    pub headers: usize,
    /// How long one header line of a part may be, in bytes; a longer one is an error. Default 8192.
    pub header_length: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { files: 100, parts: 1000, headers: 32, header_length: 8192 }
    }
}

/// The strictness flags: the variables `MULTIPART_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// `MULTIPART_BOUNDARY_QUOTED`: the boundary parameter is quoted (allowed, but rare).
    pub boundary_quoted: bool,
    /// `MULTIPART_BOUNDARY_WHITESPACE`: there is white space around the boundary.
    pub boundary_whitespace: bool,
    /// `MULTIPART_DATA_BEFORE`: there is data before the first boundary.
    pub data_before: bool,
    /// `MULTIPART_DATA_AFTER`: there is data after the last boundary.
    pub data_after: bool,
    /// `MULTIPART_HEADER_FOLDING`: a part header is folded.
    pub header_folding: bool,
    /// `MULTIPART_LF_LINE`: a line of a part header or a boundary, or the one before a boundary, ends with LF alone.
    pub lf_line: bool,
    /// `MULTIPART_CRLF_LF_LINES`: some of these lines end with CRLF and some with LF alone.
    pub crlf_lf_lines: bool,
    /// `MULTIPART_MISSING_SEMICOLON`: no `;` before the boundary parameter.
    pub missing_semicolon: bool,
    /// `MULTIPART_INVALID_QUOTING`: a parameter of `Content-Disposition` is quoted with `'`, or contains it outside of double quotes.
    pub invalid_quoting: bool,
    /// `MULTIPART_INVALID_PART`: a part cannot be parsed.
    pub invalid_part: bool,
    /// `MULTIPART_INVALID_HEADER_FOLDING`: a part header is folded with something else than a space or a tab.
    pub invalid_header_folding: bool,
    /// `MULTIPART_FILE_LIMIT_EXCEEDED`: there are more files than the limit.
    pub file_limit_exceeded: bool,
    /// Some line looks like a boundary but is not the boundary. For
    /// `MULTIPART_UNMATCHED_BOUNDARY` use [`Multipart::unmatched_boundary`], which distinguishes a nested boundary from a
    /// forged one.
    pub unmatched_boundary: bool,
}

/// One part of a body.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Part {
    /// The `name` parameter of `Content-Disposition`.
    pub name: Vec<u8>,
    /// The `filename` parameter.
    pub filename: Option<Vec<u8>>,
    /// The `filename*` parameter, decoded: applications choose one of the two names.
    pub extended_filename: Option<Vec<u8>>,
    /// Each header line as `Header: value`, unfolded: what `MULTIPART_PART_HEADERS` lists under the part's name.
    pub headers: Vec<Vec<u8>>,
    /// The bytes of the part; of a file only where the reader keeps them, or where it is a message (`declared`).
    pub value: Vec<u8>,
    /// What the part says that it is, where applications may read that as a message.
    pub declared: Option<Declared>,
    /// The content of a file from the first line on that another parser may take for the head of a field: see [`nested`].
    pub nested: Vec<u8>,
    /// The part is a file here and may be a field for others: its value is kept, and rules see it as a field as well.
    pub also_field: bool,
    /// How many bytes the part has.
    pub size: usize,
    /// The bytes of a field or a message whose `Content-Transfer-Encoding` is `base64` or `quoted-printable`, decoded in each way
    /// that applications decode it, if they do; empty without such an encoding. At most three, none twice.
    pub decoded: Vec<Vec<u8>>,
}

impl Part {
    /// Whether the part is a file (`FILES`) instead of a field (`ARGS_POST`): it has a filename that is not empty, or an
    /// empty one beside a `filename*`.
    pub fn is_file(&self) -> bool {
        self.filename.as_ref().is_some_and(|filename| !filename.is_empty() || self.extended_filename.is_some())
    }
}

/// Whether the value of a `Content-Disposition` is that of a file, for all parsers.
pub(crate) fn is_file(disposition: &[u8]) -> bool {
    let parsed = disposition::Disposition::parse(disposition, &mut false);
    parsed.is_ok_and(|parsed| parsed.doubt.is_none() && parsed.filename.is_some_and(|filename| !filename.is_empty()))
}

/// A parsed body. Complete parts before an error are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Multipart {
    /// The complete parts, in order.
    pub parts: Vec<Part>,
    /// The strictness flags.
    pub flags: Flags,
    /// Why parsing stopped (`REQBODY_ERROR_MSG`).
    pub error: Option<String>,
    /// Whether the error is that of a malformed body, not just of one that ends before its last boundary.
    pub malformed: bool,
    /// The limit that parsing stopped at: what follows was not read.
    pub limit: Option<Limit>,
    /// Whether a part that applications read as text or as a message names a character set that rules cannot read.
    pub foreign_charset: bool,
    /// Whether a foreign boundary was seen after the last proper one.
    open_foreign_boundary: bool,
}

impl Multipart {
    /// `MULTIPART_STRICT_ERROR`: whether the body is malformed or any flag that counts is set, as in ModSecurity v3.
    ///
    /// That includes a quoted boundary, which some client libraries send although nothing is wrong with it. Mixed line
    /// ends count through `lf_line`; foreign boundaries do not count.
    pub fn strict_error(&self) -> bool {
        let flags = &self.flags;
        self.malformed
            || flags.boundary_quoted
            || flags.boundary_whitespace
            || flags.data_before
            || flags.data_after
            || flags.header_folding
            || flags.lf_line
            || flags.missing_semicolon
            || flags.invalid_quoting
            || flags.invalid_part
            || flags.invalid_header_folding
            || flags.file_limit_exceeded
    }

    /// `MULTIPART_UNMATCHED_BOUNDARY`: 0 if no line looks like a foreign boundary; 1 if one does and no proper boundary
    /// follows it; 2 if the foreign ones are inside of a part, as in an attached mail.
    pub fn unmatched_boundary(&self) -> u8 {
        match (self.flags.unmatched_boundary, self.open_foreign_boundary) {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => 2,
        }
    }
}

/// A limit that a body exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// What it is a limit of.
    pub what: &'static str,
    /// How many of it there may be.
    pub most: usize,
}

/// Parses `body` with the boundary of `content_type`, the value of the `Content-Type` header.
pub fn parse(content_type: &[u8], body: &[u8], limits: &Limits) -> Multipart {
    let mut reader = Reader::new(content_type, *limits, true);
    reader.feed(body);
    reader.finish()
}

/// Why parsing stops.
#[derive(Debug, Clone, Copy)]
enum Failure {
    /// The body ends too early.
    Incomplete(&'static str),
    Malformed(&'static str),
    /// There is more of something than is read.
    Beyond(&'static str, Limit),
}

impl Multipart {
    fn fail(&mut self, failure: Failure) {
        let (message, malformed) = match failure {
            Failure::Incomplete(message) => (message, false),
            Failure::Malformed(message) => (message, true),
            Failure::Beyond(message, limit) => {
                self.limit = Some(limit);
                (message, true)
            }
        };
        self.malformed = malformed;
        self.error = Some(message.to_owned());
    }
}

/// Without white space of the C locale at the start.
fn trim_start(text: &[u8]) -> &[u8] {
    let blank = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
    text.get(blank..).unwrap_or_default()
}
