//! 64 bytes at a time: which of them are in a class, as bits.
//!
//! In WebAssembly by its vectors; elsewhere by plain loops that compilers turn into such instructions.

/// The bytes of a block.
pub(crate) const BLOCK: usize = 64;

/// A block of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block(lanes::Lanes);

impl Block {
    /// The bytes of a text from `at` on; NUL behind its end.
    #[inline]
    pub(crate) fn of(text: &[u8], at: usize) -> Self {
        let rest = text.get(at..).unwrap_or_default();
        if let Some(whole) = rest.first_chunk() {
            return Self(lanes::of(whole));
        }
        let mut filled = [0; BLOCK];
        filled.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        Self(lanes::of(&filled))
    }

    /// Which bytes are this one: bit `i` is byte `i`.
    #[inline]
    pub(crate) fn equal(&self, byte: u8) -> u64 {
        lanes::equal(&self.0, byte)
    }

    /// Which bytes are one of two.
    #[inline]
    pub(crate) fn either(&self, one: u8, other: u8) -> u64 {
        lanes::either(&self.0, one, other)
    }

    /// Which bytes are one of the `count` from `first` on.
    #[inline]
    pub(crate) fn range(&self, first: u8, count: u8) -> u64 {
        lanes::range(&self.0, first, count)
    }
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod lanes {
    use std::arch::wasm32::{i64x2, u8x16_bitmask, u8x16_eq, u8x16_lt, u8x16_splat, u8x16_sub, v128, v128_or};

    use super::BLOCK;

    pub(super) type Lanes = [v128; 4];

    #[inline]
    pub(super) fn of(bytes: &[u8; BLOCK]) -> Lanes {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |at: usize| i64::from_le_bytes(words.get(at).copied().unwrap_or_default());
        [0, 2, 4, 6].map(|at| i64x2(word(at), word(at + 1)))
    }

    #[inline]
    pub(super) fn equal(lanes: &Lanes, byte: u8) -> u64 {
        bits(lanes, |lanes| u8x16_eq(lanes, u8x16_splat(byte)))
    }

    #[inline]
    pub(super) fn either(lanes: &Lanes, one: u8, other: u8) -> u64 {
        bits(lanes, |lanes| v128_or(u8x16_eq(lanes, u8x16_splat(one)), u8x16_eq(lanes, u8x16_splat(other))))
    }

    #[inline]
    pub(super) fn range(lanes: &Lanes, first: u8, count: u8) -> u64 {
        bits(lanes, |lanes| u8x16_lt(u8x16_sub(lanes, u8x16_splat(first)), u8x16_splat(count)))
    }

    #[inline]
    fn bits(lanes: &Lanes, class: impl Fn(v128) -> v128) -> u64 {
        let [a, b, c, d] = lanes.map(|lanes| u64::from(u8x16_bitmask(class(lanes))));
        a | b << 16 | c << 32 | d << 48
    }
}

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
mod lanes {
    use super::BLOCK;

    pub(super) type Lanes = [u8; BLOCK];

    #[inline]
    pub(super) fn of(bytes: &[u8; BLOCK]) -> Lanes {
        *bytes
    }

    #[inline]
    pub(super) fn equal(lanes: &Lanes, byte: u8) -> u64 {
        bits(lanes, |known| known == byte)
    }

    #[inline]
    pub(super) fn either(lanes: &Lanes, one: u8, other: u8) -> u64 {
        bits(lanes, |known| known == one || known == other)
    }

    #[inline]
    pub(super) fn range(lanes: &Lanes, first: u8, count: u8) -> u64 {
        bits(lanes, |known| known.wrapping_sub(first) < count)
    }

    #[inline]
    fn bits(lanes: &Lanes, class: impl Fn(u8) -> bool) -> u64 {
        let mut flags = [0; BLOCK];
        for (to, from) in flags.iter_mut().zip(lanes) {
            *to = if class(*from) { 0xff } else { 0 };
        }
        if flags.iter().fold(0, |any, flag| any | flag) == 0 {
            return 0;
        }
        // The highest bit of each of eight bytes side by side.
        let (words, _) = flags.as_chunks::<8>();
        words.iter().enumerate().fold(0, |mask, (place, word)| {
            let bits = u64::from_le_bytes(*word) & 0x8080_8080_8080_8080;
            mask | (bits.wrapping_mul(0x0002_0408_1020_4081) >> 56) << (8 * place)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_those_of_a_loop() {
        let text: Vec<u8> = (0..1000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for at in (0..text.len()).step_by(BLOCK) {
            let expected = |class: &dyn Fn(u8) -> bool| {
                (0..BLOCK).fold(0, |mask, bit| mask | u64::from(class(text.get(at + bit).copied().unwrap_or(0))) << bit)
            };
            let block = Block::of(&text, at);
            assert_eq!(block.range(b'0', 10), expected(&|byte| byte.is_ascii_digit()), "{at}");
            assert_eq!(block.range(200, 56), expected(&|byte| byte >= 200), "{at}");
            assert_eq!(block.equal(0), expected(&|byte| byte == 0), "{at}");
            assert_eq!(block.either(b' ', b'-'), expected(&|byte| byte == b' ' || byte == b'-'), "{at}");
        }
    }
}
