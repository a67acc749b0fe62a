//! A file of breached passwords, and the ranges that an address answers with.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use snapshot::unhex;

use crate::breached::{Digest, SUFFIX};

/// The most passwords of an answer: an answer of the node link has 64 KiB.
const MAX_PASSWORDS: usize = 8_000;
/// The longest line, in bytes: the hash, a colon and a count.
const MAX_LINE: u64 = 128;

/// The suffixes of a prefix in a file that is sorted by hashes.
///
/// # Errors
/// What cannot be read.
pub(super) fn of_file(path: &Path, prefix: u32) -> Result<Vec<u8>, String> {
    let fail = |error: std::io::Error| format!("{}: {error}", path.display());
    // Opening a pipe may take forever.
    let about = std::fs::metadata(path).map_err(fail)?;
    if !about.is_file() {
        return Err(format!("{}: no file", path.display()));
    }
    let (mut file, length) = (BufReader::new(File::open(path).map_err(fail)?), about.len());
    // The first line whose prefix is not smaller begins in [low, high].
    let (mut low, mut high) = (0, length);
    while low < high {
        let middle = low + (high - low) / 2;
        match line_behind(&mut file, middle).map_err(fail)? {
            Some((at, line)) if at < high => match digest(&line) {
                Some(digest) if digest.prefix < prefix => low = at + line.len() as u64,
                Some(_) => high = middle,
                None => return Err(format!("{}: byte {at}: no line of a hash and a count", path.display())),
            },
            _ => high = middle,
        }
    }
    file.seek(SeekFrom::Start(low)).map_err(fail)?;
    let mut found = Vec::new();
    let mut line = Vec::new();
    while found.len() < MAX_PASSWORDS {
        line.clear();
        if file.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).map_err(fail)? == 0 {
            break;
        }
        match digest(&line) {
            Some(digest) if digest.prefix == prefix => found.push(digest.suffix),
            Some(digest) if digest.prefix < prefix => {}
            _ => break,
        }
    }
    Ok(sorted(found))
}

/// The first line that begins at a place or behind it, and where.
fn line_behind(file: &mut BufReader<File>, place: u64) -> std::io::Result<Option<(u64, Vec<u8>)>> {
    let mut at = place;
    if place > 0 {
        // A line begins where the byte before ends one.
        file.seek(SeekFrom::Start(place - 1))?;
        let mut rest = Vec::new();
        let skipped = file.by_ref().take(MAX_LINE).read_until(b'\n', &mut rest)?;
        at = place - 1 + skipped as u64;
    } else {
        file.seek(SeekFrom::Start(0))?;
    }
    let mut line = Vec::new();
    let read = file.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
    Ok((read > 0).then_some((at, line)))
}

/// The suffixes of the answer of an address: lines of the 35 hex digits behind the prefix, a colon and a count. Lines that pad the answer
/// have the count 0.
pub(super) fn of_answer(body: &[u8], prefix: u32) -> Vec<u8> {
    let read = |line: &[u8]| {
        let (rest, count) = line.split_at_checked(35)?;
        let padding = count.trim_ascii() == b":0";
        let whole = [format!("{prefix:05X}").as_bytes(), rest].concat();
        digest(&whole).filter(|_| !padding).map(|digest| digest.suffix)
    };
    sorted(body.split(|byte| *byte == b'\n').filter_map(read).take(MAX_PASSWORDS).collect())
}

/// The digest at the beginning of a line.
fn digest(line: &[u8]) -> Option<Digest> {
    let hash = unhex(&line.get(..40)?.to_ascii_lowercase())?;
    Some(Digest::of_hash(&hash))
}

fn sorted(mut suffixes: Vec<[u8; SUFFIX]>) -> Vec<u8> {
    suffixes.sort_unstable();
    suffixes.concat()
}
