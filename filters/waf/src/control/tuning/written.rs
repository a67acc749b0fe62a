//! Exclusions as they are written: in a ruleset of their own, one for each config, in front of all its other rulesets.

use std::collections::BTreeSet;

use exchange::event_timestamp;
use kit::{Edit, EntityEdit, EntitySource, Item, View};
use serde_json::{Value, json};
use snapshot::content_hash;

use super::exclusion::{IDS, free_ids};
use crate::control::composition::elements;
use crate::control::config::{WafConfig, WafRuleset};

const RULESETS: &str = "waf-rulesets";
const CONFIGS: &str = "waf-configs";
/// The longest id of an entity.
const MAX_ID: usize = 128;
/// The longest reason that is kept, in bytes.
const MAX_REASON: usize = 500;

/// Where the exclusions of a config are.
pub(super) struct Written<'a> {
    config: &'a Item<WafConfig>,
    config_revision: u64,
    ruleset: Option<(&'a Item<WafRuleset>, u64)>,
    id: String,
}

/// An exclusion, or a rule of a profile, to write.
pub(super) struct Addition {
    pub(super) kind: AdditionKind,
    /// Its number, which is the id of its rule if it has one.
    pub(super) number: u64,
    pub(super) seclang: String,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AdditionKind {
    /// An exclusion.
    Exclusion,
    /// A rule that reports values outside the profile of a parameter.
    Profile,
}

impl AdditionKind {
    /// All of them.
    pub(super) const ALL: [AdditionKind; 2] = [AdditionKind::Exclusion, AdditionKind::Profile];

    /// The word that its comment begins with.
    pub(super) fn word(self) -> &'static str {
        match self {
            AdditionKind::Exclusion => "Exclusion",
            AdditionKind::Profile => "Profile",
        }
    }
}

/// What is to be written.
pub(super) struct Plan {
    pub(super) edits: Vec<EntityEdit>,
    pub(super) ruleset_id: String,
    pub(super) ruleset_name: String,
    /// The ruleset is new.
    pub(super) ruleset_created: bool,
    /// The config names the ruleset, or names it first, from now on.
    pub(super) config_updated: bool,
    /// The numbers of exclusions, and each as it is written, with the comment that says who and why.
    pub(super) entries: Vec<(u64, String)>,
}

impl<'a> Written<'a> {
    /// `None` where there is no such config.
    pub(super) fn of(config: &'a Item<WafConfig>, entities: &'a dyn EntitySource, view: &View<'a>) -> Option<Self> {
        let id = ruleset_id(&config.head.id);
        let config_revision = entities.slot(CONFIGS, &config.head.id)?.revision;
        let revision = entities.slot(RULESETS, &id).map(|slot| slot.revision);
        let ruleset = view.get::<WafRuleset>(&id).zip(revision);
        Some(Self { config, config_revision, ruleset, id })
    }

    /// The id of the ruleset that they are in.
    pub(super) fn ruleset_id(&self) -> &str {
        &self.id
    }

    /// Plans to add exclusions.
    ///
    /// # Errors
    /// They cannot be written; for people.
    pub(super) fn add(
        &self,
        additions: Vec<Addition>,
        (operator, reason, now_millis): (&str, &str, u64),
    ) -> Result<Plan, String> {
        let at = event_timestamp(now_millis);
        let entry = |Addition { kind, number, seclang }: Addition| {
            (number, format!("{}\n{}", comment(kind, number, operator, &at, reason), seclang.trim()))
        };
        self.add_entries(additions.into_iter().map(entry).collect())
    }

    /// Plans to add exclusions that have their comments: their numbers, and each as it is written.
    ///
    /// # Errors
    /// They cannot be written; for people.
    pub(super) fn add_entries(&self, entries: Vec<(u64, String)>) -> Result<Plan, String> {
        if self.ruleset.is_some_and(|(ruleset, _)| !ruleset.enabled) {
            return Err(format!("the ruleset `{}` is disabled: enable it first", self.id));
        }
        let mut rules = self.ruleset.map(|(ruleset, _)| ruleset.rules.clone()).unwrap_or_default();
        rules.extend(entries.iter().map(|(_, entry)| entry.clone()));
        let name = self.name();
        let ruleset = match self.ruleset {
            Some((_, seen)) => Edit::Merge { patch: json!({ "rules": rules }), seen },
            None => Edit::Create(json!({
                "id": self.id,
                "name": name,
                "description": format!("Exclusions that were found by tuning the WAF config `{}`.", self.config.head.id),
                "rules": rules,
            })),
        };
        let mut edits = vec![EntityEdit { collection: RULESETS, id: self.id.clone(), edit: ruleset }];
        let config_updated = self.config.rulesets.first() != Some(&self.id);
        if config_updated {
            let others = self.config.rulesets.iter().filter(|id| **id != self.id);
            let rulesets: Vec<&String> = std::iter::once(&self.id).chain(others).collect();
            let edit = Edit::Merge { patch: json!({ "rulesets": rulesets }), seen: self.config_revision };
            edits.push(EntityEdit { collection: CONFIGS, id: self.config.head.id.clone(), edit });
        }
        Ok(Plan {
            edits,
            ruleset_id: self.id.clone(),
            ruleset_name: name,
            ruleset_created: self.ruleset.is_none(),
            config_updated,
            entries,
        })
    }

