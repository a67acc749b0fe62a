//! Exclusions for what a window has counted, each verified by a preview. What was verified is remembered.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use kit::{Item, OperationContext, Tool, View};
use snapshot::{Message as _, PartHash, content_hash};

use super::super::exclusion::{Exclusion, ExclusionKind, IDS, Kept, NamedPaths, Place, described, free_input, reaches};
use super::super::operations::bench;
use super::super::preview::{Bench, Choice, Preview, Together};
use super::super::target::Target;
use super::super::windows::{Entry, Window, entry_key};
use super::super::written::{free_numbers, free_numbers_up_to};
use super::groups::{Groups, group_key};
use super::names::{FoldedEntries, folded_entries};
use super::trade_offs::TradeOff;
use super::with;
use crate::control::composition::elements;
use crate::control::config::WafConfig;
use crate::samples::messages::{Matched, SampledRequest};

/// The exclusions that a call proposes, at most.
const MAX_PROPOSALS: usize = 25;
/// How often an entry has matched before something is proposed.
const MIN_COUNT: u64 = 3;
/// The inputs that a call puts attacks at, beside entries that were verified before: for one, 2,000 attacks run, and four times as
/// many where it is the target of the request.
const FRESH: usize = 3;
/// Why an exclusion that is safe as far as is known is not taken: attacks that are not known may need the rule.
const IDLE: &str =
    "not needed: each request that was sampled is refused for something else, even with all verified exclusions";
/// The verifications that are remembered.
const REMEMBERED: usize = 200;

/// An entry, and what can be done about it.
#[derive(Clone, Debug)]
pub(in super::super) struct Verified {
    pub(in super::super) entry: Entry,
    /// The narrowest exclusion that is safe, or else the narrowest.
    pub(in super::super) proposal: Option<Exclusion>,
    pub(in super::super) preview: Option<Preview>,
    /// It may be applied.
    pub(in super::super) accepted: bool,
    /// The exclusion of another entry ends it.
    pub(in super::super) ended: bool,
    /// It is accepted though so many known attacks pass at its input; 0 for none.
    pub(in super::super) passing: usize,
    /// What its input is kept from then.
    free: Vec<Kept>,
    /// Why, or why not.
    pub(in super::super) note: String,
}

impl Verified {
    pub(super) fn key(&self) -> String {
        entry_key(self.entry.rule_id, &self.entry.target, &self.entry.path)
    }

    fn open(entry: &Entry, note: impl Into<String>) -> Self {
        Self {
            entry: entry.clone(),
            proposal: None,
            preview: None,
            accepted: false,
            ended: false,
            passing: 0,
            free: Vec::new(),
            note: note.into(),
        }
    }

    /// Accepts that its input is kept from all this though so many known attacks pass then, and returns the rule with its number.
    pub(super) fn set_free(&mut self, free: Vec<Kept>, number: u64, passing: usize) -> Option<String> {
        let target = Target::parse(self.entry.target.as_bytes())?;
        let seclang = free_input(&target, &self.entry.path, &free, number, None)?;
        let names = free.iter().map(|kept| match kept {
            Kept::Rule(rule) => rule.to_string(),
            Kept::Tag(tag) => tag.clone(),
        });
        let names = names.collect::<Vec<_>>().join(", ");
        self.proposal = Some(Exclusion {
            kind: ExclusionKind::ScopedTarget,
            seclang: seclang.clone(),
            title: format!("{} on {} is free of {names}", self.entry.target, self.entry.path),
            reach: format!(
                "In requests for {}, no rule of {names} looks at {}; they still look at everything else there, and at everything on all other paths.",
                described(&self.entry.path),
                self.entry.target
            ),
            condition: None,
        });
        (self.free, self.accepted, self.passing) = (free, true, passing);
        self.note = format!("accepted as a trade-off: {passing} known attacks pass at this input");
        Some(seclang)
    }

    /// The exclusion with the number that it is written under.
    pub(in super::super) fn written(&self, number: u64) -> Option<String> {
        let (target, proposal) = (Target::parse(self.entry.target.as_bytes())?, self.proposal.as_ref()?);
        if !self.free.is_empty() {
            return free_input(&target, &self.entry.path, &self.free, number, None);
        }
        let place = Place { rule_id: self.entry.rule_id, target, path: self.entry.path.clone() };
        match proposal.condition {
            Some(condition) => condition.written(proposal.kind, &place, number, None),
            None => Some(Exclusion::new(proposal.kind, &place, number)?.seclang),
        }
    }
}

