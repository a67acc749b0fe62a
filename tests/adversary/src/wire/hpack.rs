//! Just enough of HPACK: fields out as literals, the status of an answer in.
//!
//! Literals take any bytes, also those that no field may have. The peer is told that the dynamic table has no entries
//! (`SETTINGS_HEADER_TABLE_SIZE` 0), so what comes in can only point into the static table.

/// A field as a literal without indexing, with a new name.
#[must_use]
pub fn field(name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut out = vec![0];
    for text in [name, value] {
        integer(text.len(), &mut out);
        out.extend_from_slice(text);
    }
    out
}

/// An integer behind a 7-bit prefix whose first bit is 0 (RFC 7541, section 5.1).
fn integer(value: usize, out: &mut Vec<u8>) {
    if value < 127 {
        out.push(value as u8);
        return;
    }
    out.push(127);
    let mut rest = value - 127;
    while rest >= 128 {
        out.push((rest & 127) as u8 | 128);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// The status that a header block begins with.
#[must_use]
pub fn status(block: &[u8]) -> Option<u16> {
    let mut rest = block;
    // Updates of the dynamic table's size come first.
    while let Some((0x20..=0x3f, after)) = rest.split_first() {
        rest = after;
    }
    let (first, rest) = rest.split_first()?;
    match first {
        0x88 => Some(200),
        0x89 => Some(204),
        0x8a => Some(206),
        0x8b => Some(304),
        0x8c => Some(400),
        0x8d => Some(404),
        0x8e => Some(500),
        // A literal with the name of an entry of the static table: 8 to 14 are `:status`.
        0x48..=0x4e | 0x08..=0x0e => {
            let (length, text) = rest.split_first()?;
            let text = text.get(..usize::from(length & 0x7f))?;
            let digits = if length & 0x80 == 0 { text.to_vec() } else { huffman_digits(text)? };
            std::str::from_utf8(&digits).ok()?.parse().ok()
        }
        _ => None,
    }
}

/// Huffman codes of digits: 0 to 2 are 00000 to 00010, 3 to 9 are 011001 to 011111.
fn huffman_digits(text: &[u8]) -> Option<Vec<u8>> {
    let bits: Vec<u8> = text.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    let number = |bits: &[u8]| bits.iter().fold(0_u8, |number, bit| number << 1 | bit);
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(five) = bits.get(at..at + 5) {
        if let digit @ 0..=2 = number(five) {
            out.push(b'0' + digit);
            at += 5;
        } else if let Some(digit @ 25..=31) = bits.get(at..at + 6).map(number) {
            out.push(b'0' + digit - 22);
            at += 6;
        } else {
            // Padding is all ones and shorter than a byte.
            break;
        }
    }
    (!out.is_empty()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_read_in_every_form() {
        assert_eq!(status(&[0x88, 0x0f]), Some(200));
        assert_eq!(status(&[0x20, 0x8d]), Some(404));
        assert_eq!(status(&[0x08, 0x03, b'4', b'0', b'3']), Some(403));
        // RFC 7541, appendix C.6.1: 302 is 64 02.
        assert_eq!(status(&[0x48, 0x82, 0x64, 0x02, 0x58]), Some(302));
        // RFC 7541, appendix C.6.2: 307 is 64 0e ff.
        assert_eq!(status(&[0x48, 0x83, 0x64, 0x0e, 0xff]), Some(307));
        assert_eq!(status(&[0x40, 0x01]), None);
    }

    #[test]
    fn fields_are_literals() {
        assert_eq!(field(b"a", b"bc"), [0, 1, b'a', 2, b'b', b'c']);
        let long = field(b"a", &[b'x'; 300]);
        assert_eq!(long[3..6], [127, 0xad, 0x01]);
    }
}
