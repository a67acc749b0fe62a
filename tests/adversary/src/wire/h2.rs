//! HTTP/2 by hand: header blocks in pieces, streams that are reset, frames that no client would send.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::{Answers, Ended, Patience, ended, hpack};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
/// The most that a frame may hold unless the peer says otherwise.
const MAX_FRAME: usize = 16_384;
/// What may be sent before the peer has opened its window.
const FIRST_WINDOW: usize = 65_535;
/// More than this of answers is not read.
const MAX_ANSWER: usize = 16 << 20;

/// What to send on one connection.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The fields of each request, pseudo-headers first if the request is a good one.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// The body; none for a request that ends with its headers. At most 65,535 bytes: windows are not waited for.
    pub body: Option<Vec<u8>>,
    /// Trailers.
    pub trailers: Vec<(Vec<u8>, Vec<u8>)>,
    /// The header block goes out in pieces of so many bytes, in HEADERS and CONTINUATION frames; 0: as few as possible.
    pub split: usize,
    /// How many requests.
    pub repeat: usize,
    /// Every one is reset as soon as it is sent.
    pub reset: bool,
    /// The last frame of a request does not end its stream.
    pub unfinished: bool,
    /// Frames that go out before the requests, as they are on the wire.
    pub raw: Vec<u8>,
}

/// A frame.
#[must_use]
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(9 + payload.len());
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
    out
}

/// Sends a plan on a connection of its own and reads what comes back until every request has its end.
#[must_use]
pub fn exchange(to: SocketAddr, plan: &Plan, patience: Patience) -> Answers {
    match talk(to, plan, patience) {
        Ok(answers) => answers,
        Err(error) => Answers { ended: Some(ended(&error)), ..Answers::default() },
    }
}

fn talk(to: SocketAddr, plan: &Plan, patience: Patience) -> io::Result<Answers> {
    let mut stream = TcpStream::connect_timeout(&to, patience.first)?;
    stream.set_write_timeout(Some(patience.first))?;
    stream.set_nodelay(true)?;
    let mut out = PREFACE.to_vec();
    // No dynamic table for answers; streams may send all they have.
    let settings = [[0, 1, 0, 0, 0, 0], [0, 4, 0x3f, 0xff, 0xff, 0xff]].concat();
    out.extend(frame(SETTINGS, 0, 0, &settings));
    out.extend_from_slice(&plan.raw);
    let streams: Vec<u32> = (0..plan.repeat as u32).map(|number| 2 * number + 1).collect();
    // A gateway that has seen enough closes while we still write: what it answered counts.
    let mut written = stream.write_all(&out);
    for &id in &streams {
        if written.is_err() {
            break;
        }
        written = stream.write_all(&request(plan, id));
    }
    let mut reader = Reader { stream, buffer: Vec::new(), read: 0 };
    let answers = reader.answers(plan, &streams, patience);
    Ok(match (answers.ended, written) {
        (Some(Ended::Silent), Err(_)) => Answers { ended: Some(Ended::Closed), ..answers },
        _ => answers,
    })
}

fn request(plan: &Plan, id: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let more = plan.body.is_some() || !plan.trailers.is_empty() || plan.unfinished;
    block(&plan.fields, plan.split, id, !more, &mut out);
    if let Some(body) = &plan.body {
        let body = &body[..body.len().min(FIRST_WINDOW)];
        let mut pieces = body.chunks(MAX_FRAME).peekable();
        if pieces.peek().is_none() {
            out.extend(frame(DATA, ends(plan), id, &[]));
        }
        while let Some(piece) = pieces.next() {
            let flags = if pieces.peek().is_none() { ends(plan) } else { 0 };
            out.extend(frame(DATA, flags, id, piece));
        }
    }
    if !plan.trailers.is_empty() {
        block(&plan.trailers, plan.split, id, !plan.unfinished, &mut out);
    }
    if plan.reset {
        out.extend(frame(RST_STREAM, 0, id, &8_u32.to_be_bytes()));
    }
    out
}

fn ends(plan: &Plan) -> u8 {
    if plan.trailers.is_empty() && !plan.unfinished { END_STREAM } else { 0 }
}

fn block(fields: &[(Vec<u8>, Vec<u8>)], split: usize, id: u32, end: bool, out: &mut Vec<u8>) {
    let whole: Vec<u8> = fields.iter().flat_map(|(name, value)| hpack::field(name, value)).collect();
    let size = if split == 0 { MAX_FRAME } else { split.min(MAX_FRAME) };
    let pieces: Vec<&[u8]> = if whole.is_empty() { vec![&[]] } else { whole.chunks(size).collect() };
    for (number, piece) in pieces.iter().enumerate() {
        let last = number + 1 == pieces.len();
        let mut flags = if last { END_HEADERS } else { 0 };
        if number == 0 && end {
            flags |= END_STREAM;
        }
        out.extend(frame(if number == 0 { HEADERS } else { CONTINUATION }, flags, id, piece));
    }
}

