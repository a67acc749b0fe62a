//! The language of payloads: text with `${...}` expressions, evaluated to bytes.
//!
//! ```text
//! text       = { any byte | "$${" (a literal "${") | "${" expression "}" }
//! expression = term { "+" term }
//! term       = number | "string" | 'string' | name | name "(" [ expression { "," expression } ] ")"
//! ```
//!
//! Strings know `\n \r \t \0 \\ \' \" \xHH`. A name without parentheses is a variable: a payload of the file, or a value of
//! the case's `each`. The functions are in [`crate::encode`]. Everything is bytes; a number is its decimal digits.

use std::collections::BTreeMap;

use crate::encode;

/// No expression produces more: a mistake in a case shall not take the machine's memory.
pub const MAX_BYTES: usize = 256 << 20;
/// Levels of nested calls.
const MAX_DEPTH: usize = 32;

/// Variables by name.
pub type Variables = BTreeMap<String, Vec<u8>>;

/// Evaluates a text.
///
/// # Errors
///
/// What is wrong, with the place as a byte offset.
pub fn evaluate(text: &str, variables: &Variables) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        if rest[..start].ends_with('$') {
            out.extend_from_slice(&rest.as_bytes()[..start - 1]);
            out.extend_from_slice(b"${");
            rest = &rest[start + 2..];
            continue;
        }
        out.extend_from_slice(&rest.as_bytes()[..start]);
        let mut parser = Parser { text: rest.as_bytes(), at: start + 2, variables };
        let value = parser.expression(0).and_then(|value| parser.expect(b'}').map(|()| value));
        out.extend(value.map_err(|why| format!("{why}, in {:?}", shortened(&rest[start..])))?);
        rest = &rest[parser.at..];
        if out.len() > MAX_BYTES {
            return Err(format!("more than {MAX_BYTES} bytes"));
        }
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    variables: &'a Variables,
}

impl Parser<'_> {
    fn expression(&mut self, depth: usize) -> Result<Vec<u8>, String> {
        if depth > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} nested calls"));
        }
        let mut value = self.term(depth)?;
        while self.next() == Some(b'+') {
            self.at += 1;
            value.extend(self.term(depth)?);
        }
        Ok(value)
    }

    fn term(&mut self, depth: usize) -> Result<Vec<u8>, String> {
        match self.next() {
            Some(quote @ (b'"' | b'\'')) => self.string(quote),
            Some(b'0'..=b'9') => Ok(self.take(|byte| byte.is_ascii_digit())),
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => {
                let name = self.take(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                let name = String::from_utf8_lossy(&name).into_owned();
                if self.text.get(self.at) == Some(&b'(') {
                    self.at += 1;
                    let arguments = self.arguments(depth)?;
                    return encode::call(&name, &arguments).map_err(|why| format!("{name}: {why}"));
                }
                self.variables.get(&name).cloned().ok_or_else(|| format!("no variable {name:?}"))
            }
            other => Err(format!("offset {}: unexpected {:?}", self.at, other.map(char::from))),
        }
    }

    fn arguments(&mut self, depth: usize) -> Result<Vec<Vec<u8>>, String> {
        let mut arguments = Vec::new();
        if self.next() == Some(b')') {
            self.at += 1;
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expression(depth + 1)?);
            match self.next() {
                Some(b',') => self.at += 1,
                _ => return self.expect(b')').map(|()| arguments),
            }
        }
    }

    fn string(&mut self, quote: u8) -> Result<Vec<u8>, String> {
        let start = self.at;
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let byte = *self.text.get(self.at).ok_or_else(|| format!("offset {start}: the string does not end"))?;
            self.at += 1;
            if byte == quote {
                return Ok(out);
            }
            out.push(if byte == b'\\' { self.escape()? } else { byte });
        }
    }

    fn escape(&mut self) -> Result<u8, String> {
        let byte = self.text.get(self.at).copied();
        self.at += 1;
        Ok(match byte {
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'0') => 0,
            Some(same @ (b'\\' | b'\'' | b'"')) => same,
            Some(b'x') => {
                let digits = self.text.get(self.at..self.at + 2).and_then(|digits| std::str::from_utf8(digits).ok());
                let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                self.at += 2;
                value.ok_or_else(|| format!("offset {}: \\x wants two hexadecimal digits", self.at))?
            }
            _ => return Err(format!("offset {}: unknown escape", self.at)),
        })
    }

    /// The next byte that is not white space.
    fn next(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn expect(&mut self, wanted: u8) -> Result<(), String> {
        match self.next() {
            Some(byte) if byte == wanted => {
                self.at += 1;
                Ok(())
            }
            other => {
                Err(format!("offset {}: {:?} instead of {:?}", self.at, other.map(char::from), char::from(wanted)))
            }
        }
    }

    fn take(&mut self, wanted: impl Fn(u8) -> bool) -> Vec<u8> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|byte| !wanted(*byte)).unwrap_or(rest.len());
        self.at += length;
        rest[..length].to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(template: &str) -> Result<String, String> {
        let variables = Variables::from([("sqli".to_owned(), b"' OR 1=1".to_vec()), ("n".to_owned(), b"3".to_vec())]);
        evaluate(template, &variables).map(|bytes| bytes.escape_ascii().to_string())
    }

    #[test]
    fn expressions_stand_in_text() {
        assert_eq!(text("q=${url(sqli)}&b").unwrap(), "q=%27%20OR%201%3D1&b");
        assert_eq!(text("${ repeat(n, 'a' + \"\\x00\") }").unwrap(), "a\\x00a\\x00a\\x00");
        assert_eq!(text("{\"a\": \"${series(2, 'k#', ',')}\"}").unwrap(), "{\\\"a\\\": \\\"k0,k1\\\"}");
        assert_eq!(text("$${jndi:x} ${n}").unwrap(), "${jndi:x} 3");
        assert_eq!(text("${url(url(\"'\"))}").unwrap(), "%2527");
    }

    #[test]
    fn mistakes_are_named() {
        assert!(text("${nothing}").unwrap_err().contains("no variable \"nothing\""));
        assert!(text("${nope(1)}").unwrap_err().contains("nope: no such function"));
        assert!(text("${url('a'").unwrap_err().contains("instead of"));
        assert!(text("${'a}").unwrap_err().contains("does not end"));
        assert!(text("${repeat('x', 'a')}").unwrap_err().contains("repeat: \"x\" is no number"));
        assert!(text("${repeat(999999999, 'aaaa')}").unwrap_err().contains("more than"));
    }
}
