//! Phases, rules, chains and tests.

use std::sync::Arc;

use super::arena::{EMPTY, Value};
use super::build::{BuiltOperator, Engine, Link, MacroPiece, Rule};
use super::collect::{Item, Name};
use super::foresight::Prelude;
use super::limits::{EXCEEDED_RULES, EXPANSION_LENGTH, KEPT_LENGTH, MATCHED_IDS, REPORTED_LENGTH};
use super::pairs::Pairs;
use super::plan::{BookEntry, Books, Step};
use super::store::{Entry, Match};
use super::transaction::{Allowed, ExceededLimit, Intervention, RemovedTarget, Transaction, UNSET};
use super::vain::VainChain;
use crate::operator::OperatorKind;
use crate::program::EngineMode;
use crate::vocabulary::Variable;

impl Rule {
    /// How a phase goes on after the rule matched, if it does not end it.
    pub(super) fn flow(&self) -> Flow {
        self.skip_to.map_or(Flow::Next, Flow::To)
    }
}

/// How a phase goes on after a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    /// Go on with the first rule at or after this index.
    To(u32),
    /// The phase is over.
    Stop,
}

/// What the macros of an operator's argument stand for.
#[derive(Clone, Copy)]
struct Argument<'a> {
    text: Option<&'a [u8]>,
    /// Of a list that is searched for values, what is in it.
    pairs: Option<&'a Pairs>,
}

/// A test of a chain that may come to nothing.
#[derive(Clone, Copy, Default)]
struct Attempt<'a> {
    vain: Option<&'a VainChain>,
    /// Whether all that matched so far is what [`Transaction::keep_vain`] may keep.
    whole: bool,
}

impl Transaction {
    /// Runs the rules of a phase. What blocks is returned once.
    pub(super) fn run_phase(&mut self, phase: u8) -> Option<Intervention> {
        self.meet_familiar();
        let found = self.run_rules_of(phase);
        self.leave_familiar();
        found
    }

