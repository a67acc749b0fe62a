//! Evaluates rules: chains, their links, and the tests of single values.

use std::sync::Arc;

use super::arena::{EMPTY, Value};
use super::build::Engine;
use super::collect::{Item, Name};
use super::limits::{EXPANSION_LENGTH, KEPT_LENGTH};
use super::negative_cache::NegativeChain;
use super::pairs::Pairs;
use super::phase::Flow;
use super::rules::{BuiltOperator, Link, MacroPiece, Rule};
use super::store::{Entry, Match};
use super::transaction::{RemovedTarget, Transaction, UNSET};
use crate::operator::OperatorKind;

/// From this length on, in bytes, the cost of an operator is charged at once.
const LONG: usize = 512;
/// The most units that short values have cost and that are charged with others.
const UNSETTLED: u64 = 16 * 1024;

/// The most tests of a link after which it is not asked whether the budget is spent, if no operator was run.
const FEW: usize = 32;
/// The most tests that are charged with others.
const MANY: usize = 4096;

/// The expanded argument of an operator.
#[derive(Clone, Copy)]
struct Argument<'a> {
    text: Option<&'a [u8]>,
    /// For an argument that lists values, the pairs of bytes in it.
    pairs: Option<&'a Pairs>,
}

/// The state of a link whose chain may be in the negative cache.
#[derive(Clone, Copy, Default)]
struct Attempt<'a> {
    negative_chain: Option<&'a NegativeChain>,
    /// Whether [`Transaction::cache_negative`] may cache all matches so far.
    cacheable: bool,
}

impl Transaction {
    /// Runs a chain. The phase ends if the budget is spent.
    pub(super) fn run_rule(&mut self, engine: &Engine, rule: &Rule, at: u32) -> Flow {
        self.work.rules += 1;
        self.current_rule = Some(at);
        self.begin_rule();
        // Targets that a `ctl` removed from this rule: chained rules go by the id of the first.
        let removed: Vec<RemovedTarget> = match self.removed_targets.is_empty() {
            true => Vec::new(),
            false => {
                self.arena.budget.charge_list(self.removed_targets.len());
                let resolved = self.removed_targets.iter().copied();
                let of_rule =
                    |removed: &RemovedTarget| removed.resolve(engine).is_some_and(|(filter, _)| filter.matches(rule));
                resolved.filter(of_rule).collect()
            }
        };
        // A result without the removed targets is not valid for other transactions.
        let chain = if removed.is_empty() { self.usable_negative_chain(engine, rule) } else { None };
        let mut of_first = Attempt { negative_chain: chain, cacheable: true };
        let mut of_others = Attempt::default();
        for (link, number) in rule.links.iter().zip(0..) {
            let attempt = if number == 0 { &mut of_first } else { &mut of_others };
            let Some(matched) = self.run_link(engine, link, &removed, attempt) else { return Flow::Stop };
            if !matched {
                if let (Some(chain), Some(first), 1, true) =
                    (of_first.negative_chain, rule.links.first(), number, of_first.cacheable)
                {
                    self.cache_negative(engine, chain, first);
                }
                return Flow::Next;
            }
        }
        let flow = self.act_on_match(engine, rule, at);
        if self.is_overdrawn(engine, None) { Flow::Stop } else { flow }
    }

    /// Runs one test on all its values. Assignments run for every value that matches. `None` if the budget is spent: no
    /// result is complete then, and the phase ends.
    fn run_link(
        &mut self,
        engine: &Engine,
        link: &Link,
        removed: &[RemovedTarget],
        attempt: &mut Attempt<'_>,
    ) -> Option<bool> {
        let Some(operator) = link.operator.and_then(|at| engine.operators.get(at as usize)) else {
            self.assign(engine, &link.sets);
            return Some(true);
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
        if self.captures.cost() > UNSETTLED {
            self.settle();
        }
        let (mut tests, mut spent) = (0, false);
        'targets: for (target, number) in link.targets.iter().zip(0..) {
            if !self.target_may_match(engine, link, number) {
                continue;
            }
            items.clear();
            self.captured_values.begin_link();
            self.collect(engine, target, &mut items);
            for item in &items {
                // Equal values have the same number and the same result.
                if item.value == UNSET || self.arena.has_failed(item.value, self.current_test) {
                    continue;
                }
                tests += 1;
                if self.is_known_to_fail(link, item.value) {
                    continue;
                }
                if !link.exclusions.is_empty() || !removed.is_empty() {
                    // Two comparisons of targets cost as much as a test. Their lists may be long: these are charged in time.
                    tests += (link.exclusions.len() + removed.len()).div_ceil(2);
                    if tests > MANY {
                        self.arena.budget.charge_tests(std::mem::take(&mut tests));
                        if self.is_overdrawn(engine, Some(item)) {
                            spent = true;
                            break 'targets;
                        }
                    }
                    if self.is_excluded(engine, link, removed, item) {
                        continue;
                    }
                }
                if attempt.negative_chain.is_some_and(|chain| self.is_cached_negative(chain, link, item.value)) {
                    continue;
                }
                if self.test(engine, link, operator, argument, item) {
                    matched = true;
                    attempt.cacheable =
                        attempt.cacheable && attempt.negative_chain.is_some() && self.captured_whole(link, item.value);
                }
                if self.is_overdrawn(engine, Some(item)) {
                    spent = true;
                    break 'targets;
                }
            }
        }
        self.arena.budget.charge_tests(tests);
        spent = spent || tests > FEW && self.is_overdrawn(engine, items.last());
        self.items = items;
        self.argument = expanded;
        // A pattern for names that gave up selected nothing.
        if self.scratch.limit_exceeded()
            && let Some(target) = link.targets.first()
        {
            self.scratch.clear();
            self.note_exceeded_limit(engine, &Item { variable: target.variable, name: Name::None, value: EMPTY });
            self.publish_exceeded_limit(engine);
            attempt.cacheable = false;
        }
        (!spent).then_some(matched)
    }

