//! Rules that cannot match what there is are left out.
//!
//! Nearly every rule looks for something harmless requests do not have. Each value is scanned once ([`super::scanner`]),
//! and so is what each pipeline of transformations makes of it where it changes it; the answers of all values a test
//! looks at are united, and tests that share their targets and transformations share the union. A test whose operator
//! is not in it has no match in this phase. What a union stands for does not change within a phase: only such targets
//! have one.
//!
//! A union may hold too much, never too little: it has the answers for the values as they are in any case, so that for
//! most pipelines, which change nothing, there is nothing to be done.

use std::collections::HashMap;

use super::arena::{Arena, Value};
use super::build::{BuiltOperator, Engine, KeySelector, Link, Target};
use super::collect::Item;
use super::scanner::{Scanner, is_open, trigger_bit};
use super::transaction::{Transaction, UNSET};
use crate::operator::{ByteSet, Operator, OperatorKind, integer};
use crate::program::wire;
use crate::transform::Transform;
use crate::vocabulary::Variable;

/// How many words the answers of all values of one transaction may take: 4 MiB. Beyond, tests are run.
const WORDS: usize = 1 << 19;

/// A pipeline of transformations.
pub(super) struct Pipeline {
    pub(super) transforms: Vec<Transform>,
    /// The bit of the pipeline among the triggers of values.
    bit: u64,
    /// A value without any of these bytes passes the same gates afterwards.
    triggers: Option<ByteSet>,
    /// Whether the pipeline changes values for how they are spaced.
    minds_spacing: bool,
    /// Whether every intermediate value counts.
    multi_match: bool,
}

