//! What formats say of the length of their content, and those that are not opened.

use super::{Opener, Stop};
use crate::Format;
use crate::bytes::{le16, le32, le64, slice};

pub(super) fn open(opener: &mut Opener<'_>, format: Format) -> Result<(), Stop> {
    opener.step()?;
    Err(opener.unreadable(format!("an archive of the format {format} cannot be opened here")))
}

/// The length of the content of a compressed file, as it says; `None` where it does not.
pub(super) fn declared(bytes: &[u8], format: Format, complete: bool) -> Option<u64> {
    match format {
        Format::Zstd => zstd(bytes),
        Format::Xz if complete => xz(bytes),
        Format::Lzip if complete => lzip(bytes),
        // All bits are set where the length is not known.
        Format::Lzma => le64(bytes, 5).filter(|length| *length != u64::MAX),
        _ => None,
    }
}

/// The length of the content of a frame (RFC 8878, section 3.1.1.1).
fn zstd(bytes: &[u8]) -> Option<u64> {
    if !bytes.starts_with(b"\x28\xb5\x2f\xfd") {
        return None;
    }
    let descriptor = *bytes.get(4)?;
    let window = usize::from(descriptor & 0x20 == 0);
    let dictionary = [0, 1, 2, 4].get(usize::from(descriptor & 3)).copied().unwrap_or(0);
    let at = 5 + window + dictionary;
    match descriptor >> 6 {
        0 if window == 0 => bytes.get(at).copied().map(u64::from),
        0 => None,
        1 => le16(bytes, at).map(|length| u64::from(length) + 256),
        2 => le32(bytes, at).map(u64::from),
        _ => le64(bytes, at),
    }
}

/// The length at the end of the last member, where the length of the member beside it can be right.
fn lzip(bytes: &[u8]) -> Option<u64> {
    let at = bytes.len().checked_sub(16)?;
    le64(bytes, at + 8).filter(|member| usize::try_from(*member).is_ok_and(|member| member <= bytes.len()))?;
    le64(bytes, at)
}

/// The sum of the lengths in the index (The .xz File Format, section 4).
fn xz(bytes: &[u8]) -> Option<u64> {
    let footer = bytes.len().checked_sub(12)?;
    if slice(bytes, footer + 10, 2) != Some(b"YZ") {
        return None;
    }
    let size = usize::try_from(le32(bytes, footer + 4)?).ok()?.checked_add(1)?.checked_mul(4)?;
    let mut index = bytes.get(footer.checked_sub(size)?..footer)?;
    index = index.strip_prefix(&[0])?;
    let records = variable(&mut index)?;
    let mut total = 0_u64;
    for _ in 0..records.min(10_000) {
        variable(&mut index)?;
        total = total.saturating_add(variable(&mut index)?);
    }
    Some(total)
}

/// A number of variable length: seven bits in each byte, the lowest first.
pub(super) fn variable(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..63).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
