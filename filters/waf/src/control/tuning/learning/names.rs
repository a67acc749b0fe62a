//! Names at one place of a path that stand for things of one kind: `/users/alice/profile` and `/users/bob/profile` are `/users/{slug}/profile`.
//!
//! Gateways fold what is an identifier by its form. That a word is one shows only where many stand at one place: each for so few callers that
//! nothing could be learned at it. What many callers send stays a path of its own. A network has a few votes for names, so that one that makes
//! up a thousand folds nothing.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use exchange::fold::SLUG;

use super::super::exclusion::reaches;
use super::super::windows::{Entry, MAX_CALLERS, MAX_SHAPES, Window, entry_key, networks, parameters};
use super::groups::{are_enough, networks_needed};
use crate::samples::callers::{self, network_of};
use crate::samples::messages::Parameter;
use crate::samples::shape;

/// From how many names at a place on they are one.
const MIN_NAMES: usize = 20;
/// The names that callers of one network vote for, at most: it takes five networks.
const MAX_VOTES: usize = 4;
/// The places of a path whose names are one, at most.
const MAX_PLACES: u32 = 2;
/// The longest path that is looked at, in segments, and how many of them.
const MAX_SEGMENTS: usize = 8;
const MAX_PATHS: usize = 5_000;

/// Something that was seen on a path.
struct OnPath<'p> {
    /// What: things of different kinds are never one.
    what: String,
    path: &'p str,
    callers: BTreeSet<u64>,
    /// How often.
    count: u64,
    /// An exclusion of the config is for this path: what is tried on a wider one says nothing about it.
    is_named: bool,
}

/// Paths that are one.
#[derive(Debug, PartialEq, Eq)]
struct Folded {
    path: String,
    /// Those that say nothing by themselves, by their places.
    one: Vec<usize>,
}

