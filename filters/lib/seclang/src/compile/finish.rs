//! The end of compiling: updates, removals, defaults, jumps, and the tables.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use prost::Message as _;

use super::actions::{ActionSet, Verdict};
use super::rules::{Draft, DraftLink};
use super::select::{Removed, RuleIndex};
use super::{Compiler, Defaults, Place, TargetUpdate};
use crate::program::wire::{self, Disruption};
use crate::program::{FORMAT, NOTHING_SELECTED, Program};
use crate::source::Diagnostic;

/// The phase of a rule that names none.
const DEFAULT_PHASE: u8 = 2;
/// The status of a refusal that names none.
const DEFAULT_STATUS: u16 = 403;

/// How many bytes updates may add to rules, all together: each of them may name all rules, so that a short text would take any amount
/// of memory.
const MAX_ADDED: usize = 64 << 20;
/// The memory of a target or an action besides what its encoded form shows, in bytes.
const PLACE: usize = 128;

/// Strings that occur often, by index.
#[derive(Default)]
struct Strings {
    list: Vec<Vec<u8>>,
    index: HashMap<Vec<u8>, u32>,
}

impl Strings {
    fn intern(&mut self, text: &[u8]) -> u32 {
        if let Some(known) = self.index.get(text) {
            return *known;
        }
        let next = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.list.push(text.to_vec());
        self.index.insert(text.to_vec(), next);
        next
    }

    fn intern_optional(&mut self, text: Option<&[u8]>) -> u32 {
        text.map_or(0, |text| self.intern(text).saturating_add(1))
    }
}

/// Where rules may jump to.
struct Jumps<'a> {
    rules: RuleIndex,
    /// By the name of a marker the numbers of rules before each of that name, ascending.
    markers: HashMap<&'a [u8], Vec<usize>>,
    /// Where rule number n of the text is among the rules that are left.
    position: Vec<usize>,
}

impl<'a> Jumps<'a> {
    fn new(drafts: &[Draft], markers: &'a [(Vec<u8>, usize)], position: Vec<usize>) -> Self {
        let mut jumps = Self { rules: RuleIndex::of(drafts), markers: HashMap::new(), position };
        for (name, rules) in markers {
            jumps.markers.entry(name.as_slice()).or_default().push(*rules);
        }
        jumps
    }

    /// The rule of the text behind the first marker of that name behind rule number `at`, or behind the rule with that id.
    fn target(&self, name: &[u8], at: usize) -> Option<usize> {
        let marker = self.markers.get(name).and_then(|markers| {
            let behind = markers.partition_point(|rules| *rules <= at);
            markers.get(behind).copied()
        });
        let by_id = || {
            let id: u64 = std::str::from_utf8(name).ok()?.parse().ok()?;
            self.rules.first(id).filter(|found| *found > at).map(|found| found + 1)
        };
        marker.or_else(by_id)
    }
}

/// Default actions by phase, in the order of the text.
struct PhaseDefaults<'a>(HashMap<u8, Vec<&'a Defaults>>);

impl<'a> PhaseDefaults<'a> {
    fn of(defaults: &'a [Defaults]) -> Self {
        let mut phases: HashMap<u8, Vec<&Defaults>> = HashMap::new();
        for defaults in defaults {
            if let Some(phase) = defaults.actions.phase {
                phases.entry(phase).or_default().push(defaults);
            }
        }
        Self(phases)
    }

    /// The default action of a phase for rule number `at`: the last one before it, or else the first one after it.
    fn at(&self, phase: u8, at: usize) -> Option<&'a ActionSet> {
        let of_phase = self.0.get(&phase)?;
        let before = of_phase.partition_point(|defaults| defaults.rules_before <= at);
        of_phase.get(before.saturating_sub(1)).map(|defaults| &defaults.actions)
    }
}

