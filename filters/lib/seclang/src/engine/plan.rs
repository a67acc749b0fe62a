//! The rules of a phase in the order in which they run, and which of them a transaction needs to look at.

use super::arena::Value;
use super::build::{Engine, Rule, SetOperation};
use super::foresight::{Foresight, Prospect};
use super::gates::{FirstTest, LinkGate};
use super::transaction::Transaction;

/// The rules of one phase.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    /// One bit for each step: those about which no gate decides.
    ungated: Vec<u64>,
    /// The gate and the number of each of the others, in order.
    gated: Vec<(u32, u32)>,
    /// The same by gate.
    by_gate: Vec<(u32, u32)>,
    /// What tells which gates are open.
    looks: Vec<Look>,
    books: Vec<Books>,
}

/// What rules do together that follow each other, match in any case, and only assign.
pub(super) struct Books {
    /// The rules, in order.
    pub(super) rules: Vec<u32>,
    pub(super) entries: Vec<BookEntry>,
}

/// One of the things they do.
pub(super) enum BookEntry {
    /// A name of TX gets a value.
    Constant(u32, Value),
    /// The assignments of a rule.
    Rule(u32),
}

/// A target, and the gates of the steps that look at it, a bit for each.
struct Look {
    target: u32,
    gates: Vec<u64>,
    /// The bits of the pipelines among the triggers of values.
    bits: u64,
    pipelines: Vec<LookAfter>,
}

/// A pipeline of transformations, and the gates of the steps that look at what it makes of a target.
struct LookAfter {
    pipeline: u32,
    bit: u64,
    gates: Vec<u64>,
}

/// One rule, and what tells that it does not match.
pub(super) struct Step {
    pub(super) rule: u32,
    pub(super) first: FirstTest,
    /// Whether a gate decides about it.
    pub(super) gated: bool,
    /// What is done at once from here on, as long as everything goes as foreseen.
    books: Option<u32>,
}

/// The steps of a plan that are still to be gone.
#[derive(Default)]
pub(super) struct Steps {
    /// One bit for each.
    open: Vec<u64>,
    /// Whether it is known which of the gated ones are: until then only the first of them is.
    looked_up: bool,
}

impl Steps {
    /// The first one at or after a place.
    pub(super) fn next(&self, from: usize) -> Option<usize> {
        let mut at = from / 64;
        let mut word = self.open.get(at)? & (u64::MAX << (from % 64));
        while word == 0 {
            at += 1;
            word = *self.open.get(at)?;
        }
        Some(at * 64 + word.trailing_zeros() as usize)
    }

    /// Whether a step is still to be gone.
    pub(super) fn is_open(&self, step: usize) -> bool {
        self.open.get(step / 64).is_some_and(|word| word >> (step % 64) & 1 == 1)
    }
}

fn set(bits: &mut [u64], at: u32) {
    if let Some(word) = bits.get_mut((at / 64) as usize) {
        *word |= 1 << (at % 64);
    }
}

/// Adds the bits of a row that a mask has; all of them if there is no such row.
fn unite_masked(bits: &mut [u64], row: Option<&[u64]>, mask: &[u64]) {
    match row {
        Some(row) => bits.iter_mut().zip(row).zip(mask).for_each(|((bits, row), mask)| *bits |= row & mask),
        None => bits.iter_mut().zip(mask).for_each(|(bits, mask)| *bits |= mask),
    }
}

impl Plan {
    /// All rules of a phase as they are written; `words` hold a bit for each gate.
    pub(super) fn whole(phase: &[u32], rules: &[Rule], words: usize, first_test: impl Fn(u32) -> FirstTest) -> Self {
        Self::of(phase.iter().map(|&rule| (rule, first_test(rule))), rules, words)
    }

