//! Exchanges as libmodsecurity reads them, where it reads them in a way of its own.
//!
//! An explanation that names a reading holds only where it can be seen to: our engine, given the exchange so, has to say of
//! the rule what libmodsecurity says of it.

use serde::Deserialize;

use super::case::Case;
use super::rules::FORCED_BODY_CLIENT;

/// A way to read an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reading {
    /// The target ends at its first `#`.
    WithoutFragment,
    /// The values of the parts of a multipart body have no line ends.
    WithoutPartLineEnds,
    /// REQUEST_BODY is there for every kind of body.
    WithRequestBody,
    /// The arguments of the target and of a form come in another order: any of them last. The arguments of another body come
    /// before these: what stands before the last match does not matter, so they are left out.
    InOtherOrder,
    /// The media type of the response is none that is inspected.
    WithoutResponseBody,
    /// A body of a type that no processor reads is no form and no document, whatever it looks like, and a form is no document.
    WithoutUndeclaredBody,
    /// Nothing is read in a way that only some applications have: no argument begins behind a `;`, no escapes are left within JSON, a
    /// file is no field, and quotes of a cookie belong to its value.
    WithoutOtherReadings,
    /// No query goes on with another one: `UNION` is a word without a meaning, in the target and in the body.
    WithoutUnion,
}

const BOUNDARY: &[u8] = b"boundary=";

/// The exchange read in all these ways, one after the other.
#[must_use]
pub fn read(case: &Case, readings: &[Reading]) -> Vec<Case> {
    let step = |cases: Vec<Case>, reading: &Reading| cases.iter().flat_map(|case| reading.of(case)).collect();
    readings.iter().fold(vec![case.clone()], step)
}

/// How many arguments [`Reading::InOtherOrder`] tries as the last one.
const ORDERS: usize = 100;

impl Reading {
    /// The exchange read so; several if there is more than one way to do it, none if nothing of it is read otherwise.
    #[must_use]
    pub fn of(self, case: &Case) -> Vec<Case> {
        let one = |changed: Case| if changed == *case { Vec::new() } else { vec![changed] };
        match self {
            Self::WithoutFragment => {
                let uri = case.uri.split(|byte| *byte == b'#').next().unwrap_or_default().to_vec();
                one(Case { uri, ..case.clone() })
            }
            Self::WithoutPartLineEnds => one(Case { body: without_part_line_ends(case), ..case.clone() }),
            Self::WithRequestBody => one(Case { client: FORCED_BODY_CLIENT.to_owned(), ..case.clone() }),
            Self::InOtherOrder => in_other_order(case),
            Self::WithoutResponseBody => {
                let mut changed = case.clone();
                for (name, value) in &mut changed.response_headers {
                    if name.eq_ignore_ascii_case(b"content-type") {
                        *value = b"application/octet-stream".to_vec();
                    }
                }
                one(changed)
            }
            Self::WithoutUndeclaredBody => {
                let is_read = !case.body.is_empty() && !is_declared(case.header("content-type"), &case.body);
                one(Case { declared_only: is_read, ..case.clone() })
            }
            Self::WithoutOtherReadings => one(Case { declared_only: true, ..case.clone() }),
            Self::WithoutUnion => {
                let (uri, body) = (without_union(&case.uri), without_union(&case.body));
                one(Case { uri, body, ..case.clone() })
            }
        }
    }
}

/// Whether one processor reads all of a body: those of forms, unless they begin like documents, and those of types that the
/// engine's own configuration names.
fn is_declared(kind: &[u8], body: &[u8]) -> bool {
    const FORM: &[u8] = b"application/x-www-form-urlencoded";
    let kind = kind.to_ascii_lowercase();
    let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii_start();
    let media = kind.split(|byte| byte.is_ascii_whitespace() || *byte == b';').next().unwrap_or_default();
    let (application, of_text) = (media.strip_prefix(b"application/"), media.strip_prefix(b"text/"));
    let is = |subtype: Option<&[u8]>, name: &[u8]| {
        subtype
            .and_then(|subtype| subtype.strip_suffix(name))
            .is_some_and(|rest| rest.is_empty() || rest.ends_with(b"+"))
    };
    kind.starts_with(FORM) && !matches!(text.first(), Some(b'{' | b'[' | b'<'))
        || kind.starts_with(b"multipart/form-data")
        || is(application, b"json")
        || is(application, b"xml")
        || is(of_text, b"xml")
}

/// A text with another word of the same length in place of `UNION`.
fn without_union(text: &[u8]) -> Vec<u8> {
    const UNION: &[u8] = b"union";
    let mut text = text.to_vec();
    for at in 0..text.len().saturating_sub(UNION.len() - 1) {
        let word = &mut text[at..at + UNION.len()];
        if word.eq_ignore_ascii_case(UNION) {
            word.copy_from_slice(b"onion");
        }
    }
    text
}

/// The body with the values of its parts on one line each; what is no multipart body stays as it is.
fn without_part_line_ends(case: &Case) -> Vec<u8> {
    let kind = case.header("content-type");
    let Some(at) = kind.windows(BOUNDARY.len()).position(|window| window == BOUNDARY) else { return case.body.clone() };
    let boundary = kind[at + BOUNDARY.len()..].split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let unquoted = boundary.strip_prefix(b"\"").and_then(|boundary| boundary.strip_suffix(b"\""));
    let delimiter = [b"--", unquoted.unwrap_or(boundary)].concat();
    let mut lines = Vec::new();
    let (mut in_value, mut in_part) = (false, false);
    let mut value: Vec<u8> = Vec::new();
    // The line end that waits for what follows it: in front of a delimiter it stays.
    let mut end: &[u8] = b"";
    for line in case.body.split_inclusive(|byte| *byte == b'\n') {
        let text = line.strip_suffix(b"\n").map_or(line, |text| text.strip_suffix(b"\r").unwrap_or(text));
        if line.starts_with(&delimiter) {
            lines.append(&mut value);
            lines.extend_from_slice(end);
            lines.extend_from_slice(line);
            (in_part, in_value, end) = (true, false, b"");
        } else if in_value {
            value.extend_from_slice(text);
            end = &line[text.len()..];
        } else {
            lines.extend_from_slice(line);
            in_value = in_part && text.is_empty();
        }
    }
    lines.append(&mut value);
    lines.extend_from_slice(end);
    lines
}