/// Where a link finds out whether it can match.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkGate {
    group: u32,
    gate: u32,
    /// The bit of the pipeline among the triggers of values.
    bit: u64,
}

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
                if link.transforms.is_empty() =>
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
    targets: Vec<Target>,
    target_numbers: HashMap<wire::Target, u32>,
    /// Each a list of targets.
    sets: Vec<Box<[u32]>>,
    set_numbers: HashMap<Box<[u32]>, u32>,
    pipelines: Vec<Pipeline>,
    pipeline_numbers: HashMap<(Vec<u8>, bool), u32>,
    /// Each a set of targets and a pipeline.
    groups: Vec<(u32, u32)>,
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
    ) -> Result<(u32, u64), String> {
        let pipeline = Pipeline {
            transforms: transforms.to_vec(),
            bit: trigger_bit(self.pipelines.len()),
            triggers: gate_triggers(transforms),
            minds_spacing: transforms.iter().any(|transform| transform.minds_spacing()),
            multi_match: link.multi_match,
        };
        let key = (link.transforms.clone(), link.multi_match);
        let pipeline = number(&mut self.pipeline_numbers, &mut self.pipelines, key, pipeline);
        let mut set = Vec::new();
        for wire in &link.targets {
            set.push(match self.target_numbers.get(wire) {
                Some(known) => *known,
                None => number(&mut self.target_numbers, &mut self.targets, wire.clone(), target(wire)?),
            });
        }
        set.sort_unstable();
        set.dedup();
        let set: Box<[u32]> = set.into();
        let set = number(&mut self.set_numbers, &mut self.sets, set.clone(), set);
        let bit = self.pipelines.get(pipeline as usize).map_or(u64::MAX, |pipeline| pipeline.bit);
        Ok((number(&mut self.group_numbers, &mut self.groups, (set, pipeline), (set, pipeline)), bit))
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
    /// The gate of a link with an operator that has the gate `gate`, if the link can have one.
    pub(super) fn new(
        wire: &wire::Link,
        link: &Link,
        gate: Option<u32>,
        groups: &mut Groups,
        target: impl FnMut(&wire::Target) -> Result<Target, String>,
    ) -> Result<Option<Self>, String> {
        let stable = link.targets.iter().all(|target| !target.count && is_stable(target.variable));
        let Some(gate) = gate.filter(|_| stable && !link.negated) else { return Ok(None) };
        let (group, bit) = groups.add(wire, &link.transforms, target)?;
        Ok(Some(Self { group, gate, bit }))
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

/// What is known in this phase; all numbers are one more than an index, 0 is unknown.
#[derive(Default)]
pub(super) struct Known {
    groups: Vec<u32>,
    sets: Vec<u32>,
    of_sets: Vec<KnownSet>,
    values: Vec<Value>,
    items: Vec<Item>,
    /// Rows of the scanner's words.
    rows: Vec<u64>,
}

/// The values of a set of targets.
#[derive(Clone, Copy)]
struct KnownSet {
    first: usize,
    end: usize,
    /// The pipelines that may change any of them.
    triggers: u64,
    /// The row of the values as they are.
    plain: u32,
    /// Whether the row tells all there is.
    complete: bool,
}

impl Known {
    /// Gives back memory beyond what most transactions need.
    pub(super) fn shrink(&mut self) {
        self.values.clear();
        self.values.shrink_to(4096);
        self.items.clear();
        self.items.shrink_to(4096);
        self.rows.shrink_to(16 * 1024);
    }

    /// A phase begins: what there is may have changed.
    pub(super) fn forget(&mut self, engine: &Engine) {
        for (list, length) in
            [(&mut self.groups, engine.groups.groups.len()), (&mut self.sets, engine.groups.sets.len())]
        {
            list.clear();
            list.resize(length, 0);
        }
        self.of_sets.clear();
        self.values.clear();
        self.rows.clear();
    }

    fn new_row(&mut self, words: usize) -> u32 {
        let number = self.rows.len().checked_div(words).unwrap_or(0);
        self.rows.resize(self.rows.len() + words, 0);
        u32::try_from(number + 1).unwrap_or(0)
    }

    /// A new row like another one.
    fn copied_row(&mut self, from: u32, words: usize) -> u32 {
        let number = self.rows.len().checked_div(words).unwrap_or(0);
        let start = (from as usize).saturating_sub(1) * words;
        if self.rows.get(start..start + words).is_none() {
            return self.new_row(words);
        }
        self.rows.extend_from_within(start..start + words);
        u32::try_from(number + 1).unwrap_or(0)
    }

    fn row(&self, number: u32, words: usize) -> Option<&[u64]> {
        let start = (number as usize).checked_sub(1)? * words;
        self.rows.get(start..start + words)
    }

    fn row_mut(&mut self, number: u32, words: usize) -> Option<&mut [u64]> {
        let start = (number as usize).checked_sub(1)? * words;
        self.rows.get_mut(start..start + words)
    }

    /// Opens every gate of a row.
    fn open_all(&mut self, number: u32, words: usize) {
        if let Some(row) = self.row_mut(number, words) {
            row.fill(u64::MAX);
        }
    }
}

impl Transaction {
    /// Whether a rule with this first test may match. Targets taken away from it could only add to a "no".
    pub(super) fn first_may_match(&mut self, engine: &Engine, first: FirstTest) -> bool {
        match first {
            FirstTest::Unknown | FirstTest::None => true,
            FirstTest::Gate(gate) => self.may_match(engine, gate),
            FirstTest::Number { slot, count, kind, argument, negated } => {
                let value = self.tx.get(slot);
                let number = match (count, value) {
                    (true, value) => i64::from(value.is_some()),
                    (false, Some(value)) => integer(self.arena.get(value)),
                    (false, None) => return false,
                };
                Operator::compares(kind, number, argument) != negated
            }
        }
    }

    /// Whether any value a link looks at may match its operator.
    pub(super) fn may_match(&mut self, engine: &Engine, link: LinkGate) -> bool {
        let words = engine.scanner.words();
        let mut number = self.known.groups.get(link.group as usize).copied().unwrap_or_default();
        if number == 0 {
            number = self.group_row(engine, link.group);
            if let Some(slot) = self.known.groups.get_mut(link.group as usize) {
                *slot = number;
            }
        }
        self.known.row(number, words).is_none_or(|row| is_open(row, link.gate))
    }

    fn group_row(&mut self, engine: &Engine, group: u32) -> u32 {
        let words = engine.scanner.words();
        let Some(&(set, pipeline)) = engine.groups.groups.get(group as usize) else { return 0 };
        let Some(pipeline) = engine.groups.pipelines.get(pipeline as usize) else { return 0 };
        let Some(set) = self.known_set(engine, set) else { return 0 };
        if !set.complete || set.triggers & pipeline.bit == 0 {
            return set.plain;
        }
        let row = self.known.copied_row(set.plain, words);
        let mut at = set.first;
        while let Some(&value) = self.known.values.get(at).filter(|_| at < set.end) {
            at += 1;
            if self.arena.triggers(value) & pipeline.bit == 0 {
                continue;
            }
            let united = self.known.row_mut(row, words).unwrap_or_default();
            if !self.arena.unite_pipeline(&engine.scanner, value, pipeline, united) {
                self.known.open_all(row, words);
                break;
            }
        }
        row
    }

    /// The values a set of targets stands for, collected once.
    fn known_set(&mut self, engine: &Engine, set: u32) -> Option<KnownSet> {
        let known = self.known.sets.get(set as usize).copied().unwrap_or_default();
        if let Some(known) = (known as usize).checked_sub(1) {
            return self.known.of_sets.get(known).copied();
        }
        let words = engine.scanner.words();
        let mut items = std::mem::take(&mut self.known.items);
        items.clear();
        for target in engine.groups.sets.get(set as usize)? {
            if let Some(target) = engine.groups.targets.get(*target as usize) {
                self.collect(engine, target, &mut items);
            }
        }
        let first = self.known.values.len();
        let plain = self.known.new_row(words);
        let (mut complete, mut triggers) = (true, 0);
        for item in items.iter().filter(|item| item.value != UNSET) {
            let united = self.known.row_mut(plain, words).unwrap_or_default();
            complete = complete && self.arena.unite(&engine.scanner, item.value, united);
            triggers |= self.arena.triggers(item.value);
            self.known.values.push(item.value);
        }
        if !complete {
            self.known.open_all(plain, words);
        }
        self.known.items = items;
        let known = KnownSet { first, end: self.known.values.len(), triggers, plain, complete };
        self.known.of_sets.push(known);
        if let Some(slot) = self.known.sets.get_mut(set as usize) {
            *slot = u32::try_from(self.known.of_sets.len()).unwrap_or(0);
        }
        Some(known)
    }
}

impl Arena {
    /// Whether a value is known not to pass the gate of a link, transformed or not.
    pub(super) fn is_closed_to(&self, scanner: &Scanner, value: Value, link: LinkGate) -> bool {
        self.triggers(value) & link.bit == 0 && self.is_closed(scanner, value, link.gate)
    }

    /// Unites a row with what the value passes after a pipeline; false if there is no room to find out.
    fn unite_pipeline(&mut self, scanner: &Scanner, value: Value, pipeline: &Pipeline, row: &mut [u64]) -> bool {
        let mut value = value;
        for transform in &pipeline.transforms {
            // Nothing made from here on would be kept.
            if self.is_full() {
                return false;
            }
            let next = self.transformed(value, *transform);
            if next != value && pipeline.multi_match && !self.unite(scanner, next, row) {
                return false;
            }
            value = next;
        }
        pipeline.multi_match || self.unite(scanner, value, row)
    }

    fn unite(&mut self, scanner: &Scanner, value: Value, row: &mut [u64]) -> bool {
        if self.gate_words() > WORDS || self.is_full() {
            return false;
        }
        self.open_gates(scanner, value).is_some_and(|open| {
            row.iter_mut().zip(open).for_each(|(word, more)| *word |= more);
            true
        })
    }
}
