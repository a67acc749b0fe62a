//! `base64Decode`, `base64DecodeExt`, `base64Encode`.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// What stands for no character of the alphabet.
const NONE: u8 = 0xff;

/// For each byte its six bits.
const SEXTETS: [u8; 256] = {
    let mut sextets = [NONE; 256];
    let (mut left, mut at): (&[u8], u8) = (ALPHABET, 0);
    while let [byte, rest @ ..] = left {
        let (_, from) = sextets.split_at_mut(*byte as usize);
        if let [slot, ..] = from {
            *slot = at;
        }
        (left, at) = (rest, at + 1);
    }
    sextets
};

/// The six bits of a character of the alphabet of RFC 4648, section 4.
pub(crate) fn sextet(byte: u8) -> Option<u8> {
    SEXTETS.get(usize::from(byte)).copied().filter(|sextet| *sextet != NONE)
}

/// Decodes what is valid as a whole: complete groups, padding only at the end, line breaks and spaces at their ends
/// allowed. Anything else stays as it is. A NUL ends the input.
pub(super) fn decode(input: &[u8]) -> Option<Vec<u8>> {
    let input = input.get(..memchr::memchr(0, input).unwrap_or(input.len())).unwrap_or(input);
    // Most values are words: neither in the alphabet as a whole nor of complete groups.
    match input.iter().position(|byte| sextet(*byte).is_none()).map(|at| input.get(at)) {
        None if !input.len().is_multiple_of(4) => return None,
        Some(Some(byte)) if !matches!(byte, b'\n' | b'\r' | b' ' | b'=') => return None,
        _ => {}
    }
    let (mut bits, mut digits, mut padding) = (0u32, 0usize, 0usize);
    let mut output = Vec::with_capacity(input.len() / 4 * 3 + 3);
    let mut bytes = input.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\n' => continue,
            b'\r' if bytes.peek() == Some(&b'\n') => continue,
            // Spaces are allowed where a line or the input ends.
            b' ' => {
                while bytes.next_if_eq(&b' ').is_some() {}
                match bytes.peek() {
                    None | Some(b'\r' | b'\n') => continue,
                    Some(_) => return None,
                }
            }
            b'=' => {
                padding += 1;
                if padding > 2 {
                    return None;
                }
                bits <<= 6;
            }
            _ => {
                if padding > 0 {
                    return None;
                }
                bits = bits << 6 | u32::from(sextet(byte)?);
            }
        }
        digits += 1;
        if digits.is_multiple_of(4) {
            let [_, first, second, third] = bits.to_be_bytes();
            output.extend_from_slice([first, second, third].get(..3 - padding).unwrap_or_default());
            bits = 0;
        }
    }
    digits.is_multiple_of(4).then_some(output)
}

/// Decodes whatever is in the alphabet and skips every other byte, as the decoder of PHP does. What is left of an
/// incomplete group is dropped; a `=` after a single character of a group means that nothing was encoded.
pub(super) fn decode_forgiving(input: &[u8]) -> Option<Vec<u8>> {
    let mut output = Vec::with_capacity(input.len() / 4 * 3 + 3);
    let (mut bits, mut digits) = (0u32, 0usize);
    for (index, &byte) in input.iter().enumerate() {
        if byte == b'=' {
            if digits % 4 == 1 && input.get(index + 1) != Some(&b'=') {
                return Some(Vec::new());
            }
            continue;
        }
        let Some(value) = sextet(byte) else { continue };
        bits = (bits << 6 | u32::from(value)) & 0x00ff_ffff;
        match digits % 4 {
            1 => output.push((bits >> 4) as u8),
            2 => output.push((bits >> 2) as u8),
            3 => output.push(bits as u8),
            _ => {}
        }
        digits += 1;
    }
    if digits % 4 == 1 && input.last() == Some(&b'=') {
        return Some(Vec::new());
    }
    Some(output)
}

/// Encodes with padding and without line breaks.
pub(super) fn encode(input: &[u8]) -> Option<Vec<u8>> {
    let mut output = Vec::with_capacity(input.len().div_ceil(3) * 4);
    for group in input.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for position in 0..4 {
            let character = if position <= group.len() {
                ALPHABET.get((bits >> (18 - 6 * position) & 0x3f) as usize).copied().unwrap_or(b'=')
            } else {
                b'='
            };
            output.push(character);
        }
    }
    Some(output)
}
