//! Where two engines differ, and whether it is known why.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Value, json};

use super::case::Case;
use super::explained::{Explained, Run};
use super::ours::Answer;
use super::reading::{Reading, read};

/// Who reports a rule that the other does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Our engine.
    Ours,
    /// libmodsecurity.
    Peer,
}

/// The rule that stands for scores that differ although the same rules matched.
pub const SCORES: u64 = 0;

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    /// The exchange.
    pub case: String,
    /// The rule, or [`SCORES`].
    pub rule: u64,
    /// Who reports it.
    pub side: Side,
    /// The entry of the list that explains it.
    pub entry: Option<usize>,
}

/// All differences of a run.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// How many exchanges were compared.
    pub cases: usize,
    /// How many rules both reported, over all exchanges.
    pub agreements: usize,
    /// The differences in the order of the exchanges.
    pub disagreements: Vec<Disagreement>,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Peer => "peer",
        }
    }
}

impl Comparison {
    /// Adds what one exchange shows. `ask` is our engine: it is asked again where an explanation has to be tested.
    pub fn add(&mut self, case: &Case, peer: &Answer, explained: &Explained, ask: impl Fn(&Case) -> Answer) {
        let ours = &ask(case);
        self.cases += 1;
        let both: BTreeSet<u64> = ours.ids.intersection(&peer.ids).copied().collect();
        self.agreements += both.len();
        let only_ours = ours.ids.difference(&peer.ids).map(|&rule| (rule, Side::Ours));
        let only_peer = peer.ids.difference(&ours.ids).map(|&rule| (rule, Side::Peer));
        let mut found: Vec<(u64, Side)> = only_ours.chain(only_peer).collect();
        // Other rules mean other scores: nothing new is said by that.
        if found.is_empty() && ours.scores != peer.scores {
            found.push((SCORES, Side::Ours));
        }
        let mut asked: BTreeMap<Vec<Reading>, Vec<Answer>> = BTreeMap::new();
        let mut find = |rule: u64, side: Side| {
            explained.find(case, &both, (rule, side), |readings| {
                let again = || read(case, readings).iter().map(&ask).collect();
                let answers: &Vec<Answer> = asked.entry(readings.to_vec()).or_insert_with(again);
                answers.iter().any(|answer| answer.agrees(peer, rule))
            })
        };
        for (rule, side) in found {
            self.disagreements.push(Disagreement { case: case.name.clone(), rule, side, entry: find(rule, side) });
        }
    }

    /// The differences that nothing explains.
    pub fn unexplained(&self) -> impl Iterator<Item = &Disagreement> {
        self.disagreements.iter().filter(|one| one.entry.is_none())
    }

    /// How many exchanges show a difference.
    #[must_use]
    pub fn differing_cases(&self) -> usize {
        let mut cases: Vec<&str> = self.disagreements.iter().map(|one| one.case.as_str()).collect();
        cases.dedup();
        cases.len()
    }

