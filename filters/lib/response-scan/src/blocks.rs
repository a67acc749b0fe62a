//! 64 bytes at a time, in plain loops that compilers turn into vector instructions: no place of a block decides what is done with the
//! next one.

/// The bytes of a block.
pub(crate) const BLOCK: usize = 64;
/// A block and what may follow it in a word that begins in it.
const WITH_REST: usize = BLOCK + 4;

/// What a block may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hints {
    /// Three digits side by side begin in it.
    pub(crate) digits: bool,
    /// Two capital letters and two digits begin in it.
    pub(crate) account: bool,
    /// It has an `@`.
    pub(crate) at: bool,
}

/// Which bytes of a block are in a class: bit `i` is byte `i`.
pub(crate) fn mask(block: &[u8; BLOCK], class: impl Fn(u8) -> bool) -> u64 {
    // All ones for each byte of the class, then the highest bit of each of eight bytes side by side.
    let flags = flags(block, |byte| if class(byte) { 0xff } else { 0 });
    let (words, _) = flags.as_chunks::<8>();
    words.iter().enumerate().fold(0, |mask, (place, word)| {
        let bits = u64::from_le_bytes(*word) & 0x8080_8080_8080_8080;
        mask | (bits.wrapping_mul(0x0002_0408_1020_4081) >> 56) << (8 * place)
    })
}

/// A flag for each byte. A plain loop: compilers make no vectors of `map` of an array.
#[inline]
fn flags<const N: usize>(bytes: &[u8; N], flag: impl Fn(u8) -> u8) -> [u8; N] {
    let mut flags = [0; N];
    for (to, from) in flags.iter_mut().zip(bytes) {
        *to = flag(*from);
    }
    flags
}

/// The bytes of a text from `at` on; NUL behind its end.
pub(crate) fn block(text: &[u8], at: usize) -> [u8; BLOCK] {
    padded(text, at)
}

fn padded<const N: usize>(text: &[u8], at: usize) -> [u8; N] {
    let rest = text.get(at..).unwrap_or_default();
    if let Some(whole) = rest.first_chunk() {
        return *whole;
    }
    let mut filled = [0; N];
    filled.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    filled
}

/// What the block at a place may have.
#[inline]
pub(crate) fn hints(text: &[u8], at: usize) -> Hints {
    let bytes: [u8; WITH_REST] = padded(text, at);
    let digit = flags(&bytes, |byte| u8::from(byte.wrapping_sub(b'0') < 10));
    let capital = flags(&bytes, |byte| u8::from(byte.wrapping_sub(b'A') < 26));
    let (mut digits, mut account, mut sign) = (0, 0, 0);
    for ((first, second), third) in shifted(&digit, 0).iter().zip(shifted(&digit, 1)).zip(shifted(&digit, 2)) {
        digits |= first & second & third;
    }
    let letters = shifted(&capital, 0).iter().zip(shifted(&capital, 1));
    let numbers = shifted(&digit, 2).iter().zip(shifted(&digit, 3));
    for ((first, second), (third, fourth)) in letters.zip(numbers) {
        account |= first & second & third & fourth;
    }
    for byte in shifted(&bytes, 0) {
        sign |= u8::from(*byte == b'@');
    }
    Hints { digits: digits != 0, account: account != 0, at: sign != 0 }
}

/// 64 of the bytes, from the byte `by` on.
fn shifted(bytes: &[u8; WITH_REST], by: usize) -> &[u8; BLOCK] {
    const NONE: &[u8; BLOCK] = &[0; BLOCK];
    bytes.get(by..).and_then(|rest| rest.first_chunk()).unwrap_or(NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_those_of_a_loop() {
        let text: Vec<u8> = (0..1000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for at in (0..text.len()).step_by(BLOCK) {
            for class in [|byte: u8| byte.is_ascii_digit(), |byte: u8| byte == 0, |_| true, |byte: u8| byte >= 200] {
                let expected = (0..BLOCK)
                    .fold(0, |mask, bit| mask | u64::from(class(text.get(at + bit).copied().unwrap_or(0))) << bit);
                assert_eq!(mask(&block(&text, at), class), expected, "{at}");
            }
        }
    }

    #[test]
    fn hints_are_found_at_every_place() {
        for at in 0..BLOCK {
            let hints_of = |word: &str| hints(&[vec![b'.'; at].as_slice(), word.as_bytes()].concat(), 0);
            let none = Hints { digits: false, account: false, at: false };
            assert_eq!(hints_of("12.34"), none);
            assert_eq!(hints_of("123"), Hints { digits: true, ..none });
            assert_eq!(hints_of("AB12"), Hints { account: true, ..none });
            assert_eq!(hints_of("@"), Hints { at: true, ..none });
        }
    }
}
