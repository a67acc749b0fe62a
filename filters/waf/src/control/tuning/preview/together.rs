//! Exclusions that are tried one after the other, each with those that were accepted before it.
//!
//! One engine has all of them, each behind a switch: the unique id of a request names those that are on, so that no trial compiles anything.
//! What an attack is caught by at one input must not be what another input of the same request is refused for wrongly: attacks at an input
//! run with all exclusions of the other inputs on its path, accepted or not. So the inputs do not depend on each other, and an attack
//! counts as caught only if it is for its own sake.

use std::collections::BTreeSet;
use std::sync::Arc;

use exchange::fold::fold;

use super::super::exclusion::{ExclusionKind, Kept, Place, free_input, switched};
use super::super::target::Target;
use super::Preview;
use super::attacks::{Hits, Outcome, alone, candidates, carrier, outcome, read, seen};
use super::bench::{Alone, Bench};
use super::parallel::each;
use crate::control::operations::engines::Built;
use crate::control::operations::trial::Trial;
use crate::control::tuning::corpus;
use crate::samples;
use crate::samples::messages::SampledRequest;
use crate::samples::target::Input;

/// The paths on which an exclusion for all paths is tried, at most, beside those where attacks have run anyway.
const MAX_PATHS: usize = 3;

/// From how many rules that match at an input on it is taken for what their attacks look like, so that all such rules are let off.
const MANY_RULES: usize = 4;

/// An exclusion that may be tried: of a match, with its request.
pub(in super::super) struct Choice {
    pub(in super::super) place: Place,
    pub(in super::super) sample: SampledRequest,
}

/// All of them.
pub(in super::super) struct Together<'a> {
    bench: Bench<'a>,
    /// With all exclusions, each behind its switch.
    built: Built,
    choices: Vec<Choice>,
    inputs: Vec<AtInput>,
    /// The input of each choice, by its place in `inputs`.
    of_choice: Vec<usize>,
    accepted: Vec<(usize, ExclusionKind)>,
    /// Inputs at which attacks may pass, by their place in `inputs`.
    lenient: BTreeSet<usize>,
    /// Of each attack as a request of its own.
    alone: Alone,
    /// The folded paths of these requests.
    alone_paths: Vec<Option<String>>,
}

/// An input on a path, with attacks in its place.
struct AtInput {
    target: Target,
    path: String,
    carrier: SampledRequest,
    /// It is a part of the request that holds other inputs.
    is_whole: bool,
    /// What it is kept from where attacks may pass.
    free: Vec<Kept>,
    /// Of each attack, with the exclusions of the other inputs on the path.
    caught: Option<Arc<Vec<Outcome>>>,
}

impl<'a> Together<'a> {
    /// Each choice takes three of the numbers, which are ids of rules that are free.
    ///
    /// # Errors
    /// The config does not compile; for people.
    pub(in super::super) fn new(bench: Bench<'a>, choices: Vec<Choice>, numbers: &[u64]) -> Result<Self, String> {
        let mut inputs: Vec<AtInput> = Vec::new();
        let (mut of_choice, mut texts) = (Vec::with_capacity(choices.len()), Vec::new());
        for ((at, choice), numbers) in choices.iter().enumerate().zip(numbers.chunks_exact(3)) {
            let Place { target, path, .. } = &choice.place;
            let known = inputs.iter().position(|input| input.is(target, path));
            of_choice.push(known.unwrap_or(inputs.len()));
            if known.is_none() {
                let carrier = carrier(Some(&choice.sample), target, path);
                let (target, path) = (target.clone(), path.clone());
                inputs.push(AtInput {
                    is_whole: is_whole(&target),
                    target,
                    path,
                    carrier,
                    free: Vec::new(),
                    caught: None,
                });
            }
            for (kind, number) in [ExclusionKind::ScopedTarget, ExclusionKind::UpdateTarget].into_iter().zip(numbers) {
                texts.extend(switched(kind, &choice.place, *number, &switch(at, kind)));
            }
        }
        let own = bench.build(None).map_err(|why| format!("the rules of the WAF config do not compile: {why}"))?;
        let trial = bench.trial(&own);
        for (input, at) in inputs.iter_mut().zip(0..) {
            let here = || choices.iter().zip(&of_choice).filter(move |(_, of)| **of == at).map(|(choice, _)| choice);
            input.free = kept_from(&trial, here().collect());
            let number = numbers.chunks_exact(3).nth(at).and_then(|three| three.last().copied()).unwrap_or_default();
            texts.extend(free_input(&input.target, &input.path, &input.free, number, Some(&free_switch(at))));
        }
        let all = (!texts.is_empty()).then(|| texts.join("\n"));
        let built = bench.build(all.as_deref());
        let built = built.map_err(|why| format!("the rules of the WAF config do not compile: {why}"))?;
        let alone = bench.alone(&bench.trial(&built));
        let path = |attack| {
            let request = self::alone(attack)?.request;
            fold(request.uri.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or_default())
        };
        let alone_paths = corpus::attacks().iter().map(path).collect();
        Ok(Self {
            bench,
            built,
            choices,
            inputs,
            of_choice,
            accepted: Vec::new(),
            lenient: BTreeSet::new(),
            alone,
            alone_paths,
        })
    }

