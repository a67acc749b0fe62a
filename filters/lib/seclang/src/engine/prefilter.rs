//! The prefilter: rules that cannot match the values of a transaction are not run.
//!
//! Nearly every rule looks for something that a harmless request does not contain. Each value is scanned once
//! ([`super::scanner`]), and so is the result of each pipeline of transformations that changes it. The rows of all
//! values of a target are united ([`super::phase_summary`]). Each target knows which prefilters the first tests of a
//! phase ask it for ([`super::plan`]): a rule whose prefilter is in no row has no match in this phase. Only targets
//! that cannot change within a phase have a united row.

use std::collections::HashMap;

use super::builder::Builder;
use super::collect::is_stored;
use super::const_prop::{ConstProp, Prediction};
use super::rules::{BuiltOperator, KeySelector, Link, MacroPiece, Rule, Target};
use super::scanner::{Scanner, trigger_bit};
use crate::operator::{ByteSet, OperatorKind, Prefilter};
use crate::program::wire;
use crate::transform::Transform;
use crate::vocabulary::Variable;

/// The transformations of a link, shared by all links that have the same ones.
pub(super) struct Pipeline {
    pub(super) transforms: Vec<PipelineStep>,
    /// The bit of the pipeline in the triggers of values.
    pub(super) bit: u64,
    /// A value without any of these bytes passes the same prefilters afterwards.
    triggers: Option<ByteSet>,
    /// Whether a single space triggers the pipeline only in some places: see [`Transform::minds_spacing`].
    minds_spacing: bool,
    /// Whether every intermediate value is tested (`multiMatch`).
    pub(super) multi_match: bool,
}

/// One transformation of a pipeline.
#[derive(Debug, Clone, Copy)]
pub(super) struct PipelineStep {
    pub(super) transform: Transform,
    /// The bit that a scanned value has if it holds any byte that triggers the transformation; 0 if it has no bit.
    pub(super) changes: u64,
}

/// The prefilter of a link, and the pipeline after which values have to pass it.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkPrefilter {
    /// Its number in the scanner.
    pub(super) prefilter: u32,
    /// The number of the pipeline in [`TargetTable`].
    pub(super) pipeline: u32,
    /// The bit of the pipeline in the triggers of values.
    pub(super) bit: u64,
}

/// The prefilter of a link, and the numbers of the link's targets in [`TargetTable`].
pub(super) type PrefilterAndTargets = (LinkPrefilter, Box<[u32]>);

/// The first test of a rule, as far as its result can be found without running the rule.
#[derive(Debug, Clone, Copy)]
pub(super) enum FirstTest {
    /// The rule has to be run.
    Unknown,
    /// There is no test.
    None,
    Prefilter(LinkPrefilter),
    /// A number, compared with another one: what skips by paranoia level and what blocks by score.
    Number {
        subject: Subject,
        kind: OperatorKind,
        argument: Number,
        negated: bool,
    },
}

/// The left side of a numeric comparison.
#[derive(Debug, Clone, Copy)]
pub(super) enum Subject {
    /// A name of TX.
    Slot(u32),
    /// 1 if a name of TX is set, else 0.
    HasSlot(u32),
    /// A variable with exactly one value.
    Scalar(Variable),
    /// The number of values of the only target of the first link.
    Count,
}

/// The right side of a numeric comparison.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Constant(i64),
    /// The value of a name of TX.
    Slot(u32),
}

impl Number {
    fn of(operator: &BuiltOperator) -> Option<Self> {
        let constant = operator.operator.constant().map(Self::Constant);
        match operator.argument.as_ref().map(|argument| argument.0.as_slice()) {
            Some([MacroPiece::Slot(slot)]) if operator.operator.compares_numbers() => Some(Self::Slot(*slot)),
            _ => constant,
        }
    }
}

impl FirstTest {
    /// Whether `may match` means `matches` for a rule with only this test, as long as no name of TX was removed.
    pub(super) fn decides(self) -> bool {
        matches!(self, Self::None | Self::Number { subject: Subject::Slot(_) | Subject::HasSlot(_), .. })
    }

    pub(super) fn of(link: &Link, operators: &[BuiltOperator]) -> Self {
        if link.operator.is_none() {
            return Self::None;
        }
        if let Some(prefilter) = link.prefilter {
            return Self::Prefilter(prefilter);
        }
        let operator = link.operator.and_then(|at| operators.get(at as usize));
        let compared = operator.and_then(|built| Some((built.operator.kind(), Number::of(built)?)));
        let Some((kind, argument)) = compared.filter(|_| link.transforms.is_empty() && link.exclusions.is_empty())
        else {
            return Self::Unknown;
        };
        let [target] = link.targets.as_slice() else { return Self::Unknown };
        let subject = match (target.variable, &target.key, target.count) {
            (Variable::Tx, KeySelector::Slot(slot), false) => Subject::Slot(*slot),
            (Variable::Tx, KeySelector::Slot(slot), true) => Subject::HasSlot(*slot),
            (variable, _, false) if is_stored(variable) => Subject::Scalar(variable),
            (variable, KeySelector::All | KeySelector::Name(_), true) if is_stable(variable) => Subject::Count,
            _ => return Self::Unknown,
        };
        Self::Number { subject, kind, argument, negated: link.negated }
    }
}

