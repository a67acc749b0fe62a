//! Rules that cannot match what there is are left out: what of the rules that takes.
//!
//! Nearly every rule looks for something harmless requests do not have. Each value is scanned once ([`super::scanner`]),
//! and so is what each pipeline of transformations makes of it where it changes it; the answers of all values of a
//! target are united ([`super::known`]). For each target it is known which gates the first tests of a phase ask it for
//! ([`super::plan`]): a rule whose gate is not in any answer has no match in this phase. What a union stands for does not
//! change within a phase: only such targets have one.

use std::collections::HashMap;

use super::build::{Builder, BuiltOperator, KeySelector, Link, MacroPiece, Rule, Target};
use super::collect::is_stored;
use super::foresight::{Foresight, Prospect};
use super::scanner::{Scanner, trigger_bit};
use crate::operator::{ByteSet, Gate, OperatorKind};
use crate::program::wire;
use crate::transform::Transform;
use crate::vocabulary::Variable;

/// A pipeline of transformations.
pub(super) struct Pipeline {
    pub(super) transforms: Vec<PipelineStep>,
    /// The bit of the pipeline among the triggers of values.
    pub(super) bit: u64,
    /// A value without any of these bytes passes the same gates afterwards.
    triggers: Option<ByteSet>,
    /// Whether the pipeline changes values for how they are spaced.
    minds_spacing: bool,
    /// Whether every intermediate value counts.
    pub(super) multi_match: bool,
}

/// One transformation of a pipeline.
#[derive(Debug, Clone, Copy)]
pub(super) struct PipelineStep {
    pub(super) transform: Transform,
    /// The bit that a scanned value has if it holds any of the bytes without which the transformation leaves it as it is;
    /// 0 if there is none.
    pub(super) changes: u64,
}

/// Where a link finds out whether it can match.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkGate {
    pub(super) gate: u32,
    /// The number of the pipeline in [`Groups`].
    pub(super) pipeline: u32,
    /// Its bit among the triggers of values.
    pub(super) bit: u64,
}

/// The gate of a link, and the numbers of the link's targets in [`Groups`].
pub(super) type GateAndTargets = (LinkGate, Box<[u32]>);

/// What tells cheaply that a rule does not match: a look at its first test.
#[derive(Debug, Clone, Copy)]
pub(super) enum FirstTest {
    /// Nothing: the rule has to be run.
    Unknown,
    /// There is no test.
    None,
    Gate(LinkGate),
    /// A number, compared with another one: what skips by paranoia level and what blocks by score.
    Number {
        subject: Subject,
        kind: OperatorKind,
        argument: Number,
        negated: bool,
    },
}

/// What is compared with a number.
#[derive(Debug, Clone, Copy)]
pub(super) enum Subject {
    /// A name of TX.
    Slot(u32),
    /// Whether a name of TX is there.
    HasSlot(u32),
    /// A variable that has one value.
    Scalar(Variable),
    /// How many values the target of the rule's first link stands for.
    Count,
}

/// What something is compared with.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Constant(i64),
    /// What a name of TX holds, and nothing else.
    Slot(u32),
}

impl Number {
    fn of(operator: &BuiltOperator) -> Option<Self> {
        let known = operator.operator.constant().map(Self::Constant);
        match operator.argument.as_ref().map(|argument| argument.0.as_slice()) {
            Some([MacroPiece::Slot(slot)]) if operator.operator.compares_numbers() => Some(Self::Slot(*slot)),
            _ => known,
        }
    }
}

impl FirstTest {
    /// Whether a rule with this first test alone matches if it may match, as long as no name of TX was taken away.
    pub(super) fn decides(self) -> bool {
        matches!(self, Self::None | Self::Number { subject: Subject::Slot(_) | Subject::HasSlot(_), .. })
    }

