//! ZIP (APPNOTE.TXT of PKWARE), with ZIP64.
//!
//! The directory at the end decides what is in a file, as for most readers; some read the headers in front of the entries instead. Where
//! the two disagree, the file is malformed: what one reader sees is not what another one does.

mod directory;
mod kind;

use std::collections::BTreeSet;
use std::iter::once;

use super::coding::Coding;
use super::unpack::{Unpacked, crc};
use super::{Opener, Stop};
use crate::bytes::{le16, le32, le64, place, slice};
use crate::{Format, Name, Reason};

pub(crate) use directory::is_appended;
use directory::{Directory, Entry, ZIP64, fields, numbers, unicode_names};
pub(crate) use kind::identify as kind_of;
pub(super) use kind::of_beginning as kind_of_beginning;

/// An entry is encrypted; so it is in another way, or its header is hidden.
const ENCRYPTED: u16 = 1;
const STRONGLY_ENCRYPTED: u16 = 1 << 6 | 1 << 13;
/// The content of an entry is the changes to another file.
const PATCH: u16 = 1 << 5;
/// The content of an entry of LZMA ends with a mark.
const ENDS_WITH_MARK: u16 = 1 << 1;
/// Lengths and the sum follow the content.
const DESCRIPTOR: u16 = 8;
/// The method LZMA, and the length of what is in front of its data.
const LZMA: u16 = 14;
const LZMA_HEADER: usize = 9;
/// The method of entries that are encrypted with AES.
const AES: u16 = 99;
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
    extra: &'a [u8],
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
        let behind = bytes.get(at + LOCAL + name..).unwrap_or_default();
        Some(Self {
            flags: le16(header, 6)?,
            method: le16(header, 8)?,
            crc: le32(header, 14)?,
            packed: le32(header, 18)?,
            size: le32(header, 22)?,
            name: slice(bytes, at + LOCAL, name)?,
            extra: behind.get(..extra).unwrap_or(behind),
            data: at + LOCAL + name + extra,
        })
    }

    /// Whether its lengths and its sum are those of the directory.
    fn is_sure(&self, entry: &Entry<'_>) -> bool {
        self.lengths() == (entry.packed, entry.size) && self.crc == entry.crc
    }

    /// The lengths of the content, packed and not: those of ZIP64 where the short ones are markers.
    fn lengths(&self) -> (u64, u64) {
        let (mut packed, mut size) = (u64::from(self.packed), u64::from(self.size));
        let mut long = fields(self.extra).find(|(id, _)| *id == ZIP64).map(|(_, field)| numbers(field));
        for number in [&mut size, &mut packed] {
            if *number == u64::from(u32::MAX) {
                *number = long.as_mut().and_then(Iterator::next).unwrap_or(*number);
            }
        }
        (packed, size)
    }
}