/// The exclusions that were tried for one input.
type Attempts = Arc<Vec<(Exclusion, Preview)>>;

/// What was verified before.
#[derive(Default)]
pub(super) struct Verifications(Mutex<VecDeque<(PartHash, Attempts)>>);

impl Tool for Verifications {}

impl Verifications {
    fn get(&self, key: &PartHash) -> Option<Attempts> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(known, _)| known == key).map(|(_, tried)| Arc::clone(tried))
    }

    fn put(&self, key: PartHash, tried: &Attempts) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_front((key, Arc::clone(tried)));
        kept.truncate(REMEMBERED);
    }
}

/// How much is verified.
pub(in super::super) struct Effort<'a> {
    /// The entries that are looked at, at most.
    pub(in super::super) entries: usize,
    /// The inputs of those that were not verified before at which attacks run, at most.
    pub(in super::super) fresh: usize,
    /// The threads; `None` for those of a call.
    pub(in super::super) threads: Option<usize>,
    /// What is accepted is tried once more as it is written, and it is said what the rest would cost.
    pub(in super::super) confirm: bool,
    /// Inputs whose exclusions are accepted though known attacks pass there, each as [`TradeOff::is_named`] reads it.
    pub(in super::super) accepted: &'a [String],
    /// Is told how many entries are done, and how many there are.
    pub(in super::super) progress: &'a dyn Fn(usize, usize),
}

/// What was verified, and what the rest would cost.
pub(in super::super) struct Verification {
    pub(in super::super) all: Vec<Verified>,
    /// The input that refuses most comes first.
    pub(in super::super) trade_offs: Vec<TradeOff>,
}

impl Effort<'_> {
    /// That of a call, which has to answer soon.
    const CALL: Effort<'static> = Effort {
        entries: MAX_PROPOSALS,
        fresh: FRESH,
        threads: None,
        confirm: false,
        accepted: &[],
        progress: &|_, _| {},
    };
}

/// [`verify_with`] the effort of a call.
///
/// # Errors
/// As of [`verify_with`].
pub(super) fn verify(
    window: &Window,
    config: &Item<WafConfig>,
    context: &OperationContext<'_>,
    view: &View<'_>,
) -> Result<Vec<Verified>, String> {
    verify_with(&Effort::CALL, window, config, context, view).map(|verification| verification.all)
}

/// The entries that matched most, and what can be done about each.
///
/// # Errors
/// The config does not compile; for people.
pub(in super::super) fn verify_with(
    effort: &Effort<'_>,
    window: &Window,
    config: &Item<WafConfig>,
    context: &OperationContext<'_>,
    view: &View<'_>,
) -> Result<Verification, String> {
    let rules = elements(config, view);
    let named = NamedPaths::of(rules.iter().map(|element| element.text.as_str()));
    let FoldedEntries { entries: folded, keys } = folded_entries(window, |path| named.has(path));
    let mut entries: Vec<&Entry> =
        folded.iter().map(|entry| &**entry).filter(|entry| entry.count >= MIN_COUNT).collect();
    // What would be refused comes first, then what many have sent.
    let order = |entry: &&Entry| (entry.would_block, entry.callers.len(), entry.count, entry.rule_id);
    entries.sort_by(|one, other| {
        order(other).cmp(&order(one)).then_with(|| (&one.target, &one.path).cmp(&(&other.target, &other.path)))
    });
    entries.truncate(effort.entries);
    let samples: BTreeMap<String, (SampledRequest, u32)> = with(context, |known| {
        let of_config = known.matches.all().map(|one| &one.matched).filter(|one| one.config == config.head.id);
        let mut samples = BTreeMap::new();
        for Matched { rule_id, target, path, request, phase, .. } in of_config {
            if let Some(request) = request {
                let key = entry_key(*rule_id, target, path);
                // Of paths that are one, the first has to do.
                let key = keys.get(&key).cloned().unwrap_or(key);
                samples.entry(key).or_insert_with(|| (request.clone(), *phase));
            }
        }
        samples
    })
    .unwrap_or_default();
    let groups = Groups::of(window, &entries);
    let mut found: Vec<Option<Verified>> = Vec::with_capacity(entries.len());
    let (mut choices, mut of_choice) = (Vec::new(), Vec::new());
    for (at, entry) in entries.iter().enumerate() {
        let sample = samples.get(&entry_key(entry.rule_id, &entry.target, &entry.path));
        let place = Target::parse(entry.target.as_bytes()).map(|target| Place {
            rule_id: entry.rule_id,
            target,
            path: entry.path.clone(),
        });
        found.push(match (groups.refused(entry), place, sample) {
            (Some(note), _, _) => Some(Verified::open(entry, note)),
            (None, Some(place), Some((sample, phase))) => {
                let conditions = groups.conditions(entry, &place.target, *phase);
                choices.push(Choice { place, sample: sample.clone(), conditions });
                of_choice.push(at);
                None
            }
            _ => Some(Verified::open(entry, "not verified: no sample of it is kept")),
        });
    }
    let bench = bench(config, context, view);
    let bench = Bench { threads: effort.threads.unwrap_or(bench.threads), ..bench };
    let run = Run {
        effort,
        entries: &entries,
        groups: &groups,
        memory: context.tools.get::<Verifications>(),
        numbers: free_numbers(config, view, choices.len())?,
        fingerprint: bench.fingerprint(),
    };
    // Each choice is tried in two ways, and its input as a trade-off; in two more under a condition, as long as there are numbers.
    let [least, most] = [3, 5].map(|each: usize| choices.len().saturating_mul(each));
    let switches = free_numbers_up_to(config, view, least, most)?;
    let trade_offs = run.verify(Together::new(bench, choices, &switches)?, &of_choice, &mut found)?;
    Ok(Verification { all: found.into_iter().flatten().collect(), trade_offs })
}

