//! The body of each fuzz target: takes any bytes, and panics if something that always holds does not.

pub mod decode;
pub mod json;
pub mod multipart;
pub mod operators;
pub mod parser;
pub mod regex;
pub mod snapshot;
pub mod tables;
pub mod transaction;
pub mod transformations;
pub mod urlencoded;
pub mod xml;

/// A target: its name, and what it runs.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("decode", decode::run),
    ("json", json::run),
    ("multipart", multipart::run),
    ("operators", operators::run),
    ("parser", parser::run),
    ("regex", regex::run),
    ("snapshot", snapshot::run),
    ("tables", tables::run),
    ("transaction", transaction::run),
    ("transformations", transformations::run),
    ("urlencoded", urlencoded::run),
    ("xml", xml::run),
];

/// The data files next to rules: every name has the same few lines.
pub struct Files;

impl seclang::DataFiles for Files {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        (!name.contains("missing")).then(|| b"# comment\n/etc/passwd\n10.0.0.0/8\n2001:db8::/32\n\n".to_vec())
    }
}

/// The first byte and what follows; nothing of an empty input.
pub fn split_byte(data: &[u8]) -> Option<(u8, &[u8])> {
    data.split_first().map(|(&first, rest)| (first, rest))
}

/// What stands before and after the first `separator`; without one, the whole input and nothing.
pub fn split_at(data: &[u8], separator: u8) -> (&[u8], &[u8]) {
    match data.iter().position(|&byte| byte == separator) {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &[]),
    }
}

/// How long an input is made by repetition, in bytes: time that grows with the square of the length shows there.
const LONG: usize = 64 * 1024;

/// The bytes over and over, up to 64 KiB.
pub fn repeated(bytes: &[u8]) -> Vec<u8> {
    let mut long = bytes.repeat(LONG / bytes.len().max(1));
    long.truncate(LONG);
    long
}