    fn run_rules_of(&mut self, phase: u8) -> Option<Intervention> {
        // What is foreseen holds for phases in their order, whether they do anything or not.
        self.as_foreseen &= self.phases + 1 == phase;
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
        self.overdrawn = false;
        let message = match phase {
            1 => Variable::RequestHeaders,
            2 => Variable::RequestBody,
            3 => Variable::ResponseHeaders,
            _ => Variable::ResponseBody,
        };
        if self.is_overdrawn(&engine, Some(&Item { variable: message, name: Name::None, value: EMPTY })) {
            return None;
        }
        let phase_at = usize::from(phase).wrapping_sub(1);
        let mut plan = engine.foreseen.get(phase_at)?;
        let whole = engine.whole.get(phase_at)?;
        if !std::mem::take(&mut self.unchanged) {
            self.known.forget(&engine);
            self.knows = true;
        }
        let mut steps = std::mem::take(&mut self.known.steps);
        let mut cursor = 0;
        if !self.as_foreseen {
            plan = whole;
        } else if phase == 1 {
            self.play_prelude(&engine);
        }
        plan.begin(&mut steps);
        while let Some(number) = steps.next(cursor) {
            let Some(step) = plan.steps.get(number) else { break };
            if let Some(books) = plan.books(step) {
                self.keep_all_books(&engine, books);
                cursor = number + books.rules.len();
                continue;
            }
            let Step { rule: at, first, gated, .. } = step;
            cursor = number + 1;
            // First: a rule that was removed may be the one by which others of its group are found.
            if *gated {
                self.open_steps(&engine, plan, &mut steps);
                if self.is_overdrawn(&engine, None) {
                    break;
                }
                if !steps.is_open(number) {
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
            let flow = if rule.is_bookkeeping && first.decides() && !self.names_removed {
                self.keep_books(&engine, rule, *at)
            } else {
                self.run_rule(&engine, rule, *at)
            };
            // What a phase finds out beyond its budget is never found out: it ends where it is.
            if self.is_overdrawn(&engine, None) {
                break;
            }
            let next = match flow {
                Flow::Next => *at + 1,
                Flow::To(target) => target.max(*at + 1),
                Flow::Stop => break,
            };
            if !self.as_foreseen && !std::ptr::eq(plan, whole) {
                // A rule or a name of TX was taken away: from here on things may go another way.
                plan = whole;
                plan.begin(&mut steps);
                cursor = plan.step_of(next);
                plan.jumped(cursor, &mut steps);
            } else if plan.steps.get(cursor).is_some_and(|step| step.rule < next) {
                cursor = plan.step_of(next);
                plan.jumped(cursor, &mut steps);
            }
        }
        self.known.steps = steps;
        self.current_rule = None;
        self.begin_rule();
        self.flush_collections();
        if phase == 5 { None } else { self.intervention.clone() }
    }

    /// What the first rules leave behind.
    fn play_prelude(&mut self, engine: &Engine) {
        let Prelude { slots, matched } = &engine.foresight.prelude;
        if !matched.is_empty() {
            self.tx.slots.clone_from(slots);
            self.order.extend_from_slice(matched);
            self.work.rules += u64::try_from(matched.len()).unwrap_or(u64::MAX);
        }
    }

    /// A rule sees the matches of its own chain only.
    fn begin_rule(&mut self) {
        self.matched.clear();
        self.release_captures();
    }

    /// Runs a rule that matched already and only assigns or skips: see [`Rule::is_bookkeeping`].
    fn keep_books(&mut self, engine: &Engine, rule: &Rule, at: u32) -> Flow {
        self.work.rules += 1;
        self.arena.budget.charge_rule();
        for link in &rule.links {
            self.assign(engine, &link.sets);
        }
        self.count(at);
        rule.flow()
    }

    /// Does what several rules do that match in any case and only assign or skip, and none of which was taken away.
    fn keep_all_books(&mut self, engine: &Engine, books: &Books) {
        for entry in &books.entries {
            match entry {
                BookEntry::Constant(slot, value) => self.tx.set(*slot, Some(*value)),
                BookEntry::Rule(at) => {
                    let links = engine.rules.get(*at as usize).map(|rule| rule.links.as_slice()).unwrap_or_default();
                    links.iter().for_each(|link| self.assign(engine, &link.sets));
                }
            }
        }
        self.work.rules += u64::try_from(books.rules.len()).unwrap_or(u64::MAX);
        let room = MATCHED_IDS.saturating_sub(self.order.len());
        self.order.extend(books.rules.iter().take(room));
    }

    fn run_rule(&mut self, engine: &Engine, rule: &Rule, at: u32) -> Flow {
        self.work.rules += 1;
        self.arena.budget.charge_rule();
        self.arena.budget.charge_list(self.removed_targets.len());
        self.current_rule = Some(at);
        self.begin_rule();
        // Targets a `ctl` took away from this rule: chained rules go by the id of the first.
        let removed: Vec<RemovedTarget> = match self.removed_targets.is_empty() {
            true => Vec::new(),
            false => {
                let resolved = self.removed_targets.iter().copied();
                let of_rule =
                    |removed: &RemovedTarget| removed.resolve(engine).is_some_and(|(filter, _)| filter.matches(rule));
                resolved.filter(of_rule).collect()
            }
        };
        // What was taken away from this transaction alone must not be kept for others.
        let vain = if removed.is_empty() { self.vain_chain(engine, rule) } else { None };
        let mut of_first = Attempt { vain, whole: true };
        let mut of_others = Attempt::default();
        for (link, number) in rule.links.iter().zip(0..) {
            let attempt = if number == 0 { &mut of_first } else { &mut of_others };
            if !self.run_link(engine, link, &removed, attempt) {
                if let (Some(vain), Some(first), 1, true) = (of_first.vain, rule.links.first(), number, of_first.whole)
                {
                    self.keep_vain(engine, vain, first);
                }
                return Flow::Next;
            }
        }
        self.act_on_match(engine, rule, at)
    }

    /// Runs one test on all its values. Assignments run for every value that matches.
    fn run_link(&mut self, engine: &Engine, link: &Link, removed: &[RemovedTarget], attempt: &mut Attempt<'_>) -> bool {
        let Some(operator) = link.operator.and_then(|at| engine.operators.get(at as usize)) else {
            self.assign(engine, &link.sets);
            return true;
        };
        let mut expanded = std::mem::take(&mut self.argument);
        expanded.clear();
        let argument = operator.argument.as_ref().map(|argument| {
            if !self.expand(engine, argument, &mut expanded) {
                self.left_out("TX", "bytes of an operator's argument", EXPANSION_LENGTH);
            }
            expanded.as_slice()
        });
        let pairs = argument.and_then(|argument| self.pairs(engine, operator, argument));
        let argument = Argument { text: argument, pairs };
        let mut items = std::mem::take(&mut self.items);
        let mut matched = false;
        self.current_test = self.arena.new_test();
        'targets: for (target, number) in link.targets.iter().zip(0..) {
            if !self.target_may_match(engine, link, number) {
                continue;
            }
            items.clear();
            self.kept_captures.begin_link();
            self.scratch.allow(self.arena.budget.left());
            self.collect(engine, target, &mut items);
            for item in &items {
                if self.is_overdrawn(engine, Some(item)) {
                    matched = false;
                    break 'targets;
                }
                // Of values that are the same, one fails for all.
                if item.value == UNSET
                    || self.arena.has_failed(item.value, self.current_test)
                    || self.is_excluded(engine, link, removed, item)
                {
                    continue;
                }
                if attempt.vain.is_some_and(|vain| self.is_vain(vain, link, item.value)) {
                    continue;
                }
                if self.test(engine, link, operator, argument, item) {
                    matched = true;
                    attempt.whole = attempt.whole && attempt.vain.is_some() && self.captured_whole(link, item.value);
                }
            }
        }
        matched &= !self.is_overdrawn(engine, items.last());
        self.items = items;
        self.argument = expanded;
        // A pattern for names that gave up selected nothing.
        if self.scratch.limit_exceeded()
            && let Some(target) = link.targets.first()
        {
            self.scratch.clear();
            self.note_exceeded_limit(engine, &Item { variable: target.variable, name: Name::None, value: EMPTY });
            self.publish_exceeded_limit(engine);
            attempt.whole = false;
        }
        matched
    }

    /// The pairs of the argument of `@within`, if it is what a name of TX holds and that is a constant: as a list of
    /// methods or of headers is in every transaction.
    fn pairs<'e>(&self, engine: &'e Engine, operator: &'e BuiltOperator, argument: &[u8]) -> Option<&'e Pairs> {
        let Some([MacroPiece::Slot(slot)]) = operator.argument.as_ref().map(|argument| argument.0.as_slice()) else {
            return None;
        };
        let value = self.tx.get(*slot).filter(|value| *value as usize <= engine.constants.len())?;
        if operator.operator.kind() != OperatorKind::Within {
            return None;
        }
        let (known, pairs) = operator.pairs.as_ref()?.get_or_init(|| (value, Pairs::of(argument)));
        (*known == value).then_some(pairs)
    }

    fn is_excluded(&mut self, engine: &Engine, link: &Link, removed: &[RemovedTarget], item: &Item) -> bool {
        if link.exclusions.is_empty() && removed.is_empty() {
            return false;
        }
        self.arena.budget.charge_list(link.exclusions.len() + removed.len());
        link.exclusions.iter().any(|target| self.covers(engine, target, item))
            || removed
                .iter()
                .any(|removed| removed.resolve(engine).is_some_and(|(_, target)| self.covers(engine, target, item)))
    }

    fn test(
        &mut self,
        engine: &Engine,
        link: &Link,
        operator: &BuiltOperator,
        argument: Argument<'_>,
        item: &Item,
    ) -> bool {
        self.arena.budget.charge_test();
        if link.gate.is_some_and(|gate| self.arena.is_closed_to(item.value, gate)) {
            return false;
        }
        if link.lasting.is_some_and(|test| self.arena.fails(item.value, test)) {
            return false;
        }
        // Once the cache is full, what a test makes goes when the test is over.
        let mark = self.arena.is_full().then(|| self.arena.mark());
        let mut made: Vec<Value> = Vec::new();
        let mut matched = false;
        let mut value = item.value;
        if link.multi_match {
            // The value itself, then the result of every transformation that changes it.
            matched = self.test_value(engine, link, operator, argument, item, value);
        }
        let unchanged = link.transforms.is_empty() || self.arena.is_unchanged(value, &link.triggers, link.changes);
        let transforms = if unchanged { &[][..] } else { &link.transforms };
        for transform in transforms {
            let next = self.arena.transformed(value, *transform);
            if next == value {
                continue;
            }
            value = next;
            if mark.is_some_and(|mark| next as usize >= mark) {
                made.push(next);
            }
            if link.multi_match {
                matched |= self.test_value(engine, link, operator, argument, item, value);
            }
        }
        if !link.multi_match {
            matched = self.test_value(engine, link, operator, argument, item, value);
        }
        match (mark, matched) {
            (Some(mark), false) => self.arena.forget_since(mark),
            (Some(_), true) => made.iter().for_each(|value| self.arena.hollow(*value)),
            (None, _) => {}
        }
        if !matched && !self.gave_up {
            self.arena.note_failed(item.value, self.current_test);
            if let Some(test) = link.lasting {
                self.arena.keep_failed(item.value, test);
            }
        }
        // Only now: what a full arena got during the test is gone.
        if std::mem::take(&mut self.gave_up) {
            self.publish_exceeded_limit(engine);
        }
        matched
    }

    fn test_value(
        &mut self,
        engine: &Engine,
        link: &Link,
        operator: &BuiltOperator,
        argument: Argument<'_>,
        item: &Item,
        value: Value,
    ) -> bool {
        let closed = operator.gate.is_some_and(|gate| self.arena.is_closed(value, gate));
        let found = !closed && self.evaluate(engine, link, operator, argument, item, value);
        if !found
            && !closed
            && !self.gave_up
            && operator.settles
            && argument.text.is_none()
            && let Some(gate) = operator.gate
        {
            self.arena.close(value, gate);
        }
        if found == link.negated {
            return false;
        }
        if link.capture && found {
            self.keep_captures();
        }
        self.remember_match(item, value);
        self.assign(engine, &link.sets);
        true
    }

    fn evaluate(
        &mut self,
        engine: &Engine,
        link: &Link,
        operator: &BuiltOperator,
        argument: Argument<'_>,
        item: &Item,
        value: Value,
    ) -> bool {
        self.captures.clear();
        self.captures.wanted(link.capture);
        self.captures.allow(self.arena.budget.left());
        self.work.operators += 1;
        self.work.patterns += u64::from(operator.is_pattern);
        let bytes = self.arena.get(value);
        let found = argument.pairs.is_none_or(|pairs| pairs.may_hold(bytes))
            && operator.operator.evaluate(bytes, argument.text, &mut self.captures);
        let length = bytes.len();
        self.arena.budget.charge_operator(length, self.captures.take_cost());
        if self.captures.limit_exceeded() {
            self.note_exceeded_limit(engine, item);
        }
        found
    }

    fn remember_match(&mut self, item: &Item, value: Value) {
        self.arena.budget.charge_match();
        // What was made for this test alone is about to go: its beginning is kept.
        let whole = value;
        let value = match self.arena.is_full() {
            true => self.arena.beginning(value, KEPT_LENGTH),
            false => value,
        };
        self.matched.push(Match { item: *item, value });
        if self.arena.get(whole).len() > self.arena.get(value).len() {
            self.matched.limit = Some(("bytes of a value that matched", KEPT_LENGTH));
        }
    }

    /// MATCHED_VAR.
    pub(super) fn matched_value(&self) -> Value {
        self.matched.last.map_or(EMPTY, |last| last.value)
    }

    /// MATCHED_VAR_NAME.
    pub(super) fn matched_name(&mut self) -> Value {
        let Some(last) = self.matched.last else { return EMPTY };
        let engine = Arc::clone(&self.engine);
        self.full_name(&engine, &last.item)
    }

    /// MATCHED_VARS: the names are made when a rule asks for them.
    pub(super) fn name_matches(&mut self) {
        // The rest of a chain that looks for something in them is blind for what is not there.
        if let Some((limit, most)) = self.matched.limit {
            self.left_out("MATCHED_VARS", limit, most);
        }
        let engine = Arc::clone(&self.engine);
        while let Some(next) = self.matched.list.get(self.matched.named.len()).copied() {
            let name = self.full_name(&engine, &next.item);
            self.matched.named.push(Entry { name, value: next.value });
        }
    }

    /// The name of a value as MATCHED_VAR_NAME has it.
    fn full_name(&mut self, engine: &Engine, item: &Item) -> Value {
        let mut name = std::mem::take(&mut self.name);
        name.clear();
        name.extend_from_slice(item.variable.name().as_bytes());
        if item.name != Name::None {
            name.push(b':');
            name.extend_from_slice(self.name_bytes(engine, item.name));
        }
        let value = self.arena.push(&name);
        self.name = name;
        value
    }

    fn note_exceeded_limit(&mut self, engine: &Engine, item: &Item) {
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

    /// Whether the budget has come to its end: the phase then ends, too. The first time that is told, with what was looked at.
    pub(super) fn is_overdrawn(&mut self, engine: &Engine, item: Option<&Item>) -> bool {
        if !self.arena.budget.is_spent() {
            return false;
        }
        if !std::mem::replace(&mut self.overdrawn, true) {
            let spent = self.arena.budget.spent();
            let rule_id = self.current_rule.and_then(|at| engine.rules.get(at as usize)).map_or(0, |rule| rule.id);
            let variable = item.map(|item| self.reported_name(engine, item)).unwrap_or_default();
            // It is among those that are reported, whatever gave up before.
            self.exceeded.truncate(EXCEEDED_RULES - 1);
            self.exceeded.push(ExceededLimit { rule_id, variable, searches: 1, spent: Some(spent) });
        }
        true
    }

    fn publish_exceeded_limit(&mut self, engine: &Engine) {
        let one = self.arena.number(1);
        self.set_scalar(Variable::MscPcreLimitsExceeded, one);
        self.set_tx(engine, b"MSC_PCRE_LIMITS_EXCEEDED", Some(one));
    }
}
