//! What is in a file beside its format: behind its end, in front of it, and in its text fields.

use memchr::memmem;

use crate::bytes::{be16, be32, find_ignoring_case, le32, place, slice};
use crate::text::{self, tags};
use crate::{Family, Format, archive, identify_plain, magic};

/// How far a PDF may begin behind the start of a file for readers (PDF 1.7, appendix H.3.4.1), in bytes.
const PDF_REACH: usize = 1024;

/// How a file can be read as another format beside its own.
pub(crate) fn polyglot(bytes: &[u8], format: Format, complete: bool) -> Option<String> {
    let family = format.family();
    let media = matches!(family, Family::Image | Family::Audio | Family::Video | Family::Font);
    let pdf = matches!(format, Format::Pdf | Format::ActivePdf);
    if media || pdf || format == Format::Unknown {
        if let Some(script) = tags::in_binary(bytes) {
            return Some(format!("a file of the format {format} holds a script of the type {script}"));
        }
        if memmem::find(bytes, b"__HALT_COMPILER").is_some() {
            return Some(format!("a file of the format {format} is a PHP archive as well"));
        }
    }
    if let Some(how) = container(bytes, format) {
        return Some(how);
    }
    if pdf && !bytes.trim_ascii_start().starts_with(b"%PDF-") {
        return Some("data is in front of a PDF".to_owned());
    }
    if family == Family::Image {
        for page in [b"<script".as_slice(), b"<iframe", b"<html"] {
            if find_ignoring_case(bytes, page).is_some() {
                return Some(format!("an image of the format {format} holds a page"));
            }
        }
    }
    if begins_script(bytes, format) {
        return Some(format!("a file of the format {format} begins as a script does"));
    }
    if media || format == Format::Unknown || family == Family::Text {
        for (signature, other) in [(b"Rar!\x1a\x07".as_slice(), Format::Rar), (b"7z\xbc\xaf\x27\x1c", Format::SevenZip)]
        {
            if memmem::find(bytes, signature).is_some() {
                return Some(format!("a file of the format {format} holds one of the format {other}"));
            }
        }
    }
    let start = bytes.get(..PDF_REACH).unwrap_or(bytes);
    if !pdf
        && family != Family::Executable
        && !matches!(family, Family::Archive)
        && memmem::find(start, b"%PDF-").is_some()
    {
        return Some(format!("a file of the format {format} is a PDF as well"));
    }
    // Self-extracting programs are archives as well; compound files may hold office documents.
    let own =
        format.is_zip() || matches!(format, Format::Ole | Format::Msi | Format::Macro) || family == Family::Executable;
    // Readers of ZIP files skip a tail. A ZIP file within a PDF is in a stream, whose end follows it.
    // A signed message has its signature behind the file that it signs.
    let unknown = format == Format::Unknown && !is_signed_message(bytes);
    let anywhere = media || family == Family::Text || unknown || pdf && !ends_in_stream(bytes);
    if complete && !own && archive::is_appended_zip(bytes, !anywhere) {
        return Some(format!("a file of the format {format} is a ZIP file as well"));
    }
    let behind = end_of_image(bytes, format).and_then(|end| bytes.get(end..)).filter(|behind| behind.len() > 3);
    let other = behind.map(identify_plain).filter(|other| {
        matches!(
            other.family(),
            Family::Executable | Family::Script | Family::Html | Family::Archive | Family::Document
        )
    });
    other.map(|other| format!("a file of the format {other} follows an image of the format {format}"))
}

/// Whether a file is a signed message (RFC 5652, section 5): a sequence that begins with the identifier of signed data.
fn is_signed_message(bytes: &[u8]) -> bool {
    const SIGNED_DATA: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02";
    // The length is one byte, or as many more as its low bits say.
    let rest = match bytes {
        [0x30, length @ 0x81..=0x84, rest @ ..] => rest.get(usize::from(length & 0xf)..),
        [0x30, _, rest @ ..] => Some(rest),
        _ => None,
    };
    rest.is_some_and(|rest| rest.starts_with(SIGNED_DATA))
}

/// How a file is an archive as well by headers that are not at its beginning, or how an archive of that kind is something else by its
/// beginning.
fn container(bytes: &[u8], format: Format) -> Option<String> {
    if format == Format::Tar {
        if let Some(other) = magic::marked(bytes) {
            return Some(format!("a tar file begins as one of the format {other} does"));
        }
        return text::begins_as_code(bytes).then(|| "a tar file begins as a page or a script does".to_owned());
    }
    let as_well = |other: Format| Some(format!("a file of the format {format} is one of the format {other} as well"));
    if archive::is_tar(bytes) {
        return as_well(Format::Tar);
    }
    // Readers skip what is no header.
    let media = matches!(format.family(), Family::Image | Family::Audio | Family::Video | Family::Font | Family::Text);
    if media && holds_tar(bytes) {
        return as_well(Format::Tar);
    }
    let is_disk =
        format != Format::Iso && format.family() != Family::Executable && slice(bytes, 32_769, 5) == Some(b"CD001");
    if is_disk { as_well(Format::Iso) } else { None }
}

