//! An HTTP/2 client that writes frames itself, for what no decent client does.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};

use crate::http::PATIENCE;

/// What a connection begins with (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Types of frames (RFC 9113, section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
/// The error code of a caller who does not want the answer any more.
const CANCEL: u32 = 8;

/// A connection.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    next: u32,
}

/// What came of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It still answers.
    Open,
    /// The other side has closed it, with GOAWAY or without.
    Closed,
}

/// A frame that came.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Connection {
    /// Opens a connection.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn open(to: SocketAddr) -> io::Result<Self> {
        let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(PREFACE)?;
        stream.write_all(&frame(SETTINGS, 0, 0, &[]))?;
        Ok(Self { stream, next: 1 })
    }

    /// Opens that many streams with a GET each and resets every one at once. `target` makes the target of each.
    ///
    /// # Errors
    ///
    /// When the connection is closed meanwhile: what was written until then has been sent.
    pub fn reset_streams(&mut self, count: usize, target: impl Fn(usize) -> String) -> io::Result<()> {
        let mut buffer = Vec::new();
        for index in 0..count {
            let block = head("GET", &target(index), &[]);
            let stream = self.stream_id();
            buffer.extend_from_slice(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &block));
            buffer.extend_from_slice(&frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes()));
            // As much in one write as there is: many of them come in one read.
            if buffer.len() > 60_000 || index + 1 == count {
                self.stream.write_all(&buffer)?;
                buffer.clear();
            }
        }
        Ok(())
    }

    /// Whether the other side still answers: everything that came before is read.
    #[must_use]
    pub fn end(&mut self) -> End {
        let asked = self.stream.write_all(&frame(PING, 0, 0, b"palisade"));
        loop {
            match (&asked, self.read()) {
                (_, Ok(frame)) if frame.kind == GOAWAY => return End::Closed,
                (Ok(()), Ok(frame)) if frame.kind == PING && frame.flags & ACK != 0 => return End::Open,
                (_, Ok(_)) => {}
                (_, Err(_)) => return End::Closed,
            }
        }
    }

    /// Sends a POST with a body and trailers, and returns the status and the body of the answer. A reset stream is an error.
    ///
    /// # Errors
    ///
    /// When the connection or the stream ends before the answer does.
    pub fn post_with_trailers(
        &mut self,
        target: &str,
        body: &[u8],
        trailers: &[(&str, &str)],
    ) -> io::Result<(u16, Vec<u8>)> {
        let stream = self.stream_id();
        let mut bytes = frame(
            HEADERS,
            END_HEADERS,
            stream,
            &head("POST", target, &[("content-type", "application/x-www-form-urlencoded")]),
        );
        if !body.is_empty() {
            bytes.extend_from_slice(&frame(DATA, 0, stream, body));
        }
        let block: Vec<u8> = trailers.iter().flat_map(|(name, value)| field(name, value)).collect();
        bytes.extend_from_slice(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &block));
        self.stream.write_all(&bytes)?;
        let (mut status, mut answer) = (0, Vec::new());
        loop {
            let frame = self.read()?;
            match frame.kind {
                _ if frame.stream != stream => continue,
                HEADERS if status == 0 => status = status_of(&frame.payload),
                DATA => answer.extend_from_slice(&frame.payload),
                RST_STREAM => return Err(io::Error::other("the stream was reset")),
                _ => {}
            }
            if matches!(frame.kind, HEADERS | DATA) && frame.flags & END_STREAM != 0 {
                return Ok((status, answer));
            }
        }
    }

    fn stream_id(&mut self) -> u32 {
        let id = self.next;
        self.next += 2;
        id
    }

    fn read(&mut self) -> io::Result<Frame> {
        let mut begin = [0; 9];
        self.stream.read_exact(&mut begin)?;
        let [a, b, c, kind, flags, stream @ ..] = begin;
        let mut payload = vec![0; usize::try_from(u32::from_be_bytes([0, a, b, c])).unwrap_or(0)];
        self.stream.read_exact(&mut payload)?;
        if kind == SETTINGS && flags & ACK == 0 {
            self.stream.write_all(&frame(SETTINGS, ACK, 0, &[]))?;
        }
        Ok(Frame { kind, flags, stream: u32::from_be_bytes(stream), payload })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The other side may have closed it.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame is short").to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// The head of a request, as literals that are not indexed (RFC 7541, section 6.2.2).
fn head(method: &str, target: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let own = [
        (":method", method),
        (":scheme", "http"),
        (":authority", "gateway.test"),
        (":path", target),
        ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"),
        ("accept", "*/*"),
    ];
    own.iter().chain(more).flat_map(|(name, value)| field(name, value)).collect()
}

fn field(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    for text in [name, value] {
        // A length with a prefix of seven bits (RFC 7541, section 5.1).
        let mut rest = text.len();
        if rest < 127 {
            bytes.push(u8::try_from(rest).unwrap_or(0));
        } else {
            bytes.push(127);
            rest -= 127;
            while rest >= 128 {
                bytes.push(u8::try_from(rest % 128).unwrap_or(0) | 128);
                rest /= 128;
            }
            bytes.push(u8::try_from(rest).unwrap_or(0));
        }
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

/// The status at the beginning of a block of headers: one of the static table, or a literal with its name from there.
/// 0 where it is written in another way.
fn status_of(block: &[u8]) -> u16 {
    // The size of the table may be set first.
    let block = match block {
        [size, rest @ ..] if size >> 5 == 1 && size & 31 != 31 => rest,
        [63, rest @ ..] => {
            rest.iter().position(|byte| byte & 128 == 0).and_then(|end| rest.get(end + 1..)).unwrap_or(rest)
        }
        block => block,
    };
    match block {
        [0x88, ..] => 200,
        [0x89, ..] => 204,
        [0x8a, ..] => 206,
        [0x8b, ..] => 304,
        [0x8c, ..] => 400,
        [0x8d, ..] => 404,
        [0x8e, ..] => 500,
        [0x08 | 0x48 | 0x18, 3, digits @ ..] => {
            digits.get(..3).and_then(|text| std::str::from_utf8(text).ok()?.parse().ok()).unwrap_or(0)
        }
        // In Huffman's code the digits 0, 1, 2 have five bits, 3 to 9 six (RFC 7541, appendix B).
        [0x08 | 0x48 | 0x18, length, code @ ..] if length & 128 != 0 => {
            code.get(..usize::from(length & 127)).map_or(0, digits_of)
        }
        _ => 0,
    }
}

/// Three decimal digits in Huffman's code.
fn digits_of(code: &[u8]) -> u16 {
    let bits: Vec<u8> = code.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    let number = |bits: &[u8]| bits.iter().fold(0_u16, |number, bit| number << 1 | u16::from(*bit));
    let (mut rest, mut value) = (bits.as_slice(), 0);
    for _ in 0..3 {
        let short = rest.get(..5).map_or(u16::MAX, number);
        let (digit, length) = match (short, rest.get(..6).map(number)) {
            (0..=2, _) => (short, 5),
            (_, Some(long @ 25..=31)) => (long - 22, 6),
            _ => return 0,
        };
        value = value * 10 + digit;
        rest = rest.get(length..).unwrap_or_default();
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_however_it_is_written() {
        assert_eq!(status_of(&[0x88, 1, 2]), 200);
        assert_eq!(status_of(b"\x48\x03403"), 403);
        // 403 and 302 in Huffman's code (RFC 7541, section C.6.1, has the second).
        assert_eq!(status_of(&[0x48, 0x82, 0x64, 0x02]), 302);
        // 4 is 011010, 0 is 00000, 3 is 011001: 0110 1000 0000 1100 1.
        assert_eq!(status_of(&[0x3f, 0xe1, 0x1f, 0x48, 0x83, 0x68, 0x0c, 0xff]), 403);
        assert_eq!(status_of(&[0x20, 0x88]), 200);
        assert_eq!(status_of(&[]), 0);
    }

    #[test]
    fn a_long_value_has_a_long_length() {
        assert_eq!(field("a", &"b".repeat(127))[3..5], [127, 0]);
        assert_eq!(field("a", &"b".repeat(255))[3..6], [127, 128, 1]);
    }
}
