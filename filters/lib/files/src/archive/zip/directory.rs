//! The directory of a ZIP file.

use crate::bytes::{le16, le32, le64, place, slice};

/// The length of the record at the end, without its comment, in bytes.
const END: usize = 22;
/// The length of an entry of the directory, without its name, its extra field and its comment.
const CENTRAL: usize = 46;
/// The extra field of ZIP64, and that of a name in UTF-8.
pub(super) const ZIP64: u16 = 1;
const UNICODE_NAME: u16 = 0x7075;

/// A directory.
pub(crate) struct Directory<'a> {
    pub(crate) entries: Vec<Entry<'a>>,
    /// How many entries there are, also where they are more than were read.
    pub(crate) count: u64,
    /// Where it begins, in bytes.
    pub(crate) start: usize,
    /// How many bytes are in front of the file that offsets count from.
    pub(crate) front: usize,
    /// How many bytes follow the end.
    pub(crate) behind: usize,
}

/// An entry.
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) flags: u16,
    pub(crate) method: u16,
    pub(crate) crc: u32,
    pub(crate) packed: u64,
    pub(crate) size: u64,
    /// Where its header begins, from the beginning of the bytes on.
    pub(crate) offset: usize,
    extra: &'a [u8],
    attributes: u32,
}

impl<'a> Entry<'a> {
    /// Whether it is a symbolic link: by the mode of Unix, which is in the upper half of the attributes. Some readers take the mode
    /// whatever system the entry is said to be of.
    pub(crate) fn is_link(&self) -> bool {
        (self.attributes >> 16) & 0o170_000 == 0o120_000
    }

    /// Names that readers may take in place of the one in the entry.
    pub(crate) fn other_names(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        unicode_names(self.extra)
    }
}

impl<'a> Directory<'a> {
    /// Reads a directory, with `most` and one more entries at most.
    pub(crate) fn read(bytes: &'a [u8], most: u64) -> Result<Self, String> {
        let End { at: end, behind, doubtful } = end(bytes).ok_or("a ZIP file has no end")?;
        if doubtful {
            return Err("a ZIP file has two ends".to_owned());
        }
        let wrong = || "the end of a ZIP file is damaged".to_owned();
        let record = bytes.get(end..).unwrap_or_default();
        let field = |at: usize| le16(record, at).map(u64::from);
        let (mut disk, mut here, mut count) = (
            le16(record, 4).map(u32::from).ok_or_else(wrong)?,
            field(8).ok_or_else(wrong)?,
            field(10).ok_or_else(wrong)?,
        );
        let mut size = u64::from(le32(record, 12).ok_or_else(wrong)?);
        let mut offset = u64::from(le32(record, 16).ok_or_else(wrong)?);
        let mut limit = end;
        let long = count == 0xffff || size == u64::from(u32::MAX) || offset == u64::from(u32::MAX);
        let locator = end.checked_sub(20).filter(|at| slice(bytes, *at, 4) == Some(b"PK\x06\x07"));
        if let Some(locator) = locator {
            let named = le64(bytes, locator + 8).map(place).ok_or_else(wrong)?;
            let is_record = |at: &usize| slice(bytes, *at, 4) == Some(b"PK\x06\x06");
            // Data may be in front of the file: the record is then right in front of its locator.
            let near = locator.checked_sub(56);
            let at = [Some(named), near].into_iter().flatten().find(is_record).ok_or_else(wrong)?;
            // Some readers take the short fields unless they are markers, others take the long ones.
            let marker = u64::from(u32::MAX);
            let mut agree = le64(bytes, at + 4).and_then(|length| at.checked_add(12)?.checked_add(place(length)))
                == Some(locator)
                && matches!(disk, 0 | 0xffff);
            disk = le32(bytes, at + 16).ok_or_else(wrong)?;
            for (number, short, from) in
                [(&mut here, 0xffff, 24), (&mut count, 0xffff, 32), (&mut size, marker, 40), (&mut offset, marker, 48)]
            {
                let long = le64(bytes, at + from).ok_or_else(wrong)?;
                agree &= *number == short || *number == long;
                *number = long;
            }
            if !agree {
                return Err("the two ends of a ZIP file contradict each other".to_owned());
            }
            limit = at;
        } else if long && (size == u64::from(u32::MAX) || offset == u64::from(u32::MAX)) {
            return Err(wrong());
        }
        if disk != 0 || here != count {
            return Err("a ZIP file has several volumes".to_owned());
        }
        let start = limit.checked_sub(place(size)).ok_or_else(wrong)?;
        // Offsets count from the beginning of the file; what is in front of it shifts them.
        let front = start.checked_sub(place(offset)).ok_or_else(wrong)?;
        let mut rest = bytes.get(start..limit).unwrap_or_default();
        let mut entries = Vec::new();
        while u64::try_from(entries.len()).is_ok_and(|read| read <= most) && !rest.is_empty() {
            // A signature of the directory may follow its entries.
            if rest.starts_with(b"PK\x05\x05") {
                break;
            }
            let (entry, after) = entry(rest, front).ok_or("the directory of a ZIP file is damaged")?;
            entries.push(entry);
            rest = after;
        }
        let read = u64::try_from(entries.len()).unwrap_or(u64::MAX);
        if read != count && (rest.is_empty() || read <= most) {
            return Err("the directory of a ZIP file has another number of entries than its end says".to_owned());
        }
        let count = count.max(read);
        Ok(Self { entries, count, start, front, behind })
    }
}

