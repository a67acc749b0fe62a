//! The files of a request: in forms, in other multipart bodies, in fields of JSON, and bodies that are files themselves.

use exchange::{Body, Headers, Request, codings};
use files::json::Field;
use files::{
    Family, File, Findings, Format, Policy, Reason, Work, disposition, identify_plain, inspect, inspect_coded, json,
    mime,
};
use seclang::body::multipart::{Limits, Part as FormPart, Reader};

/// Denied extensions that the last segments of ordinary paths have, such as those of pages, hosts and addresses
/// (`/pages/index.html`, `/users/a@example.com`): of a body that says it is data, they do not make a file.
const PATH_WORDS: [&str; 11] = ["com", "htm", "html", "js", "mjs", "pl", "py", "sh", "svg", "svgz", "xhtml"];
/// How deep multipart bodies may lie in each other.
const MAX_NESTED: u8 = 3;

/// Where the files of a request go.
pub(crate) trait Sink {
    /// A file.
    fn file(&mut self, file: &File<'_>);

    /// The content of a part as it was sent, where its transfer encoding was undone.
    fn sent(&mut self, content: &[u8], complete: bool);

    /// A body as it was sent, where its content codings were undone: applications that do not undo them store it.
    fn coded(&mut self, body: &[u8], complete: bool);

    /// The names that headers give a body which is no file by its type.
    fn names(&mut self, _names: &[Vec<u8>]) {}

    /// The name that the path gives such a body; `plain` if applications have no other use for a body of this type than to store it.
    fn path(&mut self, _names: &[Vec<u8>], _content: &[u8], _plain: bool) {}

    /// Something that keeps a file from being found.
    fn problem(&mut self, reason: Reason, detail: impl Into<String>);
}

/// The inspection of files, a [`Sink`].
pub(crate) struct Inspector<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) findings: Findings,
    work: Work,
}

/// Finds the files of a request.
pub(crate) struct Finder<'a, S> {
    json_fields: &'a [Field],
    max_files: usize,
    /// How many files there were.
    pub(crate) files: usize,
    /// The body was cut off, and files may follow.
    pub(crate) may_go_on: bool,
    pub(crate) sink: S,
}

/// The content of a part.
struct Content<'c> {
    sent: &'c [u8],
    /// With its transfer encoding undone; `None` if it has none that can be.
    decoded: Option<&'c [u8]>,
    /// Its transfer encoding is not known, or it is not what that says.
    undecodable: bool,
    complete: bool,
}

/// A part that is no field of a form for certain.
struct Part<'p> {
    names: &'p [Vec<u8>],
    kind: &'p [u8],
    /// Its content coding (`Content-Encoding`).
    coding: &'p [u8],
    /// It is a file, if nothing else says so.
    file: bool,
}

/// What a media type says of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carrier {
    Form,
    Multipart,
    Json,
    /// Data that an application reads, such as fields of a form, XML, messages of gRPC: no file, unless its content is one.
    Data,
    /// A file.
    Raw,
}

impl Carrier {
    fn of(media: &[u8]) -> Self {
        let media = media.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
        match media.as_slice() {
            // Some applications end the type at a comma or a blank.
            media if media.starts_with(b"multipart/form-data") => Self::Form,
            media if mime::is_multipart(media) => Self::Multipart,
            b"application/json" => Self::Json,
            media if media.ends_with(b"+json") || media.ends_with(b"/json") || media.ends_with(b"ndjson") => Self::Json,
            b"application/x-www-form-urlencoded"
            | b"application/xml"
            | b"text/xml"
            | b"text/plain"
            | b"application/graphql" => Self::Data,
            b"image/svg+xml" | b"application/xhtml+xml" => Self::Raw,
            media if media.ends_with(b"+xml") => Self::Data,
            media if media.starts_with(b"application/grpc") || media.ends_with(b"protobuf") => Self::Data,
            _ => Self::Raw,
        }
    }
}

