//! Traces as protobuf, one by itself or each after its length.

use std::io::{self, BufRead, Read};

use prost::Message as _;

use super::Trace;
use super::messages::Wrapper;
use crate::formats::too_long;
use crate::json::unreadable;

/// A file that is one message.
pub(crate) struct Single {
    bytes: Option<Box<dyn BufRead + Send>>,
    limit: usize,
}

/// A file of messages after their lengths.
pub(crate) struct Delimited {
    bytes: Option<Box<dyn BufRead + Send>>,
    limit: usize,
    offset: u64,
}

impl Single {
    pub(crate) fn new(bytes: Box<dyn BufRead + Send>, limit: usize) -> Self {
        Self { bytes: Some(bytes), limit }
    }
}

impl Iterator for Single {
    type Item = Result<Trace, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut bytes = self.bytes.take()?;
        let mut message = Vec::new();
        let limit = u64::try_from(self.limit).unwrap_or(u64::MAX);
        if let Err(error) = (&mut bytes).take(limit.saturating_add(1)).read_to_end(&mut message) {
            return Some(Err(unreadable(&error)));
        }
        if message.len() > self.limit {
            let rest = io::copy(&mut bytes, &mut io::sink()).unwrap_or(0);
            return Some(Err(too_long(limit.saturating_add(1).saturating_add(rest), self.limit)));
        }
        Some(decode(&message))
    }
}

impl Delimited {
    pub(crate) fn new(bytes: Box<dyn BufRead + Send>, limit: usize) -> Self {
        Self { bytes: Some(bytes), limit, offset: 0 }
    }

    /// The next message; `None` at the end.
    fn cut(&mut self) -> Result<Option<Result<Vec<u8>, u64>>, String> {
        let Some(bytes) = self.bytes.as_mut() else { return Ok(None) };
        let mut length = Vec::new();
        let length = loop {
            let mut byte = Vec::new();
            (&mut *bytes).take(1).read_to_end(&mut byte).map_err(|error| unreadable(&error))?;
            if byte.is_empty() && length.is_empty() {
                return Ok(None);
            }
            length.extend_from_slice(&byte);
            if let Some((number, _)) = crate::format::varint(&length) {
                break number;
            }
            if byte.is_empty() || length.len() >= 10 {
                return Err(format!("byte {}: the length of a message is no number or cut", self.offset));
            }
        };
        let begin = self.offset;
        self.offset = begin.saturating_add(length);
        let mut message = Vec::new();
        let too_long = usize::try_from(length).map_or(true, |length| length > self.limit);
        let read = if too_long {
            io::copy(&mut bytes.take(length), &mut io::sink())
        } else {
            bytes.take(length).read_to_end(&mut message).map(|count| u64::try_from(count).unwrap_or(u64::MAX))
        };
        match read {
            Err(error) => Err(unreadable(&error)),
            Ok(count) if count < length => {
                Err(format!("the file breaks off: the message at byte {begin} has {count} of its {length} bytes"))
            }
            Ok(_) if too_long => Ok(Some(Err(length))),
            Ok(_) => Ok(Some(Ok(message))),
        }
    }
}

impl Iterator for Delimited {
    type Item = Result<Trace, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let begin = self.offset;
        match self.cut() {
            Ok(None) => None,
            Ok(Some(Ok(message))) => Some(decode(&message).map_err(|why| format!("byte {begin}: {why}"))),
            Ok(Some(Err(length))) => Some(Err(too_long(length, self.limit))),
            Err(why) => {
                self.bytes = None;
                Some(Err(why))
            }
        }
    }
}

fn decode(message: &[u8]) -> Result<Trace, String> {
    Wrapper::decode(message).map(Trace::from).map_err(|error| format!("no trace as protobuf: {error}"))
}
