//! What an exclusion would change: the sample, known attacks and recorded traffic, through the engine with it and without it.

mod attacks;
mod bench;
mod carriers;
mod parallel;
mod together;
mod traffic;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;
use snapshot::{Message as _, content_hash};

use super::exclusion::{Exclusion, Place};
use super::matches::KeptMatch;
use super::target::Target;
use crate::control::operations::trial::ReadRequest;
use crate::samples::messages::SampledRequest;
use attacks::{Outcome, Seen, Tried, candidates, injected, outcome, seen};
pub(super) use attacks::{is_blocked, missed, read};
pub(super) use bench::{Bases, Bench};
use carriers::{carrier, clean_carrier};
use parallel::each;
pub(super) use together::{Choice, Together};
use traffic::Traffic;
pub(super) use traffic::TrafficOutcome;

/// The regressions that are listed, at most.
const MAX_LISTED: usize = 50;

/// The outcome of a preview.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Preview {
    /// The exclusion compiles with all other rules of the config.
    pub(super) compiles: bool,
    /// Why it does not.
    pub(super) error: Option<String>,
    /// The match was had again.
    pub(super) reproduced: bool,
    /// The exclusion ends it.
    pub(super) effective: bool,
    /// It compiles and ends the match, every attack that was caught still is, those that were caught by chance left out, and no other rule is
    /// silenced.
    pub(super) safe: bool,
    /// Attacks that are not caught any more, at most 50.
    pub(super) regressions: Vec<Regression>,
    /// Those of them that were caught by chance: attacks of a higher paranoia level than the config's, made of letters, digits and a few
    /// marks, that no rule for such attacks has found. Only for exclusions that hold for values of a shape.
    pub(super) by_chance: usize,
    /// Other rules that matched the sample at an input, and do not any more.
    pub(super) collateral_rules: Vec<u64>,
    /// The sample without the exclusion, and with it.
    pub(super) sample_before: Option<SampleOutcome>,
    pub(super) sample_after: Option<SampleOutcome>,
    /// The attacks that were tried.
    pub(super) corpus: CorpusOutcome,
    /// The keys of other matches that it ends as well.
    pub(super) also_ended: Vec<String>,
    /// The attacks at the input were in a request in which rules find nothing else, and on the path of the exclusion; there is no path where
    /// the exclusion meets one that was accepted before it and no attack runs; and an application takes the method, if the input is one.
    pub(super) is_covered: bool,
    /// What the recording that was uploaded last comes to; `None` where there is none, or the exclusion does not compile.
    pub(super) recording: Option<TrafficOutcome>,
    /// Why it could not be replayed.
    pub(super) recording_error: Option<String>,
}

/// An attack that is not caught any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Regression {
    pub(super) name: String,
    pub(super) category: String,
    /// The number of the core rule set's file that is meant to catch it, and the lowest paranoia level at which it does.
    pub(super) family: u32,
    pub(super) paranoia: u32,
    /// Where the payload was: at the input of the exclusion, or in a request of its own.
    pub(super) at: &'static str,
    pub(super) caught_before: bool,
    pub(super) caught_after: bool,
}

/// What the engine makes of the sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct SampleOutcome {
    /// The rules that matched.
    pub(super) rule_ids: Vec<u64>,
    /// It is refused, or would be if the config blocked.
    pub(super) blocked: bool,
}

/// How many attacks were tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct CorpusOutcome {
    /// Requests with an attack, those at the input included.
    pub(super) attacks: usize,
    /// Those with an attack at the input of the exclusion.
    pub(super) injected: usize,
    pub(super) caught_before: usize,
    pub(super) caught_after: usize,
}

impl CorpusOutcome {
    /// Counts an attack that nothing has changed yet.
    fn add(&mut self, outcome: &Outcome, is_injected: bool) {
        let is_tried = *outcome != Outcome::NotTried;
        self.attacks += usize::from(is_tried);
        self.injected += usize::from(is_tried && is_injected);
        self.caught_before += usize::from(matches!(outcome, Outcome::Caught(_)));
        self.caught_after = self.caught_before;
    }
}

/// Previews of exclusions for one match.
pub(super) struct Previews<'a> {
    bench: Bench<'a>,
    place: Place,
    base: Arc<Base>,
    /// Where the input is a method, a caller has used it: the backend has answered well.
    is_used: bool,
    /// Recorded traffic; why it cannot be replayed, for people.
    traffic: Result<Option<Traffic>, String>,
}

