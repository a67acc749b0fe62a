//! Lists of lines and tables.

use csv_core::ReadFieldResult;

use super::FeedError;
use super::entry::Collector;

/// How much of a line or a field is looked at, in bytes: no entry is as long.
const MAX_ENTRY: usize = 256;

/// An entry at the beginning of each line.
pub(crate) fn lines(list: &[u8], found: &mut Collector) -> Result<(), FeedError> {
    // Some lists are separated by carriage returns alone.
    for line in list.split(|byte| matches!(byte, b'\n' | b'\r')) {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"!") || line.starts_with(b"//") {
            continue;
        }
        let entry = line.split(|byte| b"#;,\t".contains(byte)).next().unwrap_or_default();
        let entry = entry.get(..MAX_ENTRY).unwrap_or(entry);
        let entry = String::from_utf8_lossy(entry);
        let entry = entry.split("//").next().unwrap_or_default().trim_end();
        if entry.is_empty() {
            continue;
        }
        // `first - last` has spaces that `address some words` has too.
        let word = entry.split_ascii_whitespace().next().unwrap_or_default();
        let is_range = super::entry::span(entry).is_some();
        found.take(if is_range { entry } else { word })?;
    }
    Ok(())
}

/// A column of a table (RFC 4180, with rows of any length and lines that begin with `#` left out).
pub(crate) fn table(
    list: &[u8],
    column: usize,
    separator: u8,
    skip_header: bool,
    found: &mut Collector,
) -> Result<(), FeedError> {
    let mut reader = csv_core::ReaderBuilder::new().delimiter(separator).comment(Some(b'#')).build();
    let (mut rest, mut field, mut length, mut at, mut row) = (list, [0; MAX_ENTRY], 0, 0, 0_usize);
    let is_counted = |row: usize| row > 0 || !skip_header;
    loop {
        // What of a field has no room in the buffer is read, and forgotten.
        let mut overflow = [0; MAX_ENTRY];
        let room = field.get_mut(length..).filter(|room| !room.is_empty()).unwrap_or(&mut overflow);
        let (result, read, written) = reader.read_field(rest, room);
        rest = rest.get(read..).unwrap_or_default();
        length = (length + written).min(MAX_ENTRY);
        let ReadFieldResult::Field { record_end } = result else {
            match result {
                ReadFieldResult::End => return Ok(()),
                _ => continue,
            }
        };
        if at == column && is_counted(row) {
            let entry = field.get(..length).unwrap_or_default().trim_ascii();
            found.take(&String::from_utf8_lossy(entry))?;
        }
        (length, at) = (0, at + 1);
        if record_end {
            if at <= column && is_counted(row) {
                found.take("")?;
            }
            (at, row) = (0, row + 1);
        }
    }
}
