//! Puts a payload where an exclusion reaches, so that a rule without its target would miss it.
//!
//! An exclusion for a path holds on that path alone. So a payload in the target of a request has to leave the path as it is when it is folded:
//! it is put in the query, in place of an identifier, or into the parameters of a segment.

mod forms;
mod headers;
mod json;
mod multipart;
#[cfg(test)]
mod tests;

use exchange::fold::fold_segment;

use super::Target;
use crate::samples::messages::{SampledHeader, SampledRequest};
use multipart::Multipart;

/// The parameter that gets the payload where a request has none.
const PARAMETER: &[u8] = b"q";

/// Where a payload is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    /// In place of what the target holds.
    Value,
    /// The query, percent-encoded.
    Query,
    /// The query as it is, as far as the target of a request can have it.
    RawQuery,
    /// The path, percent-encoded, so that it folds to the same: in place of its last identifier, or as a parameter of its last segment.
    Path,
    /// One segment more, so that the path is another one.
    Segment,
    /// The file that a request with the method of the target writes: the path, or the header `Destination` for payloads with a slash.
    Written,
}

/// Where payloads are put for a target.
pub(crate) fn spots(target: &Target) -> &'static [Spot] {
    match target.collection.as_str() {
        "REQUEST_URI" | "REQUEST_URI_RAW" | "REQUEST_LINE" => &[Spot::Query, Spot::RawQuery, Spot::Path, Spot::Segment],
        "QUERY_STRING" => &[Spot::Query, Spot::RawQuery],
        "REQUEST_FILENAME" | "REQUEST_BASENAME" | "PATH_INFO" => &[Spot::Path, Spot::Segment],
        "REQUEST_METHOD" => &[Spot::Written],
        _ => &[Spot::Value],
    }
}

/// The same request with the payload at one of the [`spots`] of the target; `path` is its folded path. `None` as of [`inject`], and where
/// another spot has the same request.
pub(crate) fn inject_at(
    request: &SampledRequest,
    (target, path): (&Target, &str),
    spot: Spot,
    payload: &[u8],
) -> Option<SampledRequest> {
    let mut changed = request.clone();
    match spot {
        Spot::Value => put(&mut changed, target, payload)?,
        Spot::Query => set_query(&mut changed, &forms::encoded(payload)),
        Spot::RawQuery => {
            let raw = forms::raw(payload);
            if raw == forms::encoded(payload) {
                return None;
            }
            set_query(&mut changed, &raw);
        }
        Spot::Path => {
            put_in_path(&mut changed, path, &forms::encoded(payload), target.collection == "REQUEST_BASENAME");
        }
        Spot::Segment => add_to_path(&mut changed, payload),
        Spot::Written => {
            target.method()?.clone_into(&mut changed.method);
            if payload.contains(&b'/') {
                headers::set(&mut changed, b"destination", payload);
            } else {
                put_in_path(&mut changed, path, payload, false);
            }
        }
    }
    Some(changed)
}

/// The same request with the payload in place of what the target holds. `None` where the target cannot hold one (a method, a file name
/// that does not exist, bytes that no header may have), and where the target is in a body that cannot be read.
///
/// All members of a name get the payload, and all members where the target names none. A parameter, a header or a cookie that the request
/// does not have is added.
pub(crate) fn inject(request: &SampledRequest, target: &Target, payload: &[u8]) -> Option<SampledRequest> {
    let mut changed = request.clone();
    put(&mut changed, target, payload)?;
    Some(changed)
}

fn put(request: &mut SampledRequest, target: &Target, payload: &[u8]) -> Option<()> {
    match target.collection.as_str() {
        "ARGS" => {
            let found = in_query(request, target, payload) + in_body(request, target, payload)?;
            if found == 0 {
                add_to_query(request, target.member.as_deref().unwrap_or(PARAMETER), payload);
            }
        }
        "ARGS_GET" => {
            if in_query(request, target, payload) == 0 {
                add_to_query(request, target.member.as_deref().unwrap_or(PARAMETER), payload);
            }
        }
        // What is in a JSON body is in ARGS alone.
        "ARGS_POST" | "ARGS_POST_NAMES" if BodyFormat::of(request) == BodyFormat::Json => return None,
        "ARGS_POST" => {
            if in_body(request, target, payload)? == 0 {
                add_to_body(request, target.member.as_deref().unwrap_or(PARAMETER), payload)?;
            }
        }
        // A name that is given cannot be another one.
        "ARGS_NAMES" | "ARGS_GET_NAMES" if target.member.is_none() => add_to_query(request, payload, b"1"),
        "ARGS_POST_NAMES" if target.member.is_none() => add_to_body(request, payload, b"1")?,
        "QUERY_STRING" | "REQUEST_LINE" => set_query(request, &forms::encoded(payload)),
        "REQUEST_FILENAME" | "REQUEST_BASENAME" | "REQUEST_URI" | "REQUEST_URI_RAW" | "PATH_INFO" => {
            add_to_path(request, payload);
        }
        "REQUEST_BODY" => whole_body(request, payload)?,
        "XML" => xml(request, target, payload)?,
        "REQUEST_HEADERS" => headers::put(request, target, payload)?,
        "REQUEST_COOKIES" => headers::put_cookie(request, target, payload),
        "REQUEST_COOKIES_NAMES" if target.member.is_none() => headers::add_cookie_name(request, payload)?,
        "FILES" => in_parts(request, |form| form.name_files(target, payload))?,
        "MULTIPART_FILENAME" if target.member.is_none() => in_parts(request, |form| form.name_files(target, payload))?,
        "MULTIPART_NAME" if target.member.is_none() => {
            in_parts(request, |form| form.add(payload, b"1").map(|()| 1))?;
        }
        "FILES_NAMES" if target.member.is_none() => in_parts(request, |form| form.name_fields_of_files(payload))?,
        "FILES_TMP_CONTENT" => in_parts(request, |form| form.fill(target, payload, true))?,
        "MULTIPART_PART_HEADERS" => in_parts(request, |form| form.add_header(target, payload))?,
        _ => return None,
    }
    Some(())
}

