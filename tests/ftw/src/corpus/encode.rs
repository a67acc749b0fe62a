//! What clients do to values before they send them.

use std::fmt::Write as _;

use proxy_host::traffic::Headers;

/// A form's fields or a query's, as browsers write them (WHATWG URL, application/x-www-form-urlencoded).
pub(super) fn form(pairs: &[(String, String)]) -> String {
    let pairs = pairs.iter().map(|(name, value)| format!("{}={}", component(name), component(value)));
    pairs.collect::<Vec<_>>().join("&")
}

fn component(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            _ => drop(write!(out, "%{byte:02X}")),
        }
        out
    })
}

/// One part of a multipart body.
pub(super) struct Part {
    pub(super) headers: Headers,
    pub(super) body: Vec<u8>,
}

/// A body of parts.
pub(super) fn multipart(boundary: &str, parts: &[Part]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        out.extend_from_slice(format!("--{boundary}\r\n").as_bytes());
        for (name, value) in &part.headers {
            for piece in [name.as_slice(), b": ", value, b"\r\n"] {
                out.extend_from_slice(piece);
            }
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&part.body);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_browsers_do() {
        let pairs = [("q".to_owned(), "O'Brien & \u{fc}ber 50%~".to_owned()), ("a b".to_owned(), String::new())];
        assert_eq!(form(&pairs), "q=O%27Brien+%26+%C3%BCber+50%25%7E&a+b=");
        let part = Part { headers: vec![(b"A".to_vec(), b"b".to_vec())], body: b"x".to_vec() };
        assert_eq!(multipart("B", &[part]), b"--B\r\nA: b\r\n\r\nx\r\n--B--\r\n");
    }
}
