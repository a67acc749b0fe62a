//! Whether a response has a text to scan, and that text.

use std::borrow::Cow;

use exchange::{Body, Headers, Response, codings};
use seclang::body::decode::{DecodeError, decode};
use seclang::body::decode_prefix;

use crate::sensitive::Form;

/// How many times longer than the limit of a body its decoded form may be.
const EXPANSION: usize = 16;
/// The highest ratio of a decoded body to the compressed one.
const MAX_RATIO: u32 = 200;

/// The media types that are inspected where a configuration names none.
const TYPES: [&str; 8] = [
    "text/*",
    "application/json",
    "application/xml",
    "application/javascript",
    "application/ecmascript",
    "application/x-ndjson",
    "application/x-www-form-urlencoded",
    "application/graphql-response",
];
/// Texts that show nothing of an application.
const NOT_INSPECTED: [&str; 2] = ["text/css", "text/event-stream"];

/// The units of UTF-16 that are a blank to scanners: a space that breaks no line stands between groups of digits.
const NO_BREAK_SPACE: u8 = 0xa0;

/// How the text of a response is made of its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inspection {
    /// What the content type says of the syntax; `None` without a type.
    form: Option<Form>,
    /// The content type says UTF-16: little endian, or big endian.
    utf16: Option<Order>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

impl Inspection {
    /// How a response is inspected; `None` where it is not: streams, parts of a representation ([`Response::is_part`]), 1xx, 204,
    /// 205, 304, and media types that are none of `types` (by default texts, JSON and XML). Responses without a type are inspected.
    #[must_use]
    pub fn of(response: &Response, types: &[String]) -> Option<Self> {
        let (status, headers) = (response.status, &response.headers);
        if response.streaming || matches!(status, 0..200 | 204 | 205 | 304) || response.is_part() {
            return None;
        }
        let kind = headers.get("content-type").unwrap_or_default();
        let media = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let media = std::str::from_utf8(media).ok()?;
        if !is_inspected_type(media, types) {
            return None;
        }
        let form = (!media.is_empty()).then(|| form_of(media));
        let utf16 = position(kind, b"utf-16").map(|_| match position(kind, b"utf-16be") {
            Some(_) => Order::Big,
            None => Order::Little,
        });
        Some(Self { form, utf16 })
    }

    /// Whether a response is a part of a text that would be inspected as a whole. Several parts side by side do not say what they are of.
    #[must_use]
    pub fn of_part(response: &Response, types: &[String]) -> bool {
        if !response.is_part() || response.streaming {
            return false;
        }
        let kind = response.headers.get("content-type").unwrap_or_default();
        let media = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let is_text = std::str::from_utf8(media).is_ok_and(|media| is_inspected_type(media, types));
        // The second is what Apache answers to `Request-Range`.
        is_text
            || [&b"multipart/byteranges"[..], b"multipart/x-byteranges"]
                .iter()
                .any(|many| media.eq_ignore_ascii_case(many))
    }

    /// The syntax that masks have to keep. The text itself decides where the type leaves it open: what begins as JSON is read as
    /// JSON under any name (`text/html` is what many frameworks say by default), and what has no type and begins with a tag is a page.
    #[must_use]
    pub fn form(&self, units: &[u8]) -> Form {
        let text = units.strip_prefix(b"\xef\xbb\xbf").unwrap_or(units);
        // A mark that keeps other sites from reading the text as a script.
        let text = text.strip_prefix(b")]}'").unwrap_or(text);
        match (self.form, text.iter().copied().find(|byte| !byte.is_ascii_whitespace() && *byte != b',')) {
            (None, Some(b'<')) => Form::Other,
            (None, _) | (Some(Form::Other), Some(b'{' | b'[')) => Form::Json,
            (Some(form), _) => form,
        }
    }

    /// The text of a body: content codings undone as far as they can be, and the letters of UTF-16 as bytes.
    #[must_use]
    pub fn text<'b>(&self, body: Body<'b>, headers: &Headers) -> Text<'b> {
        let mut text = decoded(&codings::list(headers), body);
        let order = match (text.bytes.as_ref(), self.utf16) {
            ([0xff, 0xfe, ..], _) => Some(Order::Little),
            ([0xfe, 0xff, ..], _) => Some(Order::Big),
            (_, declared) => declared,
        };
        if let Some(order) = order {
            text.wide = Some(order);
        }
        text
    }
}

/// The text of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text<'b> {
    bytes: Cow<'b, [u8]>,
    /// All of the body is in it, and can be written again.
    pub complete: bool,
    /// A content coding could not be undone: the bytes are those that were sent.
    pub undecoded: bool,
    wide: Option<Order>,
}