/// What is the same for all exclusions of a match.
struct Base {
    /// The request of the match.
    sample: Option<ReadRequest>,
    /// What it comes to without an exclusion.
    seen: Option<Seen>,
    /// What attacks are put into.
    carrier: SampledRequest,
    /// Rules find nothing in the carrier.
    is_clean: bool,
    /// One of the attacks at the input is on the path.
    is_on_path: bool,
    /// The outcome of each candidate without an exclusion. The requests are made anew for each preview: all of them would take much memory.
    caught: Vec<Outcome>,
    corpus: CorpusOutcome,
    /// Other matches that are had again, with their keys.
    others: Vec<(String, Place, ReadRequest)>,
}

impl<'a> Previews<'a> {
    /// Runs everything without an exclusion, unless that was done lately.
    ///
    /// # Errors
    /// The config does not compile; for people.
    pub(super) fn new(
        bench: Bench<'a>,
        place: Place,
        sample: Option<&SampledRequest>,
        others: &[KeptMatch],
    ) -> Result<Self, String> {
        let requests = others.iter().filter_map(|other| Some((other.key(), other.matched.request.as_ref()?)));
        let requests: Vec<u8> =
            requests.flat_map(|(key, request)| [key.into_bytes(), request.encode_to_vec()].concat()).collect();
        let sampled = sample.map(SampledRequest::encode_to_vec).unwrap_or_default();
        let at = format!("{}|{}|{}", place.rule_id, place.target, place.path);
        let key = [bench.fingerprint().as_slice(), at.as_bytes(), &sampled, &content_hash(&requests)].concat();
        let key = content_hash(&key);
        let base = match bench.bases.get(&key) {
            Some(base) => base,
            None => {
                let base = Arc::new(Base::new(&bench, &place, sample, others)?);
                bench.bases.put(key, &base);
                base
            }
        };
        let traffic = Traffic::latest(&bench);
        Ok(Self { bench, place, base, is_used: true, traffic })
    }

    /// With the number of callers who have used the input. Scans send methods that no application takes, which is no reason for an exclusion.
    pub(super) fn with_callers(self, callers: usize) -> Self {
        Self { is_used: self.place.target.method().is_none() || callers > 0, ..self }
    }

    /// Whether the input is no method, or one that a caller has used.
    pub(super) fn is_used(&self) -> bool {
        self.is_used
    }

    /// What SecLang that a person has written would change.
    pub(super) fn preview(&self, seclang: &str) -> Preview {
        self.run(seclang, None, self.base.is_on_path)
    }

    /// What an exclusion for the match would change. It keeps one rule from an input, or switches it off, so that only attacks that the rule
    /// has matched can come to another end: the rest is not run again.
    pub(super) fn preview_exclusion(&self, exclusion: &Exclusion) -> Preview {
        let is_met = self.base.is_on_path || exclusion.kind.is_for_all_paths();
        self.run(&exclusion.seclang, Some(&BTreeSet::from([self.place.rule_id])), is_met)
    }

    /// `changed` are the rules that SecLang changes; `None` for any. `is_met` says whether attacks run where it holds.
    fn run(&self, seclang: &str, changed: Option<&BTreeSet<u64>>, is_met: bool) -> Preview {
        let base = &self.base;
        let mut preview = Preview { corpus: base.corpus.clone(), ..Preview::default() };
        let before = base.seen.as_ref();
        let built = match self.bench.build(Some(seclang)) {
            Ok(built) => built,
            Err(why) => {
                preview.sample(&self.place, before, None);
                return Preview { error: Some(why), ..preview };
            }
        };
        preview.compiles = true;
        let trial = self.bench.trial(&built);
        let after = base.sample.as_ref().and_then(|request| seen(&trial, request, b""));
        preview.sample(&self.place, before, after.as_ref());
        let at: (&Target, &str) = (&self.place.target, &self.place.path);
        let caught = candidates(at.0).iter().zip(&base.caught);
        let touched = caught.filter(|(_, outcome)| match outcome {
            Outcome::Caught(hits) => changed.is_none_or(|changed| hits.have_rule(changed)),
            _ => false,
        });
        let touched: Vec<_> = touched.map(|(candidate, _)| candidate).collect();
        let now_missed = each(self.bench.threads, &touched, |candidate| {
            let tried = candidate.build(&base.carrier, at)?;
            (outcome(&trial, Some(&tried), b"") == Outcome::Passed).then_some(tried)
        });
        preview.corpus.caught_after = preview.corpus.caught_before;
        now_missed.into_iter().flatten().for_each(|tried| preview.miss(tried));
        let ended = base
            .others
            .iter()
            .filter(|(_, place, request)| seen(&trial, request, b"").is_some_and(|seen| !seen.has(place)));
        preview.also_ended = ended.map(|(key, _, _)| key.clone()).collect();
        preview.is_covered = base.is_clean && is_met && self.is_used;
        match &self.traffic {
            Ok(Some(traffic)) => {
                preview.recording = Some(traffic.outcome(self.bench.threads, &trial, &self.place, changed));
            }
            Ok(None) => {}
            Err(why) => preview.recording_error = Some(why.clone()),
        }
        preview.judge();
        preview
    }
}

