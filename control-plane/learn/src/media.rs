//! What is known of bodies.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::parameter::Parameters;
use crate::schema::{mark, schema};
use crate::shape::Shape;
use crate::{Room, decode};

/// The media types of one place that are kept.
const MAX_TYPES: usize = 8;
/// The pairs of a form that are looked at.
const MAX_PAIRS: usize = 256;
/// Any media type.
const ANY: &str = "*/*";

/// The bodies of one place, by media type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bodies {
    /// Messages with a body.
    pub(crate) count: u64,
    types: BTreeMap<String, Bodied>,
}

/// The bodies of a media type.
#[derive(Clone, Debug, Default)]
struct Bodied {
    count: u64,
    /// Those of JSON that are none.
    broken: u64,
    json: Shape,
    form: Parameters,
}

type Pairs<'a> = Vec<(String, Cow<'a, [u8]>)>;

impl Bodies {
    /// Takes a body.
    pub(crate) fn observe(&mut self, headers: &[(Vec<u8>, Vec<u8>)], body: &[u8], room: &mut Room) {
        if body.is_empty() {
            return;
        }
        self.count += 1;
        let header = |name: &[u8]| headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_slice());
        let kind = header(b"content-type").unwrap_or_default();
        let mut essence = essence(kind);
        if !self.types.contains_key(&essence) && (self.types.len() >= MAX_TYPES || !room.take()) {
            essence = ANY.to_owned();
        }
        let coded = header(b"content-encoding").is_some_and(|coding| !coding.trim_ascii().is_empty());
        let is_json = is_json(&essence);
        let bodied = self.types.entry(essence.clone()).or_default();
        bodied.count += 1;
        if coded {
            return;
        }
        if is_json {
            match serde_json::from_slice(body) {
                Ok(value) => bodied.json.observe(&value, room),
                Err(_) => bodied.broken += 1,
            }
        } else if essence == "application/x-www-form-urlencoded" {
            bodied.form.observe(&pairs(body), room);
        } else if essence == "multipart/form-data" {
            let (pairs, files) = parts(kind, body);
            bodied.form.observe(&pairs, room);
            for name in files {
                if let Some(parameter) = bodied.form.known.get_mut(&name) {
                    parameter.files += 1;
                }
            }
        }
    }

    pub(crate) fn merge(&mut self, other: Self, room: &mut Room) {
        self.count += other.count;
        for (essence, bodied) in other.types {
            if self.types.contains_key(&essence) {
                room.give(1);
            }
            let own = self.types.entry(essence).or_default();
            own.count += bodied.count;
            own.broken += bodied.broken;
            own.json.merge(bodied.json, room);
            own.form.merge(bodied.form, room);
        }
    }

    /// The names of what JSON objects and forms have at their top.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let json = self.types.values().filter_map(|bodied| bodied.json.objects.as_ref());
        let lists = self.types.values().filter_map(|bodied| bodied.json.lists.as_ref()?.items.objects.as_ref());
        let keys = json.chain(lists).flat_map(|objects| objects.properties.keys());
        keys.chain(self.types.values().flat_map(|bodied| bodied.form.known.keys())).map(String::as_str)
    }

    /// The object `content`.
    pub(crate) fn content(&self, evidence: u64) -> Map<String, Value> {
        let described = self.types.iter().map(|(essence, bodied)| {
            let mut out = Map::new();
            if bodied.json.count > 0 && bodied.broken.saturating_mul(100) <= bodied.count {
                out.insert("schema".to_owned(), schema(&bodied.json, evidence, false));
            } else if !bodied.form.known.is_empty() {
                out.insert("schema".to_owned(), bodied.form.form(bodied.count, evidence));
            } else {
                mark(&mut out, bodied.count);
            }
            (essence.clone(), Value::Object(out))
        });
        described.collect()
    }

    /// A request body object, for `requests` of which some have one.
    pub(crate) fn request(&self, requests: u64, evidence: u64) -> Option<Value> {
        if self.count == 0 {
            return None;
        }
        let required = self.count == requests && requests >= evidence;
        Some(json!({ "required": required, "content": self.content(evidence), "x-evidence": self.count }))
    }
}

/// A media type without its parameters, or `*/*` where there is none.
fn essence(kind: &[u8]) -> String {
    let essence =
        kind.split(|byte| matches!(byte, b';' | b',')).next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-/".contains(byte);
    let slashes = essence.iter().filter(|byte| **byte == b'/').count();
    if slashes == 1 && essence.len() <= 100 && essence.iter().all(token) {
        String::from_utf8_lossy(&essence).into_owned()
    } else {
        ANY.to_owned()
    }
}

fn is_json(essence: &str) -> bool {
    matches!(essence, "application/json" | "text/json") || essence.ends_with("+json")
}

/// The pairs of a query or a form, decoded. Names that are not UTF-8 are shown with replacements.
pub(crate) fn pairs(text: &[u8]) -> Pairs<'static> {
    let plain = |part: &[u8]| {
        let spaced: Vec<u8> = part.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
        decode(&spaced)
    };
    let parts = text.split(|byte| *byte == b'&').filter(|part| !part.is_empty()).take(MAX_PAIRS);
    let pairs = parts.map(|part| {
        let at = part.iter().position(|byte| *byte == b'=').unwrap_or(part.len());
        let name = plain(part.get(..at).unwrap_or_default());
        let value = plain(part.get(at + 1..).unwrap_or_default());
        (String::from_utf8_lossy(&name).into_owned(), Cow::Owned(value))
    });
    pairs.collect()
}

/// The fields of a multipart form, and the names of those that are files, whose content is left out (RFC 7578).
fn parts<'a>(kind: &[u8], body: &'a [u8]) -> (Pairs<'a>, Vec<String>) {
    let kind = String::from_utf8_lossy(kind);
    let lower = kind.to_ascii_lowercase();
    let (mut pairs, mut files) = (Vec::new(), Vec::new());
    let Some(at) = lower.find("boundary=") else { return (pairs, files) };
    let boundary =
        kind.get(at + 9..).unwrap_or_default().split(';').next().unwrap_or_default().trim().trim_matches('"');
    if boundary.is_empty() {
        return (pairs, files);
    }
    let delimiter = format!("--{boundary}");
    for part in split_at(body, delimiter.as_bytes()).into_iter().skip(1).take(MAX_PAIRS) {
        let Some(end) = find(part, b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(part.get(..end).unwrap_or_default());
        let content = part.get(end + 4..).unwrap_or_default();
        let content = content.strip_suffix(b"\r\n").unwrap_or(content);
        let Some(line) = head.lines().find(|line| line.to_ascii_lowercase().starts_with("content-disposition:")) else {
            continue;
        };
        let quoted = |key: &str| {
            let rest = line.split(key).nth(1)?;
            Some(rest.split('"').next().unwrap_or_default().to_owned())
        };
        let Some(name) = quoted("; name=\"") else { continue };
        if quoted("filename=\"").is_some() {
            files.push(name.clone());
            pairs.push((name, Cow::Borrowed(b"".as_slice())));
        } else {
            pairs.push((name, Cow::Borrowed(content)));
        }
    }
    (pairs, files)
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

fn split_at<'a>(text: &'a [u8], delimiter: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = find(rest, delimiter) {
        parts.push(rest.get(..at).unwrap_or_default());
        rest = rest.get(at + delimiter.len()..).unwrap_or_default();
    }
    parts.push(rest);
    parts
}
