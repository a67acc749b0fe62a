//! Masks values in the reports of a transaction: `sanitiseArg` and the like.
//!
//! Reports are masked at the end, since the rules with these actions usually run in the last phase.

use memchr::memmem;

use super::limits::SANITISED;
use super::report::{MatchedInput, MatchedRule};
use super::transaction::Transaction;
use crate::vocabulary::Variable;

/// Shorter values are masked where they matched, and not looked for elsewhere: they occur everywhere.
const SHORTEST: usize = 3;

/// The values to mask.
#[derive(Debug, Default)]
pub(super) struct Sanitised {
    /// A collection and a name in it.
    names: Vec<(Variable, Vec<u8>)>,
    /// Full names of matches, as `ARGS:id`.
    matches: Vec<Vec<u8>>,
    /// A limit was exceeded: everything is masked.
    overflown: bool,
}

impl Transaction {
    /// The names in collections that rules sanitise, for reports beyond [`Transaction::matched_rules`]; `None` if they are too
    /// many, so that everything is masked.
    pub fn sanitised_names(&self) -> Option<impl Iterator<Item = &[u8]>> {
        let behind_colon = |full: &'_ Vec<u8>| full.iter().position(|&byte| byte == b':').map_or(0, |at| at + 1);
        let named = self.sanitised.names.iter().map(|(_, name)| name.as_slice());
        let matches = self.sanitised.matches.iter();
        let matches = matches.map(move |full| full.get(behind_colon(full)..).unwrap_or_default());
        (!self.sanitised.overflown).then(|| named.chain(matches))
    }

    /// Adds a name in a collection, or the last matches.
    pub(super) fn sanitise(&mut self, variable: Variable, name: &[u8]) {
        if variable == Variable::MatchedVar {
            self.name_matches();
            // Earlier matches are noted.
            while let Some(entry) = self.matched.named.get(self.matched.sanitised).copied() {
                self.matched.sanitised += 1;
                self.arena.budget.charge_list(self.sanitised.matches.len());
                let name = self.arena.get(entry.name);
                if self.sanitised.matches.iter().any(|known| known == name) {
                    continue;
                }
                if self.sanitised.matches.len() >= SANITISED {
                    self.sanitised.overflown = true;
                    return;
                }
                self.sanitised.matches.push(name.to_vec());
            }
            return;
        }
        let name = name.to_ascii_lowercase();
        self.arena.budget.charge_list(self.sanitised.names.len());
        let known = self.sanitised.names.iter().any(|(kind, other)| *kind == variable && *other == name);
        if known {
            return;
        }
        if self.sanitised.names.len() >= SANITISED {
            self.sanitised.overflown = true;
            return;
        }
        self.sanitised.names.push((variable, name));
    }

    /// Masks the reports.
    pub(super) fn mask_reports(&mut self) {
        if self.sanitised.names.is_empty() && self.sanitised.matches.is_empty() {
            return;
        }
        let mut reports = std::mem::take(&mut self.matched_rules);
        let values = self.arguments.len() + self.request_headers.entries.len() + self.response_headers.entries.len();
        self.arena.budget.charge_list(values.saturating_mul(self.sanitised.names.len()));
        let secrets = if self.arena.budget.is_spent() { Vec::new() } else { self.secrets() };
        self.sanitised.overflown |= secrets.len() > SANITISED;
        let length: usize = reports.iter_mut().flat_map(texts).map(|text| text.len()).sum();
        self.arena.budget.charge_search(length.saturating_mul(secrets.len()));
        if self.sanitised.overflown || self.arena.budget.is_spent() {
            // Too many values, or too much text to search: everything is masked.
            for report in &mut reports {
                texts(report).for_each(|text| text.fill(b'*'));
            }
            for found in [&mut self.intervention, &mut self.would_block].into_iter().flatten() {
                found.msg.fill(b'*');
            }
            self.matched_rules = reports;
            return;
        }
        for report in &mut reports {
            self.mask(report, &secrets);
        }
        self.matched_rules = reports;
        for found in [&mut self.intervention, &mut self.would_block].into_iter().flatten() {
            secrets.iter().for_each(|secret| hide(&mut found.msg, secret));
        }
    }

    fn mask(&self, report: &mut MatchedRule, secrets: &[Vec<u8>]) {
        // The result of a transformation or a pattern may reveal the value: so may what the rest of the chain makes of it.
        let mut any = false;
        for MatchedInput { variable, value } in &mut report.earlier {
            if self.is_masked(variable) {
                value.fill(b'*');
                any = true;
            }
        }
        if self.is_masked(&report.variable) || any && is_derived(&report.variable) {
            report.value.fill(b'*');
            any = true;
        }
        if any {
            report.logdata.fill(b'*');
        }
        for text in texts(report) {
            secrets.iter().for_each(|secret| hide(text, secret));
        }
    }

    /// Whether the values of a full name are masked.
    fn is_masked(&self, full: &Vec<u8>) -> bool {
        let (variable, name) = split(full);
        let by_name = variable.is_some_and(|variable| {
            let mut names = self.sanitised.names.iter();
            names.any(|(kind, wanted)| holds(*kind, variable) && wanted.eq_ignore_ascii_case(name))
        });
        by_name || self.sanitised.matches.contains(full)
    }

    /// The values that are masked wherever they stand, longest first.
    fn secrets(&self) -> Vec<Vec<u8>> {
        let mut found: Vec<Vec<u8>> = Vec::new();
        for (variable, name) in &self.sanitised.names {
            let entries: Vec<_> = match variable {
                Variable::RequestHeaders => self.request_headers.entries.iter().collect(),
                Variable::ResponseHeaders => self.response_headers.entries.iter().collect(),
                _ => self.arguments.iter().map(|(_, entry)| entry).collect(),
            };
            let named = entries.into_iter().filter(|entry| self.arena.get(entry.name).eq_ignore_ascii_case(name));
            found.extend(named.map(|entry| self.arena.get(entry.value).to_vec()));
        }
        found.retain(|secret| secret.len() >= SHORTEST);
        found.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        found.dedup();
        found
    }
}

/// What a report shows of requests and responses.
fn texts(report: &mut MatchedRule) -> impl Iterator<Item = &mut Vec<u8>> {
    let earlier = report.earlier.iter_mut().map(|input| &mut input.value);
    [&mut report.value, &mut report.logdata, &mut report.msg].into_iter().chain(earlier)
}

/// The collection of a full name, and the name in it.
fn split(full: &[u8]) -> (Option<Variable>, &[u8]) {
    let (collection, name) = match full.iter().position(|&byte| byte == b':') {
        Some(at) => (full.get(..at), full.get(at + 1..).unwrap_or_default()),
        None => (Some(full), &[][..]),
    };
    (collection.and_then(|name| std::str::from_utf8(name).ok()).and_then(Variable::from_name), name)
}

/// Whether a variable holds parts of what matched before it in the chain.
fn is_derived(full: &[u8]) -> bool {
    matches!(split(full).0, Some(Variable::Tx | Variable::MatchedVar | Variable::MatchedVars))
}

/// Whether a variable shows values of the collection that is masked.
fn holds(masked: Variable, variable: Variable) -> bool {
    masked == variable || (masked == Variable::Args && matches!(variable, Variable::ArgsGet | Variable::ArgsPost))
}

fn hide(text: &mut [u8], secret: &[u8]) {
    let places: Vec<usize> = memmem::find_iter(text, secret).collect();
    for at in places {
        if let Some(shown) = text.get_mut(at..at + secret.len()) {
            shown.fill(b'*');
        }
    }
}
