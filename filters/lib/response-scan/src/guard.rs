//! The phases that guards of responses have in common: what they change of a request, and how they get the text of its response.

use exchange::{Body, BodyNeed, Exchange, HeaderChange, Host, Slot, codings};

use crate::{Inspection, Text};

/// Endings of paths whose contents clients fetch in parts: recordings and pictures of disks, archives, documents. Players that get no
/// parts do not play.
const IN_PARTS: [&str; 34] = [
    "7z", "aac", "apk", "avi", "bz2", "deb", "dmg", "exe", "flac", "gz", "img", "iso", "m4a", "m4s", "m4v", "mkv",
    "mov", "mp3", "mp4", "msi", "oga", "ogg", "ogv", "opus", "pdf", "pkg", "rpm", "ts", "wav", "webm", "wmv", "xz",
    "zip", "zst",
];

/// The status of the answer to a request for a part of a text: 416, Range Not Satisfiable (RFC 9110, section 15.5.17).
pub const NO_PARTS: u16 = 416;
/// What that is about, for events.
pub const NO_PARTS_REASON: &str = "a part of a text was asked for, in which a match may be cut";

/// The headers that ask for a part of a text; the second is that of old browsers, which Apache still reads.
const RANGES: [&str; 2] = ["range", "request-range"];

/// What guards of responses are told by their configuration.
#[derive(Debug, Clone)]
pub struct Responses {
    /// The media types that are inspected; empty for the usual ones.
    pub content_types: Vec<String>,
    /// The most bytes of a body that are inspected.
    pub limit: usize,
    /// Whether clients get texts only as a whole.
    pub whole: bool,
    /// Nothing is changed of a request.
    pub monitor: bool,
}

/// What there is to do about a response whose headers are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// Nothing: there is no text to inspect.
    Pass,
    /// Its body is needed.
    Hold(BodyNeed),
    /// It is a part of a text, and clients get texts only as a whole.
    Part,
}

impl Responses {
    /// Changes a request so that its response can be inspected: no codings that cannot be undone, and no ranges of bytes but those of
    /// paths whose contents are fetched in parts. A guard that monitors leaves ranges as they are.
    pub fn request(&self, exchange: &mut Exchange, host: &dyn Host) {
        codings::limit(exchange);
        if !self.whole || self.monitor || is_in_parts(exchange.request.path_only()) {
            return;
        }
        let headers = &exchange.request.headers;
        let ranged: Vec<&str> = RANGES.into_iter().filter(|name| headers.all(name).any(is_of_bytes)).collect();
        let conditional = !ranged.is_empty() && headers.get("if-range").is_some();
        for name in ranged.into_iter().chain(conditional.then_some("if-range")) {
            exchange.change_request(HeaderChange::remove(name), host);
        }
    }

    /// Looks at the headers of a response, and notes in the slot how its text is to be read.
    pub fn response(&self, exchange: &Exchange, has_body: bool, slot: &mut Slot) -> Head {
        let Some(response) = exchange.response.as_ref().filter(|_| has_body) else { return Head::Pass };
        if let Some(inspection) = Inspection::of(response, &self.content_types) {
            slot.put(inspection);
            return Head::Hold(BodyNeed { limit: self.limit });
        }
        if self.whole && Inspection::of_part(response, &self.content_types) { Head::Part } else { Head::Pass }
    }

    /// The text of the response, as its headers say that it is to be read.
    pub fn text<'b>(exchange: &Exchange, body: Body<'b>, slot: &mut Slot) -> Option<(Inspection, Text<'b>)> {
        let (inspection, response) = (slot.take::<Inspection>()?, exchange.response.as_ref()?);
        Some((inspection, inspection.text(body, &response.headers)))
    }
}

/// Whether a range may be one of bytes: some servers look for the unit anywhere in the value. Ranges in other units (`items=0-24`, or
/// none) are questions to an application for a page of a list, which is a whole text.
fn is_of_bytes(range: &[u8]) -> bool {
    range.windows(5).any(|unit| unit.eq_ignore_ascii_case(b"bytes"))
}

/// Whether clients fetch what is behind a path in parts, by its ending.
fn is_in_parts(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let Some(dot) = memchr::memrchr(b'.', name) else { return false };
    let ending = name.get(dot + 1..).unwrap_or_default();
    IN_PARTS.iter().any(|known| ending.eq_ignore_ascii_case(known.as_bytes()))
}

#[cfg(test)]
mod tests {
    use exchange::fake::FakeHost;
    use exchange::{Headers, Response};

    use super::*;

