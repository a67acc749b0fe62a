//! Links within archives: where they lead, and what would be written through them.

use std::collections::BTreeSet;

/// The deepest folder whose links are looked for.
const MAX_DEPTH: usize = 256;

/// The paths of the symbolic links of an archive.
#[derive(Default)]
pub(super) struct Links(BTreeSet<Vec<u8>>);

impl Links {
    pub(super) fn add(&mut self, path: &[u8]) {
        self.0.insert(joined(path));
    }

    /// Whether a link is on the way to a path: its target decides where the path leads then.
    pub(super) fn lead_to(&self, path: &[u8]) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let path = joined(path);
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').take(MAX_DEPTH);
        ends.filter_map(|(at, _)| path.get(..at)).any(|folder| self.0.contains(folder))
    }
}

/// A path with one slash between its segments, without those that are `.`.
fn joined(path: &[u8]) -> Vec<u8> {
    segments(path).collect::<Vec<_>>().join(b"/".as_slice())
}

fn segments(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| matches!(byte, b'/' | b'\\')).filter(|segment| !matches!(*segment, b"" | b"."))
}

/// How deep the folder of a link is, by that of its names which is the least deep.
pub(super) fn depth(names: &[&[u8]]) -> usize {
    names.iter().map(|name| segments(name).count().saturating_sub(1)).min().unwrap_or(0)
}

/// Whether a target stays within the archive's folder, from a folder of this depth on. Behind a name, `..` may lead anywhere: the name
/// may be that of another link.
pub(super) fn stays_inside(depth: usize, target: &[u8]) -> bool {
    let is_up = |segment: &&[u8]| segment.trim_ascii() == b"..";
    let ups = segments(target).take_while(is_up).count();
    ups <= depth && !segments(target).skip(ups).any(|segment| is_up(&segment))
}
