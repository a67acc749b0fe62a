//! The rules of a phase in the order in which they run, and which of them a transaction needs to look at.

use super::build::Engine;
use super::foresight::{Foresight, Prospect};
use super::gates::FirstTest;
use super::scanner::is_open;
use super::transaction::Transaction;

/// The rules of one phase.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    gated: Vec<GatedSteps>,
    /// One bit for each step with which a phase begins: those about which no gate decides, and the first of those about
    /// which the gates of a group do.
    first: Vec<u64>,
}

/// One rule, and what tells that it does not match.
pub(super) struct Step {
    pub(super) rule: u32,
    pub(super) first: FirstTest,
    /// The number of the steps with gates of the same group.
    pub(super) gated: Option<u32>,
}

/// The steps whose gates are looked up in the same group: the gate and the number of each step.
struct GatedSteps {
    group: u32,
    steps: Vec<(u32, u32)>,
}

/// The steps of a plan that are still to be gone.
#[derive(Default)]
pub(super) struct Steps {
    /// One bit for each.
    open: Vec<u64>,
    /// For each group of gated steps whether it is known which of them are.
    looked_up: Vec<bool>,
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
}

fn set(bits: &mut [u64], step: u32, open: bool) {
    if let Some(word) = bits.get_mut((step / 64) as usize) {
        *word = *word & !(1 << (step % 64)) | u64::from(open) << (step % 64);
    }
}

impl Plan {
    /// All rules of a phase as they are written.
    pub(super) fn whole(rules: &[u32], first_test: impl Fn(u32) -> FirstTest) -> Self {
        Self::of(rules.iter().map(|&rule| (rule, first_test(rule))))
    }

    /// The rules of a phase that may match, as far as that is known in advance.
    pub(super) fn foreseen(rules: &[u32], foresight: &Foresight, first_test: impl Fn(u32) -> FirstTest) -> Self {
        let left = rules.iter().filter_map(|&rule| match foresight.of(rule) {
            Prospect::Never | Prospect::Done => None,
            Prospect::Matches => Some((rule, FirstTest::None)),
            Prospect::Open => Some((rule, first_test(rule))),
        });
        Self::of(left)
    }

    fn of(rules: impl Iterator<Item = (u32, FirstTest)>) -> Self {
        let steps = rules.map(|(rule, first)| Step { rule, first, gated: None });
        let mut plan = Self { steps: steps.collect(), ..Self::default() };
        plan.first = vec![0; plan.steps.len().div_ceil(64)];
        for (step, number) in plan.steps.iter_mut().zip(0..) {
            let FirstTest::Gate(gate) = step.first else {
                set(&mut plan.first, number, true);
                continue;
            };
            let known = plan.gated.iter().position(|known| known.group == gate.group).unwrap_or_else(|| {
                set(&mut plan.first, number, true);
                plan.gated.push(GatedSteps { group: gate.group, steps: Vec::new() });
                plan.gated.len() - 1
            });
            step.gated = u32::try_from(known).ok();
            if let Some(known) = plan.gated.get_mut(known) {
                known.steps.push((gate.gate, number));
            }
        }
        plan
    }

    /// A phase begins.
    pub(super) fn begin(&self, steps: &mut Steps) {
        steps.open.clone_from(&self.first);
        steps.looked_up.clear();
        steps.looked_up.resize(self.gated.len(), false);
    }

    /// Rules were skipped: the first step of a group may be among them.
    pub(super) fn jumped(&self, to: usize, steps: &mut Steps) {
        for (gated, _) in self.gated.iter().zip(&steps.looked_up).filter(|(_, looked_up)| !**looked_up) {
            let from = gated.steps.partition_point(|(_, step)| (*step as usize) < to);
            if let Some((_, step)) = gated.steps.get(from) {
                set(&mut steps.open, *step, true);
            }
        }
    }

    /// The step at which a phase goes on with the first rule at or after a rule.
    pub(super) fn step_of(&self, rule: u32) -> usize {
        self.steps.partition_point(|step| step.rule < rule)
    }
}

impl Transaction {
    /// Finds out which steps of a group of gated steps may match by what is known of the values they look at.
    pub(super) fn open_steps(&mut self, engine: &Engine, plan: &Plan, number: u32, steps: &mut Steps) {
        let (Some(gated), Some(looked_up @ false)) =
            (plan.gated.get(number as usize), steps.looked_up.get_mut(number as usize))
        else {
            return;
        };
        *looked_up = true;
        let row = self.known_group(engine, gated.group);
        let row = self.known.row(row, engine.scanner.words());
        for (gate, step) in &gated.steps {
            set(&mut steps.open, *step, row.is_none_or(|row| is_open(row, *gate)));
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
        [3, 5, 64, 130].into_iter().for_each(|step| set(&mut steps.open, step, true));
        set(&mut steps.open, 5, false);
        assert_eq!(steps.next(0), Some(3));
        assert_eq!(steps.next(3), Some(3));
        assert_eq!(steps.next(4), Some(64));
        assert_eq!(steps.next(65), Some(130));
        assert_eq!(steps.next(131), None);
        assert_eq!(steps.next(1000), None);
    }
}
