//! What a node has seen of fingerprints: with agents of which families, and from how many networks each.
//!
//! The networks count, not the requests: one client, or one network, makes no pair and no rotation.

use std::cell::Cell;
use std::net::IpAddr;

use exchange::Host;
use exchange::shared_counts::CappedSet;
use exchange::tls::Ja4;
use node_state::{Membership, Sets};
use prost::Message as _;

use super::messages::{FingerprintSeen, FingerprintStep};
use super::{Family, SIGHTINGS};
use crate::asking::network;

/// How long a sighting counts, in milliseconds.
const DAY: u64 = 86_400_000;
/// The networks of a pair of fingerprint and family that are told apart, and the pairs of a node, at most; those of the fewest networks
/// give way.
pub(crate) const MAX_NETWORKS: u16 = 64;
const PAIRS: Sets = Sets::new("svc.fingerprints", MAX_NETWORKS, DAY, 4_096);
/// How many new pairs a network may bring in an hour, so that one that varies its fingerprint fills no table.
const NEW_PAIRS: u16 = 16;
const NETWORKS: Sets = Sets::new("svc.fingerprint-networks", NEW_PAIRS, 3_600_000, 8_192);
/// The sightings that a worker notes in a second, at most: what a flood from everywhere costs.
const A_SECOND: u32 = 50;
/// The families that a fingerprint is counted with, and the fingerprints, at most.
const MAX_FAMILIES: u16 = 16;
const MAX_FINGERPRINTS: u32 = 4_096;

/// The sightings of one step.
pub(super) struct Sightings {
    /// The families that a fingerprint came with, of all nodes.
    families: CappedSet,
    networks: u16,
    rotates_from: Option<u16>,
    learn: bool,
    /// The second that is counted, and the sightings in it.
    second: Cell<(u64, u32)>,
}

impl Sightings {
    /// # Errors
    ///
    /// None in practice: the set is a constant.
    pub(super) fn new(step: &FingerprintStep) -> Result<Self, String> {
        let families = CappedSet::new("bots.fingerprint-families", MAX_FAMILIES, DAY, 8)?
            .max_keys(MAX_FINGERPRINTS)
            .everywhere_from(2);
        let number = |value: u32| u16::try_from(value).unwrap_or(u16::MAX);
        Ok(Self {
            families,
            networks: number(step.rotation_networks).clamp(1, MAX_NETWORKS),
            rotates_from: (step.rotation_weight > 0.0).then_some(number(step.rotation_families).max(2)),
            learn: step.learn,
            second: Cell::default(),
        })
    }

    /// Notes that a fingerprint came with an agent of a family. What is known costs one look at the node's memory.
    pub(super) fn note(&self, family: Family, ja4: &Ja4, address: &str, host: &dyn Host) {
        let Ok(address) = address.parse::<IpAddr>() else { return };
        let (network, now) = (network(address), host.now());
        let key = [ja4.bytes().as_slice(), family.word().as_bytes()].concat();
        let second = now / 1000;
        let count = Some(self.second.get()).filter(|(counted, _)| *counted == second).map_or(0, |(_, count)| count);
        if count >= A_SECOND || PAIRS.contains(host.shared(), &key, &network, now) {
            return;
        }
        if NETWORKS.insert(host.shared(), &network, &key, now).membership == Membership::Full {
            return;
        }
        // What its network has no room for takes nothing from the others.
        self.second.set((second, count.saturating_add(1)));
        let noted = PAIRS.insert(host.shared(), &key, &network, now);
        if noted.membership != Membership::Added {
            return;
        }
        if self.learn {
            let seen = FingerprintSeen { ja4: ja4.bytes().to_vec(), family: family.word().to_owned(), network };
            host.send_report(SIGHTINGS, seen.encode_to_vec());
        }
        if self.rotates_from.is_some() && noted.size >= self.networks {
            // Families with the same TLS are one.
            self.families.insert(host, ja4.bytes(), &family.kin().to_le_bytes());
        }
    }

    /// Whether a fingerprint came with agents of as many families as the policy says, each from enough networks.
    pub(super) fn rotates(&self, ja4: &Ja4, host: &dyn Host) -> bool {
        self.rotates_from.is_some_and(|from| self.families.contains(host, ja4.bytes(), b"").1 >= from)
    }
}
