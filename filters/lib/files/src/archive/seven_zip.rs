//! 7z: the headers (7zFormat.txt of the LZMA SDK).

use super::unpack::crc;
use super::{Opener, Stop};
use crate::Reason;
use crate::bytes::{le32, le64, place, slice};

/// The method of AES encryption.
const AES: &[u8] = b"\x06\xf1\x07\x01";

pub(super) fn open(opener: &mut Opener<'_>, bytes: &[u8], complete: bool) -> Result<(), Stop> {
    opener.step()?;
    let start = slice(bytes, 12, 20).unwrap_or_default();
    let right = le32(bytes, 8) == Some(crc(start));
    let (at, length) = (le64(bytes, 12).map_or(usize::MAX, place), le64(bytes, 20).map_or(usize::MAX, place));
    let header = at.checked_add(32).and_then(|at| slice(bytes, at, length));
    let Some(header) = header.filter(|_| right) else {
        return match complete {
            true => Err(opener.unreadable("the header of a 7z file is damaged")),
            false => Err(opener.unreadable("a 7z file cannot be opened here")),
        };
    };
    // Names are UTF-16, at even or odd places of the header, and only where the header is not packed.
    let leaves = [0, 1].iter().any(|shift| leaves_folder(header.get(*shift..).unwrap_or_default()));
    if header.first() == Some(&1) && leaves {
        opener.findings.add(Reason::ZipSlip, "an entry of a 7z file leads out of its folder");
    }
    let encrypted = memchr::memmem::find(header, AES).is_some();
    Err(opener.unreadable(if encrypted { "a 7z file is encrypted" } else { "a 7z file cannot be opened here" }))
}

/// Whether text in UTF-16 has a segment `..` in a path.
fn leaves_folder(bytes: &[u8]) -> bool {
    let units: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
    let ends = |unit: u16| matches!(unit, 0x2f | 0x5c);
    let begins = |unit: u16| matches!(unit, 0 | 0x2f | 0x5c);
    units.windows(4).any(|four| matches!(*four, [before, 0x2e, 0x2e, after] if begins(before) && ends(after)))
}