/// The arguments of a form stand behind those of the target: to mix them, all are put into the target.
fn in_other_order(case: &Case) -> Vec<Case> {
    let at = case.uri.iter().position(|byte| *byte == b'?').unwrap_or(case.uri.len());
    let (path, query) = case.uri.split_at(at);
    let is_form = case.header("content-type").starts_with(b"application/x-www-form-urlencoded");
    let form = if is_form { case.body.as_slice() } else { b"" };
    let query = query.get(1..).unwrap_or_default();
    let arguments = [query, form].into_iter().flat_map(|text| text.split(|byte| *byte == b'&'));
    let arguments: Vec<&[u8]> = arguments.filter(|argument| !argument.is_empty()).collect();
    let last = |last: usize| {
        let mut arguments = arguments.clone();
        let moved = arguments.remove(last);
        arguments.push(moved);
        Case { uri: [path, b"?", &arguments.join(&b'&')].concat(), body: Vec::new(), ..case.clone() }
    };
    (0..arguments.len().min(ORDERS)).map(last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uri: &[u8], kind: &[u8], body: &[u8]) -> Case {
        let headers = vec![(b"Content-Type".to_vec(), kind.to_vec())];
        Case { uri: uri.to_vec(), headers, body: body.to_vec(), ..Case::default() }
    }

    #[test]
    fn a_reading_changes_what_it_is_about() {
        let case = request(b"/?a=b#c", b"x", b"");
        assert_eq!(Reading::WithoutFragment.of(&case)[0].uri, b"/?a=b");
        let response_headers = vec![(b"content-type".to_vec(), b"TEXT/HTML".to_vec())];
        let case = Case { response_headers, ..Case::default() };
        assert_eq!(Reading::WithoutResponseBody.of(&case)[0].response_headers[0].1, b"application/octet-stream");
        assert_eq!(Reading::WithRequestBody.of(&case)[0].client, FORCED_BODY_CLIENT);
        let case = request(b"/", b"text/plain", b"a=b");
        assert!(Reading::WithoutUndeclaredBody.of(&case)[0].declared_only);
        let case = request(b"/", b"application/x-www-form-urlencoded", b" {\"a\":1}");
        assert!(Reading::WithoutUndeclaredBody.of(&case)[0].declared_only);
        for kind in ["application/x-www-form-urlencoded; charset=utf-8", "application/vnd.x+json", "Text/XML;x=y"] {
            assert!(Reading::WithoutUndeclaredBody.of(&request(b"/", kind.as_bytes(), b"a=b")).is_empty(), "{kind}");
        }
        let changed = Reading::WithoutUnion.of(&request(b"/?a=1+UNION+select", b"x", b"union")).remove(0);
        assert_eq!((changed.uri, changed.body), (b"/?a=1+onion+select".to_vec(), b"onion".to_vec()));
    }

    #[test]
    fn what_a_reading_is_not_about_has_none() {
        let case = Case::default();
        for reading in [
            Reading::WithoutFragment,
            Reading::WithoutPartLineEnds,
            Reading::InOtherOrder,
            Reading::WithoutResponseBody,
            Reading::WithoutUndeclaredBody,
            Reading::WithoutUnion,
        ] {
            assert!(reading.of(&case).is_empty(), "{reading:?}");
        }
    }

    #[test]
    fn values_of_parts_lose_their_line_ends_and_nothing_else_does() {
        let body = b"--b\r\nA: b\r\n\r\nv\r\nw\n--x\r\n--b\r\nA: b\r\n\r\n\r\n--b--\r\n";
        let case = request(b"/", b"multipart/form-data; boundary=b", body);
        let changed = &Reading::WithoutPartLineEnds.of(&case)[0];
        assert_eq!(
            changed.body.escape_ascii().to_string(),
            r"--b\r\nA: b\r\n\r\nvw--x\r\n--b\r\nA: b\r\n\r\n\r\n--b--\r\n"
        );
    }

    #[test]
    fn several_readings_follow_each_other() {
        let case = request(b"/p?a=1&b=2#c", b"x", b"");
        let changed = read(&case, &[Reading::WithoutFragment, Reading::InOtherOrder]);
        let uris: Vec<&[u8]> = changed.iter().map(|case| case.uri.as_slice()).collect();
        assert_eq!(uris, [&b"/p?b=2&a=1"[..], b"/p?a=1&b=2"]);
        assert!(read(&Case::default(), &[Reading::WithoutFragment]).is_empty());
    }

    #[test]
    fn every_argument_is_the_last_one_once() {
        let case = request(b"/p?a=1&b=2", b"application/x-www-form-urlencoded", b"c=3");
        let changed = Reading::InOtherOrder.of(&case);
        let uris: Vec<&[u8]> = changed.iter().map(|case| case.uri.as_slice()).collect();
        assert_eq!(uris, [&b"/p?b=2&c=3&a=1"[..], b"/p?a=1&c=3&b=2", b"/p?a=1&b=2&c=3"]);
        assert!(changed.iter().all(|case| case.body.is_empty()));
    }
}
