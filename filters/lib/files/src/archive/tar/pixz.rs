//! The index that pixz writes behind a tar file, in the same compressed stream: where the headers of its entries are.

use crate::bytes::{le64, place};

/// What an index begins with.
const MAGIC: &[u8] = b"\xa6\x4c\x32\x2e\xd6\x14\xae\xdb";
/// The length of a place.
const PLACE: usize = 8;

/// Whether all of the bytes behind a file of this length are an index: names, each with a NUL byte and the place of its header behind it,
/// in order. The last one has no name.
pub(super) fn is_index(bytes: &[u8], length: usize) -> bool {
    let Some(mut rest) = bytes.strip_prefix(MAGIC) else { return false };
    let mut before = 0;
    while let Some(end) = memchr::memchr(0, rest) {
        let behind = rest.get(end + 1..).unwrap_or_default();
        let Some(at) = le64(behind, 0).map(place).filter(|at| (before..=length).contains(at)) else { return false };
        let behind = behind.get(PLACE..).unwrap_or_default();
        if end == 0 {
            return behind.is_empty();
        }
        (rest, before) = (behind, at);
    }
    false
}
