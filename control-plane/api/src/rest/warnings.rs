//! The warnings of a write, in a header of its answer.

use axum::http::HeaderValue;
use axum::response::Response;
use serde_json::json;

use super::describe::WARNINGS;

/// Warnings in one answer, at most.
pub(super) const MAX_WARNINGS: usize = 20;
/// The characters of one warning, at most.
const MAX_CHARS: usize = 600;
/// The bytes of the header's value, at most: all headers of an answer have to fit into 4096 bytes, the smallest buffer
/// that is common among proxies.
pub(super) const MAX_BYTES: usize = 3072;
/// What the note on warnings that are left out takes, at most.
const NOTE_BYTES: usize = 96;

/// Adds the header where there are warnings; how many there are beyond its limits stands at its end.
pub(super) fn add<'a>(response: &mut Response, warnings: impl IntoIterator<Item = &'a str>) {
    if let Some(value) = header(warnings) {
        response.headers_mut().insert(WARNINGS, value);
    }
}

/// A JSON array of strings in ASCII; `None` without warnings.
fn header<'a>(warnings: impl IntoIterator<Item = &'a str>) -> Option<HeaderValue> {
    let (mut shown, mut bytes, mut left_out) = (Vec::new(), 2, 0_usize);
    for warning in warnings {
        let text = (left_out == 0 && shown.len() < MAX_WARNINGS).then(|| ascii_json(&cut(warning)));
        match text.filter(|text| bytes + text.len() < MAX_BYTES - NOTE_BYTES) {
            Some(text) => {
                bytes += text.len() + 1;
                shown.push(text);
            }
            None => left_out += 1,
        }
    }
    if left_out > 0 {
        shown.push(ascii_json(&format!("and {left_out} more; `palisade check` shows all of them")));
    }
    if shown.is_empty() {
        return None;
    }
    HeaderValue::from_str(&format!("[{}]", shown.join(","))).ok()
}

fn cut(warning: &str) -> String {
    match warning.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", warning.get(..end).unwrap_or_default()),
        None => warning.to_owned(),
    }
}

/// A JSON string with everything outside of ASCII escaped.
fn ascii_json(text: &str) -> String {
    let mut ascii = String::new();
    for unit in json!(text).to_string().encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() => ascii.push(char::from(byte)),
            _ => ascii.push_str(&format!("\\u{unit:04x}")),
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(warnings: &[String]) -> Vec<String> {
        let value = header(warnings.iter().map(String::as_str)).unwrap();
        assert!(value.len() <= MAX_BYTES, "{}", value.len());
        serde_json::from_slice(value.as_bytes()).unwrap()
    }

    #[test]
    fn warnings_survive_the_way_through_a_header() {
        let texts = vec!["line 1: \"ä\"\n\t^".to_owned(), "😀".to_owned()];
        assert_eq!(told(&texts), texts);
        assert!(header([]).is_none());
    }

    #[test]
    fn the_header_has_an_end() {
        let numbered = |count: usize| (0..count).map(|number| format!("number {number}")).collect::<Vec<_>>();
        assert_eq!(told(&numbered(20)), numbered(20));
        let more = told(&numbered(25));
        assert_eq!(
            (&more[..20], more[20].as_str()),
            (&numbered(20)[..], "and 5 more; `palisade check` shows all of them")
        );
        // By its size as well, and an escape takes twelve bytes.
        let long = vec!["😀".repeat(10_000); 7];
        assert_eq!(told(&long), ["and 7 more; `palisade check` shows all of them"]);
        let long = vec!["x".repeat(10_000); 7];
        let shown = told(&long);
        assert_eq!((shown.len(), shown[0].chars().count()), (5, MAX_CHARS + 1));
        assert_eq!(shown[4], "and 3 more; `palisade check` shows all of them");
        assert!(told(&vec!["y".to_owned(); 1_000_000])[20].contains("999980 more"));
    }
}
