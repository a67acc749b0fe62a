//! As much of a compressed body as can be decoded: for bodies of responses, which are not refused for their form.

use super::decode::{DecodeError, Limit, codings, undo};

/// Decodes `body` from `encoding`, a list of content codings, as far as it goes and to `most` bytes. A body that is cut, has a
/// wrong checksum or is followed by more counts as far as it was decoded. `None` where there is a coding that is not known, or
/// more than three.
#[must_use]
pub fn decode_prefix(encoding: &[u8], body: &[u8], most: usize) -> Option<Vec<u8>> {
    let limit = Limit { max_out: most, max_ratio: usize::MAX };
    let mut output: Option<Vec<u8>> = None;
    for coding in codings(encoding).ok()? {
        let mut decoded = Vec::new();
        if undo(&coding, output.as_deref().unwrap_or(body), &mut decoded, limit) == Err(DecodeError::Unknown) {
            return None;
        }
        decoded.truncate(most);
        output = Some(decoded);
    }
    output
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

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
