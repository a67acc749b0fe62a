//! Our own format: JSON lines.

pub(crate) mod line;
mod text;

use std::io::{self, BufRead};

use crate::json::{self, Fault, unreadable};
use crate::{BadEntry, Entry, Input};

use super::too_long;

/// The entries of a file, one on each line; empty lines are allowed.
pub(crate) struct Lines {
    input: Input,
    text: Vec<u8>,
    line: u64,
    number: u64,
    done: bool,
}

impl Lines {
    pub(crate) fn new(input: Input) -> Self {
        Self { input, text: Vec::new(), line: 0, number: 0, done: false }
    }
}

impl Iterator for Lines {
    type Item = Result<Entry, BadEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.done {
            self.line += 1;
            match next_line(&mut self.input.bytes, &mut self.text, self.input.limit) {
                Err(error) => {
                    self.done = true;
                    return Some(Err(self.input.bad(self.number + 1, unreadable(&error))));
                }
                Ok(0) => self.done = true,
                Ok(length) if length > u64::try_from(self.input.limit).unwrap_or(u64::MAX) => {
                    self.number += 1;
                    let why = format!("line {}: {}", self.line, too_long(length, self.input.limit));
                    return Some(Err(self.input.bad(self.number, why)));
                }
                Ok(_) => {
                    let text = self.text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.text).trim_ascii();
                    if text.is_empty() {
                        continue;
                    }
                    self.number += 1;
                    let entry = json::parse::<line::Line>(text)
                        .map_err(explain)
                        .and_then(|line| line.entry(self.input.place(self.number), &self.input.peer));
                    let place = || self.input.place(self.number);
                    return Some(
                        entry.map_err(|why| BadEntry { place: place(), why: format!("line {}: {why}", self.line) }),
                    );
                }
            }
        }
        None
    }
}

/// Reads a line and tells its length; one that is longer than the limit is not kept. 0 is the end.
fn next_line(input: &mut impl BufRead, into: &mut Vec<u8>, limit: usize) -> io::Result<u64> {
    into.clear();
    let mut length = 0_u64;
    loop {
        let chunk = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        let end = memchr::memchr(b'\n', chunk);
        let used = end.map_or(chunk.len(), |end| end + 1);
        length = length.saturating_add(u64::try_from(used).unwrap_or(u64::MAX));
        if usize::try_from(length).is_ok_and(|length| length <= limit) {
            into.extend_from_slice(&chunk[..used]);
        } else {
            *into = Vec::new();
        }
        let is_last = end.is_some() || chunk.is_empty();
        input.consume(used);
        if is_last {
            return Ok(length);
        }
    }
}

/// What is wrong with a line, and what an unknown field may have been meant to be.
fn explain(fault: Fault) -> String {
    let Fault { path, column, why, .. } = fault;
    if !why.starts_with("unknown field") {
        return if path == "." {
            format!("{why} (column {column})")
        } else {
            format!("`{path}`: {why} (column {column})")
        };
    }
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", &path));
    let known = match parent {
        "" => line::FIELDS.as_slice(),
        "request" => line::REQUEST_FIELDS.as_slice(),
        "response" => line::RESPONSE_FIELDS.as_slice(),
        _ => &["base64"],
    };
    let nearest = known.iter().min_by_key(|field| strsim::osa_distance(field, name));
    let near = nearest.filter(|field| strsim::osa_distance(field, name) <= 3);
    let hint = match near {
        Some(field) => format!("did you mean `{field}`?"),
        None => format!("there are {}", known.join(", ")),
    };
    format!("there is no field `{}`; {hint} (column {column})", path.escape_debug())
}
