//! Exclusions that are tried one after the other, each with those that were accepted before it.
//!
//! One engine has all of them, each behind a switch: the unique id of a request names those that are on, so that no trial compiles anything.
//! What an attack is caught by at one input must not be what another input of the same request is refused for wrongly: attacks at an input
//! run with all exclusions of the other inputs on its path, accepted or not. So the inputs do not depend on each other, and an attack
//! counts as caught only if it is for its own sake.

mod confirm;
mod kept;

use std::collections::BTreeSet;
use std::sync::Arc;

use exchange::fold::fold;

use super::super::exclusion::{Exclusion, ExclusionKind, Kept, Place, free_input, overlap, reaches, switched};
use super::super::shape::{Condition, Shape};
use super::super::target::Target;
use super::Preview;
use super::attacks::{Candidate, Hits, Outcome, alone, injected, outcome, read, seen};
use super::bench::{Alone, Bench};
use super::carriers::{carrier, clean_carrier};
use super::parallel::each;
use crate::control::operations::engines::Built;
use crate::control::tuning::corpus;
use crate::samples;
use crate::samples::messages::SampledRequest;
use crate::samples::target::Input;
use kept::kept_from;

/// The paths on which an exclusion for all paths is tried, at most, beside those where attacks have run anyway.
const MAX_PATHS: usize = 3;

/// An exclusion that may be tried: of a match, with its request.
pub(in super::super) struct Choice {
    pub(in super::super) place: Place,
    pub(in super::super) sample: SampledRequest,
    /// Under what an exclusion on the path, and one for all paths, might hold.
    pub(in super::super) conditions: [Option<Condition>; 2],
}

impl Choice {
    /// The condition of a kind of exclusions, if it has one.
    fn condition(&self, kind: ExclusionKind) -> Option<Condition> {
        let [on_path, on_all] = self.conditions;
        match kind {
            ExclusionKind::ScopedShape => on_path,
            ExclusionKind::Shape => on_all,
            _ => None,
        }
    }

    /// The exclusion of a kind; `None` where it cannot be written.
    pub(in super::super) fn exclusion(&self, kind: ExclusionKind, number: u64) -> Option<Exclusion> {
        match self.condition(kind) {
            Some(condition) => condition.exclusion(kind, &self.place, number),
            None => Exclusion::new(kind, &self.place, number),
        }
    }
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
    /// Rules find nothing in the carrier.
    is_clean: bool,
    /// One of the attacks is on the path.
    is_on_path: bool,
    /// It is a part of the request that holds other inputs.
    is_whole: bool,
    /// What it is kept from where attacks may pass.
    free: Vec<Kept>,
    /// Of each attack, with the exclusions of the other inputs on the path.
    caught: Option<Arc<Vec<Outcome>>>,
}

