//! The keys of literals: three bytes of each.

/// Three bytes.
pub(super) type Key = [u8; 3];

/// The places of the table of keys: several for each key, so that few other texts lead to one.
const SLOTS: usize = 1024;

/// A literal that has a key.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Its place in the list of literals.
    pub(super) index: usize,
    /// How far behind its beginning the key is, in bytes.
    pub(super) offset: usize,
    pub(super) literal: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Keys {
    all: Vec<Key>,
    /// The entries of each key.
    entries: Vec<Vec<Entry>>,
    /// By a hash: one more than the place of a key; 0 for none. A key that finds its slot taken is in one of the next.
    slots: Vec<u8>,
}

impl Keys {
    pub(super) fn new(literals: &[&[u8]]) -> Self {
        let mut keys = Self { all: Vec::new(), entries: Vec::new(), slots: vec![0; SLOTS] };
        for (index, literal) in literals.iter().enumerate() {
            let windows = literal.windows(3).enumerate();
            let Some((offset, window)) = windows.min_by_key(|(_, window)| commonness(window)) else { continue };
            let Some(key) = window.first_chunk().copied() else { continue };
            let entry = Entry { index, offset, literal: literal.to_vec() };
            match keys.place(key) {
                Some(place) => keys.entries.get_mut(place).into_iter().for_each(|list| list.push(entry.clone())),
                None => keys.add(key, entry),
            }
        }
        keys
    }

    pub(super) fn all(&self) -> &[Key] {
        &self.all
    }

    /// The literals that have a key.
    #[inline]
    pub(super) fn entries(&self, key: Key) -> &[Entry] {
        self.place(key).and_then(|place| self.entries.get(place)).map_or(&[], Vec::as_slice)
    }

    #[inline]
    fn place(&self, key: Key) -> Option<usize> {
        let mut slot = hash(key);
        loop {
            let place = usize::from(*self.slots.get(slot % SLOTS)?).checked_sub(1)?;
            if self.all.get(place) == Some(&key) {
                return Some(place);
            }
            slot += 1;
        }
    }

    fn add(&mut self, key: Key, entry: Entry) {
        self.all.push(key);
        self.entries.push(vec![entry]);
        // No more keys than literals: far fewer than slots.
        let Ok(number) = u8::try_from(self.all.len()) else { return };
        let first = hash(key);
        let free = (first..first + SLOTS).map(|slot| slot % SLOTS).find(|slot| self.slots.get(*slot) == Some(&0));
        self.slots.iter_mut().skip(free.unwrap_or_default()).take(1).for_each(|slot| *slot = number);
    }
}

fn hash([a, b, c]: Key) -> usize {
    (u32::from_le_bytes([a, b, c, 0]).wrapping_mul(0x9e37_79b1) >> 22) as usize
}

/// How common three bytes side by side are, as far as single bytes say.
fn commonness(window: &[u8]) -> u32 {
    window.iter().map(|byte| u32::from(frequency(*byte))).product()
}

/// How often a byte is in pages, texts and JSON, in thousandths, and at least one.
pub(super) const fn frequency(byte: u8) -> u8 {
    match byte {
        b' ' => 130,
        b'e' => 75,
        b't' | b'a' | b'i' | b'n' | b'o' | b's' | b'r' => 50,
        b'"' => 40,
        b'l' | b'd' | b'c' | b'h' | b'u' | b'm' | b'p' => 25,
        b'<' | b'>' | b'/' | b':' | b',' | b'=' | b'-' | b'.' | b'\n' => 15,
        b'0'..=b'9' => 12,
        b'a'..=b'z' | b'_' => 10,
        b'A'..=b'Z' => 4,
        _ => 2,
    }
}
