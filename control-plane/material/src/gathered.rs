//! Material for the compiler: bytes that a gatherer fetched, such as a contract, each with its own version.
//!
//! What is large and changes often is no matter for the compiler: see the tables of [`Material`].

use std::collections::BTreeMap;
use std::sync::Arc;

use snapshot::{PartHash, content_hash};
use tokio::sync::watch;

use crate::Material;

/// Bytes that were gathered.
#[derive(Debug, PartialEq, Eq)]
pub struct Gathered {
    version: PartHash,
    bytes: Vec<u8>,
}

/// All of them at one time, by name.
pub type GatheredSet = BTreeMap<String, Arc<Gathered>>;

impl Gathered {
    /// The version: the SHA-256 of the bytes.
    #[must_use]
    pub fn version(&self) -> &PartHash {
        &self.version
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Material {
    /// Gives the compiler bytes under a name, which should begin with the name of the plugin. What was compiled with the ones before
    /// is compiled again, and nothing else; equal bytes change nothing. Tells whether something changed.
    pub fn give(&self, name: &str, bytes: Vec<u8>) -> bool {
        let version = content_hash(&bytes);
        self.inner.gathered.send_if_modified(|set| {
            if set.get(name).is_some_and(|known| known.version == version) {
                return false;
            }
            Arc::make_mut(set).insert(name.to_owned(), Arc::new(Gathered { version, bytes }));
            true
        })
    }

    /// Takes what was given under a name away from the compiler. Tells whether there was something.
    pub fn take_back(&self, name: &str) -> bool {
        self.inner.gathered.send_if_modified(|set| set.contains_key(name) && Arc::make_mut(set).remove(name).is_some())
    }

    /// All that the compiler is given, now and as it changes.
    #[must_use]
    pub fn gathered(&self) -> watch::Receiver<Arc<GatheredSet>> {
        self.inner.gathered.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_are_no_change() {
        let material = Material::default();
        let mut changes = material.gathered();
        assert!(material.give("contracts.shop", b"one".to_vec()));
        assert!(changes.has_changed().unwrap());
        let before = changes.borrow_and_update().clone();
        assert!(!material.clone().give("contracts.shop", b"one".to_vec()) && !changes.has_changed().unwrap());
        assert!(material.give("contracts.shop", b"two".to_vec()));
        let after = changes.borrow_and_update().clone();
        assert_eq!((before["contracts.shop"].bytes(), after["contracts.shop"].bytes()), (&b"one"[..], &b"two"[..]));
        assert_eq!(after["contracts.shop"].version(), &content_hash(b"two"));
        assert!(material.take_back("contracts.shop") && !material.take_back("contracts.shop"));
        assert!(material.gathered().borrow().is_empty());
    }
}
