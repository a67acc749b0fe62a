//! Rules that cannot match what there is are left out.
//!
//! Nearly every rule looks for something harmless requests do not have. Each value is scanned once, after each pipeline
//! of transformations that changes it ([`super::scanner`]); the answers of all values a test looks at are united, and
//! tests that share their targets and transformations share the union. A test whose operator is not in it has no match
//! in this phase. What a union stands for does not change within a phase: only such targets have one.

use std::collections::HashMap;

use super::arena::{Arena, Value};
use super::build::{BuiltOperator, Engine, KeySelector, Link, Target};
use super::collect::Item;
use super::scanner::{Scanner, is_open};
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
    /// A value without any of these bytes stays as it is.
    pub(super) triggers: Option<ByteSet>,
    /// Whether every intermediate value counts.
    pub(super) multi_match: bool,
}

/// Where a link finds out whether it can match.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkGate {
    group: u32,
    gate: u32,
}

/// What tells cheaply that a rule does not match: a look at its first test.
#[derive(Debug, Clone, Copy)]
pub(super) enum FirstTest {
    /// Nothing: the rule has to be run.
    Unknown,
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
    pub(super) fn of(link: &Link, operators: &[BuiltOperator]) -> Self {
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
    pipelines: Vec<Pipeline>,
    pipeline_numbers: HashMap<(Vec<u8>, bool), u32>,
    /// Each a target and a pipeline.
    units: Vec<(u32, u32)>,
    unit_numbers: HashMap<(u32, u32), u32>,
    /// Each a list of units.
    groups: Vec<Vec<u32>>,
    group_numbers: HashMap<Vec<u32>, u32>,
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
    pub(super) fn add(
        &mut self,
        link: &wire::Link,
        transforms: &[Transform],
        mut target: impl FnMut(&wire::Target) -> Result<Target, String>,
    ) -> Result<u32, String> {
        let triggers = triggers(transforms);
        let pipeline = Pipeline { transforms: transforms.to_vec(), triggers, multi_match: link.multi_match };
        let key = (link.transforms.clone(), link.multi_match);
        let pipeline = number(&mut self.pipeline_numbers, &mut self.pipelines, key, pipeline);
        let mut group = Vec::new();
        for wire in &link.targets {
            let target = match self.target_numbers.get(wire) {
                Some(known) => *known,
                None => number(&mut self.target_numbers, &mut self.targets, wire.clone(), target(wire)?),
            };
            group.push(number(&mut self.unit_numbers, &mut self.units, (target, pipeline), (target, pipeline)));
        }
        group.sort_unstable();
        group.dedup();
        Ok(number(&mut self.group_numbers, &mut self.groups, group.clone(), group))
    }

    /// Forgets what is only needed while links are added.
    pub(super) fn finished(mut self) -> Self {
        self.target_numbers = HashMap::new();
        self.pipeline_numbers = HashMap::new();
        self.unit_numbers = HashMap::new();
        self.group_numbers = HashMap::new();
        self
    }
}

impl LinkGate {
    /// The gate of a link with an operator that has the gate `gate`, if the link can have one.
    pub(super) fn of(link: &Link, gate: Option<u32>, group: u32) -> Option<Self> {
        let stable = link.targets.iter().all(|target| !target.count && is_stable(target.variable));
        let gate = gate.filter(|_| stable && !link.negated)?;
        Some(Self { group, gate })
    }
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
    units: Vec<u32>,
    targets: Vec<u32>,
    of_targets: Vec<KnownTarget>,
    items: Vec<Item>,
    /// Rows of the scanner's words.
    rows: Vec<u64>,
}

struct KnownTarget {
    first: usize,
    end: usize,
    present: ByteSet,
    /// The row of the values as they are.
    plain: u32,
}

impl Known {
    /// Gives back memory beyond what most transactions need.
    pub(super) fn shrink(&mut self) {
        self.items.clear();
        self.items.shrink_to(4096);
        self.rows.shrink_to(16 * 1024);
    }

    /// A phase begins: what there is may have changed.
    pub(super) fn forget(&mut self, engine: &Engine) {
        for (list, length) in [
            (&mut self.groups, engine.groups.groups.len()),
            (&mut self.units, engine.groups.units.len()),
            (&mut self.targets, engine.groups.targets.len()),
        ] {
            list.clear();
            list.resize(length, 0);
        }
        self.of_targets.clear();
        self.items.clear();
        self.rows.clear();
    }

