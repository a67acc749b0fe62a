//! The part being read: its headers, and what they say.

use memchr::memchr;

use super::declared::Declared;
use super::disposition::{Disposition, Doubt};
use super::loose::Loose;
use super::nested::Search;
use super::{Failure, Flags, Limit, Limits, Part};

/// The part being read.
#[derive(Debug, Default)]
pub(super) struct PartReader {
    pub(super) part: Part,
    /// The name of each header, to find duplicates.
    pub(super) names: Vec<Vec<u8>>,
    /// The value of `Content-Disposition`.
    pub(super) disposition: Option<Vec<u8>>,
    /// The value of `Content-Transfer-Encoding`.
    pub(super) transfer_encoding: Option<Vec<u8>>,
    /// The value of `Content-Encoding`.
    pub(super) content_encoding: Option<Vec<u8>>,
    /// The value of `Content-Type`.
    pub(super) content_type: Option<Vec<u8>>,
    /// Looks for the heads of fields in a file.
    pub(super) search: Search,
    /// The headers have ended.
    pub(super) in_data: bool,
    pub(super) is_file: bool,
    /// It is a file, and others may read it as a field.
    pub(super) doubt: Option<Doubt>,
    /// The content of a file in loose doubt.
    pub(super) loose: Loose,
    /// The last two bytes of the data so far.
    pub(super) last: (u8, u8),
}

impl PartReader {
    /// Whether more data is content of a file that no rule reads.
    pub(super) fn counts_as_file(&self) -> bool {
        !self.is_read() && self.part.nested.is_empty()
    }

    /// Whether rules read its whole content.
    pub(super) fn is_read(&self) -> bool {
        !self.is_file || self.part.declared.is_some() || self.doubt == Some(Doubt::Odd)
    }

    /// Takes a header line that is not folded, without its end.
    pub(super) fn header(&mut self, text: &[u8], limits: &Limits) -> Result<(), Failure> {
        let malformed = |message| Err(Failure::Malformed(message));
        let Some(colon) = memchr(b':', text) else {
            return malformed("Multipart: Invalid part header (colon missing).");
        };
        let name = text.get(..colon).unwrap_or_default();
        if name.is_empty() {
            return malformed("Multipart: Invalid part header (header name missing).");
        }
        if !name.iter().all(|byte| matches!(byte, 0x21..=0x7e)) {
            return malformed("Multipart: Invalid part header (contains invalid character).");
        }
        let name = name.to_ascii_lowercase();
        if self.names.contains(&name) {
            return malformed("Multipart: Duplicate part header.");
        }
        if self.names.len() == limits.headers {
            let limit = Limit { what: "headers of a part", most: limits.headers };
            return Err(Failure::Beyond("Multipart: Too many part headers.", limit));
        }
        let value = || {
            let value = text.get(colon + 1..).unwrap_or_default();
            let blank = value.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            Some(value.get(blank..).unwrap_or_default().to_vec())
        };
        match name.as_slice() {
            b"content-disposition" => self.disposition = value(),
            b"content-transfer-encoding" => self.transfer_encoding = value(),
            b"content-encoding" => self.content_encoding = value(),
            b"content-type" => self.content_type = value(),
            _ => {}
        }
        self.names.push(name);
        self.part.headers.push(text.to_vec());
        Ok(())
    }

    pub(super) fn end_of_headers(&mut self, flags: &mut Flags) -> Result<(), Failure> {
        let malformed = |message| Err(Failure::Malformed(message));
        let Some(value) = &self.disposition else {
            return malformed("Multipart: Part missing Content-Disposition header.");
        };
        let disposition = Disposition::parse(value, &mut flags.invalid_quoting);
        let Disposition { name, filename, extended_filename, doubt } = disposition.map_err(Failure::Malformed)?;
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return malformed("Multipart: Content-Disposition header missing name field.");
        };
        self.part.name = name;
        self.part.filename = filename;
        self.part.extended_filename = extended_filename;
        self.part.declared = self.content_type.as_deref().and_then(Declared::of);
        self.in_data = true;
        self.is_file = self.part.is_file();
        let untyped = self.content_type.is_none().then_some(Doubt::Loose);
        self.doubt = doubt.max(untyped).filter(|_| self.is_file && self.part.declared.is_none());
        // Some applications undo it.
        let encoding = self.content_encoding.as_deref().unwrap_or_default().trim_ascii();
        if self.is_read() && !encoding.is_empty() && !encoding.eq_ignore_ascii_case(b"identity") {
            return malformed("Multipart: Invalid part header (Content-Encoding of a field).");
        }
        Ok(())
    }
}