struct Reader {
    stream: TcpStream,
    buffer: Vec<u8>,
    read: usize,
}

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Reader {
    fn answers(&mut self, plan: &Plan, streams: &[u32], patience: Patience) -> Answers {
        let mut answers = Answers::default();
        let mut open: BTreeSet<u32> = if plan.reset { BTreeSet::new() } else { streams.iter().copied().collect() };
        let mut blocks: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        // After resets and odd frames only the connection's end can come: a moment is enough.
        let first = if open.is_empty() { patience.more.max(Duration::from_millis(200)) } else { patience.first };
        let deadline = Instant::now() + first;
        let mut end = None;
        while end.is_none() && (!open.is_empty() || plan.repeat == 0 || plan.reset) {
            let frame = match self.next(deadline) {
                Ok(frame) => frame,
                Err(error) => {
                    end = Some(ended(&error));
                    break;
                }
            };
            match frame.kind {
                HEADERS | CONTINUATION => {
                    let block = blocks.entry(frame.stream).or_default();
                    block.extend_from_slice(fragment(&frame));
                    if frame.flags & END_HEADERS != 0 {
                        // Trailers and interim answers have no final status.
                        answers.statuses.extend(hpack::status(block).filter(|status| *status >= 200));
                        block.clear();
                    }
                    if frame.kind == HEADERS && frame.flags & END_STREAM != 0 {
                        open.remove(&frame.stream);
                    }
                }
                DATA => {
                    answers.text.push_str(&String::from_utf8_lossy(&frame.payload));
                    if frame.flags & END_STREAM != 0 {
                        open.remove(&frame.stream);
                    }
                }
                RST_STREAM => {
                    open.remove(&frame.stream);
                    // A stream that is reset behind its answer is no refusal.
                    if answers.statuses.is_empty() && open.is_empty() {
                        end = Some(Ended::Closed);
                    }
                }
                GOAWAY => end = Some(Ended::Closed),
                SETTINGS if frame.flags & ACK == 0 => self.send(&self::frame(SETTINGS, ACK, 0, &[])),
                PING if frame.flags & ACK == 0 => self.send(&self::frame(PING, ACK, 0, &frame.payload)),
                _ => {}
            }
        }
        if answers.statuses.is_empty() {
            answers.ended = end;
        }
        answers
    }

    /// The peer may have closed: then the next read says so.
    fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    fn next(&mut self, deadline: Instant) -> io::Result<Frame> {
        loop {
            if let Some(head) = self.buffer.get(..9) {
                let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
                if self.buffer.len() >= 9 + length {
                    let whole: Vec<u8> = self.buffer.drain(..9 + length).collect();
                    let stream = u32::from_be_bytes([whole[5], whole[6], whole[7], whole[8]]) & 0x7fff_ffff;
                    return Ok(Frame { kind: whole[3], flags: whole[4], stream, payload: whole[9..].to_vec() });
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.stream.set_read_timeout(Some(left))?;
            let mut piece = [0; 16_384];
            let count = self.stream.read(&mut piece)?;
            self.read += count;
            if count == 0 || self.read > MAX_ANSWER {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.buffer.extend_from_slice(&piece[..count]);
            if self.buffer.starts_with(b"HTTP/1") {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
    }
}

/// A header block's fragment without padding and priority.
fn fragment(frame: &Frame) -> &[u8] {
    let mut rest = frame.payload.as_slice();
    if frame.kind == HEADERS && frame.flags & 0x08 != 0 {
        let padding = rest.first().copied().map_or(0, usize::from);
        rest = rest.get(1..rest.len().saturating_sub(padding)).unwrap_or_default();
    }
    if frame.kind == HEADERS && frame.flags & 0x20 != 0 {
        rest = rest.get(5..).unwrap_or_default();
    }
    rest
}

#[cfg(test)]
mod tests {
    use palisade_tests::backend::Backend;

    use super::*;

    const PATIENCE: Patience = Patience { first: Duration::from_secs(20), more: Duration::from_millis(200) };

    fn plan(path: &str) -> Plan {
        let fields = [(":method", "POST"), (":scheme", "http"), (":authority", "demo.test"), (":path", path)];
        Plan {
            fields: fields.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect(),
            body: Some(b"hello".to_vec()),
            repeat: 1,
            ..Plan::default()
        }
    }

    #[test]
    fn requests_and_trailers_arrive_in_any_number_of_pieces() {
        let backend = Backend::start();
        for split in [0, 1, 7] {
            let trailers = vec![(b"x-checksum".to_vec(), b"12".to_vec())];
            let answers = exchange(backend.address(), &Plan { split, trailers, ..plan("/echo") }, PATIENCE);
            assert_eq!(answers.statuses, [200], "{answers:?}");
            assert!(answers.text.contains("\"body_length\":5"), "{answers:?}");
            assert!(answers.text.contains("x-checksum"), "the backend shows trailers: {answers:?}");
        }
        let three = exchange(backend.address(), &Plan { repeat: 3, ..plan("/status/404") }, PATIENCE);
        assert_eq!(three.statuses, [404, 404, 404]);
    }

    #[test]
    fn a_connection_that_ends_is_told_from_one_that_answers() {
        let backend = Backend::start();
        let odd = Plan { raw: frame(CONTINUATION, 0, 1, b"x"), ..Plan::default() };
        assert_eq!(exchange(backend.address(), &odd, PATIENCE).ended, Some(Ended::Closed));
        let reset = Plan { reset: true, repeat: 5, ..plan("/") };
        assert!(exchange(backend.address(), &reset, PATIENCE).statuses.is_empty());
    }
}
