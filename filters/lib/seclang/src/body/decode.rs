//! `Content-Encoding`: gzip, deflate and br, with limits against decompression bombs.

use std::fmt;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};

/// Why a body could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// The compressed data ends too early.
    Truncated,
    /// The compressed data is invalid.
    Corrupt,
    /// The decoded body is larger than the limit in bytes.
    TooLarge,
    /// The decoded body is larger than the compressed one by more than the limit's factor.
    Ratio,
    /// A gzip file has more than [`MAX_MEMBERS`] members.
    Members,
    /// The bytes can be decoded in two ways.
    Ambiguous,
    /// The encoding is none of `identity`, `gzip`, `x-gzip`, `deflate`, `br`.
    Unknown,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "the compressed body ends too early",
            Self::Corrupt => "the compressed body is invalid",
            Self::TooLarge => "the decoded body exceeds the size limit",
            Self::Ratio => "the decoded body exceeds the compression ratio limit",
            Self::Members => "the compressed body has too many gzip members",
            Self::Ambiguous => "the compressed body can be read in two ways",
            Self::Unknown => "unknown content encoding",
        })
    }
}

impl std::error::Error for DecodeError {}

/// Decodes `body` from `encoding`, the value of a `Content-Encoding` header.
///
/// Several encodings in a list are undone from the last to the first, at most three. `max_out` (bytes) limits the
/// output of each step; `max_ratio` limits its quotient by the step's input, once the output is above 64 KiB.
pub fn decode(encoding: &[u8], body: &[u8], max_out: usize, max_ratio: u32) -> Result<Vec<u8>, DecodeError> {
    let limit = Limit { max_out, max_ratio: max_ratio as usize };
    let mut output: Option<Vec<u8>> = None;
    for coding in codings(encoding)? {
        let mut decoded = Vec::new();
        undo(&coding, output.as_deref().unwrap_or(body), &mut decoded, limit)?;
        output = Some(decoded);
    }
    match output {
        Some(output) => Ok(output),
        None if body.len() > max_out => Err(DecodeError::TooLarge),
        None => Ok(body.to_vec()),
    }
}

/// The codings of a list but `identity`, in lower case, from the last to the first; at most three.
pub(super) fn codings(encoding: &[u8]) -> Result<Vec<Vec<u8>>, DecodeError> {
    let names = encoding.rsplit(|&byte| byte == b',').map(|name| name.trim_ascii().to_ascii_lowercase());
    let names: Vec<_> =
        names.filter(|name| !matches!(name.as_slice(), b"" | b"identity")).take(MAX_STEPS + 1).collect();
    if names.len() > MAX_STEPS { Err(DecodeError::Unknown) } else { Ok(names) }
}

/// Undoes one coding. After an error `output` has what was decoded before it.
pub(super) fn undo(coding: &[u8], input: &[u8], output: &mut Vec<u8>, limit: Limit) -> Result<(), DecodeError> {
    match coding {
        b"gzip" | b"x-gzip" => gzip(input, output, limit),
        b"deflate" => deflate(input, output, limit),
        b"br" => brotli(input, output, limit),
        _ => Err(DecodeError::Unknown),
    }
}

/// How many encodings of one list are undone.
const MAX_STEPS: usize = 3;

/// How many members a gzip file may have: 1,000. Each takes as long as some KiB of data, even if nothing is in it.
pub const MAX_MEMBERS: usize = 1000;

/// Output up to this size is never refused for its ratio, in bytes.
const RATIO_FREE: usize = 64 * 1024;

/// How much is decoded at once, in bytes.
const CHUNK: usize = 16 * 1024;

#[derive(Clone, Copy)]
pub(super) struct Limit {
    /// The most bytes of output.
    pub(super) max_out: usize,
    /// The most output for each byte of input, above [`RATIO_FREE`].
    pub(super) max_ratio: usize,
}

