//! Deflate (RFC 1951) under the limits of an archive.

use flate2::{Crc, FlushDecompress, Status};

use super::{Opener, Stop};

/// How much is decompressed at once, in bytes.
pub(super) const CHUNK: usize = 32 << 10;

/// A decompressed stream.
pub(super) struct Inflated {
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

impl Opener<'_> {
    /// Decompresses a stream. What `keeps` says of the first bytes decides whether the rest is kept.
    pub(super) fn inflate(&mut self, input: &[u8], keeps: impl Fn(&[u8]) -> bool) -> Result<Inflated, Stop> {
        self.decoder.reset(false);
        let mut crc = Crc::new();
        let mut inflated = Inflated { taken: 0, length: 0, crc: 0, ended: false, kept: Vec::new(), whole: true };
        let mut keep = true;
        loop {
            let rest = input.get(inflated.taken..).unwrap_or_default();
            let (read, written) = (self.decoder.total_in(), self.decoder.total_out());
            let status = self.decoder.decompress(rest, &mut self.chunk, FlushDecompress::None);
            let taken = usize::try_from(self.decoder.total_in() - read).unwrap_or(0);
            let length = self.decoder.total_out() - written;
            inflated.taken = inflated.taken.saturating_add(taken);
            inflated.length = inflated.length.saturating_add(length);
            self.expand(length)?;
            match self.work.bytes.checked_sub(length) {
                Some(left) => self.work.bytes = left,
                None => return Err(self.over_budget()),
            }
            let bytes = usize::try_from(length).ok().and_then(|length| self.chunk.get(..length)).unwrap_or_default();
            crc.update(bytes);
            if keep {
                let first = inflated.kept.is_empty();
                let within = u64::try_from(inflated.kept.len()).is_ok_and(|kept| kept + length <= self.work.memory);
                if within {
                    inflated.kept.extend_from_slice(bytes);
                } else {
                    inflated.whole = false;
                }
                keep = within && (!first || keeps(&inflated.kept));
                inflated.whole &= keep || length == 0;
            } else {
                inflated.whole &= length == 0;
            }
            match status {
                Ok(Status::StreamEnd) => {
                    inflated.ended = true;
                    break;
                }
                Ok(_) if taken > 0 || length > 0 => {}
                Ok(_) | Err(_) => break,
            }
        }
        inflated.crc = crc.sum();
        Ok(inflated)
    }
}

/// The CRC-32 of bytes that are stored as they are.
pub(super) fn crc(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}