impl Text<'_> {
    /// What scanners read: one byte for each unit.
    #[must_use]
    pub fn units(&self) -> Cow<'_, [u8]> {
        let Some(order) = self.wide else { return Cow::Borrowed(&self.bytes) };
        let (pairs, _) = self.bytes.as_chunks::<2>();
        let unit = |pair: &[u8; 2]| match (order, *pair) {
            (Order::Little, [low, 0]) | (Order::Big, [0, low]) if low.is_ascii() => low,
            (Order::Little, [NO_BREAK_SPACE, 0]) | (Order::Big, [0, NO_BREAK_SPACE]) => b' ',
            _ => 0x80,
        };
        Cow::Owned(pairs.iter().map(unit).collect())
    }

    /// The body with other units: those of `changed` that differ from `units`, in their places.
    #[must_use]
    pub fn written(&self, changed: &[u8]) -> Vec<u8> {
        let Some(order) = self.wide else { return changed.to_vec() };
        let mut bytes = self.bytes.to_vec();
        let units = self.units();
        for (at, (old, new)) in units.iter().zip(changed).enumerate() {
            if old != new {
                let place = at * 2 + usize::from(order == Order::Big);
                bytes.iter_mut().skip(place).take(1).for_each(|byte| *byte = *new);
            }
        }
        bytes
    }
}

fn decoded<'b>(coding: &[u8], body: Body<'b>) -> Text<'b> {
    let whole = |bytes, complete, undecoded| Text { bytes, complete, undecoded, wide: None };
    if codings::is_identity(coding) || body.bytes.is_empty() {
        return whole(Cow::Borrowed(body.bytes), body.complete, false);
    }
    let most = body.bytes.len().max(64 << 10).saturating_mul(EXPANSION);
    match decode(coding, body.bytes, most, MAX_RATIO) {
        Ok(text) => whole(Cow::Owned(text), body.complete, false),
        Err(DecodeError::Unknown) => whole(Cow::Borrowed(body.bytes), false, true),
        Err(_) => match decode_prefix(coding, body.bytes, most).filter(|prefix| !prefix.is_empty()) {
            Some(prefix) => whole(Cow::Owned(prefix), false, false),
            // A lying coding: the bytes may well be a plain text, which clients show.
            None => whole(Cow::Borrowed(body.bytes), body.complete, true),
        },
    }
}

/// Whether a media type is inspected: by the list of a configuration, where `text/*` stands for all texts, or by default.
#[must_use]
pub fn is_inspected_type(media: &str, types: &[String]) -> bool {
    if !types.is_empty() {
        return types.iter().any(|known| matches_type(media, known));
    }
    if media.is_empty() {
        return true;
    }
    let listed = TYPES.iter().any(|known| matches_type(media, known));
    let structured = ends_with(media, "+json") || ends_with(media, "+xml");
    (listed || structured) && !NOT_INSPECTED.iter().any(|known| media.eq_ignore_ascii_case(known))
}

fn form_of(media: &str) -> Form {
    let script = ["javascript", "ecmascript"].iter().any(|name| ends_with(media, name));
    match (ends_with(media, "json"), script) {
        (true, _) => Form::Json,
        (_, true) => Form::Script,
        _ => Form::Other,
    }
}

fn matches_type(media: &str, known: &str) -> bool {
    match known.strip_suffix('*') {
        Some(group) => media.get(..group.len()).is_some_and(|start| start.eq_ignore_ascii_case(group)),
        None => media.eq_ignore_ascii_case(known),
    }
}

fn ends_with(media: &str, suffix: &str) -> bool {
    media
        .len()
        .checked_sub(suffix.len())
        .and_then(|at| media.get(at..))
        .is_some_and(|end| end.eq_ignore_ascii_case(suffix))
}

/// The place of a word in any case of its letters.
fn position(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|window| window.eq_ignore_ascii_case(word))
}

