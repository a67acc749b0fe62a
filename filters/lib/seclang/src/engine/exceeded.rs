//! Reports tests that gave up at a limit, and the end of the budget.

use super::build::Engine;
use super::collect::Item;
use super::limits::{EXCEEDED_RULES, REPORTED_LENGTH};
use super::report::ExceededLimit;
use super::transaction::Transaction;
use crate::vocabulary::Variable;

impl Transaction {
    pub(super) fn note_exceeded_limit(&mut self, engine: &Engine, item: &Item) {
        self.gave_up = true;
        let rule = self.current_rule.and_then(|at| engine.rules.get(at as usize));
        let rule_id = rule.map_or(0, |rule| rule.id);
        let mut others = self.exceeded.iter_mut().filter(|known| known.spent.is_none());
        if let Some(known) = others.find(|known| known.rule_id == rule_id) {
            known.searches += 1;
        } else if self.exceeded.len() < EXCEEDED_RULES {
            let variable = self.reported_name(engine, item);
            self.exceeded.push(ExceededLimit { rule_id, variable, searches: 1, spent: None });
        }
    }

    fn reported_name(&mut self, engine: &Engine, item: &Item) -> Vec<u8> {
        let name = self.full_name(engine, item);
        let variable = self.arena.get(name);
        variable.get(..REPORTED_LENGTH).unwrap_or(variable).to_vec()
    }

    /// Whether the budget is spent, which ends the phase. The first call after that reports it, with the item under
    /// inspection.
    pub(super) fn is_overdrawn(&mut self, engine: &Engine, item: Option<&Item>) -> bool {
        self.arena.budget.is_spent() && self.overdraw(engine, item)
    }

    #[cold]
    fn overdraw(&mut self, engine: &Engine, item: Option<&Item>) -> bool {
        if !std::mem::replace(&mut self.overdrawn, true) {
            let spent = self.arena.budget.spent();
            let rule_id = self.current_rule.and_then(|at| engine.rules.get(at as usize)).map_or(0, |rule| rule.id);
            let variable = item.map(|item| self.reported_name(engine, item)).unwrap_or_default();
            // Always reported, even if the list is full.
            self.exceeded.truncate(EXCEEDED_RULES - 1);
            self.exceeded.push(ExceededLimit { rule_id, variable, searches: 1, spent: Some(spent) });
        }
        true
    }

    pub(super) fn publish_exceeded_limit(&mut self, engine: &Engine) {
        let one = self.arena.number(1);
        self.set_scalar(Variable::MscPcreLimitsExceeded, one);
        self.set_tx(engine, b"MSC_PCRE_LIMITS_EXCEEDED", Some(one));
    }
}
