//! 7z (7zFormat.txt of the LZMA SDK): the headers, packed or not, and content that one coder packs which is known here.

mod header;

use std::borrow::Cow;

use super::coding::Coding;
use super::unpack::crc;
use super::{Opener, Stop};
use crate::bytes::{le32, le64, place, slice};
use crate::{Name, Reason};

use header::{File, Files, Folder, Header, Streams};

/// The length of the header at the beginning of a file.
const START: usize = 32;
/// The method of AES encryption, and those that are undone.
const AES: &[u8] = b"\x06\xf1\x07\x01";
const COPY: &[u8] = b"\0";
const LZMA: &[u8] = b"\x03\x01\x01";
const LZMA2: &[u8] = b"\x21";
const DEFLATE: &[u8] = b"\x04\x01\x08";
const BZIP2: &[u8] = b"\x04\x02\x02";
/// The most files, whatever the limits say: so many take some MiB of memory.
const MAX_FILES: usize = 100_000;
/// How often a header may be packed.
const MAX_PACKED: usize = 4;

pub(super) fn open(opener: &mut Opener<'_>, bytes: &[u8], depth: u32, complete: bool) -> Result<(), Stop> {
    opener.step()?;
    let start = slice(bytes, 12, 20).unwrap_or_default();
    let right = le32(bytes, 8) == Some(crc(start));
    let (at, length) = (le64(bytes, 12).map_or(usize::MAX, place), le64(bytes, 20).map_or(usize::MAX, place));
    let at = at.checked_add(START);
    let header = at.and_then(|at| slice(bytes, at, length));
    let Some(header) = header.filter(|_| right) else {
        return match complete {
            true => Err(opener.unreadable("the header of a 7z file is damaged")),
            false => Err(opener.unreadable("a 7z file cannot be opened here without its end")),
        };
    };
    if complete && at.and_then(|at| at.checked_add(length)).is_some_and(|end| end < bytes.len()) {
        opener.findings.add(Reason::Polyglot, "data follows a 7z file");
    }
    let sum = le32(bytes, 28);
    // An archive without a file.
    if at == Some(START) && length == 0 && sum == Some(0) {
        return Ok(());
    }
    let mut unpacked: Option<Vec<u8>> = None;
    for _ in 0..=MAX_PACKED {
        let inner = {
            let current = unpacked.as_deref().unwrap_or(header);
            if unpacked.is_none() && sum != Some(crc(current)) {
                return Err(damaged(opener, current));
            }
            let most = place(opener.policy.limits.entries).min(MAX_FILES);
            let streams = match header::read(current, most) {
                Some(Header::Plain(_, files)) if files.count <= most && files.count != files.list.len() => {
                    return Err(damaged(opener, current));
                }
                Some(Header::Plain(streams, files)) => return content(opener, bytes, (&streams, &files), depth),
                Some(Header::Packed(streams)) => streams,
                None => return Err(damaged(opener, current)),
            };
            let first = streams.data(bytes.get(START..).unwrap_or_default()).next();
            let Some((folder, data)) = first else { return Err(damaged(opener, current)) };
            let inner = unpack(opener, folder, data)?.into_owned();
            if folder.crc.is_some_and(|sum| sum != crc(&inner)) {
                return Err(damaged(opener, &inner));
            }
            inner
        };
        unpacked = Some(inner);
    }
    Err(opener.unreadable("the header of a 7z file is packed too often"))
}

/// A header that is not read. Programs that are more lenient may find names in it.
fn damaged(opener: &mut Opener<'_>, header: &[u8]) -> Stop {
    // Names are UTF-16, at even or odd places.
    let leaves = [0, 1].iter().any(|shift| leaves_folder(header.get(*shift..).unwrap_or_default()));
    if leaves {
        opener.findings.add(Reason::ZipSlip, "an entry of a 7z file leads out of its folder");
    }
    let encrypted = memchr::memmem::find(header, AES).is_some();
    opener.unreadable(if encrypted { "a 7z file is encrypted" } else { "the header of a 7z file is damaged" })
}

