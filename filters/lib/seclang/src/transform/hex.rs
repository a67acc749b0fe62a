//! `hexDecode` and `hexEncode`.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The digits of a byte, in lower case.
pub(super) fn digits(byte: u8) -> [u8; 2] {
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0');
    [digit(byte >> 4), digit(byte & 0x0f)]
}

/// Decodes each two bytes as a pair of hexadecimal digits; an odd last byte is dropped.
///
/// Bytes that are no digits are computed with as if they were, as the engine this follows does: the output is then
/// meaningless, but the pairs around stay in step.
pub(super) fn decode(input: &[u8]) -> Option<Vec<u8>> {
    let (pairs, _) = input.as_chunks::<2>();
    Some(pairs.iter().map(|&[high, low]| loose_digit(high).wrapping_mul(16).wrapping_add(loose_digit(low))).collect())
}

/// The value of a hexadecimal digit; of any other byte, whatever the same arithmetic gives.
fn loose_digit(byte: u8) -> u8 {
    if byte >= b'A' { (byte & 0xdf).wrapping_sub(b'A').wrapping_add(10) } else { byte.wrapping_sub(b'0') }
}

/// Encodes each byte as two hexadecimal digits in lower case.
pub(super) fn encode(input: &[u8]) -> Option<Vec<u8>> {
    Some(input.iter().flat_map(|&byte| digits(byte)).collect())
}
