//! As much of a compressed body as can be decoded: for bodies of responses, which are not refused for their form.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};

/// How much is decoded at once, in bytes.
const CHUNK: usize = 16 * 1024;
/// How many codings of one list are undone.
const MAX_STEPS: usize = 3;

/// Decodes `body` from `encoding`, a list of content codings, as far as it goes and to `most` bytes. Checksums are not
/// looked at, nor what follows the compressed data. `None` where there is a coding that is not known, or more than three.
#[must_use]
pub fn decode_prefix(encoding: &[u8], body: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut output: Option<Vec<u8>> = None;
    let names = encoding.rsplit(|&byte| byte == b',').map(|name| name.trim_ascii().to_ascii_lowercase());
    for (name, step) in names.filter(|name| !matches!(name.as_slice(), b"" | b"identity")).zip(0..) {
        let input = output.as_deref().unwrap_or(body);
        let mut decoded = match name.as_slice() {
            _ if step == MAX_STEPS => return None,
            b"gzip" | b"x-gzip" => gzip_data(input).map_or_else(Vec::new, |data| inflate(data, false, most)),
            b"deflate" => {
                let zlib = inflate(input, true, most);
                if zlib.is_empty() { inflate(input, false, most) } else { zlib }
            }
            b"br" => brotli(input, most),
            _ => return None,
        };
        decoded.truncate(most);
        output = Some(decoded);
    }
    output
}

/// The compressed data of a gzip member, behind its header (RFC 1952).
fn gzip_data(input: &[u8]) -> Option<&[u8]> {
    let (&[0x1f, 0x8b, 8, flags, ..], mut rest) = input.split_first_chunk::<10>()? else { return None };
    if flags & 0x04 != 0 {
        let (length, after) = rest.split_first_chunk::<2>()?;
        rest = after.get(usize::from(u16::from_le_bytes(*length))..)?;
    }
    // The original name and a comment, each ended by a NUL.
    for flag in [0x08, 0x10] {
        if flags & flag != 0 {
            rest = rest.get(memchr::memchr(0, rest)? + 1..)?;
        }
    }
    if flags & 0x02 != 0 { rest.get(2..) } else { Some(rest) }
}

fn inflate(input: &[u8], zlib: bool, most: usize) -> Vec<u8> {
    let mut state = Decompress::new(zlib);
    let mut output = Vec::new();
    while output.len() < most {
        let (before_in, before_out) = (state.total_in(), state.total_out());
        let rest = usize::try_from(before_in).ok().and_then(|at| input.get(at..)).unwrap_or_default();
        output.reserve(CHUNK);
        let status = state.decompress_vec(rest, &mut output, FlushDecompress::None);
        let stuck = state.total_in() == before_in && state.total_out() == before_out;
        if stuck || !matches!(status, Ok(Status::Ok | Status::BufError)) {
            break;
        }
    }
    output
}

fn brotli(input: &[u8], most: usize) -> Vec<u8> {
    let mut state = BrotliState::new(StandardAlloc::default(), StandardAlloc::default(), StandardAlloc::default());
    let (mut output, mut chunk) = (Vec::new(), vec![0; CHUNK]);
    let (mut left_in, mut at_in, mut total) = (input.len(), 0, 0);
    while output.len() < most {
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
        if !matches!(result, BrotliResult::NeedsMoreOutput) {
            break;
        }
    }
    output
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    #[cfg(target_os = "unknown")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    #[test]
    fn what_is_there_is_decoded() {
        let text: Vec<u8> = (0..50_000u32).flat_map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
        let mut gzip = flate2::GzBuilder::new()
            .filename("a")
            .comment("b")
            .extra("c")
            .write(Vec::new(), flate2::Compression::best());
        gzip.write_all(&text).unwrap();
        let gzip = gzip.finish().unwrap();
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        zlib.write_all(&gzip).unwrap();
        let zlib = zlib.finish().unwrap();
        let mut raw = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        raw.write_all(&text).unwrap();
        let raw = raw.finish().unwrap();
        for (encoding, body) in [("gzip", &gzip), ("gzip, identity, deflate", &zlib), ("Deflate", &raw)] {
            assert_eq!(
                decode_prefix(encoding.as_bytes(), body, 1 << 20).as_deref(),
                Some(text.as_slice()),
                "{encoding}"
            );
            // What is between two codings has the same limit.
            let most = decode_prefix(encoding.as_bytes(), body, 70_000).unwrap();
            assert!(
                most.len() <= 70_000 && most.len() > 40_000 && text.starts_with(&most),
                "{encoding} {}",
                most.len()
            );
            let cut = decode_prefix(encoding.as_bytes(), &body[..body.len() / 2], 1 << 20).unwrap();
            assert!(cut.len() > text.len() / 3 && text.starts_with(&cut), "{encoding} {}", cut.len());
        }
        let bomb = b"\xcf\xff\xff\x7f\xf8\x16\x00\xe2\xb1\x40\x20\xfe\xff\xff\x0b";
        assert!(decode_prefix(b"br", bomb, 5000).unwrap().len() <= 5000);
    }

    #[test]
    fn what_is_not_known_is_not_decoded() {
        for encoding in ["zstd", "gzip, zstd", "zstd, gzip", "gzip,gzip,gzip,gzip"] {
            assert_eq!(decode_prefix(encoding.as_bytes(), b"x", 100), None, "{encoding}");
        }
        assert_eq!(decode_prefix(b"gzip", b"no gzip", 100).as_deref(), Some(&b""[..]));
        assert_eq!(decode_prefix(b"gzip", b"\x1f\x8b", 100).as_deref(), Some(&b""[..]));
    }
}
