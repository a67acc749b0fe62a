//! RAR 4 and 5: the headers (TechNote.txt of RARLAB).

use super::opaque::variable;
use super::{Opener, Stop};
use crate::Reason;
use crate::bytes::{le16, le32, place, slice};

pub(super) fn open(opener: &mut Opener<'_>, bytes: &[u8], complete: bool) -> Result<(), Stop> {
    let read = match bytes.strip_prefix(b"Rar!\x1a\x07\x01\0") {
        Some(blocks) => five(opener, blocks)?,
        None => match bytes.strip_prefix(b"Rar!\x1a\x07\0") {
            Some(blocks) => four(opener, blocks)?,
            None => None,
        },
    };
    Err(opener.unreadable(match read {
        Some(true) => "a RAR file is encrypted",
        None if complete => "the headers of a RAR file are damaged",
        _ => "a RAR file cannot be opened here",
    }))
}

/// The blocks of RAR 5; whether anything is encrypted, `None` where they are damaged.
fn five(opener: &mut Opener<'_>, mut rest: &[u8]) -> Result<Option<bool>, Stop> {
    let (mut total, mut encrypted) = (0_u64, false);
    while !rest.is_empty() {
        opener.step()?;
        let Some(mut after) = rest.get(4..) else { return Ok(None) };
        let Some(mut header) = variable(&mut after).and_then(|size| after.get(..place(size))) else { return Ok(None) };
        let behind = after.get(header.len()..).unwrap_or_default();
        let mut next = || variable(&mut header);
        let (Some(kind), Some(flags)) = (next(), next()) else { return Ok(None) };
        let extra = if flags & 1 != 0 { next() } else { Some(0) };
        let data = if flags & 2 != 0 { next() } else { Some(0) };
        let (Some(extra), Some(data)) = (extra, data) else { return Ok(None) };
        match kind {
            // A file.
            2 => {
                let Some((size, name)) = file(header) else { return Ok(None) };
                total = total.saturating_add(size);
                opener.declares(total)?;
                opener.entry(name, true)?;
                encrypted |= is_encrypted(header, place(extra));
            }
            4 => return Ok(Some(true)),
            5 => break,
            _ => {}
        }
        rest = behind.get(place(data)..).unwrap_or_default();
    }
    Ok(Some(encrypted))
}

/// Whether the records at the end of a header of RAR 5 have one of type 1, encryption.
fn is_encrypted(header: &[u8], extra: usize) -> bool {
    let mut records = header.len().checked_sub(extra).and_then(|at| header.get(at..)).unwrap_or_default();
    while let Some(size) = variable(&mut records) {
        let mut record = records.get(..place(size)).unwrap_or_default();
        if variable(&mut record) == Some(1) {
            return true;
        }
        records = records.get(place(size).max(1)..).unwrap_or_default();
    }
    false
}

/// The length and the name of a file of RAR 5.
fn file(mut header: &[u8]) -> Option<(u64, &[u8])> {
    let flags = variable(&mut header)?;
    let size = variable(&mut header)?;
    variable(&mut header)?;
    let fixed = usize::from(flags & 2 != 0) * 4 + usize::from(flags & 4 != 0) * 4;
    header = header.get(fixed..)?;
    variable(&mut header)?;
    variable(&mut header)?;
    let length = variable(&mut header)?;
    Some((if flags & 8 != 0 { 0 } else { size }, header.get(..place(length))?))
}

/// The blocks of RAR 4.
fn four(opener: &mut Opener<'_>, mut rest: &[u8]) -> Result<Option<bool>, Stop> {
    let (mut total, mut encrypted) = (0_u64, false);
    while !rest.is_empty() {
        opener.step()?;
        let (Some(kind), Some(flags), Some(size)) = (rest.get(2), le16(rest, 3), le16(rest, 5)) else {
            return Ok(None);
        };
        let Some(header) = rest.get(..usize::from(size)).filter(|_| size >= 7) else { return Ok(None) };
        let mut data = if flags & 0x8000 != 0 { u64::from(le32(header, 7).unwrap_or(0)) } else { 0 };
        match kind {
            0x73 if flags & 0x80 != 0 => return Ok(Some(true)),
            0x74 => {
                let (Some(low), Some(length)) = (le32(header, 11), le16(header, 26)) else { return Ok(None) };
                let large = flags & 0x100 != 0;
                let high = if large { le32(header, 36).unwrap_or(0) } else { 0 };
                data |= u64::from(if large { le32(header, 32).unwrap_or(0) } else { 0 }) << 32;
                total = total.saturating_add(u64::from(high) << 32 | u64::from(low));
                opener.declares(total)?;
                let name = slice(header, if large { 40 } else { 32 }, usize::from(length)).unwrap_or_default();
                opener.entry(name.split(|byte| *byte == 0).next().unwrap_or_default(), true)?;
                encrypted |= flags & 4 != 0;
                if name.split(|byte| *byte == 0).nth(1).is_some_and(has_up) {
                    opener.findings.add(Reason::ZipSlip, "an entry of a RAR file leads out of its folder");
                }
            }
            0x7b => break,
            _ => {}
        }
        let Some(behind) = rest.get(usize::from(size)..).and_then(|after| after.get(place(data)..)) else {
            return Ok(Some(encrypted));
        };
        rest = behind;
    }
    Ok(Some(encrypted))
}

/// Whether the encoded form of a name, whose ASCII letters are as they are, has `..` in it.
fn has_up(encoded: &[u8]) -> bool {
    memchr::memmem::find(encoded, b"../").is_some() || memchr::memmem::find(encoded, b"..\\").is_some()
}
