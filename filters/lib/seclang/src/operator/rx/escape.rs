//! Escapes of PCRE that stand for one byte.

fn digit(pattern: &[u8], at: usize, radix: u32) -> Option<u32> {
    char::from(*pattern.get(at)?).to_digit(radix)
}

/// Reads the escape at `at` (a backslash) that stands for one byte: the byte and where the escape ends.
///
/// A letter without a meaning stands for itself, as does any punctuation. `in_class` says that `\b` is a backspace and
/// that `\1` is octal.
pub(super) fn byte(pattern: &[u8], at: usize, in_class: bool) -> Result<(u8, usize), (&'static str, usize)> {
    let Some(&letter) = pattern.get(at + 1) else {
        return Err(("a backslash ends this pattern", at));
    };
    let after = at + 2;
    let byte = match letter {
        b'a' => 0x07,
        b'e' => 0x1b,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' if in_class => 0x08,
        b'c' => {
            let Some(&control) = pattern.get(after) else {
                return Err(("\\c needs a character", at));
            };
            return Ok((control.to_ascii_uppercase() ^ 0x40, after + 1));
        }
        b'x' => return hexadecimal(pattern, at),
        b'o' if pattern.get(after) == Some(&b'{') => return braced(pattern, at, after + 1, 8),
        b'0'..=b'7' => {
            let mut value = 0;
            let mut end = at + 1;
            while end < at + 4
                && let Some(digit) = digit(pattern, end, 8)
            {
                value = value * 8 + digit;
                end += 1;
            }
            return Ok(((value & 0xff) as u8, end));
        }
        b'p' | b'P' | b'X' => return Err(("Unicode properties are not supported: patterns match bytes", at)),
        _ => letter,
    };
    Ok((byte, after))
}

/// `\xHH` with at most two digits, or `\x{H...}`.
fn hexadecimal(pattern: &[u8], at: usize) -> Result<(u8, usize), (&'static str, usize)> {
    let first = at + 2;
    if pattern.get(first) == Some(&b'{') {
        return braced(pattern, at, first + 1, 16);
    }
    let mut value = 0;
    let mut end = first;
    while end < first + 2
        && let Some(digit) = digit(pattern, end, 16)
    {
        value = value * 16 + digit;
        end += 1;
    }
    Ok((value as u8, end))
}

fn braced(pattern: &[u8], at: usize, first: usize, radix: u32) -> Result<(u8, usize), (&'static str, usize)> {
    let mut value = 0u32;
    let mut end = first;
    while let Some(digit) = digit(pattern, end, radix) {
        value = value.saturating_mul(radix).saturating_add(digit);
        end += 1;
    }
    if pattern.get(end) != Some(&b'}') || end == first {
        return Err(("this escape is not closed", at));
    }
    match u8::try_from(value) {
        Ok(byte) => Ok((byte, end + 1)),
        Err(_) => Err(("this escape is above \\xff: patterns match bytes, write the bytes of the UTF-8 sequence", at)),
    }
}
