//! The search for keys with the vectors of WebAssembly.

use std::arch::wasm32::{
    i64x2, u8x16, u8x16_bitmask, u8x16_ne, u8x16_shr, u8x16_splat, u8x16_swizzle, v128, v128_and, v128_any_true,
};

use super::keys::{Key, frequency};

const BUCKETS: usize = 8;

#[derive(Debug)]
pub(super) struct Search {
    /// For each byte of a key: the buckets by its low and by its high half.
    tables: [(v128, v128); 3],
}

impl Search {
    pub(super) fn new(keys: &[Key]) -> Self {
        let mut buckets = [[Halves::default(); 3]; BUCKETS];
        for key in keys {
            // The bucket that passes the fewest other texts with it.
            let growth = |bucket: &[Halves; 3]| passed(&with(bucket, key)) - passed(bucket);
            let best = buckets.iter_mut().map(|bucket| (growth(bucket), bucket)).min_by(|a, b| a.0.total_cmp(&b.0));
            if let Some((_, bucket)) = best {
                *bucket = with(bucket, key);
            }
        }
        let table = |byte: usize, half: fn(&Halves) -> u16| {
            let mut bits = [0u8; 16];
            for (bucket, halves) in buckets.iter().enumerate() {
                let of = halves.get(byte).map_or(0, half);
                for (value, bits) in bits.iter_mut().enumerate() {
                    *bits |= u8::from(of & 1 << value != 0) << bucket;
                }
            }
            vector(bits)
        };
        Self { tables: [0, 1, 2].map(|byte| (table(byte, |halves| halves.low), table(byte, |halves| halves.high))) }
    }

    /// Calls `check` with each place that may have a key, and goes on where it says.
    #[inline]
    pub(super) fn each(&self, text: &[u8], mut check: impl FnMut(usize) -> usize) {
        let (mut from, mut at) = (0, 0);
        while let Some(bytes) = text.get(at..).and_then(|rest| rest.first_chunk::<18>()) {
            let mut places = self.candidates(bytes);
            while places != 0 {
                let place = at + places.trailing_zeros() as usize;
                places &= places - 1;
                if place >= from {
                    from = check(place);
                }
            }
            at = if from > at + 16 { from } else { at + 16 };
        }
        for place in at..text.len() {
            if place >= from {
                from = check(place);
            }
        }
    }

    #[inline]
    fn candidates(&self, bytes: &[u8; 18]) -> u16 {
        let [first, second, third] = [0, 1, 2].map(|skip| {
            let half = |from: usize| {
                let chunk = bytes.get(from..).and_then(|rest| rest.first_chunk::<8>()).copied().unwrap_or_default();
                i64::from_le_bytes(chunk)
            };
            i64x2(half(skip), half(skip + 8))
        });
        let of = |vector: v128, (low, high): (v128, v128)| {
            let low = u8x16_swizzle(low, v128_and(vector, u8x16_splat(15)));
            v128_and(low, u8x16_swizzle(high, u8x16_shr(vector, 4)))
        };
        let [a, b, c] = self.tables;
        let all = v128_and(v128_and(of(first, a), of(second, b)), of(third, c));
        if v128_any_true(all) { u8x16_bitmask(u8x16_ne(all, u8x16_splat(0))) } else { 0 }
    }
}

/// The low and the high halves of the bytes that a bucket has at one place of its keys, as bits.
#[derive(Debug, Clone, Copy, Default)]
struct Halves {
    low: u16,
    high: u16,
}

fn with(bucket: &[Halves; 3], key: &Key) -> [Halves; 3] {
    let mut bucket = *bucket;
    for (halves, byte) in bucket.iter_mut().zip(key) {
        halves.low |= 1 << (byte & 15);
        halves.high |= 1 << (byte >> 4);
    }
    bucket
}

/// The share of texts that a bucket takes for one of its keys.
fn passed(bucket: &[Halves; 3]) -> f32 {
    bucket.iter().map(Halves::share).product()
}

impl Halves {
    /// The share of bytes that have both halves.
    fn share(&self) -> f32 {
        let has = |byte: &u8| self.low & 1 << (byte & 15) != 0 && self.high & 1 << (byte >> 4) != 0;
        (0..=255).filter(has).map(|byte| f32::from(frequency(byte)) / 1000.0).sum()
    }
}

fn vector(bytes: [u8; 16]) -> v128 {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bytes;
    u8x16(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
}
