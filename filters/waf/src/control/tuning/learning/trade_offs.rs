//! What it would cost to let inputs through that are needed for what attacks look like.

use super::super::preview::Together;
use super::super::windows::Entry;
use super::verify::{Run, Verified};

/// An input that is needed for what attacks look like: exclusions that are not safe, together.
#[derive(Clone, Debug)]
pub(in super::super) struct TradeOff {
    pub(in super::super) target: String,
    pub(in super::super) path: String,
    /// The rules that match there and have no safe exclusion.
    pub(in super::super) rules: Vec<u64>,
    /// The requests that one of them refuses, at least.
    pub(in super::super) would_block: u64,
    /// The attacks that are caught at the input, and those of them that would pass.
    pub(in super::super) caught: usize,
    pub(in super::super) passing: usize,
    /// The exclusions are accepted nevertheless.
    pub(in super::super) accepted: bool,
}

impl TradeOff {
    /// Whether a text names the input.
    pub(in super::super) fn is_named(&self, text: &str) -> bool {
        names_input(text, &self.target, &self.path)
    }
}

/// Whether a text names an input: `all`, `ARGS:text`, or `ARGS:text on /issues/preview`.
pub(super) fn names_input(text: &str, input: &str, at: &str) -> bool {
    let (target, path) = match text.split_once(" on ") {
        Some((target, path)) => (target, Some(path)),
        None => (text, None),
    };
    let is_target = target.eq_ignore_ascii_case(input) || target == "all" && path.is_none();
    is_target && path.is_none_or(|path| path == at)
}

impl Run<'_> {
    /// What it would cost to let an input through whose entries have no safe exclusion. Inputs that are named are let through, each by one
    /// rule in place of those that were accepted for it.
    pub(super) fn trade_offs(
        &self,
        together: &mut Together<'_>,
        of_choice: &[usize],
        found: &mut [Option<Verified>],
        accepted: &mut Vec<(usize, String)>,
    ) -> Vec<TradeOff> {
        let mut trade_offs = Vec::new();
        let mut numbers = self.numbers.iter().skip(accepted.len());
        for choices in together.by_input() {
            let entry = |choice: &usize| self.entries.get(*of_choice.get(*choice)?).copied();
            let is_open = |choice: &&usize| {
                let one = of_choice.get(**choice).and_then(|at| found.get(*at)?.as_ref());
                let is_effective = |one: &Verified| one.preview.as_ref().is_some_and(|preview| preview.effective);
                one.is_some_and(|one| !one.accepted && is_effective(one) && self.groups.is_sent_on_path(&one.entry))
            };
            let open: Vec<usize> = choices.iter().filter(is_open).copied().collect();
            let entries: Vec<&Entry> = open.iter().filter_map(entry).collect();
            let Some((first, at)) = entries.first().zip(open.first().and_then(|choice| of_choice.get(*choice))) else {
                continue;
            };
            let (caught, passing) = together.passing(*open.first().unwrap_or(&0));
            let mut trade_off = TradeOff {
                target: first.target.clone(),
                path: first.path.clone(),
                rules: entries.iter().map(|entry| entry.rule_id).collect(),
                would_block: entries.iter().map(|entry| entry.would_block).max().unwrap_or_default(),
                caught,
                passing,
                accepted: false,
            };
            let is_named = self.effort.accepted.iter().any(|text| trade_off.is_named(text));
            let one = found.get_mut(*at).and_then(Option::as_mut).filter(|_| is_named);
            if let Some((one, number)) = one.zip(numbers.next())
                && let Some(text) = one.set_free(together.set_free(*open.first().unwrap_or(&0)), *number, passing)
            {
                let note = format!("ended by the exclusion of {}", one.key());
                trade_off.accepted = true;
                let is_scoped =
                    |one: &Verified| one.proposal.as_ref().is_none_or(|proposal| !proposal.kind.is_for_all_paths());
                for choice in choices.iter().filter(|choice| open.first() != Some(choice)) {
                    let other = of_choice.get(*choice).and_then(|at| found.get_mut(*at)?.as_mut());
                    if let Some(other) = other.filter(|other| is_scoped(other)) {
                        (other.accepted, other.ended) = (false, true);
                        other.note.clone_from(&note);
                        accepted.retain(|(known, _)| known != choice);
                    }
                }
                accepted.extend(open.first().map(|choice| (*choice, text)));
            }
            trade_offs.push(trade_off);
        }
        trade_offs.sort_by_key(|one| (std::cmp::Reverse(one.would_block), one.target.clone(), one.path.clone()));
        trade_offs
    }
}