/// The record at the end.
struct End {
    at: usize,
    /// How many bytes follow it and its comment.
    behind: usize,
    /// Other readers take another record: one in its comment, or one whose comment it is in.
    doubtful: bool,
}

fn end(bytes: &[u8]) -> Option<End> {
    let from = bytes.len().saturating_sub(END + 0xffff);
    let tail = bytes.get(from..)?;
    let mut best: Option<End> = None;
    for at in memchr::memmem::rfind_iter(tail, b"PK\x05\x06") {
        let at = from + at;
        let Some(comment) = le16(bytes, at + 20).map(usize::from) else { continue };
        let Some(behind) = bytes.len().checked_sub(at + END + comment) else { continue };
        // One that reaches the end exactly is the right one; otherwise the last one is what most readers take.
        best = Some(match best {
            None => End { at, behind, doubtful: false },
            Some(known) if behind > 0 => known,
            Some(known) if known.behind > 0 => End { at, behind, doubtful: true },
            Some(known) => End { doubtful: true, ..known },
        });
    }
    best
}

/// Whether a ZIP file ends the bytes of a file of another format: an end whose directory is where it says.
pub(crate) fn is_appended(bytes: &[u8], to_the_end: bool) -> bool {
    let Some(End { at, behind, .. }) = end(bytes) else { return false };
    if to_the_end && behind > 0 {
        return false;
    }
    // With ZIP64, its record is in front of the end, and its lengths count.
    let long = at.checked_sub(20).filter(|at| slice(bytes, *at, 4) == Some(b"PK\x06\x07")).and_then(|locator| {
        let record = locator.checked_sub(56).filter(|at| slice(bytes, *at, 4) == Some(b"PK\x06\x06"))?;
        Some((record, le64(bytes, record + 40).map(place)?))
    });
    let (limit, size) = long.unwrap_or_else(|| (at, le32(bytes, at + 12).map_or(usize::MAX, place)));
    let start = limit.checked_sub(size);
    let entries = le16(bytes, at + 10).unwrap_or(0);
    entries > 0 && start.and_then(|start| slice(bytes, start, 4)) == Some(b"PK\x01\x02")
}

fn entry(bytes: &[u8], front: usize) -> Option<(Entry<'_>, &[u8])> {
    if !bytes.starts_with(b"PK\x01\x02") {
        return None;
    }
    let (name, extra, comment) =
        (usize::from(le16(bytes, 28)?), usize::from(le16(bytes, 30)?), usize::from(le16(bytes, 32)?));
    // Those of other volumes are not here.
    if !matches!(le16(bytes, 34)?, 0 | 0xffff) {
        return None;
    }
    let mut entry = Entry {
        name: slice(bytes, CENTRAL, name)?,
        flags: le16(bytes, 8)?,
        method: le16(bytes, 10)?,
        crc: le32(bytes, 16)?,
        packed: u64::from(le32(bytes, 20)?),
        size: u64::from(le32(bytes, 24)?),
        offset: 0,
        extra: slice(bytes, CENTRAL + name, extra)?,
        attributes: le32(bytes, 38)?,
    };
    let mut offset = u64::from(le32(bytes, 42)?);
    let long = fields(entry.extra).find(|(id, _)| *id == ZIP64).map(|(_, field)| field);
    if let Some(field) = long {
        let mut numbers = numbers(field);
        // Those that do not fit the entry are there, in this order.
        for number in [&mut entry.size, &mut entry.packed, &mut offset] {
            if *number == u64::from(u32::MAX) {
                *number = numbers.next()?;
            }
        }
    }
    entry.offset = place(offset).checked_add(front)?;
    Some((entry, bytes.get(CENTRAL + name + extra + comment..)?))
}

/// The names in UTF-8 of an extra field. A version and a sum are in front of each.
pub(super) fn unicode_names(extra: &[u8]) -> impl Iterator<Item = &[u8]> {
    fields(extra).filter(|(id, _)| *id == UNICODE_NAME).filter_map(|(_, field)| field.get(5..))
}

/// The numbers of a field of ZIP64.
pub(super) fn numbers(field: &[u8]) -> impl Iterator<Item = u64> {
    field.as_chunks::<8>().0.iter().map(|number| u64::from_le_bytes(*number))
}

/// The fields of an extra field: ids and contents.
pub(super) fn fields(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (id, length) = (le16(rest, 0)?, usize::from(le16(rest, 2)?));
        let field = slice(rest, 4, length)?;
        rest = rest.get(4 + length..)?;
        Some((id, field))
    })
}
