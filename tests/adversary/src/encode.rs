//! The functions of [`crate::template`]: repetition, encodings, character sets, compression.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use crate::template::MAX_BYTES;
use crate::wire::{h2, hpack};

/// 100 MiB of the letter `a` in brotli: a hundred bytes that no encoder here could make.
const BROTLI_BOMB: &[u8] = include_bytes!("../cases/data/100-mib-of-a.br");

/// Calls a function by its name.
///
/// # Errors
///
/// An unknown name, too few arguments, an argument that is no number, a result that is too long.
pub fn call(name: &str, arguments: &[Vec<u8>]) -> Result<Vec<u8>, String> {
    let given = Arguments(arguments);
    let result = match name {
        // Length and repetition.
        "repeat" => repeat(given.number(0)?, given.bytes(1)?)?,
        "pad" => pad(given.number(0)?, given.bytes(1)?)?,
        "series" => series(given.number(0)?, given.bytes(1)?, given.bytes(2)?)?,
        "nest" => nest(given.number(0)?, given.bytes(1)?, given.bytes(2)?, given.bytes(3)?)?,
        "join" => given.bytes(0)?.iter().map(|byte| vec![*byte]).collect::<Vec<_>>().join(given.bytes(1)?),
        "replace" => replace(given.bytes(0)?, given.bytes(1)?, given.bytes(2)?)?,
        "length" => given.bytes(0)?.len().to_string().into_bytes(),
        "hexlength" => format!("{:x}", given.bytes(0)?.len()).into_bytes(),
        // Encodings of each byte.
        "url" => each(given.bytes(0)?, |byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        }),
        "url_all" => each(given.bytes(0)?, |byte| format!("%{byte:02x}")),
        "url_u" => each(given.bytes(0)?, |byte| format!("%u00{byte:02x}")),
        "url_u_fullwidth" => each(given.bytes(0)?, |byte| match byte {
            b'!'..=b'~' => format!("%uff{:02x}", byte - 0x20),
            _ => format!("%u00{byte:02x}"),
        }),
        "html_dec" => each(given.bytes(0)?, |byte| format!("&#{byte};")),
        "html_hex" => each(given.bytes(0)?, |byte| format!("&#x{byte:x};")),
        "html_zeros" => each(given.bytes(0)?, |byte| format!("&#{byte:07}")),
        "js_u" => each(given.bytes(0)?, |byte| format!("\\u{byte:04x}")),
        "js_x" => each(given.bytes(0)?, |byte| format!("\\x{byte:02x}")),
        "js_octal" => each(given.bytes(0)?, |byte| format!("\\{byte:o}")),
        "css" => each(given.bytes(0)?, |byte| format!("\\{byte:06x}")),
        "hex" => each(given.bytes(0)?, |byte| format!("{byte:02x}")),
        "base64" => STANDARD.encode(given.bytes(0)?).into_bytes(),
        "upper" => given.bytes(0)?.to_ascii_uppercase(),
        "mixed" => mixed(given.bytes(0)?),
        // Character sets.
        "fullwidth" => fullwidth(given.bytes(0)?),
        "overlong2" => flat(given.bytes(0)?, |byte| vec![0xc0 | (byte >> 6), 0x80 | (byte & 0x3f)]),
        "overlong3" => flat(given.bytes(0)?, |byte| vec![0xe0, 0x80 | (byte >> 6), 0x80 | (byte & 0x3f)]),
        "utf16le" => flat(given.bytes(0)?, |byte| vec![byte, 0]),
        "utf16be" => flat(given.bytes(0)?, |byte| vec![0, byte]),
        "utf32be" => flat(given.bytes(0)?, |byte| vec![0, 0, 0, byte]),
        "utf7" => utf7(given.bytes(0)?),
        "ibm037" => given.bytes(0)?.iter().map(|byte| ibm037(*byte)).collect::<Result<_, _>>()?,
        // Compression.
        "gzip" => compress(GzEncoder::new(Vec::new(), Compression::best()), given.bytes(0)?, GzEncoder::finish)?,
        "zlib" => compress(ZlibEncoder::new(Vec::new(), Compression::best()), given.bytes(0)?, ZlibEncoder::finish)?,
        "deflate" => {
            compress(DeflateEncoder::new(Vec::new(), Compression::best()), given.bytes(0)?, DeflateEncoder::finish)?
        }
        "brotli" => brotli(given.bytes(0)?),
        "brotli_bomb" => BROTLI_BOMB.to_vec(),
        // HTTP/2.
        "field" => hpack::field(given.bytes(0)?, given.bytes(1)?),
        "frame" => h2::frame(
            u8::try_from(given.number(0)?).map_err(|_| "no frame type")?,
            u8::try_from(given.number(1)?).map_err(|_| "no flags")?,
            u32::try_from(given.number(2)?).map_err(|_| "no stream")?,
            given.bytes(3)?,
        ),
        _ => return Err("no such function".to_owned()),
    };
    if result.len() > MAX_BYTES { Err(too_long()) } else { Ok(result) }
}

