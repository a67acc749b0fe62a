//! Secrets of second factors as they are stored: encrypted with a key that is not in the store, if there is one.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::{Digest, Sha256};

use super::{SECRET_BYTES, hex};

/// Keys of a file, at most.
pub const FACTOR_KEYS: usize = 16;
/// The bytes of a key.
const KEY_BYTES: usize = 32;
/// The bytes of a key's name.
const ID_BYTES: usize = 4;
/// The first byte of an encrypted secret.
const FORMAT: u8 = 1;
/// Format, name of the key, nonce, encrypted secret, tag. A secret that is not encrypted has [`SECRET_BYTES`].
const ENCRYPTED_BYTES: usize = 1 + ID_BYTES + NONCE_LEN + SECRET_BYTES + 16;

/// The keys for the secrets of second factors: the first one encrypts, each decrypts. Without a key secrets are stored as they are.
#[derive(Clone, Default)]
pub struct FactorKeys(Arc<Vec<FactorKey>>);

struct FactorKey {
    /// The first bytes of a SHA-256, so that an operator of the control plane is told which key is missing.
    id: [u8; ID_BYTES],
    key: LessSafeKey,
}

/// A secret that was read from the store.
#[derive(Clone, PartialEq, Eq)]
pub enum StoredSecret {
    /// The secret, and whether it is stored as a new one would be.
    Open {
        /// What codes are made of.
        secret: Vec<u8>,
        /// False if it is to be stored anew: it is not encrypted, or by another key than the first.
        is_current: bool,
    },
    /// It is encrypted, and there is no key of this name, or it is the secret of another operator.
    Locked {
        /// The name of the key, in hexadecimal.
        key: String,
    },
}

/// Why a file of keys cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FactorKeysProblem {
    /// This line, counted from 1, is not 32 bytes in base64.
    Line(usize),
    /// There is no key.
    Empty,
    /// There are more than [`FACTOR_KEYS`].
    TooMany,
}

// === impl FactorKeys ===

impl FactorKeys {
    /// Reads a file of keys: a key a line, 32 bytes in base64, the one that encrypts first. Empty lines and lines with `#` in front are left
    /// out.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn read(text: &str) -> Result<FactorKeys, FactorKeysProblem> {
        let mut keys = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bytes = STANDARD.decode(line).ok().filter(|bytes| bytes.len() == KEY_BYTES);
            let key = bytes.and_then(|bytes| FactorKey::new(&bytes)).ok_or(FactorKeysProblem::Line(at + 1))?;
            if keys.len() >= FACTOR_KEYS {
                return Err(FactorKeysProblem::TooMany);
            }
            keys.push(key);
        }
        if keys.is_empty() { Err(FactorKeysProblem::Empty) } else { Ok(FactorKeys(Arc::new(keys))) }
    }

    /// The secret of an operator as it is to be stored.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn lock(&self, operator: &str, secret: &[u8]) -> Result<Vec<u8>, std::io::Error> {
        let Some(FactorKey { id, key }) = self.0.first() else { return Ok(secret.to_vec()) };
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(std::io::Error::other)?;
        let mut encrypted = secret.to_vec();
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), bound_to(operator), &mut encrypted)
            .map_err(|_| std::io::Error::other("the secret cannot be encrypted"))?;
        Ok([&[FORMAT][..], id, &nonce, &encrypted].concat())
    }

    /// The secret of an operator as it was stored.
    #[must_use]
    pub fn open(&self, operator: &str, stored: &[u8]) -> StoredSecret {
        let Some((id, nonce, encrypted)) = parts(stored) else {
            return StoredSecret::Open { secret: stored.to_vec(), is_current: self.0.is_empty() };
        };
        let opened = self.0.iter().enumerate().filter(|(_, key)| key.id == id).find_map(|(at, key)| {
            let (mut bytes, nonce) = (encrypted.to_vec(), Nonce::assume_unique_for_key(nonce));
            let secret = key.key.open_in_place(nonce, bound_to(operator), &mut bytes).ok()?.to_vec();
            Some(StoredSecret::Open { secret, is_current: at == 0 })
        });
        opened.unwrap_or_else(|| StoredSecret::Locked { key: hex(&id) })
    }
}

impl fmt::Debug for FactorKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FactorKeys").field(&self.0.len()).finish()
    }
}

// === impl FactorKey ===

impl FactorKey {
    fn new(bytes: &[u8]) -> Option<FactorKey> {
        let digest = Sha256::new_with_prefix(b"palisade second factor key\0").chain_update(bytes).finalize();
        let id = digest.first_chunk().copied()?;
        Some(FactorKey { id, key: LessSafeKey::new(UnboundKey::new(&AES_256_GCM, bytes).ok()?) })
    }
}

// === impl StoredSecret ===

