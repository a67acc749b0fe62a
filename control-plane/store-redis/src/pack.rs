//! Rows in MessagePack, which the server's scripts read.

use store::replica::RowChange;

/// The rows of one table: the keys that are gone, and keys with their columns, one after the other.
#[derive(Clone, Default)]
struct Part<'r> {
    gone: Vec<&'r [u8]>,
    rows: Vec<&'r [u8]>,
}

/// The rows of a change: for each table its number, the keys that are gone, and keys with their columns, one after the other.
pub(crate) fn changes(tables: usize, changes: &[RowChange]) -> Vec<u8> {
    let mut parts = vec![Part::default(); tables];
    for change in changes {
        if let Some(part) = parts.get_mut(change.table) {
            match &change.row {
                None => part.gone.push(&change.key),
                Some(row) => part.rows.extend([change.key.as_slice(), row]),
            }
        }
    }
    let is_touched = |part: &Part<'_>| !part.gone.is_empty() || !part.rows.is_empty();
    let touched: Vec<_> = parts.iter().enumerate().filter(|(_, part)| is_touched(part)).collect();
    let mut bytes = Vec::new();
    array(&mut bytes, touched.len());
    for (number, Part { gone, rows }) in touched {
        array(&mut bytes, 3);
        bytes.push(0xce);
        bytes.extend_from_slice(&length(number));
        for list in [gone, rows] {
            array(&mut bytes, list.len());
            for text in list {
                bytes.push(0xdb);
                bytes.extend_from_slice(&length(text.len()));
                bytes.extend_from_slice(text);
            }
        }
    }
    bytes
}

fn array(bytes: &mut Vec<u8>, count: usize) {
    bytes.push(0xdd);
    bytes.extend_from_slice(&length(count));
}

fn length(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes()
}
