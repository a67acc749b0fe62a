//! JSON that is nested deeper than it is read.

use serde_json::Value;

use entities::FieldProblem;

/// The levels of objects and arrays within each other that the JSON parser reads, the document itself among them.
const MAX_DEPTH: usize = 127;

/// What of a document is nested too deep; `None` where nothing is. Linear in its length, without recursion; of text that
/// is no JSON it looks at what comes before the fault.
pub(super) fn problem(text: &[u8]) -> Option<FieldProblem> {
    let mut scan = Scan { rest: text, place: Vec::new() };
    let mut depth = 0_usize;
    // The key or the index of the element of the document, and of the one within it, at which the scan is.
    while let Some((byte, rest)) = scan.rest.split_first() {
        scan.rest = rest;
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    let message = format!("objects and arrays are nested deeper than {MAX_DEPTH} levels");
                    let expected = format!("at most {MAX_DEPTH} levels of objects and arrays");
                    return Some(FieldProblem::new(scan.pointer(), message).expected(expected));
                }
                if depth <= NAMED_LEVELS {
                    scan.place.push(Place { array: *byte == b'[', index: 0, key: String::new() });
                }
            }
            b'}' | b']' => {
                if depth <= NAMED_LEVELS {
                    scan.place.pop();
                }
                depth = depth.checked_sub(1)?;
            }
            b',' if depth <= NAMED_LEVELS => {
                if let Some(place) = scan.place.last_mut() {
                    place.index += 1;
                }
            }
            b'"' => {
                let string = scan.string()?;
                // Before a colon it is a key.
                let is_key = scan.rest.trim_ascii_start().first() == Some(&b':');
                if is_key
                    && depth <= NAMED_LEVELS
                    && let Some(place) = scan.place.last_mut()
                {
                    place.key = string;
                }
            }
            _ => {}
        }
    }
    None
}

/// The levels of a document that a pointer names: whatever is below lies in what is named.
const NAMED_LEVELS: usize = 2;

struct Scan<'a> {
    rest: &'a [u8],
    place: Vec<Place>,
}

/// Where in an object or an array the scan is.
struct Place {
    array: bool,
    index: usize,
    key: String,
}

impl Scan<'_> {
    /// The string whose opening quote was read; `None` where it does not end.
    fn string(&mut self) -> Option<String> {
        let mut escaped = false;
        let end = self.rest.iter().position(|byte| {
            let ends = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            ends
        })?;
        let (inner, rest) = (self.rest.get(..end)?, self.rest.get(end + 1..)?);
        self.rest = rest;
        let quoted = format!("\"{}\"", String::from_utf8_lossy(inner));
        let read = serde_json::from_str(&quoted).ok().and_then(|value: Value| Some(value.as_str()?.to_owned()));
        Some(read.unwrap_or_default())
    }

    fn pointer(&self) -> String {
        let tokens = self.place.iter().map(|place| match place.array {
            true => format!("/{}", place.index),
            false => format!("/{}", place.key.replace('~', "~0").replace('/', "~1")),
        });
        tokens.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> String {
        format!("{}{}", "[".repeat(depth), "]".repeat(depth))
    }

    fn pointer(text: &str) -> Option<String> {
        let found = problem(text.as_bytes());
        let parsed = serde_json::from_str::<Value>(text);
        let too_deep = parsed.is_err_and(|error| error.to_string().contains("recursion limit"));
        assert_eq!(found.is_some(), too_deep, "as the parser finds it");
        found.map(|problem| problem.pointer)
    }

    #[test]
    fn the_field_that_is_too_deep_is_named() {
        let deep = nested(MAX_DEPTH);
        assert_eq!(pointer(&nested(MAX_DEPTH)), None);
        assert_eq!(pointer(&nested(MAX_DEPTH + 1)).as_deref(), Some("/0/0"));
        assert_eq!(pointer(&format!("{{\"a\":{}}}", nested(MAX_DEPTH - 1))), None);
        for (text, expected) in [
            (format!("{{\"a\": 1, \"b/~\" : {{\"c\\\"\": {deep}}}}}"), "/b~1~0/c\""),
            (format!("{{\"metadata\": {{\"x\": [1], \"y\": \"[[\", \"z\": {deep}}}}}"), "/metadata/z"),
            (format!("[1, {{\"op\": \"add\", \"value\": {deep}}}]"), "/1/value"),
            (format!("[[], {{}}, {deep}]"), "/2/0"),
        ] {
            assert_eq!(pointer(&text).as_deref(), Some(expected), "{expected}");
        }
        for broken in ["", "]", "\"a", "{\"a\": [}", "tru"] {
            assert_eq!(problem(broken.as_bytes()), None, "{broken}");
        }
    }
}
