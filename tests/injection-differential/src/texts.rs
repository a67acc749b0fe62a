//! Honest texts: how many of them are taken for an injection, by ours and by the library.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use seclang::operator::injection::reference;

use crate::library::{Libinjection, Terminated};

/// How long the values are that texts are cut into, in bytes.
const LENGTHS: [usize; 5] = [256, 1 << 10, 4 << 10, 16 << 10, 64 << 10];

/// The most bytes that are read of one kind of text.
const MOST: usize = 4 << 20;

/// How many values that ours alone finds are shown.
const SAMPLES: usize = 8;

#[derive(Default)]
struct Row {
    values: usize,
    library: usize,
    ours: usize,
    gave_up: usize,
    alone: usize,
}

/// Cuts the texts of files and folders into values and prints how many are found.
pub fn measure(library: &Libinjection, paths: &[PathBuf]) {
    let mut texts: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for path in paths {
        gather(path, &mut texts);
    }
    for (language, detect) in [("SQL", sql as fn(&Libinjection, &[u8]) -> (bool, Option<bool>)), ("HTML", html)] {
        println!("{language}: values of honest text\nkind       bytes  values  library  ours  ours alone  gave up");
        let mut samples = Vec::new();
        for (kind, text) in &texts {
            for length in LENGTHS {
                let mut row = Row::default();
                for value in text.chunks(length) {
                    let (theirs, ours) = detect(library, value);
                    row.values += 1;
                    row.library += usize::from(theirs);
                    row.ours += usize::from(ours == Some(true));
                    row.gave_up += usize::from(ours.is_none());
                    if ours == Some(true) && !theirs {
                        row.alone += 1;
                        if samples.len() < SAMPLES && length <= 1 << 10 {
                            samples.push(String::from_utf8_lossy(value).into_owned());
                        }
                    }
                }
                let Row { values, library, ours, alone, gave_up } = row;
                println!("{kind:<10} {length:>5}  {values:>6}  {library:>7}  {ours:>4}  {alone:>10}  {gave_up:>7}");
            }
        }
        samples.iter().for_each(|sample| println!("--- ours alone:\n{sample}"));
    }
}

fn sql(library: &Libinjection, value: &[u8]) -> (bool, Option<bool>) {
    (library.is_sql(&Terminated::new(value)), reference::is_sql(value).0)
}

fn html(library: &Libinjection, value: &[u8]) -> (bool, Option<bool>) {
    (library.is_script(&Terminated::new(value)), Some(reference::is_script(value)))
}

/// All texts of one kind (by the end of the file's name) behind each other.
fn gather(path: &Path, texts: &mut BTreeMap<String, Vec<u8>>) {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut entries: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry of the folder").path()).collect();
        entries.sort();
        entries.iter().for_each(|entry| gather(entry, texts));
        return;
    }
    let (Some(kind), Ok(text)) = (path.extension().and_then(|kind| kind.to_str()), std::fs::read(path)) else { return };
    let of_kind = texts.entry(kind.to_owned()).or_default();
    if of_kind.len() + text.len() <= MOST {
        of_kind.extend(text);
    }
}
