//! Runs the rules of a phase.

use std::sync::Arc;

use super::arena::EMPTY;
use super::build::Engine;
use super::collect::{Item, Name};
use super::const_prop::Prelude;
use super::limits::MATCHED_IDS;
use super::plan::{AssignmentGroup, GroupedAssignment, Step};
use super::report::Intervention;
use super::rules::Rule;
use super::transaction::{Allowed, Transaction};
use crate::program::EngineMode;
use crate::vocabulary::Variable;

impl Rule {
    /// The flow after the rule matched, unless it ends the phase.
    pub(super) fn flow(&self) -> Flow {
        self.skip_to.map_or(Flow::Next, Flow::To)
    }
}

/// The next step of a phase after a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    /// Go on with the first rule at or after this index.
    To(u32),
    /// End the phase.
    Stop,
}

impl Transaction {
    /// Runs the rules of a phase. Returns an intervention once.
    pub(super) fn run_phase(&mut self, phase: u8) -> Option<Intervention> {
        self.borrow_hot_cache();
        let found = self.run_rules_of(phase);
        self.return_hot_cache();
        found
    }

    fn run_rules_of(&mut self, phase: u8) -> Option<Intervention> {
        // Predictions hold if the phases come in order, whether they run rules or not.
        self.follows_prediction &= self.phases + 1 == phase;
        self.phases = phase;
        if self.mode == EngineMode::Off || (self.intervention.is_some() && phase != 5) {
            return None;
        }
        match self.allowed {
            Allowed::Everything if phase != 5 => return None,
            Allowed::Request if phase <= 2 => return None,
            _ => {}
        }
        let engine = Arc::clone(&self.engine);
        if phase > 2 {
            self.begin_response();
        }
        // The response has a budget of its own, and so has the last phase.
        if !matches!(phase, 2 | 4) {
            self.overdrawn = false;
        }
        let message = match phase {
            1 => Variable::RequestHeaders,
            2 => Variable::RequestBody,
            3 => Variable::ResponseHeaders,
            _ => Variable::ResponseBody,
        };
        if self.is_overdrawn(&engine, Some(&Item { variable: message, name: Name::None, value: EMPTY })) {
            return None;
        }
        self.settle();
        let phase_at = usize::from(phase).wrapping_sub(1);
        let mut plan = engine.pruned_plans.get(phase_at)?;
        let whole = engine.full_plans.get(phase_at)?;
        if !std::mem::take(&mut self.summary_is_current) {
            self.summary.begin_phase(&engine);
            self.has_summary = true;
        }
        let mut steps = std::mem::take(&mut self.summary.steps);
        let (mut cursor, rules_before) = (0, self.work.rules);
        if !self.follows_prediction {
            plan = whole;
        } else if phase == 1 {
            self.apply_prelude(&engine);
        }
        plan.begin(&mut steps);
        while let Some(number) = steps.next(cursor) {
            let Some(step) = plan.steps.get(number) else { break };
            if let Some(group) = plan.assignment_group(step) {
                self.run_assignment_group(&engine, group);
                cursor = number + group.rules.len();
                continue;
            }
            let Step { rule: at, first, filtered, .. } = step;
            cursor = number + 1;
            // Before removed rules are skipped: the first step with a prefilter resolves the others, even if its rule
            // is removed.
            if *filtered {
                if self.resolve_steps(&engine, plan, &mut steps) && self.is_overdrawn(&engine, None) {
                    break;
                }
                if !steps.is_pending(number) {
                    continue;
                }
            }
            if self.removed.get(*at as usize).copied().unwrap_or_default() {
                continue;
            }
            if !self.first_may_match(&engine, *at, *first) {
                continue;
            }
            let Some(rule) = engine.rules.get(*at as usize) else { break };
            let flow = if rule.is_assignment_only && first.decides() && !self.names_removed {
                self.run_assignment_rule(&engine, rule, *at)
            } else {
                self.run_rule(&engine, rule, *at)
            };
            let next = match flow {
                Flow::Next => *at + 1,
                Flow::To(target) => target.max(*at + 1),
                Flow::Stop => break,
            };
            if !self.follows_prediction && !std::ptr::eq(plan, whole) {
                // A rule or a name of TX was removed: the predictions no longer hold.
                plan = whole;
                plan.begin(&mut steps);
                cursor = plan.step_of(next);
                plan.jumped(cursor, &mut steps);
            } else if plan.steps.get(cursor).is_some_and(|step| step.rule < next) {
                cursor = plan.step_of(next);
                plan.jumped(cursor, &mut steps);
            }
        }
        self.summary.steps = steps;
        self.settle();
        self.arena.charge_values();
        self.arena.budget.charge_rules(self.work.rules - rules_before);
        self.current_rule = None;
        self.begin_rule();
        self.flush_collections();
        if phase == 5 { None } else { self.intervention.clone() }
    }

    /// Sets the state that the first rules leave in every transaction.
    fn apply_prelude(&mut self, engine: &Engine) {
        let Prelude { slots, matched } = &engine.const_prop.prelude;
        if !matched.is_empty() {
            self.tx.slots.clone_from(slots);
            self.order.extend_from_slice(matched);
            self.work.rules += u64::try_from(matched.len()).unwrap_or(u64::MAX);
        }
    }

    /// Drops the matches of the rule before.
    pub(super) fn begin_rule(&mut self) {
        self.matched.clear();
        self.release_captures();
    }

    /// Runs a rule that is known to match and only assigns or skips: see [`Rule::is_assignment_only`].
    fn run_assignment_rule(&mut self, engine: &Engine, rule: &Rule, at: u32) -> Flow {
        self.work.rules += 1;
        for link in &rule.links {
            self.assign(engine, &link.sets);
        }
        self.count(at);
        rule.flow()
    }

    /// Runs consecutive rules that always match and only assign or skip.
    fn run_assignment_group(&mut self, engine: &Engine, group: &AssignmentGroup) {
        for entry in &group.entries {
            match entry {
                GroupedAssignment::Constant(slot, value) => self.tx.set(*slot, Some(*value)),
                GroupedAssignment::Rule(at) => {
                    let links = engine.rules.get(*at as usize).map(|rule| rule.links.as_slice()).unwrap_or_default();
                    links.iter().for_each(|link| self.assign(engine, &link.sets));
                }
            }
        }
        self.work.rules += u64::try_from(group.rules.len()).unwrap_or(u64::MAX);
        let room = MATCHED_IDS.saturating_sub(self.order.len());
        self.order.extend(group.rules.iter().take(room));
    }
}