impl<'a> Together<'a> {
    /// Each choice takes three of the numbers, which are ids of rules that are free; what is left is for exclusions with a condition.
    ///
    /// # Errors
    /// The config does not compile; for people.
    pub(in super::super) fn new(bench: Bench<'a>, choices: Vec<Choice>, numbers: &[u64]) -> Result<Self, String> {
        let mut inputs: Vec<AtInput> = Vec::new();
        let (mut of_choice, mut texts) = (Vec::with_capacity(choices.len()), Vec::new());
        let mut left = numbers.iter().skip(choices.len().saturating_mul(3));
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
                    is_clean: false,
                    is_on_path: false,
                    free: Vec::new(),
                    caught: None,
                });
            }
            for (kind, number) in [ExclusionKind::ScopedTarget, ExclusionKind::UpdateTarget].into_iter().zip(numbers) {
                texts.extend(switched(kind, &choice.place, *number, Some(&switch(at, kind))));
            }
            for kind in [ExclusionKind::ScopedShape, ExclusionKind::Shape] {
                if let Some(condition) = choice.condition(kind)
                    && let Some(number) = left.next()
                {
                    texts.extend(condition.written(kind, &choice.place, *number, Some(&switch(at, kind))));
                }
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

    /// What else decides about a choice: the inputs on its path and on others that overlap it, which stay the same whatever is accepted.
    pub(in super::super) fn surroundings(&self, choice: usize) -> String {
        let path = self.choices.get(choice).map_or("", |choice| &choice.place.path);
        let beside = self.choices.iter().filter(|choice| overlap(&choice.place.path, path));
        let shown = |Place { rule_id, target, path }: &Place| format!("{rule_id}|{target}|{path}\n");
        beside.map(|choice| shown(&choice.place)).collect()
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
        let (Some(Choice { place, sample, .. }), Some(own)) = (self.choices.get(choice), self.of_choice.get(choice))
        else {
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
        let is_met = |input: &AtInput| input.is_clean && (input.is_on_path || kind.is_for_all_paths());
        preview.is_covered = self.inputs.get(*own).is_some_and(is_met) && !self.crosses(choice, kind);
        preview.judge();
        preview
    }

    /// An exclusion stays on from now on.
    pub(in super::super) fn accept(&mut self, choice: usize, kind: ExclusionKind) {
        self.accepted.push((choice, kind));
    }

    /// An exclusion is off again.
    pub(in super::super) fn take_back(&mut self, choice: usize) {
        self.accepted.retain(|(one, _)| *one != choice);
    }

    /// The exclusions among those that are accepted with which no sample passes: what they would end is refused for something else, so that they
    /// only take away what other attacks may be caught by.
    pub(in super::super) fn idle(&self) -> Vec<usize> {
        let trial = self.bench.trial(&self.built);
        let free: String = self.lenient.iter().map(|at| free_switch(*at)).collect();
        let on = [self.on(None, &[]), free.into_bytes()].concat();
        let (off, samples) = (self.switches(&[]), self.choices.iter().collect::<Vec<_>>());
        // What matches in each sample that passes.
        let passing = each(self.bench.threads, &samples, |Choice { place, sample, .. }| {
            let request = read(sample);
            let after = seen(&trial, &request, &on).filter(|after| !after.blocked)?;
            let before = seen(&trial, &request, &off)?;
            (!after.has(place)).then_some((place, before))
        });
        let is_used = |(choice, kind): &&(usize, ExclusionKind)| {
            let Some(Choice { place, .. }) = self.choices.get(*choice) else { return true };
            let is_meant = |path: &str| kind.is_for_all_paths() || reaches(&place.path, path);
            // The engine reports every method by one name.
            let is_method = |other: &Target| place.target.method().is_none() || *other == place.target;
            passing
                .iter()
                .flatten()
                .any(|(other, before)| is_meant(&other.path) && is_method(&other.target) && before.has(place))
        };
        self.accepted.iter().filter(|one| !is_used(one)).map(|(choice, _)| *choice).collect()
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
        let passed = each(self.bench.threads, &caught, |(candidate, _)| {
            outcome(&trial, candidate.build(&input.carrier, input.at()).as_ref(), &on) == Outcome::Passed
        });
        (caught.len(), passed.into_iter().filter(|passed| *passed).count())
    }

    /// The input of a choice is free: attacks may pass there. Returns what it is kept from.
    pub(in super::super) fn set_free(&mut self, choice: usize) -> Vec<Kept> {
        let Some(at) = self.of_choice.get(choice).copied() else { return Vec::new() };
        self.lenient.insert(at);
        self.inputs.get(at).map(|input| input.free.clone()).unwrap_or_default()
    }

    /// The shape of an exclusion, if it holds for one alone.
    fn shape(&self, (choice, kind): (usize, ExclusionKind)) -> Option<Shape> {
        self.choices.get(choice)?.condition(kind).map(|condition| condition.shape)
    }

    /// Whether an exclusion holds together with one that is accepted on paths on which no attack runs: both select them, and neither all that
    /// the other one does.
    fn crosses(&self, choice: usize, kind: ExclusionKind) -> bool {
        let Some(Choice { place, .. }) = self.choices.get(choice).filter(|_| !kind.is_for_all_paths()) else {
            return false;
        };
        let scoped = self.accepted.iter().filter(|(_, kind)| !kind.is_for_all_paths());
        scoped.filter_map(|(one, _)| self.choices.get(*one)).map(|one| &one.place).any(|one| {
            let is_crossed =
                overlap(&one.path, &place.path) && !reaches(&one.path, &place.path) && !reaches(&place.path, &one.path);
            is_crossed && is_same(&one.target, &place.target)
        })
    }

    fn accepted_at(&self, input: usize) -> impl Iterator<Item = usize> {
        self.accepted.iter().map(|(one, _)| *one).filter(move |one| self.of_choice.get(*one) == Some(&input))
    }

    /// The inputs at which attacks may come to another end: its own; where other paths are meant as well, the same on those, all at which
    /// attacks have run or that have exclusions of their own, and a few more; and those that a whole one holds.
    fn concerned(&self, choice: usize, kind: ExclusionKind) -> Vec<usize> {
        let Some(own) = self.of_choice.get(choice).copied() else { return Vec::new() };
        let Some(input) = self.inputs.get(own) else { return Vec::new() };
        let others = self.inputs.iter().enumerate().filter(|(at, _)| *at != own);
        let is_meant = |other: &AtInput| kind.is_for_all_paths() || reaches(&input.path, &other.path);
        let same = others.clone().filter(|(_, other)| is_meant(other) && is_same(&other.target, &input.target));
        let is_known = |at: usize, other: &AtInput| other.caught.is_some() || self.accepted_at(at).next().is_some();
        let (known, new): (Vec<_>, Vec<_>) = same.partition(|(at, other)| is_known(*at, other));
        let more = (MAX_PATHS - 1).saturating_sub(known.len());
        let same = known.into_iter().chain(new.into_iter().take(more));
        let is_held = |other: &AtInput| overlap(&other.path, &input.path) && other.caught.is_some();
        let held = others.filter(|(_, other)| input.is_whole && is_held(other));
        [own].into_iter().chain(same.map(|(at, _)| at)).chain(held.map(|(at, _)| at)).collect()
    }

    fn clean_carrier(&self, at: usize) -> Option<SampledRequest> {
        let input = self.inputs.get(at)?;
        let here = self.choices.iter().zip(&self.of_choice).filter(|(_, of)| **of == at);
        let samples = here.map(|(choice, _)| &choice.sample);
        let others = self.inputs.iter().filter(|other| overlap(&other.path, &input.path) && !other.is_whole);
        let others = others.map(|other| &other.target).filter(|other| !is_same(other, &input.target));
        let others: Vec<Target> = others.cloned().collect();
        let (on, trial) = (self.elsewhere(at), self.bench.trial(&self.built));
        clean_carrier((&trial, &on), samples, (&input.target, &input.path), &others)
    }

    /// Puts the attacks at an input, unless that is done.
    fn prepare(&mut self, at: usize) {
        if self.inputs.get(at).is_none_or(|input| input.caught.is_some()) {
            return;
        }
        let clean = self.clean_carrier(at);
        if let Some((input, clean)) = self.inputs.get_mut(at).zip(clean) {
            (input.carrier, input.is_clean) = (clean, true);
        }
        let Some(input) = self.inputs.get(at) else { return };
        let on = self.elsewhere(at);
        let trial = self.bench.trial(&self.built);
        let injected: Vec<_> = injected(&input.target).collect();
        let tried = each(self.bench.threads, &injected, |candidate| {
            let tried = candidate.build(&input.carrier, input.at());
            (outcome(&trial, tried.as_ref(), &on), tried.is_some_and(|tried| tried.is_on_path))
        });
        if let Some(input) = self.inputs.get_mut(at) {
            input.is_on_path = tried.iter().any(|(_, is_on_path)| *is_on_path);
            input.caught = Some(Arc::new(tried.into_iter().map(|(outcome, _)| outcome).collect()));
        }
    }

    /// Attacks at an input with what is accepted and one exclusion more. One that holds under a condition must let no attack pass that is made
    /// of the same characters, whatever else the condition says.
    fn inject(&self, at: usize, one: (usize, ExclusionKind), preview: &mut Preview) {
        let (Some(input), Some(choice)) = (self.inputs.get(at), self.choices.get(one.0)) else { return };
        let on = self.on(Some(at), &[(one.0, one.1.always())]);
        let trial = self.bench.trial(&self.built);
        let shape = self.shape(one);
        let mut touched = self.touched(input, |hits| hits.have(&choice.place));
        touched.retain(|(candidate, _)| shape.is_none_or(|shape| candidate.is_of(shape)));
        let paranoia = self.paranoia();
        let missed = each(self.bench.threads, &touched, |(candidate, caught)| {
            let tried = candidate.build(&input.carrier, input.at())?;
            let is_by_chance = shape.is_some() && candidate.is_by_chance(caught, paranoia);
            (outcome(&trial, Some(&tried), &on) == Outcome::Passed).then_some((tried, is_by_chance))
        });
        for (tried, is_by_chance) in missed.into_iter().flatten() {
            if is_by_chance { preview.miss_by_chance(tried) } else { preview.miss(tried) }
        }
    }

    /// Attacks that are requests of their own.
    fn send_alone(&self, one: (usize, ExclusionKind), preview: &mut Preview) {
        let Some(Choice { place, .. }) = self.choices.get(one.0) else { return };
        let on = self.on(None, &[one]);
        let trial = self.bench.trial(&self.built);
        for ((attack, caught), path) in corpus::attacks().iter().zip(self.alone.iter()).zip(&self.alone_paths) {
            let is_reached = |path: &String| reaches(&place.path, path);
            let is_on_path = one.1.is_for_all_paths() || path.as_ref().is_some_and(is_reached);
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
    fn touched<'s>(
        &self,
        input: &'s AtInput,
        is_meant: impl Fn(&Hits) -> bool,
    ) -> Vec<(&'static Candidate, &'s Outcome)> {
        let caught = injected(&input.target).zip(input.caught.as_deref().into_iter().flatten());
        caught.filter(|(_, outcome)| matches!(outcome, Outcome::Caught(hits) if is_meant(hits))).collect()
    }

    /// The paranoia level at which the config blocks.
    fn paranoia(&self) -> u32 {
        self.bench.config.crs.paranoia_level.max(1)
    }

    /// The unique id with what is accepted and more, for attacks at an input or for other requests.
    fn on(&self, input: Option<usize>, more: &[(usize, ExclusionKind)]) -> Vec<u8> {
        let mut on = input.map(|input| self.elsewhere(input)).unwrap_or_default();
        on.extend(self.switches(&self.accepted));
        on.extend(self.switches(more));
        on
    }

    /// The exclusions of the other inputs on the path of one, which are free besides.
    fn elsewhere(&self, input: usize) -> Vec<u8> {
        let Some(own) = self.inputs.get(input) else { return Vec::new() };
        // On its own path, exclusions for other paths that select it hold as well.
        let is_other = |at: usize, other: &AtInput| {
            at != input && overlap(&other.path, &own.path) && !other.is_whole && !is_same(&other.target, &own.target)
        };
        let free = self.inputs.iter().enumerate().filter(|(at, other)| is_other(*at, other));
        let free: String = free.map(|(at, _)| free_switch(at)).collect();
        let others = self.of_choice.iter().enumerate();
        let others = others.filter(|(_, at)| self.inputs.get(**at).is_some_and(|other| is_other(**at, other)));
        let others: Vec<_> = others.map(|(choice, _)| (choice, ExclusionKind::ScopedTarget)).collect();
        [self.switches(&others), free.into_bytes()].concat()
    }

    /// A unique id; never empty, which would be a random one.
    fn switches(&self, on: &[(usize, ExclusionKind)]) -> Vec<u8> {
        let names: Vec<String> = on.iter().map(|(choice, kind)| switch(*choice, *kind)).collect();
        format!("trial{}", names.concat()).into_bytes()
    }
}

impl AtInput {
    /// The input and its path.
    fn at(&self) -> (&Target, &str) {
        (&self.target, &self.path)
    }

    fn is(&self, target: &Target, path: &str) -> bool {
        is_same(&self.target, target) && self.path == path
    }
}

fn free_switch(input: usize) -> String {
    format!(",f{input},")
}

/// The name of a switch, which no other contains.
fn switch(choice: usize, kind: ExclusionKind) -> String {
    match kind {
        ExclusionKind::ScopedTarget => format!(",s{choice},"),
        ExclusionKind::ScopedShape => format!(",p{choice},"),
        ExclusionKind::Shape => format!(",q{choice},"),
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