    const WHOLE: Responses = Responses { content_types: Vec::new(), limit: 1000, whole: true, monitor: false };

    fn ranges(guard: &Responses, path: &str) -> (bool, bool) {
        let mut exchange = Exchange::default();
        exchange.request.path = path.into();
        exchange.request.headers = Headers::new(&[("range", "bytes=0-99"), ("if-range", "\"a\""), ("accept", "*/*")]);
        guard.request(&mut exchange, &FakeHost::at(0));
        let has = |name| exchange.request.headers.get(name).is_some();
        (has("range"), has("if-range"))
    }

    #[test]
    fn ranges_are_removed_but_for_what_is_fetched_in_parts() {
        for path in ["/customers.json", "/", "/export?file=a.mp4", "/a.mp4/customers", "/archive.zip.json"] {
            assert_eq!(ranges(&WHOLE, path), (false, false), "{path}");
        }
        for path in ["/trailer.mp4", "/a/B.ZIP?x=1"] {
            assert_eq!(ranges(&WHOLE, path), (true, true), "{path}");
        }
        assert_eq!(ranges(&Responses { monitor: true, ..WHOLE }, "/a"), (true, true));
        assert_eq!(ranges(&Responses { whole: false, ..WHOLE }, "/a"), (true, true));
    }

    #[test]
    fn pages_of_lists_are_no_ranges_of_bytes() {
        let left = |headers: &[(&str, &str)]| {
            let mut exchange = Exchange::default();
            exchange.request.headers = Headers::new(headers);
            WHOLE.request(&mut exchange, &FakeHost::at(0));
            let name = |(name, _): (&[u8], &[u8])| String::from_utf8_lossy(name).into_owned();
            exchange.request.headers.regular().map(name).collect::<Vec<_>>()
        };
        let conditional = ("if-range", "\"a\"");
        for range in ["items=0-4", "0-24", "posts=0-24", "entries 0-1"] {
            assert_eq!(left(&[("range", range), conditional]), ["range", "if-range"], "{range}");
        }
        for range in ["bytes=0-4", "Bytes=0-4", " bytes = 0-4", "items=0-4, bytes=0-4"] {
            assert_eq!(left(&[("range", range), conditional]), [""; 0], "{range}");
            assert_eq!(left(&[("request-range", range), ("accept", "*/*")]), ["accept"], "{range}");
        }
        assert_eq!(left(&[("range", "items=0-4"), ("range", "bytes=0-4")]), [""; 0]);
        assert_eq!(left(&[("range", "items=0-4"), ("request-range", "bytes=0-4")]), ["range"]);
    }

    #[test]
    fn a_part_of_a_text_is_told_from_one_of_a_recording() {
        let head = |guard: &Responses, status, headers: &[(&str, &str)], has_body| {
            let response = Response { status, headers: Headers::new(headers), streaming: false };
            let exchange = Exchange { response: Some(response), ..Exchange::default() };
            guard.response(&exchange, has_body, &mut Slot::default())
        };
        let (json, video) = (("content-type", "application/json"), ("content-type", "video/mp4"));
        let range = ("content-range", "bytes 0-1/2");
        assert_eq!(head(&WHOLE, 206, &[json, range], true), Head::Part);
        assert_eq!(head(&WHOLE, 206, &[range], true), Head::Part, "without a type");
        let hold = Head::Hold(BodyNeed { limit: 1000 });
        assert_eq!(head(&WHOLE, 200, &[json, range], true), hold, "a lying status: clients take it for the whole");
        for kind in ["multipart/byteranges; boundary=a", "multipart/x-byteranges; boundary=a"] {
            assert_eq!(head(&WHOLE, 206, &[("content-type", kind)], true), Head::Part, "{kind}");
        }
        for guard in [&WHOLE, &Responses { whole: false, ..WHOLE }] {
            for (status, list) in [(200, "0-14/*"), (200, "posts 0-24/319"), (206, "0-14/319"), (206, "posts 0-24/319")]
            {
                assert_eq!(head(guard, status, &[json, ("content-range", list)], true), hold, "{status} {list}");
            }
        }
        assert_eq!(head(&WHOLE, 206, &[video, range], true), Head::Pass);
        assert_eq!(head(&WHOLE, 206, &[json, range], false), Head::Pass, "HEAD");
        assert_eq!(head(&Responses { whole: false, ..WHOLE }, 206, &[json, range], true), Head::Pass);
        assert_eq!(head(&WHOLE, 200, &[json], true), Head::Hold(BodyNeed { limit: 1000 }));
        assert_eq!(head(&WHOLE, 304, &[json], true), Head::Pass);
    }
}