    fn new_row(&mut self, words: usize) -> u32 {
        let number = self.rows.len().checked_div(words).unwrap_or(0);
        self.rows.resize(self.rows.len() + words, 0);
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

    fn unite(&mut self, into: u32, from: u32, words: usize) {
        for at in 0..words {
            let more = self.row(from, words).and_then(|row| row.get(at)).copied().unwrap_or_default();
            if let Some(word) = self.row_mut(into, words).and_then(|row| row.get_mut(at)) {
                *word |= more;
            }
        }
    }
}

impl Transaction {
    /// Whether a rule with this first test may match. Targets taken away from it could only add to a "no".
    pub(super) fn first_may_match(&mut self, engine: &Engine, first: FirstTest) -> bool {
        match first {
            FirstTest::Unknown => true,
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
        let Some(units) = engine.groups.groups.get(group as usize) else { return 0 };
        if let [unit] = units.as_slice() {
            return self.unit_row(engine, *unit);
        }
        let row = self.known.new_row(words);
        for unit in units {
            let of_unit = self.unit_row(engine, *unit);
            self.known.unite(row, of_unit, words);
        }
        row
    }

    fn unit_row(&mut self, engine: &Engine, unit: u32) -> u32 {
        let known = self.known.units.get(unit as usize).copied().unwrap_or_default();
        if known != 0 {
            return known;
        }
        let row = self.make_unit_row(engine, unit);
        if let Some(slot) = self.known.units.get_mut(unit as usize) {
            *slot = row;
        }
        row
    }

    fn make_unit_row(&mut self, engine: &Engine, unit: u32) -> u32 {
        let words = engine.scanner.words();
        let Some(&(target, pipeline)) = engine.groups.units.get(unit as usize) else { return 0 };
        let Some(pipeline) = engine.groups.pipelines.get(pipeline as usize) else { return 0 };
        let at = self.known_target(engine, target);
        let Some(known) = self.known.of_targets.get(at) else { return 0 };
        let (first, end, plain) = (known.first, known.end, known.plain);
        let unchanged = pipeline.triggers.is_some_and(|triggers| !known.present.intersects(&triggers));
        if plain != 0 && unchanged {
            return plain;
        }
        let row = self.known.new_row(words);
        let mut complete = true;
        for at in first..end {
            let Some(item) = self.known.items.get(at).copied() else { break };
            let united = self.known.row_mut(row, words).unwrap_or_default();
            complete &= self.arena.unite_pipeline(&engine.scanner, item.value, pipeline, united);
            if !complete {
                break;
            }
        }
        if !complete && let Some(united) = self.known.row_mut(row, words) {
            united.fill(u64::MAX);
        }
        row
    }

    /// The values a target stands for, collected once.
    fn known_target(&mut self, engine: &Engine, target: u32) -> usize {
        let known = self.known.targets.get(target as usize).copied().unwrap_or_default();
        if known != 0 {
            return known as usize - 1;
        }
        let words = engine.scanner.words();
        let mut items = std::mem::take(&mut self.known.items);
        let first = items.len();
        if let Some(target) = engine.groups.targets.get(target as usize) {
            self.collect(engine, target, &mut items);
        }
        self.known.items = items;
        let end = self.known.items.len();
        let plain = self.known.new_row(words);
        let mut present = ByteSet::default();
        let mut complete = true;
        for at in first..end {
            let Some(item) = self.known.items.get(at).copied() else { break };
            if item.value == UNSET {
                continue;
            }
            present.add(self.arena.present(item.value));
            let united = self.known.row_mut(plain, words).unwrap_or_default();
            complete = complete && self.arena.unite(&engine.scanner, item.value, united);
        }
        let plain = if complete { plain } else { 0 };
        self.known.of_targets.push(KnownTarget { first, end, present, plain });
        if let Some(slot) = self.known.targets.get_mut(target as usize) {
            *slot = u32::try_from(self.known.of_targets.len()).unwrap_or(0);
        }
        self.known.of_targets.len() - 1
    }
}

impl Arena {
    /// Unites a row with what the value passes after a pipeline; false if there is no room to find out.
    fn unite_pipeline(&mut self, scanner: &Scanner, value: Value, pipeline: &Pipeline, row: &mut [u64]) -> bool {
        if value == UNSET {
            return true;
        }
        if self.is_unchanged(value, &pipeline.triggers) {
            return self.unite(scanner, value, row);
        }
        let mut value = value;
        if pipeline.multi_match && !self.unite(scanner, value, row) {
            return false;
        }
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
