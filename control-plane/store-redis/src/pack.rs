//! Rows in MessagePack, which the server's scripts read.

use store::replica::RowChange;

type Texts<'a> = Vec<&'a [u8]>;

/// The rows of a change: for each table its number, the keys that are gone, and keys with their columns, one after the other.
pub(crate) fn changes(tables: usize, changes: &[RowChange]) -> Vec<u8> {
    let mut parts = vec![(Texts::new(), Texts::new()); tables];
    for change in changes {
        if let Some((gone, rows)) = parts.get_mut(change.table) {
            match &change.row {
                None => gone.push(&change.key),
                Some(row) => rows.extend([change.key.as_slice(), row]),
            }
        }
    }
    let touched: Vec<_> =
        parts.iter().enumerate().filter(|(_, (gone, rows))| !gone.is_empty() || !rows.is_empty()).collect();
    let mut bytes = Vec::new();
    array(&mut bytes, touched.len());
    for (number, (gone, rows)) in touched {
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
