//! Reads a body piece by piece.

use memchr::memchr;

use crate::body::Charset;

use super::disposition::Doubt;
use super::part_reader::PartReader;
use super::{Failure, Limit, Limits, Multipart, Part, boundary, loose, transfer, trim_start};

/// Reads a multipart body as it comes.
#[derive(Debug)]
pub struct Reader {
    boundary: Vec<u8>,
    /// Finds the boundary anywhere.
    anywhere: memchr::memmem::Finder<'static>,
    limits: Limits,
    /// The content of files is kept as well.
    keeps_files: bool,
    multipart: Multipart,
    part: Option<PartReader>,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    /// The beginning of the current line was read already: what follows is more of it.
    within_line: bool,
    /// The last bytes of the current line, if they were read already: a boundary may go on in the next piece.
    overlap: Vec<u8>,
    /// The body without the content of files.
    skeleton: Vec<u8>,
    /// Bytes of the content of files.
    file_bytes: usize,
    /// How many bytes of files in doubt may still be kept.
    loose_room: usize,
    /// Bytes of the body.
    length: usize,
    boundaries: usize,
    files: usize,
    crlf_line: bool,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Reading,
    /// The last boundary was read.
    Ended,
    Failed,
}

/// The part that is being read.
#[derive(Debug, Clone, Copy)]
pub struct OpenPart<'a> {
    /// It is a file, and what follows is content of it that is not kept.
    pub file: bool,
    /// The value of its `Content-Transfer-Encoding`; empty if it has none.
    pub encoding: &'a [u8],
    /// Its content so far, in two pieces; empty for a file that is not kept.
    pub content: [&'a [u8]; 2],
}

/// What a line that starts with `--` is.
enum Delimiter {
    Next,
    Last,
}

impl Reader {
    /// A reader for the boundary of `content_type`, the value of the `Content-Type` header. The content of files is kept
    /// where `keeps_files` says so; otherwise it is counted alone.
    #[must_use]
    pub fn new(content_type: &[u8], limits: Limits, keeps_files: bool) -> Self {
        let mut multipart = Multipart::default();
        let (mut state, mut boundary) = (State::Reading, Vec::new());
        match boundary::of(content_type, &mut multipart.flags) {
            Ok(found) => boundary = found.to_vec(),
            Err(failure) => {
                multipart.fail(failure);
                state = State::Failed;
            }
        }
        Self {
            anywhere: boundary::delimiter(&boundary),
            boundary,
            limits,
            keeps_files,
            multipart,
            part: None,
            line: Vec::new(),
            within_line: false,
            overlap: Vec::new(),
            skeleton: Vec::new(),
            file_bytes: 0,
            loose_room: loose::ROOM,
            length: 0,
            boundaries: 0,
            files: 0,
            crlf_line: false,
            state,
        }
    }

