//! The check of requests and responses.

use std::borrow::Cow;

use crate::compiled::Contract;
use crate::json::Document;
use crate::media;
use crate::param::{Place, Style, TWICE, Written, check_written};
use crate::query::{self, Pair};
use crate::record::{MediaRecord, OperationRecord, ParameterRecord};
use crate::route::Matched;
use crate::schema::{Checked, Side, check, check_request};

/// The most mismatches of one message that are listed.
pub(crate) const MAX_MISMATCHES: usize = 16;

/// How a message differs from the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mismatch {
    /// No operation has the path.
    UnknownPath,
    /// The path has no operation of the method.
    MethodNotAllowed,
    /// A required parameter is absent.
    MissingParameter,
    /// A parameter does not match its schema.
    InvalidParameter,
    /// A query parameter is not declared.
    UnknownParameter,
    /// A required body is absent.
    MissingBody,
    /// The media type is not declared.
    UnsupportedMediaType,
    /// The body does not match its schema.
    InvalidBody,
    /// The body is too long to be checked.
    BodyTooLarge,
    /// The status of a response is not declared.
    UndeclaredStatus,
    /// The media type of a response is not declared for its status.
    UndeclaredMediaType,
    /// The body of a response does not match its schema.
    InvalidResponse,
}

impl Mismatch {
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::UnknownPath => "unknown_path",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::MissingParameter => "missing_parameter",
            Self::InvalidParameter => "invalid_parameter",
            Self::UnknownParameter => "unknown_parameter",
            Self::MissingBody => "missing_body",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::InvalidBody => "invalid_body",
            Self::BodyTooLarge => "body_too_large",
            Self::UndeclaredStatus => "undeclared_status",
            Self::UndeclaredMediaType => "undeclared_media_type",
            Self::InvalidResponse => "invalid_response",
        }
    }

    /// The status of the answer to a request that is refused for it.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::UnknownPath => 404,
            Self::MethodNotAllowed => 405,
            Self::UnsupportedMediaType => 415,
            Self::BodyTooLarge => 413,
            _ => 400,
        }
    }
}

/// One mismatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What it is.
    pub kind: Mismatch,
    /// Where: `path`, `query:limit`, `body:/items/0`.
    pub place: String,
    /// What is expected there. It has no value of the message.
    pub detail: String,
}

impl Violation {
    /// A mismatch at a place.
    #[must_use]
    pub fn new(kind: Mismatch, place: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind, place: place.into(), detail: detail.into() }
    }
}

/// What the body of a message needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyCheck {
    /// No check.
    None,
    /// It is checked against a schema.
    Json(u32),
    /// It is required, so that it must not be empty; and checked against a schema, if there is one.
    Required(Option<u32>),
    /// Something is wrong without a look at it.
    Wrong(Violation),
}

/// The query and the headers of a request.
pub struct Head<'a> {
    /// Without the question mark.
    pub query: &'a [u8],
    /// The value of a header by its name in lower case; several are joined by commas.
    pub header: &'a dyn Fn(&str) -> Option<Cow<'a, [u8]>>,
    /// Query parameters that are not declared are mismatches.
    pub reject_unknown: bool,
}

impl Contract {
    /// The path and the method of an operation, as the document has them.
    #[must_use]
    pub fn label(&self, operation: u32) -> String {
        match self.operation(operation) {
            Some(operation) => format!("{} {}", self.shown(operation.method), self.shown(operation.path)),
            None => String::new(),
        }
    }

    /// Checks the parameters of a request.
    #[must_use]
    pub fn check_parameters(&self, matched: &Matched<'_>, head: &Head<'_>) -> Vec<Violation> {
        let Some(operation) = self.operation(matched.operation) else { return Vec::new() };
        let pairs = query::pairs(head.query);
        let parted = query::parted(head.query);
        let mut found = Vec::new();
        for record in &operation.parameters {
            if found.len() >= MAX_MISMATCHES {
                return found;
            }
            let (Some(place), Some(style)) = (Place::numbered(record.place), Style::numbered(record.style)) else {
                continue;
            };
            let name = self.text(record.name);
            let header;
            let written = match place {
                Place::Path => {
                    let Some(value) = path_value(operation, record, matched) else { continue };
                    Written::of_text(record, style, name, value)
                }
                Place::Query => self.of_query(operation, record, style, &pairs),
                Place::Header => {
                    header = std::str::from_utf8(name).ok().and_then(|name| (head.header)(name));
                    match &header {
                        Some(value) => Written::of_text(record, style, name, value),
                        None => Written::default(),
                    }
                }
                Place::Cookie => continue,
            };
            let at = || format!("{}:{}", place.name(), String::from_utf8_lossy(name));
            if place == Place::Query
                && let Some(wrong) = self.of_parted(operation, record, style, &parted)
            {
                found.push(Violation::new(Mismatch::InvalidParameter, at(), wrong));
                continue;
            }
            if written.is_absent() {
                if record.required {
                    found.push(Violation::new(Mismatch::MissingParameter, at(), "a required parameter is absent"));
                }
                continue;
            }
            if let Err(detail) = check_written(self, record, style, &written) {
                found.push(Violation::new(Mismatch::InvalidParameter, at(), detail));
            }
        }
        self.other_names(operation, (&pairs, &parted.behind), head.reject_unknown, &mut found);
        found
    }

