//! Compound files (MS-CFB): office documents of before 2007, mails of Outlook, installers.

use crate::Format;
use crate::bytes::{le16, le32, slice};

/// The length of an entry of the directory, in bytes (MS-CFB 2.6.1).
const ENTRY: usize = 128;
/// The class of an installer, {000C1084-0000-0000-C000-000000000046}, and that of a patch, which ends in 86.
const INSTALLER: [&[u8; 16]; 2] =
    [b"\x84\x10\x0c\0\0\0\0\0\xc0\0\0\0\0\0\0\x46", b"\x86\x10\x0c\0\0\0\0\0\xc0\0\0\0\0\0\0\x46"];
/// Names of the storages and streams of macros.
const MACROS: [&str; 4] = ["_VBA_PROJECT", "_VBA_PROJECT_CUR", "Macros", "VBA"];

/// What a compound file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compound {
    pub(crate) format: Format,
    /// It is an office document that is encrypted.
    pub(crate) encrypted: bool,
}

/// Looks at every place where an entry of the directory can be: sectors may be in any order, and what allocates them may lie.
pub(crate) fn read(bytes: &[u8]) -> Compound {
    let (mut format, mut encrypted) = (Format::Ole, false);
    for entry in bytes.get(512..).unwrap_or_default().chunks(ENTRY) {
        let Some(name) = name_of(entry) else { continue };
        if MACROS.iter().any(|known| name.eq_ignore_ascii_case(known)) && format != Format::Msi {
            format = Format::Macro;
        }
        encrypted |= name == "EncryptedPackage";
        let class = slice(entry, 80, 16);
        if entry.get(66) == Some(&5) && INSTALLER.iter().any(|known| class == Some(known.as_slice())) {
            format = Format::Msi;
        }
    }
    if format == Format::Ole && (has_presentation_macros(bytes) || has_macro_sheet(bytes)) {
        format = Format::Macro;
    }
    Compound { format, encrypted }
}

/// Whether a presentation says that it has macros, which are compressed in it (MS-PPT, 2.4.10 and 2.4.11).
fn has_presentation_macros(bytes: &[u8]) -> bool {
    let head = b"\x1f\0\xff\x03\x14\0\0\0\x02\0\0\x04\x0c\0\0\0";
    memchr::memmem::find_iter(bytes, head).any(|at| le32(bytes, at + 20) == Some(1))
}

/// Whether a workbook has a sheet of macros of Excel 4 (MS-XLS, 2.4.28): a record of this type, whose length is that of the name in it.
fn has_macro_sheet(bytes: &[u8]) -> bool {
    memchr::memmem::find_iter(bytes, b"\x85\0").any(|at| {
        let Some([low, high, _, _, _, _, state, kind, length, wide]) = slice(bytes, at + 2, 10) else { return false };
        let (record, length) = (u16::from_le_bytes([*low, *high]), u16::from(*length));
        // Excel 95 has no byte that says whether the name is in UTF-16.
        let named = match wide {
            0 | 1 => record == 8 + length * (1 + u16::from(*wide)),
            _ => false,
        };
        *state <= 2 && *kind == 1 && (1..=31).contains(&length) && (named || record == 7 + length)
    })
}

/// The name of an entry; `None` where the bytes are no entry.
fn name_of(entry: &[u8]) -> Option<String> {
    let length = usize::from(le16(entry, 64)?);
    let kind = *entry.get(66)?;
    if !(2..=64).contains(&length) || !length.is_multiple_of(2) || !matches!(kind, 1 | 2 | 5) {
        return None;
    }
    let units = entry.get(..length - 2)?.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
    Some(char::decode_utf16(units).map(|letter| letter.unwrap_or('?')).collect())
}
