//! The rules of a phase in the order in which they run, and which of them a transaction needs to look at.

use super::arena::Value;
use super::build::Engine;
use super::const_prop::{ConstProp, Prediction};
use super::prefilter::{FirstTest, LinkPrefilter};
use super::rules::{Rule, SetOperation};
use super::transaction::Transaction;

/// The rules of one phase.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    /// A bit for each step without a prefilter.
    unfiltered: Vec<u64>,
    /// The prefilter and the number of each other step, by number.
    filtered: Vec<(u32, u32)>,
    /// The same, by prefilter.
    by_prefilter: Vec<(u32, u32)>,
    /// What to ask the targets to find the prefilters that their values pass.
    queries: Vec<TargetQuery>,
    assignment_groups: Vec<AssignmentGroup>,
}

/// Consecutive rules that always match and only assign: they run as one step.
pub(super) struct AssignmentGroup {
    /// The rules, in order.
    pub(super) rules: Vec<u32>,
    pub(super) entries: Vec<GroupedAssignment>,
}

/// One assignment, or the assignments of one rule.
pub(super) enum GroupedAssignment {
    /// Sets the slot of a name of TX to a constant.
    Constant(u32, Value),
    /// All assignments of a rule.
    Rule(u32),
}

/// A target, and a bit for each prefilter of the steps that look at it.
struct TargetQuery {
    target: u32,
    prefilters: Vec<u64>,
    /// The bits of the pipelines in the triggers of values.
    bits: u64,
    pipelines: Vec<PipelineQuery>,
}

/// A pipeline, and a bit for each prefilter of the steps that look at the target after it.
struct PipelineQuery {
    pipeline: u32,
    bit: u64,
    prefilters: Vec<u64>,
}

/// One rule, and its first test.
pub(super) struct Step {
    pub(super) rule: u32,
    pub(super) first: FirstTest,
    /// Whether the step runs only if a value passes its prefilter.
    pub(super) filtered: bool,
    /// The group of assignments that begins here, valid as long as the transaction follows the predictions.
    assignment_group: Option<u32>,
}

/// The steps of a plan that are still to run.
#[derive(Default)]
pub(super) struct Steps {
    /// A bit for each step.
    pending: Vec<u64>,
    /// Whether the steps with a prefilter are resolved: until then only the first of them is pending.
    resolved: bool,
}

impl Steps {
    /// The first pending step at or after `from`.
    pub(super) fn next(&self, from: usize) -> Option<usize> {
        let mut at = from / 64;
        let mut word = self.pending.get(at)? & (u64::MAX << (from % 64));
        while word == 0 {
            at += 1;
            word = *self.pending.get(at)?;
        }
        Some(at * 64 + word.trailing_zeros() as usize)
    }

    /// Whether a step is still to run.
    pub(super) fn is_pending(&self, step: usize) -> bool {
        self.pending.get(step / 64).is_some_and(|word| word >> (step % 64) & 1 == 1)
    }
}

fn set(bits: &mut [u64], at: u32) {
    if let Some(word) = bits.get_mut((at / 64) as usize) {
        *word |= 1 << (at % 64);
    }
}

/// Adds the bits of a row that the mask selects; all bits of the mask if there is no row.
fn unite_masked(bits: &mut [u64], row: Option<&[u64]>, mask: &[u64]) {
    match row {
        Some(row) => bits.iter_mut().zip(row).zip(mask).for_each(|((bits, row), mask)| *bits |= row & mask),
        None => bits.iter_mut().zip(mask).for_each(|(bits, mask)| *bits |= mask),
    }
}

impl Plan {
    /// All rules of a phase as they are written; a row of prefilters has `words` words.
    pub(super) fn full(phase: &[u32], rules: &[Rule], words: usize, first_test: impl Fn(u32) -> FirstTest) -> Self {
        Self::of(phase.iter().map(|&rule| (rule, first_test(rule))), rules, words)
    }

