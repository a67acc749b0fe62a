//! The formats, and how a file's is found.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::json;

/// The formats that recordings come in. Each may be compressed with gzip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// HTTP archives (HAR 1.2) of browsers and proxies.
    Har,
    /// Traces of Envoy's tap filter as JSON documents, one after the other.
    TapJson,
    /// One trace of Envoy's tap filter as a protobuf message.
    TapProto,
    /// Such messages one after the other, each after its length.
    TapDelimited,
    /// One request as it is on the wire of HTTP/1.
    Http,
    /// Our own: JSON lines.
    Lines,
}

/// A name that no format has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownFormat(pub String);

impl Format {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Har, Self::TapJson, Self::TapProto, Self::TapDelimited, Self::Http, Self::Lines];

    /// Its name, in lower case: what [`Format::from_str`] reads.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Har => "har",
            Self::TapJson => "tap-json",
            Self::TapProto => "tap-pb",
            Self::TapDelimited => "tap-pb-delimited",
            Self::Http => "http",
            Self::Lines => "jsonl",
        }
    }

    /// The format of a file by its first bytes, then by its name. What has no mark of its own, protobuf, goes by its name
    /// before it is guessed.
    pub(crate) fn find(path: &Path, head: &[u8]) -> Option<Self> {
        by_text(head).or_else(|| by_name(path)).or_else(|| by_protobuf(head))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Format::ALL.map(Format::name).join(", ");
        write!(f, "there is no format `{}`; there are {names}", self.0)
    }
}

impl std::error::Error for UnknownFormat {}

/// The first key of a JSON document, or a request line.
fn by_text(head: &[u8]) -> Option<Format> {
    if let Some(key) = json::first_key(head) {
        return match key.as_str() {
            "log" => Some(Format::Har),
            "at" | "peer" | "local" | "route" | "request" | "response" | "status" | "notes" => Some(Format::Lines),
            key if key.contains("_trace") || key.ends_with("Trace") || key.ends_with("TraceSegment") => {
                Some(Format::TapJson)
            }
            "configured_sample_rate" | "configuredSampleRate" => Some(Format::TapJson),
            _ => None,
        };
    }
    let line = head.trim_ascii_start().split(|&byte| byte == b'\n').next()?.trim_ascii_end();
    let mut words = line.rsplitn(2, |&byte| byte == b' ');
    let (version, rest) = (words.next()?, words.next()?);
    let method = rest.split(|&byte| byte == b' ').next()?;
    let is_method = !method.is_empty() && method.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'-');
    (is_method && method.len() < rest.len() && version.starts_with(b"HTTP/")).then_some(Format::Http)
}

fn by_name(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    match name.rsplit_once('.')?.1 {
        "har" => Some(Format::Har),
        "jsonl" | "ndjson" => Some(Format::Lines),
        "pb" => Some(Format::TapProto),
        "pb_length_delimited" => Some(Format::TapDelimited),
        "http" | "raw" | "txt" | "req" => Some(Format::Http),
        _ => None,
    }
}

/// A trace's message with the message of its kind in it: by itself, or after a length that has room for it.
fn by_protobuf(head: &[u8]) -> Option<Format> {
    if let Some((outer, rest)) = varint(head)
        && let Some((size, inner)) = wrapped(rest)
        && (inner + size..=inner + size + 16).contains(&outer)
    {
        return Some(Format::TapDelimited);
    }
    wrapped(head).map(|_| Format::TapProto)
}

/// The length of the message in field 1 or 2, and the length of what stands before it.
fn wrapped(head: &[u8]) -> Option<(u64, u64)> {
    let tag = *head.first()?;
    let (size, rest) = varint(head.get(1..)?)?;
    let inner = *rest.first()?;
    let before = u64::try_from(head.len() - rest.len()).ok()?;
    let plausible = match tag {
        // A buffered trace: messages in fields 1 to 4.
        0x0a => matches!(inner, 0x0a | 0x12 | 0x1a | 0x22),
        // A segment: the trace's id, or a piece without one.
        0x12 => matches!(inner, 0x08 | 0x12 | 0x1a | 0x22 | 0x2a | 0x32 | 0x3a),
        _ => false,
    };
    (plausible && size < 1 << 40).then_some((size, before))
}

/// A number of protobuf, and what comes after it.
pub(crate) fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (index, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(7 * u32::try_from(index).ok()?)?;
        if byte & 0x80 == 0 {
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_comes_before_the_name() {
        let find = |name: &str, head: &[u8]| Format::find(Path::new(name), head);
        assert_eq!(find("a.txt", b"\xef\xbb\xbf {\n \"log\" : {"), Some(Format::Har));
        assert_eq!(find("a", b"{\"http_buffered_trace\": {"), Some(Format::TapJson));
        assert_eq!(find("a.har", b"{\"at\":1,"), Some(Format::Lines));
        assert_eq!(find("a", b"GET /a b HTTP/1.1\r\nhost: x"), Some(Format::Http));
        assert_eq!(find("a", b"GET HTTP/1.1\r\nhost: x"), None);
        assert_eq!(find("a.req", b"GET\r\n"), Some(Format::Http));
        assert_eq!(find("a.HAR.gz", b""), Some(Format::Har));
        assert_eq!(find("a.pb", b"\x0a\x04\x0a\x02\x0a\x00"), Some(Format::TapProto));
        assert_eq!(find("a", b"\x0a\x04\x0a\x02\x0a\x00"), Some(Format::TapProto));
        assert_eq!(find("a", b"\x06\x0a\x04\x0a\x02\x0a\x00"), Some(Format::TapDelimited));
        assert_eq!(find("README.md", b"# Hello"), None);
    }

    #[test]
    fn names_are_read_back() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
        }
        let error = "yaml".parse::<Format>().unwrap_err().to_string();
        assert_eq!(error, "there is no format `yaml`; there are har, tap-json, tap-pb, tap-pb-delimited, http, jsonl");
    }
}