/// The targets and pipelines of all links with a prefilter, each once.
#[derive(Default)]
pub(super) struct TargetTable {
    pub(super) targets: Vec<Target>,
    target_numbers: HashMap<wire::Target, u32>,
    pub(super) pipelines: Vec<Pipeline>,
    pipeline_numbers: HashMap<(Vec<Transform>, bool), u32>,
}

/// The index of an item in a list without duplicates; adds it if it is missing.
fn number<K: std::hash::Hash + Eq, V>(numbers: &mut HashMap<K, u32>, list: &mut Vec<V>, key: K, value: V) -> u32 {
    let next = u32::try_from(list.len()).unwrap_or(u32::MAX);
    *numbers.entry(key).or_insert_with(|| {
        list.push(value);
        next
    })
}

impl TargetTable {
    /// Adds the pipeline and the targets of a link and returns their numbers; `target` builds a target.
    fn add(
        &mut self,
        link: &wire::Link,
        transforms: &[Transform],
        mut target: impl FnMut(&wire::Target) -> Result<Target, String>,
    ) -> Result<(u32, Box<[u32]>), String> {
        // Prefilters ignore case: trailing transformations that change nothing else are left out.
        let last = transforms.iter().rposition(|transform| transform.prefilter_triggers() != Some(ByteSet::default()));
        let transforms = last.and_then(|last| transforms.get(..=last)).unwrap_or_default();
        let pipeline = Pipeline {
            transforms: transforms.iter().map(|&transform| PipelineStep { transform, changes: 0 }).collect(),
            bit: trigger_bit(self.pipelines.len()),
            triggers: prefilter_triggers(transforms),
            minds_spacing: transforms.iter().any(|transform| transform.minds_spacing()),
            multi_match: link.multi_match,
        };
        let key = (transforms.to_vec(), link.multi_match);
        let pipeline = number(&mut self.pipeline_numbers, &mut self.pipelines, key, pipeline);
        let mut targets = Vec::new();
        for wire in &link.targets {
            targets.push(match self.target_numbers.get(wire) {
                Some(number) => *number,
                None => number(&mut self.target_numbers, &mut self.targets, wire.clone(), target(wire)?),
            });
        }
        Ok((pipeline, targets.into()))
    }

    /// Drops the maps that are only needed while links are added.
    pub(super) fn finished(mut self) -> Self {
        self.target_numbers = HashMap::new();
        self.pipeline_numbers = HashMap::new();
        self
    }

    /// For each pipeline the bytes that trigger it, `None` if every value does, and whether the pipeline depends on how
    /// values are spaced.
    pub(super) fn triggers(&self) -> impl Iterator<Item = (&Option<ByteSet>, bool)> {
        self.pipelines.iter().map(|pipeline| (&pipeline.triggers, pipeline.minds_spacing))
    }

    /// The same of one pipeline; `None` if every value triggers it.
    pub(super) fn triggers_of(&self, pipeline: u32) -> Option<(ByteSet, bool)> {
        let pipeline = self.pipelines.get(pipeline as usize)?;
        Some((pipeline.triggers?, pipeline.minds_spacing))
    }
}

impl LinkPrefilter {
    /// The prefilter of a link, if the link can have one, and the numbers of its targets; `prefilter` is the number of
    /// its operator's prefilter.
    pub(super) fn new(
        wire: &wire::Link,
        link: &Link,
        prefilter: Option<u32>,
        target_table: &mut TargetTable,
        target: impl FnMut(&wire::Target) -> Result<Target, String>,
    ) -> Result<Option<PrefilterAndTargets>, String> {
        let stable = link.targets.iter().all(|target| !target.count && is_stable(target.variable));
        let Some(prefilter) = prefilter.filter(|_| stable && !link.negated) else { return Ok(None) };
        let (pipeline, targets) = target_table.add(wire, &link.transforms, target)?;
        let bit = target_table.pipelines.get(pipeline as usize).map_or(u64::MAX, |pipeline| pipeline.bit);
        Ok(Some((Self { prefilter, pipeline, bit }, targets)))
    }
}

/// The bytes without which a value passes the same prefilters after the transformations; `None` if every value may
/// change. Prefilters ignore case.
fn prefilter_triggers(transforms: &[Transform]) -> Option<ByteSet> {
    transforms.iter().try_fold(ByteSet::default(), |mut all, transform| {
        all.add(transform.prefilter_triggers()?);
        Some(all)
    })
}

/// The bytes without which the transformations do not change a value; `None` if every value may change.
pub(super) fn triggers(transforms: &[Transform]) -> Option<ByteSet> {
    transforms.iter().try_fold(ByteSet::default(), |mut all, transform| {
        all.add(transform.triggers()?);
        Some(all)
    })
}

