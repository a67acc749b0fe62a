//! Large values under their SHA-256, which a gateway was given once and need not be sent again.
//!
//! The values that are in use stay; of those that were, the last ones stay as well, up to a number of bytes: a worker that starts
//! anew may still run them. The index of a filter lists them, the oldest first: 32 bytes of hash and four of length each.

use crate::{SharedData, edit};

/// Of values that are no longer in use, so many bytes stay.
const SPARE: usize = 8 << 20;
/// The same in values.
const MAX_SPARE: usize = 64;
/// The bytes of a record of the index.
const RECORD: usize = 36;

/// The SHA-256 of a value.
type Hash = [u8; 32];

/// The values of one filter.
#[derive(Debug, Clone, Copy)]
pub struct KeptParts<'a> {
    filter: &'a str,
}

/// A value in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Record {
    hash: Hash,
    length: u32,
}

impl<'a> KeptParts<'a> {
    /// Those of the filter with this name.
    #[must_use]
    pub fn of(filter: &'a str) -> Self {
        Self { filter }
    }

    /// The value with this hash; `None` where it is not kept. Whether the bytes have the hash is for the caller to check.
    #[must_use]
    pub fn get(&self, data: &dyn SharedData, hash: &Hash) -> Option<Vec<u8>> {
        let (value, _) = data.get(&self.value_key(hash))?;
        (!value.is_empty()).then_some(value)
    }

    /// Keeps the values that are in use from now on; those without bytes are kept already, or not at all.
    pub fn keep(&self, data: &dyn SharedData, in_use: &[(Hash, &[u8])]) {
        let gone = edit(data, &self.index_key(), |index| {
            let before = records(index);
            let is_kept = |hash: &Hash| before.iter().find(|record| record.hash == *hash);
            let mut current = Vec::with_capacity(in_use.len());
            for (hash, value) in in_use {
                let kept = is_kept(hash).copied();
                if kept.is_none() && !value.is_empty() {
                    // A conflict is impossible without a token.
                    let _written = data.set(&self.value_key(hash), value, None);
                }
                let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
                current.extend(kept.or((length > 0).then_some(Record { hash: *hash, length })));
            }
            let mut spare: Vec<Record> = before.iter().filter(|record| !current.contains(record)).copied().collect();
            let gone = spare.drain(..excess(&spare)).collect::<Vec<_>>();
            spare.extend(current);
            let changed = (spare != before).then(|| spare.iter().flat_map(Record::bytes).collect());
            (gone, changed)
        });
        for record in gone.unwrap_or_default() {
            let _written = data.set(&self.value_key(&record.hash), &[], None);
        }
    }

    fn index_key(&self) -> String {
        format!("svc.parts/{}", self.filter)
    }

    fn value_key(&self, hash: &Hash) -> String {
        let mut key = format!("svc.part/{}/", self.filter);
        for byte in hash {
            for nibble in [byte >> 4, byte & 15] {
                key.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
            }
        }
        key
    }
}

impl Record {
    fn bytes(&self) -> impl Iterator<Item = u8> + use<> {
        self.hash.into_iter().chain(self.length.to_le_bytes())
    }
}

/// How many of the oldest have to go.
fn excess(spare: &[Record]) -> usize {
    let mut left = SPARE;
    let fit = spare.iter().rev().take(MAX_SPARE).take_while(|record| {
        let length = usize::try_from(record.length).unwrap_or(usize::MAX);
        let fits = length <= left;
        left = left.saturating_sub(length);
        fits
    });
    spare.len().saturating_sub(fit.count())
}

/// An index that is none is taken for an empty one.
fn records(index: &[u8]) -> Vec<Record> {
    let (chunks, _) = index.as_chunks::<RECORD>();
    let record = |chunk: &[u8; RECORD]| {
        let (hash, length) = (chunk.first_chunk::<32>()?, chunk.last_chunk::<4>()?);
        Some(Record { hash: *hash, length: u32::from_le_bytes(*length) })
    };
    chunks.iter().filter_map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemorySharedData;

    const KEPT: KeptParts<'_> = KeptParts { filter: "preset" };

    fn hash(number: u8) -> Hash {
        [number; 32]
    }

    #[test]
    fn what_was_given_once_is_found_by_its_hash() {
        let data = MemorySharedData::default();
        assert_eq!(KEPT.get(&data, &hash(1)), None);
        KEPT.keep(&data, &[(hash(1), b"one"), (hash(2), b"two")]);
        assert_eq!(KEPT.get(&data, &hash(1)).unwrap(), b"one");
        assert_eq!(KeptParts::of("waf").get(&data, &hash(1)), None, "another filter has its own");
        // One that comes without bytes is in use all the same; one that was never there is not.
        KEPT.keep(&data, &[(hash(1), b""), (hash(3), b"")]);
        assert_eq!(KEPT.get(&data, &hash(1)).unwrap(), b"one");
        assert_eq!(KEPT.get(&data, &hash(3)), None);
        KEPT.keep(&data, &[(hash(3), b"three")]);
        assert_eq!(KEPT.get(&data, &hash(3)).unwrap(), b"three");
    }

    #[test]
    fn the_oldest_go_and_what_is_in_use_never_does() {
        let data = MemorySharedData::default();
        let large = vec![7; SPARE];
        KEPT.keep(&data, &[(hash(0), &large), (hash(1), &large)]);
        assert!(KEPT.get(&data, &hash(0)).is_some() && KEPT.get(&data, &hash(1)).is_some(), "all that is in use");
        KEPT.keep(&data, &[(hash(1), b""), (hash(2), b"two")]);
        assert!(KEPT.get(&data, &hash(0)).is_some(), "the last one stays");
        KEPT.keep(&data, &[(hash(1), b"")]);
        assert!(KEPT.get(&data, &hash(0)).is_none(), "with `two` it is too much");
        assert!(KEPT.get(&data, &hash(1)).is_some() && KEPT.get(&data, &hash(2)).is_some());
        for number in 3..=255 {
            KEPT.keep(&data, &[(hash(number), b"small")]);
        }
        let kept = (0..=255).filter(|number| KEPT.get(&data, &hash(*number)).is_some()).count();
        assert_eq!(kept, MAX_SPARE + 1);
        assert_eq!(KEPT.get(&data, &hash(255)).unwrap(), b"small");
    }

    #[test]
    fn a_damaged_index_costs_nothing_but_the_bytes_of_before() {
        let data = MemorySharedData::default();
        data.set("svc.parts/preset", b"no index", None).unwrap();
        KEPT.keep(&data, &[(hash(1), b"one")]);
        assert_eq!(KEPT.get(&data, &hash(1)).unwrap(), b"one");
        assert_eq!(records(&data.get("svc.parts/preset").unwrap().0).len(), 1);
    }
}