impl<'a> Inspector<'a> {
    pub(crate) fn new(policy: &'a Policy) -> Self {
        Self { policy, findings: Findings::default(), work: Work::default() }
    }

    /// What is wrong with names alone.
    fn of_names(&mut self, names: &[Vec<u8>], policy: &Policy) -> Findings {
        let mut found = Findings::default();
        let file = File { names, media_type: None, content: b"", complete: true, length: None };
        inspect(&file, policy, &mut self.work, &mut found);
        found
    }

    fn take(&mut self, found: &Findings, counts: impl Fn(Reason) -> bool) {
        for finding in found.list().iter().filter(|finding| counts(finding.reason)) {
            self.findings.add(finding.reason, finding.detail.clone());
        }
    }
}

impl Sink for Inspector<'_> {
    fn file(&mut self, file: &File<'_>) {
        inspect(file, self.policy, &mut self.work, &mut self.findings);
    }

    fn sent(&mut self, content: &[u8], complete: bool) {
        let mut found = Findings::default();
        let file = File { names: &[], media_type: None, content, complete, length: None };
        // Text is what an encoding makes of any file.
        if inspect(&file, self.policy, &mut self.work, &mut found) != Format::Text {
            self.take(&found, |reason| !matches!(reason, Reason::ExtensionNotAllowed | Reason::TypeNotAllowed));
        }
    }

    fn coded(&mut self, body: &[u8], _complete: bool) {
        inspect_coded(body, self.policy, &mut self.work, &mut self.findings);
    }

    fn names(&mut self, names: &[Vec<u8>]) {
        let found = self.of_names(names, self.policy);
        self.take(&found, |reason| !matches!(reason, Reason::DeniedType | Reason::TypeNotAllowed));
    }

    fn path(&mut self, names: &[Vec<u8>], content: &[u8], plain: bool) {
        let mut policy = self.policy.clone();
        policy.denied_extensions.retain(|extension| !PATH_WORDS.contains(&extension.as_str()));
        let found = self.of_names(names, &policy);
        if !found.has(Reason::DeniedExtension) {
            return;
        }
        let format = identify_plain(content);
        let stored = plain && !matches!(format, Format::Json | Format::Empty);
        if stored || matches!(format.family(), Family::Script | Family::Executable) {
            self.take(&found, |reason| reason == Reason::DeniedExtension);
        }
    }

    fn problem(&mut self, reason: Reason, detail: impl Into<String>) {
        self.findings.add(reason, detail);
    }
}

impl<'a, S: Sink> Finder<'a, S> {
    pub(crate) fn new(json_fields: &'a [Field], max_files: usize, sink: S) -> Self {
        Self { json_fields, max_files, files: 0, may_go_on: false, sink }
    }

    /// Finds the files of a body whose codings are undone.
    pub(crate) fn find(&mut self, request: &Request, body: Body<'_>) {
        let kind = request.headers.get("content-type").unwrap_or_default();
        let carrier = carrier_of_body(kind);
        let is_document = carrier == Carrier::Json || json::begins(body.bytes);
        let has_parts = matches!(carrier, Carrier::Form | Carrier::Multipart);
        self.may_go_on = !body.complete && (has_parts || is_document && !self.json_fields.is_empty());
        match carrier {
            Carrier::Form => self.form(kind, body, MAX_NESTED),
            Carrier::Multipart => self.multipart(kind, body, MAX_NESTED),
            // Some applications read JSON whatever the type.
            Carrier::Json => self.json(body),
            Carrier::Data | Carrier::Raw if json::begins(body.bytes) => self.json(body),
            Carrier::Data | Carrier::Raw => {}
        }
        if !has_parts {
            if !self.json_fields.is_empty() && json::begins_wide(body.bytes) {
                self.sink.problem(Reason::UndecodableBody, "the body is JSON in UTF-16 or UTF-32, which is not read");
            }
            if carrier == Carrier::Raw || is_disguised(body.bytes) {
                self.raw(request, kind, body);
                return;
            }
        }
        self.sink.names(&header_names(&request.headers));
        let plain = carrier == Carrier::Data && !is_urlencoded(kind);
        let path = put_names(request);
        if !path.is_empty() {
            self.sink.path(&path, body.bytes, plain);
        }
    }