/// Whether a block of a file is a header of tar.
fn holds_tar(bytes: &[u8]) -> bool {
    let mut starts = memmem::find_iter(bytes, b"ustar").filter_map(|at| at.checked_sub(257));
    starts.any(|at| at.is_multiple_of(512) && bytes.get(at..).is_some_and(archive::is_tar))
}

/// Whether the last end of a ZIP file in a PDF is in a stream of it.
fn ends_in_stream(bytes: &[u8]) -> bool {
    let end = memmem::rfind(bytes, b"PK\x05\x06").and_then(|at| bytes.get(at..)).unwrap_or_default();
    memmem::find(end, b"endstream").is_some()
}

/// Whether the header of a file is the beginning of a script: `GIF89a/*`, `GIF89a=1`, `BM=`, `RIFF=1;/*WAVE`, `fLaC=1`, a first segment of
/// JPEG of 0x2f2a bytes.
fn begins_script(bytes: &[u8], format: Format) -> bool {
    let begins = |pair: Option<&[u8]>| match pair {
        Some(b"/*" | b"//") => true,
        Some([b'=', next]) => next.is_ascii_graphic() || *next == b' ',
        _ => false,
    };
    match format {
        Format::Gif => begins(slice(bytes, 6, 2)),
        Format::Bmp => begins(slice(bytes, 2, 2)) && le32(bytes, 2).map(place) != Some(bytes.len()),
        Format::Jpeg => slice(bytes, 4, 2) == Some(b"/*"),
        // Four bytes of length, which no file has that is made of letters: the shortest of these is half a GiB.
        Format::Webp | Format::Wav | Format::Avi | Format::Icon | Format::Aiff => {
            begins(slice(bytes, 4, 2)) && slice(bytes, 4, 4).is_some_and(|length| length.iter().all(is_shown))
        }
        // The type of the first block, which is 0, and its length.
        Format::Flac => begins(slice(bytes, 4, 2)),
        _ => false,
    }
}

fn is_shown(byte: &u8) -> bool {
    byte.is_ascii_graphic() || byte.is_ascii_whitespace()
}

/// Where an image ends, for the formats that say so.
fn end_of_image(bytes: &[u8], format: Format) -> Option<usize> {
    match format {
        Format::Png => png(bytes),
        Format::Gif => gif(bytes),
        Format::Jpeg => jpeg(bytes),
        Format::Webp => Some(place(le32(bytes, 4)?).checked_add(8)?),
        Format::Bmp => le32(bytes, 2).map(place),
        _ => None,
    }
}

fn png(bytes: &[u8]) -> Option<usize> {
    let mut at: usize = 8;
    loop {
        let end = at.checked_add(12)?.checked_add(place(be32(bytes, at)?))?;
        if slice(bytes, at + 4, 4)? == b"IEND" {
            return Some(end);
        }
        at = end;
    }
}

fn gif(bytes: &[u8]) -> Option<usize> {
    let table = |flags: u8| if flags & 0x80 != 0 { 3 << (1 + (flags & 7)) } else { 0 };
    let mut at: usize = 13 + table(*bytes.get(10)?);
    loop {
        at = match bytes.get(at)? {
            0x3b => return Some(at + 1),
            0x21 => blocks(bytes, at + 2)?,
            0x2c => blocks(bytes, at + 11 + table(*bytes.get(at + 9)?))?,
            _ => return None,
        };
    }
}

/// The place behind blocks of data: each with its length in front, the last one empty.
fn blocks(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += length + 1;
        if length == 0 {
            return Some(at);
        }
    }
}

fn jpeg(bytes: &[u8]) -> Option<usize> {
    let mut at: usize = 2;
    // The segments in front of the image; thumbnails are within them.
    loop {
        let marker = be16(bytes, at)?;
        at += 2;
        match marker {
            0xffd9 => return Some(at),
            0xffff => at -= 1,
            0xffd0..=0xffd8 | 0xff01 => {}
            0xffda => break,
            0xff02.. => at = at.checked_add(usize::from(be16(bytes, at)?))?,
            _ => return None,
        }
    }
    // In the image, markers are those without a zero behind them; a further scan has segments in front.
    let image = bytes.get(at..)?;
    memmem::find(image, b"\xff\xd9").map(|end| at + end + 2)
}