/// Whether no rule can change the variable within a phase.
fn is_stable(variable: Variable) -> bool {
    use Variable as V;
    matches!(
        variable,
        V::Args
            | V::ArgsNames
            | V::ArgsGet
            | V::ArgsGetNames
            | V::ArgsPost
            | V::ArgsPostNames
            | V::RequestHeaders
            | V::RequestHeadersNames
            | V::RequestCookies
            | V::RequestCookiesNames
            | V::ResponseHeaders
            | V::ResponseHeadersNames
            | V::Files
            | V::FilesNames
            | V::FilesTmpContent
            | V::MultipartPartHeaders
            | V::MultipartName
            | V::MultipartFilename
            | V::Xml
            | V::RequestLine
            | V::RequestUri
            | V::RequestUriRaw
            | V::RequestFilename
            | V::RequestBasename
            | V::RequestMethod
            | V::RequestProtocol
            | V::RequestBody
            | V::QueryString
            | V::PathInfo
            | V::ResponseBody
            | V::ResponseStatus
            | V::ResponseProtocol
            | V::ResponseContentType
            | V::StatusLine
            | V::RemoteAddr
            | V::ServerName
    )
}

impl Builder<'_> {
    /// Sets the prefilters of the operators that may run, and of the tests that use them.
    pub(super) fn add_prefilters(
        &mut self,
        wire: &wire::Program,
        operators: &mut [BuiltOperator],
        rules: &mut [Rule],
        const_prop: &ConstProp,
    ) -> Result<(Scanner, TargetTable), String> {
        let with_prefilter = self.with_prefilter;
        let may_run = |rule: u32| {
            with_prefilter && !matches!(const_prop.of(rule), Prediction::NeverMatches | Prediction::Applied)
        };
        let mut wanted = vec![false; operators.len()];
        for (rule, _) in rules.iter().zip(0..).filter(|(_, at)| may_run(*at)) {
            for operator in rule.links.iter().filter_map(|link| link.operator) {
                if let Some(wanted) = wanted.get_mut(operator as usize) {
                    *wanted = true;
                }
            }
        }
        let prefilters =
            wire.operators.iter().zip(&wanted).map(|(operator, wanted)| prefilter(operator).filter(|_| *wanted));
        let prefilters: Vec<Option<Prefilter>> = prefilters.collect();
        let (mut scanner, numbers) = Scanner::new(prefilters.iter().map(Option::as_ref));
        for (operator, number) in operators.iter_mut().zip(numbers) {
            operator.prefilter = number;
        }
        let mut target_table = TargetTable::default();
        for (rule, at) in rules.iter_mut().zip(0..).filter(|(_, at)| may_run(*at)) {
            let links = wire.rules.get(at as usize).map(|rule| rule.links.as_slice()).unwrap_or_default();
            for (link, wire) in rule.links.iter_mut().zip(links) {
                let operator = link.operator.and_then(|operator| operators.get_mut(operator as usize));
                let prefilter = operator.and_then(|operator| {
                    operator.settles &= prefilter_triggers(&link.transforms) == triggers(&link.transforms);
                    operator.prefilter
                });
                if let Some((prefilter, targets)) =
                    LinkPrefilter::new(wire, link, prefilter, &mut target_table, |target| self.target(target))?
                {
                    (link.prefilter, link.target_numbers) = (Some(prefilter), targets);
                }
            }
        }
        let mut changing = Changing { first: target_table.pipelines.len(), sets: Vec::new() };
        for step in target_table.pipelines.iter_mut().flat_map(|pipeline| &mut pipeline.transforms) {
            step.changes = changing.bit(step.transform.triggers());
        }
        for link in rules.iter_mut().flat_map(|rule| &mut rule.links) {
            link.changes = changing.bit(link.triggers);
        }
        scanner.set_triggers(target_table.triggers().chain(changing.sets.iter().map(|triggers| (triggers, false))));
        Ok((scanner, target_table.finished()))
    }
}

/// Sets of trigger bytes of single transformations and of links. Their bits follow those of the pipelines.
struct Changing {
    first: usize,
    sets: Vec<Option<ByteSet>>,
}

impl Changing {
    /// The bit of a set in the triggers of values; 0 if it has none.
    fn bit(&mut self, triggers: Option<ByteSet>) -> u64 {
        let Some(triggers) = triggers.filter(|triggers| *triggers != ByteSet::default()) else { return 0 };
        let at = self.sets.iter().position(|set| *set == Some(triggers)).unwrap_or(self.sets.len());
        let bit = trigger_bit(self.first + at);
        if bit == trigger_bit(usize::MAX) {
            return 0;
        }
        if at == self.sets.len() {
            self.sets.push(Some(triggers));
        }
        bit
    }
}

/// The prefilter of an encoded operator.
fn prefilter(wire: &wire::Operator) -> Option<Prefilter> {
    if let Some(stored) = &wire.prefilter {
        return Some(stored.read());
    }
    let kind = u8::try_from(wire.kind).ok().and_then(OperatorKind::from_code)?;
    Prefilter::of_argument(kind, &wire.text, &wire.phrases)
}
