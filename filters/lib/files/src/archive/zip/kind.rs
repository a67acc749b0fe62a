//! Which of the formats that are ZIP files a file has, by its entries.

use flate2::{Decompress, FlushDecompress};

use super::{Directory, Entry, Local};
use crate::Format;
use crate::bytes::{place, slice};

/// The most bytes of an entry that are read to find out the kind of a file.
const MOST: usize = 256 << 10;
/// Types of parts with macros, in the list of types of an office document (ECMA-376, part 2).
const MACRO_TYPES: [&[u8]; 4] = [b"macroEnabled", b"vbaProject", b"macrosheet", b"intlMacrosheet"];

/// The kind of a file; `None` where finding it out takes more than the bytes that may be decompressed.
pub(super) fn of(directory: &Directory<'_>, bytes: &[u8], budget: &mut u64) -> Option<Format> {
    let named = |name: &[u8]| directory.entries.iter().find(|entry| entry.name.eq_ignore_ascii_case(name));
    let any = |test: &dyn Fn(&[u8]) -> bool| directory.entries.iter().any(|entry| test(entry.name));
    if named(b"AndroidManifest.xml").is_some() && any(&|name| name.ends_with(b".dex")) {
        return Some(Format::Apk);
    }
    if named(b"META-INF/MANIFEST.MF").is_some() {
        return Some(Format::Jar);
    }
    if let Some(types) = named(b"[Content_Types].xml") {
        let list = content(types, bytes, budget)?;
        let macros = MACRO_TYPES.iter().any(|word| memchr::memmem::find(&list, word).is_some());
        if macros
            || any(&|name| {
                name.to_ascii_lowercase().ends_with(b"vbaproject.bin") || name.starts_with(b"xl/macrosheets/")
            })
        {
            return Some(Format::Macro);
        }
        let folder = |prefix: &[u8]| {
            any(&|name: &[u8]| name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)))
        };
        let kinds: [(&[u8], Format); 6] = [
            (b"word/", Format::Docx),
            (b"xl/", Format::Xlsx),
            (b"ppt/", Format::Pptx),
            (b"visio/", Format::Visio),
            (b"Documents/", Format::Xps),
            (b"FixedDocSeq.fdseq", Format::Xps),
        ];
        let kind = kinds.into_iter().find(|(prefix, _)| folder(prefix));
        return Some(kind.map_or(Format::Zip, |(_, format)| format));
    }
    if let Some(kind) = directory.entries.first().filter(|entry| entry.name == b"mimetype") {
        let kind = content(kind, bytes, budget)?;
        if kind.starts_with(b"application/vnd.oasis.opendocument") {
            // Macros of Basic, and scripts of other languages.
            let macros = any(&|name| name.starts_with(b"Basic/") || name.starts_with(b"Scripts/"));
            return Some(if macros { Format::Macro } else { Format::OpenDocument });
        }
        if kind.starts_with(b"application/epub+zip") {
            return Some(Format::Epub);
        }
    }
    Some(Format::Zip)
}

/// The beginning of an entry's content, empty if it cannot be read; `None` where it is more than the budget has.
fn content(entry: &Entry<'_>, bytes: &[u8], budget: &mut u64) -> Option<Vec<u8>> {
    let data = Local::read(bytes, entry.offset).and_then(|local| slice(bytes, local.data, place(entry.packed)));
    let data = data.unwrap_or_default();
    if entry.method != 8 {
        return Some(data.get(..MOST).unwrap_or(data).to_vec());
    }
    let mut text = Vec::with_capacity(MOST.min(place(entry.size)));
    // What cannot be decompressed is noted when the file is opened.
    let _ = Decompress::new(false).decompress_vec(data, &mut text, FlushDecompress::Finish);
    *budget = budget.checked_sub(u64::try_from(text.len()).unwrap_or(u64::MAX))?;
    Some(text)
}

/// The kind of a file whose end is missing, by the headers in front of its entries.
pub(crate) fn of_beginning(bytes: &[u8]) -> Format {
    let first = Local::read(bytes, 0);
    match first {
        Some(local) if local.name == b"META-INF/MANIFEST.MF" || local.name == b"META-INF/" => Format::Jar,
        Some(local) if local.name == b"AndroidManifest.xml" => Format::Apk,
        _ => Format::Zip,
    }
}

/// The kind of a ZIP file that is uploaded.
pub(crate) fn identify(bytes: &[u8]) -> Format {
    let mut budget = u64::MAX;
    match Directory::read(bytes, u64::from(u16::MAX)) {
        Ok(directory) => of(&directory, bytes, &mut budget).unwrap_or(Format::Zip),
        Err(_) => of_beginning(bytes),
    }
}
