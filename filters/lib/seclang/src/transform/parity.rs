//! `parityEven7bit`, `parityOdd7bit`, `parityZero7bit`.

/// Sets the eighth bit of each byte so that the number of ones is even.
pub(super) fn even(input: &[u8]) -> Option<Vec<u8>> {
    Some(input.iter().map(|&byte| with_parity(byte, false)).collect())
}

/// Sets the eighth bit of each byte so that the number of ones is odd.
pub(super) fn odd(input: &[u8]) -> Option<Vec<u8>> {
    Some(input.iter().map(|&byte| with_parity(byte, true)).collect())
}

/// Clears the eighth bit of each byte.
pub(super) fn zero(input: &[u8]) -> Option<Vec<u8>> {
    if input.is_ascii() {
        return None;
    }
    Some(input.iter().map(|&byte| byte & 0x7f).collect())
}

/// The eighth bit of the input counts as a one, as in the engine this follows, before it is replaced.
fn with_parity(byte: u8, odd: bool) -> u8 {
    if (byte.count_ones() % 2 == 1) == odd { byte & 0x7f } else { byte | 0x80 }
}