/// Checks the names of all files, and opens what is in them.
fn content(
    opener: &mut Opener<'_>,
    bytes: &[u8],
    (streams, files): (&Streams<'_>, &Files),
    depth: u32,
) -> Result<(), Stop> {
    let most = opener.policy.limits.entries;
    let count = u64::try_from(files.count).unwrap_or(u64::MAX);
    if count > most {
        opener.findings.add(Reason::ArchiveEntries, format!("archives have more than {most} entries"));
        return Err(Stop::Over);
    }
    let total =
        streams.folders.iter().flat_map(|folder| &folder.parts).fold(0_u64, |sum, (size, _)| sum.saturating_add(*size));
    opener.declares(total)?;
    if streams.start != 0 {
        opener.findings.add(Reason::Polyglot, "data is in front of the content of a 7z file");
    }
    for file in &files.list {
        opener.entry(file.name.as_bytes(), true)?;
        if file.link {
            opener.link(&[file.name.as_bytes()], &[], false);
        }
    }
    let mut filled = files.list.iter().filter(|file| file.filled);
    let parts: usize = streams.folders.iter().map(|folder| folder.parts.len()).sum();
    // More than are read.
    if files.count != files.list.len() || parts != filled.clone().count() {
        return Err(opener.unreadable("a 7z file has another number of files than of their contents"));
    }
    let mut opened = 0;
    for (folder, data) in streams.data(bytes.get(START..).unwrap_or_default()) {
        opener.step()?;
        opened += 1;
        let own: Vec<_> = filled.by_ref().take(folder.parts.len()).collect();
        let kept = match unpack(opener, folder, data) {
            Ok(kept) => kept,
            Err(Stop::Unreadable) => continue,
            over => return over.map(drop),
        };
        // What is stored is a part of the upload.
        let held = if matches!(kept, Cow::Owned(_)) { kept.len() } else { 0 };
        opener.holding(held, |opener| inside(opener, folder, &own, &kept, depth))?;
    }
    if opened != streams.folders.len() {
        return Err(opener.unreadable("a 7z file is shorter than its header says"));
    }
    Ok(())
}

/// Opens the files of a folder.
fn inside(opener: &mut Opener<'_>, folder: &Folder<'_>, files: &[&File], kept: &[u8], depth: u32) -> Result<(), Stop> {
    let mut rest = kept;
    for (file, (size, sum)) in files.iter().zip(&folder.parts) {
        let Some((own, behind)) = rest.split_at_checked(place(*size)) else { break };
        rest = behind;
        if sum.is_some_and(|sum| sum != crc(own)) {
            opener.unreadable("a file in a 7z file is not what its header says");
        }
        if file.link {
            opener.link(&[file.name.as_bytes()], &[own], false);
        }
        opener.content(&Name::read(file.name.as_bytes()), own, depth, true)?;
    }
    Ok(())
}

/// The content of a folder.
fn unpack<'b>(opener: &mut Opener<'_>, folder: &Folder<'_>, data: &'b [u8]) -> Result<Cow<'b, [u8]>, Stop> {
    if folder.coders.iter().any(|coder| coder.method == AES) {
        return Err(opener.unreadable("a 7z file is encrypted"));
    }
    let (Some(size), [coder]) = (folder.size(), folder.coders.as_slice()) else {
        return Err(opener.unreadable("a 7z file has coders behind each other, which are not undone here"));
    };
    let all = |_: &[u8]| true;
    let properties = coder.properties;
    let unpacked = match coder.method {
        _ if !coder.simple => None,
        COPY => {
            opener.expand(u64::try_from(data.len()).unwrap_or(u64::MAX))?;
            return if u64::try_from(data.len()) == Ok(size) { Ok(Cow::Borrowed(data)) } else { Err(lies(opener)) };
        }
        LZMA => {
            let (Some(properties), Some(dictionary)) = (properties.first(), le32(properties, 1)) else {
                return Err(lies(opener));
            };
            let coding = Coding::RawLzma { properties: *properties, dictionary, size: Some(size) };
            Some(opener.unpack(coding, data, all)?)
        }
        LZMA2 => {
            let coding = Coding::RawLzma2 { dictionary: dictionary(properties.first().copied()) };
            Some(opener.unpack(coding, data, all)?)
        }
        DEFLATE => Some(opener.inflate(data, all)?),
        BZIP2 => Some(opener.unpack(Coding::Bzip2, data, all)?),
        _ => None,
    };
    let Some(unpacked) = unpacked else {
        let method = coder.method.escape_ascii();
        return Err(opener.unreadable(format!("a 7z file has the method {method}, which is not opened here")));
    };
    if !unpacked.ended || unpacked.length != size {
        return Err(lies(opener));
    }
    if !unpacked.whole {
        return Err(opener.unreadable("the content of a 7z file is too long to be opened"));
    }
    Ok(Cow::Owned(unpacked.kept))
}

fn lies(opener: &mut Opener<'_>) -> Stop {
    opener.unreadable("the content of a 7z file is not what its header says")
}

/// The size of the dictionary of LZMA2: two or three times a power of two.
fn dictionary(property: Option<u8>) -> u32 {
    let property = u32::from(property.unwrap_or(u8::MAX));
    (2 | property & 1).checked_shl(property / 2 + 11).filter(|_| property < 40).unwrap_or(u32::MAX)
}

/// Whether text in UTF-16 has a segment `..` in a path.
fn leaves_folder(bytes: &[u8]) -> bool {
    let units: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
    let ends = |unit: u16| matches!(unit, 0x2f | 0x5c);
    let begins = |unit: u16| matches!(unit, 0 | 0x2f | 0x5c);
    units.windows(4).any(|four| matches!(*four, [before, 0x2e, 0x2e, after] if begins(before) && ends(after)))
}
