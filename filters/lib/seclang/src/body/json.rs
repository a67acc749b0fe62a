//! JSON bodies, flattened to named arguments.

use std::collections::BTreeSet;
use std::fmt;

use super::Argument;
use super::names::Path;

/// The message of an error at [`Limits::depth`].
pub const TOO_DEEP: &str = "objects and arrays are nested too deep";
/// The message of an error at [`Limits::name_length`].
pub const PATH_TOO_LONG: &str = "the path to a value is too long";
/// The message of an error at what follows the text: another one, or anything else.
pub(crate) const TEXT_BEHIND: &str = "text after the value";

/// Limits of [`parse`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How deep objects and arrays may nest. Default 512.
    pub depth: usize,
    /// How many arguments are reported. Default 1000.
    pub arguments: usize,
    /// How long the path to a value may become, in bytes. Default 8192.
    pub name_length: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 512, arguments: 1000, name_length: 8192 }
    }
}

/// What [`parse`] saw besides the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// How many arguments were reported.
    pub arguments: usize,
    /// Whether there were more arguments than the limit. What follows the limit is still checked, not reported.
    pub limit_exceeded: bool,
}

/// Why a body is not JSON, or not within the limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    /// What is wrong.
    pub message: &'static str,
    /// The byte of the body the parser stopped at.
    pub offset: usize,
    /// How many bytes of the body were read when the last value was reported.
    pub reported: usize,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.message, self.offset)
    }
}

impl std::error::Error for JsonError {}

/// Parses one JSON text (RFC 8259) and reports each scalar as an argument.
///
/// The name is `json` and the path to the value, joined by dots: `json.a.array_0.b`, as in ModSecurity v3; an empty key is `empty-key`. Strings are
/// unescaped to UTF-8; numbers, `true` and `false` are reported as they are written; `null` is an empty value. So is an
/// empty object or array where the path to it has new keys: those that no argument before it had, and no other empty value.
/// Arguments before an error are reported.
pub fn parse(body: &[u8], limits: &Limits, sink: impl FnMut(Argument<'_>)) -> Result<Outcome, JsonError> {
    Parser::new(body, limits, sink).run()
}

/// An open object or array.
struct Container {
    /// How much of the path leads to it.
    path: usize,
    /// The index of an array's current element; none for an object.
    index: Option<usize>,
}

struct Parser<'a, S> {
    body: &'a [u8],
    at: usize,
    /// How far the body was read when the last value was reported.
    reported: usize,
    limits: &'a Limits,
    /// The name of the current value.
    path: Path,
    /// The containers around it: a stack of our own, so that nesting cannot exhaust that of the thread.
    open: Vec<Container>,
    /// The last string, unescaped.
    text: Vec<u8>,
    /// The names that were reported with an empty object or array. Each key of the body is in it at most once.
    empty: BTreeSet<Vec<u8>>,
    outcome: Outcome,
    sink: S,
}

