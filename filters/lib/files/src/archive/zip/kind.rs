//! Which of the formats that are ZIP files a file has, by its entries.

use flate2::{Decompress, FlushDecompress, Status};

use super::{DESCRIPTOR, Directory, Local};
use crate::Format;
use crate::bytes::{place, slice};
use crate::text::has_reference_to_letters;

/// The longest list of types that is read, in bytes. Office programs write some KiB, and some hundred for the largest presentations: a
/// longer one is that of a document with macros.
const MAX_TYPES: u64 = 4 << 20;
/// The most entries of a file whose end is missing.
const MAX_ENTRIES: usize = 10_000;
/// How much is decompressed at once, in bytes.
const CHUNK: usize = 32 << 10;
/// How many bytes of a chunk are searched with the next one again: more than the longest word has.
const OVERLAP: usize = 64;
/// The list of types of an office document (ECMA-376, part 2). It may be in pieces, whose names begin so.
const TYPES: &[u8] = b"[content_types].xml";
/// Types of parts with macros, in lower case, and what a list has in which a type may be written in other ways.
const MACRO_TYPES: [&[u8]; 4] = [b"macroenabled", b"vbaproject", b"macrosheet", b"<!entity"];
/// The most pieces of a list that are read; one of more is that of a document with macros as well.
const MAX_LISTS: usize = 64;

/// An entry, as the kind of a file depends on it.
struct Part<'a> {
    /// Its name in lower case, with slashes and without one in front.
    name: Vec<u8>,
    method: u16,
    data: &'a [u8],
}

impl<'a> Part<'a> {
    fn new(name: &[u8], method: u16, data: &'a [u8]) -> Self {
        let plain = |byte: &u8| if *byte == b'\\' { b'/' } else { byte.to_ascii_lowercase() };
        let front = name.iter().take_while(|byte| matches!(byte, b'.' | b'/' | b'\\')).count();
        let kept = name.get(..front).unwrap_or_default().iter().rev().take_while(|byte| **byte == b'.').count();
        let name = name.get(front - kept..).unwrap_or(name);
        Self { name: name.iter().map(plain).collect(), method, data }
    }
}

/// The kind of a file; `None` where finding it out takes more than the bytes that may be decompressed.
pub(super) fn of(directory: &Directory<'_>, bytes: &[u8], budget: &mut u64) -> Option<Format> {
    let data = |offset: usize, packed: u64| {
        let local = Local::read(bytes, offset)?;
        slice(bytes, local.data, place(packed))
    };
    let part = |entry: &super::Entry<'_>| {
        Part::new(entry.name, entry.method, data(entry.offset, entry.packed).unwrap_or_default())
    };
    of_parts(&directory.entries.iter().map(part).collect::<Vec<_>>(), budget)
}

