//! The request's body: as a whole or piece by piece, within its limits.

use super::arguments::is_cut;
use super::declared::Message;
use super::oversize::{OVERLAP, Oversize, RestOf};
use super::report::{Intervention, InterventionKind};
use super::request::{TOO_MANY_ARGUMENTS, names_foreign_charset};
use super::rest::PartsStart;
use super::transaction::{ArgumentSource, Transaction};
use crate::body::{Charset, multipart};
use crate::program::LimitAction;
use crate::vocabulary::Variable;

/// The limits on the body of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyLimits {
    /// The most bytes of a body, the content of files included.
    pub total: u64,
    /// The most bytes of a body without the content of files in it.
    pub without_files: u64,
    /// A longer body is refused with 413. Otherwise its beginning is inspected, and those windows of the rest that the
    /// prefilter finds suspicious.
    pub reject: bool,
}

impl Default for BodyLimits {
    /// No limits.
    fn default() -> Self {
        Self { total: u64::MAX, without_files: u64::MAX, reject: false }
    }
}

/// The part of a body that has arrived.
#[derive(Default)]
pub(super) struct Incoming {
    begun: bool,
    /// Its length in bytes.
    length: u64,
    /// A body that is parsed at its end.
    plain: Vec<u8>,
    pub(super) multipart: Option<Box<multipart::Reader>>,
    /// The part beyond a limit.
    pub(super) oversize: Option<Box<Oversize>>,
    /// How many bytes of it were added to the budget.
    over: usize,
    /// The last bytes before the limit.
    pub(super) tail: Vec<u8>,
}

/// How many bytes arrive between two checks of the limits.
const PIECE: usize = 16 * 1024;

impl Transaction {
    /// Sets limits of the caller. Of two limits the smaller one holds; one that rejects is enough.
    pub fn limit_request_body(&mut self, limits: BodyLimits) {
        self.body_ceiling = limits;
    }

    /// A message beyond a limit of bodies is inspected up to the limit and not refused, whatever the directives say.
    pub fn fail_open(&mut self) {
        self.fails_open = true;
    }

    /// The limits in force: those of the directives, of rules (`ctl:requestBodyLimit`) and of
    /// [`Transaction::limit_request_body`] together. Known after phase 1.
    pub fn request_body_limits(&self) -> BodyLimits {
        let settings = &self.engine.settings;
        let total = self.request_body_limit.min(self.body_ceiling.total);
        let directive = match settings.request_body_no_files_limit {
            0 => u64::MAX,
            limit => limit,
        };
        BodyLimits {
            total,
            without_files: directive.min(self.body_ceiling.without_files).min(total),
            reject: self.body_ceiling.reject || settings.request_body_limit_action == LimitAction::Reject,
        }
    }

    /// Whether the body is a form with files, whose content counts for one of the limits alone. Known after phase 1.
    pub fn request_body_is_multipart(&mut self) -> bool {
        self.scalar_is(Variable::ReqbodyProcessor, b"MULTIPART")
    }

    /// Takes a piece of the body before [`Transaction::request_body`], which ends it. Returns the intervention for a
    /// body beyond a limit; further pieces need not be passed.
    pub fn request_body_piece(&mut self, bytes: &[u8]) -> Option<Intervention> {
        if !self.runs() || !self.request_body_access || self.intervention.is_some() {
            return None;
        }
        let limits = self.request_body_limits();
        if !std::mem::replace(&mut self.incoming.begun, true) && self.request_body_is_multipart() {
            let files = self.engine.settings.upload_file_limit as usize;
            let read = multipart::Limits { files, ..multipart::Limits::default() };
            let keeps_content = self.engine.uses(Variable::FilesTmpContent);
            let reader = multipart::Reader::new(self.arena.get(self.content_type), read, keeps_content);
            self.incoming.multipart = Some(Box::new(reader));
        }
        for piece in bytes.chunks(PIECE) {
            if self.incoming.oversize.is_some() {
                let bytes = u64::try_from(piece.len()).unwrap_or(u64::MAX);
                self.incoming.length = self.incoming.length.saturating_add(bytes);
                self.incoming.over += piece.len();
                self.scan_rest(piece);
                continue;
            }
            let taken = self.incoming.take(piece, &limits);
            if !limits.reject {
                let rest = taken.as_ref().map_or(0, |(rest, _)| rest.len());
                self.incoming.remember(piece.get(..piece.len() - rest).unwrap_or_default());
            }
            let Some((rest, msg)) = taken else { continue };
            self.set_scalar_bytes(Variable::InboundDataError, *b"1");
            self.note_oversize(&limits);
            if limits.reject
                && let Some(refused) = self.refuse_oversize(413, msg)
            {
                return Some(refused);
            }
            let incoming = std::mem::take(&mut self.incoming);
            let oversize = Oversize::behind(self.rest_of(&incoming), &incoming.tail);
            self.incoming = Incoming { oversize: Some(Box::new(oversize)), ..incoming };
            self.incoming.over += rest.len();
            self.scan_rest(rest);
        }
        None
    }