impl Compiler<'_> {
    pub(super) fn finish(mut self) -> Result<Program, Vec<Diagnostic>> {
        self.refuse_duplicate_ids();
        self.apply_updates();
        let removed = Removed::by(&self.removals);
        let kept: Vec<bool> = self.rules.iter().map(|rule| !removed.has(rule)).collect();
        let mut position = Vec::with_capacity(kept.len() + 1);
        let mut count = 0usize;
        for keep in &kept {
            position.push(count);
            count += usize::from(*keep);
        }
        position.push(count);

        let drafts = std::mem::take(&mut self.rules);
        let markers = std::mem::take(&mut self.markers);
        let jumps = Jumps::new(&drafts, &markers, position);
        let all_defaults = std::mem::take(&mut self.defaults);
        let defaults = PhaseDefaults::of(&all_defaults);
        let mut strings = Strings::default();
        let mut rules = Vec::with_capacity(count);
        for (at, draft) in drafts.iter().enumerate() {
            let Some(jump) = self.jump(draft, at, &jumps) else { continue };
            if kept.get(at).copied().unwrap_or_default() {
                rules.push(self.rule_message(draft, at, jump, &defaults, &mut strings));
            }
        }
        if self.diagnostics.is_empty() {
            return Ok(Program {
                wire: wire::Program {
                    format: FORMAT,
                    settings: Some(self.settings.to_wire()),
                    operators: self.operators,
                    rules,
                    strings: strings.list,
                    warnings: self.warnings,
                },
            });
        }
        let order: HashMap<&str, usize> =
            self.sources.iter().enumerate().map(|(at, source)| (source.origin.as_str(), at)).collect();
        self.diagnostics.sort_by_key(|found| {
            (order.get(found.origin.as_str()).copied().unwrap_or(usize::MAX), found.line, found.column)
        });
        Err(self.diagnostics)
    }

    fn refuse_duplicate_ids(&mut self) {
        let mut seen: HashMap<u64, Place> = HashMap::new();
        let mut twice = Vec::new();
        for rule in &self.rules {
            let Some(id) = rule.actions.id else { continue };
            match seen.entry(id) {
                Entry::Occupied(first) => twice.push((id, rule.place, *first.get())),
                Entry::Vacant(free) => _ = free.insert(rule.place),
            }
        }
        for (id, place, first) in twice {
            let origin = self.sources.get(first.source).map(|source| source.origin.as_str());
            let help = origin.map(|origin| format!("the first rule with this id is at {origin}:{}", self.line(first)));
            self.error(place, format!("the id {id} is used twice"), help, Some(id));
        }
    }

    fn apply_updates(&mut self) {
        let (mut idle, mut added, mut over) = (Vec::new(), 0_usize, None);
        let index = RuleIndex::of(&self.rules);
        for TargetUpdate { selection, targets, place } in &self.target_updates {
            let selected = index.selected(selection);
            let size: usize = targets.iter().map(|(target, _)| target.encoded_len() + PLACE).sum();
            let links: usize =
                selected.iter().filter_map(|rule| self.rules.get(*rule)).map(|rule| rule.links.len()).sum();
            added = added.saturating_add(links.saturating_mul(size));
            if added > MAX_ADDED {
                over = Some(*place);
                break;
            }
            for rule in &selected {
                let links = self.rules.get_mut(*rule).map(|rule| rule.links.as_mut_slice()).unwrap_or_default();
                for (at, link) in links.iter_mut().enumerate() {
                    // Exclusions apply to the whole chain; additional targets to the first test.
                    let wanted = targets.iter().filter(|(_, exclude)| *exclude || at == 0);
                    link.targets.extend(wanted.cloned());
                }
            }
            if selected.is_empty() {
                idle.push(*place);
            }
        }
        for (ids, actions, place) in &self.action_updates {
            let selected = index.with_ids(ids);
            added = added.saturating_add(selected.len().saturating_mul(added_by(actions)));
            if added > MAX_ADDED {
                over = over.or(Some(*place));
                break;
            }
            for rule in &selected {
                if let Some(rule) = self.rules.get_mut(*rule) {
                    update_actions(rule, actions);
                }
            }
            if selected.is_empty() {
                idle.push(*place);
            }
        }
        for place in idle {
            self.warn(place, NOTHING_SELECTED);
        }
        if let Some(place) = over {
            let message = format!("updates of rules add more than {} MiB in all", MAX_ADDED >> 20);
            let help = "name fewer rules, or exclude by a `ctl` action of one rule".to_owned();
            self.error(place, message, Some(help), None);
        }
    }

    /// Where the rule jumps to: the index of a rule plus 1, or 0. `None` if there is no such marker.
    fn jump(&mut self, draft: &Draft, at: usize, jumps: &Jumps<'_>) -> Option<u32> {
        let Some((name, place)) = &draft.actions.skip_after else { return Some(0) };
        let Some(target) = jumps.target(name, at) else {
            let message = format!("there is no marker '{}' after this rule", String::from_utf8_lossy(name));
            let help = Some("add SecMarker with this name after the rules to skip".to_owned());
            self.error(*place, message, help, draft.actions.id);
            return None;
        };
        let target = jumps.position.get(target).copied().unwrap_or(usize::MAX);
        Some(u32::try_from(target).unwrap_or(u32::MAX - 1).saturating_add(1))
    }

    fn rule_message(
        &self,
        draft: &Draft,
        at: usize,
        skip_to: u32,
        defaults: &PhaseDefaults<'_>,
        strings: &mut Strings,
    ) -> wire::Rule {
        let actions = &draft.actions;
        let phase = actions.phase.unwrap_or(DEFAULT_PHASE);
        let none = ActionSet::default();
        let defaults = defaults.at(phase, at).unwrap_or(&none);
        let direct = |verdict| match verdict {
            Some(Verdict::Direct(disruption)) => Some(disruption),
            _ => None,
        };
        let by_default = direct(defaults.verdict).unwrap_or(Disruption::Pass);
        let disruption = direct(actions.verdict).unwrap_or(by_default);
        let redirect = match actions.redirect.is_empty() {
            true => defaults.redirect.clone(),
            false => actions.redirect.clone(),
        };
        let fallback = if disruption == Disruption::Redirect { 302 } else { DEFAULT_STATUS };
        let status = actions.status.or(defaults.status).unwrap_or(fallback);
        let source = self.sources.get(draft.place.source);
        wire::Rule {
            id: actions.id.unwrap_or_default(),
            phase: u32::from(phase),
            links: draft.links.iter().map(|link| link_message(link, defaults)).collect(),
            disruption: disruption.code(),
            status: u32::from(status),
            redirect,
            msg: actions.msg.clone().unwrap_or_default(),
            logdata: actions.logdata.clone().unwrap_or_default(),
            severity: actions.severity.map_or(0, |severity| u32::from(severity.level()) + 1),
            tags: actions.tags.iter().map(|tag| strings.intern(tag)).collect(),
            version: strings.intern_optional(actions.version.as_deref()),
            revision: strings.intern_optional(actions.revision.as_deref()),
            maturity: actions.maturity.unwrap_or_default(),
            accuracy: actions.accuracy.unwrap_or_default(),
            log: actions.log.or(defaults.log).unwrap_or(true),
            audit_log: actions.audit_log.or(defaults.audit_log).unwrap_or(true),
            skip: actions.skip.unwrap_or_default(),
            skip_to,
            origin: strings.intern(source.map_or("", |source| source.origin.as_str()).as_bytes()),
            line: self.line(draft.place),
        }
    }
}

