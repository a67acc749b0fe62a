//! As much of a compressed body as can be decoded: for bodies of responses, which are not refused for their form, and for the beginnings
//! of long requests.

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

/// A body, or its beginning, whose codings are undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beginning {
    /// What was decoded.
    pub bytes: Vec<u8>,
    /// It is all of the body.
    pub complete: bool,
}

/// Decodes the beginning of `body` from `encoding`, a list of content codings: all of it, or as much as `max_out` (bytes) and the end of
/// what is there allow. `complete` is false where the end of the body is missing. Each coding is held to `max_out` and to `max_ratio`.
///
/// # Errors
/// Why it is not the beginning of anything: data that is wrong in any of the codings, also behind one that was cut off, and a body of
/// which nothing at all was decoded before it ended.
pub fn decode_beginning(
    encoding: &[u8],
    body: &[u8],
    complete: bool,
    max_out: usize,
    max_ratio: u32,
) -> Result<Beginning, DecodeError> {
    let limit = Limit { max_out, max_ratio: max_ratio as usize };
    let mut output: Option<Vec<u8>> = None;
    let mut complete = complete;
    for coding in codings(encoding)? {
        let mut decoded = Vec::new();
        match undo(&coding, output.as_deref().unwrap_or(body), &mut decoded, limit) {
            Ok(()) => {}
            Err(DecodeError::TooLarge) => {
                decoded.truncate(max_out);
                complete = false;
            }
            Err(DecodeError::Truncated) if !complete => {}
            Err(error) => return Err(error),
        }
        // What has no beginning may be anything.
        if decoded.is_empty() && !complete {
            return Err(DecodeError::Truncated);
        }
        output = Some(decoded);
    }
    let complete = complete && (output.is_some() || body.len() <= max_out);
    let bytes = output.unwrap_or_else(|| body.get(..max_out).unwrap_or(body).to_vec());
    Ok(Beginning { bytes, complete })
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

    fn gz(body: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_beginning_is_one_in_every_coding() {
        let text: Vec<u8> = (0..50_000u32).flat_map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
        let decode = |encoding: &str, body: &[u8], complete, most| {
            decode_beginning(encoding.as_bytes(), body, complete, most, 100)
        };
        let whole = Beginning { bytes: text.clone(), complete: true };
        assert_eq!(decode("gzip", &gz(&text), true, 1 << 20).as_ref(), Ok(&whole));
        assert_eq!(decode("gzip, gzip", &gz(&gz(&text)), true, 1 << 20).as_ref(), Ok(&whole));
        assert_eq!(decode("identity", &text, true, 1 << 20).as_ref(), Ok(&whole));
        for (encoding, body, complete, most) in [
            ("gzip", gz(&text), true, 70_000),
            ("gzip,gzip", gz(&gz(&text)), true, 70_000),
            ("gzip", gz(&text)[..gz(&text).len() / 2].to_vec(), false, 1 << 20),
            ("", text.clone(), true, 70_000),
        ] {
            let found = decode(encoding, &body, complete, most).unwrap();
            assert!(!found.complete && found.bytes.len() <= most && found.bytes.len() > 40_000, "{encoding}");
            assert!(text.starts_with(&found.bytes), "{encoding}");
        }
        // The inner data is wrong, and its end is beyond the limit of the outer one.
        let inner = [gz(b"").repeat(1001), text.clone()].concat();
        assert_eq!(decode("gzip, gzip", &gz(&inner), true, 70_000), Err(DecodeError::Members));
        assert_eq!(decode("gzip, gzip", &gz(&text), true, 70_000), Err(DecodeError::Corrupt));
        assert_eq!(decode("gzip, gzip", &gz(&gz(b"").repeat(900)), true, 4000), Err(DecodeError::Truncated));
        assert_eq!(decode("gzip", &gz(&text)[..10_000], true, 1 << 20), Err(DecodeError::Truncated));
        // A head that goes on beyond what is there.
        let named = flate2::GzBuilder::new().filename(vec![b'a'; 5000]).write(Vec::new(), flate2::Compression::best());
        assert_eq!(decode("gzip", &named.finish().unwrap()[..4000], false, 4000), Err(DecodeError::Truncated));
        for unknown in ["zstd", "gzip, zstd", "compress", "gzip,gzip,gzip,gzip", "gzip;q=1", "aws-chunked"] {
            assert_eq!(decode(unknown, &gz(&text), false, 100), Err(DecodeError::Unknown), "{unknown}");
        }
    }

    /// A stored block of raw data whose first bytes are a header of zlib and a stored block of that, which is shorter. What follows that
    /// one is no block.
    #[test]
    fn the_beginning_of_raw_data_is_not_what_it_is_as_zlib_data() {
        let mut content = b"\x01\xf8".to_vec();
        content.extend([b'z'; 0x7fe]);
        content.push(7);
        content.resize(0xf801, b'b');
        let data = [b"\x78\x01\xf8\xfe\x07".as_slice(), &content, b"\x01\0\0\xff\xff"].concat();
        let decode = |most| decode_beginning(b"deflate", &data, true, most, 100);
        assert_eq!(decode(1 << 20).unwrap().bytes, content);
        assert_eq!(decode(10_000).unwrap().bytes, content[..10_000]);
        assert_eq!(decode(1000).unwrap().bytes, content[..1000]);
    }

    /// The same with more zlib data: both readings go on, to their ends or not.
    #[test]
    fn the_beginning_of_what_is_zlib_and_raw_data_is_neither() {
        let data = |more: &[u8]| {
            let mut content = b"\x01\xf8".to_vec();
            content.extend([b'z'; 0x7fe]);
            content.extend(more);
            content.resize(0xf801, b'b');
            [b"\x78\x01\xf8\xfe\x07".as_slice(), &content, b"\x01\0\0\xff\xff"].concat()
        };
        let mut zeros = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        zeros.write_all(&[0; 100_000]).unwrap();
        let (stored, packed) = (data(b"\0\xff\x7f\0\x80"), data(&zeros.finish().unwrap()));
        for (what, data, complete, most) in [
            ("both are longer", stored.as_slice(), true, 10_000),
            ("both are cut off", &stored[..5000], false, 1 << 20),
            ("raw data is longer", &stored[..5000], false, 4990),
            ("zlib data is longer", &packed[..5000], false, 10_000),
            ("raw data is whole", &packed, true, 64_000),
        ] {
            let found = decode_beginning(b"deflate", data, complete, most, 100);
            assert_eq!(found, Err(DecodeError::Ambiguous), "{what}");
        }
    }

    #[test]
    fn zlib_data_that_is_cut_off_is_read_as_such() {
        let text: Vec<u8> = (0..5000_u32).flat_map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        zlib.write_all(&text).unwrap();
        let zlib = zlib.finish().unwrap();
        let decode = |length: usize| decode_beginning(b"deflate", &zlib[..length], false, 1 << 20, 100);
        for length in 0..5 {
            assert_eq!(decode(length), Err(DecodeError::Truncated), "{length}");
        }
        let half = decode(zlib.len() / 2).unwrap();
        assert!(!half.complete && half.bytes.len() > 5000 && text.starts_with(&half.bytes));
    }
}
