//! RAR 4 and 5: the headers (TechNote.txt of RARLAB).

use super::opaque::variable;
use super::{Opener, Stop};
use crate::bytes::{le16, le32, place, slice};

/// Types of the records at the end of a header of RAR 5.
const ENCRYPTION: u64 = 1;
const REDIRECTION: u64 = 5;

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
                let (mut links, mut copies) = (Vec::new(), Vec::new());
                for (kind, record) in records(header, place(extra)) {
                    opener.step()?;
                    encrypted |= kind == ENCRYPTION;
                    if kind == REDIRECTION {
                        let (is_link, target) = redirection(record);
                        if is_link { links.push(target) } else { copies.push(target) }
                    }
                }
                // The name is read for all of them together.
                for (targets, hard) in [(links, false), (copies, true)] {
                    if !targets.is_empty() {
                        opener.link(&[name], &targets, hard);
                    }
                }
            }
            4 => return Ok(Some(true)),
            5 => break,
            _ => {}
        }
        rest = behind.get(place(data)..).unwrap_or_default();
    }
    Ok(Some(encrypted))
}

/// The records at the end of a header of RAR 5: their types and contents.
fn records(header: &[u8], extra: usize) -> impl Iterator<Item = (u64, &[u8])> {
    let mut rest = header.len().checked_sub(extra).and_then(|at| header.get(at..)).unwrap_or_default();
    std::iter::from_fn(move || {
        let size = place(variable(&mut rest)?);
        let mut record = rest.get(..size).unwrap_or_default();
        rest = rest.get(size.max(1)..).unwrap_or_default();
        Some((variable(&mut record).unwrap_or_default(), record))
    })
}

/// A link of RAR 5: whether it is a link of Unix or Windows or a junction, and no hard link or copy of an entry; where it leads.
fn redirection(mut record: &[u8]) -> (bool, &[u8]) {
    let kind = variable(&mut record).unwrap_or_default();
    let _flags = variable(&mut record);
    let length = variable(&mut record).map_or(0, place);
    ((1..=3).contains(&kind), record.get(..length).unwrap_or(record))
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
                let end = memchr::memchr(0, name).unwrap_or(name.len());
                let (short, coded) = name.split_at_checked(end).unwrap_or((name, b""));
                opener.entry(short, true)?;
                if let Some(coded) = coded.get(1..).filter(|coded| !coded.is_empty()) {
                    opener.named(unicode_name(short, coded).as_bytes(), true);
                }
                encrypted |= flags & 4 != 0;
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

/// The name in Unicode that RAR 4 writes behind the short one: flags of two bits say how each character is written, with its low byte, with
/// a high byte that all share, with both, or as characters of the short name.
fn unicode_name(short: &[u8], coded: &[u8]) -> String {
    let mut bytes = coded.iter().copied();
    let mut units: Vec<u16> = Vec::new();
    let high = bytes.next().map_or(0, |high| u16::from(high) << 8);
    'all: while let Some(flags) = bytes.next() {
        for shift in [6, 4, 2, 0] {
            let Some(first) = bytes.next() else { break 'all };
            match flags >> shift & 3 {
                0 => units.push(u16::from(first)),
                1 => units.push(u16::from(first) | high),
                2 => units.push(u16::from(first) | u16::from(bytes.next().unwrap_or_default()) << 8),
                _ => {
                    let (add, high) = if first & 0x80 != 0 { (bytes.next().unwrap_or_default(), high) } else { (0, 0) };
                    let from = units.len();
                    let copied = short.iter().skip(from).take(usize::from(first & 0x7f) + 2);
                    units.extend(copied.map(|byte| u16::from(byte.wrapping_add(add)) | high));
                }
            }
        }
    }
    char::decode_utf16(units).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}