fn link_message(link: &DraftLink, defaults: &ActionSet) -> wire::Link {
    let inherited = if link.actions.only_these_transforms { &[][..] } else { &defaults.transforms };
    let transforms = inherited.iter().chain(&link.actions.transforms);
    let of_kind = |exclusions: bool| {
        let targets = link.targets.iter().filter(move |(_, exclude)| *exclude == exclusions);
        targets.map(|(target, _)| target.clone()).collect()
    };
    wire::Link {
        targets: of_kind(false),
        exclusions: of_kind(true),
        operator: link.operator.map_or(0, |(index, _)| index.saturating_add(1)),
        negated: link.operator.is_some_and(|(_, negated)| negated),
        transforms: transforms.map(|transform| transform.code()).collect(),
        multi_match: link.actions.multi_match,
        capture: link.actions.capture,
        sets: link.actions.sets.clone(),
        controls: link.actions.controls.clone(),
    }
}

/// The bytes that an update of actions adds to one rule.
fn added_by(update: &ActionSet) -> usize {
    let texts = [&update.msg, &update.logdata, &update.version, &update.revision].into_iter().flatten();
    let texts = texts.chain(&update.tags).chain([&update.redirect]).map(|text| text.len() + PLACE);
    let sets = update.sets.iter().map(|set| set.encoded_len() + PLACE);
    let controls = update.controls.iter().map(|control| control.encoded_len() + PLACE);
    texts.chain(sets).chain(controls).sum::<usize>() + update.transforms.len()
}

/// Puts the actions of an update in the place of those of the rule; tags, transformations and assignments are added.
fn update_actions(rule: &mut Draft, update: &ActionSet) {
    let actions = &mut rule.actions;
    if update.verdict.is_some() {
        actions.verdict = update.verdict;
        actions.redirect.clone_from(&update.redirect);
    }
    actions.status = update.status.or(actions.status);
    actions.severity = update.severity.or(actions.severity);
    actions.maturity = update.maturity.or(actions.maturity);
    actions.accuracy = update.accuracy.or(actions.accuracy);
    actions.log = update.log.or(actions.log);
    actions.audit_log = update.audit_log.or(actions.audit_log);
    actions.skip = update.skip.or(actions.skip);
    for (field, value) in [
        (&mut actions.msg, &update.msg),
        (&mut actions.logdata, &update.logdata),
        (&mut actions.version, &update.version),
        (&mut actions.revision, &update.revision),
    ] {
        if value.is_some() {
            field.clone_from(value);
        }
    }
    if update.skip_after.is_some() {
        actions.skip_after.clone_from(&update.skip_after);
    }
    actions.tags.extend(update.tags.iter().cloned());
    if let Some(link) = rule.links.first_mut() {
        if update.only_these_transforms {
            link.actions.transforms.clear();
            link.actions.only_these_transforms = true;
        }
        link.actions.transforms.extend(&update.transforms);
        link.actions.multi_match |= update.multi_match;
        link.actions.capture |= update.capture;
        link.actions.sets.extend(update.sets.iter().cloned());
        link.actions.controls.extend(update.controls.iter().cloned());
    }
}
