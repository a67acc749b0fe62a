//! `multipart/form-data` bodies, with the strictness flags of ModSecurity v3.
//!
//! Applications disagree about malformed bodies, and what a WAF reads differently than the application is a way around
//! it. So the parser is strict: it stops at what it does not understand and says so, and it flags what is valid but
//! read differently by others.

mod boundary;
mod disposition;
#[cfg(test)]
mod tests;

use disposition::Disposition;

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
    /// Some line looks like a boundary but is not the boundary, or has the boundary inside. For
    /// `MULTIPART_UNMATCHED_BOUNDARY` use [`Multipart::unmatched_boundary`], which tells a nested boundary from a
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
    /// The bytes of the part.
    pub value: Vec<u8>,
}

impl Part {
    /// Whether the part is a file (`FILES`) instead of a field (`ARGS_POST`): it has a filename that is not empty, or an
    /// empty one beside a `filename*`.
    pub fn is_file(&self) -> bool {
        self.filename.as_ref().is_some_and(|filename| !filename.is_empty() || self.extended_filename.is_some())
    }
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

/// Parses `body` with the boundary of `content_type`, the value of the `Content-Type` header.
pub fn parse(content_type: &[u8], body: &[u8], limits: &Limits) -> Multipart {
    let mut multipart = Multipart::default();
    let result = boundary::of(content_type, &mut multipart.flags);
    let result = result.and_then(|boundary| {
        let parser = Parser {
            boundary,
            anywhere: boundary::delimiter(boundary),
            body,
            limits,
            multipart: &mut multipart,
            part: None,
            boundaries: 0,
            files: 0,
            crlf_line: false,
        };
        parser.run()
    });
    if let Err(failure) = result {
        multipart.malformed = !matches!(failure, Failure::Incomplete(_));
        multipart.error = Some(match failure {
            Failure::Incomplete(message) | Failure::Malformed(message) => message.to_owned(),
        });
    }
    multipart
}

/// Why parsing stops.
#[derive(Debug)]
enum Failure {
    /// The body ends too early.
    Incomplete(&'static str),
    Malformed(&'static str),
}

/// The part being read.
#[derive(Default)]
struct Open {
    part: Part,
    /// The name of each header, to find duplicates.
    names: Vec<Vec<u8>>,
    /// The value of `Content-Disposition`.
    disposition: Option<Vec<u8>>,
    /// Where the data starts, once the headers have ended.
    data: Option<usize>,
}

struct Parser<'a> {
    boundary: &'a [u8],
    /// Finds the boundary anywhere.
    anywhere: memchr::memmem::Finder<'static>,
    body: &'a [u8],
    limits: &'a Limits,
    multipart: &'a mut Multipart,
    part: Option<Open>,
    boundaries: usize,
    files: usize,
    crlf_line: bool,
}

/// What a line that starts with `--` is.
enum Delimiter {
    Next,
    Last,
}

impl<'a> Parser<'a> {
    fn run(mut self) -> Result<(), Failure> {
        let mut at = 0;
        while at < self.body.len() {
            let rest = self.body.get(at..).unwrap_or_default();
            let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
            let line = rest.get(..length).unwrap_or_default();
            match self.delimiter(line)? {
                Some(delimiter) => {
                    self.boundaries += 1;
                    self.finish_part(at)?;
                    if matches!(delimiter, Delimiter::Last) {
                        self.multipart.flags.data_after = at + length < self.body.len();
                        return Ok(());
                    }
                    self.part = Some(Open::default());
                }
                None => self.content(line, at + length)?,
            }
            at += length;
        }
        Err(match (self.body.is_empty(), self.boundaries) {
            (true, _) => return Ok(()),
            (false, 0) => Failure::Incomplete("Multipart: No boundaries found in payload."),
            (false, _) => Failure::Incomplete("Multipart: Final boundary missing."),
        })
    }

    /// Whether the line is the boundary; flags lines that nearly are.
    fn delimiter(&mut self, line: &[u8]) -> Result<Option<Delimiter>, Failure> {
        let Some(inside) = line.strip_prefix(b"--").filter(|_| line.len() > 3) else {
            if self.anywhere.find(line).is_some() {
                self.foreign_boundary();
            }
            return Ok(None);
        };
        if let Some(after) = inside.strip_prefix(self.boundary) {
            if self.boundaries > 0 {
                self.multipart.open_foreign_boundary = false;
            }
            let (delimiter, end) = match after.strip_prefix(b"--") {
                Some(end) => (Delimiter::Last, end),
                None => (Delimiter::Next, after),
            };
            return match (end, &delimiter) {
                (b"\r\n" | b"\n", _) => {
                    self.line_end(end);
                    Ok(Some(delimiter))
                }
                (b"", Delimiter::Last) => Ok(Some(delimiter)),
                // The body ends within the line.
                (b"" | b"\r", _) => Ok(None),
                _ => Err(Failure::Malformed("Multipart: Invalid boundary (characters after it).")),
            };
        }
        if self.multipart.flags.boundary_quoted
            && inside.strip_prefix(b"\"").is_some_and(|quoted| quoted.starts_with(self.boundary))
        {
            return Err(Failure::Malformed("Multipart: Invalid boundary (quotes)."));
        }
        let unspaced = trim_start(inside);
        if unspaced.len() < inside.len() && unspaced.starts_with(self.boundary) {
            return Err(Failure::Malformed("Multipart: Invalid boundary (whitespace)."));
        }
        self.foreign_boundary();
        Ok(None)
    }

