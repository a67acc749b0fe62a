//! The decoys of a policy, looked up.

use std::rc::Rc;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind, MatchKind};
use exchange::spelling;
use prost::Message as _;

use crate::messages::{CanaryHead, CanaryTail, DecoyPath, HoneypotTraps};

/// Where a canary is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Header,
    Path,
    Query,
}

/// The decoys of a policy.
pub(crate) struct Traps {
    lists: HoneypotTraps,
    /// The heads of all canaries; `None` without any.
    heads: Option<AhoCorasick>,
}

impl Traps {
    /// Reads a part.
    ///
    /// # Errors
    ///
    /// It is no [`HoneypotTraps`], or its lists are not sorted.
    pub(crate) fn read(bytes: &[u8]) -> Result<Rc<Self>, String> {
        let lists = HoneypotTraps::decode(bytes).map_err(|error| error.to_string())?;
        Self::new(lists).map(Rc::new)
    }

    pub(crate) fn new(lists: HoneypotTraps) -> Result<Self, String> {
        let is_sorted = |paths: &[DecoyPath]| paths.is_sorted_by(|one, next| one.path < next.path);
        let nested = |paths: &[DecoyPath]| {
            paths.iter().zip(paths.iter().skip(1)).any(|(one, next)| next.path.starts_with(&one.path))
        };
        if !is_sorted(&lists.exact) || !is_sorted(&lists.prefixes) || nested(&lists.prefixes) {
            return Err("the decoy paths of a honeypot are not in order".to_owned());
        }
        let tail = |at: &u32| Some(lists.canaries.get(usize::try_from(*at).ok()?)?.tail.as_slice());
        let in_order = |list: &[u32]| {
            let known = list.iter().all(|at| tail(at).is_some());
            let next = list.iter().zip(list.iter().skip(1));
            known && next.map(|(one, next)| (tail(one), tail(next))).all(|(one, next)| one < next)
        };
        if !lists
            .heads
            .iter()
            .all(|head| [&head.header, &head.path, &head.query].into_iter().all(|list| in_order(list)))
        {
            return Err("the canaries of a honeypot are not in order".to_owned());
        }
        let heads = match lists.heads.as_slice() {
            [] => None,
            // A table of all transitions (DFA) would be faster, and take a kilobyte for each byte of a head.
            heads => {
                let mut builder = AhoCorasickBuilder::new();
                builder.match_kind(MatchKind::Standard).kind(Some(AhoCorasickKind::ContiguousNFA));
                Some(builder.build(heads.iter().map(|head| &head.head)).map_err(|error| error.to_string())?)
            }
        };
        Ok(Self { lists, heads })
    }

    pub(crate) fn has_decoys(&self) -> bool {
        !self.lists.exact.is_empty() || !self.lists.prefixes.is_empty()
    }

    pub(crate) fn has_canaries(&self) -> bool {
        self.heads.is_some()
    }

    /// The decoy that a path is, in one of its spellings. `spellings` are what it is with its escapes undone.
    pub(crate) fn decoy(&self, path: &[u8], spellings: &[Vec<u8>]) -> Option<&DecoyPath> {
        let mut all = std::iter::once(path).chain(spellings.iter().map(Vec::as_slice));
        all.find_map(|path| {
            self.as_it_is(path).or_else(|| {
                let canonical = spelling::canonical(path);
                self.as_served(&canonical).or_else(|| self.as_folder(canonical, path))
            })
        })
    }

    /// The decoy that a canonical path is: backends serve `/phpinfo.php` for what is behind it too, and a page for one with a slash
    /// at its end.
    fn as_served(&self, path: &[u8]) -> Option<&DecoyPath> {
        let page = path.strip_suffix(b"/").filter(|page| !page.is_empty());
        let script =
            path.windows(5).position(|part| part.eq_ignore_ascii_case(b".php/")).and_then(|at| path.get(..at + 4));
        self.as_it_is(path).or_else(|| self.exact(page?)).or_else(|| self.exact(script?))
    }

    /// The decoy that a canonical path is as a folder: backends list one for a path that ends in `..`.
    fn as_folder(&self, mut canonical: Vec<u8>, path: &[u8]) -> Option<&DecoyPath> {
        if canonical.ends_with(b"/") || !leads_up(path) {
            return None;
        }
        canonical.push(b'/');
        self.as_it_is(&canonical)
    }

    /// The decoy that a path is as it stands, but for the case of its letters.
    fn as_it_is(&self, path: &[u8]) -> Option<&DecoyPath> {
        self.exact(path).or_else(|| {
            // Whatever is sorted between a prefix of a path and the path begins with that prefix; and none begins with another.
            let prefix = last_of(&self.lists.prefixes, |decoy| is_up_to(decoy, path))?;
            path.get(..prefix.path.len())?.eq_ignore_ascii_case(&prefix.path).then_some(prefix)
        })
    }

    fn exact(&self, path: &[u8]) -> Option<&DecoyPath> {
        let nearest = last_of(&self.lists.exact, |decoy| is_up_to(decoy, path))?;
        nearest.path.eq_ignore_ascii_case(path).then_some(nearest)
    }

    /// The first canary of a place that a text has.
    pub(crate) fn canary(&self, place: Place, text: &[u8]) -> Option<&CanaryTail> {
        let tail = |at: &u32| self.lists.canaries.get(usize::try_from(*at).ok()?);
        let mut found = self.heads.as_ref()?.try_find_overlapping_iter(text).ok()?;
        found.find_map(|found| {
            let head = self.lists.heads.get(found.pattern().as_usize())?;
            let behind = text.get(found.end()..)?;
            let up_to_text = |at: &u32| tail(at).is_some_and(|canary| canary.tail.as_slice() <= behind);
            let nearest = last_of(list(head, place), up_to_text)?;
            tail(nearest).filter(|canary| behind.starts_with(&canary.tail))
        })
    }
}

fn list(head: &CanaryHead, place: Place) -> &[u32] {
    match place {
        Place::Header => &head.header,
        Place::Path => &head.path,
        Place::Query => &head.query,
    }
}

/// Whether the last segment of a path is `..`, as backends read it.
fn leads_up(path: &[u8]) -> bool {
    let path = path.split(|byte| b"\0?#".contains(byte)).next().unwrap_or_default();
    let segment = path.rsplit(|byte| b"/\\".contains(byte)).next().unwrap_or_default();
    let name = segment.split(|byte| *byte == b';').next().unwrap_or_default();
    name.trim_ascii_end() == b".."
}

/// Whether a decoy is sorted at a path or in front of it.
fn is_up_to(decoy: &DecoyPath, path: &[u8]) -> bool {
    decoy.path.iter().copied().le(path.iter().map(u8::to_ascii_lowercase))
}

/// The last of the entries at the beginning of a sorted list that fulfil a condition.
fn last_of<T>(sorted: &[T], condition: impl Fn(&T) -> bool) -> Option<&T> {
    sorted.get(sorted.partition_point(condition).checked_sub(1)?)
}