    /// Finds what a coded body is for applications that do not undo its codings: a form with other parts, a document, a file.
    pub(crate) fn coded(&mut self, request: &Request, coded: Body<'_>, decoded: &[u8]) {
        let kind = request.headers.get("content-type").unwrap_or_default();
        if hides_parts(kind, coded, decoded) {
            let detail = "the coded bytes of the body hold parts that the decoded body does not have";
            self.sink.problem(Reason::UndecodableBody, detail);
        }
        // A stream of Brotli may begin with a bracket, and in a stream may be the JSON of the decoded body as it is.
        if json::begins(coded.bytes) && !json::find(coded.bytes, self.json_fields, 1).is_empty() {
            self.sink.problem(Reason::UndecodableBody, "the coded bytes of the body are JSON as well");
        }
        if carrier_of_body(kind) == Carrier::Raw || is_disguised(coded.bytes) {
            self.sink.coded(coded.bytes, coded.complete);
        }
    }

    /// Takes one file, unless there were enough; whether it was taken.
    fn file(&mut self, file: &File<'_>) -> bool {
        self.files += 1;
        if self.files > self.max_files {
            let most = self.max_files;
            self.sink.problem(Reason::TooManyFiles, format!("the request has more than {most} files"));
            return false;
        }
        self.sink.file(file);
        true
    }

    /// A form, also one that is the part of another body. Parts may lie so deep in each other.
    fn form(&mut self, kind: &[u8], body: Body<'_>, depth: u8) {
        let limits = Limits { files: self.max_files, ..Limits::default() };
        let mut reader = Reader::new(kind, limits, true);
        reader.feed(body.bytes);
        let open = if body.complete { None } else { reader.take_open_part() };
        let form = reader.finish();
        for part in &form.parts {
            self.part(part, true, depth);
        }
        if let Some(part) = &open {
            self.part(part, false, depth);
        }
        if let Some(why) = form.error.filter(|_| form.malformed || body.complete) {
            let why = why.trim_start_matches("Multipart: ").trim_end_matches('.');
            self.sink.problem(Reason::MalformedMultipart, format!("the form cannot be read: {why}"));
        }
        if form.flags.file_limit_exceeded {
            let most = self.max_files;
            self.sink.problem(Reason::TooManyFiles, format!("the request has more than {most} files"));
        }
    }

    /// A part of a form, if it is a file: by a name, or by a media type that fields do not have.
    fn part(&mut self, part: &FormPart, complete: bool, depth: u8) {
        let header = |name: &str| part.headers.iter().find_map(|line| header_value(line, name));
        let kind = header("content-type").unwrap_or_default();
        let disposition = header("content-disposition").unwrap_or_default();
        let mut names = disposition::names(disposition, "filename");
        names.extend(part.filename.iter().chain(&part.extended_filename).filter(|name| !name.is_empty()).cloned());
        names.extend(disposition::names(kind, "name"));
        let sent = part.value.as_slice();
        let encoding = header("content-transfer-encoding").unwrap_or_default().trim_ascii();
        let decoded = mime::decoded(encoding, sent, complete);
        let undecodable = decoded.is_none() && !mime::is_plain(encoding);
        let content = Content { sent, decoded: decoded.as_deref(), undecodable, complete };
        let coding = header("content-encoding").unwrap_or_default();
        self.carried(&Part { names: &names, kind, coding, file: mime::is_attachment(disposition) }, &content, depth);
    }