fn of_parts(parts: &[Part<'_>], budget: &mut u64) -> Option<Format> {
    let named = |name: &[u8]| parts.iter().any(|part| part.name == name);
    let begins = |prefix: &[u8]| parts.iter().any(|part| part.name.starts_with(prefix));
    let ends = |suffix: &[u8]| parts.iter().any(|part| part.name.ends_with(suffix));
    if named(b"androidmanifest.xml") && ends(b".dex") {
        return Some(Format::Apk);
    }
    if named(b"meta-inf/manifest.mf") {
        return Some(Format::Jar);
    }
    let mut lists = parts.iter().filter(|part| part.name.starts_with(TYPES)).peekable();
    if lists.peek().is_some() {
        let mut macros = ends(b"vbaproject.bin") || ends(b"vbadata.xml") || begins(b"xl/macrosheets/");
        for (at, list) in lists.enumerate() {
            macros = macros || at >= MAX_LISTS || names_macros(list, budget)?;
        }
        if macros {
            return Some(Format::Macro);
        }
        let kinds: [(&[u8], Format); 6] = [
            (b"word/", Format::Docx),
            (b"xl/", Format::Xlsx),
            (b"ppt/", Format::Pptx),
            (b"visio/", Format::Visio),
            (b"documents/", Format::Xps),
            (b"fixeddocseq.fdseq", Format::Xps),
        ];
        let kind = kinds.into_iter().find(|(prefix, _)| begins(prefix));
        return Some(kind.map_or(Format::Zip, |(_, format)| format));
    }
    open_document(parts, budget)
}

/// An open document, or a book: by its type, which is the first entry. Programs take one of any place.
fn open_document(parts: &[Part<'_>], budget: &mut u64) -> Option<Format> {
    let Some((place, part)) = parts.iter().enumerate().find(|(_, part)| part.name == b"mimetype") else {
        return Some(Format::Zip);
    };
    let mut kind = Vec::new();
    read(part, budget, |chunk| {
        kind.extend_from_slice(chunk);
        kind.len() < OVERLAP
    })?;
    let kind = kind.trim_ascii_start();
    if kind.starts_with(b"application/vnd.oasis.opendocument") {
        // Macros of Basic, and scripts of other languages.
        let macros = parts.iter().any(|part| part.name.starts_with(b"basic/") || part.name.starts_with(b"scripts/"));
        return Some(match place {
            _ if macros => Format::Macro,
            0 => Format::OpenDocument,
            _ => Format::Zip,
        });
    }
    let is_book = place == 0 && kind.starts_with(b"application/epub+zip");
    Some(if is_book { Format::Epub } else { Format::Zip })
}

/// Whether a list of types names parts with macros; `None` where reading it takes more than the budget has.
fn names_macros(list: &Part<'_>, budget: &mut u64) -> Option<bool> {
    // Office programs write, and most of them read, no other methods.
    if !matches!(list.method, 0 | 8) {
        return Some(true);
    }
    let mut text: Vec<u8> = Vec::new();
    let (mut found, mut length) = (false, 0_u64);
    read(list, budget, |chunk| {
        length = length.saturating_add(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
        text.drain(..text.len().saturating_sub(OVERLAP));
        // Without the zeros, UTF-16 is one byte for each character.
        text.extend(chunk.iter().filter(|byte| **byte != 0).map(u8::to_ascii_lowercase));
        found = length > MAX_TYPES
            || MACRO_TYPES.iter().any(|word| memchr::memmem::find(&text, word).is_some())
            || has_reference_to_letters(&text);
        !found
    })?;
    Some(found)
}

/// Reads the content of an entry, as far as it can be and as long as `more` says so; `None` where it is more than the budget has.
fn read(part: &Part<'_>, budget: &mut u64, mut more: impl FnMut(&[u8]) -> bool) -> Option<()> {
    if part.method != 8 {
        for chunk in part.data.chunks(CHUNK) {
            *budget = budget.checked_sub(u64::try_from(chunk.len()).unwrap_or(u64::MAX))?;
            if !more(chunk) {
                break;
            }
        }
        return Some(());
    }
    let mut decoder = Decompress::new(false);
    let mut chunk = vec![0; CHUNK];
    loop {
        let (taken, written) = (decoder.total_in(), decoder.total_out());
        let rest = part.data.get(place(taken)..).unwrap_or_default();
        let status = decoder.decompress(rest, &mut chunk, FlushDecompress::None);
        let length = decoder.total_out() - written;
        *budget = budget.checked_sub(length)?;
        let goes_on = length == 0 || more(chunk.get(..place(length)).unwrap_or_default());
        // What cannot be decompressed is noted when the file is opened.
        match status {
            Ok(Status::Ok | Status::BufError) if goes_on && (length > 0 || decoder.total_in() > taken) => {}
            _ => return Some(()),
        }
    }
}

/// The kind of a file whose end is missing, by the headers in front of its entries; `None` as of [`of`].
pub(crate) fn of_beginning(bytes: &[u8], budget: &mut u64) -> Option<Format> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(local) = Local::read(bytes, at).filter(|_| parts.len() < MAX_ENTRIES) {
        let rest = bytes.get(local.data..).unwrap_or_default();
        let (packed, _) = local.lengths();
        let described = local.flags & DESCRIPTOR != 0;
        let known = !described || packed > 0 && packed != u64::from(u32::MAX);
        let mut length = if known { place(packed) } else { 0 };
        if described {
            // A descriptor of one form or another is in front of the next header.
            let behind = rest.get(length..).unwrap_or_default();
            let next = memchr::memmem::find(behind, b"PK\x03\x04").unwrap_or(behind.len());
            length = length.saturating_add(next);
        }
        parts.push(Part::new(local.name, local.method, rest.get(..length).unwrap_or(rest)));
        at = local.data.saturating_add(length);
    }
    match parts.first() {
        Some(part) if part.name == b"meta-inf/" => Some(Format::Jar),
        Some(part) if part.name == b"androidmanifest.xml" => Some(Format::Apk),
        _ => of_parts(&parts, budget),
    }
}

/// The kind of a ZIP file that is uploaded, by so many entries and one; `None` as of [`of`].
pub(crate) fn identify(bytes: &[u8], entries: u64, budget: &mut u64) -> Option<Format> {
    match Directory::read(bytes, entries) {
        Ok(directory) => of(&directory, bytes, budget),
        Err(_) => of_beginning(bytes, budget),
    }
}