impl fmt::Debug for StoredSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The secret must not reach a log by way of a derived Debug.
        match self {
            StoredSecret::Open { is_current, .. } => {
                f.debug_struct("Open").field("is_current", is_current).finish_non_exhaustive()
            }
            StoredSecret::Locked { key } => f.debug_struct("Locked").field("key", key).finish(),
        }
    }
}

// === impl FactorKeysProblem ===

impl fmt::Display for FactorKeysProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FactorKeysProblem::Line(line) => {
                write!(
                    f,
                    "line {line} is no key: 32 bytes in base64 are expected, such as `openssl rand -base64 32` makes"
                )
            }
            FactorKeysProblem::Empty => f.write_str("there is no key in the file"),
            FactorKeysProblem::TooMany => write!(f, "there are more than {FACTOR_KEYS} keys"),
        }
    }
}

impl std::error::Error for FactorKeysProblem {}

/// A secret that was moved to the row of another operator is not opened there.
fn bound_to(operator: &str) -> Aad<Vec<u8>> {
    Aad::from([&b"palisade second factor\0"[..], operator.as_bytes()].concat())
}

/// The parts of an encrypted secret; `None` for one that is not encrypted.
fn parts(stored: &[u8]) -> Option<([u8; ID_BYTES], [u8; NONCE_LEN], &[u8])> {
    let rest = stored.strip_prefix(&[FORMAT]).filter(|_| stored.len() == ENCRYPTED_BYTES)?;
    let (id, rest) = rest.split_first_chunk()?;
    let (nonce, encrypted) = rest.split_first_chunk()?;
    Some((*id, *nonce, encrypted))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"12345678901234567890";

    fn keys(bytes: &[u8]) -> FactorKeys {
        let lines: Vec<String> = bytes.iter().map(|byte| STANDARD.encode([*byte; KEY_BYTES])).collect();
        FactorKeys::read(&format!("# made by hand\n\n{}\n", lines.join("\n"))).unwrap()
    }

    fn open(is_current: bool) -> StoredSecret {
        StoredSecret::Open { secret: SECRET.to_vec(), is_current }
    }

    #[test]
    fn a_secret_is_opened_by_its_key_for_its_operator_alone() {
        let stored = keys(&[1]).lock("ada", SECRET).unwrap();
        assert_eq!(stored.len(), ENCRYPTED_BYTES);
        assert!(!stored.windows(4).any(|part| SECRET.windows(4).any(|other| part == other)));
        assert_ne!(stored, keys(&[1]).lock("ada", SECRET).unwrap(), "each with a nonce of its own");
        assert_eq!(keys(&[1]).open("ada", &stored), open(true));
        let StoredSecret::Locked { key } = keys(&[2]).open("ada", &stored) else { panic!("another key") };
        assert_eq!(key.len(), 8);
        for other in [keys(&[1]).open("grace", &stored), FactorKeys::default().open("ada", &stored)] {
            assert_eq!(other, StoredSecret::Locked { key: key.clone() });
        }
        for at in 5..stored.len() {
            let mut changed = stored.clone();
            changed[at] ^= 1;
            assert!(matches!(keys(&[1]).open("ada", &changed), StoredSecret::Locked { .. }), "{at}");
        }
    }

    #[test]
    fn a_secret_of_before_or_of_an_older_key_is_to_be_stored_anew() {
        let none = FactorKeys::default();
        assert_eq!(none.lock("ada", SECRET).unwrap(), SECRET);
        assert_eq!((none.open("ada", SECRET), keys(&[1]).open("ada", SECRET)), (open(true), open(false)));
        let older = keys(&[1]).lock("ada", SECRET).unwrap();
        assert_eq!(keys(&[2, 1]).open("ada", &older), open(false));
        assert_eq!(keys(&[2, 1]).open("ada", &keys(&[2]).lock("ada", SECRET).unwrap()), open(true));
        // A secret may begin as an encrypted one does.
        let alike = [&[FORMAT][..], &SECRET[1..]].concat();
        assert_eq!(none.open("ada", &alike), StoredSecret::Open { secret: alike, is_current: true });
    }

    #[test]
    fn what_is_wrong_with_a_file_is_named_by_its_line_and_no_key_is_shown() {
        let problem = |text: &str| FactorKeys::read(text).unwrap_err();
        let key = STANDARD.encode([7; KEY_BYTES]);
        assert_eq!(problem("# nothing\n\n"), FactorKeysProblem::Empty);
        assert_eq!(problem(&format!("{key}\n\nshort\n")), FactorKeysProblem::Line(3));
        assert_eq!(problem(&STANDARD.encode([7; KEY_BYTES + 1])), FactorKeysProblem::Line(1));
        assert_eq!(problem(&format!("{key}\n").repeat(FACTOR_KEYS + 1)), FactorKeysProblem::TooMany);
        assert_eq!(format!("{:?} {:?}", keys(&[1, 2]), open(true)), "FactorKeys(2) Open { is_current: true, .. }");
    }
}
