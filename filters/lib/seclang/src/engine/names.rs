//! The names of TX in rules, and the constants.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::arena::{EMPTY, Value};

/// The names of TX in rules, each with a slot: reading one is an array access. The first ten are the captures.
#[derive(Default)]
pub(super) struct Names {
    pub(super) list: Vec<Box<[u8]>>,
    index: HashMap<Box<[u8]>, u32, BuildHasherDefault<NameHasher>>,
}

/// FNV-1a: names are short, and those of the index come from rules, not from callers.
struct NameHasher(u64);

impl Default for NameHasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Names {
    /// The slot of a name, in any case.
    pub(super) fn slot(&self, name: &[u8]) -> Option<u32> {
        if name.iter().any(u8::is_ascii_uppercase) {
            return self.index.get(name.to_ascii_lowercase().as_slice()).copied();
        }
        self.index.get(name).copied()
    }

    pub(super) fn add(&mut self, name: &[u8]) -> u32 {
        let next = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let folded: Box<[u8]> = name.to_ascii_lowercase().into();
        *self.index.entry(folded).or_insert_with(|| {
            self.list.push(name.into());
            next
        })
    }
}

/// The constants of assignments, each once.
pub(super) struct ConstantList {
    pub(super) list: Vec<Box<[u8]>>,
    numbers: HashMap<Box<[u8]>, Value>,
}

impl ConstantList {
    pub(super) fn new() -> Self {
        let mut constants = Self { list: Vec::new(), numbers: HashMap::new() };
        for number in 0..32 {
            constants.add(number.to_string().as_bytes());
        }
        constants
    }

    pub(super) fn add(&mut self, text: &[u8]) -> Value {
        if text.is_empty() {
            return EMPTY;
        }
        *self.numbers.entry(text.into()).or_insert_with(|| {
            self.list.push(text.into());
            u32::try_from(self.list.len()).unwrap_or(EMPTY)
        })
    }
}