/// How a body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyFormat {
    /// There is no body.
    Absent,
    Form,
    Json,
    Xml,
    Multipart,
    /// No parser reads it.
    Other,
}

impl BodyFormat {
    /// By its `Content-Type`, as the engine's configuration for the core rule set chooses.
    fn of(request: &SampledRequest) -> BodyFormat {
        if request.body.is_empty() {
            return BodyFormat::Absent;
        }
        let kind = header(request, b"content-type").unwrap_or_default().to_ascii_lowercase();
        let end = kind.iter().position(|byte| *byte == b';' || byte.is_ascii_whitespace()).unwrap_or(kind.len());
        let media_type = kind.get(..end).unwrap_or_default();
        let subtype = |parent: &[u8], suffix: &[u8]| {
            let subtype = media_type.strip_prefix(parent).and_then(|rest| rest.strip_suffix(suffix));
            subtype.is_some_and(|vendor| vendor.is_empty() || vendor.ends_with(b"+"))
        };
        match media_type {
            b"application/x-www-form-urlencoded" => BodyFormat::Form,
            b"multipart/form-data" => BodyFormat::Multipart,
            _ if subtype(b"application/", b"json") => BodyFormat::Json,
            _ if subtype(b"application/", b"xml") || subtype(b"text/", b"xml") => BodyFormat::Xml,
            _ => BodyFormat::Other,
        }
    }
}

// === Arguments ===

/// How many parameters of the query got the payload.
fn in_query(request: &mut SampledRequest, target: &Target, payload: &[u8]) -> usize {
    let Some(query) = query(request) else { return 0 };
    let (changed, count) = forms::replace(query, target, payload);
    set_query(request, &changed);
    count
}

/// How many parameters of the body got the payload; `None` if it cannot be read.
fn in_body(request: &mut SampledRequest, target: &Target, payload: &[u8]) -> Option<usize> {
    let (body, count) = match BodyFormat::of(request) {
        BodyFormat::Absent | BodyFormat::Xml | BodyFormat::Other => return Some(0),
        BodyFormat::Form => forms::replace(&request.body, target, payload),
        BodyFormat::Json => json::replace(&request.body, target, payload)?,
        BodyFormat::Multipart => {
            let mut form = Multipart::read(header(request, b"content-type")?, &request.body)?;
            let count = form.fill(target, payload, false)?;
            (form.write(), count)
        }
    };
    if count > 0 {
        set_body(request, body);
    }
    Some(count)
}

fn add_to_query(request: &mut SampledRequest, name: &[u8], value: &[u8]) {
    let mut changed = query(request).unwrap_or_default().to_vec();
    forms::add(&mut changed, name, value);
    set_query(request, &changed);
}

fn add_to_body(request: &mut SampledRequest, name: &[u8], value: &[u8]) -> Option<()> {
    let body = match BodyFormat::of(request) {
        BodyFormat::Form => {
            let mut body = request.body.clone();
            forms::add(&mut body, name, value);
            body
        }
        BodyFormat::Multipart => {
            let mut form = Multipart::read(header(request, b"content-type")?, &request.body)?;
            form.add(name, value)?;
            form.write()
        }
        BodyFormat::Absent | BodyFormat::Json | BodyFormat::Xml | BodyFormat::Other => return None,
    };
    set_body(request, body);
    Some(())
}

/// Changes the parts of a multipart body; `None` if none of them could be.
fn in_parts(request: &mut SampledRequest, change: impl FnOnce(&mut Multipart) -> Option<usize>) -> Option<()> {
    if BodyFormat::of(request) != BodyFormat::Multipart {
        return None;
    }
    let mut form = Multipart::read(header(request, b"content-type")?, &request.body)?;
    change(&mut form).filter(|count| *count > 0)?;
    set_body(request, form.write());
    Some(())
}

// === The target of the request ===

fn path(request: &SampledRequest) -> &[u8] {
    request.uri.split(|byte| *byte == b'?').next().unwrap_or_default()
}