/// Finds the paths that are one. `networks_needed` is the number of networks without which nothing is learned.
fn fold(all: &[OnPath<'_>], networks_needed: usize) -> Vec<Folded> {
    let is_rare = |one: &OnPath<'_>| !one.is_named && !are_enough(&one.callers, networks_needed);
    let mut rare: Vec<usize> = (0..all.len()).filter(|at| all.get(*at).is_some_and(is_rare)).collect();
    rare.sort_by_key(|at| all.get(*at).map(|one| (std::cmp::Reverse(one.count), &one.what, one.path)));
    rare.truncate(MAX_PATHS);
    let (mut found, mut taken) = (Vec::new(), BTreeSet::new());
    for places in 1..=MAX_PLACES {
        for (mask, members) in groups(all, &rare, places) {
            let one: Vec<usize> = members.into_iter().filter(|at| !taken.contains(at)).collect();
            let Some(first) = one.first().and_then(|at| all.get(*at)) else { continue };
            if are_many(all, &one, mask, networks_needed) {
                taken.extend(one.iter().copied());
                found.push(Folded { path: masked(first.path, mask), one });
            }
        }
        rare.retain(|at| !taken.contains(at));
    }
    found
}

/// What could be one if the names at some places were, with these places as bits: the largest first.
fn groups(all: &[OnPath<'_>], rare: &[usize], places: u32) -> Vec<(u32, Vec<usize>)> {
    let mut groups: HashMap<(&str, u32, String), Vec<usize>> = HashMap::new();
    for at in rare {
        let Some(one) = all.get(*at) else { continue };
        let segments: Vec<&str> = one.path.split('/').skip(1).collect();
        if segments.len() > MAX_SEGMENTS {
            continue;
        }
        for mask in (1..1_u32 << segments.len()).filter(|mask| mask.count_ones() == places) {
            let is_name = |(place, segment): (usize, &&str)| {
                mask >> place & 1 == 0 || !(segment.is_empty() || segment.contains('{'))
            };
            if segments.iter().enumerate().all(is_name) {
                groups.entry((one.what.as_str(), mask, masked(one.path, mask))).or_default().push(*at);
            }
        }
    }
    let many = groups.into_iter().filter(|(_, members)| members.len() >= MIN_NAMES);
    let mut groups: Vec<(u32, Vec<usize>)> = many.map(|((_, mask, _), members)| (mask, members)).collect();
    // The same order each time, whatever that of the map is.
    groups.sort_by_key(|(mask, members)| (std::cmp::Reverse(members.len()), *mask, members.first().copied()));
    groups
}

/// Whether there are many names at each of the places.
fn are_many(all: &[OnPath<'_>], members: &[usize], mask: u32, networks_needed: usize) -> bool {
    // Some may be in a larger group already.
    members.len() >= MIN_NAMES
        && (0..MAX_SEGMENTS).filter(|place| mask >> place & 1 == 1).all(|place| {
            let mut names: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
            for one in members.iter().filter_map(|at| all.get(*at)) {
                let name = one.path.split('/').skip(1).nth(place).unwrap_or_default();
                names.entry(name).or_default().extend(&one.callers);
            }
            votes(names.values(), networks_needed) >= MIN_NAMES
        })
}

/// How many names have a vote: of a network that has not voted for its share, or of a caller where there is one network alone.
fn votes<'c>(names: impl Iterator<Item = &'c BTreeSet<u64>>, networks_needed: usize) -> usize {
    let mut given: BTreeMap<u64, usize> = BTreeMap::new();
    names
        .filter(|callers| {
            let voters = callers.iter().map(|caller| if networks_needed > 1 { network_of(*caller) } else { *caller });
            let Some(voter) = voters.min_by_key(|voter| given.get(voter).copied().unwrap_or_default()) else {
                return false;
            };
            let votes = given.entry(voter).or_default();
            *votes += 1;
            *votes <= MAX_VOTES
        })
        .count()
}

/// A path with the names at some places folded.
fn masked(path: &str, mask: u32) -> String {
    let mut folded = String::with_capacity(path.len());
    for (place, segment) in path.split('/').skip(1).enumerate() {
        folded.push('/');
        folded.push_str(if mask >> place & 1 == 1 { SLUG } else { segment });
    }
    folded
}

/// All others that a rule for a folded path reaches.
fn reached(all: &[OnPath<'_>], Folded { path, one }: &Folded) -> Vec<usize> {
    let Some(first) = one.first().and_then(|at| all.get(*at)) else { return Vec::new() };
    let one: BTreeSet<usize> = one.iter().copied().collect();
    let is_reached =
        |(at, other): &(usize, &OnPath<'_>)| other.what == first.what && !one.contains(at) && reaches(path, other.path);
    all.iter().enumerate().filter(is_reached).map(|(at, _)| at).collect()
}

/// A parameter, and the paths that it was seen on: one, unless names are one.
pub(super) struct OfPaths {
    pub(super) parameter: Parameter,
    pub(super) paths: usize,
}

/// The parameters of a window. Where names are one, what is known of a parameter is of all paths that a rule for it reaches, those that are
/// there by themselves as well.
pub(super) fn folded_parameters(window: &Window) -> Vec<OfPaths> {
    let mut all: Vec<&Parameter> = window.parameters.values().collect();
    all.sort_by(|one, other| (&one.path, &one.target).cmp(&(&other.path, &other.target)));
    let callers = |one: &Parameter| one.shapes.iter().map(|shape| shape.caller).collect::<BTreeSet<u64>>();
    let seen: Vec<OnPath<'_>> = all
        .iter()
        .map(|one| OnPath {
            what: one.target.to_ascii_lowercase(),
            path: &one.path,
            callers: callers(one),
            count: one.count,
            is_named: false,
        })
        .collect();
    let everyone = seen.iter().flat_map(|one| &one.callers);
    let folded = fold(&seen, networks_needed(networks(everyone)));
    let mut found = Vec::with_capacity(all.len());
    let mut gone: BTreeSet<usize> = BTreeSet::new();
    for folded in folded {
        let reached = reached(&seen, &folded);
        let Folded { path, one } = folded;
        let members = || one.iter().chain(&reached).filter_map(|at| all.get(*at));
        let Some(first) = members().next() else { continue };
        let mut parameter = Parameter { target: first.target.clone(), path, ..Parameter::default() };
        members().for_each(|more| parameters::add(&mut parameter, more, |_| true));
        found.push(OfPaths { parameter, paths: one.len() + reached.len() });
        gone.extend(one);
    }
    let others = all.iter().enumerate().filter(|(at, _)| !gone.contains(at));
    found.extend(others.map(|(_, one)| OfPaths { parameter: (*one).clone(), paths: 1 }));
    found
}

/// The entries of a window, and under which key those are that are one, by their own.
pub(super) struct FoldedEntries<'w> {
    pub(super) entries: Vec<Cow<'w, Entry>>,
    pub(super) keys: BTreeMap<String, String>,
}

/// The entries of a window. Where names are one, those that few callers have sent are one; others on paths that a rule reaches stay, and so do
/// those on paths that are named.
pub(super) fn folded_entries(window: &Window, is_named: impl Fn(&str) -> bool) -> FoldedEntries<'_> {
    let mut all: Vec<&Entry> = window.entries.values().collect();
    all.sort_by(|one, other| (&one.path, &one.target, one.rule_id).cmp(&(&other.path, &other.target, other.rule_id)));
    let seen: Vec<OnPath<'_>> = all
        .iter()
        .map(|one| OnPath {
            what: format!("{}|{}", one.rule_id, one.target.to_ascii_lowercase()),
            path: &one.path,
            callers: one.callers.iter().copied().collect(),
            count: one.count,
            is_named: is_named(&one.path),
        })
        .collect();
    let folded = fold(&seen, networks_needed(window.networks()));
    let (mut entries, mut keys) = (Vec::with_capacity(all.len()), BTreeMap::new());
    let mut gone: BTreeSet<usize> = BTreeSet::new();
    for Folded { path, one } in folded {
        let mut members = one.iter().filter_map(|at| all.get(*at));
        let Some(first) = members.next() else { continue };
        let mut entry = Entry { path, ..(*first).clone() };
        let key = entry_key(entry.rule_id, &entry.target, &entry.path);
        keys.insert(entry_key(first.rule_id, &first.target, &first.path), key.clone());
        for more in members {
            entry.count = entry.count.saturating_add(more.count);
            entry.would_block = entry.would_block.saturating_add(more.would_block);
            entry.alone = entry.alone.saturating_add(more.alone);
            more.callers.iter().for_each(|caller| callers::add(&mut entry.callers, *caller, MAX_CALLERS));
            more.shapes.iter().for_each(|one| shape::add(&mut entry.shapes, *one, MAX_SHAPES));
            keys.insert(entry_key(more.rule_id, &more.target, &more.path), key.clone());
        }
        entries.push(Cow::Owned(entry));
        gone.extend(one);
    }
    let others = all.iter().enumerate().filter(|(at, _)| !gone.contains(at));
    entries.extend(others.map(|(_, one)| Cow::Borrowed(*one)));
    FoldedEntries { entries, keys }
}

#[cfg(test)]
mod tests;