    /// Takes the body, or the part behind [`Transaction::request_body_piece`], and runs phase 2. Called once, with an
    /// empty body if the request has none.
    ///
    /// `complete` is false if the body continues: parse errors at the cut are not errors of the request, and the rest
    /// is for [`Transaction::request_body_rest`], or is not inspected.
    pub fn request_body(&mut self, body: &[u8], complete: bool) -> Option<Intervention> {
        if !self.runs() {
            return None;
        }
        let mut empty = true;
        if self.request_body_access {
            self.borrow_hot_cache();
            if !body.is_empty()
                && let Some(refused) = self.request_body_piece(body)
            {
                return Some(refused);
            }
            if !complete && self.incoming.oversize.is_none() {
                let limits = self.request_body_limits();
                self.set_scalar_bytes(Variable::InboundDataError, *b"1");
                self.note_oversize(&limits);
                if limits.reject
                    && let Some(refused) = self.refuse_oversize(413, OVER_TOTAL)
                {
                    return Some(refused);
                }
            }
            empty = self.end_of_body(complete);
        }
        self.run_phase_2(empty)
    }

    /// Parses what was taken of the body; whether that is nothing, and without an error.
    fn end_of_body(&mut self, complete: bool) -> bool {
        let incoming = std::mem::take(&mut self.incoming);
        let length = usize::try_from(incoming.length).unwrap_or(usize::MAX);
        let parsed = length.saturating_sub(incoming.over);
        self.arena.budget.bring(parsed);
        self.arena.budget.charge_parsing(parsed);
        let empty = incoming.length == 0;
        self.parse_body(incoming, complete);
        // Applies to the body and to the query, which some applications decode with the same character set.
        if self.charset == Charset::Foreign {
            self.body_error("Body", "rules cannot read the character set that the request names");
            return false;
        }
        empty
    }

    /// `empty` if the body has brought nothing.
    fn run_phase_2(&mut self, empty: bool) -> Option<Intervention> {
        // Without a body the phase summary of phase 1 is still valid.
        self.summary_is_current = empty && self.has_summary;
        self.body_seen = true;
        self.run_phase(2)
    }

    /// Runs phase 2 in place of [`Transaction::request_body`] where the rest of the body will never be there, and nothing of it
    /// reaches the backend. What was taken of it is inspected. The cut is no error of the request, and exceeds no limit.
    pub fn request_body_withheld(&mut self) -> Option<Intervention> {
        if !self.runs() {
            return None;
        }
        let mut empty = true;
        if self.request_body_access {
            self.borrow_hot_cache();
            empty = self.end_of_body(false);
            self.incoming = Incoming::default();
        }
        self.run_phase_2(empty)
    }

    /// The beginning of the body as it was taken, decompressed and without the content of files: at most `most` bytes.
    /// Empty if no body was taken.
    pub fn request_body_start(&self, most: usize) -> &[u8] {
        let body = self.raw_body.map_or(self.incoming.plain.as_slice(), |raw| self.arena.get(raw));
        body.get(..most).unwrap_or(body)
    }

    pub(super) fn refuse_oversize(&mut self, status: u16, msg: &[u8]) -> Option<Intervention> {
        if self.fails_open {
            return None;
        }
        let intervention = Intervention { status, rule_id: 0, kind: InterventionKind::Deny, msg: msg.to_vec() };
        self.intervene(intervention).then(|| self.intervention.clone()).flatten()
    }