    /// The causes on the list that this run should need, and that explain nothing of what was found.
    #[must_use]
    pub fn stale<'a>(&self, explained: &'a Explained, run: Run) -> Vec<&'a str> {
        let used = |at: usize| self.disagreements.iter().any(|one| one.entry == Some(at));
        let entries = explained.entries.iter().enumerate();
        entries.filter(|(at, entry)| entry.seen == run && !used(*at)).map(|(_, entry)| entry.cause.as_str()).collect()
    }

    /// The differences by rule, side and cause: a table, the unexplained ones first.
    #[must_use]
    pub fn table(&self, explained: &Explained) -> String {
        let mut text = String::new();
        let groups = self.groups();
        if !groups.is_empty() {
            let _ = writeln!(text, "{:>6}  {:8} {:6} {:40} in", "times", "rule", "side", "cause");
        }
        for ((entry, rule, side), cases) in groups {
            let cause = entry.and_then(|at| explained.entries.get(at)).map_or("NOT EXPLAINED", |entry| &entry.cause);
            let rule = if rule == SCORES { "scores".to_owned() } else { rule.to_string() };
            let shown: Vec<&str> = cases.iter().take(4).copied().collect();
            let more = if cases.len() > shown.len() { ", ..." } else { "" };
            let count = cases.len();
            let _ = writeln!(text, "{count:6}  {rule:8} {:6} {cause:40} {}{more}", side.name(), shown.join(", "));
        }
        text
    }

    /// The same as JSON.
    #[must_use]
    pub fn json(&self, explained: &Explained, stale: &[&str]) -> Value {
        let groups = self.groups();
        let groups = groups.into_iter().map(|((entry, rule, side), cases)| {
            let entry = entry.and_then(|at| explained.entries.get(at));
            json!({
                "rule": rule,
                "side": side.name(),
                "cause": entry.map(|entry| &entry.cause),
                "reason": entry.map(|entry| entry.reason.trim()),
                "cases": cases,
            })
        });
        json!({
            "cases": self.cases,
            "agreements": self.agreements,
            "disagreements": self.disagreements.len(),
            "unexplained": self.unexplained().count(),
            "differing_cases": self.differing_cases(),
            "groups": groups.collect::<Vec<_>>(),
            "stale": stale,
        })
    }

    fn groups(&self) -> BTreeMap<(Option<usize>, u64, Side), Vec<&str>> {
        let mut groups: BTreeMap<_, Vec<&str>> = BTreeMap::new();
        for one in &self.disagreements {
            groups.entry((one.entry, one.rule, one.side)).or_default().push(&one.case);
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(ids: &[u64], scores: &str) -> Answer {
        Answer { ids: ids.iter().copied().collect(), scores: scores.to_owned() }
    }

    #[test]
    fn differences_are_found_explained_and_counted() {
        let list = "[{cause: known, rules: [3], side: peer, reason: r}, {cause: other, rules: [9], reason: r}, \
                    {cause: old, rules: [4], reason: r}, {cause: elsewhere, rules: [5], seen: {seed: 2}, reason: r}]";
        let list = Explained::parse(list).unwrap();
        let mut comparison = Comparison::default();
        comparison.add(&Case::default(), &answer(&[1, 3, 9], "8"), &list, |_| answer(&[1, 2], "5"));
        let found: Vec<_> = comparison.disagreements.iter().map(|one| (one.rule, one.side, one.entry)).collect();
        assert_eq!(found, [(2, Side::Ours, None), (3, Side::Peer, Some(0)), (9, Side::Peer, Some(1))]);
        assert_eq!((comparison.agreements, comparison.unexplained().count()), (1, 1));
        assert_eq!(comparison.stale(&list, Run::default()), ["old"]);
        assert_eq!(comparison.stale(&list, Run { seed: 2, tests: false }), ["elsewhere"]);
        assert!(comparison.table(&list).contains("NOT EXPLAINED"));
    }

    #[test]
    fn scores_count_where_the_rules_agree() {
        let mut comparison = Comparison::default();
        comparison.add(&Case::default(), &answer(&[1], "6"), &Explained::default(), |_| answer(&[1], "5"));
        assert_eq!(comparison.disagreements[0].rule, SCORES);
    }

    #[test]
    fn a_reading_is_put_to_the_test() {
        let list = Explained::parse("[{cause: cut, readings: [without-fragment], reason: r}]").unwrap();
        let case = Case { uri: b"/#a".to_vec(), ..Case::default() };
        // Rule 1 is about the fragment, rule 2 is not.
        let ask = |case: &Case| if case.uri == b"/" { answer(&[2], "") } else { answer(&[1, 2], "") };
        let mut comparison = Comparison::default();
        comparison.add(&case, &answer(&[], ""), &list, ask);
        let found: Vec<_> = comparison.disagreements.iter().map(|one| (one.rule, one.entry)).collect();
        assert_eq!(found, [(1, Some(0)), (2, None)]);
    }
}