    fn foreign_boundary(&mut self) {
        self.multipart.flags.unmatched_boundary = true;
        self.multipart.open_foreign_boundary = true;
    }

    fn line_end(&mut self, line: &[u8]) {
        if line.ends_with(b"\r\n") {
            self.crlf_line = true;
        } else {
            self.multipart.flags.lf_line = true;
        }
        self.multipart.flags.crlf_lf_lines = self.crlf_line && self.multipart.flags.lf_line;
    }

    /// Takes a line that is no boundary; `next` is where the line after it starts.
    fn content(&mut self, line: &[u8], next: usize) -> Result<(), Failure> {
        match &self.part {
            None => {
                self.multipart.flags.data_before = true;
                Ok(())
            }
            Some(part) if part.data.is_some() => Ok(()),
            Some(_) => {
                let result = self.header(line, next);
                self.multipart.flags.invalid_part |= result.is_err();
                result
            }
        }
    }

    fn header(&mut self, line: &[u8], next: usize) -> Result<(), Failure> {
        let malformed = |message| Err(Failure::Malformed(message));
        if line.len() > self.limits.header_length {
            return malformed("Multipart: Part header line too long.");
        }
        if !line.ends_with(b"\n") {
            // The body ends here: the missing boundary is what is wrong.
            return Ok(());
        }
        if line.contains(&0) {
            return malformed("Multipart: Nul byte in part headers.");
        }
        self.line_end(line);
        let Some(open) = self.part.as_mut() else { return Ok(()) };
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if text.is_empty() {
            return self.end_of_headers(next);
        }
        let unspaced = trim_start(text);
        if unspaced.len() < text.len() {
            self.multipart.flags.header_folding = true;
            let fold = text.get(..text.len() - unspaced.len()).unwrap_or_default();
            self.multipart.flags.invalid_header_folding |= fold.iter().any(|byte| !matches!(byte, b' ' | b'\t'));
            let (Some(header), Some(name)) = (open.part.headers.last_mut(), open.names.last()) else {
                return malformed("Multipart: Invalid part header (folding error).");
            };
            let targets = [Some(header), open.disposition.as_mut().filter(|_| name == b"content-disposition")];
            for target in targets.into_iter().flatten() {
                target.push(b' ');
                target.extend_from_slice(unspaced);
                if target.len() > self.limits.header_length {
                    return malformed("Multipart: Part header too long.");
                }
            }
            return Ok(());
        }
        let Some(colon) = memchr::memchr(b':', text) else {
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
        if open.names.contains(&name) {
            return malformed("Multipart: Duplicate part header.");
        }
        if open.names.len() == self.limits.headers {
            return malformed("Multipart: Too many part headers.");
        }
        if name == b"content-disposition" {
            let value = text.get(colon + 1..).unwrap_or_default();
            let blank = value.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            open.disposition = Some(value.get(blank..).unwrap_or_default().to_vec());
        }
        open.names.push(name);
        open.part.headers.push(text.to_vec());
        Ok(())
    }

    fn end_of_headers(&mut self, next: usize) -> Result<(), Failure> {
        let malformed = |message| Err(Failure::Malformed(message));
        let Some(open) = self.part.as_mut() else { return Ok(()) };
        let Some(value) = &open.disposition else {
            return malformed("Multipart: Part missing Content-Disposition header.");
        };
        let disposition = Disposition::parse(value, &mut self.multipart.flags.invalid_quoting);
        let Disposition { name, filename, extended_filename } = disposition.map_err(Failure::Malformed)?;
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return malformed("Multipart: Content-Disposition header missing name field.");
        };
        open.part.name = name;
        open.part.filename = filename;
        open.part.extended_filename = extended_filename;
        open.data = Some(next);
        if open.part.is_file() {
            self.files += 1;
            self.multipart.flags.file_limit_exceeded |= self.files > self.limits.files;
        }
        Ok(())
    }

    /// Ends the part before the boundary line at `end`.
    fn finish_part(&mut self, end: usize) -> Result<(), Failure> {
        let Some(open) = self.part.take() else { return Ok(()) };
        let Some(start) = open.data else {
            self.multipart.flags.invalid_part = true;
            return Err(Failure::Malformed("Multipart: Invalid part (its headers do not end)."));
        };
        if self.multipart.parts.len() == self.limits.parts {
            return Err(Failure::Malformed("Multipart: Too many parts."));
        }
        // The line end before a boundary is a part of the boundary. Where there is none, others read on.
        let value = self.body.get(start..end).unwrap_or_default();
        if value.is_empty() {
            self.multipart.flags.invalid_part = true;
            return Err(Failure::Malformed("Multipart: Invalid part (no line end before the boundary)."));
        }
        self.line_end(value);
        let value = value.strip_suffix(b"\n").map_or(value, |value| value.strip_suffix(b"\r").unwrap_or(value));
        self.multipart.parts.push(Part { value: value.to_vec(), ..open.part });
        Ok(())
    }
}

/// Without white space of the C locale at the start.
fn trim_start(text: &[u8]) -> &[u8] {
    let blank = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
    text.get(blank..).unwrap_or_default()
}
