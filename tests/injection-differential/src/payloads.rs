//! Values from files.

use std::path::{Path, PathBuf};

/// The values of a file, or of all files of a folder. The decoded form of those that are percent-encoded counts, too.
pub fn read(path: &Path) -> Vec<Vec<u8>> {
    if path.is_dir() {
        let mut files: Vec<PathBuf> = std::fs::read_dir(path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
            .map(|entry| entry.expect("an entry of the folder").path())
            .collect();
        files.sort();
        return files.iter().flat_map(|file| read(file)).collect();
    }
    let text = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let raw = match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => {
            let values: Vec<String> = serde_json::from_slice(&text).expect("an array of strings");
            let of_pairs = |query: &String| -> Vec<Vec<u8>> {
                query.split('&').map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value).into()).collect()
            };
            values.iter().flat_map(of_pairs).collect()
        }
        Some("csv") => columns(&text),
        _ => text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect(),
    };
    let decoded: Vec<Vec<u8>> = raw.iter().map(|value| decode(value)).filter(|value| !value.is_empty()).collect();
    let raw = raw.into_iter().filter(|value| value.contains(&b'%') || value.contains(&b'+'));
    raw.chain(decoded).collect()
}

/// The first column of CSV, whose fields may be in double quotes.
fn columns(text: &[u8]) -> Vec<Vec<u8>> {
    let mut values = Vec::new();
    let (mut field, mut quoted, mut column) = (Vec::new(), false, 0);
    for &byte in text {
        match byte {
            b'"' => quoted = !quoted,
            b',' if !quoted => column += 1,
            b'\n' if !quoted => {
                values.push(std::mem::take(&mut field));
                column = 0;
                continue;
            }
            _ => {}
        }
        // A quote that is doubled is one: it closes and opens again.
        if column == 0 && (byte != b'"' || (quoted && !field.is_empty() && field.last() != Some(&b'"'))) {
            field.push(byte);
        }
    }
    values.push(field);
    values
}

fn decode(value: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((first, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        rest = after;
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            (b'+', ..) => decoded.push(b' '),
            _ => decoded.push(*first),
        }
    }
    decoded
}
