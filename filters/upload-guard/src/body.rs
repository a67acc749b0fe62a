//! The files of a request: in forms, in other multipart bodies, in fields of JSON, and bodies that are files themselves.

use exchange::{Body, Headers, Request};
use files::json::Field;
use files::{File, Findings, Format, Policy, Reason, Work, disposition, identify, inspect, json, mime};
use seclang::body::multipart::{Limits, Part, Reader};

/// How deep multipart bodies may lie in each other.
const MAX_NESTED: u8 = 3;

/// Where the files of a request go.
pub(crate) trait Sink {
    /// A file.
    fn file(&mut self, file: &File<'_>);

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
    pub(crate) sink: S,
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
            b"multipart/form-data" => Self::Form,
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
}

impl Sink for Inspector<'_> {
    fn file(&mut self, file: &File<'_>) {
        inspect(file, self.policy, &mut self.work, &mut self.findings);
    }

    fn problem(&mut self, reason: Reason, detail: impl Into<String>) {
        self.findings.add(reason, detail);
    }
}

impl<'a, S: Sink> Finder<'a, S> {
    pub(crate) fn new(json_fields: &'a [Field], max_files: usize, sink: S) -> Self {
        Self { json_fields, max_files, files: 0, sink }
    }

    /// Finds the files of a body whose codings are undone.
    pub(crate) fn find(&mut self, request: &Request, body: Body<'_>) {
        let kind = request.headers.get("content-type").unwrap_or_default();
        match Carrier::of(kind) {
            Carrier::Form => self.form(kind, body),
            Carrier::Multipart => self.multipart(kind, body, MAX_NESTED),
            Carrier::Json => {
                self.json(body);
                self.disguised(request, kind, body);
            }
            Carrier::Data => self.disguised(request, kind, body),
            Carrier::Raw => self.raw(request, kind, body),
        }
    }

    /// Takes one file, unless there were enough.
    fn file(&mut self, file: &File<'_>) {
        self.files += 1;
        if self.files > self.max_files {
            let most = self.max_files;
            self.sink.problem(Reason::TooManyFiles, format!("the request has more than {most} files"));
            return;
        }
        self.sink.file(file);
    }

