//! ZIP (APPNOTE.TXT of PKWARE), with ZIP64.
//!
//! The directory at the end decides what is in a file, as for most readers; some read the headers in front of the entries instead. Where
//! the two disagree, the file is malformed: what one reader sees is not what another one does.

mod directory;
mod kind;

use std::collections::BTreeSet;

use super::coding::Coding;
use super::unpack::{Unpacked, crc};
use super::{Opener, Stop};
use crate::bytes::{le16, le32, place, slice};
use crate::{Format, Name, Reason, identify};

pub(crate) use directory::is_appended;
use directory::{Directory, Entry};
pub(crate) use kind::identify as kind_of;

/// An entry is encrypted.
const ENCRYPTED: u16 = 1;
/// Lengths and the sum follow the content.
const DESCRIPTOR: u16 = 8;
/// The length of the header in front of an entry, without its name and its extra field.
const LOCAL: usize = 30;

/// The header in front of an entry.
struct Local<'a> {
    flags: u16,
    method: u16,
    crc: u32,
    packed: u32,
    size: u32,
    name: &'a [u8],
    /// Where the content begins.
    data: usize,
}

impl<'a> Local<'a> {
    fn read(bytes: &'a [u8], at: usize) -> Option<Self> {
        let header = slice(bytes, at, LOCAL)?;
        if !header.starts_with(b"PK\x03\x04") {
            return None;
        }
        let (name, extra) = (usize::from(le16(header, 26)?), usize::from(le16(header, 28)?));
        Some(Self {
            flags: le16(header, 6)?,
            method: le16(header, 8)?,
            crc: le32(header, 14)?,
            packed: le32(header, 18)?,
            size: le32(header, 22)?,
            name: slice(bytes, at + LOCAL, name)?,
            data: at + LOCAL + name + extra,
        })
    }
}

pub(super) fn open(opener: &mut Opener<'_>, bytes: &[u8], depth: u32, complete: bool) -> Result<(), Stop> {
    if !complete {
        return beginning(opener, bytes, depth);
    }
    let directory = match Directory::read(bytes, opener.policy.limits.entries) {
        Ok(directory) => directory,
        Err(why) => return Err(opener.unreadable(why)),
    };
    if directory.count > opener.policy.limits.entries {
        let most = opener.policy.limits.entries;
        opener.findings.add(Reason::ArchiveEntries, format!("archives have more than {most} entries"));
        return Err(Stop::Over);
    }
    if directory.front > 0 {
        opener.findings.add(Reason::Polyglot, "data is in front of a ZIP file");
    }
    if directory.behind > 0 {
        opener.findings.add(Reason::Polyglot, "data follows a ZIP file");
    }
    let total = directory.entries.iter().fold(0_u64, |total, entry| total.saturating_add(entry.size));
    opener.declares(total)?;
    let sound = layout(opener, bytes, &directory);
    let format = kind::of(&directory, bytes);
    for entry in &directory.entries {
        let name = opener.entry(entry.name, format == Format::Zip)?;
        for other in entry.other_names() {
            opener.path(&Name::read(other), other, "the entry");
        }
        if !sound {
            continue;
        }
        let start = Local::read(bytes, entry.offset).map(|local| local.data);
        let data = start.and_then(|at| slice(bytes, at, place(entry.packed))).unwrap_or_default();
        match content(opener, entry, &name, data, depth) {
            Ok(()) | Err(Stop::Unreadable) => {}
            over => return over,
        }
    }
    Ok(())
}

/// Whether the entries lie where the directory says, as it describes them, behind each other; what is wrong is noted.
fn layout(opener: &mut Opener<'_>, bytes: &[u8], directory: &Directory<'_>) -> bool {
    let mut names = BTreeSet::new();
    let mut places = Vec::with_capacity(directory.entries.len());
    for entry in &directory.entries {
        if !names.insert(entry.name) {
            opener.unreadable("two entries of a ZIP file have the same name");
        }
        let Some(local) = Local::read(bytes, entry.offset) else {
            opener.unreadable("an entry of a ZIP file has no header where its directory says");
            return false;
        };
        if !agrees(&local, entry) {
            opener.unreadable("a header of a ZIP file contradicts its directory");
        }
        let end = local.data.saturating_add(place(entry.packed));
        if end > directory.start {
            opener.unreadable("an entry of a ZIP file is longer than the file");
            return false;
        }
        places.push((entry.offset, end));
    }
    places.sort_unstable();
    let mut before = directory.front;
    for (start, end) in places {
        if start < before {
            opener.findings.add(Reason::ArchiveBomb, "entries of a ZIP file overlap");
            return false;
        }
        // A descriptor, or padding, may be between two entries; a further entry may not.
        if has_header(bytes.get(before..start).unwrap_or_default()) {
            opener.unreadable("a ZIP file holds entries that its directory does not name");
        }
        before = end;
    }
    if has_header(bytes.get(before..directory.start).unwrap_or_default()) {
        opener.unreadable("a ZIP file holds entries that its directory does not name");
    }
    true
}

fn has_header(gap: &[u8]) -> bool {
    memchr::memmem::find(gap, b"PK\x03\x04").is_some()
}