    /// The rules of a phase that may match, as far as that is known in advance.
    pub(super) fn foreseen(
        phase: &[u32],
        foresight: &Foresight,
        rules: &[Rule],
        words: usize,
        first_test: impl Fn(u32) -> FirstTest,
    ) -> Self {
        let left = phase.iter().filter_map(|&rule| match foresight.of(rule) {
            Prospect::Never | Prospect::Done => None,
            Prospect::Matches => Some((rule, FirstTest::None)),
            Prospect::Open => Some((rule, first_test(rule))),
        });
        let mut plan = Self::of(left, rules, words);
        plan.keep_books_at_once(foresight, rules);
        plan
    }

    /// Finds the rules whose assignments can be made at once.
    fn keep_books_at_once(&mut self, foresight: &Foresight, rules: &[Rule]) {
        let after = self.steps.iter().skip(1).map(|step| step.rule).chain([u32::MAX]);
        let joins: Vec<bool> = self
            .steps
            .iter()
            .zip(after)
            .map(|(step, after)| {
                let certain = foresight.of(step.rule) == Prospect::Matches;
                // What is skipped is no step in any case.
                rules.get(step.rule as usize).is_some_and(|rule| {
                    certain && rule.is_bookkeeping && rule.skip_to.is_none_or(|to| to <= after || after == u32::MAX)
                })
            })
            .collect();
        let mut from = 0;
        for run in joins.chunk_by(|one, other| one == other) {
            let steps = self.steps.get_mut(from..from + run.len()).unwrap_or_default();
            from += run.len();
            if run.first() != Some(&true) {
                continue;
            }
            let books = Books::new(steps.iter().map(|step| step.rule), rules);
            if let Some(first) = steps.first_mut() {
                first.books = u32::try_from(self.books.len()).ok();
                self.books.push(books);
            }
        }
    }

    /// What is done at once from a step on.
    pub(super) fn books(&self, step: &Step) -> Option<&Books> {
        self.books.get(step.books? as usize)
    }

    fn of(phase: impl Iterator<Item = (u32, FirstTest)>, rules: &[Rule], words: usize) -> Self {
        let steps =
            phase.map(|(rule, first)| Step { rule, first, gated: matches!(first, FirstTest::Gate(_)), books: None });
        let mut plan = Self { steps: steps.collect(), ..Self::default() };
        plan.ungated = vec![0; plan.steps.len().div_ceil(64)];
        let mut looks: Vec<Look> = Vec::new();
        for (step, number) in plan.steps.iter().zip(0..) {
            let FirstTest::Gate(gate) = step.first else {
                set(&mut plan.ungated, number);
                continue;
            };
            plan.gated.push((gate.gate, number));
            let link = rules.get(step.rule as usize).and_then(|rule| rule.links.first());
            for &target in link.map(|link| &*link.known_targets).unwrap_or_default() {
                let known = looks.iter().position(|known| known.target == target).unwrap_or_else(|| {
                    looks.push(Look { target, gates: vec![0; words], bits: 0, pipelines: Vec::new() });
                    looks.len() - 1
                });
                if let Some(look) = looks.get_mut(known) {
                    look.add(gate, words);
                }
            }
        }
        plan.looks = looks;
        plan.by_gate.clone_from(&plan.gated);
        plan.by_gate.sort_unstable();
        plan
    }

    /// A phase begins.
    pub(super) fn begin(&self, steps: &mut Steps) {
        steps.open.clone_from(&self.ungated);
        steps.looked_up = false;
        self.jumped(0, steps);
    }

    /// Rules were skipped: the first gated step may be among them.
    pub(super) fn jumped(&self, to: usize, steps: &mut Steps) {
        if !steps.looked_up {
            let from = self.gated.partition_point(|(_, step)| (*step as usize) < to);
            if let Some((_, step)) = self.gated.get(from) {
                set(&mut steps.open, *step);
            }
        }
    }

    /// Opens the steps with a gate.
    fn open(&self, gate: u32, steps: &mut Steps) {
        let from = self.by_gate.partition_point(|(other, _)| *other < gate);
        let same = self.by_gate.iter().skip(from).take_while(|(other, _)| *other == gate);
        same.for_each(|(_, step)| set(&mut steps.open, *step));
    }