impl Preview {
    /// What the sample comes to without the exclusion, and with it.
    fn sample(&mut self, place: &Place, before: Option<&Seen>, after: Option<&Seen>) {
        self.reproduced = before.is_some_and(|seen| seen.has(place));
        self.sample_before = before.map(Seen::outcome);
        self.sample_after = after.map(Seen::outcome);
        if let (Some(before), Some(after)) = (before, after) {
            self.effective = self.reproduced && !after.has(place);
            let silenced = before.inputs.iter().map(|(rule, _)| *rule).filter(|rule| *rule != place.rule_id);
            let silenced: BTreeSet<u64> = silenced.filter(|rule| !after.rules.contains(rule)).collect();
            self.collateral_rules = silenced.into_iter().collect();
        }
    }

    /// An attack that was caught by chance, and is not any more.
    fn miss_by_chance(&mut self, tried: Tried) {
        self.by_chance = self.by_chance.saturating_add(1);
        self.miss(tried);
    }

    /// An attack that is not caught any more.
    fn miss(&mut self, tried: Tried) {
        self.corpus.caught_after = self.corpus.caught_after.saturating_sub(1);
        if self.regressions.len() < MAX_LISTED {
            self.regressions.push(Regression {
                name: tried.name,
                category: tried.attack.category.clone(),
                family: tried.attack.family,
                paranoia: tried.attack.paranoia,
                at: tried.at,
                caught_before: true,
                caught_after: false,
            });
        }
    }

    fn judge(&mut self) {
        let is_missed = self.corpus.caught_after.saturating_add(self.by_chance) < self.corpus.caught_before;
        // Attacks in a request that is refused anyway say nothing.
        self.safe = self.effective && self.is_covered && !is_missed && self.collateral_rules.is_empty();
    }
}

impl Base {
    fn new(
        bench: &Bench<'_>,
        place: &Place,
        sample: Option<&SampledRequest>,
        stored: &[KeptMatch],
    ) -> Result<Self, String> {
        let built = bench.build(None).map_err(|why| format!("the rules of the WAF config do not compile: {why}"))?;
        let trial = bench.trial(&built);
        let read_sample = sample.map(read);
        let seen = read_sample.as_ref().and_then(|request| self::seen(&trial, request, b""));
        let others = seen.iter().flat_map(|seen| &seen.inputs).filter_map(|(_, name)| Target::parse(name.as_bytes()));
        let others: Vec<Target> = others.filter(|other| *other != place.target).collect();
        let clean = clean_carrier((&trial, b""), sample.into_iter(), (&place.target, &place.path), &others);
        let is_clean = clean.is_some();
        let carrier = clean.unwrap_or_else(|| carrier(sample, &place.target, &place.path));
        let alone = bench.alone(&trial);
        let injected: Vec<_> = injected(&place.target).collect();
        let injected = each(bench.threads, &injected, |candidate| {
            let tried = candidate.build(&carrier, (&place.target, &place.path));
            (outcome(&trial, tried.as_ref(), b""), tried.is_some_and(|tried| tried.is_on_path))
        });
        let is_on_path = injected.iter().any(|(_, is_on_path)| *is_on_path);
        let (mut alone, mut injected) = (alone.iter().cloned(), injected.into_iter().map(|(outcome, _)| outcome));
        let (mut caught, mut corpus) = (Vec::new(), CorpusOutcome::default());
        for candidate in candidates(&place.target) {
            let is_injected = candidate.payload.is_some();
            let outcome = if is_injected { injected.next() } else { alone.next() };
            let outcome = outcome.unwrap_or(Outcome::NotTried);
            corpus.add(&outcome, is_injected);
            caught.push(outcome);
        }
        let is_had_again = |other: &KeptMatch| {
            let matched = &other.matched;
            let (target, request) = (Target::parse(matched.target.as_bytes())?, read(matched.request.as_ref()?));
            let other_place = Place { rule_id: matched.rule_id, target, path: matched.path.clone() };
            let is_again = other_place != *place && self::seen(&trial, &request, b"")?.has(&other_place);
            is_again.then(|| (other.key(), other_place, request))
        };
        let again = stored.iter().filter_map(is_had_again).collect();
        Ok(Self { sample: read_sample, seen, carrier, is_clean, is_on_path, caught, corpus, others: again })
    }
}

#[cfg(test)]
mod tests;
