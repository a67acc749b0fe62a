//! The summary of a phase: which prefilters the values of each target pass.
//!
//! The values of a target are collected once and scanned; their rows of prefilters are united into the row of the
//! target. If a pipeline of transformations changes a value of a target, the target has another row for the pipeline. A
//! row may have too many bits, never too few: it includes the bits of the untransformed values, so that most pipelines,
//! which change nothing, need no work.

use super::arena::{Arena, EMPTY, Value};
use super::build::Engine;
use super::collect::Item;
use super::limits::EXPANSION_LENGTH;
use super::plan::Steps;
use super::prefilter::{FirstTest, LinkPrefilter, Number, Pipeline, Subject};
use super::rules::Link;
use super::scanner::{Scanner, is_passed};
use super::transaction::{Transaction, UNSET};
use crate::operator::{Operator, integer};

/// The most words that the rows of all values of one transaction take: 4 MiB. Beyond, the tests are run.
const WORDS: usize = 1 << 19;

/// The longest list of values that the budget is not charged with for each pipeline.
const SHORT_LIST: usize = 8;

/// How many values are scanned before it is asked whether the budget is spent. Scans that take many steps ask themselves.
const TOGETHER: usize = 16;

/// The summary of the current phase. Row numbers are an index plus 1.
#[derive(Default)]
pub(super) struct PhaseSummary {
    /// The number of the phase; entries with another number are stale.
    phase: u32,
    targets: Vec<OfPhase<TargetSummary>>,
    /// For each target and pipeline the row of the target after the pipeline.
    pipeline_rows: Vec<OfPhase<u32>>,
    values: Vec<Value>,
    items: Vec<Item>,
    /// The rows, of [`Scanner::words`] words each.
    rows: Vec<u64>,
    /// Buffer for the prefilters that the values of a phase pass.
    pub(super) found: Vec<u64>,
    /// Buffer for the steps of a phase.
    pub(super) steps: Steps,
}

/// An entry, and the phase in which it is valid.
#[derive(Clone, Copy, Default)]
struct OfPhase<T>(u32, T);

fn lookup<T: Copy>(list: &[OfPhase<T>], at: usize, phase: u32) -> Option<T> {
    list.get(at).filter(|entry| entry.0 == phase).map(|entry| entry.1)
}

fn store<T>(list: &mut [OfPhase<T>], at: usize, phase: u32, value: T) {
    if let Some(slot) = list.get_mut(at) {
        *slot = OfPhase(phase, value);
    }
}

/// The values of a target, a range of [`PhaseSummary::values`].
#[derive(Clone, Copy, Default)]
pub(super) struct TargetSummary {
    first: usize,
    end: usize,
    /// The bits of the pipelines that may change a value; 0 if the row already has every bit.
    pub(super) triggers: u64,
    /// The number of the row of the untransformed values.
    pub(super) plain: u32,
}

impl TargetSummary {
    pub(super) fn is_empty(&self) -> bool {
        self.first == self.end
    }
}

impl PhaseSummary {
    /// Releases memory beyond what most transactions need.
    pub(super) fn shrink(&mut self) {
        self.values.clear();
        self.values.shrink_to(4096);
        self.items.clear();
        self.items.shrink_to(4096);
        self.rows.shrink_to(16 * 1024);
    }

    /// The memory that grows with the content of transactions, in bytes.
    pub(super) fn size(&self) -> usize {
        self.values.capacity() * size_of::<Value>()
            + self.items.capacity() * size_of::<Item>()
            + self.rows.capacity() * size_of::<u64>()
    }

