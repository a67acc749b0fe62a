//! Decompressed streams, under the limits of an archive.

use flate2::{Crc, FlushDecompress, Status};

use super::coding::{Broken, Budget, Coding, Stream};
use super::{Opener, Stop};

/// How much is decompressed at once, in bytes: more than is needed to tell what it is ([`identify`](crate::identify)).
pub(super) const CHUNK: usize = 40 << 10;

/// A decompressed stream.
pub(super) struct Unpacked {
    /// How many bytes of the input it took.
    pub(super) taken: usize,
    /// How many bytes it has.
    pub(super) length: u64,
    /// Its CRC-32.
    pub(super) crc: u32,
    /// It ended as it should; otherwise it is damaged, or the input ends too early.
    pub(super) ended: bool,
    /// Its bytes, as far as they were kept.
    pub(super) kept: Vec<u8>,
    /// All of its bytes were kept.
    pub(super) whole: bool,
}

/// A stream while it is decompressed.
struct Sink<K> {
    /// Says of the first bytes whether the rest is kept.
    keeps: K,
    keep: bool,
    crc: Crc,
    unpacked: Unpacked,
}

impl<K: Fn(&[u8]) -> bool> Sink<K> {
    fn new(keeps: K) -> Self {
        let unpacked = Unpacked { taken: 0, length: 0, crc: 0, ended: false, kept: Vec::new(), whole: true };
        Self { keeps, keep: true, crc: Crc::new(), unpacked }
    }

    /// Adds bytes, and keeps them as far as there is memory.
    fn add(&mut self, bytes: &[u8], memory: u64) {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.unpacked.length = self.unpacked.length.saturating_add(length);
        self.crc.update(bytes);
        let kept = &mut self.unpacked.kept;
        if !self.keep {
            self.unpacked.whole &= bytes.is_empty();
            return;
        }
        let first = kept.is_empty();
        let within = u64::try_from(kept.len()).is_ok_and(|kept| kept.saturating_add(length) <= memory);
        if within {
            kept.extend_from_slice(bytes);
        }
        self.keep = within && (!first || (self.keeps)(kept));
        self.unpacked.whole &= within && (self.keep || bytes.is_empty());
    }

    fn end(mut self) -> Unpacked {
        self.unpacked.crc = self.crc.sum();
        self.unpacked
    }
}

impl Opener<'_> {
    /// Decompresses a stream of deflate (RFC 1951). What `keeps` says of the first bytes decides whether the rest is kept.
    pub(super) fn inflate(&mut self, input: &[u8], keeps: impl Fn(&[u8]) -> bool) -> Result<Unpacked, Stop> {
        self.decoder.reset(false);
        let mut sink = Sink::new(keeps);
        loop {
            let rest = input.get(sink.unpacked.taken..).unwrap_or_default();
            let (read, written) = (self.decoder.total_in(), self.decoder.total_out());
            let status = self.decoder.decompress(rest, &mut self.chunk, FlushDecompress::None);
            let taken = usize::try_from(self.decoder.total_in() - read).unwrap_or(0);
            let length = self.decoder.total_out() - written;
            sink.unpacked.taken = sink.unpacked.taken.saturating_add(taken);
            self.expand(length)?;
            match self.work.bytes.checked_sub(length) {
                Some(left) => self.work.bytes = left,
                None => return Err(self.over_budget()),
            }
            let bytes = usize::try_from(length).ok().and_then(|length| self.chunk.get(..length)).unwrap_or_default();
            sink.add(bytes, self.work.memory);
            match status {
                Ok(Status::StreamEnd) => {
                    sink.unpacked.ended = true;
                    break;
                }
                Ok(_) if taken > 0 || length > 0 => {}
                Ok(_) | Err(_) => break,
            }
        }
        Ok(sink.end())
    }

    /// Decompresses a stream of another coding, likewise.
    pub(super) fn unpack(
        &mut self,
        coding: Coding,
        input: &[u8],
        keeps: impl Fn(&[u8]) -> bool,
    ) -> Result<Unpacked, Stop> {
        let budget = Budget::new(self.work.bytes);
        let unpacked = self.unpack_within(&budget, coding, input, keeps);
        self.work.bytes = budget.left();
        unpacked
    }

    fn unpack_within(
        &mut self,
        budget: &Budget,
        coding: Coding,
        input: &[u8],
        keeps: impl Fn(&[u8]) -> bool,
    ) -> Result<Unpacked, Stop> {
        let mut sink = Sink::new(keeps);
        let mut stream = match Stream::new(coding, input, budget) {
            Ok(stream) => stream,
            Err(Broken::Budget) => return Err(self.over_budget()),
            Err(Broken::Damaged) => return Ok(sink.end()),
        };
        loop {
            // What is kept is decided by the first bytes: as many as there is room for, however few a decoder yields at once.
            let (mut filled, mut read) = (0, Ok(1));
            while let (Ok(1..), Some(room)) = (read, self.chunk.get_mut(filled..).filter(|room| !room.is_empty())) {
                read = stream.read(room);
                filled += read.unwrap_or(0);
            }
            self.expand(u64::try_from(filled).unwrap_or(u64::MAX))?;
            sink.add(self.chunk.get(..filled).unwrap_or_default(), self.work.memory);
            match read {
                Ok(0) => break,
                Ok(_) => {}
                Err(Broken::Budget) => return Err(self.over_budget()),
                Err(Broken::Damaged) => return Ok(sink.end()),
            }
        }
        let mut unpacked = sink.end();
        if let Ok(taken) = stream.end(unpacked.crc) {
            (unpacked.taken, unpacked.ended) = (taken, true);
        }
        Ok(unpacked)
    }
}

/// The CRC-32 of bytes that are stored as they are.
pub(super) fn crc(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}
