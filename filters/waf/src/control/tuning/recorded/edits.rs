//! The verified exclusions and the rules of the profile as changes of entities, each below a comment with its reason, its date and its
//! evidence.

use std::collections::BTreeMap;

use exchange::event_timestamp;
use kit::{EarlierDocument, Entity as _, EntityEdit, View};
use serde_json::Value;

use super::super::written::{AdditionKind, Written, comment};
use super::{ProfileRule, Verified, WafTuner};
use crate::control::config::WafRuleset;

/// Who has written an exclusion.
const WRITER: &str = "palisade tune";

/// The changes; none without a verified exclusion or a rule of the profile.
///
/// # Errors
/// They cannot be written; for people.
pub(super) fn edits(
    tuner: &WafTuner<'_>,
    reason: &str,
    earlier: &EarlierDocument<'_>,
) -> Result<Vec<EntityEdit>, String> {
    let exclusions = tuner.exclusions()?;
    if exclusions.is_empty() && tuner.profiled.is_empty() {
        return Ok(Vec::new());
    }
    let view = View::new(tuner.entities);
    let written = Written::of(tuner.given, tuner.entities, &view).ok_or("the WAF config is gone")?;
    let dates =
        earlier(WafRuleset::COLLECTION, written.ruleset_id()).map(|document| dates(&document)).unwrap_or_default();
    let now = event_timestamp(tuner.now_millis);
    let requests = tuner.window()?.requests;
    let entry = |kind, number, rule: &str, evidence: &str| {
        let rule = rule.trim();
        let head = comment(kind, number, WRITER, dates.get(rule).unwrap_or(&now), reason);
        (number, format!("{head}\n# Evidence: {evidence}\n{rule}"))
    };
    let of_exclusion = |(number, verified, rule): (u64, &Verified, String)| {
        entry(AdditionKind::Exclusion, number, &rule, &evidence(verified, requests))
    };
    let of_profile = |one: &ProfileRule| entry(AdditionKind::Profile, one.number, &one.seclang, &one.evidence);
    let entries = exclusions.into_iter().map(of_exclusion).chain(tuner.profiled.iter().map(of_profile));
    Ok(written.add_entries(entries.collect())?.edits)
}

fn evidence(verified: &Verified, requests: u64) -> String {
    let entry = &verified.entry;
    // Beyond so many they are not told apart.
    let callers = match entry.callers.len() {
        64.. => "64 or more".to_owned(),
        few => few.to_string(),
    };
    let caught = verified.preview.as_ref().map_or(0, |preview| preview.corpus.caught_after);
    let cost = match verified.passing {
        0 => format!("{caught} known attacks are caught with it, as many as without it."),
        passing => format!("a trade-off: {passing} known attacks pass at this input with it."),
    };
    format!(
        "{} of {requests} recorded requests matched, from {callers} callers, {} would be refused; {cost}",
        entry.count, entry.would_block
    )
}

/// When the exclusions and the rules of the profile of a ruleset were written, by their rules.
fn dates(document: &Value) -> BTreeMap<String, String> {
    let rules = document.get("rules").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    rules.filter_map(dated).collect()
}

fn dated(text: &str) -> Option<(String, String)> {
    let first = text.lines().next()?;
    let head = AdditionKind::ALL.iter().find_map(|kind| first.strip_prefix("# ")?.strip_prefix(kind.word()))?;
    let (_, rest) = head.split_once(" at ")?;
    let (at, _) = rest.split_once(": ")?;
    let rule: Vec<&str> = text.lines().skip_while(|line| line.starts_with('#')).collect();
    Some((rule.join("\n").trim().to_owned(), at.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exclusion_that_stays_the_same_keeps_its_date() {
        let entry = format!(
            "{}\n# Evidence: 3 of 4.\nSecRuleRemoveById 1\n",
            comment(AdditionKind::Exclusion, 50_000, WRITER, "2026-01-02T03:04:05.000Z", "a: b at c")
        );
        let found = dates(&serde_json::json!({ "rules": [entry, "SecRuleRemoveById 2"] }));
        assert!(found.into_iter().eq([("SecRuleRemoveById 1".to_owned(), "2026-01-02T03:04:05.000Z".to_owned())]));
    }
}