/// Opens a ZIP file, which is the content of an entry where it has a name.
pub(super) fn open(
    opener: &mut Opener<'_>,
    name: Option<&Name>,
    bytes: &[u8],
    depth: u32,
    complete: bool,
) -> Result<(), Stop> {
    let typed = |opener: &mut Opener<'_>, format| name.into_iter().for_each(|name| opener.kind(name, format));
    // The kind matters for the checks of entries alone.
    let by_beginning = |opener: &mut Opener<'_>| -> Result<(), Stop> {
        if name.is_some() && opener.policy.check_entries {
            let format = kind_of_beginning(bytes, &mut opener.work.bytes).ok_or_else(|| opener.over_budget())?;
            typed(opener, format);
        }
        Ok(())
    };
    if !complete {
        by_beginning(opener)?;
        return beginning(opener, bytes, depth);
    }
    let directory = match Directory::read(bytes, opener.policy.limits.entries) {
        Ok(directory) => directory,
        Err(why) => {
            by_beginning(opener)?;
            return Err(opener.unreadable(why));
        }
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
    let format = match opener.policy.check_entries {
        true => kind::of(&directory, bytes, &mut opener.work.bytes).ok_or_else(|| opener.over_budget())?,
        false => Format::Zip,
    };
    typed(opener, format);
    for entry in &directory.entries {
        let name = opener.entry(entry.name, format == Format::Zip)?;
        let local = Local::read(bytes, entry.offset).filter(|_| sound);
        let others =
            entry.other_names().chain(unicode_names(local.as_ref().map(|local| local.extra).unwrap_or_default()));
        let names: Vec<_> = once(entry.name).chain(others).collect();
        for other in names.iter().skip(1) {
            opener.step()?;
            opener.named(other, format == Format::Zip);
        }
        let Some(local) = local else { continue };
        let data = slice(bytes, local.data, place(entry.packed)).unwrap_or_default();
        match content(opener, entry, (&names, &name), data, depth) {
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
        let end = local.data.saturating_add(place(entry.packed));
        if end > directory.start {
            opener.unreadable("an entry of a ZIP file is longer than the file");
            return false;
        }
        places.push((entry.offset, end, local, entry));
    }
    places.sort_unstable_by_key(|(start, end, ..)| (*start, *end));
    let mut before = directory.front;
    let mut described: Option<&Entry<'_>> = None;
    // A descriptor, or padding, may be between two entries; a further entry may not.
    let gap = |opener: &mut Opener<'_>, gap: &[u8], described: Option<&Entry<'_>>| {
        if has_header(gap) {
            opener.unreadable("a ZIP file holds entries that its directory does not name");
        }
        if described.is_some_and(|entry| !has_descriptor(gap, entry)) {
            opener.unreadable("a descriptor of a ZIP file contradicts its directory");
        }
    };
    for (start, end, local, entry) in places {
        if start < before {
            opener.findings.add(Reason::ArchiveBomb, "entries of a ZIP file overlap");
            return false;
        }
        if !agrees(&local, entry) {
            opener.unreadable("a header of a ZIP file contradicts its directory");
        }
        gap(opener, bytes.get(before..start).unwrap_or_default(), described);
        before = end;
        // Some programs set the flag, and know the lengths nevertheless.
        described = Some(entry).filter(|_| local.flags & DESCRIPTOR != 0 && !local.is_sure(entry));
        let data = bytes.get(local.data..end).unwrap_or_default();
        if described.is_some() && entry.method == 0 && described_length(data).is_some() {
            opener.unreadable("an entry of a ZIP file may end earlier than its directory says");
        }
    }
    gap(opener, bytes.get(before..directory.start).unwrap_or_default(), described);
    true
}

/// The lengths and the sum behind an entry are those of the directory: with or without a signature, in four or eight bytes each.
fn has_descriptor(gap: &[u8], entry: &Entry<'_>) -> bool {
    let fits = |at: &[u8]| {
        let short = (le32(at, 4).map(u64::from), le32(at, 8).map(u64::from));
        let expected = (Some(entry.packed), Some(entry.size));
        le32(at, 0) == Some(entry.crc) && (short == expected || (le64(at, 4), le64(at, 12)) == expected)
    };
    gap.strip_prefix(b"PK\x07\x08").is_some_and(fits) || fits(gap)
}

/// The length of stored content by the first descriptor that says that it ends there: readers of streams look for it.
fn described_length(data: &[u8]) -> Option<usize> {
    memchr::memmem::find_iter(data, b"PK\x07\x08").find(|at| {
        let packed = [le32(data, at + 8).map(u64::from), le64(data, at + 8)];
        packed.into_iter().flatten().any(|packed| place(packed) == *at)
    })
}

fn has_header(gap: &[u8]) -> bool {
    memchr::memmem::find(gap, b"PK\x03\x04").is_some()
}

fn agrees(local: &Local<'_>, entry: &Entry<'_>) -> bool {
    let (packed, _) = local.lengths();
    // With a descriptor they are zero, markers, or what they are.
    let described = local.flags & DESCRIPTOR != 0;
    let open = packed == 0 || packed == u64::from(u32::MAX);
    local.name == entry.name
        && local.method == entry.method
        && (local.flags ^ entry.flags) & ENCRYPTED == 0
        && (local.is_sure(entry) || described && (open || packed == entry.packed))
}

/// Opens the content of an entry, which has these names.
fn content(
    opener: &mut Opener<'_>,
    entry: &Entry<'_>,
    (names, name): (&[&[u8]], &Name),
    data: &[u8],
    depth: u32,
) -> Result<(), Stop> {
    let link = |opener: &mut Opener<'_>, target: &[u8]| {
        if entry.is_link() {
            opener.link(names, &[target], false);
        }
    };
    decrypted(opener, entry.flags, entry.method)?;
    match entry.method {
        0 => {
            opener.expand(entry.size)?;
            if entry.packed != entry.size || crc(data) != entry.crc {
                return Err(opener.unreadable("an entry of a ZIP file is not what its directory says"));
            }
            link(opener, data);
            opener.content(name, data, depth, true)
        }
        method => {
            let keeps = |start: &[u8]| entry.is_link() || super::opens(start);
            let packed = Packed { method, flags: entry.flags, size: Some(entry.size), data };
            let unpacked = unpack(opener, &packed, keeps)?;
            let kept = &unpacked.kept;
            link(opener, kept);
            if unpacked.whole && unpacked.ended {
                opener.holding(kept.len(), |opener| opener.content(name, kept, depth, true))?;
            } else {
                opener.kind_of_start(name, kept);
                if !unpacked.whole && super::opens(kept) {
                    opener.unreadable("an archive within a ZIP file is too long to be opened");
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

/// Whether an entry can be read without a password.
fn decrypted(opener: &mut Opener<'_>, flags: u16, method: u16) -> Result<(), Stop> {
    match flags & (ENCRYPTED | STRONGLY_ENCRYPTED) != 0 || method == AES {
        true => Err(opener.unreadable("an entry of a ZIP file is encrypted")),
        false => Ok(()),
    }
}

/// The compressed content of an entry.
struct Packed<'a> {
    method: u16,
    flags: u16,
    /// Its length without compression, where that is known.
    size: Option<u64>,
    data: &'a [u8],
}

/// Decompresses the content of an entry.
fn unpack(opener: &mut Opener<'_>, packed: &Packed<'_>, keeps: impl Fn(&[u8]) -> bool) -> Result<Unpacked, Stop> {
    let Packed { method, flags, size, data } = *packed;
    if flags & PATCH != 0 {
        return Err(opener.unreadable("an entry of a ZIP file is a patch, which is not opened here"));
    }
    match (method, Coding::of_zip(method)) {
        (8, _) => opener.inflate(data, keeps),
        (LZMA, _) => {
            // A version, the length of the properties, the properties (APPNOTE.TXT, section 5.8.8).
            let (Some(5), Some(properties), Some(dictionary)) = (le16(data, 2), data.get(4), le32(data, 5)) else {
                return Err(opener.unreadable("the header of an entry of a ZIP file with LZMA is damaged"));
            };
            let size = size.filter(|_| flags & ENDS_WITH_MARK == 0);
            let coding = Coding::RawLzma { properties: *properties, dictionary, size };
            let mut unpacked = opener.unpack(coding, data.get(LZMA_HEADER..).unwrap_or_default(), keeps)?;
            unpacked.taken = unpacked.taken.saturating_add(LZMA_HEADER);
            Ok(unpacked)
        }
        (_, Some(coding)) => opener.unpack(coding, data, keeps),
        (_, None) => {
            let name = method_name(method);
            let why = format!("an entry of a ZIP file has the method {method} ({name}), which is not opened here");
            Err(opener.unreadable(why))
        }
    }
}

/// What a method is called that is not opened (APPNOTE.TXT, section 4.4.5).
fn method_name(method: u16) -> &'static str {
    match method {
        1 => "shrunk",
        2..=5 => "reduced",
        6 => "imploded",
        9 => "deflate64",
        10 | 18 => "IBM TERSE",
        19 => "IBM LZ77",
        94 => "MP3",
        96 => "JPEG",
        97 => "WavPack",
        98 => "PPMd",
        _ => "unknown",
    }
}

/// Opens the entries of a file whose end is missing, by the headers in front of them.
fn beginning(opener: &mut Opener<'_>, bytes: &[u8], depth: u32) -> Result<(), Stop> {
    let mut at = 0;
    while let Some(local) = Local::read(bytes, at) {
        let name = opener.entry(local.name, true)?;
        for other in unicode_names(local.extra) {
            opener.step()?;
            opener.named(other, true);
        }
        // Where the header says how long an entry is, the next one is found also where this one cannot be read.
        let (packed, size) = local.lengths();
        let sized = local.flags & DESCRIPTOR == 0 && packed != u64::from(u32::MAX);
        let lengths = sized.then_some((place(packed), size));
        let taken = match front(opener, &local, &name, (bytes, lengths), depth) {
            Ok(taken) => taken,
            Err(Stop::Unreadable) => None,
            Err(Stop::Over) => return Err(Stop::Over),
        };
        let Some(length) = taken.max(sized.then_some(place(packed))) else { break };
        at = local.data.saturating_add(length);
        if local.flags & DESCRIPTOR != 0 {
            at = behind_descriptor(bytes, at);
        }
    }
    Ok(())
}

/// Opens the content behind a header whose lengths, packed and not, may be known; how long it is, `None` where it does not end.
fn front(
    opener: &mut Opener<'_>,
    local: &Local<'_>,
    name: &Name,
    (bytes, lengths): (&[u8], Option<(usize, u64)>),
    depth: u32,
) -> Result<Option<usize>, Stop> {
    decrypted(opener, local.flags, local.method)?;
    let rest = bytes.get(local.data..).unwrap_or_default();
    if local.method == 0 {
        // Without lengths, a descriptor says where it ends.
        let end = lengths.map(|(packed, _)| packed).or_else(|| described_length(rest));
        let whole = end.and_then(|end| rest.get(..end));
        let data = whole.unwrap_or(rest);
        opener.expand(u64::try_from(data.len()).unwrap_or(u64::MAX))?;
        opener.content(name, data, depth, whole.is_some())?;
        return Ok(Some(data.len()));
    }
    let (packed, size) = lengths.unzip();
    let data = packed.and_then(|packed| rest.get(..packed)).unwrap_or(rest);
    if let Some(size) = size {
        opener.declares(size)?;
    }
    let unpacked = unpack(opener, &Packed { method: local.method, flags: local.flags, size, data }, super::opens)?;
    let kept = &unpacked.kept;
    if unpacked.ended && unpacked.whole {
        opener.holding(kept.len(), |opener| opener.content(name, kept, depth, true))?;
    } else {
        opener.kind_of_start(name, kept);
    }
    Ok(Some(unpacked.taken).filter(|_| unpacked.ended))
}

/// The place behind a descriptor: with or without its signature, with lengths of four or eight bytes.
fn behind_descriptor(bytes: &[u8], at: usize) -> usize {
    let mut ends = [12, 16, 20, 24].into_iter().filter_map(|length| at.checked_add(length));
    let begins = |at: &usize| slice(bytes, *at, 2) == Some(b"PK");
    ends.find(begins).unwrap_or(bytes.len())
}