    pub(super) fn of(link: &Link, operators: &[BuiltOperator]) -> Self {
        if link.operator.is_none() {
            return Self::None;
        }
        if let Some(gate) = link.gate {
            return Self::Gate(gate);
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

/// What the links of an engine look at, each combination once.
#[derive(Default)]
pub(super) struct Groups {
    pub(super) targets: Vec<Target>,
    target_numbers: HashMap<wire::Target, u32>,
    pub(super) pipelines: Vec<Pipeline>,
    pipeline_numbers: HashMap<(Vec<Transform>, bool), u32>,
}

/// The number of something in a list without repetitions.
fn number<K: std::hash::Hash + Eq, V>(numbers: &mut HashMap<K, u32>, list: &mut Vec<V>, key: K, value: V) -> u32 {
    let next = u32::try_from(list.len()).unwrap_or(u32::MAX);
    *numbers.entry(key).or_insert_with(|| {
        list.push(value);
        next
    })
}

impl Groups {
    /// The pipeline of a link, and the numbers of its targets: `target` builds them.
    fn add(
        &mut self,
        link: &wire::Link,
        transforms: &[Transform],
        mut target: impl FnMut(&wire::Target) -> Result<Target, String>,
    ) -> Result<(u32, Box<[u32]>), String> {
        // What gates do not tell apart in the end makes no pipeline of its own.
        let gated = transforms.iter().rposition(|transform| transform.gate_triggers() != Some(ByteSet::default()));
        let transforms = gated.and_then(|last| transforms.get(..=last)).unwrap_or_default();
        let pipeline = Pipeline {
            transforms: transforms.iter().map(|&transform| PipelineStep { transform, changes: 0 }).collect(),
            bit: trigger_bit(self.pipelines.len()),
            triggers: gate_triggers(transforms),
            minds_spacing: transforms.iter().any(|transform| transform.minds_spacing()),
            multi_match: link.multi_match,
        };
        let key = (transforms.to_vec(), link.multi_match);
        let pipeline = number(&mut self.pipeline_numbers, &mut self.pipelines, key, pipeline);
        let mut targets = Vec::new();
        for wire in &link.targets {
            targets.push(match self.target_numbers.get(wire) {
                Some(known) => *known,
                None => number(&mut self.target_numbers, &mut self.targets, wire.clone(), target(wire)?),
            });
        }
        Ok((pipeline, targets.into()))
    }

    /// Forgets what is only needed while links are added.
    pub(super) fn finished(mut self) -> Self {
        self.target_numbers = HashMap::new();
        self.pipeline_numbers = HashMap::new();
        self
    }

    /// For each pipeline the bytes that trigger it; `None` if any value does.
    ///
    /// With it whether the pipeline changes values for how they are spaced.
    pub(super) fn triggers(&self) -> impl Iterator<Item = (&Option<ByteSet>, bool)> {
        self.pipelines.iter().map(|pipeline| (&pipeline.triggers, pipeline.minds_spacing))
    }
}

impl LinkGate {
    /// The gate of a link with an operator that has the gate `gate`, if the link can have one, and the numbers of the
    /// link's targets.
    pub(super) fn new(
        wire: &wire::Link,
        link: &Link,
        gate: Option<u32>,
        groups: &mut Groups,
        target: impl FnMut(&wire::Target) -> Result<Target, String>,
    ) -> Result<Option<GateAndTargets>, String> {
        let stable = link.targets.iter().all(|target| !target.count && is_stable(target.variable));
        let Some(gate) = gate.filter(|_| stable && !link.negated) else { return Ok(None) };
        let (pipeline, targets) = groups.add(wire, &link.transforms, target)?;
        let bit = groups.pipelines.get(pipeline as usize).map_or(u64::MAX, |pipeline| pipeline.bit);
        Ok(Some((Self { gate, pipeline, bit }, targets)))
    }
}

/// The bytes without which a value passes the same gates after transformations; `None` if that cannot be told. Gates do
/// not tell upper from lower case.
fn gate_triggers(transforms: &[Transform]) -> Option<ByteSet> {
    transforms.iter().try_fold(ByteSet::default(), |mut all, transform| {
        all.add(transform.gate_triggers()?);
        Some(all)
    })
}

/// The bytes without which transformations leave a value as it is; `None` if that cannot be told.
pub(super) fn triggers(transforms: &[Transform]) -> Option<ByteSet> {
    transforms.iter().try_fold(ByteSet::default(), |mut all, transform| {
        all.add(transform.triggers()?);
        Some(all)
    })
}

/// Whether nothing a rule does changes the variable within a phase.
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
    /// Gives gates to the operators that may come to be run, and to the tests that use them.
    pub(super) fn gates(
        &mut self,
        wire: &wire::Program,
        operators: &mut [BuiltOperator],
        rules: &mut [Rule],
        foresight: &Foresight,
    ) -> Result<(Scanner, Groups), String> {
        let gated = self.gated;
        let may_run = |rule: u32| gated && !matches!(foresight.of(rule), Prospect::Never | Prospect::Done);
        let mut wanted = vec![false; operators.len()];
        for (rule, _) in rules.iter().zip(0..).filter(|(_, at)| may_run(*at)) {
            for operator in rule.links.iter().filter_map(|link| link.operator) {
                if let Some(wanted) = wanted.get_mut(operator as usize) {
                    *wanted = true;
                }
            }
        }
        let gates = wire.operators.iter().zip(&wanted).map(|(operator, wanted)| gate(operator).filter(|_| *wanted));
        let gates: Vec<Option<Gate>> = gates.collect();
        let (mut scanner, numbers) = Scanner::new(gates.iter().map(Option::as_ref));
        for (operator, number) in operators.iter_mut().zip(numbers) {
            operator.gate = number;
        }
        let mut groups = Groups::default();
        for (rule, at) in rules.iter_mut().zip(0..).filter(|(_, at)| may_run(*at)) {
            let links = wire.rules.get(at as usize).map(|rule| rule.links.as_slice()).unwrap_or_default();
            for (link, wire) in rule.links.iter_mut().zip(links) {
                let operator = link.operator.and_then(|operator| operators.get_mut(operator as usize));
                let gate = operator.and_then(|operator| {
                    operator.settles &= gate_triggers(&link.transforms) == triggers(&link.transforms);
                    operator.gate
                });
                if let Some((gate, targets)) =
                    LinkGate::new(wire, link, gate, &mut groups, |target| self.target(target))?
                {
                    (link.gate, link.known_targets) = (Some(gate), targets);
                }
            }
        }
        let mut changing = Changing { first: groups.pipelines.len(), sets: Vec::new() };
        for step in groups.pipelines.iter_mut().flat_map(|pipeline| &mut pipeline.transforms) {
            step.changes = changing.bit(step.transform.triggers());
        }
        for link in rules.iter_mut().flat_map(|rule| &mut rule.links) {
            link.changes = changing.bit(link.triggers);
        }
        scanner.set_triggers(groups.triggers().chain(changing.sets.iter().map(|triggers| (triggers, false))));
        Ok((scanner, groups.finished()))
    }
}

/// The sets of bytes without any of which something stays as it is, after those of the pipelines.
struct Changing {
    first: usize,
    sets: Vec<Option<ByteSet>>,
}

impl Changing {
    /// The bit of a set among the triggers of values; 0 if it has none.
    fn bit(&mut self, triggers: Option<ByteSet>) -> u64 {
        let Some(triggers) = triggers.filter(|triggers| *triggers != ByteSet::default()) else { return 0 };
        let known = self.sets.iter().position(|known| *known == Some(triggers)).unwrap_or(self.sets.len());
        let bit = trigger_bit(self.first + known);
        if bit == trigger_bit(usize::MAX) {
            return 0;
        }
        if known == self.sets.len() {
            self.sets.push(Some(triggers));
        }
        bit
    }
}

/// The gate of a stored operator.
fn gate(wire: &wire::Operator) -> Option<Gate> {
    if let Some(stored) = &wire.gate {
        return Some(stored.read());
    }
    let kind = u8::try_from(wire.kind).ok().and_then(OperatorKind::from_code)?;
    Gate::of_argument(kind, &wire.text, &wire.phrases)
}
