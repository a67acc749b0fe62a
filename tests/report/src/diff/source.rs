//! JSON in pieces: a value at a time, and the line that it stands in.

use std::fmt;
use std::io::{self, BufRead};

use serde::de::DeserializeOwned;

/// Bytes of one request, of the totals, of anything that is read as one.
const LONGEST: usize = 64 << 20;
/// Bytes of a key.
const KEY: usize = 1_024;

/// Why a document cannot be read: the file, the line where that is known, and what is wrong.
#[derive(Debug)]
pub struct Error {
    /// The document, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// What is wrong, and what to do where there is something.
    pub what: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}: {}", self.file, self.line, self.what)
    }
}

impl std::error::Error for Error {}

/// Bytes with their line.
#[derive(Debug)]
pub(super) struct Source<R> {
    pub(super) name: String,
    input: R,
    line: u64,
    buffer: Vec<u8>,
}

impl<R: BufRead> Source<R> {
    pub(super) fn new(name: String, input: R) -> Self {
        Self { name, input, line: 1, buffer: Vec::new() }
    }

    /// The next byte that is no white space, not taken.
    pub(super) fn peek(&mut self) -> Result<Option<u8>, Error> {
        loop {
            let line = self.line;
            let bytes = match self.input.fill_buf() {
                Ok(bytes) => bytes,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
                Err(why) => {
                    return Err(Error { file: self.name.clone(), line, what: format!("cannot be read: {why}") });
                }
            };
            if bytes.is_empty() {
                return Ok(None);
            }
            let blank = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
            let next = bytes.get(blank).copied();
            self.line += bytes[..blank].iter().filter(|byte| **byte == b'\n').count() as u64;
            self.input.consume(blank);
            if next.is_some() {
                return Ok(next);
            }
        }
    }

    /// Takes the byte that was seen.
    pub(super) fn take(&mut self) {
        self.input.consume(1);
    }

    pub(super) fn open(&mut self, byte: u8, what: &str) -> Result<(), Error> {
        match self.peek()? {
            Some(found) if found == byte => self.take(),
            Some(_) => return Err(self.wrong(format!("{what} does not begin with {}", char::from(byte)))),
            None => return Err(self.cut_off(what)),
        }
        Ok(())
    }

    /// Whether another item comes; takes the comma before it, or the end.
    pub(super) fn more(&mut self, first: bool, end: u8, list: &str, item: &str) -> Result<bool, Error> {
        match self.peek()? {
            Some(byte) if byte == end => {
                self.take();
                Ok(false)
            }
            Some(b',') if !first => {
                self.take();
                match self.peek()? {
                    Some(byte) if byte == end => Err(self.wrong(format!("nothing comes after a comma in `{list}`"))),
                    Some(_) => Ok(true),
                    None => Err(self.cut_off(item)),
                }
            }
            Some(_) if first => Ok(true),
            Some(_) => Err(self.wrong(format!("a comma or the end of `{list}` is missing before {item}"))),
            None => Err(self.cut_off(item)),
        }
    }

    pub(super) fn key(&mut self) -> Result<String, Error> {
        if self.peek()? != Some(b'"') {
            return Err(self.wrong("the name of a field is missing"));
        }
        self.fill(KEY, "the name of a field")?;
        let key = self.parse("the name of a field", self.line)?;
        self.open(b':', "what comes after the name of a field")?;
        Ok(key)
    }

    pub(super) fn value<T: DeserializeOwned>(&mut self, what: &str) -> Result<T, Error> {
        if self.peek()?.is_none() {
            return Err(self.cut_off(what));
        }
        let line = self.line;
        self.fill(LONGEST, what)?;
        self.parse(what, line)
    }

    /// Puts one value into the buffer, as far as brackets and quotes tell.
    fn fill(&mut self, longest: usize, what: &str) -> Result<(), Error> {
        self.buffer.clear();
        let mut scan = Scan::default();
        while self.peek_raw(what, &scan)? {
            let bytes = self.input.fill_buf().unwrap_or_default();
            let (taken, ended) = scan.run(bytes);
            self.buffer.extend_from_slice(&bytes[..taken]);
            self.line += bytes[..taken].iter().filter(|byte| **byte == b'\n').count() as u64;
            self.input.consume(taken);
            if ended {
                return Ok(());
            }
            if self.buffer.len() > longest {
                return Err(self.wrong(format!("{what} is longer than {longest} bytes")));
            }
        }
        Ok(())
    }

    /// Makes sure that there are bytes; at the end, only a number or a word may stop.
    fn peek_raw(&mut self, what: &str, scan: &Scan) -> Result<bool, Error> {
        loop {
            match self.input.fill_buf() {
                Ok([]) if scan.bare() => return Ok(false),
                Ok([]) => return Err(self.cut_off(what)),
                Ok(_) => return Ok(true),
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(self.wrong(format!("cannot be read: {why}"))),
            }
        }
    }

    fn parse<T: DeserializeOwned>(&self, what: &str, line: u64) -> Result<T, Error> {
        // Paths cost time, and only errors need them.
        if let Ok(value) = serde_json::from_slice(&self.buffer) {
            return Ok(value);
        }
        let mut json = serde_json::Deserializer::from_slice(&self.buffer);
        let (path, why) = match serde_path_to_error::deserialize(&mut json) {
            Ok(value) => match json.end() {
                Ok(()) => return Ok(value),
                Err(why) => (String::new(), why),
            },
            Err(why) => (why.path().to_string(), why.into_inner()),
        };
        let field = if path.is_empty() || path == "." { String::new() } else { format!(", field `{path}`") };
        let text = why.to_string();
        // It counts lines and columns from where the value begins.
        let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
        let line = line + (why.line().max(1) as u64 - 1);
        Err(Error { file: self.name.clone(), line, what: format!("{what}{field}: {text}") })
    }

    pub(super) fn wrong(&self, what: impl Into<String>) -> Error {
        Error { file: self.name.clone(), line: self.line, what: what.into() }
    }

    fn cut_off(&self, what: &str) -> Error {
        self.wrong(format!("the document ends in or before {what}: it was cut off; let the replay come to its end"))
    }
}

/// Finds where a value ends.
#[derive(Debug, Default)]
struct Scan {
    depth: u64,
    quoted: bool,
    escaped: bool,
    began: bool,
}

impl Scan {
    /// How many of the bytes belong to the value, and whether it ends with them.
    fn run(&mut self, bytes: &[u8]) -> (usize, bool) {
        for (place, &byte) in bytes.iter().enumerate() {
            if self.escaped {
                self.escaped = false;
            } else if self.quoted {
                match byte {
                    b'\\' => self.escaped = true,
                    b'"' => self.quoted = false,
                    _ => continue,
                }
                if !self.quoted && self.depth == 0 {
                    return (place + 1, true);
                }
            } else {
                match byte {
                    b'"' if self.depth == 0 && self.began => return (place, true),
                    b'"' => self.quoted = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' | b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' if self.depth == 0 => {
                        return (place, true);
                    }
                    b'}' | b']' => {
                        self.depth -= 1;
                        if self.depth == 0 {
                            return (place + 1, true);
                        }
                    }
                    _ => {}
                }
            }
            self.began = true;
        }
        (bytes.len(), false)
    }

    /// Whether it is in a value that has no end of its own.
    fn bare(&self) -> bool {
        self.began && self.depth == 0 && !self.quoted
    }
}
