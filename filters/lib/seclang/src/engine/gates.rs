//! Rules that cannot match what there is are left out: what of the rules that takes.
//!
//! Nearly every rule looks for something harmless requests do not have. Each value is scanned once ([`super::scanner`]),
//! and so is what each pipeline of transformations makes of it where it changes it; the answers of all values a test
//! looks at are united ([`super::known`]), and tests that share their targets and transformations, a group, share the
//! union. A test whose operator is not in it has no match in this phase. What a union stands for does not change within a
//! phase: only such targets have one.

use std::collections::HashMap;

use super::build::{Builder, BuiltOperator, KeySelector, Link, Rule, Target};
use super::foresight::{Foresight, Prospect};
use super::scanner::{Scanner, trigger_bit};
use crate::operator::{ByteSet, Gate, OperatorKind};
use crate::program::wire;
use crate::transform::Transform;
use crate::vocabulary::Variable;

/// A pipeline of transformations.
pub(super) struct Pipeline {
    pub(super) transforms: Vec<Transform>,
    /// The bit of the pipeline among the triggers of values.
    pub(super) bit: u64,
    /// A value without any of these bytes passes the same gates afterwards.
    triggers: Option<ByteSet>,
    /// Whether the pipeline changes values for how they are spaced.
    minds_spacing: bool,
    /// Whether every intermediate value counts.
    pub(super) multi_match: bool,
}

/// Where a link finds out whether it can match.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkGate {
    pub(super) group: u32,
    pub(super) gate: u32,
    /// The bit of the pipeline among the triggers of values.
    pub(super) bit: u64,
}

/// A group, and the bit of its pipeline.
struct LinkGroup {
    group: u32,
    bit: u64,
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
    /// A name of TX, or whether it is there, compared with a number: what skips by paranoia level.
    Number {
        slot: u32,
        count: bool,
        kind: OperatorKind,
        argument: i64,
        negated: bool,
    },
}

impl FirstTest {
    /// Whether a rule with this first test alone matches if it may match.
    pub(super) fn decides(self) -> bool {
        matches!(self, Self::None | Self::Number { .. })
    }

    pub(super) fn of(link: &Link, operators: &[BuiltOperator]) -> Self {
        if link.operator.is_none() {
            return Self::None;
        }
        if let Some(gate) = link.gate {
            return Self::Gate(gate);
        }
        let operator = link.operator.and_then(|at| operators.get(at as usize)).map(|built| &built.operator);
        match (link.targets.as_slice(), operator.and_then(|operator| Some((operator.kind(), operator.constant()?)))) {
            ([Target { variable: Variable::Tx, key: KeySelector::Slot(slot), count }], Some((kind, argument)))
                if link.transforms.is_empty() && link.exclusions.is_empty() =>
            {
                Self::Number { slot: *slot, count: *count, kind, argument, negated: link.negated }
            }
            _ => Self::Unknown,
        }
    }
}

/// What the links of an engine look at, each combination once.
#[derive(Default)]
pub(super) struct Groups {
    pub(super) targets: Vec<Target>,
    target_numbers: HashMap<wire::Target, u32>,
    /// Each a list of targets.
    pub(super) sets: Vec<Box<[u32]>>,
    set_numbers: HashMap<Box<[u32]>, u32>,
    pub(super) pipelines: Vec<Pipeline>,
    pipeline_numbers: HashMap<(Vec<Transform>, bool), u32>,
    /// Each a set of targets and a pipeline.
    pub(super) groups: Vec<(u32, u32)>,
    group_numbers: HashMap<(u32, u32), u32>,
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
    /// The group of a link: `target` builds its targets.
    fn add(
        &mut self,
        link: &wire::Link,
        transforms: &[Transform],
        mut target: impl FnMut(&wire::Target) -> Result<Target, String>,
    ) -> Result<(LinkGroup, Box<[u32]>), String> {
        // What gates do not tell apart in the end makes no pipeline of its own.
        let gated = transforms.iter().rposition(|transform| transform.gate_triggers() != Some(ByteSet::default()));
        let transforms = gated.and_then(|last| transforms.get(..=last)).unwrap_or_default();
        let pipeline = Pipeline {
            transforms: transforms.to_vec(),
            bit: trigger_bit(self.pipelines.len()),
            triggers: gate_triggers(transforms),
            minds_spacing: transforms.iter().any(|transform| transform.minds_spacing()),
            multi_match: link.multi_match,
        };
        let key = (transforms.to_vec(), link.multi_match);
        let pipeline = number(&mut self.pipeline_numbers, &mut self.pipelines, key, pipeline);
        let mut set = Vec::new();
        for wire in &link.targets {
            set.push(match self.target_numbers.get(wire) {
                Some(known) => *known,
                None => number(&mut self.target_numbers, &mut self.targets, wire.clone(), target(wire)?),
            });
        }
        let targets = set.clone().into();
        set.sort_unstable();
        set.dedup();
        let set: Box<[u32]> = set.into();
        let set = number(&mut self.set_numbers, &mut self.sets, set.clone(), set);
        let bit = self.pipelines.get(pipeline as usize).map_or(u64::MAX, |pipeline| pipeline.bit);
        let group = number(&mut self.group_numbers, &mut self.groups, (set, pipeline), (set, pipeline));
        Ok((LinkGroup { group, bit }, targets))
    }

    /// Forgets what is only needed while links are added.
    pub(super) fn finished(mut self) -> Self {
        self.target_numbers = HashMap::new();
        self.set_numbers = HashMap::new();
        self.pipeline_numbers = HashMap::new();
        self.group_numbers = HashMap::new();
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
        let (group, targets) = groups.add(wire, &link.transforms, target)?;
        Ok(Some((Self { group: group.group, gate, bit: group.bit }, targets)))
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
        let pipelines = groups.pipelines.len();
        let mut changing: Vec<Option<ByteSet>> = Vec::new();
        for link in rules.iter_mut().flat_map(|rule| &mut rule.links) {
            let Some(triggers) = link.triggers.filter(|triggers| *triggers != ByteSet::default()) else { continue };
            let known = changing.iter().position(|known| *known == Some(triggers)).unwrap_or(changing.len());
            let bit = trigger_bit(pipelines + known);
            if bit != trigger_bit(usize::MAX) {
                link.changes = bit;
                if known == changing.len() {
                    changing.push(Some(triggers));
                }
            }
        }
        scanner.set_triggers(groups.triggers().chain(changing.iter().map(|triggers| (triggers, false))));
        Ok((scanner, groups.finished()))
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
