//! JSON values cut out of a stream: no document is ever in memory as a whole.

mod parse;

use std::fmt;
use std::io::{self, BufRead};

use memchr::memchr3;

pub(crate) use parse::{Fault, parse};

/// Where keys end that nobody looks for.
const KEY_LIMIT: usize = 1 << 10;

/// Walks over a stream of JSON.
pub(crate) struct Scanner<R> {
    input: R,
    offset: u64,
    line: u64,
    one_per_document: bool,
}

/// A value that was cut out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Its text is in the buffer.
    Whole,
    /// It has so many bytes, over the limit; none of them are kept.
    TooLong(u64),
}

/// Why a stream cannot be read further.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It ends in the middle of something, at this offset.
    Ends(u64),
    /// It is no JSON; what was expected, and the line.
    Syntax(&'static str, u64),
    /// It cannot be read.
    Io(io::Error),
}

impl<R: BufRead> Scanner<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, offset: 0, line: 1, one_per_document: false }
    }

    /// For documents one after the other, of which only the first line begins with a brace in its first column: where the
    /// next one begins, a broken one ends.
    pub(crate) fn of_documents(input: R) -> Self {
        Self { one_per_document: true, ..Self::new(input) }
    }

    /// The line of the next byte, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// The next byte that is no white space, which stays; `None` at the end.
    pub(crate) fn peek(&mut self) -> Result<Option<u8>, Stop> {
        loop {
            let chunk = fill(&mut self.input)?;
            let Some(&first) = chunk.first() else { return Ok(None) };
            // A byte order mark at the beginning.
            let mark = self.offset < 3 && matches!(first, 0xef | 0xbb | 0xbf);
            if !mark && !first.is_ascii_whitespace() {
                return Ok(Some(first));
            }
            self.advance(1);
        }
    }

    /// Goes past one byte after white space.
    pub(crate) fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), Stop> {
        match self.peek()? {
            Some(found) if found == byte => {
                self.advance(1);
                Ok(())
            }
            Some(_) => Err(Stop::Syntax(what, self.line)),
            None => Err(Stop::Ends(self.offset)),
        }
    }

    /// Goes past a separator where it comes next.
    pub(crate) fn accept(&mut self, byte: u8) -> Result<bool, Stop> {
        let found = self.peek()? == Some(byte);
        if found {
            self.advance(1);
        }
        Ok(found)
    }

    /// Enters the object that comes next and goes up to the value of a key; `false` where it has none such.
    pub(crate) fn enter(&mut self, key: &str) -> Result<bool, Stop> {
        self.expect(b'{', "an object")?;
        if self.accept(b'}')? {
            return Ok(false);
        }
        loop {
            let mut name = Vec::new();
            if self.peek()?.is_some_and(|byte| byte != b'"') {
                return Err(Stop::Syntax("a key", self.line));
            }
            let cut = self.value(&mut name, KEY_LIMIT)?;
            self.expect(b':', "a colon")?;
            if cut == Cut::Whole && serde_json::from_slice::<String>(&name).is_ok_and(|name| name == key) {
                return Ok(true);
            }
            self.value(&mut Vec::new(), 0)?;
            if self.accept(b'}')? {
                return Ok(false);
            }
            self.expect(b',', "a comma or the end of an object")?;
        }
    }

    /// Cuts out the value that comes next. Whether it is JSON inside is for others to say.
    pub(crate) fn value(&mut self, into: &mut Vec<u8>, limit: usize) -> Result<Cut, Stop> {
        into.clear();
        let mut length = 0_u64;
        let mut state = match self.peek()? {
            None => return Err(Stop::Ends(self.offset)),
            Some(b',' | b':' | b']' | b'}') => return Err(Stop::Syntax("a value", self.line)),
            Some(first) => State {
                scalar: !matches!(first, b'"' | b'{' | b'['),
                one_per_document: self.one_per_document,
                ..State::default()
            },
        };
        loop {
            let chunk = fill(&mut self.input)?;
            if chunk.is_empty() {
                if state.scalar {
                    break;
                }
                return Err(Stop::Ends(self.offset));
            }
            let (used, done) = state.take(chunk);
            length = length.saturating_add(u64::try_from(used).unwrap_or(u64::MAX));
            if usize::try_from(length).is_ok_and(|length| length <= limit) {
                into.extend_from_slice(&chunk[..used]);
            } else {
                *into = Vec::new();
            }
            self.advance(used);
            if done {
                break;
            }
        }
        let fits = usize::try_from(length).is_ok_and(|length| length <= limit);
        Ok(if fits { Cut::Whole } else { Cut::TooLong(length) })
    }

    /// Goes to the next line that begins with a brace; `false` at the end.
    pub(crate) fn resume(&mut self) -> Result<bool, Stop> {
        loop {
            loop {
                let chunk = fill(&mut self.input)?;
                if chunk.is_empty() {
                    return Ok(false);
                }
                let end = memchr::memchr(b'\n', chunk);
                let used = end.map_or(chunk.len(), |end| end + 1);
                self.advance(used);
                if end.is_some() {
                    break;
                }
            }
            if fill(&mut self.input)?.first() == Some(&b'{') {
                return Ok(true);
            }
        }
    }

    fn advance(&mut self, count: usize) {
        // What was looked at is in the buffer: this cannot fail.
        if let Ok(chunk) = self.input.fill_buf() {
            let count = count.min(chunk.len());
            self.line += u64::try_from(memchr::memchr_iter(b'\n', &chunk[..count]).count()).unwrap_or(0);
            self.offset += u64::try_from(count).unwrap_or(0);
            self.input.consume(count);
        }
    }
}