    /// What is written of a query parameter.
    fn of_query<'p>(
        &self,
        operation: &OperationRecord,
        record: &ParameterRecord,
        style: Style,
        pairs: &'p [Pair<'p>],
    ) -> Written<'p> {
        let mut written = Written::of_query(self, record, style, self.text(record.name), pairs);
        let before = written.items.len();
        written.items.extend(self.indexed(operation, record, style, pairs));
        written.indexed = written.items.len() > before;
        written
    }

    /// What is wrong with a query parameter that is behind a `;`, for backends that part a query there.
    fn of_parted(
        &self,
        operation: &OperationRecord,
        record: &ParameterRecord,
        style: Style,
        parted: &query::Parted<'_>,
    ) -> Option<String> {
        if parted.behind.is_empty() || self.of_query(operation, record, style, &parted.behind).is_absent() {
            return None;
        }
        check_written(self, record, style, &self.of_query(operation, record, style, &parted.all)).err()
    }

    /// Whether an operation has to have a body.
    #[must_use]
    pub fn requires_body(&self, operation: u32) -> bool {
        let body = self.operation(operation).and_then(|operation| operation.body.as_ref());
        body.is_some_and(|body| body.required)
    }

    /// Whether an operation has a body.
    #[must_use]
    pub fn has_body(&self, operation: u32) -> bool {
        self.operation(operation).is_some_and(|operation| operation.body.is_some())
    }

    /// Whether an operation says what its body is.
    #[must_use]
    pub fn declares_body(&self, operation: u32) -> bool {
        let body = self.operation(operation).and_then(|operation| operation.body.as_ref());
        body.is_some_and(|body| !body.media.is_empty())
    }

    /// Whether an operation says that its body may be a form, not only a range that has forms as well (`*/*`).
    #[must_use]
    pub fn declares_form(&self, operation: u32) -> bool {
        let body = self.operation(operation).and_then(|operation| operation.body.as_ref());
        body.is_some_and(|body| body.media.iter().any(|media| self.text(media.range) == media::FORM))
    }

    /// What the body of a request needs. `content_type` is its header.
    #[must_use]
    pub fn request_body(&self, operation: u32, content_type: Option<&[u8]>, has_body: bool) -> BodyCheck {
        let body = self.operation(operation).and_then(|operation| operation.body.as_ref());
        let required = body.is_some_and(|body| body.required);
        if !has_body {
            return if required { BodyCheck::Wrong(missing_body()) } else { BodyCheck::None };
        }
        let text = content_type.unwrap_or_default();
        let Some(body) = body.filter(|body| !body.media.is_empty()) else {
            return match required {
                // Backends read fields of it all the same, such as the one that names a method.
                _ if !media::is_readable_form(text) => BodyCheck::Wrong(foreign_form()),
                true => BodyCheck::Required(None),
                false => BodyCheck::None,
            };
        };
        let has_schema = body.media.iter().any(|media| media.schema.is_some());
        match self.media(content_type, &body.media) {
            Some(_) if !media::is_one_type(text) || (has_schema && media::hides_json(text)) => {
                let detail =
                    "the content type has another type in it, so that backends read the body in different ways";
                BodyCheck::Wrong(Violation::new(Mismatch::UnsupportedMediaType, "header:content-type", detail))
            }
            Some(Some(_)) if !media::is_readable(text) => {
                let detail = "the charset is none that JSON is read in, so that the body cannot be checked";
                BodyCheck::Wrong(Violation::new(Mismatch::UnsupportedMediaType, "header:content-type", detail))
            }
            Some(_) if !media::is_readable_form(text) => BodyCheck::Wrong(foreign_form()),
            Some(schema) if body.required => BodyCheck::Required(schema),
            Some(Some(schema)) => BodyCheck::Json(schema),
            Some(None) => BodyCheck::None,
            None => {
                let declared: Vec<String> = body.media.iter().map(|media| self.shown(media.range)).collect();
                let detail = format!("expected {}", declared.join(", "));
                BodyCheck::Wrong(Violation::new(Mismatch::UnsupportedMediaType, "header:content-type", detail))
            }
        }
    }

    /// The schema, if any, of a media type that is declared.
    fn media(&self, content_type: Option<&[u8]>, media: &[MediaRecord]) -> Option<Option<u32>> {
        let essence = media::essence(content_type.unwrap_or_default());
        let ranges: Vec<&[u8]> = media.iter().map(|entry| self.text(entry.range)).collect();
        let entry = media::find(&essence, media, &ranges)?;
        Some(entry.schema.filter(|_| media::is_json(&essence)))
    }

    /// Checks a body.
    #[must_use]
    pub fn check_body(&self, schema: u32, body: &[u8], response: bool) -> BodyResult {
        let (side, kind) =
            if response { (Side::Response, Mismatch::InvalidResponse) } else { (Side::Request, Mismatch::InvalidBody) };
        let one = |detail: String| BodyResult::Invalid(vec![Violation::new(kind, "body", detail)]);
        let document = match Document::read_with(Cow::Borrowed(body), self.take_items()) {
            Ok(document) => document,
            Err(wrong) => return one(format!("the body is no JSON: byte {}: {}", wrong.at, wrong.what)),
        };
        // Which of the two a backend reads is not known, and `not`, `if` and a discriminator look at one of them.
        if let Some(twice) = document.twice().filter(|_| !response) {
            let place = format!("body:{}", document.pointer(twice));
            self.keep_items(document.into_items());
            return BodyResult::Invalid(vec![Violation::new(kind, place, TWICE)]);
        }
        let length = u64::try_from(body.len()).unwrap_or(u64::MAX);
        // Enough for a dozen schemas at every value of the body.
        let budget = length.saturating_mul(4).saturating_add(200_000);
        let checked = match side {
            Side::Request => check_request(self, schema, &document, budget),
            Side::Response => check(self, schema, &document, side, budget),
        };
        self.keep_items(document.into_items());
        match checked {
            Checked::Valid => BodyResult::Valid,
            Checked::Unjudged => BodyResult::Unjudged,
            // As a body that is too long, it cannot be checked, and does not match: otherwise costly bodies would be a way around
            // the contract.
            Checked::TooCostly => one("checking it takes too much work".to_owned()),
            Checked::Invalid(found) => {
                let violations = found.into_iter().map(|(pointer, expected)| {
                    let place = if pointer.is_empty() { "body".to_owned() } else { format!("body:{pointer}") };
                    Violation::new(kind, place, format!("expected {expected}"))
                });
                BodyResult::Invalid(violations.collect())
            }
        }
    }

    /// What the body of a response needs.
    #[must_use]
    pub fn response_body(&self, operation: u32, status: u16, content_type: Option<&[u8]>, has_body: bool) -> BodyCheck {
        let Some(operation) = self.operation(operation).filter(|operation| !operation.responses.is_empty()) else {
            return BodyCheck::None;
        };
        let of = |number: u32| operation.responses.iter().find(|response| response.status == number);
        let status = u32::from(status);
        let Some(response) = of(status).or_else(|| of(status / 100)).or_else(|| of(0)) else {
            let detail = format!("the status {status} is not declared");
            return BodyCheck::Wrong(Violation::new(Mismatch::UndeclaredStatus, "status", detail));
        };
        if !has_body || response.media.is_empty() {
            return BodyCheck::None;
        }
        match self.media(content_type, &response.media) {
            Some(Some(schema)) => BodyCheck::Json(schema),
            Some(None) => BodyCheck::None,
            None => {
                let declared: Vec<String> = response.media.iter().map(|media| self.shown(media.range)).collect();
                let detail = format!("expected {} with the status {status}", declared.join(", "));
                BodyCheck::Wrong(Violation::new(Mismatch::UndeclaredMediaType, "header:content-type", detail))
            }
        }
    }
}

/// What came of the check of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyResult {
    /// It matches.
    Valid,
    /// It does not: at these places, at most eight.
    Invalid(Vec<Violation>),
    /// A schema refers to itself in a circle, and checks nothing.
    Unjudged,
}

/// A required body that is absent.
#[must_use]
pub fn missing_body() -> Violation {
    Violation::new(Mismatch::MissingBody, "body", "a required body is absent")
}

/// A form in a character set in which its names cannot be read.
fn foreign_form() -> Violation {
    let detail = "the charset is none that forms are read in, so that the body cannot be checked";
    Violation::new(Mismatch::UnsupportedMediaType, "header:content-type", detail)
}

fn path_value<'m>(operation: &OperationRecord, record: &ParameterRecord, matched: &'m Matched<'_>) -> Option<&'m [u8]> {
    // The last values are those of the path; what is in front belongs to the base path.
    let from_end = operation.names.len() - operation.names.iter().position(|name| *name == record.name)?;
    let place = matched.values.len().checked_sub(from_end)?;
    matched.values.get(place).map(AsRef::as_ref)
}