/// One verification of many entries.
pub(super) struct Run<'r> {
    pub(super) effort: &'r Effort<'r>,
    pub(super) entries: &'r [&'r Entry],
    pub(super) groups: &'r Groups,
    memory: Arc<Verifications>,
    /// Those that exclusions are written under.
    pub(super) numbers: Vec<u64>,
    fingerprint: PartHash,
}

impl Run<'_> {
    /// Verifies the entries that `of_choice` names, one for each choice.
    fn verify(
        &self,
        mut together: Together<'_>,
        of_choice: &[usize],
        found: &mut [Option<Verified>],
    ) -> Result<Vec<TradeOff>, String> {
        // What is harmless by itself may let attacks pass together with others: each is tried with those that are accepted before it.
        let mut accepted: Vec<(usize, String)> = Vec::new();
        let mut on_all: BTreeMap<(u64, String), usize> = BTreeMap::new();
        let mut fresh = 0;
        for (done, choice) in together.in_order().into_iter().enumerate() {
            (self.effort.progress)(done, of_choice.len());
            let Some((at, entry)) = of_choice.get(choice).and_then(|at| Some((*at, *self.entries.get(*at)?))) else {
                continue;
            };
            if on_all.contains_key(&group_key(entry)) {
                continue;
            }
            let tried = self.tried(choice, entry, &mut together, &accepted, &mut fresh);
            let verified = match tried {
                Some(tried) => judged(entry, &tried),
                None => Verified::open(entry, "not verified yet: ask for the report again"),
            };
            if verified.accepted
                && let Some(kind) = verified.proposal.as_ref().map(|proposal| proposal.kind)
                && let Some(text) = self.numbers.get(accepted.len()).and_then(|number| verified.written(*number))
            {
                accepted.push((choice, text));
                together.accept(choice, kind);
                if kind.is_for_all_paths() {
                    on_all.insert(group_key(entry), at);
                }
            }
            if let Some(place) = found.get_mut(at) {
                *place = Some(verified);
            }
        }
        let trade_offs = match self.effort.confirm {
            true => self.trade_offs(&mut together, of_choice, found, &mut accepted),
            false => Vec::new(),
        };
        for choice in together.idle() {
            let one = of_choice.get(choice).and_then(|at| found.get_mut(*at)?.as_mut());
            if let Some(one) = one.filter(|one| one.accepted && one.passing == 0 && !self.is_alone(one)) {
                one.accepted = false;
                IDLE.clone_into(&mut one.note);
                on_all.remove(&group_key(&one.entry));
                accepted.retain(|(known, _)| *known != choice);
                together.take_back(choice);
            }
        }
        if self.effort.confirm && !accepted.is_empty() {
            for choice in together.confirm(&accepted)? {
                let fallen = of_choice.get(choice).and_then(|at| found.get_mut(*at)?.as_mut());
                if let Some(one) = fallen {
                    one.accepted = false;
                    "not verified: together with the others, as they are written, it does not stand"
                        .clone_into(&mut one.note);
                    on_all.remove(&group_key(&one.entry));
                }
            }
        }
        self.end(&on_all, found);
        Ok(trade_offs)
    }

    /// Whether the rule was all that requests were refused for which an exclusion ends.
    fn is_alone(&self, one: &Verified) -> bool {
        let is_for_all = one.proposal.as_ref().is_some_and(|proposal| proposal.kind.is_for_all_paths());
        let is_meant = |entry: &Entry| is_for_all || reaches(&one.entry.path, &entry.path);
        let key = group_key(&one.entry);
        self.entries.iter().any(|entry| entry.alone > 0 && group_key(entry) == key && is_meant(entry))
    }

    /// Marks the entries that an exclusion for all paths ends.
    fn end(&self, on_all: &BTreeMap<(u64, String), usize>, found: &mut [Option<Verified>]) {
        for (at, (entry, place)) in self.entries.iter().zip(found).enumerate() {
            let by = on_all.get(&group_key(entry)).filter(|by| **by != at).and_then(|by| self.entries.get(*by));
            if let Some(by) = by {
                let note = format!("ended by the exclusion of {}", entry_key(by.rule_id, &by.target, &by.path));
                *place = Some(Verified { ended: true, ..Verified::open(entry, note) });
            } else if place.is_none() {
                *place = Some(Verified::open(entry, "not verified: an exclusion for all paths does not stand"));
            }
        }
    }

    /// The exclusions of an entry, up to the first that is safe together with those that are accepted; `None` if there is no time for them.
    fn tried(
        &self,
        choice: usize,
        entry: &Entry,
        together: &mut Together<'_>,
        accepted: &[(usize, String)],
        fresh: &mut usize,
    ) -> Option<Attempts> {
        let Choice { sample, conditions, .. } = together.choice(choice)?;
        let kinds = self.groups.kinds(entry, *conditions);
        let key = entry_key(entry.rule_id, &entry.target, &entry.path);
        let before: String = accepted.iter().map(|(_, text)| format!("{text}\n")).collect();
        let of = [key.as_bytes(), before.as_bytes(), &sample.encode_to_vec()].concat();
        let around = format!("{kinds:?}{conditions:?}{}", together.surroundings(choice));
        let hash = content_hash(&[self.fingerprint.as_slice(), &of, around.as_bytes()].concat());
        if let Some(tried) = self.memory.get(&hash) {
            return Some(tried);
        }
        if !together.is_prepared(choice) {
            if *fresh >= self.effort.fresh {
                return None;
            }
            *fresh += 1;
        }
        let number = self.numbers.get(accepted.len()).copied().unwrap_or(*IDS.end());
        let mut tried = Vec::new();
        for kind in kinds {
            let Some(exclusion) = together.choice(choice).and_then(|one| one.exclusion(kind, number)) else { continue };
            let preview = together.preview(choice, kind);
            let is_safe = preview.safe;
            tried.push((exclusion, preview));
            if is_safe {
                break;
            }
        }
        let tried = Arc::new(tried);
        self.memory.put(hash, &tried);
        Some(tried)
    }
}