    /// The choices in the order in which they are tried: inputs that hold others come last.
    pub(in super::super) fn in_order(&self) -> Vec<usize> {
        let is_whole = |choice: &usize| {
            self.of_choice.get(*choice).and_then(|at| self.inputs.get(*at)).is_some_and(|input| input.is_whole)
        };
        let (whole, narrow): (Vec<usize>, Vec<usize>) = (0..self.choices.len()).partition(is_whole);
        narrow.into_iter().chain(whole).collect()
    }

    /// The match of a choice.
    pub(in super::super) fn choice(&self, choice: usize) -> Option<&Choice> {
        self.choices.get(choice)
    }

    /// What else decides about a choice: the inputs on its path, which stay the same whatever is accepted.
    pub(in super::super) fn surroundings(&self, choice: usize) -> String {
        let path = self.choices.get(choice).map_or("", |choice| &choice.place.path);
        let beside = self.choices.iter().filter(|choice| choice.place.path == path);
        beside.map(|choice| format!("{}|{}\n", choice.place.rule_id, choice.place.target)).collect()
    }

    /// Whether the attacks at its input have run.
    pub(in super::super) fn is_prepared(&self, choice: usize) -> bool {
        self.of_choice.get(choice).and_then(|at| self.inputs.get(*at)).is_some_and(|input| input.caught.is_some())
    }

    /// Tries an exclusion with those that are accepted.
    pub(in super::super) fn preview(&mut self, choice: usize, kind: ExclusionKind) -> Preview {
        for input in self.concerned(choice, kind) {
            self.prepare(input);
        }
        let (Some(Choice { place, sample }), Some(own)) = (self.choices.get(choice), self.of_choice.get(choice)) else {
            return Preview::default();
        };
        let trial = self.bench.trial(&self.built);
        let one = (choice, kind);
        let mut preview = Preview { compiles: true, ..Preview::default() };
        let request = read(sample);
        let [before, after] = [self.on(None, &[]), self.switches(&[one])].map(|on| seen(&trial, &request, &on));
        preview.sample(place, before.as_ref(), after.as_ref());
        let with_all = seen(&trial, &request, &self.on(None, &[one]));
        preview.sample_after = with_all.as_ref().map(super::Seen::outcome);
        self.alone.iter().for_each(|outcome| preview.corpus.add(outcome, false));
        let caught = self.inputs.get(*own).and_then(|input| input.caught.as_deref()).into_iter().flatten();
        caught.for_each(|outcome| preview.corpus.add(outcome, true));
        if !preview.effective {
            return preview;
        }
        for at in self.concerned(choice, kind) {
            self.inject(at, one, &mut preview);
        }
        self.send_alone(one, &mut preview);
        preview.judge();
        preview
    }

    /// An exclusion stays on from now on.
    pub(in super::super) fn accept(&mut self, choice: usize, kind: ExclusionKind) {
        self.accepted.push((choice, kind));
    }

    /// The choices of each input.
    pub(in super::super) fn by_input(&self) -> Vec<Vec<usize>> {
        let mut all = vec![Vec::new(); self.inputs.len()];
        for (choice, input) in self.of_choice.iter().enumerate() {
            if let Some(choices) = all.get_mut(*input) {
                choices.push(choice);
            }
        }
        all
    }

    /// How many attacks are caught at the input of a choice, and how many of them pass where it is free.
    pub(in super::super) fn passing(&mut self, choice: usize) -> (usize, usize) {
        let Some(at) = self.of_choice.get(choice).copied() else { return (0, 0) };
        self.prepare(at);
        let Some(input) = self.inputs.get(at) else { return (0, 0) };
        let on = [self.on(Some(at), &[]), free_switch(at).into_bytes()].concat();
        let trial = self.bench.trial(&self.built);
        let caught = self.touched(input, |_| true);
        let passed = each(self.bench.threads, &caught, |candidate| {
            outcome(&trial, candidate.build(&input.carrier, &input.target).as_ref(), &on) == Outcome::Passed
        });
        (caught.len(), passed.into_iter().filter(|passed| *passed).count())
    }