    /// Takes the next piece of the body.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.length = self.length.saturating_add(bytes.len());
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.state != State::Reading {
                self.multipart.flags.data_after |= self.state == State::Ended;
                self.skeleton.extend_from_slice(rest);
                return;
            }
            let end = memchr(b'\n', rest).map(|end| end + 1);
            let (piece, after) = rest.split_at_checked(end.unwrap_or(rest.len())).unwrap_or((rest, &[]));
            rest = after;
            if let Err(failure) = self.piece(piece, end.is_some()) {
                self.multipart.fail(failure);
                self.state = State::Failed;
            }
        }
    }

    /// How many bytes of the body so far are no content of files. What is kept of a file, to be read as a message or as
    /// fields, is among them.
    #[must_use]
    pub fn length_without_files(&self) -> usize {
        // A line whose end has not come yet belongs to the file that it is in.
        let in_file = self.part.as_ref().is_some_and(|open| open.in_data && open.counts_as_file());
        let pending = if in_file { self.line.len() } else { 0 };
        self.length.saturating_sub(self.file_bytes).saturating_sub(pending)
    }

    /// How many bytes there were so far.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// The boundary; empty if the type names none.
    #[must_use]
    pub fn boundary(&self) -> &[u8] {
        &self.boundary
    }

    /// The part whose content is being read.
    #[must_use]
    pub fn open_part(&self) -> Option<OpenPart<'_>> {
        let open = self.part.as_ref().filter(|open| open.in_data && self.state == State::Reading)?;
        let file = open.counts_as_file();
        let encoding = open.transfer_encoding.as_deref().unwrap_or_default();
        let content: [&[u8]; 2] = if file { [b"", b""] } else { [&open.part.value, &self.line] };
        Some(OpenPart { file, encoding, content })
    }

    /// Takes the part whose content is being read, with what has come of it, where the reader keeps files: for a body whose end is
    /// missing. Nothing more is read into it.
    #[must_use]
    pub fn take_open_part(&mut self) -> Option<Part> {
        let open = self.part.take_if(|open| open.in_data && self.state == State::Reading)?;
        let mut part = open.part;
        part.value.extend_from_slice(&self.line);
        part.size = part.value.len();
        Some(part)
    }

    /// Whether reading has stopped at what is malformed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.state == State::Failed
    }

    /// Takes the body without the content of files: what is left for rules that look at a body as a whole.
    pub fn take_skeleton(&mut self) -> Vec<u8> {
        let mut skeleton = std::mem::take(&mut self.skeleton);
        skeleton.extend_from_slice(&self.line);
        skeleton
    }

    /// The body has ended.
    #[must_use]
    pub fn finish(mut self) -> Multipart {
        let line = std::mem::take(&mut self.line);
        if self.state == State::Reading
            && !line.is_empty()
            && let Err(failure) = self.start_of_line(&line, true)
        {
            self.multipart.fail(failure);
            self.state = State::Failed;
        }
        if self.state == State::Reading && self.length > 0 {
            self.multipart.fail(match self.boundaries {
                0 => Failure::Incomplete("Multipart: No boundaries found in payload."),
                _ => Failure::Incomplete("Multipart: Final boundary missing."),
            });
        }
        self.multipart
    }

    /// Takes bytes of one line; `ends` if they are the last ones of it.
    fn piece(&mut self, piece: &[u8], ends: bool) -> Result<(), Failure> {
        if self.within_line {
            self.more_of_line(piece)?;
            self.within_line = !ends;
            return Ok(());
        }
        // A line longer than any header is neither a boundary nor a header.
        let long = self.limits.header_length;
        if self.line.is_empty() && (ends || piece.len() > long) {
            self.start_of_line(piece, ends)?;
            self.within_line = !ends;
            return Ok(());
        }
        self.line.extend_from_slice(piece);
        if ends || self.line.len() > long {
            let mut line = std::mem::take(&mut self.line);
            self.start_of_line(&line, ends)?;
            self.within_line = !ends;
            line.clear();
            self.line = line;
        }
        Ok(())
    }

    fn start_of_line(&mut self, line: &[u8], ends: bool) -> Result<(), Failure> {
        let Some(delimiter) = self.delimiter(line)? else {
            return self.content(line, ends);
        };
        self.boundaries += 1;
        self.finish_part()?;
        self.skeleton.extend_from_slice(line);
        match delimiter {
            Delimiter::Last => self.state = State::Ended,
            Delimiter::Next => self.part = Some(PartReader::default()),
        }
        Ok(())
    }

    /// Whether the line is the boundary; flags lines that nearly are.
    fn delimiter(&mut self, line: &[u8]) -> Result<Option<Delimiter>, Failure> {
        let Some(inside) = line.strip_prefix(b"--").filter(|_| line.len() > 3) else {
            self.no_boundary_in(line)?;
            return Ok(None);
        };
        if let Some(after) = inside.strip_prefix(self.boundary.as_slice()) {
            if self.boundaries > 0 {
                self.multipart.open_foreign_boundary = false;
            }
            let (delimiter, end) = match after.strip_prefix(b"--") {
                Some(end) => (Delimiter::Last, end),
                None => (Delimiter::Next, after),
            };
            return match (end, &delimiter) {
                (b"\r\n" | b"\n", _) => {
                    self.line_end(end.len() == 2);
                    Ok(Some(delimiter))
                }
                (b"", Delimiter::Last) => Ok(Some(delimiter)),
                // The body ends within the line.
                (b"" | b"\r", _) => Ok(None),
                _ => Err(Failure::Malformed("Multipart: Invalid boundary (characters after it).")),
            };
        }
        if self.multipart.flags.boundary_quoted
            && inside.strip_prefix(b"\"").is_some_and(|quoted| quoted.starts_with(&self.boundary))
        {
            return Err(Failure::Malformed("Multipart: Invalid boundary (quotes)."));
        }
        let unspaced = trim_start(inside);
        if unspaced.len() < inside.len() && unspaced.starts_with(&self.boundary) {
            return Err(Failure::Malformed("Multipart: Invalid boundary (whitespace)."));
        }
        self.no_boundary_in(inside)?;
        self.multipart.flags.unmatched_boundary = true;
        self.multipart.open_foreign_boundary = true;
        Ok(None)
    }

    /// Some parsers take a carriage return alone for the end of a line, others find the boundary wherever it is. A client
    /// chooses a boundary that its parts do not hold.
    fn no_boundary_in(&self, text: &[u8]) -> Result<(), Failure> {
        // Without a boundary, reading has failed already.
        match self.anywhere.find(text) {
            None => Ok(()),
            Some(_) => Err(Failure::Malformed("Multipart: Invalid boundary (not at the start of a line).")),
        }
    }

    fn line_end(&mut self, crlf: bool) {
        if crlf {
            self.crlf_line = true;
        } else {
            self.multipart.flags.lf_line = true;
        }
        self.multipart.flags.crlf_lf_lines = self.crlf_line && self.multipart.flags.lf_line;
    }

    /// More of a line that is no boundary and no header.
    fn more_of_line(&mut self, piece: &[u8]) -> Result<(), Failure> {
        let reach = self.boundary.len() + 1;
        self.overlap.extend_from_slice(piece.get(..reach).unwrap_or(piece));
        self.no_boundary_in(&self.overlap)?;
        self.no_boundary_in(piece)?;
        self.keep_overlap(piece);
        self.data(piece);
        Ok(())
    }

    /// Keeps the end of the line so far in which a boundary may begin. A piece shorter than that is already appended.
    fn keep_overlap(&mut self, piece: &[u8]) {
        let reach = self.boundary.len() + 1;
        if piece.len() >= reach {
            self.overlap.clear();
            self.overlap.extend_from_slice(piece.get(piece.len() - reach..).unwrap_or_default());
        }
        self.overlap.drain(..self.overlap.len().saturating_sub(reach));
    }

    /// Takes a line that is no boundary.
    fn content(&mut self, line: &[u8], ends: bool) -> Result<(), Failure> {
        if !ends {
            self.overlap.clear();
            self.overlap.extend_from_slice(line);
            self.keep_overlap(line);
        }
        if self.part.as_ref().is_some_and(|part| !part.in_data) {
            self.skeleton.extend_from_slice(line);
            let result = self.header(line);
            self.multipart.flags.invalid_part |= result.is_err();
            return result;
        }
        self.data(line);
        Ok(())
    }

    /// Takes data of a part, or what is in front of the first one.
    fn data(&mut self, bytes: &[u8]) {
        let Some(open) = &mut self.part else {
            self.multipart.flags.data_before = true;
            self.skeleton.extend_from_slice(bytes);
            return;
        };
        open.last = match bytes {
            [.., before, last] => (*before, *last),
            [last] => (open.last.1, *last),
            [] => open.last,
        };
        open.part.size = open.part.size.saturating_add(bytes.len());
        let kept = open.is_read();
        if !open.is_file {
            self.skeleton.extend_from_slice(bytes);
        } else if !open.part.nested.is_empty() {
            open.part.nested.extend_from_slice(bytes);
        } else if !kept {
            let found = open.search.find(bytes, self.limits.header_length);
            let of_fields = found.as_ref().map_or(0, |(_, rest)| rest.len());
            self.file_bytes = self.file_bytes.saturating_add(bytes.len() - of_fields);
            if let Some((mut head, rest)) = found {
                head.extend_from_slice(rest);
                open.part.nested = head;
            }
        }
        if open.doubt == Some(Doubt::Loose) {
            open.loose.take(bytes, &mut self.loose_room);
        }
        if kept || self.keeps_files {
            open.part.value.extend_from_slice(bytes);
        }
    }

    fn header(&mut self, line: &[u8]) -> Result<(), Failure> {
        let malformed = |message| Err(Failure::Malformed(message));
        let long = Limit { what: "bytes of a part header", most: self.limits.header_length };
        if line.len() > self.limits.header_length {
            return Err(Failure::Beyond("Multipart: Part header line too long.", long));
        }
        if !line.ends_with(b"\n") {
            // The body ends here: the missing boundary is what is wrong.
            return Ok(());
        }
        if line.contains(&0) {
            return malformed("Multipart: Nul byte in part headers.");
        }
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        // Others end a line at a carriage return alone. At the start of a line there is a flag for them.
        if trim_start(text).iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
            return malformed("Multipart: Invalid part header (control character).");
        }
        self.line_end(line.ends_with(b"\r\n"));
        let Some(open) = self.part.as_mut() else { return Ok(()) };
        if text.is_empty() {
            return self.end_of_headers();
        }
        let unspaced = trim_start(text);
        if unspaced.len() < text.len() {
            self.multipart.flags.header_folding = true;
            let fold = text.get(..text.len() - unspaced.len()).unwrap_or_default();
            self.multipart.flags.invalid_header_folding |= fold.iter().any(|byte| !matches!(byte, b' ' | b'\t'));
            let (Some(header), Some(name)) = (open.part.headers.last_mut(), open.names.last()) else {
                return malformed("Multipart: Invalid part header (folding error).");
            };
            let parsed = match name.as_slice() {
                b"content-disposition" => open.disposition.as_mut(),
                b"content-transfer-encoding" => open.transfer_encoding.as_mut(),
                b"content-encoding" => open.content_encoding.as_mut(),
                b"content-type" => open.content_type.as_mut(),
                _ => None,
            };
            for target in [Some(header), parsed].into_iter().flatten() {
                target.push(b' ');
                target.extend_from_slice(unspaced);
                if target.len() > self.limits.header_length {
                    return Err(Failure::Beyond("Multipart: Part header too long.", long));
                }
            }
            return Ok(());
        }
        open.header(text, &self.limits)
    }

    fn end_of_headers(&mut self) -> Result<(), Failure> {
        let Some(open) = self.part.as_mut() else { return Ok(()) };
        open.end_of_headers(&mut self.multipart.flags)?;
        if open.is_read() {
            let charset = open.content_type.as_deref().map(Charset::of_media_type);
            self.multipart.foreign_charset |= charset == Some(Charset::Foreign);
        }
        if open.is_file {
            self.files += 1;
            self.multipart.flags.file_limit_exceeded |= self.files > self.limits.files;
        }
        Ok(())
    }

    /// Ends the part before a boundary.
    fn finish_part(&mut self) -> Result<(), Failure> {
        let Some(open) = self.part.take() else { return Ok(()) };
        let malformed = |message| Err(Failure::Malformed(message));
        if !open.in_data {
            self.multipart.flags.invalid_part = true;
            return malformed("Multipart: Invalid part (its headers do not end).");
        }
        if self.multipart.parts.len() == self.limits.parts {
            let limit = Limit { what: "parts", most: self.limits.parts };
            return Err(Failure::Beyond("Multipart: Too many parts.", limit));
        }
        // The line end before a boundary belongs to the boundary. Without it, other parsers read on.
        if open.part.size == 0 {
            self.multipart.flags.invalid_part = true;
            return malformed("Multipart: Invalid part (no line end before the boundary).");
        }
        let crlf = open.part.size > 1 && open.last == (b'\r', b'\n');
        self.line_end(crlf);
        let mut part = open.part;
        part.size -= if crlf { 2 } else { 1 };
        part.also_field = open.doubt == Some(Doubt::Odd);
        if let Some(text) = open.loose.text() {
            (part.also_field, part.value) = (true, text);
        }
        part.value.truncate(part.size);
        part.nested.truncate(part.nested.len().saturating_sub(if crlf { 2 } else { 1 }));
        if let Some(encoding) =
            open.transfer_encoding.filter(|_| !open.is_file || part.declared.is_some() || part.also_field)
        {
            part.decoded = transfer::decoded(&encoding, &part.value);
        }
        self.multipart.parts.push(part);
        Ok(())
    }
}