    /// Plans to take an exclusion back.
    ///
    /// # Errors
    /// There is none of this number; for people.
    pub(super) fn remove(&self, number: u64) -> Result<Plan, String> {
        let missing = || format!("the WAF config `{}` has no exclusion {number}", self.config.head.id);
        let (ruleset, seen) = self.ruleset.ok_or_else(missing)?;
        let heads = AdditionKind::ALL.map(|kind| format!("# {} {number} ", kind.word()));
        let is_it = |rule: &String| heads.iter().any(|head| rule.starts_with(head));
        let place = ruleset.rules.iter().position(is_it).ok_or_else(missing)?;
        if ruleset.rules.iter().filter(|rule| is_it(rule)).count() > 1 {
            return Err(format!(
                "the ruleset `{}` has more than one exclusion {number}: remove the one that is meant there",
                self.id
            ));
        }
        let mut rules = ruleset.rules.clone();
        let entry = rules.remove(place);
        let edit = Edit::Merge { patch: json!({ "rules": rules }), seen };
        Ok(Plan {
            edits: vec![EntityEdit { collection: RULESETS, id: self.id.clone(), edit }],
            ruleset_id: self.id.clone(),
            ruleset_name: self.name(),
            ruleset_created: false,
            config_updated: false,
            entries: vec![(number, entry)],
        })
    }

    fn name(&self) -> String {
        match self.ruleset {
            Some((ruleset, _)) if !ruleset.head.name.is_empty() => ruleset.head.name.clone(),
            _ => format!("Exclusions of {}", self.config.head.id),
        }
    }
}

