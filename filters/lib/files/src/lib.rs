//! What uploaded files are: their names, their types by content, and what is in their archives.
//!
//! Nothing here knows of a gateway. [`inspect`] takes one file and a [`Policy`], and leaves [`Findings`]; [`Work`] bounds what all files
//! of a request may take. [`disposition`], [`mime`] and [`json`] find files and their names in requests.
//!
//! All of it is linear in the bytes of a file and in what opening archives may write, and reads only the bytes that it is given: a file
//! may be cut off anywhere.

mod archive;
mod base64;
mod bytes;
mod cfb;
mod check;
pub mod disposition;
mod ends;
mod finding;
mod format;
mod inspect;
pub mod json;
mod magic;
pub mod mime;
mod name;
mod policy;
mod text;

pub use archive::Work;
pub use base64::{base64, data_url, quoted_printable};
pub use finding::{Finding, Findings, Reason};
pub use format::{Family, Format, is_type_word, type_words};
pub use inspect::{File, inspect, inspect_coded};
pub use name::{Name, Reading};
pub use policy::{DENIED_EXTENSIONS, DENIED_TYPES, Limits, Policy, RATIO_FREE, WORK_BYTES, WORK_MEMORY, WORK_STEPS};

/// What runs scripts in a PDF, or starts programs.
const ACTIVE_PDF: [&[u8]; 4] = [b"/JavaScript", b"/JS ", b"/JS(", b"/Launch"];
/// How far a PDF may begin behind the start of a file, in bytes.
const PDF_REACH: usize = 1024;

/// The most bytes that are decompressed to find out what a ZIP file is, where nothing else bounds that.
const KIND_BYTES: u64 = 4 << 20;

/// The format of a file by its content. An office document whose parts take more than 4 MiB to be told is one with macros.
#[must_use]
pub fn identify(content: &[u8]) -> Format {
    let mut budget = KIND_BYTES;
    identify_within(content, u64::from(u16::MAX), &mut budget).unwrap_or(Format::Macro)
}

/// The format of a file by its content; of any ZIP file `Zip`: which kind it is takes work to find out.
#[must_use]
pub fn identify_plain(content: &[u8]) -> Format {
    if content.is_empty() {
        return Format::Empty;
    }
    match magic::binary(content) {
        Format::Ole => cfb::read(content).format,
        Format::Pdf => pdf(content),
        Format::Unknown => unsigned(content),
        format => format,
    }
}

/// The format of a file by its content: of a ZIP file by so many entries and one. `None` where it takes more than `budget`, the bytes that
/// may still be decompressed.
pub(crate) fn identify_within(content: &[u8], entries: u64, budget: &mut u64) -> Option<Format> {
    match identify_plain(content) {
        Format::Zip => archive::kind_of_zip(content, entries, budget),
        format => Some(format),
    }
}

/// The format of a file without a signature.
fn unsigned(content: &[u8]) -> Format {
    let start = content.get(..PDF_REACH).unwrap_or(content);
    // Readers take a PDF with white space or bytes in front of it.
    let is_text = text::is_plain_text(content);
    if start.trim_ascii_start().starts_with(b"%PDF-") || !is_text && memchr::memmem::find(start, b"%PDF-").is_some() {
        return pdf(content);
    }
    match text::as_text(content).map(|text| text::of_text(&text)) {
        // Bytes that only begin as a text does, and are no page and no script.
        Some(Format::Text | Format::Json) if !is_text => Format::Unknown,
        Some(format) => format,
        None => Format::Unknown,
    }
}

fn pdf(content: &[u8]) -> Format {
    let active = ACTIVE_PDF.iter().any(|word| memchr::memmem::find(content, word).is_some());
    if active { Format::ActivePdf } else { Format::Pdf }
}

#[cfg(test)]
mod tests;
