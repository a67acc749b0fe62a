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
    /// So many values that are no longer in use stay.
    spare: usize,
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
        Self { filter, spare: MAX_SPARE }
    }

    /// The value with this hash; `None` where it is not kept. Whether the bytes have the hash is for the caller to check.
    #[must_use]
    pub fn get(&self, data: &dyn SharedData, hash: &Hash) -> Option<Vec<u8>> {
        let (value, _) = data.get(&self.value_key(hash))?;
        (!value.is_empty()).then_some(value)
    }

    /// Keeps the values that are in use from now on; those without bytes are kept already, or not at all.
    pub fn keep(&self, data: &dyn SharedData, in_use: &[(Hash, &[u8])]) {
        let edited = edit(data, &self.index_key(), |index| {
            let before = records(index);
            let is_kept = |hash: &Hash| before.iter().find(|record| record.hash == *hash);
            let (mut current, mut new) = (Vec::with_capacity(in_use.len()), Vec::new());
            for (hash, value) in in_use {
                let kept = is_kept(hash).copied();
                if kept.is_none() {
                    new.push(*hash);
                }
                let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
                current.extend(kept.or((length > 0).then_some(Record { hash: *hash, length })));
            }
            let mut spare: Vec<Record> = before.iter().filter(|record| !current.contains(record)).copied().collect();
            let gone = spare.drain(..excess(&spare, self.spare)).collect::<Vec<_>>();
            spare.extend(current);
            let changed = (spare != before).then(|| spare.iter().flat_map(Record::bytes).collect());
            ((gone, new), changed)
        });
        let (gone, new) = edited.unwrap_or_default();
        for (hash, value) in in_use.iter().filter(|(_, value)| !value.is_empty()) {
            // Behind the index, so that a worker that empties it meanwhile sees it there, or sees that it was written. One that is in the
            // index may be empty: a worker that has just added it had not come to write it.
            if new.contains(hash) || self.get(data, hash).is_none() {
                // A conflict is impossible without a token.
                let _written = data.set(&self.value_key(hash), value, None);
                // Another worker may have taken it out of the index meanwhile, and emptied it before it was written.
                if !self.is_listed(data, hash) {
                    self.empty(data, hash);
                }
            }
        }
        gone.iter().for_each(|record| self.empty(data, &record.hash));
    }

    /// Empties a value that has left the index, unless another worker has put it back.
    fn empty(&self, data: &dyn SharedData, hash: &Hash) {
        let Some((_, token)) = data.get(&self.value_key(hash)) else { return };
        if !self.is_listed(data, hash) {
            let _written_meanwhile = data.set(&self.value_key(hash), &[], Some(token));
        }
    }

    fn is_listed(&self, data: &dyn SharedData, hash: &Hash) -> bool {
        let index = data.get(&self.index_key()).map(|(index, _)| records(&index)).unwrap_or_default();
        index.iter().any(|record| record.hash == *hash)
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

/// How many of the oldest have to go, so that at most so many stay.
fn excess(spare: &[Record], most: usize) -> usize {
    let mut left = SPARE;
    let fit = spare.iter().rev().take(most).take_while(|record| {
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
    use crate::testing::run;

    const KEPT: KeptParts<'_> = KeptParts { filter: "preset", spare: MAX_SPARE };

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

    #[test]
    fn a_value_that_is_empty_is_written_again() {
        let data = MemorySharedData::default();
        KEPT.keep(&data, &[(hash(1), b"one")]);
        data.set(&KEPT.value_key(&hash(1)), b"", None).unwrap();
        assert_eq!(KEPT.get(&data, &hash(1)), None);
        KEPT.keep(&data, &[(hash(1), b"one")]);
        assert_eq!(KEPT.get(&data, &hash(1)).unwrap(), b"one");
    }

    #[test]
    fn what_the_index_has_is_there_and_nothing_else_whichever_worker_keeps_it() {
        const FEW: KeptParts<'_> = KeptParts { filter: "preset", spare: 1 };
        for seed in 0..300 {
            // Each worker goes through configurations that have one value in common with others' now and then.
            run(seed, 3, |data, worker| {
                for round in 0..6_u8 {
                    let number = (round + worker as u8) % 4;
                    FEW.keep(data, &[(hash(number), &[number; 3])]);
                }
                data.set(&format!("done/{worker}"), b"", None).unwrap();
                while (0..3).any(|other| data.get(&format!("done/{other}")).is_none()) {}
                let index = records(&data.get(&FEW.index_key()).unwrap().0);
                for number in 0..4 {
                    let is_listed = index.iter().any(|record| record.hash == hash(number));
                    assert_eq!(FEW.get(data, &hash(number)).is_some(), is_listed, "seed {seed}, value {number}");
                }
            });
        }
    }
}
