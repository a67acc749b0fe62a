//! Random values: from pieces, and by changes of given ones.

/// Numbers that depend on a seed alone.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() >> 11) as usize % end
    }

    /// Whether something happens that does once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of several.
    pub fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }
}

/// A value of up to `longest` pieces.
pub fn composed(random: &mut Random, pieces: &[&[u8]], glue: &[&[u8]], longest: usize) -> Vec<u8> {
    let mut value = Vec::new();
    for _ in 0..=random.below(longest) {
        let mut piece = random.pick(pieces).to_vec();
        if random.once_in(4) {
            for byte in &mut piece {
                if random.once_in(2) {
                    byte.make_ascii_lowercase();
                } else {
                    byte.make_ascii_uppercase();
                }
            }
        }
        value.extend_from_slice(&piece);
        if random.once_in(2) {
            value.extend_from_slice(random.pick(glue));
        }
    }
    value
}

/// A value with a few changes: bytes, pieces, doubled, cut, and crossed with another one.
pub fn mutated(random: &mut Random, seed: &[u8], other: &[u8], pieces: &[&[u8]]) -> Vec<u8> {
    let mut value = seed.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(value.len() + 1);
        let end = at + random.below(value.len() - at + 1);
        match random.below(8) {
            0 => value.insert(at, random.below(256) as u8),
            1 if at < value.len() => value[at] = random.below(256) as u8,
            2 if end - at < 16 => drop(value.drain(at..end)),
            3 if end - at < 32 => {
                let again = value[at..end].to_vec();
                value.splice(at..at, again);
            }
            4 | 5 => drop(value.splice(at..at, random.pick(pieces).iter().copied())),
            6 => {
                let from = random.below(other.len() + 1);
                value.truncate(at);
                value.extend_from_slice(&other[from..]);
            }
            _ => {
                for byte in value.iter_mut().filter(|byte| byte.is_ascii_alphabetic()) {
                    if random.once_in(3) {
                        *byte ^= 0x20;
                    }
                }
            }
        }
    }
    value.truncate(2048);
    value
}