    /// Invalidates the entries: values may have changed since the last phase.
    pub(super) fn begin_phase(&mut self, engine: &Engine) {
        self.phase = self.phase.wrapping_add(1);
        if self.phase == 0 || self.targets.is_empty() {
            let target_table = &engine.target_table;
            self.phase = 1;
            self.targets = vec![OfPhase::default(); target_table.targets.len()];
            self.pipeline_rows = vec![OfPhase::default(); target_table.targets.len() * target_table.pipelines.len()];
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
    /// Whether a rule with this first test may match. Removed targets are ignored: they could only turn a match into a
    /// non-match.
    pub(super) fn first_may_match(&mut self, engine: &Engine, rule: u32, first: FirstTest) -> bool {
        match first {
            // A step with a prefilter is already resolved.
            FirstTest::Unknown | FirstTest::None | FirstTest::Prefilter(_) => true,
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
        let (Some(prefilter), Some(&target)) = (link.prefilter, link.target_numbers.get(at)) else { return true };
        let summary = self.target_summary(engine, target);
        let row = match summary.triggers & prefilter.bit {
            0 => summary.plain,
            _ => self.pipeline_row(engine, target, prefilter.pipeline),
        };
        self.summary.row(row, engine.scanner.words()).is_none_or(|row| is_passed(row, prefilter.prefilter))
    }

    /// The summary of a target, made once in a phase.
    #[inline]
    pub(super) fn target_summary(&mut self, engine: &Engine, number: u32) -> TargetSummary {
        match lookup(&self.summary.targets, number as usize, self.summary.phase) {
            Some(target) => target,
            None => self.summarise_target(engine, number),
        }
    }

    #[inline(never)]
    fn summarise_target(&mut self, engine: &Engine, number: u32) -> TargetSummary {
        let Some(target) = engine.target_table.targets.get(number as usize) else { return TargetSummary::default() };
        let words = engine.scanner.words();
        let mut items = std::mem::take(&mut self.summary.items);
        items.clear();
        self.collect(engine, target, &mut items);
        let first = self.summary.values.len();
        let plain = self.summary.new_row(words);
        let (mut complete, mut triggers) = (true, 0);
        'items: for together in items.chunks(TOGETHER) {
            for item in together.iter().filter(|item| item.value != UNSET) {
                let row = self.summary.row_mut(plain, words);
                if complete && !self.arena.unite(&engine.scanner, item.value, row) {
                    complete = false;
                    if self.is_overdrawn(engine, Some(item)) {
                        break 'items;
                    }
                }
                triggers |= self.arena.triggers(item.value);
                self.summary.values.push(item.value);
            }
            if self.is_overdrawn(engine, together.last()) {
                complete = false;
                break;
            }
        }
        if !complete {
            // Without all values: the target passes every prefilter, after every pipeline.
            self.summary.row_mut(plain, words).fill(u64::MAX);
            triggers = 0;
        }
        self.summary.items = items;
        self.arena.budget.keep((self.summary.values.len() - first) * 2 * size_of::<Value>());
        let summary = TargetSummary { first, end: self.summary.values.len(), triggers, plain };
        store(&mut self.summary.targets, number as usize, self.summary.phase, summary);
        summary
    }

    /// The row of a target for a pipeline that may change some of its values.
    pub(super) fn pipeline_row(&mut self, engine: &Engine, target: u32, number: u32) -> u32 {
        // Without a row, the target passes every prefilter.
        let Some(pipeline) = engine.target_table.pipelines.get(number as usize) else { return 0 };
        let at = target as usize * engine.target_table.pipelines.len() + number as usize;
        if let Some(row) = lookup(&self.summary.pipeline_rows, at, self.summary.phase) {
            return row;
        }
        let words = engine.scanner.words();
        let summary = self.target_summary(engine, target);
        let row = self.summary.copied_row(summary.plain, words);
        let mut at_value = summary.first;
        let values = summary.end - summary.first;
        // There are few short lists, however large a request is.
        if values > SHORT_LIST {
            self.arena.budget.charge_list(values);
        }
        while let Some(&value) = self.summary.values.get(at_value).filter(|_| at_value < summary.end) {
            at_value += 1;
            if self.arena.triggers(value) & pipeline.bit == 0 {
                continue;
            }
            if !self.unite_pipeline_row(engine, value, (number, pipeline), row) {
                self.summary.row_mut(row, words).fill(u64::MAX);
                break;
            }
        }
        store(&mut self.summary.pipeline_rows, at, self.summary.phase, row);
        row
    }
}

impl Transaction {
    /// Unites a row with the prefilters that a value passes after a pipeline; `false` if a limit prevents the scan. Looks
    /// in the hot cache first.
    fn unite_pipeline_row(
        &mut self,
        engine: &Engine,
        value: Value,
        (number, pipeline): (u32, &Pipeline),
        row: u32,
    ) -> bool {
        let words = engine.scanner.words();
        if let Some(cached) = self.arena.cached_pipeline_row(value, number) {
            unite(self.summary.row_mut(row, words), cached);
            return true;
        }
        if !self.arena.is_in_hot_cache(value) {
            return self.arena.unite_pipeline(&engine.scanner, value, pipeline, self.summary.row_mut(row, words));
        }
        let mut passed = vec![0; words];
        let united = self.arena.unite_pipeline(&engine.scanner, value, pipeline, &mut passed);
        if united {
            self.arena.cache_pipeline_row(value, number, &passed);
            unite(self.summary.row_mut(row, words), &passed);
        }
        united
    }
}

fn unite(row: &mut [u64], more: &[u64]) {
    row.iter_mut().zip(more).for_each(|(word, more)| *word |= more);
}

impl Arena {
    /// Whether a scanned value does not pass the prefilter of a link, before and after the pipeline of the link.
    pub(super) fn is_rejected_by(&self, value: Value, link: LinkPrefilter) -> bool {
        self.triggers(value) & link.bit == 0 && self.is_rejected(value, link.prefilter)
    }

    /// Unites a row with the prefilters that a value passes after a pipeline; `false` if a limit prevents the scan.
    fn unite_pipeline(&mut self, scanner: &Scanner, value: Value, pipeline: &Pipeline, row: &mut [u64]) -> bool {
        if self.budget.is_spent() {
            return false;
        }
        let mut value = value;
        for step in &pipeline.transforms {
            if self.leaves(value, step.changes) {
                continue;
            }
            // A full cache would not keep the results.
            if self.is_full() {
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
        let may_scan = || self.prefilter_words() <= WORDS && !self.is_full();
        if !self.is_scanned(value) && !may_scan() {
            return false;
        }
        self.passed_prefilters(scanner, value).is_some_and(|passed| {
            unite(row, passed);
            true
        })
    }
}
