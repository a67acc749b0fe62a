//! Lists of lines and tables.

use super::FeedError;
use super::entry::Collector;

/// An entry at the beginning of each line.
pub(crate) fn lines(list: &[u8], found: &mut Collector) -> Result<(), FeedError> {
    // Some lists are separated by carriage returns alone.
    for line in list.split(|byte| matches!(byte, b'\n' | b'\r')) {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"!") || line.starts_with(b"//") {
            continue;
        }
        let entry = line.split(|byte| b"#;,\t".contains(byte)).next().unwrap_or_default();
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
    let mut rows = csv::ReaderBuilder::new()
        .delimiter(separator)
        .has_headers(skip_header)
        .flexible(true)
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(list);
    let mut row = csv::ByteRecord::new();
    // A reader of bytes in memory, with rows of any length, has no errors.
    while rows.read_byte_record(&mut row).unwrap_or(false) {
        found.take(&String::from_utf8_lossy(row.get(column).unwrap_or_default()))?;
    }
    Ok(())
}
