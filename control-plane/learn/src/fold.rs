//! Which words of a place are values: slugs, by how many there are, how alike what they lead to is, and how rare each is.

use std::collections::BTreeSet;

use crate::Room;
use crate::path::Node;
use crate::segment::{is_slug, is_version};

/// Words of this many alike are values, if they look like values.
const MANY_SLUGS: usize = 5;
/// Words of this many alike are values, if each of them could be a word of the API.
const MANY_WORDS: usize = 16;
/// Words that stand for one thing among values: they stay where they are often used.
const FIXED: [&str; 14] = [
    "me", "self", "current", "new", "search", "latest", "default", "count", "all", "bulk", "batch", "export", "import",
    "health",
];

/// What a word leads to, as names.
struct Profile {
    word: String,
    requests: u64,
    names: BTreeSet<String>,
}

/// Folds what is below a node, from the top down.
pub(crate) fn fold(node: &mut Node, evidence: u64, room: &mut Room) {
    for word in values(node, evidence) {
        node.fold_word(&word, room);
    }
    for child in node.words.values_mut() {
        fold(child, evidence, room);
    }
    if let Some(slot) = &mut node.parameter {
        fold(&mut slot.node, evidence, room);
    }
}

/// The words of a node that are values.
fn values(node: &Node, evidence: u64) -> Vec<String> {
    let words = node.words.iter().filter(|(word, _)| !word.is_empty() && !is_version(word));
    let mut profiles: Vec<Profile> = words
        .map(|(word, child)| Profile { word: word.clone(), requests: child.requests(), names: names(child) })
        .collect();
    let beside = node.parameter.as_ref().map(|slot| names(&slot.node));
    // The most used first: the others are compared with it.
    profiles.sort_by(|left, right| right.requests.cmp(&left.requests).then_with(|| left.word.cmp(&right.word)));
    let mut values = Vec::new();
    if let Some(beside) = &beside {
        profiles.retain(|profile| {
            let rare =
                profile.requests < evidence || (is_slug(&profile.word) && !FIXED.contains(&profile.word.as_str()));
            let value = rare && alike(&profile.names, beside);
            if value {
                values.push(profile.word.clone());
            }
            !value
        });
    }
    let mut groups: Vec<(BTreeSet<String>, Vec<Profile>)> = Vec::new();
    for profile in profiles {
        match groups.iter_mut().find(|(names, _)| alike(&profile.names, names)) {
            Some((names, members)) => {
                names.extend(profile.names.iter().cloned());
                members.push(profile);
            }
            None => groups.push((profile.names.clone(), vec![profile])),
        }
    }
    for (names, members) in groups {
        if are_values(&names, &members, beside.as_ref(), evidence) {
            values.extend(members.into_iter().map(|profile| profile.word));
        }
    }
    values
}

fn are_values(names: &BTreeSet<String>, members: &[Profile], beside: Option<&BTreeSet<String>>, evidence: u64) -> bool {
    let slugs = members.iter().filter(|profile| is_slug(&profile.word)).count();
    let rare = members.iter().filter(|profile| profile.requests < evidence).count();
    // They lead to more than a method, and all to the same.
    let telling = names.len() >= 3;
    let half = members.len().div_ceil(2);
    if members.len() < MANY_SLUGS {
        return false;
    }
    let same_as_values = beside.is_some_and(|beside| alike(names, beside));
    let slug_like = slugs >= half && slugs >= MANY_SLUGS && (telling || rare >= half);
    let many = members.len() >= MANY_WORDS && (telling || rare >= half);
    let long_tail = rare >= half && members.len() >= 2 * MANY_SLUGS;
    same_as_values || slug_like || many || long_tail
}

/// What is directly behind a node: methods with the names of what they take and answer, and the next segments.
fn names(node: &Node) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (method, operation) in &node.operations {
        names.insert((*method).to_owned());
        let taken = operation.body.names().map(|name| format!("{method} > {name}"));
        let query = operation.query.known.keys().map(|name| format!("{method} ? {name}"));
        let answers = operation.responses.iter().filter(|(status, _)| (200..300).contains(*status));
        let answered = answers.flat_map(|(_, answers)| answers.body.names()).map(|name| format!("{method} < {name}"));
        names.extend(taken.chain(query).chain(answered));
    }
    names.extend(node.words.keys().map(|word| format!("/{word}")));
    if node.parameter.is_some() {
        names.insert("/{}".to_owned());
    }
    names
}

/// Whether what two words lead to is the same for the most part. Something that was rarely used shows only a part of it, so most of the
/// smaller set has to be in the larger one, which may have five times as much.
fn alike(left: &BTreeSet<String>, right: &BTreeSet<String>) -> bool {
    let common = left.intersection(right).count();
    let (small, large) = (left.len().min(right.len()), left.len().max(right.len()));
    small > 0 && common * 10 >= small * 8 && common * 5 >= large
}
