//! Numbers and slices at places of a file, as far as the file has them.

/// A slice of `length` bytes from `at` on.
pub(crate) fn slice(bytes: &[u8], at: usize, length: usize) -> Option<&[u8]> {
    bytes.get(at..at.checked_add(length)?)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// A number of two bytes, little endian.
pub(crate) fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

/// A number of four bytes, little endian.
pub(crate) fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

/// A number of eight bytes, little endian.
pub(crate) fn le64(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_le_bytes)
}

/// A number of two bytes, big endian.
pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

/// A number of four bytes, big endian.
pub(crate) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

/// A place in a file from a number of it; beyond any file where the number is too large.
pub(crate) fn place(number: impl TryInto<usize>) -> usize {
    number.try_into().unwrap_or(usize::MAX)
}

/// Where `needle` begins, in lower and upper case alike; `needle` in lower case. Linear: it looks for the first byte and compares
/// what follows.
pub(crate) fn find_ignoring_case(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let (first, _) = needle.split_first()?;
    let mut starts = memchr::memchr2_iter(*first, first.to_ascii_uppercase(), haystack);
    starts.find(|at| slice(haystack, *at, needle.len()).is_some_and(|found| found.eq_ignore_ascii_case(needle)))
}