    /// The step at which a phase goes on with the first rule at or after a rule.
    pub(super) fn step_of(&self, rule: u32) -> usize {
        self.steps.partition_point(|step| step.rule < rule)
    }
}

impl Books {
    fn new(run: impl Iterator<Item = u32>, rules: &[Rule]) -> Self {
        let mut books = Self { rules: run.collect(), entries: Vec::new() };
        for &at in &books.rules {
            let Some(rule) = rules.get(at as usize) else { continue };
            let mut sets = rule.links.iter().flat_map(|link| &link.sets);
            let constants = sets.clone().map_while(|set| match (set.slot, set.constant, set.operation) {
                (Some(slot), Some(constant), SetOperation::To) => Some(BookEntry::Constant(slot, constant)),
                _ => None,
            });
            let constants: Vec<BookEntry> = constants.collect();
            match sets.nth(constants.len()) {
                None => books.entries.extend(constants),
                Some(_) => books.entries.push(BookEntry::Rule(at)),
            }
        }
        books
    }
}

impl Look {
    /// Adds the gate of a step.
    fn add(&mut self, gate: LinkGate, words: usize) {
        set(&mut self.gates, gate.gate);
        self.bits |= gate.bit;
        let known = self.pipelines.iter().position(|known| known.pipeline == gate.pipeline).unwrap_or_else(|| {
            self.pipelines.push(LookAfter { pipeline: gate.pipeline, bit: gate.bit, gates: vec![0; words] });
            self.pipelines.len() - 1
        });
        if let Some(after) = self.pipelines.get_mut(known) {
            set(&mut after.gates, gate.gate);
        }
    }
}

impl Transaction {
    /// Finds out, when a phase comes to its first gated step, which of them may match by what is known of the values they
    /// look at.
    pub(super) fn open_steps(&mut self, engine: &Engine, plan: &Plan, steps: &mut Steps) {
        if std::mem::replace(&mut steps.looked_up, true) {
            return;
        }
        let mut found = std::mem::take(&mut self.known.found);
        found.clear();
        found.resize(engine.scanner.words(), 0);
        for look in &plan.looks {
            self.look(engine, look, &mut found);
            if self.arena.budget.is_spent() {
                break;
            }
        }
        steps.open.clone_from(&plan.ungated);
        for (word, first) in found.iter().zip((0u32..).step_by(64)) {
            let mut left = *word;
            while left != 0 {
                plan.open(first + left.trailing_zeros(), steps);
                left &= left - 1;
            }
        }
        self.known.found = found;
    }

    /// Adds the gates that the values of a target pass.
    fn look(&mut self, engine: &Engine, look: &Look, found: &mut [u64]) {
        let words = engine.scanner.words();
        let known = self.known_target(engine, look.target);
        if known.is_empty() {
            return;
        }
        unite_masked(found, self.known.row(known.plain, words), &look.gates);
        if known.triggers & look.bits == 0 {
            return;
        }
        for after in look.pipelines.iter().filter(|after| known.triggers & after.bit != 0) {
            let made = self.made_row(engine, look.target, after.pipeline);
            unite_masked(found, self.known.row(made, words), &after.gates);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_os = "unknown")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    #[test]
    fn finds_the_next_step() {
        let mut steps = Steps { open: vec![0; 3], ..Steps::default() };
        [3, 64, 130].into_iter().for_each(|step| set(&mut steps.open, step));
        assert!(steps.is_open(3) && steps.is_open(130) && !steps.is_open(5) && !steps.is_open(1000));
        assert_eq!(steps.next(0), Some(3));
        assert_eq!(steps.next(3), Some(3));
        assert_eq!(steps.next(4), Some(64));
        assert_eq!(steps.next(65), Some(130));
        assert_eq!(steps.next(131), None);
        assert_eq!(steps.next(1000), None);
    }
}
