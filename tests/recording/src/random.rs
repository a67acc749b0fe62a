//! Random numbers that are the same everywhere and forever: what a seed generates must not change with a library.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The numbers of one case of a seed: cases do not depend on each other.
    pub fn new(seed: u64, number: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ number.wrapping_mul(0xaf25_1af3_b0f0_25b5));
        random.word();
        random
    }

    /// The next 64 bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below the limit; 0 for a limit of 0.
    pub fn below(&mut self, limit: usize) -> usize {
        let limit = limit.max(1) as u64;
        usize::try_from(self.word() % limit).unwrap_or(0)
    }

    /// A number from `low` to `high`, both included.
    pub fn range(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// True in `percent` of a hundred cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        self.word().to_be_bytes()[0]
    }

    /// One of a list that is not empty.
    ///
    /// # Panics
    ///
    /// If the list is empty.
    pub fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_everywhere() {
        let mut random = Random::new(1, 0);
        let first = [random.word(), random.word()];
        let mut again = Random::new(1, 0);
        assert_eq!([again.word(), again.word()], first);
        assert_ne!(Random::new(2, 0).word(), first[0]);
        assert_ne!(Random::new(1, 1).word(), first[0]);
        assert!((0..1000).all(|_| (3..=5).contains(&random.range(3, 5))));
    }
}