    /// The pairs of the argument of `@within`, if it is a name of TX that holds a constant, such as a list of methods
    /// or headers.
    fn pairs<'e>(&self, engine: &'e Engine, operator: &'e BuiltOperator, argument: &[u8]) -> Option<&'e Pairs> {
        let Some([MacroPiece::Slot(slot)]) = operator.argument.as_ref().map(|argument| argument.0.as_slice()) else {
            return None;
        };
        let value = self.tx.get(*slot).filter(|value| *value as usize <= engine.constants.len())?;
        if operator.operator.kind() != OperatorKind::Within {
            return None;
        }
        let (constant, pairs) = operator.pairs.as_ref()?.get_or_init(|| (value, Pairs::of(argument)));
        (*constant == value).then_some(pairs)
    }

    /// Whether a value is known to fail the test of a link without that its operator is run.
    fn is_known_to_fail(&mut self, link: &Link, value: Value) -> bool {
        link.prefilter.is_some_and(|prefilter| self.arena.is_rejected_by(value, prefilter))
            || link.test_number.is_some_and(|test| self.arena.fails(value, test))
    }

    /// Charges what operators have cost since the last call, and lets them know what is left.
    pub(super) fn settle(&mut self) {
        let cost = self.captures.take_cost();
        self.arena.budget.charge(cost);
        let left = self.arena.budget.left();
        self.captures.allow(left);
        self.scratch.allow(left);
    }

    fn is_excluded(&mut self, engine: &Engine, link: &Link, removed: &[RemovedTarget], item: &Item) -> bool {
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
        // With a full value cache, the values of a test are released after it.
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
            if let Some(test) = link.test_number {
                self.arena.cache_failed_test(item.value, test);
            }
        }
        // After the release above, which would drop this value.
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
        let closed = operator.prefilter.is_some_and(|prefilter| self.arena.is_rejected(value, prefilter));
        let found = match closed {
            true => false,
            // What is not known is no match, negated or not.
            false => match self.evaluate(engine, link, operator, argument, item, value) {
                Some(found) => found,
                None => return false,
            },
        };
        if !found
            && !closed
            && !self.gave_up
            && operator.settles
            && argument.text.is_none()
            && let Some(prefilter) = operator.prefilter
        {
            self.arena.reject(value, prefilter);
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

    /// Runs an operator, without its negation; `None` if the result is not known.
    fn evaluate(
        &mut self,
        engine: &Engine,
        link: &Link,
        operator: &BuiltOperator,
        argument: Argument<'_>,
        item: &Item,
        value: Value,
    ) -> Option<bool> {
        self.captures.clear();
        self.captures.wanted(link.capture);
        // Most short values cost little, and are charged together. A pattern that steps back has to know what is left.
        let alone = operator.steps_back || self.arena.get(value).len() >= LONG;
        if alone {
            self.settle();
        }
        self.work.operators += 1;
        self.work.patterns += u64::from(operator.is_pattern);
        if operator.operator.looks_up() {
            return self.look_up(operator, value);
        }
        let bytes = self.arena.get(value);
        let found = argument.pairs.is_none_or(|pairs| pairs.may_hold(bytes))
            && operator.operator.evaluate(bytes, argument.text, &mut self.captures);
        let length = bytes.len();
        self.arena.budget.note_searched(length);
        if alone || self.captures.cost() > UNSETTLED {
            self.settle();
        }
        if self.captures.limit_exceeded() {
            self.note_exceeded_limit(engine, item);
        }
        Some(found)
    }

    fn remember_match(&mut self, item: &Item, value: Value) {
        self.arena.budget.charge_match();
        // The values of this test are about to be released: keep the beginning.
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

    /// MATCHED_VARS. The names are only made for rules that read them.
    pub(super) fn name_matches(&mut self) {
        // The rest of the chain does not see the values beyond the limit.
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
    pub(super) fn full_name(&mut self, engine: &Engine, item: &Item) -> Value {
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
}