    fn parse_body(&mut self, mut incoming: Incoming, complete: bool) {
        self.set_scalar_bytes(Variable::ReqbodyError, *b"0");
        self.set_scalar_bytes(Variable::ReqbodyProcessorError, *b"0");
        if incoming.length == 0 {
            return;
        }
        let (goes_on, complete) = (!complete, complete && incoming.oversize.is_none());
        self.set_scalar_bytes(Variable::RequestBodyLength, incoming.length.to_string().into_bytes());
        let of = (!complete).then(|| self.rest_of(&incoming));
        let without_files;
        if let Some(mut reader) = incoming.multipart.take() {
            without_files = reader.length_without_files();
            // The unread part: the bytes behind malformed input, or the beginning of a part that was cut.
            let open = reader.open_part().filter(|_| of.is_some());
            let unread = open.map(|open| (open.encoding.to_vec(), open.content.concat()));
            let failed = reader.has_failed() && of.is_some();
            let skeleton = reader.take_skeleton();
            if failed {
                self.scan_unread(RestOf::Multipart(PartsStart::default()), &skeleton);
            } else if let Some((encoding, content)) = unread {
                let start = PartsStart { encoding, ..PartsStart::default() };
                self.scan_unread(RestOf::Multipart(start), &content);
            }
            let raw = self.arena.push(skeleton);
            self.raw_body = Some(raw);
            self.set_scalar(Variable::RequestBody, raw);
            self.parts(reader.finish(), complete);
        } else {
            without_files = incoming.plain.len() + usize::from(incoming.oversize.is_some());
            self.parse_plain(&incoming.plain, complete);
        }
        // `SecRequestBodyNoFilesLimit`: the most bytes of a body without files.
        let limit = self.engine.settings.request_body_no_files_limit;
        if limit > 0 && u64::try_from(without_files).unwrap_or(u64::MAX) > limit {
            self.body_error("Body", "there is more than SecRequestBodyNoFilesLimit allows, files aside");
        }
        let mut rest = incoming.oversize.take();
        if let Some(rest) = &mut rest {
            rest.end(&self.engine);
            let windows = rest.take(0);
            self.arena.budget.bring(windows.iter().map(Vec::len).sum());
            windows.iter().for_each(|window| self.add_window(window));
        }
        if goes_on {
            let behind = || Box::new(Oversize::behind(of.unwrap_or(RestOf::Other), &incoming.tail));
            self.incoming.oversize = Some(rest.unwrap_or_else(behind));
        }
    }

    fn parse_plain(&mut self, body: &[u8], complete: bool) {
        let raw = self.arena.push(body);
        self.raw_body = Some(raw);
        let processor = self.scalar(Variable::ReqbodyProcessor);
        // Rules see the text and the attribute values of XML. Names of elements are no payload, and rule sets rely on
        // their absence. A body that is no XML after all is inspected as it is.
        let xml = self.arena.get(processor) == b"XML";
        if !xml || self.force_request_body {
            self.set_scalar(Variable::RequestBody, raw);
        }
        match self.arena.get(processor) {
            b"URLENCODED" => {
                self.form_arguments(body, ArgumentSource::Form);
                if !self.declared_bodies_only {
                    self.parse_document_in_form(body);
                }
            }
            b"JSON" => self.parse_json(body, complete),
            b"XML" => self.parse_xml(body, raw, complete),
            b"" if !self.declared_bodies_only => self.parse_undeclared(body),
            _ => {}
        }
    }

    /// The parts of a multipart body.
    fn parts(&mut self, found: multipart::Multipart, complete: bool) {
        // The strict checks need the end of the body: on a cut body they would report errors that are not there.
        if complete {
            self.multipart_flags(&found);
        }
        if let Some(limit) = found.limit {
            let of_parts = limit.what == "parts";
            self.left_out(if of_parts { "MULTIPART_NAME" } else { "MULTIPART_PART_HEADERS" }, limit.what, limit.most);
        }
        if found.foreign_charset {
            self.charset = Charset::Foreign;
        }
        let keeps_content = self.engine.uses(Variable::FilesTmpContent);
        let (mut total, mut messages) = (0usize, Vec::new());
        for part in found.parts {
            let is_file = part.is_file();
            if self.arena.budget.is_spent() {
                break;
            }
            let name = self.arena.push(&part.name);
            for header in part.headers {
                let header = self.arena.push(header);
                self.part_headers.push(name, header);
            }
            self.part_names.push(name, name);
            // A part with an empty filename is a field for some applications: rules see it as a field.
            if !is_file || (part.also_field && !self.declared_bodies_only) {
                self.field(&part.name, &part.value);
                for decoded in &part.decoded {
                    self.field(&part.name, decoded);
                }
            }
            let mut value = part.value;
            if let Some(kind) = part.declared {
                let decoded = part.decoded.into_iter().map(|content| Message { kind, content, file: is_file });
                let content = if keeps_content && is_file { value.clone() } else { std::mem::take(&mut value) };
                messages.push(Message { kind, content, file: is_file });
                messages.extend(decoded);
            }
            let Some(filename) = part.filename.filter(|_| is_file) else { continue };
            let filename = self.arena.push(filename);
            self.files.push(name, filename);
            self.part_filenames.push(filename, filename);
            // Rules see both names: applications differ in which one they use.
            if let Some(extended) = part.extended_filename {
                let extended = self.arena.push(extended);
                self.files.push(name, extended);
                self.part_filenames.push(extended, extended);
            }
            total += part.size;
            let size = self.arena.number(i64::try_from(part.size).unwrap_or(i64::MAX));
            self.file_sizes.push(name, size);
            if keeps_content {
                let content = self.arena.push(value);
                self.file_contents.push(name, content);
            }
            self.nested_fields(&part.nested);
        }
        self.messages(messages);
        let total = self.arena.number(i64::try_from(total).unwrap_or(i64::MAX));
        self.set_scalar(Variable::FilesCombinedSize, total);
        if let Some(error) = found.error.filter(|_| complete) {
            self.body_error("Multipart", &error);
        }
    }

