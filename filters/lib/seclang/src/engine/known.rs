//! What is known in a phase about the values rules look at.
//!
//! The values of a target are collected once and scanned; their answers are united to the row of the target. Where a
//! pipeline of transformations changes a value of a target, the target has a row of its own for the pipeline. A row may
//! hold too much, never too little: it has the answers for the values as they are in any case, so that for most
//! pipelines, which change nothing, there is nothing to be done.

use super::arena::{Arena, EMPTY, Value};
use super::build::{Engine, Link};
use super::collect::Item;
use super::gates::{FirstTest, LinkGate, Number, Pipeline, Subject};
use super::limits::EXPANSION_LENGTH;
use super::plan::Steps;
use super::scanner::{Scanner, is_open};
use super::transaction::{Transaction, UNSET};
use crate::operator::{Operator, integer};

/// How many words the answers of all values of one transaction may take: 4 MiB. Beyond, tests are run.
const WORDS: usize = 1 << 19;

/// What is known in this phase. All numbers of rows are one more than an index.
#[derive(Default)]
pub(super) struct Known {
    /// Counts the phases: what has the number of another one is forgotten.
    phase: u32,
    targets: Vec<OfPhase<KnownTarget>>,
    /// For each target and pipeline the row of the values the pipeline makes.
    made: Vec<OfPhase<u32>>,
    values: Vec<Value>,
    items: Vec<Item>,
    /// Rows of the scanner's words.
    rows: Vec<u64>,
    /// Room for the gates that are found open.
    pub(super) found: Vec<u64>,
    /// Room for the steps of a phase.
    pub(super) steps: Steps,
}

/// Something that is known in the phase with this number.
#[derive(Clone, Copy, Default)]
struct OfPhase<T>(u32, T);

fn known<T: Copy>(list: &[OfPhase<T>], at: usize, phase: u32) -> Option<T> {
    list.get(at).filter(|known| known.0 == phase).map(|known| known.1)
}

fn learn<T>(list: &mut [OfPhase<T>], at: usize, phase: u32, what: T) {
    if let Some(slot) = list.get_mut(at) {
        *slot = OfPhase(phase, what);
    }
}

/// The values of a target.
#[derive(Clone, Copy, Default)]
pub(super) struct KnownTarget {
    first: usize,
    end: usize,
    /// The pipelines that may change any of them; none if the row already holds all there is.
    pub(super) triggers: u64,
    /// The row of the values as they are.
    pub(super) plain: u32,
}

impl KnownTarget {
    pub(super) fn is_empty(&self) -> bool {
        self.first == self.end
    }
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

    /// How much memory is kept that grows with what transactions bring, in bytes.
    pub(super) fn size(&self) -> usize {
        self.values.capacity() * size_of::<Value>()
            + self.items.capacity() * size_of::<Item>()
            + self.rows.capacity() * size_of::<u64>()
    }

    /// A phase begins: what there is may have changed.
    pub(super) fn forget(&mut self, engine: &Engine) {
        self.phase = self.phase.wrapping_add(1);
        if self.phase == 0 || self.targets.is_empty() {
            let groups = &engine.groups;
            self.phase = 1;
            self.targets = vec![OfPhase::default(); groups.targets.len()];
            self.made = vec![OfPhase::default(); groups.targets.len() * groups.pipelines.len()];
        }
        self.values.clear();
        self.rows.clear();
    }

    fn new_row(&mut self, words: usize) -> u32 {
        let number = self.rows.len().checked_div(words).unwrap_or(0);
        self.rows.resize(self.rows.len() + words, 0);
        u32::try_from(number + 1).unwrap_or(0)
    }

    fn range(number: u32, words: usize) -> Option<std::ops::Range<usize>> {
        let start = (number as usize).checked_sub(1)? * words;
        Some(start..start + words)
    }

    pub(super) fn row(&self, number: u32, words: usize) -> Option<&[u64]> {
        self.rows.get(Self::range(number, words)?)
    }

