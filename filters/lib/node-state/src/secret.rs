//! The key of a node's keyed hashes.

use std::hash::Hasher as _;

use siphasher::sip::SipHasher13;

use crate::SharedData;
use crate::cas::{self, ATTEMPTS};

/// The key in shared data.
const NAME: &str = "svc.hash_secret";

/// A random key, one for all workers of a node. Keys of tables come from clients: with a hash that a client can compute, it
/// could place all of its keys in one shard, and push a chosen client's counter out of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct HashSecret([u8; 16]);

impl HashSecret {
    pub(crate) const fn new(secret: [u8; 16]) -> Self {
        Self(secret)
    }

    /// The secret of this node. The first worker that asks makes it.
    pub(crate) fn of_node(data: &dyn SharedData) -> Self {
        let fresh = (u128::from(data.random()) << 64 | u128::from(data.random())).to_le_bytes();
        for _ in 0..ATTEMPTS {
            let (bytes, token) = cas::read(data, NAME);
            if let Ok(secret) = bytes.try_into() {
                return Self(secret);
            }
            if data.set(NAME, &fresh, Some(token)).is_ok() {
                break;
            }
        }
        Self(fresh)
    }

    /// The hash of a key of a table. Equal keys of different tables have unrelated hashes.
    pub(crate) fn hash(self, table: &str, key: &[u8]) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        hasher.write(table.as_bytes());
        // A byte that ends the name: no name contains it.
        hasher.write_u8(0xff);
        hasher.write(key);
        hasher.finish()
    }
}

impl std::fmt::Debug for HashSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HashSecret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemorySharedData;
    use crate::testing::{self, Scheduled};

    #[test]
    fn all_workers_of_a_node_have_one_secret_whoever_makes_it() {
        for seed in 0..200 {
            let secrets = testing::run(seed, 5, |data: &Scheduled, _| HashSecret::of_node(data));
            assert!(secrets.iter().all(|secret| *secret == secrets[0]), "seed {seed}");
        }
    }

    #[test]
    fn nodes_differ_and_so_do_tables() {
        let (one, other) = (HashSecret([1; 16]), HashSecret([2; 16]));
        assert_ne!(one.hash("t", b"key"), other.hash("t", b"key"));
        assert_ne!(one.hash("t", b"key"), one.hash("u", b"key"));
        assert_ne!(one.hash("t", b"uk"), one.hash("tu", b"k"));
        assert_eq!(format!("{one:?}"), "HashSecret", "no log shows it");
    }

    #[test]
    fn a_damaged_secret_is_replaced_and_then_stays() {
        let data = MemorySharedData::default();
        data.set(NAME, b"torn", None).unwrap();
        let secret = HashSecret::of_node(&data);
        assert_eq!(HashSecret::of_node(&data), secret);
        assert_eq!(data.get(NAME).unwrap().0.len(), 16);
    }

    #[test]
    fn it_is_siphash_1_3() {
        // The key 00 01 .. 0f; the reference implementation's first vector for SipHash-1-3 is the empty message.
        let mut hasher = SipHasher13::new_with_key(&std::array::from_fn(|byte| u8::try_from(byte).unwrap()));
        hasher.write(b"");
        assert_eq!(hasher.finish(), 0xabac_0158_050f_c4dc);
    }
}