impl Limit {
    fn check(self, input: usize, output: usize) -> Result<(), DecodeError> {
        if output > self.max_out {
            return Err(DecodeError::TooLarge);
        }
        if output > RATIO_FREE && output > input.saturating_mul(self.max_ratio) {
            return Err(DecodeError::Ratio);
        }
        Ok(())
    }
}

/// Zlib data, or raw deflate data as some senders have it. Nothing may follow, and bytes that are both are neither: which
/// of the two an application takes first is not known.
fn deflate(input: &[u8], output: &mut Vec<u8>, limit: Limit) -> Result<(), DecodeError> {
    let whole = |zlib: bool, output: &mut Vec<u8>| {
        let used = inflate(&mut Decompress::new(zlib), input, output, input.len(), limit)?;
        if used == input.len() { Ok(()) } else { Err(DecodeError::Corrupt) }
    };
    let header = matches!(input, [first, second, ..]
        if first & 0x0f == 8 && (u16::from(*first) << 8 | u16::from(*second)).is_multiple_of(31));
    if !header {
        return whole(false, output);
    }
    let mut raw_output = Vec::new();
    match (whole(true, output), whole(false, &mut raw_output)) {
        // Raw data may begin like a zlib header.
        (Err(DecodeError::Corrupt), raw) => {
            // What was read as zlib data before it was wrong is not what the raw data begins with.
            if raw != Err(DecodeError::Corrupt) || output.is_empty() {
                *output = raw_output;
            }
            raw
        }
        // Zlib data is wrong at its first bytes if it is read as raw data, but for what was made to be both.
        (
            Ok(()) | Err(DecodeError::TooLarge | DecodeError::Truncated),
            Ok(()) | Err(DecodeError::TooLarge | DecodeError::Ratio),
        ) => Err(DecodeError::Ambiguous),
        // Of a few bytes, nothing comes out in either way.
        (Err(DecodeError::TooLarge | DecodeError::Truncated), Err(DecodeError::Truncated))
            if !raw_output.is_empty() =>
        {
            Err(DecodeError::Ambiguous)
        }
        (zlib, _) => zlib,
    }
}

/// Appends one deflate stream to `output`, read by a decoder that has read nothing yet; gives how many bytes of the input
/// it took.
fn inflate(
    state: &mut Decompress,
    input: &[u8],
    output: &mut Vec<u8>,
    total_in: usize,
    limit: Limit,
) -> Result<usize, DecodeError> {
    loop {
        let (before_in, before_out) = (state.total_in(), state.total_out());
        let rest = usize::try_from(before_in).ok().and_then(|at| input.get(at..)).unwrap_or_default();
        output.reserve(CHUNK);
        let status = state.decompress_vec(rest, output, FlushDecompress::None).map_err(|_| DecodeError::Corrupt)?;
        limit.check(total_in, output.len())?;
        match status {
            Status::StreamEnd => return usize::try_from(state.total_in()).map_err(|_| DecodeError::Corrupt),
            _ if state.total_in() == before_in && state.total_out() == before_out => {
                return Err(DecodeError::Truncated);
            }
            _ => {}
        }
    }
}