fn judged(entry: &Entry, tried: &[(Exclusion, Preview)]) -> Verified {
    let safe = tried.iter().find(|(_, preview)| preview.safe);
    let Some((exclusion, preview)) = safe.or_else(|| tried.first()) else {
        return Verified::open(entry, "not proposed: the name of the input cannot be written in a rule");
    };
    let missed = preview.corpus.caught_before.saturating_sub(preview.corpus.caught_after);
    let note = match preview {
        Preview { safe: true, by_chance: 1.., .. } => format!(
            "verified, together with those before it: it ends the match for values of that shape, and of {} known attacks that are caught all \
             still are but {}, which are caught by chance: they are of a higher paranoia level",
            preview.corpus.caught_before, preview.by_chance
        ),
        Preview { safe: true, .. } => format!(
            "verified, together with those before it: it ends the match, and all {} known attacks that are caught still are",
            preview.corpus.caught_before
        ),
        Preview { compiles: false, .. } => "not verified: it does not compile".to_owned(),
        Preview { reproduced: false, .. } => "not verified: the sample does not match again".to_owned(),
        Preview { effective: false, .. } => "not verified: the rule still matches".to_owned(),
        _ if missed > 0 => format!("not safe: {missed} known attacks would pass"),
        Preview { is_covered: false, .. } => {
            "not verified: no request on its path is known in which rules find nothing else, or its path crosses that of an exclusion \
             before it"
                .to_owned()
        }
        _ => format!("not safe: it silences other rules, {:?}", preview.collateral_rules),
    };
    Verified {
        entry: entry.clone(),
        proposal: Some(exclusion.clone()),
        preview: Some(preview.clone()),
        accepted: preview.safe,
        ended: false,
        passing: 0,
        free: Vec::new(),
        note,
    }
}
