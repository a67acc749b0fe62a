//! Links within archives: where they lead, and what would be written through them.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher as _};

use crate::name;

/// The most folders of a path whose links are looked for: no system writes a path that is so deep.
const MAX_DEPTH: usize = 256;

/// The symbolic links of an archive, and the hard links to them: the keys of their paths, and how many folders up their targets go.
#[derive(Default)]
pub(super) struct Links(BTreeMap<u64, usize>);

/// How file systems compare paths.
#[derive(Clone, Copy)]
enum Comparison {
    /// By their bytes.
    Exact = 0,
    /// Without case, accents, and dots and blanks at the end of a segment.
    Folded = 1,
}

impl Links {
    /// Adds a link to these targets, which go so many folders up.
    pub(super) fn add(&mut self, path: &[u8], targets: &[&[u8]], ups: usize) {
        let folded = folded(path);
        // A link to a folder beside it that has its name but for the case leads nowhere where the case does not matter.
        let leads_to_itself = !targets.is_empty()
            && targets.iter().all(|target| {
                let target = self::folded(target);
                target.len() == 1 && target.last() == folded.last()
            });
        let exact = keys(Comparison::Exact, segments(path)).last();
        let folded = keys(Comparison::Folded, folded.iter()).last().filter(|_| !leads_to_itself);
        for key in exact.into_iter().chain(folded) {
            let known = self.0.entry(key).or_default();
            *known = ups.max(*known);
        }
    }

    /// Whether a link is on the way to a path: its target decides where the path leads then. A path that is too deep counts as well.
    pub(super) fn lead_to(&self, path: &[u8]) -> bool {
        if self.0.is_empty() {
            return false;
        }
        if segments(path).nth(MAX_DEPTH + 1).is_some() {
            return true;
        }
        let folded = folded(path);
        if folded.len() > MAX_DEPTH + 1 {
            return true;
        }
        let known = |keys: Vec<u64>| {
            keys.split_last().is_some_and(|(_, folders)| folders.iter().any(|key| self.0.contains_key(key)))
        };
        known(keys(Comparison::Exact, segments(path)).collect())
            || known(keys(Comparison::Folded, folded.iter()).collect())
    }

    /// How many folders up the target of a link goes; `None` if no link has this path.
    pub(super) fn ups(&self, path: &[u8]) -> Option<usize> {
        if self.0.is_empty() {
            return None;
        }
        let exact = keys(Comparison::Exact, segments(path)).last();
        let folded = keys(Comparison::Folded, folded(path).iter()).last();
        exact.into_iter().chain(folded).filter_map(|key| self.0.get(&key).copied()).max()
    }
}

/// The keys of a path and of the folders on the way to it, the outermost first. A key stands for all bytes up to its segment: paths are
/// as long as an archive has room for, and keys take little of it.
fn keys<S: AsRef<[u8]>>(comparison: Comparison, segments: impl Iterator<Item = S>) -> impl Iterator<Item = u64> {
    let mut hasher = DefaultHasher::new();
    hasher.write_u8(comparison as u8);
    segments.map(move |segment| {
        hasher.write(segment.as_ref());
        hasher.write_u8(b'/');
        hasher.finish()
    })
}

/// The segments of a path, without those that are `.`.
fn segments(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| matches!(byte, b'/' | b'\\')).filter(|segment| !matches!(*segment, b"" | b"."))
}

/// The segments of a path as systems compare them that ignore case, no more than are looked at.
fn folded(path: &[u8]) -> Vec<String> {
    let path = name::compared(path);
    let segments = path.split(['/', '\\']).filter(|segment| !matches!(*segment, "" | "."));
    let plain = |segment: &str| {
        // What follows a colon is a stream of the same folder or file (`a::$INDEX_ALLOCATION`).
        let name = segment.split(':').next().unwrap_or_default();
        let name = name.trim_end_matches(|letter: char| letter == '.' || letter.is_whitespace() || letter.is_control());
        if name.is_empty() { segment.to_owned() } else { name.to_owned() }
    };
    segments.take(MAX_DEPTH + 2).map(plain).collect()
}

/// How deep the folder of a link is, by that of its names which is the least deep.
pub(super) fn depth(names: &[&[u8]]) -> usize {
    names.iter().map(|name| segments(name).count().saturating_sub(1)).min().unwrap_or(0)
}

/// How many folders up a target goes at its beginning.
pub(super) fn ups(target: &[u8]) -> usize {
    segments(target).take_while(is_up).count()
}

/// Whether a target stays within the archive's folder, from a folder of this depth on. Behind a name, `..` may lead anywhere: the name
/// may be that of another link.
pub(super) fn stays_inside(depth: usize, target: &[u8]) -> bool {
    let ups = ups(target);
    ups <= depth && !segments(target).skip(ups).any(|segment| is_up(&segment))
}

fn is_up(segment: &&[u8]) -> bool {
    segment.trim_ascii() == b".."
}