    fn row_mut(&mut self, number: u32, words: usize) -> &mut [u64] {
        Self::range(number, words).and_then(|range| self.rows.get_mut(range)).unwrap_or_default()
    }

    fn copied_row(&mut self, from: u32, words: usize) -> u32 {
        let number = self.rows.len().checked_div(words).unwrap_or(0);
        match Self::range(from, words).filter(|range| range.end <= self.rows.len()) {
            Some(range) => self.rows.extend_from_within(range),
            None => self.rows.resize(self.rows.len() + words, u64::MAX),
        }
        u32::try_from(number + 1).unwrap_or(0)
    }
}

impl Transaction {
    /// Whether a rule with this first test may match. Targets taken away from it could only add to a "no".
    pub(super) fn first_may_match(&mut self, engine: &Engine, rule: u32, first: FirstTest) -> bool {
        match first {
            // Of a gated step it is known already.
            FirstTest::Unknown | FirstTest::None | FirstTest::Gate(_) => true,
            FirstTest::Number { subject, kind, argument, negated } => {
                let Some(number) = self.subject(engine, rule, subject) else { return false };
                let argument = match argument {
                    Number::Constant(argument) => argument,
                    Number::Slot(slot) => self.tx.get(slot).map_or(0, |value| {
                        let text = self.arena.get(value);
                        integer(text.get(..EXPANSION_LENGTH).unwrap_or(text))
                    }),
                };
                Operator::compares(kind, number, argument) != negated
            }
        }
    }

    /// The number that a rule's first test compares; `None` if there is nothing to compare.
    fn subject(&mut self, engine: &Engine, rule: u32, subject: Subject) -> Option<i64> {
        match subject {
            Subject::Slot(slot) => Some(integer(self.arena.get(self.tx.get(slot)?))),
            Subject::HasSlot(slot) => Some(i64::from(self.tx.get(slot).is_some())),
            Subject::Scalar(variable) => {
                let value = self.scalars.get(usize::from(variable.code())).copied().unwrap_or(EMPTY);
                (value != UNSET).then(|| integer(self.arena.get(value)))
            }
            Subject::Count => {
                let target = engine.rules.get(rule as usize)?.links.first()?.targets.first()?;
                let mut items = std::mem::take(&mut self.items);
                items.clear();
                self.collect_values(engine, target.variable, &target.key, &mut items);
                let count = items.len();
                self.items = items;
                Some(i64::try_from(count).unwrap_or(i64::MAX))
            }
        }
    }

    /// Whether any value of one target of a link, the one at this position, may match its operator.
    pub(super) fn target_may_match(&mut self, engine: &Engine, link: &Link, at: usize) -> bool {
        let (Some(gate), Some(&target)) = (link.gate, link.known_targets.get(at)) else { return true };
        let known = self.known_target(engine, target);
        let row = match known.triggers & gate.bit {
            0 => known.plain,
            _ => self.made_row(engine, target, gate.pipeline),
        };
        self.known.row(row, engine.scanner.words()).is_none_or(|row| is_open(row, gate.gate))
    }

    /// The values of a target, collected once.
    #[inline]
    pub(super) fn known_target(&mut self, engine: &Engine, number: u32) -> KnownTarget {
        match known(&self.known.targets, number as usize, self.known.phase) {
            Some(target) => target,
            None => self.learn_target(engine, number),
        }
    }

    #[inline(never)]
    fn learn_target(&mut self, engine: &Engine, number: u32) -> KnownTarget {
        let Some(target) = engine.groups.targets.get(number as usize) else { return KnownTarget::default() };
        let words = engine.scanner.words();
        let mut items = std::mem::take(&mut self.known.items);
        items.clear();
        self.collect(engine, target, &mut items);
        let first = self.known.values.len();
        let plain = self.known.new_row(words);
        let (mut complete, mut triggers) = (true, 0);
        for item in items.iter().filter(|item| item.value != UNSET) {
            if self.is_overdrawn(engine, Some(item)) {
                complete = false;
                break;
            }
            complete = complete && self.arena.unite(&engine.scanner, item.value, self.known.row_mut(plain, words));
            triggers |= self.arena.triggers(item.value);
            self.known.values.push(item.value);
        }
        if !complete {
            // Every gate is open, whatever is made of the values.
            self.known.row_mut(plain, words).fill(u64::MAX);
            triggers = 0;
        }
        self.known.items = items;
        self.arena.budget.keep((self.known.values.len() - first) * 2 * size_of::<Value>());
        let known = KnownTarget { first, end: self.known.values.len(), triggers, plain };
        learn(&mut self.known.targets, number as usize, self.known.phase, known);
        known
    }

