//! Verdicts by the SHA-256 of a file, for as long as the scanner's database stays the same.

use std::collections::{BTreeMap, VecDeque};

use super::Verdict;

/// The most verdicts that are kept.
const MAX_ENTRIES: usize = 20_000;
/// How long a verdict is kept, in milliseconds: 1 hour.
const MAX_AGE: u64 = 3_600_000;

/// The SHA-256 of a file.
pub(super) type Digest = [u8; 32];

/// The verdicts of one scanner.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// The version of the scanner's database that they are of.
    version: String,
    /// With the time at which they were found.
    verdicts: BTreeMap<Digest, (Verdict, u64)>,
    order: VecDeque<Digest>,
}

impl Cache {
    /// The verdict on a file, of the database with this version. None is known where the version is not.
    pub(super) fn get(&self, version: &str, digest: &Digest, now: u64) -> Option<Verdict> {
        let (verdict, found) = self.verdicts.get(digest)?;
        let young = now.saturating_sub(*found) <= MAX_AGE;
        (!version.is_empty() && version == self.version && young).then(|| verdict.clone())
    }

    /// Keeps a verdict.
    pub(super) fn put(&mut self, version: &str, digest: Digest, verdict: Verdict, now: u64) {
        if version.is_empty() {
            return;
        }
        if version != self.version {
            self.verdicts.clear();
            self.order.clear();
            version.clone_into(&mut self.version);
        }
        if self.verdicts.insert(digest, (verdict, now)).is_none() {
            self.order.push_back(digest);
        }
        while self.order.len() > MAX_ENTRIES {
            if let Some(oldest) = self.order.pop_front() {
                self.verdicts.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_those_of_one_version_and_age() {
        let (one, mut cache) = ([1; 32], Cache::default());
        cache.put("", one, Verdict::Clean, 0);
        assert_eq!(cache.get("", &one, 0), None, "a version that is not known is none");
        cache.put("a", one, Verdict::Clean, 0);
        assert_eq!(cache.get("a", &one, MAX_AGE), Some(Verdict::Clean));
        assert_eq!(
            (cache.get("a", &one, MAX_AGE + 1), cache.get("b", &one, 0), cache.get("a", &[2; 32], 0)),
            (None, None, None)
        );
        cache.put("b", [3; 32], Verdict::Infected("x".into()), 0);
        assert_eq!((cache.get("b", &one, 0), cache.verdicts.len()), (None, 1), "a new version forgets the others");
        for at in 0..=MAX_ENTRIES {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&at.to_le_bytes());
            cache.put("b", digest, Verdict::Clean, 0);
        }
        assert_eq!((cache.verdicts.len(), cache.order.len()), (MAX_ENTRIES, MAX_ENTRIES));
    }
}