struct Arguments<'a>(&'a [Vec<u8>]);

impl Arguments<'_> {
    fn bytes(&self, index: usize) -> Result<&[u8], String> {
        self.0.get(index).map(Vec::as_slice).ok_or_else(|| format!("argument {} is missing", index + 1))
    }

    fn number(&self, index: usize) -> Result<usize, String> {
        let bytes = self.bytes(index)?;
        let number = std::str::from_utf8(bytes).ok().and_then(|digits| digits.parse().ok());
        number.ok_or_else(|| format!("{:?} is no number", String::from_utf8_lossy(bytes)))
    }
}

fn too_long() -> String {
    format!("more than {MAX_BYTES} bytes")
}

fn bounded(count: usize, each: usize) -> Result<(), String> {
    if count.saturating_mul(each) > MAX_BYTES { Err(too_long()) } else { Ok(()) }
}

fn repeat(count: usize, what: &[u8]) -> Result<Vec<u8>, String> {
    bounded(count, what.len())?;
    Ok(what.repeat(count))
}

/// Exactly `length` bytes of `what`, again and again.
fn pad(length: usize, what: &[u8]) -> Result<Vec<u8>, String> {
    bounded(length, 1)?;
    if what.is_empty() {
        return Err("nothing to pad with".to_owned());
    }
    Ok(what.iter().copied().cycle().take(length).collect())
}

/// `count` times `what`, each `#` in it replaced by its number from 0, with `between` between them.
fn series(count: usize, what: &[u8], between: &[u8]) -> Result<Vec<u8>, String> {
    bounded(count, what.len() + between.len())?;
    let parts: Vec<Vec<u8>> = (0..count)
        .map(|number| flat(what, |byte| if byte == b'#' { number.to_string().into_bytes() } else { vec![byte] }))
        .collect();
    Ok(parts.join(between))
}

fn nest(count: usize, open: &[u8], inner: &[u8], close: &[u8]) -> Result<Vec<u8>, String> {
    Ok([repeat(count, open)?, inner.to_vec(), repeat(count, close)?].concat())
}

fn replace(text: &[u8], from: &[u8], to: &[u8]) -> Result<Vec<u8>, String> {
    if from.is_empty() {
        return Err("nothing to replace".to_owned());
    }
    let mut out = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(from) {
            out.extend_from_slice(to);
            rest = after;
        } else {
            out.push(rest[0]);
            rest = &rest[1..];
        }
    }
    Ok(out)
}

fn each(bytes: &[u8], encode: impl Fn(u8) -> String) -> Vec<u8> {
    flat(bytes, |byte| encode(byte).into_bytes())
}

fn flat(bytes: &[u8], encode: impl Fn(u8) -> Vec<u8>) -> Vec<u8> {
    bytes.iter().flat_map(|byte| encode(*byte)).collect()
}

fn mixed(bytes: &[u8]) -> Vec<u8> {
    let mut upper = false;
    let mut turn = |byte: &u8| {
        if !byte.is_ascii_alphabetic() {
            return *byte;
        }
        upper = !upper;
        if upper { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() }
    };
    bytes.iter().map(&mut turn).collect()
}

/// Printable ASCII as the full-width forms of Unicode, in UTF-8: what best-fit mappings turn back into ASCII.
fn fullwidth(bytes: &[u8]) -> Vec<u8> {
    let wide = |byte: u8| match byte {
        b'!'..=b'~' => char::from_u32(0xff00 + u32::from(byte) - 0x20).map(String::from).unwrap_or_default(),
        _ => char::from(byte).to_string(),
    };
    each(bytes, wide)
}

/// UTF-7: what is not a letter, a digit or a space in its base64 form.
fn utf7(bytes: &[u8]) -> Vec<u8> {
    each(bytes, |byte| {
        if byte.is_ascii_alphanumeric() || byte == b' ' {
            return char::from(byte).to_string();
        }
        format!("+{}-", STANDARD.encode([0, byte]).trim_end_matches('='))
    })
}