    /// The row of a target for a pipeline that may change some of its values.
    pub(super) fn made_row(&mut self, engine: &Engine, target: u32, number: u32) -> u32 {
        // Without a row every gate is open.
        let Some(pipeline) = engine.groups.pipelines.get(number as usize) else { return 0 };
        let at = target as usize * engine.groups.pipelines.len() + number as usize;
        if let Some(row) = known(&self.known.made, at, self.known.phase) {
            return row;
        }
        let words = engine.scanner.words();
        let known = self.known_target(engine, target);
        let row = self.known.copied_row(known.plain, words);
        let mut at_value = known.first;
        while let Some(&value) = self.known.values.get(at_value).filter(|_| at_value < known.end) {
            at_value += 1;
            self.arena.budget.charge_list(1);
            if self.arena.triggers(value) & pipeline.bit == 0 {
                continue;
            }
            if !self.unite_made(engine, value, (number, pipeline), row) {
                self.known.row_mut(row, words).fill(u64::MAX);
                break;
            }
        }
        learn(&mut self.known.made, at, self.known.phase, row);
        row
    }
}

impl Transaction {
    /// Unites a row with what the value passes after a pipeline; false if there is no room to find out.
    fn unite_made(&mut self, engine: &Engine, value: Value, (number, pipeline): (u32, &Pipeline), row: u32) -> bool {
        let words = engine.scanner.words();
        if let Some(made) = self.arena.familiar_made(value, number) {
            unite(self.known.row_mut(row, words), made);
            return true;
        }
        if !self.arena.is_familiar(value) {
            return self.arena.unite_pipeline(&engine.scanner, value, pipeline, self.known.row_mut(row, words));
        }
        let mut made = vec![0; words];
        let united = self.arena.unite_pipeline(&engine.scanner, value, pipeline, &mut made);
        if united {
            self.arena.keep_made(value, number, &made);
            unite(self.known.row_mut(row, words), &made);
        }
        united
    }
}

fn unite(row: &mut [u64], more: &[u64]) {
    row.iter_mut().zip(more).for_each(|(word, more)| *word |= more);
}

impl Arena {
    /// Whether a value is known not to pass the gate of a link, transformed or not.
    pub(super) fn is_closed_to(&self, value: Value, link: LinkGate) -> bool {
        self.triggers(value) & link.bit == 0 && self.is_closed(value, link.gate)
    }

    /// Unites a row with what the value passes after a pipeline; false if there is no room to find out.
    fn unite_pipeline(&mut self, scanner: &Scanner, value: Value, pipeline: &Pipeline, row: &mut [u64]) -> bool {
        let mut value = value;
        for step in &pipeline.transforms {
            if self.leaves(value, step.changes) {
                continue;
            }
            // Nothing made from here on would be kept.
            if self.is_full() || self.budget.is_spent() {
                return false;
            }
            let next = self.transformed(value, step.transform);
            if next != value && pipeline.multi_match && !self.unite(scanner, next, row) {
                return false;
            }
            value = next;
        }
        pipeline.multi_match || self.unite(scanner, value, row)
    }

    fn unite(&mut self, scanner: &Scanner, value: Value, row: &mut [u64]) -> bool {
        if self.gate_words() > WORDS || self.is_full() || self.budget.is_spent() {
            return false;
        }
        self.open_gates(scanner, value).is_some_and(|open| {
            unite(row, open);
            true
        })
    }
}