    /// The input of a choice is free: attacks may pass there. Returns what it is kept from.
    pub(in super::super) fn set_free(&mut self, choice: usize) -> Vec<Kept> {
        let Some(at) = self.of_choice.get(choice).copied() else { return Vec::new() };
        self.lenient.insert(at);
        self.inputs.get(at).map(|input| input.free.clone()).unwrap_or_default()
    }

    /// Tries all that are accepted as they are written. Those that do not stand are returned: that do not end their match, or at whose input an
    /// attack would pass.
    ///
    /// # Errors
    /// They do not compile; for people.
    pub(in super::super) fn confirm(&self, seclang: &str) -> Result<BTreeSet<usize>, String> {
        let built = self.bench.build(Some(seclang))?;
        let trial = self.bench.trial(&built);
        let mut fallen = BTreeSet::new();
        let strict = self.inputs.iter().enumerate().filter(|(at, _)| !self.lenient.contains(at));
        for (at, input) in strict {
            let here: Vec<usize> = self.accepted_at(at).collect();
            let places: Vec<&Place> = here.iter().filter_map(|one| Some(&self.choices.get(*one)?.place)).collect();
            let touched = self.touched(input, |hits| places.iter().any(|place| hits.have(place)));
            let passed = each(self.bench.threads, &touched, |candidate| {
                outcome(&trial, candidate.build(&input.carrier, &input.target).as_ref(), b"") == Outcome::Passed
            });
            if passed.contains(&true) {
                fallen.extend(here);
            }
        }
        for (one, _) in &self.accepted {
            let Some(Choice { place, sample }) = self.choices.get(*one) else { continue };
            if seen(&trial, &read(sample), b"").is_none_or(|seen| seen.has(place)) {
                fallen.insert(*one);
            }
        }
        Ok(fallen)
    }

    fn accepted_at(&self, input: usize) -> impl Iterator<Item = usize> {
        self.accepted.iter().map(|(one, _)| *one).filter(move |one| self.of_choice.get(*one) == Some(&input))
    }

    /// The inputs at which attacks may come to another end: its own; where all paths are meant, the same on others, all at which attacks have
    /// run or that have exclusions of their own, and a few more; and those that a whole one holds.
    fn concerned(&self, choice: usize, kind: ExclusionKind) -> Vec<usize> {
        let Some(own) = self.of_choice.get(choice).copied() else { return Vec::new() };
        let Some(input) = self.inputs.get(own) else { return Vec::new() };
        let others = self.inputs.iter().enumerate().filter(|(at, _)| *at != own);
        let on_all = kind == ExclusionKind::UpdateTarget;
        let same = others.clone().filter(|(_, other)| on_all && is_same(&other.target, &input.target));
        let is_known = |at: usize, other: &AtInput| other.caught.is_some() || self.accepted_at(at).next().is_some();
        let (known, new): (Vec<_>, Vec<_>) = same.partition(|(at, other)| is_known(*at, other));
        let more = (MAX_PATHS - 1).saturating_sub(known.len());
        let same = known.into_iter().chain(new.into_iter().take(more));
        let held = others.filter(|(_, other)| input.is_whole && other.path == input.path && other.caught.is_some());
        [own].into_iter().chain(same.map(|(at, _)| at)).chain(held.map(|(at, _)| at)).collect()
    }

    /// Puts the attacks at an input, unless that is done.
    fn prepare(&mut self, at: usize) {
        let Some(input) = self.inputs.get(at).filter(|input| input.caught.is_none()) else { return };
        let on = self.elsewhere(at);
        let trial = self.bench.trial(&self.built);
        let injected: Vec<_> = candidates().iter().filter(|candidate| candidate.payload.is_some()).collect();
        let caught = each(self.bench.threads, &injected, |candidate| {
            outcome(&trial, candidate.build(&input.carrier, &input.target).as_ref(), &on)
        });
        if let Some(input) = self.inputs.get_mut(at) {
            input.caught = Some(Arc::new(caught));
        }
    }

    /// Attacks at an input with what is accepted and one exclusion more.
    fn inject(&self, at: usize, one: (usize, ExclusionKind), preview: &mut Preview) {
        let (Some(input), Some(choice)) = (self.inputs.get(at), self.choices.get(one.0)) else { return };
        let on = self.on(Some(at), &[one]);
        let trial = self.bench.trial(&self.built);
        let touched = self.touched(input, |hits| hits.have(&choice.place));
        let missed = each(self.bench.threads, &touched, |candidate| {
            let tried = candidate.build(&input.carrier, &input.target)?;
            (outcome(&trial, Some(&tried), &on) == Outcome::Passed).then_some(tried)
        });
        missed.into_iter().flatten().for_each(|tried| preview.miss(tried));
    }

