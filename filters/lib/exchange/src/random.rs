//! Random numbers that cannot be predicted from those before them.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use snapshot::content_hash;

/// Bytes that are made at once, beside the next key.
const POOL: usize = 480;

/// ChaCha20 (RFC 8439) with fast key erasure: each run of the cipher makes the key of the next one first, and what was given
/// out is overwritten. So neither the numbers nor a look into the memory tell the numbers before.
pub struct Generator {
    key: [u8; 32],
    pool: [u8; POOL],
    used: usize,
}

impl Generator {
    /// A generator with that key.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        Self { key, pool: [0; POOL], used: POOL }
    }

    /// Mixes entropy of another source in: the numbers cannot be predicted as long as one of the sources cannot.
    pub fn mix(&mut self, entropy: &[u8]) {
        self.key = content_hash(&[b"palisade random".as_slice(), &self.key, entropy].concat());
        self.pool.fill(0);
        self.used = POOL;
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        if self.used.saturating_add(8) > POOL {
            self.refill();
        }
        let place = self.used;
        self.used = place.saturating_add(8);
        let Some(bytes) = self.pool.get_mut(place..).and_then(<[u8]>::first_chunk_mut::<8>) else {
            return 0;
        };
        u64::from_le_bytes(std::mem::take(bytes))
    }

    fn refill(&mut self) {
        let mut cipher = ChaCha20Rng::from_seed(self.key);
        cipher.fill_bytes(&mut self.key);
        cipher.fill_bytes(&mut self.pool);
        self.used = 0;
    }
}

impl std::fmt::Debug for Generator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Generator").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(generator: &mut Generator, count: usize) -> Vec<u64> {
        (0..count).map(|_| generator.draw()).collect()
    }

    /// The key stream for a key and a nonce of zeros: RFC 8439, appendix A.1, test vectors 1 and 2.
    #[test]
    fn it_is_chacha20_whose_first_32_bytes_are_the_next_key() {
        let mut generator = Generator::new([0; 32]);
        let drawn: Vec<u8> = drawn(&mut generator, 5).into_iter().flat_map(u64::to_le_bytes).collect();
        let stream = [
            0xda, 0x41, 0x59, 0x7c, 0x51, 0x57, 0x48, 0x8d, 0x77, 0x24, 0xe0, 0x3f, 0xb8, 0xd8, 0x4a, 0x37, 0x6a, 0x43,
            0xb8, 0xf4, 0x15, 0x18, 0xa1, 0x1c, 0xc3, 0x87, 0xb6, 0x69, 0xb2, 0xee, 0x65, 0x86, 0x9f, 0x07, 0xe7, 0xbe,
            0x55, 0x51, 0x38, 0x7a,
        ];
        assert_eq!(drawn, stream);
        let next = [0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90, 0x40, 0x5d, 0x6a, 0xe5, 0x53, 0x86, 0xbd, 0x28];
        assert_eq!(generator.key[..16], next);
    }

    #[test]
    fn what_was_given_out_is_nowhere_in_its_memory() {
        let mut generator = Generator::new([7; 32]);
        for _ in 0..200 {
            let (key, number) = (generator.key, generator.draw());
            let given = number.to_le_bytes();
            assert!(!generator.pool.windows(8).any(|bytes| bytes == given));
            // A key makes at most the numbers that are still to come.
            if generator.key != key {
                assert!(!drawn(&mut Generator::new(generator.key), 60).contains(&number));
            }
        }
    }

    #[test]
    fn both_sources_make_the_key() {
        let numbers = |key, entropy: &[u8]| {
            let mut generator = Generator::new([key; 32]);
            generator.draw();
            generator.mix(entropy);
            drawn(&mut generator, 100)
        };
        assert_eq!(numbers(1, b"seed"), numbers(1, b"seed"));
        assert_ne!(numbers(1, b"seed"), numbers(2, b"seed"), "who knows the control plane's seed knows nothing");
        assert_ne!(numbers(1, b"seed"), numbers(1, b"other"), "nor does who knows the gateway's");
        assert_ne!(numbers(1, b"seed"), drawn(&mut Generator::new([1; 32]), 101)[1..]);
    }

    /// The generator before gave its state away with every number.
    #[test]
    fn a_number_does_not_tell_the_next() {
        let unmix = |number: u64| {
            let unshift = |value: u64, by: u32| (0..64 / by + 1).fold(value, |found, _| value ^ (found >> by));
            let number = unshift(number, 31).wrapping_mul(0x3196_42b2_d24d_8ec3);
            unshift(unshift(number, 27).wrapping_mul(0x96de_1b17_3f11_9089), 30)
        };
        let mix = |state: u64| {
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        assert_eq!(unmix(mix(77)), 77, "SplitMix64 is invertible");
        let numbers = drawn(&mut Generator::new([3; 32]), 1000);
        let guessed = numbers.windows(2).filter(|two| mix(unmix(two[0]).wrapping_add(0x9e37_79b9_7f4a_7c15)) == two[1]);
        assert_eq!(guessed.count(), 0);
        let different: std::collections::BTreeSet<&u64> = numbers.iter().collect();
        assert_eq!(different.len(), numbers.len());
    }
}
