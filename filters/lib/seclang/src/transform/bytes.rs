//! Byte classes and small parsers that several transformations share.

/// White space of the C locale: space, tab, line feed, vertical tab, form feed, carriage return.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// The value of a hexadecimal digit.
pub(super) fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// The byte two hexadecimal digits at `at` stand for.
pub(super) fn hex_byte(input: &[u8], at: usize) -> Option<u8> {
    let high = hex_digit(*input.get(at)?)?;
    let low = hex_digit(*input.get(at + 1)?)?;
    Some(high << 4 | low)
}

/// The code unit four hexadecimal digits at `at` stand for.
pub(super) fn hex_unit(input: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([hex_byte(input, at)?, hex_byte(input, at + 2)?]))
}

/// Up to `most` octal digits at `at`: their value and how many there are.
pub(super) fn octal(input: &[u8], at: usize, most: usize) -> Option<(u32, usize)> {
    let digits = input.get(at..).unwrap_or_default().iter().take(most).take_while(|byte| matches!(byte, b'0'..=b'7'));
    let (mut value, mut count) = (0, 0);
    for digit in digits {
        value = value * 8 + u32::from(digit - b'0');
        count += 1;
    }
    (count > 0).then_some((value, count))
}

/// The control character of a C escape: `n` is a line feed.
pub(super) fn control(letter: u8) -> Option<u8> {
    Some(match letter {
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        _ => return None,
    })
}

/// The bytes from `first` on replaced, and kept where `filter` says so, behind what stands before them.
///
/// Every byte is written, and the next one over it if it is not kept: nothing to guess for a processor.
pub(super) fn filtered(input: &[u8], first: usize, mut filter: impl FnMut(u8) -> (u8, bool)) -> Vec<u8> {
    let mut output = input.to_vec();
    let mut end = first;
    for &byte in input.get(first..).unwrap_or_default() {
        let (byte, kept) = filter(byte);
        if let Some(slot) = output.get_mut(end) {
            *slot = byte;
        }
        end += usize::from(kept);
    }
    output.truncate(end);
    output
}

/// How many bytes are looked at together: one test for all of them.
pub(super) const CHUNK: usize = 16;

/// Whether any of the bytes is as `wanted`, found out without a branch for each.
///
/// Made for one comparison: several of them for each byte are not turned into vectors.
#[inline(always)]
pub(super) fn any(bytes: &[u8], wanted: impl Fn(u8) -> bool) -> bool {
    bytes.iter().fold(false, |any, &byte| any | wanted(byte))
}

/// Whether any of the bytes is one of a few.
#[inline(always)]
pub(super) fn any_of<const N: usize>(bytes: &[u8], wanted: [u8; N]) -> bool {
    wanted.into_iter().fold(false, |found, wanted| found | any(bytes, |byte| byte == wanted))
}

/// Whether any of the bytes is white space as of [`is_space`], other than a space.
#[inline(always)]
pub(super) fn any_control_space(bytes: &[u8]) -> bool {
    any(bytes, |byte| byte.wrapping_sub(b'\t') < 5)
}

/// Whether two bytes follow each other, the first of them in the chunk; the byte after the chunk is given too.
#[inline(always)]
pub(super) fn any_pair(bytes: &[u8; CHUNK + 1], [first, second]: [u8; 2]) -> bool {
    let (chunk, next) = (bytes.iter().take(CHUNK), bytes.iter().skip(1));
    chunk.zip(next).fold(false, |any, (byte, next)| any | ((byte ^ first) | (next ^ second) == 0))
}

/// What is read at once: a chunk, the byte after it, and all that follows the chunk; `None` near the end.
#[inline(always)]
pub(super) fn chunk(input: &[u8]) -> Option<(&[u8; CHUNK], &[u8; CHUNK + 1], &[u8])> {
    let (chunk, after) = input.split_first_chunk()?;
    Some((chunk, input.first_chunk()?, after))
}

/// Where the first byte is that is `wanted`, if `any` says for a chunk whether there is one.
#[inline(always)]
pub(super) fn first(input: &[u8], any: impl Fn(&[u8]) -> bool, wanted: impl Fn(u8) -> bool) -> Option<usize> {
    let (chunks, _) = input.as_chunks::<CHUNK>();
    let before = chunks.iter().take_while(|chunk| !any(chunk.as_slice())).count() * CHUNK;
    input.get(before..)?.iter().position(|&byte| wanted(byte)).map(|at| before + at)
}

/// An output that already holds what stands before `first`, the first byte that may change.
pub(super) fn start_at(input: &[u8], first: usize) -> Vec<u8> {
    let mut output = Vec::with_capacity(input.len());
    output.extend_from_slice(input.get(..first).unwrap_or(input));
    output
}