/// What is wrong with an entry of a list of media types, for an error message.
#[must_use]
pub fn content_types_problem(entry: &str) -> Option<&'static str> {
    let Some((group, name)) = entry.split_once('/') else { return Some("it is no media type") };
    let token = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
    };
    (!token(group) || !(token(name) || name == "*")).then_some("it is no media type")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, headers: &[(&str, &str)]) -> Response {
        Response { status, headers: Headers::new(headers), streaming: false }
    }

    fn inspected(status: u16, kind: &str) -> bool {
        Inspection::of(&response(status, &[("content-type", kind)]), &[]).is_some()
    }

    #[test]
    fn texts_are_inspected_and_nothing_else() {
        for kind in [
            "text/html; charset=utf-8",
            "application/json",
            "Application/Problem+JSON",
            "application/atom+xml",
            "text/plain",
            "image/svg+xml",
            "",
        ] {
            assert!(inspected(200, kind) && inspected(500, kind), "{kind}");
            assert!(![101, 204, 205, 206, 304].into_iter().any(|status| inspected(status, kind)), "{kind}");
        }
        for kind in
            ["image/png", "application/octet-stream", "text/css", "font/woff2", "multipart/byteranges", "video/mp4"]
        {
            assert!(!inspected(200, kind), "{kind}");
        }
        let listed = |status, range| {
            Inspection::of(&response(status, &[("content-type", "text/plain"), ("content-range", range)]), &[])
                .is_some()
        };
        assert!(!listed(206, "bytes 0-1/2") && !listed(206, "Bytes 0-1/2"));
        // Lists that number their entries, and a status that says that the whole is there.
        for (status, range) in [
            (200, "0-14/*"),
            (200, "posts 0-24/319"),
            (200, "bytes 0-1/2"),
            (206, "posts 0-24/319"),
            (416, "bytes */2"),
        ] {
            assert!(listed(status, range), "{status} {range}");
        }
        let stream = Response { streaming: true, ..response(200, &[("content-type", "text/plain")]) };
        assert_eq!(Inspection::of(&stream, &[]), None);
        let types = ["application/pdf".to_owned(), "text/*".to_owned()];
        assert!(is_inspected_type("application/PDF", &types) && is_inspected_type("text/css", &types));
        assert!(!is_inspected_type("application/json", &types));
        assert_eq!((content_types_problem("text/*"), content_types_problem("a b/c").is_some()), (None, true));
    }

    #[test]
    fn the_text_decides_what_the_type_leaves_open() {
        let form = |kind: &str, text: &str| {
            let kinds = [("content-type", kind)];
            let headers: &[(&str, &str)] = if kind.is_empty() { &[] } else { &kinds };
            Inspection::of(&response(200, headers), &[]).unwrap().form(text.as_bytes())
        };
        for (kind, text, expected) in [
            ("application/json", "x", Form::Json),
            ("application/problem+json", "", Form::Json),
            ("text/html; charset=utf-8", " \n{\"a\":1}", Form::Json),
            ("text/plain", "\u{feff}[1]", Form::Json),
            ("text/plain", ")]}',\n{\"a\":1}", Form::Json),
            ("", "{}", Form::Json),
            ("", "\n<p>", Form::Other),
            ("text/html", "<p>[", Form::Other),
            ("application/javascript", "{", Form::Script),
            ("text/javascript", "", Form::Script),
        ] {
            assert_eq!(form(kind, text), expected, "{kind} {text}");
        }
    }

    #[test]
    fn utf_16_is_read_and_written() {
        for (order, mark) in [(Order::Little, [0xff, 0xfe]), (Order::Big, [0xfe, 0xff])] {
            let encode = |unit: u16| if order == Order::Little { unit.to_le_bytes() } else { unit.to_be_bytes() };
            let body: Vec<u8> =
                mark.into_iter().chain("card \u{e4}\u{a0}4111".encode_utf16().flat_map(encode)).collect();
            let kind = [("content-type", "text/plain")];
            let inspection = Inspection::of(&response(200, &kind), &[]).unwrap();
            let text = inspection.text(Body { bytes: &body, complete: true }, &Headers::new(&kind));
            assert_eq!(text.units().as_ref(), b"\x80card \x80 4111");
            let changed = text.written(b"\x80card \x80 ****");
            let expected: Vec<u8> =
                mark.into_iter().chain("card \u{e4}\u{a0}****".encode_utf16().flat_map(encode)).collect();
            assert_eq!(changed, expected);
        }
    }

    #[test]
    fn codings_are_undone_as_far_as_they_can_be() {
        let plain = Headers::new(&[("content-type", "text/plain")]);
        let inspection =
            Inspection::of(&Response { status: 200, headers: plain.clone(), streaming: false }, &[]).unwrap();
        let read = |coding: &str, bytes: &[u8], complete| {
            let headers = Headers::new(&[("content-encoding", coding)]);
            let text = inspection.text(Body { bytes, complete }, &headers);
            (text.units().into_owned(), text.complete, text.undecoded)
        };
        let brotli = b"\x0b\x01\x80abc\x03";
        assert_eq!(read("br", brotli, true), (b"abc".to_vec(), true, false));
        assert_eq!(read("identity", b"abc", true), (b"abc".to_vec(), true, false));
        assert_eq!(read("br", b"\x0b\x01\x80ab", true), (b"ab".to_vec(), false, false));
        assert_eq!(read("br", brotli, false), (b"abc".to_vec(), false, false));
        assert_eq!(read("zstd", b"abc", true), (b"abc".to_vec(), false, true));
        assert_eq!(read("gzip", b"lying", true), (b"lying".to_vec(), true, true));
        // Four MiB of zeros in 14 bytes.
        let bomb = b"\x9b\xff\xff\x3f\xf8\x27\x00\xe2\xb1\x40\x20\xf7\xfe\x07";
        let (text, complete, _) = read("br", bomb, true);
        assert!(text.len() <= 1 << 20 && !complete, "{}", text.len());
    }
}