/// The id of the ruleset for the exclusions of a config. One that would be too long ends with a hash of the config's id, so that two configs
/// never have one ruleset.
fn ruleset_id(config: &str) -> String {
    let id = format!("exclusions-{config}");
    if id.len() <= MAX_ID {
        return id;
    }
    let hash: String = content_hash(config.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let end = id.floor_char_boundary(MAX_ID.saturating_sub(hash.len() + 1));
    format!("{}-{hash}", id.get(..end).unwrap_or_default())
}

/// So many numbers that no rule and no exclusion of a config has.
///
/// # Errors
/// There are not so many; for people.
pub(super) fn free_numbers(config: &Item<WafConfig>, view: &View<'_>, count: usize) -> Result<Vec<u64>, String> {
    free_numbers_up_to(config, view, count, count)
}

/// [`free_numbers`], from `least` to `most` of them, as many as there are.
///
/// # Errors
/// There are not so many; for people.
pub(super) fn free_numbers_up_to(
    config: &Item<WafConfig>,
    view: &View<'_>,
    least: usize,
    most: usize,
) -> Result<Vec<u64>, String> {
    let texts = elements(config, view);
    let free: Vec<u64> = free_ids(texts.iter().map(|element| element.text.as_str())).take(most).collect();
    let full = "all ids from 50000 to 59999 are taken: remove exclusions that are not needed any more";
    if free.len() >= least { Ok(free) } else { Err(full.to_owned()) }
}

/// The number of an exclusion: the id of its rule, or else the first that is free.
///
/// # Errors
/// None is free, or the id is taken by now; for people.
pub(super) fn number_of(seclang: &str, config: &Item<WafConfig>, view: &View<'_>) -> Result<u64, String> {
    let ids = seclang.split("id:").skip(1).map(|behind| behind.split(|letter: char| !letter.is_ascii_digit()));
    let ids: Vec<u64> =
        ids.filter_map(|mut digits| digits.next()?.parse().ok()).filter(|id| IDS.contains(id)).collect();
    let texts = elements(config, view);
    let free: BTreeSet<u64> = free_ids(texts.iter().map(|element| element.text.as_str())).collect();
    if let Some(taken) = ids.iter().find(|id| !free.contains(id)) {
        return Err(format!(
            "another rule or exclusion has the id {taken} by now: propose the exclusion again, or give it another id"
        ));
    }
    match ids.first() {
        Some(number) => Ok(*number),
        None => free_numbers(config, view, 1).map(|free| free.first().copied().unwrap_or(*IDS.start())),
    }
}

impl Plan {
    /// What `_apply` and `_revert` say of each exclusion.
    pub(super) fn shown(&self) -> Vec<Value> {
        let shown = self.entries.iter().map(|(number, entry)| {
            json!({
                "ruleset_id": self.ruleset_id,
                "ruleset_name": self.ruleset_name,
                "ruleset_created": self.ruleset_created,
                "config_updated": self.config_updated,
                "exclusion": number,
                "entry": entry,
            })
        });
        shown.collect()
    }
}

/// The first line of an exclusion: its number, who has written it, when and why.
pub(super) fn comment(kind: AdditionKind, number: u64, operator: &str, at: &str, reason: &str) -> String {
    format!("# {} {number} by {} at {at}: {}", kind.word(), one_line(operator), one_line(reason))
}

/// A text for a comment: one line, bounded.
fn one_line(text: &str) -> String {
    let line = text.get(..text.floor_char_boundary(MAX_REASON)).unwrap_or_default();
    // A backslash at the end would join the next line to the comment.
    let line: String =
        line.chars().map(|letter| if letter.is_control() || letter == '\\' { ' ' } else { letter }).collect();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kit::{Collection, Head, Slot};

    use super::*;

    /// No entities.
    struct Nothing;

    impl EntitySource for Nothing {
        fn slot(&self, _collection: &str, _id: &str) -> Option<&Slot> {
            None
        }

        fn collection(&self, _collection: &str) -> Option<&Arc<Collection>> {
            None
        }
    }

    #[test]
    fn an_exclusion_never_gets_the_number_of_another_one() {
        let head = Head { id: "shop".to_owned(), ..Head::default() };
        let rules =
            vec!["# Exclusion 50000 by ann\nSecRuleRemoveById 1".to_owned(), "SecAction \"id:50002\"".to_owned()];
        let config = Item { head, body: WafConfig { rules, ..WafConfig::default() } };
        let number = |seclang: &str| number_of(seclang, &config, &View::new(&Nothing));
        assert_eq!(number("SecRuleRemoveById 942100"), Ok(50_001));
        assert_eq!(number("SecRule A \"b\" \"id:50007,pass\""), Ok(50_007));
        for taken in ["SecRule A \"b\" \"id:50000,pass\"", "SecAction \"id:50007\"\nSecAction \"id:50002\""] {
            assert!(number(taken).is_err_and(|why| why.contains("propose the exclusion again")), "{taken}");
        }
    }

    #[test]
    fn of_two_exclusions_with_one_number_none_is_taken_back() {
        let head = |id: &str| Head { id: id.to_owned(), ..Head::default() };
        let config = Item { head: head("shop"), body: WafConfig::default() };
        let entry = |rule: u64| format!("# Exclusion 50000 by ann at 2026: why\nSecRuleRemoveById {rule}");
        let removed = |rules: Vec<String>| {
            let ruleset = Item { head: head("exclusions-shop"), body: WafRuleset { rules, ..WafRuleset::default() } };
            let (ruleset, id) = (Some((&ruleset, 1)), "exclusions-shop".to_owned());
            Written { config: &config, config_revision: 1, ruleset, id }.remove(50_000).map(|plan| plan.entries)
        };
        assert_eq!(removed(vec![entry(1)]), Ok(vec![(50_000, entry(1))]));
        assert!(removed(vec![entry(1), entry(2)]).is_err_and(|why| why.contains("more than one")));
    }

    #[test]
    fn each_config_has_a_ruleset_of_its_own() {
        assert_eq!(ruleset_id("shop"), "exclusions-shop");
        let [fits, long] = [117, 128].map(|length| "a".repeat(length));
        assert_eq!(ruleset_id(&fits), format!("exclusions-{fits}"));
        let ids = ["x", "y"].map(|end| ruleset_id(&format!("{}{end}", &long[1..])));
        assert!(
            ids[0] != ids[1] && ids.iter().all(|id| id.len() == MAX_ID && id.starts_with("exclusions-aaa")),
            "{ids:?}"
        );
    }
}