    /// A part of any multipart body: a file, more parts, or both, as an application that does not read multipart types in parts stores it.
    fn carried(&mut self, part: &Part<'_>, content: &Content<'_>, depth: u8) {
        let &Content { sent, decoded, undecodable, complete } = content;
        let &Part { names, kind, coding, file } = part;
        let carrier = Carrier::of(kind);
        let is_multipart = mime::is_multipart(kind);
        if file || !names.is_empty() || !kind.is_empty() && carrier == Carrier::Raw {
            let media_type = Some(kind).filter(|kind| !kind.is_empty());
            let file = File { names, media_type, content: decoded.unwrap_or(sent), complete, length: None };
            // Some applications undo the encoding, others store what was sent.
            if self.file(&file) && decoded.is_some() {
                self.sink.sent(sent, complete);
            }
            if undecodable {
                self.sink.problem(Reason::UndecodableBody, "the transfer encoding of a part cannot be undone");
            }
            // Few applications look at the coding of a part, and those store what it stands for.
            if !codings::is_identity(coding) {
                self.sink.problem(Reason::UndecodableBody, "a part has a content coding, which is not undone");
            }
        }
        if is_loosely_multipart(kind) {
            self.sink
                .problem(Reason::MalformedMultipart, "some applications read the type of a part as a multipart one");
        } else if is_multipart && (decoded.is_some() || undecodable) {
            let detail = "a multipart body within another has a transfer encoding (RFC 2045, section 6.4)";
            self.sink.problem(Reason::MalformedMultipart, detail);
        } else if is_multipart {
            let body = Body { bytes: sent, complete };
            match depth.checked_sub(1).filter(|depth| *depth > 0) {
                Some(depth) if carrier == Carrier::Form => self.form(kind, body, depth),
                Some(depth) => self.multipart(kind, body, depth),
                None => self.sink.problem(Reason::MalformedMultipart, "multipart bodies lie in each other too deep"),
            }
        }
    }

    fn multipart(&mut self, kind: &[u8], body: Body<'_>, depth: u8) {
        let parts = match mime::parts(kind, body.bytes, body.complete) {
            Ok(parts) => parts,
            Err(why) => {
                self.sink.problem(Reason::MalformedMultipart, why);
                return;
            }
        };
        for part in &parts {
            let sent = part.raw.as_deref().unwrap_or(&part.content);
            let decoded = part.raw.is_some().then_some(part.content.as_slice());
            let content = Content { sent, decoded, undecodable: part.undecodable, complete: part.complete };
            // A part that is no form's is data or a file, which its type and its name may not say.
            let is_multipart = mime::is_multipart(&part.content_type);
            let file = part.attachment || !is_multipart && is_disguised(decoded.unwrap_or(sent));
            let (names, kind, coding) = (part.names.as_slice(), part.content_type.as_slice(), part.coding.as_slice());
            self.carried(&Part { names, kind, coding, file }, &content, depth);
        }
    }

    /// Fields of JSON that are declared to hold files.
    fn json(&mut self, body: Body<'_>) {
        if self.json_fields.is_empty() {
            return;
        }
        let list = json::find(body.bytes, self.json_fields, self.max_files.saturating_add(1));
        // Those behind the one too many are not read.
        if list.len() > self.max_files {
            let most = self.max_files;
            self.sink.problem(Reason::TooManyFiles, format!("the request has more than {most} files"));
        }
        for found in list {
            let (media_type, text) = files::data_url(&found.text);
            // Of a text that is cut off, the last group may be incomplete.
            let whole = text.len() - if found.complete { 0 } else { text.len() % 4 };
            let Some(content) = text.get(..whole).and_then(json::content) else {
                self.sink.problem(Reason::UndecodableBody, "a field that holds a file is not base64");
                continue;
            };
            let (names, complete) = (found.names.as_slice(), found.complete);
            self.file(&File { names, media_type, content: &content, complete, length: None });
        }
    }