    /// Attacks that are requests of their own.
    fn send_alone(&self, one: (usize, ExclusionKind), preview: &mut Preview) {
        let Some(Choice { place, .. }) = self.choices.get(one.0) else { return };
        let on = self.on(None, &[one]);
        let trial = self.bench.trial(&self.built);
        for ((attack, caught), path) in corpus::attacks().iter().zip(self.alone.iter()).zip(&self.alone_paths) {
            let is_on_path = one.1 == ExclusionKind::UpdateTarget || path.as_deref() == Some(place.path.as_str());
            if !matches!(caught, Outcome::Caught(hits) if is_on_path && hits.have(place)) {
                continue;
            }
            if let Some(tried) = alone(attack)
                && outcome(&trial, Some(&tried), &on) == Outcome::Passed
            {
                preview.miss(tried);
            }
        }
    }

    /// The attacks at an input that are caught by what is meant.
    fn touched(&self, input: &AtInput, is_meant: impl Fn(&Hits) -> bool) -> Vec<&'static super::attacks::Candidate> {
        let injected = candidates().iter().filter(|candidate| candidate.payload.is_some());
        let caught = injected.zip(input.caught.as_deref().into_iter().flatten());
        let touched = caught.filter(|(_, outcome)| matches!(outcome, Outcome::Caught(hits) if is_meant(hits)));
        touched.map(|(candidate, _)| candidate).collect()
    }

    /// The unique id with what is accepted and more, for attacks at an input or for other requests.
    fn on(&self, input: Option<usize>, more: &[(usize, ExclusionKind)]) -> Vec<u8> {
        let mut on = input.map(|input| self.elsewhere(input)).unwrap_or_default();
        on.extend(self.switches(&self.accepted));
        on.extend(self.switches(more));
        on
    }

    /// The exclusions of the other inputs on the path of one.
    fn elsewhere(&self, input: usize) -> Vec<u8> {
        let Some(own) = self.inputs.get(input) else { return Vec::new() };
        let others = self.of_choice.iter().enumerate().filter(|(_, at)| {
            let other = self.inputs.get(**at);
            **at != input && other.is_some_and(|other| other.path == own.path && !other.is_whole)
        });
        let others: Vec<_> = others.map(|(choice, _)| (choice, ExclusionKind::ScopedTarget)).collect();
        self.switches(&others)
    }

    /// A unique id; never empty, which would be a random one.
    fn switches(&self, on: &[(usize, ExclusionKind)]) -> Vec<u8> {
        let names: Vec<String> = on.iter().map(|(choice, kind)| switch(*choice, *kind)).collect();
        format!("trial{}", names.concat()).into_bytes()
    }
}

impl AtInput {
    fn is(&self, target: &Target, path: &str) -> bool {
        is_same(&self.target, target) && self.path == path
    }
}

/// What an input is kept from that is needed for what its matches look like: all rules against the kinds of attacks that they find, where the
/// matches are many; otherwise their rules alone.
fn kept_from(trial: &Trial<'_>, matches: Vec<&Choice>) -> Vec<Kept> {
    let mut kept = BTreeSet::new();
    let is_many = matches.len() >= MANY_RULES;
    for Choice { place, sample } in matches {
        let rule = place.rule_id;
        let found = is_many.then(|| seen(trial, &read(sample), b"")).flatten();
        match found.and_then(|mut seen| seen.attacks.remove(&rule)).filter(|attacks| !attacks.is_empty()) {
            Some(attacks) => kept.extend(attacks.into_iter().map(Kept::Tag)),
            None => {
                kept.insert(Kept::Rule(rule));
            }
        }
    }
    kept.into_iter().collect()
}

fn free_switch(input: usize) -> String {
    format!(",f{input},")
}

/// The name of a switch, which no other contains.
fn switch(choice: usize, kind: ExclusionKind) -> String {
    match kind {
        ExclusionKind::ScopedTarget => format!(",s{choice},"),
        _ => format!(",w{choice},"),
    }
}

fn is_same(one: &Target, other: &Target) -> bool {
    let folded = |target: &Target| target.member.as_ref().map(|member| member.to_ascii_lowercase());
    one.collection == other.collection && folded(one) == folded(other)
}

/// Whether a part of the request holds other inputs.
fn is_whole(target: &Target) -> bool {
    let name = target.to_string();
    let input = samples::target::Target::read(name.as_bytes()).map(|read| read.input());
    matches!(input, Some(Input::Uri | Input::Body | Input::Unnamed))
}
