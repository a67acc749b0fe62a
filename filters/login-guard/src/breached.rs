//! Passwords that were breached elsewhere. The control plane is asked with the first 20 bits of the SHA-1 of a password, which about
//! a thousand breached passwords share with it; which of them it is stays in the filter.

use std::cell::RefCell;

use exchange::{Answer, Ask, Host};
use sha1::{Digest as _, Sha1};

use crate::BreachedRange;

/// How long an answer is kept, in milliseconds.
const KEEP: u64 = 3_600_000;
/// The most answers that a worker keeps; each has about 8 KiB.
const MAX_KEPT: usize = 128;
/// The bytes of a suffix in an answer.
pub(crate) const SUFFIX: usize = 8;

/// What is known of breached passwords.
pub(crate) struct Breached {
    wait_millis: u32,
    /// By the time of the answer, the oldest first.
    kept: RefCell<Vec<Kept>>,
}

struct Kept {
    prefix: u32,
    suffixes: Vec<u8>,
    until: u64,
}

/// The parts of the SHA-1 of a password that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) prefix: u32,
    pub(crate) suffix: [u8; SUFFIX],
}

/// What is known of a password.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Looked {
    Breached,
    NotBreached,
    Unknown(Ask),
}

impl Digest {
    pub(crate) fn of(password: &[u8]) -> Self {
        Self::of_hash(&Sha1::digest(password))
    }

    pub(crate) fn of_hash(hash: &[u8]) -> Self {
        let byte = |at: usize| u32::from(hash.get(at).copied().unwrap_or_default());
        let prefix = byte(0) << 12 | byte(1) << 4 | byte(2) >> 4;
        let suffix = hash.get(2..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        Self { prefix, suffix }
    }
}

impl Breached {
    pub(crate) fn new(wait_millis: u32) -> Self {
        Self { wait_millis, kept: RefCell::default() }
    }

    /// What is known of a password without asking, or the question.
    pub(crate) fn look(&self, digest: Digest, host: &dyn Host) -> Looked {
        let now = host.now();
        let kept = self.kept.borrow();
        match kept.iter().find(|kept| kept.prefix == digest.prefix && kept.until > now) {
            Some(kept) if has(&kept.suffixes, digest) => Looked::Breached,
            Some(_) => Looked::NotBreached,
            None => Looked::Unknown(Ask::new(&BreachedRange { prefix: digest.prefix }, self.wait_millis)),
        }
    }

    /// Whether the answer has a password; without an answer it is not known to be breached.
    pub(crate) fn answered(&self, answer: &Answer, digest: Digest, host: &dyn Host) -> bool {
        let Some(passwords) = answer.read::<BreachedRange>() else { return false };
        let breached = has(&passwords.suffixes, digest);
        let (prefix, now) = (digest.prefix, host.now());
        let mut kept = self.kept.borrow_mut();
        kept.retain(|kept| kept.prefix != prefix && kept.until > now);
        if kept.len() >= MAX_KEPT {
            kept.remove(0);
        }
        kept.push(Kept { prefix, suffixes: passwords.suffixes, until: now.saturating_add(KEEP) });
        breached
    }
}

fn has(suffixes: &[u8], digest: Digest) -> bool {
    let (suffixes, _) = suffixes.as_chunks::<SUFFIX>();
    suffixes.binary_search(&digest.suffix).is_ok()
}
