//! What the keys of challenge providers are made of.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// What keys are made of where a provider has no secret of its own: 32 random bytes that the store keeps. `None` where
/// there is no store.
#[derive(Clone, Default)]
pub struct ChallengeRoot(Option<[u8; 32]>);

impl ChallengeRoot {
    /// The root with these bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Some(bytes))
    }

    /// A root for a compilation whose result is only checked.
    #[must_use]
    pub fn for_checks() -> Self {
        Self(Some([0; 32]))
    }

    /// The key of a provider. Other providers and other generations have others, and none says anything of the root.
    #[must_use]
    pub fn key(&self, provider: &str, generation: u32) -> Option<Vec<u8>> {
        let mac = Hmac::<Sha256>::new_from_slice(self.0.as_ref()?).ok()?;
        let mac = mac.chain_update(b"challenge provider\0").chain_update(generation.to_le_bytes());
        Some(mac.chain_update(provider.as_bytes()).finalize().into_bytes().to_vec())
    }
}

impl std::fmt::Debug for ChallengeRoot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "ChallengeRoot(********)" } else { "ChallengeRoot(none)" })
    }
}
