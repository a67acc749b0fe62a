//! Secrets in bodies. Bodies are changed in place: what is broken in them stays broken in the same way.

use memchr::memmem::find;

use super::{Run, value};
use crate::shape;
use crate::traffic::Headers;

impl Run<'_> {
    /// Masks the fields of a form or of JSON.
    pub(super) fn body(&mut self, body: &mut Vec<u8>, headers: &Headers, whose: &str) {
        let (form, json) = (&self.mask.secrets.form, &self.mask.secrets.json);
        if body.is_empty() || form.is_empty() && json.is_empty() {
            return;
        }
        let text = |name| String::from_utf8_lossy(shape::value(headers, name).unwrap_or_default()).to_lowercase();
        let encoding = text("content-encoding");
        if !matches!(encoding.trim(), "" | "identity") {
            self.notes.push(format!("the {whose}'s body is compressed and may hold secrets: it is left out"));
            body.clear();
            return;
        }
        let kind = text("content-type");
        let begin = body.trim_ascii_start().first();
        if kind.starts_with("multipart/") {
            *body = self.multipart(body);
        } else if kind.contains("json") || matches!(begin, Some(b'{' | b'[')) {
            *body = self.json(body);
        } else if !form.is_empty() {
            *body = self.fields(body, form, "form field");
        }
    }

    /// The parts of which the head names a secret field. The boundary is the body's own first line: what a header says
    /// may be another one.
    fn multipart(&mut self, body: &[u8]) -> Vec<u8> {
        let Some(begin) = find(body, b"--") else { return body.to_vec() };
        let line = body[begin..].split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
        let boundary = if line.len() > 2 { line } else { return body.to_vec() };
        let mut out = body[..begin].to_vec();
        let mut rest = &body[begin..];
        while !rest.is_empty() {
            let end = find(&rest[boundary.len().min(rest.len())..], boundary);
            let (part, after) = rest.split_at(end.map_or(rest.len(), |end| end + boundary.len()));
            rest = after;
            match self.secret_part(part) {
                Some((head, name, tail)) => {
                    self.names.insert(format!("form field `{name}`"));
                    out.extend_from_slice(&part[..head]);
                    out.extend_from_slice(&self.secret(&part[head..part.len() - tail]));
                    out.extend_from_slice(&part[part.len() - tail..]);
                }
                None => out.extend_from_slice(part),
            }
        }
        out
    }

    /// Where a secret part's value begins, its name, and how long the line break behind the value is.
    fn secret_part(&self, part: &[u8]) -> Option<(usize, String, usize)> {
        let wide = find(part, b"\r\n\r\n").map(|at| at + 4);
        let head = wide.or_else(|| find(part, b"\n\n").map(|at| at + 2))?;
        let text = String::from_utf8_lossy(&part[..head]).to_lowercase();
        let named = |name: &&String| {
            [format!("name=\"{name}\""), format!("name={name}\r"), format!("name={name};"), format!("name='{name}'")]
                .iter()
                .any(|pattern| text.match_indices(pattern.as_str()).any(|(at, _)| !text[..at].ends_with("file")))
        };
        let name = self.mask.secrets.form.iter().find(named)?.clone();
        let tail = part[head..].iter().rev().take(2).take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        Some((head, name, tail))
    }

    /// The values of secret keys. Whatever is no JSON around them stays.
    fn json(&mut self, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(body.len());
        let mut at = 0;
        while at < body.len() {
            if body[at] != b'"' {
                out.push(body[at]);
                at += 1;
                continue;
            }
            let end = string_end(body, at);
            out.extend_from_slice(&body[at..end]);
            let colon = end + blanks(&body[end..]);
            let key = unquoted(&body[at..end]);
            at = end;
            if body.get(colon) != Some(&b':') || !self.mask.secrets.json.contains(&key.to_lowercase()) {
                continue;
            }
            let begin = colon + 1 + blanks(&body[colon + 1..]);
            let end = value_end(body, begin);
            out.extend_from_slice(&body[at..begin]);
            out.extend_from_slice(&self.json_value(&body[begin..end]));
            self.names.insert(format!("JSON key `{}`", key.to_lowercase()));
            at = end;
        }
        out
    }

    fn json_value(&mut self, value: &[u8]) -> Vec<u8> {
        match value.first() {
            Some(b'"') => {
                let masked = self.secret(unquoted(value).as_bytes());
                // With the escapes that it was written with.
                let written = value.trim_ascii().strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
                let written = written.filter(|written| written.len() >= super::FOUND_ANYWHERE);
                self.found.extend(written.map(|written| (written.to_vec(), masked.clone())));
                [b"\"", masked.as_slice(), b"\""].concat()
            }
            Some(b'{' | b'[') => [b"\"", self.secret(value).as_slice(), b"\""].concat(),
            Some(b'-' | b'0'..=b'9') => {
                let digits: Vec<u8> = value.iter().copied().filter(u8::is_ascii_digit).collect();
                // The number as it is written is masked elsewhere as well.
                let masked = self.mask.values.mask(&digits);
                let found = value::writings(value).into_iter().filter(|found| found.len() >= super::FOUND_ANYWHERE);
                self.found.extend(found.map(|found| (found, masked.clone())));
                masked
            }
            Some(_) if matches!(value, b"null" | b"true" | b"false") => value.to_vec(),
            Some(_) => self.secret(value),
            None => Vec::new(),
        }
    }
}

/// Behind the closing quote of the string that begins here, or the end.
fn string_end(body: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while let Some(found) = body.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if body[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    body.len()
}

/// Behind the value that begins here.
fn value_end(body: &[u8], begin: usize) -> usize {
    match body.get(begin) {
        Some(b'"') => string_end(body, begin),
        Some(b'{' | b'[') => {
            let (mut depth, mut at) = (0_usize, begin);
            while at < body.len() {
                match body[at] {
                    b'"' => {
                        at = string_end(body, at);
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    return at;
                }
            }
            body.len()
        }
        _ => {
            let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b'}' | b']');
            let rest = body.get(begin..).unwrap_or_default();
            begin.min(body.len()) + rest.iter().position(ends).unwrap_or(rest.len())
        }
    }
}

fn blanks(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// A string's text; of one that is broken what stands there.
fn unquoted(text: &[u8]) -> String {
    serde_json::from_slice(text).unwrap_or_else(|_| {
        let inner = text.strip_prefix(b"\"").unwrap_or(text);
        String::from_utf8_lossy(inner.strip_suffix(b"\"").unwrap_or(inner)).into_owned()
    })
}