/// What follows the `?`; `None` if there is none.
fn query(request: &SampledRequest) -> Option<&[u8]> {
    request.uri.get(path(request).len() + 1..)
}

fn set_query(request: &mut SampledRequest, query: &[u8]) {
    request.uri = [path(request), query].join(b"?".as_slice());
}

/// Puts text into a path that folds to `folded`, so that it still does: in place of its last identifier (of its last segment alone where
/// `is_last` is set), or as a parameter of its last segment.
fn put_in_path(request: &mut SampledRequest, folded: &str, text: &[u8], is_last: bool) {
    let query = query(request).map(<[u8]>::to_vec);
    let mut segments: Vec<Vec<u8>> = path(request).split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect();
    let named = segments.iter().enumerate().filter(|(_, segment)| !fold_segment(segment).is_empty());
    let named: Vec<usize> = named.map(|(at, _)| at).collect();
    let wanted: Vec<&str> = folded.split('/').skip(1).filter(|segment| !segment.is_empty()).collect();
    let known = named.iter().zip(&wanted).rev().filter(|_| named.len() == wanted.len());
    let identifier = known.take(if is_last { 1 } else { usize::MAX }).find_map(|(at, segment)| {
        let (before, behind) = segment.split_once('{')?;
        Some((*at, before, behind.split_once('}').map_or("", |(_, behind)| behind)))
    });
    match identifier {
        Some((at, before, behind)) => {
            if let Some(segment) = segments.get_mut(at) {
                *segment = [before.as_bytes(), text, behind.as_bytes()].concat();
            }
        }
        None => {
            let last = named.last().copied().unwrap_or_else(|| segments.len().saturating_sub(1));
            if let Some(segment) = segments.get_mut(last) {
                segment.push(b';');
                segment.extend_from_slice(text);
            }
        }
    }
    request.uri = segments.join(b"/".as_slice());
    if let Some(query) = query {
        set_query(request, &query);
    }
}

/// Adds a last segment.
fn add_to_path(request: &mut SampledRequest, segment: &[u8]) {
    let query = query(request).map(<[u8]>::to_vec);
    let mut uri = path(request).to_vec();
    if !uri.ends_with(b"/") {
        uri.push(b'/');
    }
    uri.extend_from_slice(&forms::encoded(segment));
    request.uri = uri;
    if let Some(query) = query {
        set_query(request, &query);
    }
}

// === The body as a whole ===

/// The body is the payload, as far as its format lets it: what cannot be parsed would be refused for that.
fn whole_body(request: &mut SampledRequest, payload: &[u8]) -> Option<()> {
    let body = match BodyFormat::of(request) {
        BodyFormat::Absent => return None,
        BodyFormat::Form => forms::encoded(payload),
        BodyFormat::Json => json::string(payload)?,
        BodyFormat::Xml => [b"<a>".as_slice(), &xml_text(payload)?, b"</a>"].concat(),
        BodyFormat::Multipart => {
            let every = Target { collection: String::new(), member: None };
            return in_parts(request, |form| form.fill(&every, payload, false));
        }
        BodyFormat::Other => payload.to_vec(),
    };
    set_body(request, body);
    request.cut = false;
    Some(())
}

/// A document with the payload alone, as a text or an attribute.
fn xml(request: &mut SampledRequest, target: &Target, payload: &[u8]) -> Option<()> {
    if BodyFormat::of(request) != BodyFormat::Xml {
        return None;
    }
    let text = xml_text(payload)?;
    let body = match target.member.as_deref() {
        Some(b"//@*") => [b"<a b=\"".as_slice(), &text, b"\"/>"].concat(),
        _ => [b"<a>".as_slice(), &text, b"</a>"].concat(),
    };
    set_body(request, body);
    request.cut = false;
    Some(())
}

/// With references in place of markup. `None` for what no document can hold.
fn xml_text(payload: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(payload).ok()?;
    let mut written = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => written.push_str("&lt;"),
            '>' => written.push_str("&gt;"),
            '&' => written.push_str("&amp;"),
            '"' => written.push_str("&quot;"),
            '\t' | '\n' | '\r' => written.push_str(&format!("&#{};", u32::from(character))),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => return None,
            _ => written.push(character),
        }
    }
    Some(written.into_bytes())
}

// === The message ===

fn header<'a>(request: &'a SampledRequest, name: &[u8]) -> Option<&'a [u8]> {
    let found = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
    Some(&found.value)
}

fn set_body(request: &mut SampledRequest, body: Vec<u8>) {
    let length = body.len().to_string().into_bytes();
    request.body = body;
    let mut lengths = request.headers.iter_mut().filter(|header| header.name.eq_ignore_ascii_case(b"content-length"));
    if let Some(first) = lengths.next() {
        first.value.clone_from(&length);
        lengths.for_each(|header| header.value.clone_from(&length));
    } else if header(request, b"transfer-encoding").is_none() {
        request.headers.push(SampledHeader { name: b"content-length".to_vec(), value: length });
    }
}