/// One character of EBCDIC as code page 037 has it.
fn ibm037(byte: u8) -> Result<u8, String> {
    Ok(match byte {
        b'a'..=b'i' => byte - b'a' + 0x81,
        b'j'..=b'r' => byte - b'j' + 0x91,
        b's'..=b'z' => byte - b's' + 0xa2,
        b'A'..=b'I' => byte - b'A' + 0xc1,
        b'J'..=b'R' => byte - b'J' + 0xd1,
        b'S'..=b'Z' => byte - b'S' + 0xe2,
        b'0'..=b'9' => byte - b'0' + 0xf0,
        b' ' => 0x40,
        b'.' => 0x4b,
        b'<' => 0x4c,
        b'(' => 0x4d,
        b'+' => 0x4e,
        b'&' => 0x50,
        b'*' => 0x5c,
        b')' => 0x5d,
        b';' => 0x5e,
        b'-' => 0x60,
        b'/' => 0x61,
        b',' => 0x6b,
        b'%' => 0x6c,
        b'_' => 0x6d,
        b'>' => 0x6e,
        b'?' => 0x6f,
        b':' => 0x7a,
        b'#' => 0x7b,
        b'@' => 0x7c,
        b'\'' => 0x7d,
        b'=' => 0x7e,
        b'"' => 0x7f,
        _ => return Err(format!("{byte:#04x} is not in the table")),
    })
}

fn compress<W: Write>(
    mut encoder: W,
    bytes: &[u8],
    finish: impl Fn(W) -> std::io::Result<Vec<u8>>,
) -> Result<Vec<u8>, String> {
    encoder.write_all(bytes).and_then(|()| finish(encoder)).map_err(|error| error.to_string())
}

/// Brotli without compression: meta-blocks that hold their bytes as they are (RFC 7932, section 9.2).
fn brotli(bytes: &[u8]) -> Vec<u8> {
    // A window of 16 bits is the single bit 0. A block's head: not the last, 4 nibbles of length, uncompressed.
    let mut out = Vec::new();
    for (number, block) in bytes.chunks(1 << 16).enumerate() {
        let length = block.len() as u32 - 1;
        let head = (length << 3) | (1 << 19);
        // The first block's head begins behind the window's bit.
        let (head, bits) = if number == 0 { (head << 1, 21) } else { (head, 20) };
        out.extend_from_slice(&head.to_le_bytes()[..(bits as usize).div_ceil(8)]);
        out.extend_from_slice(block);
    }
    // The last, empty block; alone it needs the window's bit before it.
    out.push(if bytes.is_empty() { 0b110 } else { 0b11 });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(name: &str, arguments: &[&str]) -> Vec<u8> {
        let arguments: Vec<Vec<u8>> = arguments.iter().map(|argument| argument.as_bytes().to_vec()).collect();
        call(name, &arguments).unwrap()
    }

    #[test]
    fn functions_give_what_their_names_say() {
        for (name, arguments, wanted) in [
            ("pad", &["5", "ab"][..], "ababa"),
            ("series", &["3", "a#=1", "&"], "a0=1&a1=1&a2=1"),
            ("nest", &["2", "[", "1", "]"], "[[1]]"),
            ("join", &["abc", "/**/"], "a/**/b/**/c"),
            ("replace", &["a b c", " ", "%0b"], "a%0bb%0bc"),
            ("mixed", &["union all"], "UnIoN aLl"),
            ("url_u", &["'"], "%u0027"),
            ("html_zeros", &["<"], "&#0000060"),
            ("utf7", &["<a>"], "+ADw-a+AD4-"),
            ("js_u", &["<"], "\\u003c"),
            ("length", &["abc"], "3"),
        ] {
            assert_eq!(String::from_utf8_lossy(&called(name, arguments)), wanted, "{name}");
        }
        assert_eq!(called("overlong2", &["/"]), [0xc0, 0xaf]);
        assert_eq!(called("utf16be", &["<"]), [0, b'<']);
        assert_eq!(called("ibm037", &["<A1'"]), [0x4c, 0xc1, 0xf1, 0x7d]);
        assert_eq!(called("fullwidth", &["<"]), "\u{ff1c}".as_bytes());
    }

    #[test]
    fn brotli_blocks_are_laid_out_as_the_format_says() {
        // Window bit 0, then MNIBBLES 0, MLEN-1 = 0, uncompressed, padding: 20 bits after the window's.
        assert_eq!(called("brotli", &["a"]), [0x00, 0x00, 0x10, b'a', 0b11]);
        assert_eq!(called("brotli", &[""]), [0b110]);
    }
}
