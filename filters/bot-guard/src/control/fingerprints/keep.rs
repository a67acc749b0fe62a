//! What is kept of pairs in the store, so that a control plane has them again when it starts.

use prost::Message;

use super::learned::{Learned, MAX_PAIRS, Pair, PairKey, PairState};

/// The document in the store.
pub(super) const DOCUMENT: &str = "bot-guard.fingerprints";

#[derive(Clone, PartialEq, Message)]
struct KeptPairs {
    #[prost(bytes = "vec", tag = "1")]
    secret: Vec<u8>,
    #[prost(message, repeated, tag = "2")]
    pairs: Vec<KeptPair>,
}

#[derive(Clone, PartialEq, Message)]
struct KeptPair {
    #[prost(string, tag = "1")]
    family: String,
    #[prost(bytes = "vec", tag = "2")]
    ja4: Vec<u8>,
    /// 0 for a candidate, 1 for an accepted pair, 2 for a rejected one.
    #[prost(uint32, tag = "3")]
    state: u32,
    #[prost(uint64, tag = "4")]
    decided_at: u64,
    #[prost(uint64, tag = "5")]
    first_seen: u64,
    #[prost(uint64, tag = "6")]
    last_seen: u64,
    /// The networks, and when each was last seen.
    #[prost(fixed64, repeated, tag = "7")]
    networks: Vec<u64>,
    #[prost(uint64, repeated, tag = "8")]
    seen: Vec<u64>,
}

/// The document of these pairs.
pub(super) fn document(learned: &Learned) -> Vec<u8> {
    let kept = |(key, pair): (&PairKey, &Pair)| KeptPair {
        family: key.family().to_owned(),
        ja4: key.ja4().to_vec(),
        state: match pair.state {
            PairState::Candidate => 0,
            PairState::Accepted => 1,
            PairState::Rejected => 2,
        },
        decided_at: pair.decided_at,
        first_seen: pair.first_seen,
        last_seen: pair.last_seen,
        networks: pair.networks.keys().copied().collect(),
        seen: pair.networks.values().copied().collect(),
    };
    KeptPairs { secret: learned.secret.clone(), pairs: learned.pairs.iter().map(kept).collect() }.encode_to_vec()
}

/// The pairs of a document.
///
/// # Errors
/// It is none of ours: nothing may be put in its place.
pub(super) fn restored(document: &[u8]) -> Result<Learned, String> {
    let kept = KeptPairs::decode(document).map_err(|error| error.to_string())?;
    let mut learned = Learned { secret: kept.secret, ..Learned::default() };
    for pair in kept.pairs.into_iter().take(MAX_PAIRS) {
        // A family of a later release is left out.
        let Some(key) = PairKey::read(&pair.family, &pair.ja4) else { continue };
        let state = match pair.state {
            1 => PairState::Accepted,
            2 => PairState::Rejected,
            _ => PairState::Candidate,
        };
        let networks = pair.networks.into_iter().zip(pair.seen).collect();
        let KeptPair { decided_at, first_seen, last_seen, .. } = pair;
        learned.pairs.insert(key, Pair { state, decided_at, first_seen, last_seen, networks });
    }
    Ok(learned)
}