/// Where in a value the scanner is.
#[derive(Debug, Default)]
struct State {
    depth: u64,
    in_string: bool,
    escaped: bool,
    scalar: bool,
    one_per_document: bool,
    /// The next byte is the first of a line.
    begins_line: bool,
}

impl State {
    /// How many bytes of a chunk belong to the value, and whether it ends with them.
    fn take(&mut self, chunk: &[u8]) -> (usize, bool) {
        if self.scalar {
            let ends =
                |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b':' | b']' | b'}' | b'[' | b'{');
            let end = chunk.iter().position(ends);
            return (end.unwrap_or(chunk.len()), end.is_some());
        }
        let mut at = 0;
        while at < chunk.len() {
            if std::mem::take(&mut self.begins_line) && self.one_per_document && chunk[at] == b'{' {
                return (at, true);
            }
            if self.escaped {
                self.escaped = false;
                at += 1;
            } else if self.in_string {
                let Some(found) = memchr3(b'"', b'\\', b'\n', &chunk[at..]) else { return (chunk.len(), false) };
                at += found + 1;
                if chunk[at - 1] == b'\n' {
                    self.begins_line = true;
                    continue;
                }
                if chunk[at - 1] == b'\\' {
                    self.escaped = true;
                    continue;
                }
                self.in_string = false;
                if self.depth == 0 {
                    return (at, true);
                }
            } else {
                at += 1;
                match chunk[at - 1] {
                    b'"' => self.in_string = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                    b'\n' => {
                        self.begins_line = true;
                        continue;
                    }
                    _ => continue,
                }
                if self.depth == 0 && !self.in_string {
                    return (at, true);
                }
            }
        }
        (at, false)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ends(offset) => write!(f, "the file breaks off at byte {offset}; what is before that was read"),
            Self::Syntax(what, line) => write!(f, "line {line}: expected {what}; the rest of the file is left out"),
            Self::Io(error) => f.write_str(&unreadable(error)),
        }
    }
}

/// Why a file cannot be read further, for people.
pub(crate) fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            "the file breaks off in its compressed data; what is before that was read".to_owned()
        }
        _ => format!("the rest cannot be read: {error}"),
    }
}

fn fill(input: &mut impl BufRead) -> io::Result<&[u8]> {
    // Asked once to get past interruptions; the second call only borrows what is there.
    while let Err(error) = input.fill_buf() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    input.fill_buf()
}

/// The first key of the object that a text begins with.
pub(crate) fn first_key(head: &[u8]) -> Option<String> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let inner = head.strip_prefix(b"{")?.trim_ascii_start();
    let quoted = inner.strip_prefix(b"\"")?;
    let end = quoted.iter().take(KEY_LIMIT).position(|&byte| byte == b'"')?;
    String::from_utf8(quoted[..end].to_vec()).ok()
}

#[cfg(test)]
mod tests;