/// The members of a gzip file (RFC 1952), one after the other.
fn gzip(input: &[u8], output: &mut Vec<u8>, limit: Limit) -> Result<(), DecodeError> {
    let mut rest = input;
    let mut state = Decompress::new(false);
    let mut members = 0;
    while !rest.is_empty() || output.is_empty() {
        // Zeros may pad the last member.
        if !output.is_empty() && rest.iter().all(|&byte| byte == 0) {
            break;
        }
        members += 1;
        if members > MAX_MEMBERS {
            return Err(DecodeError::Members);
        }
        let start = output.len();
        let data = rest.get(gzip_header(rest)?..).ok_or(DecodeError::Truncated)?;
        state.reset(false);
        let used = inflate(&mut state, data, output, input.len(), limit)?;
        let trailer = data.get(used..).unwrap_or_default();
        let (&[a, b, c, d, e, f, g, h], after) = trailer.split_first_chunk::<8>().ok_or(DecodeError::Truncated)?;
        let member = output.get(start..).unwrap_or_default();
        let mut checksum = flate2::Crc::new();
        checksum.update(member);
        if checksum.sum() != u32::from_le_bytes([a, b, c, d]) || member.len() as u32 != u32::from_le_bytes([e, f, g, h])
        {
            return Err(DecodeError::Corrupt);
        }
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    Ok(())
}

/// The length of a gzip member's header.
fn gzip_header(input: &[u8]) -> Result<usize, DecodeError> {
    let fixed = input.first_chunk::<10>().ok_or(DecodeError::Truncated)?;
    let &[0x1f, 0x8b, 8, flags, ..] = fixed else {
        return Err(DecodeError::Corrupt);
    };
    if flags & 0xe0 != 0 {
        return Err(DecodeError::Corrupt);
    }
    let mut at = fixed.len();
    if flags & 0x04 != 0 {
        let length = input.get(at..).and_then(|rest| rest.first_chunk::<2>()).ok_or(DecodeError::Truncated)?;
        at += 2 + usize::from(u16::from_le_bytes(*length));
    }
    // The original name and a comment, each ended by a NUL.
    for flag in [0x08, 0x10] {
        if flags & flag != 0 {
            let rest = input.get(at..).ok_or(DecodeError::Truncated)?;
            at += memchr::memchr(0, rest).ok_or(DecodeError::Truncated)? + 1;
        }
    }
    if flags & 0x02 != 0 {
        at += 2;
    }
    Ok(at)
}

fn brotli(input: &[u8], output: &mut Vec<u8>, limit: Limit) -> Result<(), DecodeError> {
    let mut state = BrotliState::new(StandardAlloc::default(), StandardAlloc::default(), StandardAlloc::default());
    let mut chunk = vec![0; CHUNK];
    let (mut left_in, mut at_in, mut total) = (input.len(), 0, 0);
    loop {
        let (mut left_out, mut at_out) = (chunk.len(), 0);
        let result = BrotliDecompressStream(
            &mut left_in,
            &mut at_in,
            input,
            &mut left_out,
            &mut at_out,
            &mut chunk,
            &mut total,
            &mut state,
        );
        output.extend_from_slice(chunk.get(..at_out).unwrap_or_default());
        limit.check(input.len(), output.len())?;
        match result {
            // What follows the stream is nothing that a decoder shows.
            BrotliResult::ResultSuccess if left_in > 0 => return Err(DecodeError::Corrupt),
            BrotliResult::ResultSuccess => return Ok(()),
            BrotliResult::NeedsMoreOutput => {}
            BrotliResult::NeedsMoreInput => return Err(DecodeError::Truncated),
            BrotliResult::ResultFailure => return Err(DecodeError::Corrupt),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const MAX: usize = 1 << 20;

    fn zlib(body: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(body).expect("in memory");
        encoder.finish().expect("in memory")
    }

    fn raw(body: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(body).expect("in memory");
        encoder.finish().expect("in memory")
    }

    fn gz(body: &[u8]) -> Vec<u8> {
        let builder = flate2::GzBuilder::new().filename("a").comment("b").extra("c");
        let mut encoder = builder.write(Vec::new(), flate2::Compression::best());
        encoder.write_all(body).expect("in memory");
        encoder.finish().expect("in memory")
    }

    #[test]
    fn undoes_each_encoding() {
        let body = b"some text, some text, some text".repeat(20);
        for (encoding, encoded) in [
            ("gzip", gz(&body)),
            ("X-GZIP", gz(&body)),
            ("deflate", zlib(&body)),
            ("deflate", raw(&body)),
            ("identity", body.clone()),
            ("", body.clone()),
            ("deflate, gzip", gz(&zlib(&body))),
            (" identity ,gzip", gz(&body)),
        ] {
            assert_eq!(decode(encoding.as_bytes(), &encoded, MAX, 100).as_ref(), Ok(&body), "{encoding}");
        }
        let two = [gz(b"one "), gz(b"two"), vec![0; 3]].concat();
        assert_eq!(decode(b"gzip", &two, MAX, 100), Ok(b"one two".to_vec()));
        assert_eq!(decode(b"gzip", &gz(b""), MAX, 100), Ok(Vec::new()));
        // An uncompressed meta-block of three bytes, and the empty last one.
        assert_eq!(decode(b"br", b"\x0b\x01\x80abc\x03", MAX, 100), Ok(b"abc".to_vec()));
    }

    /// Bytes that are zlib data and raw deflate data as well, each of stored blocks. To the raw reading, byte 0 begins a
    /// block and bytes 1 to 4 are its length with the complement; to the other one, byte 2 begins it and bytes 3 to 6 are.
    fn two_ways() -> Vec<u8> {
        // Byte 1 asks for no dictionary. Byte 2 is the high half of one length and begins the other block: its lowest three
        // bits are 0.
        let lengths = (0..=u16::MAX).filter(|raw| (0x7800 | (raw & 0xff)) % 31 == 0 && raw & 0x0720 == 0);
        for raw in lengths {
            let [low, high] = raw.to_le_bytes();
            let inner = u16::from_le_bytes([!low, !high]);
            let (inner, raw) = (usize::from(inner), usize::from(raw));
            // The last block of the raw reading stands in the data of the other one.
            if !(7..inner).contains(&(raw + 5)) {
                continue;
            }
            let mut bytes = vec![0x78, low, high, !low, !high, low, high];
            bytes.resize(7 + inner, b'a');
            bytes.extend([1, 0, 0, 0xff, 0xff, 0, 0, 0, 0]);
            let left = u16::try_from(bytes.len() - raw - 10).expect("a block");
            let last = [[1].as_slice(), &left.to_le_bytes(), &(!left).to_le_bytes()].concat();
            bytes[raw + 5..raw + 10].copy_from_slice(&last);
            let (mut a, mut b) = (1u32, 0u32);
            for byte in &bytes[7..7 + inner] {
                a = (a + u32::from(*byte)) % 65521;
                b = (b + a) % 65521;
            }
            let end = bytes.len() - 4;
            bytes[end..].copy_from_slice(&(b << 16 | a).to_be_bytes());
            return bytes;
        }
        panic!("no length will do");
    }

    #[test]
    fn says_why_a_body_cannot_be_decoded() {
        let body = b"text";
        let cut = |mut bytes: Vec<u8>, by: usize| {
            bytes.truncate(bytes.len() - by);
            bytes
        };
        let flipped = |mut bytes: Vec<u8>| {
            let last = bytes.len() - 5;
            bytes[last] ^= 1;
            bytes
        };
        for (encoding, encoded, expected) in [
            ("gzip", cut(gz(body), 1), DecodeError::Truncated),
            ("gzip", cut(gz(body), 10), DecodeError::Truncated),
            ("gzip", b"\x1f\x8b".to_vec(), DecodeError::Truncated),
            ("gzip", Vec::new(), DecodeError::Truncated),
            ("gzip", b"plain text, not gzip".to_vec(), DecodeError::Corrupt),
            ("gzip", flipped(gz(body)), DecodeError::Corrupt),
            ("deflate", cut(zlib(body), 5), DecodeError::Truncated),
            ("deflate", b"\xff\xff\xff".to_vec(), DecodeError::Corrupt),
            ("br", b"\x0b\x01\x80ab".to_vec(), DecodeError::Truncated),
            ("br", b"\xff\xff\xff\xff\xff\xff".to_vec(), DecodeError::Corrupt),
            ("br", b"\x0b\x01\x80abc\x03&q=evil".to_vec(), DecodeError::Corrupt),
            ("gzip", [gz(body), b"&q=evil&more=text".to_vec()].concat(), DecodeError::Corrupt),
            ("deflate", [zlib(body), b"&q=evil".to_vec()].concat(), DecodeError::Corrupt),
            ("deflate", [raw(body), b"&q=evil".to_vec()].concat(), DecodeError::Corrupt),
            ("deflate", two_ways(), DecodeError::Ambiguous),
            ("compress", Vec::new(), DecodeError::Unknown),
            ("gzip,gzip,gzip,gzip", gz(&gz(&gz(&gz(body)))), DecodeError::Unknown),
        ] {
            assert_eq!(decode(encoding.as_bytes(), &encoded, MAX, 100), Err(expected), "{encoding} {encoded:?}");
        }
    }

    /// Four MiB of zeros in Brotli, as the compressor of Node.js makes them.
    const BROTLI_ZEROS: &[u8] = b"\x9b\xff\xff\x3f\xf8\x27\x00\xe2\xb1\x40\x20\xf7\xfe\x07";

    #[test]
    fn bombs_are_refused_in_every_encoding() {
        let zeros = vec![0; 4 << 20];
        for (encoding, bomb) in
            [("gzip", gz(&zeros)), ("deflate", zlib(&zeros)), ("deflate", raw(&zeros)), ("br", BROTLI_ZEROS.to_vec())]
        {
            let decoded = |max_out, ratio| decode(encoding.as_bytes(), &bomb, max_out, ratio);
            assert_eq!(decoded(1 << 20, u32::MAX), Err(DecodeError::TooLarge), "{encoding}");
            assert_eq!(decoded(usize::MAX, 100), Err(DecodeError::Ratio), "{encoding}");
            assert_eq!(decoded(4 << 20, u32::MAX).as_ref(), Ok(&zeros), "{encoding}");
        }
        // A bomb in a bomb: every step is held to both limits, however small it came in.
        for (encoding, bomb) in
            [("gzip, gzip", gz(&gz(&zeros))), ("br, gzip", gz(BROTLI_ZEROS)), ("deflate, gzip", gz(&zlib(&zeros)))]
        {
            assert_eq!(decode(encoding.as_bytes(), &bomb, usize::MAX, 100), Err(DecodeError::Ratio), "{encoding}");
            assert_eq!(decode(encoding.as_bytes(), &bomb, 1 << 20, u32::MAX), Err(DecodeError::TooLarge), "{encoding}");
            assert_eq!(decode(encoding.as_bytes(), &bomb, 4 << 20, u32::MAX).as_ref(), Ok(&zeros), "{encoding}");
        }
    }

    #[test]
    fn a_file_has_a_limit_of_members() {
        let file = |members: usize| [gz(b"").repeat(members), gz(b"a")].concat();
        assert_eq!(decode(b"gzip", &file(MAX_MEMBERS - 1), MAX, 100), Ok(b"a".to_vec()));
        assert_eq!(decode(b"gzip", &file(MAX_MEMBERS), MAX, 100), Err(DecodeError::Members));
        assert_eq!(decode(b"deflate, gzip", &file(50_000), MAX, 100), Err(DecodeError::Members));
        // What one member leaves behind is nothing to the next.
        let text: Vec<u8> = (0..200_000u32).flat_map(|n| (n % 251).to_le_bytes()).collect();
        let two = [gz(&text), gz(&text[4..]), gz(&text)].concat();
        assert_eq!(decode(b"gzip", &two, 4 << 20, 1000), Ok([&text, &text[4..], &text].concat()));
    }

    #[test]
    fn bombs_are_refused() {
        let bomb = gz(&vec![0; 4 << 20]);
        assert_eq!(decode(b"gzip", &bomb, 1 << 20, u32::MAX), Err(DecodeError::TooLarge));
        assert_eq!(decode(b"gzip", &bomb, usize::MAX, 100), Err(DecodeError::Ratio));
        assert_eq!(decode(b"gzip", &bomb, 4 << 20, u32::MAX).map(|output| output.len()), Ok(4 << 20));
        assert_eq!(decode(b"gzip", &gz(&vec![0; RATIO_FREE]), MAX, 1).map(|output| output.len()), Ok(RATIO_FREE));
        assert_eq!(decode(b"identity", &[0; 10], 9, 1), Err(DecodeError::TooLarge));
    }
}