    /// The rules of a phase without those that constant propagation removes.
    pub(super) fn pruned(
        phase: &[u32],
        const_prop: &ConstProp,
        rules: &[Rule],
        words: usize,
        first_test: impl Fn(u32) -> FirstTest,
    ) -> Self {
        let left = phase.iter().filter_map(|&rule| match const_prop.of(rule) {
            Prediction::NeverMatches | Prediction::Applied => None,
            Prediction::AlwaysMatches => Some((rule, FirstTest::None)),
            Prediction::Unknown => Some((rule, first_test(rule))),
        });
        let mut plan = Self::of(left, rules, words);
        plan.group_assignments(const_prop, rules);
        plan
    }

    /// Groups consecutive rules that always match and only assign.
    fn group_assignments(&mut self, const_prop: &ConstProp, rules: &[Rule]) {
        let after = self.steps.iter().skip(1).map(|step| step.rule).chain([u32::MAX]);
        let joins: Vec<bool> = self
            .steps
            .iter()
            .zip(after)
            .map(|(step, after)| {
                let certain = const_prop.of(step.rule) == Prediction::AlwaysMatches;
                // Every skipped rule is one that the plan does not have.
                rules.get(step.rule as usize).is_some_and(|rule| {
                    certain && rule.is_assignment_only && rule.skip_to.is_none_or(|to| to <= after || after == u32::MAX)
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
            let group = AssignmentGroup::new(steps.iter().map(|step| step.rule), rules);
            if let Some(first) = steps.first_mut() {
                first.assignment_group = u32::try_from(self.assignment_groups.len()).ok();
                self.assignment_groups.push(group);
            }
        }
    }

    /// The group of assignments that begins at a step.
    pub(super) fn assignment_group(&self, step: &Step) -> Option<&AssignmentGroup> {
        self.assignment_groups.get(step.assignment_group? as usize)
    }

    fn of(phase: impl Iterator<Item = (u32, FirstTest)>, rules: &[Rule], words: usize) -> Self {
        let steps = phase.map(|(rule, first)| Step {
            rule,
            first,
            filtered: matches!(first, FirstTest::Prefilter(_)),
            assignment_group: None,
        });
        let mut plan = Self { steps: steps.collect(), ..Self::default() };
        plan.unfiltered = vec![0; plan.steps.len().div_ceil(64)];
        let mut queries: Vec<TargetQuery> = Vec::new();
        for (step, number) in plan.steps.iter().zip(0..) {
            let FirstTest::Prefilter(prefilter) = step.first else {
                set(&mut plan.unfiltered, number);
                continue;
            };
            plan.filtered.push((prefilter.prefilter, number));
            let link = rules.get(step.rule as usize).and_then(|rule| rule.links.first());
            for &target in link.map(|link| &*link.target_numbers).unwrap_or_default() {
                let at = queries.iter().position(|query| query.target == target).unwrap_or_else(|| {
                    queries.push(TargetQuery { target, prefilters: vec![0; words], bits: 0, pipelines: Vec::new() });
                    queries.len() - 1
                });
                if let Some(query) = queries.get_mut(at) {
                    query.add(prefilter, words);
                }
            }
        }
        plan.queries = queries;
        plan.by_prefilter.clone_from(&plan.filtered);
        plan.by_prefilter.sort_unstable();
        plan
    }

    /// Resets the pending steps at the begin of a phase.
    pub(super) fn begin(&self, steps: &mut Steps) {
        steps.pending.clone_from(&self.unfiltered);
        steps.resolved = false;
        self.jumped(0, steps);
    }

    /// Marks the first step with a prefilter at or after `to` as pending, after rules were skipped.
    pub(super) fn jumped(&self, to: usize, steps: &mut Steps) {
        if !steps.resolved {
            let from = self.filtered.partition_point(|(_, step)| (*step as usize) < to);
            if let Some((_, step)) = self.filtered.get(from) {
                set(&mut steps.pending, *step);
            }
        }
    }

    /// Marks the steps with a prefilter as pending.
    fn add_steps(&self, prefilter: u32, steps: &mut Steps) {
        let from = self.by_prefilter.partition_point(|(other, _)| *other < prefilter);
        let same = self.by_prefilter.iter().skip(from).take_while(|(other, _)| *other == prefilter);
        same.for_each(|(_, step)| set(&mut steps.pending, *step));
    }

    /// The first step whose rule is at or after a rule.
    pub(super) fn step_of(&self, rule: u32) -> usize {
        self.steps.partition_point(|step| step.rule < rule)
    }
}

impl AssignmentGroup {
    fn new(run: impl Iterator<Item = u32>, rules: &[Rule]) -> Self {
        let mut group = Self { rules: run.collect(), entries: Vec::new() };
        for &at in &group.rules {
            let Some(rule) = rules.get(at as usize) else { continue };
            let mut sets = rule.links.iter().flat_map(|link| &link.sets);
            let constants = sets.clone().map_while(|set| match (set.slot, set.constant, set.operation) {
                (Some(slot), Some(constant), SetOperation::To) => Some(GroupedAssignment::Constant(slot, constant)),
                _ => None,
            });
            let constants: Vec<GroupedAssignment> = constants.collect();
            match sets.nth(constants.len()) {
                None => group.entries.extend(constants),
                Some(_) => group.entries.push(GroupedAssignment::Rule(at)),
            }
        }
        group
    }
}

impl TargetQuery {
    /// Adds the prefilter of a step to the query.
    fn add(&mut self, prefilter: LinkPrefilter, words: usize) {
        set(&mut self.prefilters, prefilter.prefilter);
        self.bits |= prefilter.bit;
        let at = self.pipelines.iter().position(|query| query.pipeline == prefilter.pipeline).unwrap_or_else(|| {
            self.pipelines.push(PipelineQuery {
                pipeline: prefilter.pipeline,
                bit: prefilter.bit,
                prefilters: vec![0; words],
            });
            self.pipelines.len() - 1
        });
        if let Some(query) = self.pipelines.get_mut(at) {
            set(&mut query.prefilters, prefilter.prefilter);
        }
    }
}

impl Transaction {
    /// Resolves the steps with a prefilter: marks those as pending whose prefilter a value of their targets passes.
    /// Called when a phase reaches one of them; `false` if they were resolved before.
    pub(super) fn resolve_steps(&mut self, engine: &Engine, plan: &Plan, steps: &mut Steps) -> bool {
        if std::mem::replace(&mut steps.resolved, true) {
            return false;
        }
        let mut found = std::mem::take(&mut self.summary.found);
        found.clear();
        found.resize(engine.scanner.words(), 0);
        for query in &plan.queries {
            self.query_target(engine, query, &mut found);
            if self.arena.budget.is_spent() {
                break;
            }
        }
        steps.pending.clone_from(&plan.unfiltered);
        for (word, first) in found.iter().zip((0u32..).step_by(64)) {
            let mut left = *word;
            while left != 0 {
                plan.add_steps(first + left.trailing_zeros(), steps);
                left &= left - 1;
            }
        }
        self.summary.found = found;
        true
    }

    /// Adds the prefilters of a query that the values of its target pass.
    fn query_target(&mut self, engine: &Engine, query: &TargetQuery, found: &mut [u64]) {
        let words = engine.scanner.words();
        let summary = self.target_summary(engine, query.target);
        if summary.is_empty() {
            return;
        }
        unite_masked(found, self.summary.row(summary.plain, words), &query.prefilters);
        if summary.triggers & query.bits == 0 {
            return;
        }
        for after in query.pipelines.iter().filter(|after| summary.triggers & after.bit != 0) {
            let row = self.pipeline_row(engine, query.target, after.pipeline);
            unite_masked(found, self.summary.row(row, words), &after.prefilters);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_next_step() {
        let mut steps = Steps { pending: vec![0; 3], ..Steps::default() };
        [3, 64, 130].into_iter().for_each(|step| set(&mut steps.pending, step));
        assert!(steps.is_pending(3) && steps.is_pending(130) && !steps.is_pending(5) && !steps.is_pending(1000));
        assert_eq!(steps.next(0), Some(3));
        assert_eq!(steps.next(3), Some(3));
        assert_eq!(steps.next(4), Some(64));
        assert_eq!(steps.next(65), Some(130));
        assert_eq!(steps.next(131), None);
        assert_eq!(steps.next(1000), None);
    }
}
