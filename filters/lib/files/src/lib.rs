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
pub use inspect::{File, inspect};
pub use name::Name;
pub use policy::{DENIED_EXTENSIONS, DENIED_TYPES, Limits, Policy, RATIO_FREE, WORK_BYTES, WORK_MEMORY, WORK_STEPS};

/// What runs scripts in a PDF, or starts programs.
const ACTIVE_PDF: [&[u8]; 4] = [b"/JavaScript", b"/JS ", b"/JS(", b"/Launch"];
/// How far a PDF may begin behind the start of a file, in bytes.
const PDF_REACH: usize = 1024;

/// The format of a file by its content.
#[must_use]
pub fn identify(content: &[u8]) -> Format {
    if content.is_empty() {
        return Format::Empty;
    }
    match magic::binary(content) {
        Format::Zip => archive::kind_of_zip(content),
        Format::Ole => cfb::read(content).format,
        Format::Pdf => pdf(content),
        Format::Unknown => match text::as_text(content) {
            Some(text) => text::of_text(&text),
            // Readers take a PDF with bytes in front of it.
            None if memchr::memmem::find(content.get(..PDF_REACH).unwrap_or(content), b"%PDF-").is_some() => {
                pdf(content)
            }
            None => Format::Unknown,
        },
        format => format,
    }
}

fn pdf(content: &[u8]) -> Format {
    let active = ACTIVE_PDF.iter().any(|word| memchr::memmem::find(content, word).is_some());
    if active { Format::ActivePdf } else { Format::Pdf }
}

#[cfg(test)]
mod tests;