fn agrees(local: &Local<'_>, entry: &Entry<'_>) -> bool {
    let same = |short: u32, long: u64| short == u32::MAX || u64::from(short) == long;
    let described = local.flags & DESCRIPTOR != 0;
    let sizes = same(local.packed, entry.packed) && same(local.size, entry.size) && local.crc == entry.crc;
    // With a descriptor the three are zero, or what they are.
    let empty = local.packed == 0 && local.size == 0 && local.crc == 0;
    local.name == entry.name
        && local.method == entry.method
        && (local.flags ^ entry.flags) & ENCRYPTED == 0
        && (sizes || described && (empty || same(local.packed, entry.packed) || local.packed == 0))
}

/// Opens the content of an entry.
fn content(opener: &mut Opener<'_>, entry: &Entry<'_>, name: &Name, data: &[u8], depth: u32) -> Result<(), Stop> {
    if entry.flags & ENCRYPTED != 0 || entry.method == 99 {
        return Err(opener.unreadable("an entry of a ZIP file is encrypted"));
    }
    match entry.method {
        0 => {
            opener.expand(entry.size)?;
            if entry.packed != entry.size || crc(data) != entry.crc {
                return Err(opener.unreadable("an entry of a ZIP file is not what its directory says"));
            }
            link(opener, entry, data);
            opener.content(name, data, depth, true)
        }
        method => {
            let keeps = |start: &[u8]| entry.is_link() || super::is_opened(identify(start));
            let Some(unpacked) = unpack(opener, method, data, keeps)? else {
                let why = format!("an entry of a ZIP file has the method {method}, which is not known here");
                return Err(opener.unreadable(why));
            };
            opener.kind(name, identify(&unpacked.kept));
            link(opener, entry, &unpacked.kept);
            if super::is_opened(identify(&unpacked.kept)) {
                if !unpacked.whole {
                    opener.unreadable("an archive within a ZIP file is too long to be opened");
                } else if unpacked.ended {
                    let kept = &unpacked.kept;
                    opener.holding(kept.len(), |opener| opener.content(name, kept, depth, true))?;
                }
            }
            let right = unpacked.ended && unpacked.length == entry.size && unpacked.crc == entry.crc;
            if !right || unpacked.taken != data.len() {
                return Err(opener.unreadable("an entry of a ZIP file is not what its directory says"));
            }
            Ok(())
        }
    }
}

/// Decompresses the content of an entry; `None` for a method that is not known.
fn unpack(
    opener: &mut Opener<'_>,
    method: u16,
    data: &[u8],
    keeps: impl Fn(&[u8]) -> bool,
) -> Result<Option<Unpacked>, Stop> {
    match (method, Coding::of_zip(method)) {
        (8, _) => opener.inflate(data, keeps).map(Some),
        (_, Some(coding)) => opener.unpack(coding, data, keeps).map(Some),
        (_, None) => Ok(None),
    }
}

fn link(opener: &mut Opener<'_>, entry: &Entry<'_>, target: &[u8]) {
    if entry.is_link() {
        opener.link(entry.name, target, false);
    }
}

/// Opens the entries of a file whose end is missing, by the headers in front of them.
fn beginning(opener: &mut Opener<'_>, bytes: &[u8], depth: u32) -> Result<(), Stop> {
    let mut at = 0;
    while let Some(local) = Local::read(bytes, at) {
        let name = opener.entry(local.name, true)?;
        let rest = bytes.get(local.data..).unwrap_or_default();
        if local.flags & ENCRYPTED != 0 {
            return Err(opener.unreadable("an entry of a ZIP file is encrypted"));
        }
        let packed = place(local.packed);
        let known = local.flags & DESCRIPTOR == 0 && local.packed != u32::MAX;
        let data = if known { rest.get(..packed).unwrap_or(rest) } else { rest };
        let taken = match local.method {
            0 if known => {
                opener.expand(u64::try_from(data.len()).unwrap_or(u64::MAX))?;
                opener.content(&name, data, depth, data.len() == packed)?;
                data.len()
            }
            method => {
                if known {
                    opener.declares(u64::from(local.size))?;
                }
                let keeps = |start: &[u8]| super::is_opened(identify(start));
                let Some(unpacked) = unpack(opener, method, data, keeps)? else { return Ok(()) };
                let whole = unpacked.ended && unpacked.whole;
                if whole {
                    opener.content(&name, &unpacked.kept, depth, true)?;
                } else {
                    opener.kind(&name, identify(&unpacked.kept));
                }
                if !unpacked.ended {
                    return Ok(());
                }
                unpacked.taken
            }
        };
        at = local.data.saturating_add(if known { packed.max(taken) } else { taken });
        if local.flags & DESCRIPTOR != 0 {
            at = behind_descriptor(bytes, at);
        }
    }
    Ok(())
}

/// The place behind a descriptor: with or without its signature, with lengths of four or eight bytes.
fn behind_descriptor(bytes: &[u8], at: usize) -> usize {
    let mut ends = [12, 16, 20, 24].into_iter().filter_map(|length| at.checked_add(length));
    let begins = |at: &usize| slice(bytes, *at, 2) == Some(b"PK");
    ends.find(begins).unwrap_or(bytes.len())
}
