//! Codings of compressed streams beside deflate: bzip2, xz, lzip, LZMA (the LZMA SDK's form with a header) and zstd (RFC 8878).
//!
//! Crates decompress; what a stream may cost is bounded here. A stream that yields little can be as costly as a long one: a decoder builds
//! its tables anew for each block. So reads of the input are charged for, too, and a decoder reads a few times for each block.

use std::cell::Cell;
use std::io::{Error, Read};

use bzip2::{Decompress, Status};
use lzma_rust2::{Lzma2Reader, LzmaReader, XzReader};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::Format;
use crate::bytes::{le32, le64};

/// What a read of the input takes from the budget, in bytes.
const READ_COST: u64 = 1 << 10;
/// What a stream takes, for the memory that its decoder allocates.
const STREAM_COST: u64 = 64 << 10;
/// The largest window of a zstd frame, in bytes: what RFC 8878 recommends to support at least. A decoder allocates it before it begins.
const ZSTD_WINDOW: u64 = 8 << 20;
/// The longest header of an LZMA stream, and that of a member of lzip, with what is behind its data.
const LZMA_HEADER: usize = 13;
const LZIP_HEADER: usize = 6;
const LZIP_TRAILER: usize = 20;

/// A coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Bzip2,
    Xz,
    Lzip,
    Lzma,
    /// LZMA whose properties are in the headers of an archive. It ends with a mark, or where its content has `size` bytes.
    RawLzma {
        properties: u8,
        dictionary: u32,
        size: Option<u64>,
    },
    /// LZMA2, likewise.
    RawLzma2 {
        dictionary: u32,
    },
    Zstd,
}

impl Coding {
    pub(super) fn of(format: Format) -> Option<Self> {
        Some(match format {
            Format::Bzip2 => Self::Bzip2,
            Format::Xz => Self::Xz,
            Format::Lzip => Self::Lzip,
            Format::Lzma => Self::Lzma,
            Format::Zstd => Self::Zstd,
            _ => return None,
        })
    }

    /// That of an entry of a ZIP file, by its method (APPNOTE.TXT, section 4.4.5).
    pub(super) fn of_zip(method: u16) -> Option<Self> {
        match method {
            12 => Some(Self::Bzip2),
            // 20 is what it was at first.
            20 | 93 => Some(Self::Zstd),
            95 => Some(Self::Xz),
            _ => None,
        }
    }

    /// How a stream begins. LZMA has no signature, and no second stream.
    pub(super) fn signature(self) -> Option<&'static [u8]> {
        match self {
            Self::Bzip2 => Some(b"BZh"),
            Self::Xz => Some(b"\xfd7zXZ\0"),
            Self::Lzip => Some(b"LZIP"),
            Self::Lzma | Self::RawLzma { .. } | Self::RawLzma2 { .. } => None,
            Self::Zstd => Some(b"\x28\xb5\x2f\xfd"),
        }
    }

    /// How much of the budget a byte of content takes: what it costs beside a byte of deflate, as it was measured.
    fn weight(self) -> u64 {
        match self {
            Self::Bzip2 => 8,
            Self::Xz | Self::Lzip | Self::Lzma | Self::RawLzma { .. } | Self::RawLzma2 { .. } => 4,
            Self::Zstd => 2,
        }
    }
}

/// The budget that is left, in bytes.
pub(super) struct Budget(Cell<u64>);

impl Budget {
    pub(super) fn new(bytes: u64) -> Self {
        Self(Cell::new(bytes))
    }

    pub(super) fn left(&self) -> u64 {
        self.0.get()
    }

    /// Takes so much of it; `None` where it is used up.
    fn take(&self, bytes: u64) -> Option<()> {
        let left = self.0.get().checked_sub(bytes);
        self.0.set(left.unwrap_or(0));
        left.map(|_| ())
    }
}

/// Why a stream cannot be decompressed further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// It is damaged, it ends too early, or it needs what is not there.
    Damaged,
    /// The budget is used up.
    Budget,
}

