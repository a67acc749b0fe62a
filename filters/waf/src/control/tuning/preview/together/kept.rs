//! What an input is kept from at which attacks may pass.

use std::collections::BTreeSet;

use super::Choice;
use crate::control::operations::trial::Trial;
use crate::control::tuning::exclusion::Kept;
use crate::control::tuning::preview::attacks::{read, seen};

/// From how many rules that match at an input on it is taken for what their attacks look like, so that all such rules are let off.
const MANY_RULES: usize = 4;

/// From how many kinds of attacks it is taken for text about anything, so that all rules that look for attacks in texts are let off.
const MANY_KINDS: usize = 3;

/// The tags of these rules in the core rule set 4.
const KINDS: [&str; 12] = [
    "attack-generic",
    "attack-injection-generic",
    "attack-injection-java",
    "attack-injection-php",
    "attack-lfi",
    "attack-protocol",
    "attack-rce",
    "attack-rfi",
    "attack-sqli",
    "attack-ssrf",
    "attack-ssti",
    "attack-xss",
];

/// What an input is kept from that is needed for what its matches look like: all rules against the kinds of attacks that they find, where the
/// matches are many, and against all kinds where these are many too; otherwise their rules alone.
pub(super) fn kept_from(trial: &Trial<'_>, matches: Vec<&Choice>) -> Vec<Kept> {
    let mut kept = BTreeSet::new();
    let is_many = matches.len() >= MANY_RULES;
    for Choice { place, sample, .. } in matches {
        let rule = place.rule_id;
        let found = is_many.then(|| seen(trial, &read(sample), b"")).flatten();
        match found.and_then(|mut seen| seen.attacks.remove(&rule)).filter(|attacks| !attacks.is_empty()) {
            Some(attacks) => kept.extend(attacks.into_iter().map(Kept::Tag)),
            None => {
                kept.insert(Kept::Rule(rule));
            }
        }
    }
    if kept.iter().filter(|kept| matches!(kept, Kept::Tag(_))).count() >= MANY_KINDS {
        kept.extend(KINDS.iter().map(|kind| Kept::Tag((*kind).to_owned())));
    }
    kept.into_iter().collect()
}