    pub(super) fn field(&mut self, name: &[u8], value: &[u8]) {
        if self.room() == 0 {
            self.too_many_arguments("ARGS_POST");
            self.body_error("Multipart", TOO_MANY_ARGUMENTS);
            return;
        }
        if names_foreign_charset(name, value) {
            self.charset = Charset::Foreign;
        }
        let value = self.arena.push(value);
        let unseen = is_cut(name).then_some(name);
        self.arguments_to_add().add_value(ArgumentSource::Form, name, unseen, value);
    }

    fn multipart_flags(&mut self, found: &multipart::Multipart) {
        let flags = &found.flags;
        for (variable, set) in [
            (Variable::MultipartBoundaryQuoted, flags.boundary_quoted),
            (Variable::MultipartBoundaryWhitespace, flags.boundary_whitespace),
            (Variable::MultipartDataBefore, flags.data_before),
            (Variable::MultipartDataAfter, flags.data_after),
            (Variable::MultipartHeaderFolding, flags.header_folding),
            (Variable::MultipartLfLine, flags.lf_line),
            (Variable::MultipartCrlfLfLines, flags.crlf_lf_lines),
            (Variable::MultipartMissingSemicolon, flags.missing_semicolon),
            (Variable::MultipartInvalidQuoting, flags.invalid_quoting),
            (Variable::MultipartInvalidPart, flags.invalid_part),
            (Variable::MultipartInvalidHeaderFolding, flags.invalid_header_folding),
            (Variable::MultipartFileLimitExceeded, flags.file_limit_exceeded),
            (Variable::MultipartStrictError, found.strict_error()),
        ] {
            let value = self.arena.number(i64::from(set));
            self.set_scalar(variable, value);
        }
        let unmatched = self.arena.number(i64::from(found.unmatched_boundary()));
        self.set_scalar(Variable::MultipartUnmatchedBoundary, unmatched);
    }
}
const OVER_TOTAL: &[u8] = b"The request body is larger than its limit (SecRequestBodyLimit)";
const OVER_WITHOUT_FILES: &[u8] =
    b"The request body without its files is larger than its limit (SecRequestBodyNoFilesLimit)";

impl Incoming {
    /// Keeps the last bytes.
    fn remember(&mut self, bytes: &[u8]) {
        let bytes = bytes.get(bytes.len().saturating_sub(OVERLAP)..).unwrap_or_default();
        let room = OVERLAP - bytes.len();
        self.tail.drain(..self.tail.len().saturating_sub(room));
        self.tail.extend_from_slice(bytes);
    }

    /// Takes a piece; beyond a limit, returns the excess and the reason for a refusal.
    fn take<'p>(&mut self, piece: &'p [u8], limits: &BodyLimits) -> Option<(&'p [u8], &'static [u8])> {
        let room = |limit: u64, length: u64| usize::try_from(limit.saturating_sub(length)).unwrap_or(usize::MAX);
        let length = self.length;
        self.length = length.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        let Some(reader) = &mut self.multipart else {
            let fits = room(limits.without_files, length);
            let (taken, rest) = piece.split_at_checked(fits).unwrap_or((piece, &[]));
            self.plain.extend_from_slice(taken);
            let why = if limits.without_files < limits.total { OVER_WITHOUT_FILES } else { OVER_TOTAL };
            return (!rest.is_empty()).then_some((rest, why));
        };
        let (taken, rest) = piece.split_at_checked(room(limits.total, length)).unwrap_or((piece, &[]));
        reader.feed(taken);
        let without_files = u64::try_from(reader.length_without_files()).unwrap_or(u64::MAX);
        if !rest.is_empty() {
            Some((rest, OVER_TOTAL))
        } else if without_files > limits.without_files {
            Some((rest, OVER_WITHOUT_FILES))
        } else {
            None
        }
    }
}