/// The compressed bytes, as a decoder reads them.
struct Input<'b> {
    bytes: &'b [u8],
    taken: usize,
    budget: &'b Budget,
}

impl<'b> Input<'b> {
    fn rest(&self) -> &'b [u8] {
        self.bytes.get(self.taken..).unwrap_or_default()
    }

    /// Takes so many bytes; `None` where they are not there.
    fn skip(&mut self, length: usize) -> Option<&'b [u8]> {
        let skipped = self.rest().get(..length)?;
        self.taken = self.taken.saturating_add(length);
        Some(skipped)
    }
}

impl Read for Input<'_> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        self.budget.take(READ_COST).ok_or_else(|| Error::other("the budget is used up"))?;
        let mut rest = self.rest();
        let read = rest.read(into)?;
        self.taken = self.taken.saturating_add(read);
        Ok(read)
    }
}

/// A stream that is decompressed.
pub(super) struct Stream<'b> {
    coding: Coding,
    budget: &'b Budget,
    decoder: Decoder<'b>,
    length: u64,
}

enum Decoder<'b> {
    Bzip2 { decoder: Box<Decompress>, input: Input<'b>, ended: bool },
    Xz(Box<XzReader<Input<'b>>>),
    Lzip(Box<LzmaReader<Input<'b>>>),
    Lzma(Box<LzmaReader<Input<'b>>>),
    Lzma2(Box<Lzma2Reader<Input<'b>>>),
    Zstd { decoder: Box<FrameDecoder>, input: Input<'b> },
}

impl<'b> Stream<'b> {
    pub(super) fn new(coding: Coding, bytes: &'b [u8], budget: &'b Budget) -> Result<Self, Broken> {
        budget.take(STREAM_COST).ok_or(Broken::Budget)?;
        let mut input = Input { bytes, taken: 0, budget };
        let decoder = match coding {
            Coding::Bzip2 => Decoder::Bzip2 { decoder: Box::new(Decompress::new(false)), input, ended: false },
            Coding::Xz => Decoder::Xz(Box::new(XzReader::new(input, false))),
            Coding::Lzip => Decoder::Lzip(Box::new(lzip(input).ok_or(Broken::Damaged)?)),
            Coding::Lzma => Decoder::Lzma(Box::new(lzma(input).ok_or(Broken::Damaged)?)),
            Coding::RawLzma { properties, dictionary, size } => {
                // Its tables for literals: up to 6 MiB by the bits of contexts and places, where programs write 12 KiB.
                let bits = u32::from(properties % 9) + u32::from(properties / 9 % 5);
                budget.take(0x600_u64 << bits).ok_or(Broken::Budget)?;
                let size = size.unwrap_or(u64::MAX);
                let reader = LzmaReader::new_with_props(input, size, properties, dictionary, None);
                Decoder::Lzma(Box::new(reader.map_err(|_| Broken::Damaged)?))
            }
            Coding::RawLzma2 { dictionary } => Decoder::Lzma2(Box::new(Lzma2Reader::new(input, dictionary, None))),
            Coding::Zstd => {
                let mut decoder = Box::new(FrameDecoder::new());
                decoder.set_max_window_size(ZSTD_WINDOW);
                decoder.reset(&mut input).map_err(|_| of(budget))?;
                Decoder::Zstd { decoder, input }
            }
        };
        Ok(Self { coding, budget, decoder, length: 0 })
    }

    /// Decompresses the next bytes; none at the end of the stream. It is not called again after an error.
    pub(super) fn read(&mut self, chunk: &mut [u8]) -> Result<usize, Broken> {
        let broken = |_| of(self.budget);
        let length = match &mut self.decoder {
            Decoder::Bzip2 { ended: true, .. } => 0,
            Decoder::Bzip2 { decoder, input, ended } => bzip2(decoder, input, ended, chunk)?,
            Decoder::Xz(reader) => reader.read(chunk).map_err(broken)?,
            Decoder::Lzip(reader) | Decoder::Lzma(reader) => reader.read(chunk).map_err(broken)?,
            Decoder::Lzma2(reader) => reader.read(chunk).map_err(broken)?,
            Decoder::Zstd { decoder, input } => {
                while decoder.can_collect() == 0 && !decoder.is_finished() {
                    let one = BlockDecodingStrategy::UptoBlocks(1);
                    decoder.decode_blocks(&mut *input, one).map_err(|_| of(self.budget))?;
                }
                decoder.read(chunk).map_err(broken)?
            }
        };
        let read = u64::try_from(length).unwrap_or(u64::MAX);
        self.budget.take(read.saturating_mul(self.coding.weight())).ok_or(Broken::Budget)?;
        self.length = self.length.saturating_add(read);
        Ok(length)
    }

    /// How many bytes of the input the stream has, once it has ended. `crc` is the CRC-32 of its content.
    pub(super) fn end(self, crc: u32) -> Result<usize, Broken> {
        match self.decoder {
            Decoder::Bzip2 { input, .. } => Ok(input.taken),
            Decoder::Zstd { decoder, input } => {
                // 0 where the frame does not say.
                let said = decoder.content_size();
                if said == 0 || said == self.length { Ok(input.taken) } else { Err(Broken::Damaged) }
            }
            Decoder::Xz(reader) => Ok(reader.inner().taken),
            Decoder::Lzma2(reader) => Ok(reader.inner().taken),
            Decoder::Lzma(reader) => {
                let (input, unused) = reader.into_parts();
                Ok(input.taken.saturating_sub(unused.len()))
            }
            Decoder::Lzip(reader) => {
                let (mut input, unused) = reader.into_parts();
                input.taken = input.taken.saturating_sub(unused.len());
                let trailer = input.skip(LZIP_TRAILER).ok_or(Broken::Damaged)?;
                let right = le32(trailer, 0) == Some(crc) && le64(trailer, 4) == Some(self.length);
                if right { Ok(input.taken) } else { Err(Broken::Damaged) }
            }
        }
    }
}

/// What an error of a decoder is.
fn of(budget: &Budget) -> Broken {
    if budget.left() == 0 { Broken::Budget } else { Broken::Damaged }
}

fn bzip2(decoder: &mut Decompress, input: &mut Input<'_>, ended: &mut bool, chunk: &mut [u8]) -> Result<usize, Broken> {
    let (read, written) = (decoder.total_in(), decoder.total_out());
    let status = decoder.decompress(input.rest(), chunk);
    let taken = usize::try_from(decoder.total_in() - read).unwrap_or(0);
    let length = usize::try_from(decoder.total_out() - written).unwrap_or(0);
    input.taken = input.taken.saturating_add(taken);
    match status {
        Ok(Status::StreamEnd) => {
            *ended = true;
            Ok(length)
        }
        Ok(Status::Ok) if length > 0 => Ok(length),
        // All of the input is there.
        Ok(_) | Err(_) => Err(Broken::Damaged),
    }
}

/// The LZMA SDK's form: properties, size of the dictionary, length of the content.
fn lzma(mut input: Input<'_>) -> Option<LzmaReader<Input<'_>>> {
    let header = input.skip(LZMA_HEADER)?;
    let (properties, dictionary, length) = (*header.first()?, le32(header, 1)?, le64(header, 5)?);
    LzmaReader::new_with_props(input, length, properties, dictionary, None).ok()
}

/// A member of lzip: the size of the dictionary as a power of two, less sixteenths of it.
fn lzip(mut input: Input<'_>) -> Option<LzmaReader<Input<'_>>> {
    let coded = *input.skip(LZIP_HEADER)?.get(5)?;
    let base = 1_u32.checked_shl(u32::from(coded & 0x1f)).filter(|base| (1 << 12..=1 << 29).contains(base))?;
    let dictionary = base - (base / 16) * u32::from(coded >> 5);
    LzmaReader::new(input, u64::MAX, 3, 0, 2, dictionary, None).ok()
}
