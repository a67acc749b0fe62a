//! `md5` and `sha1`: raw digests, usually followed by `hexEncode`.

use md5::{Digest, Md5};
use sha1::Sha1;

/// The 16 bytes of the MD5 digest.
pub(super) fn md5(input: &[u8]) -> Vec<u8> {
    Md5::digest(input).to_vec()
}

/// The 20 bytes of the SHA-1 digest.
pub(super) fn sha1(input: &[u8]) -> Vec<u8> {
    Sha1::digest(input).to_vec()
}