    fn form(&mut self, kind: &[u8], body: Body<'_>) {
        let limits = Limits { files: self.max_files, ..Limits::default() };
        let mut reader = Reader::new(kind, limits, true);
        reader.feed(body.bytes);
        let open = if body.complete { None } else { reader.take_open_part() };
        let form = reader.finish();
        for part in &form.parts {
            self.part(part, true);
        }
        if let Some(part) = &open {
            self.part(part, false);
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
    fn part(&mut self, part: &Part, complete: bool) {
        let header = |name: &str| part.headers.iter().find_map(|line| header_value(line, name));
        let kind = header("content-type").unwrap_or_default();
        let mut names = disposition::names(header("content-disposition").unwrap_or_default(), "filename");
        names.extend(part.filename.iter().chain(&part.extended_filename).filter(|name| !name.is_empty()).cloned());
        names.extend(disposition::names(kind, "name"));
        if mime::is_multipart(kind) {
            self.multipart(kind, Body { bytes: &part.value, complete }, MAX_NESTED - 1);
            return;
        }
        let typed = !kind.is_empty() && Carrier::of(kind) == Carrier::Raw;
        if names.is_empty() && !typed {
            return;
        }
        let content = part.value.as_slice();
        let media_type = Some(kind).filter(|kind| !kind.is_empty());
        self.file(&File { names: &names, media_type, content, complete, length: None });
        let encoding = header("content-transfer-encoding").unwrap_or_default().trim_ascii();
        // Some applications undo it, others store what was sent.
        if let Some(decoded) = mime::decoded(encoding, content) {
            let file = File { names: &names, media_type, content: &decoded, complete, length: None };
            self.sink.file(&file);
        } else if encoding.eq_ignore_ascii_case(b"base64") && complete {
            self.sink.problem(Reason::UndecodableBody, "a part of the form is not the base64 that it says it is");
        }
    }

    fn multipart(&mut self, kind: &[u8], body: Body<'_>, depth: u8) {
        if depth == 0 {
            self.sink.problem(Reason::MalformedMultipart, "multipart bodies lie in each other too deep");
            return;
        }
        let parts = match mime::parts(kind, body.bytes, body.complete) {
            Ok(parts) => parts,
            Err(why) => {
                self.sink.problem(Reason::MalformedMultipart, why);
                return;
            }
        };
        for part in parts {
            let kind = part.content_type.as_slice();
            if mime::is_multipart(kind) {
                let body = Body { bytes: &part.content, complete: part.complete };
                self.multipart(kind, body, depth - 1);
            } else if !part.names.is_empty() || !kind.is_empty() && Carrier::of(kind) == Carrier::Raw {
                let media_type = Some(kind).filter(|kind| !kind.is_empty());
                let (names, content) = (part.names.as_slice(), part.content.as_slice());
                self.file(&File { names, media_type, content, complete: part.complete, length: None });
            }
        }
    }

    /// Fields of JSON that are declared to hold files.
    fn json(&mut self, body: Body<'_>) {
        if self.json_fields.is_empty() {
            return;
        }
        for found in json::find(body.bytes, self.json_fields, self.max_files.saturating_add(1)) {
            let (media_type, text) = files::data_url(&found.text);
            if text.is_empty() {
                continue;
            }
            // Of a text that is cut off, the last group may be incomplete.
            let whole = text.len() - if found.complete { 0 } else { text.len() % 4 };
            let Some(content) = text.get(..whole).and_then(files::base64) else {
                self.sink.problem(Reason::UndecodableBody, "a field that holds a file is not base64");
                continue;
            };
            let (names, complete) = (found.names.as_slice(), found.complete);
            self.file(&File { names, media_type, content: &content, complete, length: None });
        }
    }

    /// A body that says it is data: it is a file if its content is one.
    fn disguised(&mut self, request: &Request, kind: &[u8], body: Body<'_>) {
        let start = body.bytes.trim_ascii_start();
        // Texts of applications may hold tags of servers; files of servers begin with one.
        let format = identify(body.bytes);
        let xml = start.starts_with(b"<?xml");
        let is_file = match format {
            Format::Text | Format::Json | Format::Xml | Format::Unknown | Format::Empty => false,
            format if format.is_text() => match start {
                [b'#', b'!', ..] => true,
                [b'<', ..] => !xml || matches!(format, Format::Svg | Format::ActiveSvg),
                _ => false,
            },
            _ => true,
        };
        if is_file {
            self.raw(request, kind, body);
        }
    }

    fn raw(&mut self, request: &Request, kind: &[u8], body: Body<'_>) {
        let headers = &request.headers;
        let mut names: Vec<Vec<u8>> = Vec::new();
        for value in headers.all("content-disposition") {
            names.extend(disposition::names(value, "filename"));
        }
        // RFC 5023, section 9.7, and what applications send.
        for header in ["slug", "x-file-name", "x-filename"] {
            names.extend(headers.all(header).flat_map(disposition::path_names));
        }
        if request.method == b"PUT" {
            let path = disposition::path_names(request.path_only());
            names.extend(path.into_iter().filter(|name| name.contains(&b'.')));
        }
        let media_type = Some(kind).filter(|kind| !kind.is_empty());
        let length = if headers.get("content-encoding").is_none() { content_length(headers) } else { None };
        let file = File { names: &names, media_type, content: body.bytes, complete: body.complete, length };
        self.file(&file);
    }
}

/// What the request says that its length is.
fn content_length(headers: &Headers) -> Option<u64> {
    std::str::from_utf8(headers.get("content-length")?).ok()?.parse().ok()
}

/// The value of a header line, if it is of this name.
fn header_value<'a>(line: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let (head, value) = line.split_at_checked(name.len())?;
    let value = value.trim_ascii_start().strip_prefix(b":")?;
    head.eq_ignore_ascii_case(name.as_bytes()).then(|| value.trim_ascii())
}
