//! The pairs of all gateways together, bounded.
//!
//! What counts is from how many networks a pair was seen, so that one client or one network makes none. A network is kept as a keyed hash,
//! which says nothing of who it was.

use std::collections::BTreeMap;

use exchange::tls::Ja4;
use snapshot::content_hash;

use crate::{Family, FingerprintSeen};

/// The pairs that are kept, at most. Of more, candidates seen from the fewest networks give way, of these the one not seen for longest.
pub(super) const MAX_PAIRS: usize = 4_096;
/// The pairs that operators have decided on, at most: those never give way.
pub(super) const MAX_DECIDED: usize = 2_000;
/// The networks of a pair that are told apart, at most.
pub(super) const MAX_NETWORKS: usize = 64;
/// How long a network counts that is not seen again, in milliseconds.
const LIFETIME: u64 = 30 * 86_400_000;
/// The bytes of a network in a report, of IPv4 and of IPv6.
const NETWORK_BYTES: [usize; 2] = [3, 6];

/// What names a pair. By family, so that lists are in that order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PairKey {
    family: &'static str,
    ja4: [u8; snapshot::JA4_BYTES],
}

/// The decision of an operator on a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PairState {
    /// None yet: it does not act.
    Candidate,
    /// It acts.
    Accepted,
    /// It does not act, and is not asked about again.
    Rejected,
}

/// A pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) state: PairState,
    /// When it was decided on, in milliseconds since 1970; 0 for a candidate.
    pub(super) decided_at: u64,
    pub(super) first_seen: u64,
    pub(super) last_seen: u64,
    /// When each network was last seen, by its hash.
    pub(super) networks: BTreeMap<u64, u64>,
}

/// All pairs.
#[derive(Debug, Default)]
pub(super) struct Learned {
    pub(super) pairs: BTreeMap<PairKey, Pair>,
    /// The key of the hashes of networks.
    pub(super) secret: Vec<u8>,
    /// Something changed since they were last kept.
    pub(super) unkept: bool,
    /// Reports that could not be used, and pairs that gave way, since the start.
    pub(super) dropped: u64,
}

// === impl PairKey ===

impl PairKey {
    /// `None` for a family or a fingerprint that is none.
    pub(super) fn read(family: &str, ja4: &[u8]) -> Option<PairKey> {
        Some(PairKey { family: Family::read(family)?.word(), ja4: *Ja4::read(ja4)?.bytes() })
    }

    pub(super) fn family(&self) -> &'static str {
        self.family
    }

    pub(super) fn ja4(&self) -> &[u8; snapshot::JA4_BYTES] {
        &self.ja4
    }

    /// The JA4 as text.
    pub(super) fn ja4_text(&self) -> String {
        String::from_utf8_lossy(&self.ja4).into_owned()
    }
}

// === impl PairState ===

impl PairState {
    pub(super) const WORDS: [&str; 3] = ["candidate", "accepted", "rejected"];

    pub(super) fn word(self) -> &'static str {
        match self {
            PairState::Candidate => "candidate",
            PairState::Accepted => "accepted",
            PairState::Rejected => "rejected",
        }
    }
}

// === impl Learned ===

impl Learned {
    /// Takes what a gateway has seen. It may say anything: what is no pair is dropped.
    pub(super) fn take(&mut self, seen: &FingerprintSeen, now: u64) {
        let key = PairKey::read(&seen.family, &seen.ja4).filter(|_| NETWORK_BYTES.contains(&seen.network.len()));
        let Some(key) = key else {
            self.dropped = self.dropped.saturating_add(1);
            return;
        };
        if !self.pairs.contains_key(&key) && self.pairs.len() >= MAX_PAIRS {
            self.evict();
        }
        let hash = self.hash(&seen.network);
        let fresh = || Pair {
            state: PairState::Candidate,
            decided_at: 0,
            first_seen: now,
            last_seen: now,
            networks: BTreeMap::new(),
        };
        let pair = self.pairs.entry(key).or_insert_with(fresh);
        pair.last_seen = now;
        if pair.networks.len() < MAX_NETWORKS || pair.networks.contains_key(&hash) {
            pair.networks.insert(hash, now);
        }
        self.unkept = true;
    }

    /// Decides on a pair.
    ///
    /// # Errors
    /// Why that cannot be, for people.
    pub(super) fn decide(&mut self, key: &PairKey, state: PairState, now: u64) -> Result<(), String> {
        let decided = self.count(PairState::Accepted) + self.count(PairState::Rejected);
        let Some(pair) = self.pairs.get_mut(key) else { return Err(unknown(key)) };
        if pair.state == PairState::Candidate && decided >= MAX_DECIDED {
            return Err(format!("there are {MAX_DECIDED} decisions already; forget some first"));
        }
        (pair.state, pair.decided_at) = (state, now);
        self.unkept = true;
        Ok(())
    }

    /// Forgets a pair and the decision on it: it is a candidate again when it is seen.
    ///
    /// # Errors
    /// There is no such pair, for people.
    pub(super) fn forget(&mut self, key: &PairKey) -> Result<(), String> {
        self.pairs.remove(key).ok_or_else(|| unknown(key))?;
        self.unkept = true;
        Ok(())
    }

    /// Removes networks that were not seen for long, and candidates that have none left.
    pub(super) fn expire(&mut self, now: u64) {
        let before = self.pairs.len();
        for pair in self.pairs.values_mut() {
            let networks = pair.networks.len();
            pair.networks.retain(|_, seen| seen.saturating_add(LIFETIME) > now);
            self.unkept |= networks != pair.networks.len();
        }
        self.pairs.retain(|_, pair| pair.state != PairState::Candidate || !pair.networks.is_empty());
        self.unkept |= before != self.pairs.len();
    }

    /// The families of each JA4 that operators have accepted, as bits.
    pub(super) fn accepted(&self) -> BTreeMap<[u8; snapshot::JA4_BYTES], u32> {
        let mut accepted = BTreeMap::new();
        for (key, _) in self.pairs.iter().filter(|(_, pair)| pair.state == PairState::Accepted) {
            let bit = Family::read(key.family).map_or(0, Family::bit);
            *accepted.entry(key.ja4).or_default() |= bit;
        }
        accepted
    }

    /// How many pairs have this state.
    pub(super) fn count(&self, state: PairState) -> usize {
        self.pairs.values().filter(|pair| pair.state == state).count()
    }

    fn evict(&mut self) {
        let candidates = self.pairs.iter().filter(|(_, pair)| pair.state == PairState::Candidate);
        let least = candidates.min_by_key(|(_, pair)| (pair.networks.len(), pair.last_seen)).map(|(key, _)| *key);
        if let Some(key) = least {
            self.pairs.remove(&key);
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    fn hash(&self, network: &[u8]) -> u64 {
        let hash = content_hash(&[self.secret.as_slice(), network].concat());
        hash.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
    }
}

fn unknown(key: &PairKey) -> String {
    format!("the fingerprint `{}` was not seen with agents of `{}`", key.ja4_text(), key.family)
}