impl<'a, S: FnMut(Argument<'_>)> Parser<'a, S> {
    fn new(body: &'a [u8], limits: &'a Limits, sink: S) -> Self {
        Self {
            body,
            at: 0,
            reported: 0,
            limits,
            path: Path::new(b"json"),
            open: Vec::new(),
            text: Vec::new(),
            empty: BTreeSet::new(),
            outcome: Outcome::default(),
            sink,
        }
    }

    fn run(&mut self) -> Result<Outcome, JsonError> {
        loop {
            if self.value()? && !self.next_in_container()? {
                return if self.peek().is_none() { Ok(self.outcome) } else { self.fail(TEXT_BEHIND) };
            }
        }
    }

    fn fail<T>(&self, message: &'static str) -> Result<T, JsonError> {
        Err(JsonError { message, offset: self.at.min(self.body.len()), reported: self.reported })
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        while matches!(self.body.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        self.body.get(self.at).copied()
    }

    /// Reads a scalar, or the start of a container. True if the value is complete.
    fn value(&mut self) -> Result<bool, JsonError> {
        match self.peek() {
            Some(open @ (b'{' | b'[')) => {
                self.at += 1;
                if self.open.len() == self.limits.depth {
                    return self.fail(TOO_DEEP);
                }
                let object = open == b'{';
                if self.peek() == Some(if object { b'}' } else { b']' }) {
                    self.at += 1;
                    self.report_empty();
                    return Ok(true);
                }
                self.open.push(Container { path: self.path.len(), index: if object { None } else { Some(0) } });
                if object {
                    self.key()?
                } else {
                    self.room(b"array_0".len())?;
                    self.path.push_index(b"array_0");
                }
                Ok(false)
            }
            Some(b'"') => {
                self.string()?;
                self.report(None);
                Ok(true)
            }
            Some(b't') => self.literal(b"true", b"true"),
            Some(b'f') => self.literal(b"false", b"false"),
            Some(b'n') => self.literal(b"null", b""),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => self.fail("a value was expected"),
            None => self.fail("the text ends where a value was expected"),
        }
    }

    /// After a value: moves on to the next one of the containers around it. False if none is left open.
    fn next_in_container(&mut self) -> Result<bool, JsonError> {
        loop {
            let next = self.peek();
            let Some(container) = self.open.last_mut() else {
                return Ok(false);
            };
            self.path.truncate(container.path);
            match (next, &mut container.index) {
                (Some(b','), None) => {
                    self.at += 1;
                    self.key()?;
                    return Ok(true);
                }
                (Some(b','), Some(index)) => {
                    self.at += 1;
                    *index += 1;
                    let index = format!("array_{index}");
                    self.room(index.len())?;
                    self.path.push_index(index.as_bytes());
                    return Ok(true);
                }
                (Some(b'}'), None) | (Some(b']'), Some(_)) => {
                    self.at += 1;
                    self.open.pop();
                }
                (None, _) => return self.fail("the text ends within an object or array"),
                (Some(_), None) => return self.fail("a comma or } was expected"),
                (Some(_), Some(_)) => return self.fail("a comma or ] was expected"),
            }
        }
    }

    /// Reads a key and the colon, and appends the key to the path.
    fn key(&mut self) -> Result<(), JsonError> {
        if self.peek() != Some(b'"') {
            return self.fail("a key in quotes was expected");
        }
        self.string()?;
        let key = std::mem::take(&mut self.text);
        let name: &[u8] = if key.is_empty() { b"empty-key" } else { &key };
        self.room(name.len())?;
        self.path.push(name);
        self.text = key;
        if self.peek() != Some(b':') {
            return self.fail("a colon was expected");
        }
        self.at += 1;
        Ok(())
    }

    /// Whether the path has space for a name of this length.
    fn room(&self, length: usize) -> Result<(), JsonError> {
        if self.path.len() + 1 + length > self.limits.name_length {
            return self.fail(PATH_TOO_LONG);
        }
        Ok(())
    }

    /// Reports an empty object or array: a key must not be in front of no rule because nothing is behind it. Once: in a
    /// list, every element may have the same empty members.
    fn report_empty(&mut self) {
        if self.outcome.limit_exceeded {
            return;
        }
        let Some(names) = self.path.new_names() else { return };
        // Names are searched and kept once, however many values follow below them.
        if self.empty.contains(names) {
            self.path.names_are_known();
        } else if self.outcome.arguments == self.limits.arguments {
            self.outcome.limit_exceeded = true;
        } else {
            self.empty.insert(names.to_vec());
            self.report(Some(b""));
        }
    }

    /// Reports a value: the given one, or the last string.
    fn report(&mut self, value: Option<&[u8]>) {
        if self.outcome.arguments == self.limits.arguments {
            self.outcome.limit_exceeded = true;
            return;
        }
        self.reported = self.at;
        self.outcome.arguments += 1;
        (self.sink)(self.path.argument(value.unwrap_or(&self.text)));
    }

    fn literal(&mut self, word: &'static [u8], value: &'static [u8]) -> Result<bool, JsonError> {
        if !self.body.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return self.fail("a value was expected");
        }
        self.at += word.len();
        self.report(Some(value));
        Ok(true)
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while self.body.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start { self.fail("a digit was expected") } else { Ok(()) }
    }

    fn number(&mut self) -> Result<bool, JsonError> {
        let start = self.at;
        self.at += usize::from(self.body.get(self.at) == Some(&b'-'));
        if self.body.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.body.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.body.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.body.get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        let body = self.body;
        self.report(body.get(start..self.at));
        Ok(true)
    }

    /// Reads the string at the cursor into `text`.
    fn string(&mut self) -> Result<(), JsonError> {
        self.at += 1;
        self.text.clear();
        loop {
            let rest = self.body.get(self.at..).unwrap_or_default();
            let plain = rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)).count();
            let plain = rest.get(..plain).unwrap_or_default();
            if let Err(error) = std::str::from_utf8(plain) {
                self.at += error.valid_up_to();
                return self.fail("a string is not UTF-8");
            }
            self.text.extend_from_slice(plain);
            self.at += plain.len();
            match self.body.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(_) => return self.fail("a control character must be escaped in a string"),
                None => return self.fail("the text ends within a string"),
            }
        }
    }

    fn escape(&mut self) -> Result<(), JsonError> {
        let plain = match self.body.get(self.at + 1) {
            Some(&byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return self.fail("there is no such escape in a string"),
        };
        self.text.push(plain);
        self.at += 2;
        Ok(())
    }

    fn unicode_escape(&mut self) -> Result<(), JsonError> {
        let Some(high) = self.code_unit(self.at) else {
            return self.fail("\\u needs four hexadecimal digits");
        };
        self.at += 6;
        let mut code = high;
        if matches!(high, 0xd800..0xdc00)
            && let Some(low @ 0xdc00..0xe000) = self.code_unit(self.at)
        {
            self.at += 6;
            code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        }
        // Half a surrogate pair is no character: `?`, as the usual parsers have it.
        let character = char::from_u32(code).unwrap_or('?');
        self.text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    /// The code unit of a `\uHHHH` at `at`.
    fn code_unit(&self, at: usize) -> Option<u32> {
        let digits = self.body.get(at..at + 6)?.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |code, &digit| Some(code << 4 | char::from(digit).to_digit(16)?))
    }
}

#[cfg(test)]
mod tests;