    fn raw(&mut self, request: &Request, kind: &[u8], body: Body<'_>) {
        let headers = &request.headers;
        let mut names = header_names(headers);
        // RFC 5023, section 9.7.
        names.extend(headers.all("slug").flat_map(disposition::path_names));
        names.extend(put_names(request));
        let media_type = Some(kind).filter(|kind| !kind.is_empty());
        // What is coded has another length.
        let length = content_length(headers).filter(|_| codings::is_identity(&codings::list(headers)));
        let file = File { names: &names, media_type, content: body.bytes, complete: body.complete, length };
        self.file(&file);
    }
}

/// What the media type of a body says of it.
fn carrier_of_body(kind: &[u8]) -> Carrier {
    if is_loosely_multipart(kind) { Carrier::Form } else { Carrier::of(kind) }
}

/// Whether a body that says it is data is a file by its content.
fn is_disguised(body: &[u8]) -> bool {
    let start = body.trim_ascii_start();
    // Texts of applications may hold tags of servers; files of servers begin with one.
    match identify_plain(body) {
        Format::Text | Format::Json | Format::Xml | Format::Unknown | Format::Empty => false,
        // Compound files with macros are no text.
        format if format.is_text() && !start.starts_with(b"\xd0\xcf\x11\xe0") => match start {
            [b'#', b'!', ..] => true,
            [b'<', ..] => !start.starts_with(b"<?xml") || matches!(format, Format::Svg | Format::ActiveSvg),
            _ => false,
        },
        _ => true,
    }
}

/// Whether a type that is no multipart one may be taken for one: some applications search the header for the word.
fn is_loosely_multipart(kind: &[u8]) -> bool {
    let lower = kind.to_ascii_lowercase();
    let has = |word: &[u8]| lower.windows(word.len()).any(|text| text == word);
    !mime::is_multipart(kind) && has(b"multipart") && has(b"boundary")
}

fn is_urlencoded(kind: &[u8]) -> bool {
    let media = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    media.eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
}

/// The names that headers give a body.
fn header_names(headers: &Headers) -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = Vec::new();
    for value in headers.all("content-disposition") {
        names.extend(disposition::names(value, "filename"));
    }
    // What applications send.
    for header in ["x-file-name", "x-filename"] {
        names.extend(headers.all(header).flat_map(disposition::whole_names));
    }
    names
}

/// The name that the path of a `PUT` gives a body.
fn put_names(request: &Request) -> Vec<Vec<u8>> {
    if request.method != b"PUT" {
        return Vec::new();
    }
    let path = disposition::path_names(request.path_only());
    path.into_iter().filter(|name| name.contains(&b'.')).collect()
}

/// What the request says that its length is.
fn content_length(headers: &Headers) -> Option<u64> {
    std::str::from_utf8(headers.get("content-length")?).ok()?.parse().ok()
}

/// The boundary of a multipart type; empty for another type, and where the body is refused for it.
fn boundary(kind: &[u8]) -> Vec<u8> {
    match Carrier::of(kind) {
        Carrier::Form => Reader::new(kind, Limits::default(), false).boundary().to_vec(),
        Carrier::Multipart => mime::boundary(kind).unwrap_or_default().to_vec(),
        _ => Vec::new(),
    }
}

/// Whether the bytes of a coded body hold parts of a form that the decoded body does not have.
fn hides_parts(kind: &[u8], coded: Body<'_>, decoded: &[u8]) -> bool {
    let boundary = boundary(kind);
    !boundary.is_empty() && mime::hides_parts(&boundary, coded.bytes, coded.complete, decoded)
}

/// The value of a header line, if it is of this name.
fn header_value<'a>(line: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let (head, value) = line.split_at_checked(name.len())?;
    let value = value.trim_ascii_start().strip_prefix(b":")?;
    head.eq_ignore_ascii_case(name.as_bytes()).then(|| value.trim_ascii())
}
