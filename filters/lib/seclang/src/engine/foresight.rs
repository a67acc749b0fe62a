//! What is decided before there is a request: constant propagation over TX.
//!
//! Rule sets set themselves up. The first dozens of rules of the CRS give names of TX their defaults, and a rule with a
//! paranoia level asks one of these names whether it is to run. Where the rules leave no doubt what a name holds, the
//! answer is known when the engine is built: a rule that cannot match is not run, what it looks for is not looked for,
//! and what the first rules assign is there when a transaction begins.
//!
//! The walk takes every way a transaction may take and joins what it finds. It does not follow a `ctl` that takes away a
//! rule, or TX from a rule, from which something was concluded: a transaction in which one took effect goes by the rules
//! as they are written.

use std::collections::BTreeMap;

use super::arena::{EMPTY, Value};
use super::build::{BuiltOperator, Control, Macro, MacroPiece, Rule, RuleFilter, SetOperation, SetVariable};
use super::gates::{FirstTest, Number, Subject};
use super::names::Names;
use crate::operator::{Operator, integer};
use crate::program::EngineMode;
use crate::program::wire::Disruption;
use crate::vocabulary::Variable;

/// The names of captures have the first slots: what they hold is never known.
const CAPTURES: usize = 10;

/// Where a phase ends, as the target of a jump.
const END: u32 = u32::MAX;

/// What is known of all rules.
#[derive(Default)]
pub(super) struct Foresight {
    /// For each rule.
    rules: Vec<Prospect>,
    pub(super) prelude: Prelude,
}

/// What is known of one rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prospect {
    /// It is never reached, or its first test never matches.
    Never,
    /// Its first test matches whenever it is reached.
    Matches,
    Open,
    /// It has run when a transaction begins.
    Done,
}

/// What the first rules of phase 1 leave behind in every transaction.
#[derive(Default)]
pub(super) struct Prelude {
    /// TX, for each slot.
    pub(super) slots: Vec<Option<Value>>,
    /// The rules that matched, in order.
    pub(super) matched: Vec<u32>,
}

/// What is known of a name of TX at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fact {
    Missing,
    Constant(Value),
    Unknown,
}

/// What is known of TX at one place, for each slot.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State(Vec<Fact>);

impl State {
    fn get(&self, slot: u32) -> Fact {
        self.0.get(slot as usize).copied().unwrap_or(Fact::Unknown)
    }

    fn join(&mut self, other: &Self) {
        for (fact, more) in self.0.iter_mut().zip(&other.0) {
            if fact != more {
                *fact = Fact::Unknown;
            }
        }
    }
}

fn join(one: &mut Option<State>, other: &State) {
    match one {
        Some(state) => state.join(other),
        None => *one = Some(other.clone()),
    }
}

/// The rules, and what the walk has found so far.
struct Walk<'e> {
    rules: &'e [Rule],
    operators: &'e [BuiltOperator],
    names: &'e Names,
    constants: &'e [Box<[u8]>],
    /// A name that the engine itself may set at any time.
    volatile: Option<u32>,
    found: Foresight,
    /// What holds in transactions that leave out phases.
    leaving: Option<State>,
    /// Whether all that was met so far is decided.
    exact: bool,
}

/// The ways through one phase that are still to be gone.
struct Ways {
    /// What holds at the next rule; `None` if no way leads there.
    here: Option<State>,
    /// What holds where ways go on further down, by rule.
    later: BTreeMap<u32, State>,
    /// What holds where ways left the phase.
    out: Option<State>,
}

impl Ways {
    fn jump(&mut self, target: u32, state: &State) {
        match self.later.get_mut(&target) {
            Some(known) => known.join(state),
            None => drop(self.later.insert(target, state.clone())),
        }
    }

    /// Ways that come back at a rule.
    fn arrive(&mut self, at: u32) {
        while let Some(entry) = self.later.first_entry().filter(|entry| *entry.key() <= at) {
            join(&mut self.here, &entry.remove());
        }
    }
}

impl Foresight {
    /// Foresees the rules of the phases, each a list of rules in order.
    pub(super) fn new(
        rules: &[Rule],
        phases: &[Vec<u32>],
        operators: &[BuiltOperator],
        names: &Names,
        constants: &[Box<[u8]>],
    ) -> Self {
        let found = Self { rules: vec![Prospect::Never; rules.len()], prelude: Prelude::default() };
        let volatile = names.slot(b"MSC_PCRE_LIMITS_EXCEEDED");
        let mut walk = Walk { rules, operators, names, constants, volatile, found, leaving: None, exact: true };
        let mut state = State(vec![Fact::Missing; names.list.len()]);
        let unknown = state.0.iter_mut().zip(0..).filter(|(_, slot)| walk.is_volatile(*slot));
        unknown.for_each(|(fact, _)| *fact = Fact::Unknown);
        for phase in phases {
            if let Some(leaving) = &walk.leaving {
                state.join(leaving);
            }
            state = walk.phase(phase, state);
            walk.end_prelude(&state);
        }
        walk.found
    }

    /// Whether something was concluded from what these rules do. Where a rule may match or not, both were taken into
    /// account.
    pub(super) fn relies_on(&self, rules: &[Rule], filter: &RuleFilter) -> bool {
        let mut rules = rules.iter().zip(&self.rules);
        rules.any(|(rule, prospect)| *prospect == Prospect::Matches && filter.matches(rule))
    }

    /// What is known of a rule.
    pub(super) fn of(&self, rule: u32) -> Prospect {
        self.rules.get(rule as usize).copied().unwrap_or(Prospect::Open)
    }
}

impl Walk<'_> {
    fn is_volatile(&self, slot: u32) -> bool {
        (slot as usize) < CAPTURES || self.volatile == Some(slot)
    }

    /// Walks through a phase; what holds at its end.
    fn phase(&mut self, list: &[u32], state: State) -> State {
        let entry = state.clone();
        let mut ways = Ways { here: Some(state), later: BTreeMap::new(), out: None };
        for &at in list {
            ways.arrive(at);
            let Some(state) = ways.here.take() else { continue };
            match self.rules.get(at as usize) {
                Some(rule) => self.rule(at, rule, state, &mut ways),
                None => ways.here = Some(state),
            }
        }
        ways.arrive(END);
        let mut end = ways.out;
        if let Some(state) = &ways.here {
            join(&mut end, state);
        }
        // A phase no way leaves is one in which the transaction ends.
        end.unwrap_or(entry)
    }

    /// A rule that is reached while `state` holds.
    fn rule(&mut self, at: u32, rule: &Rule, state: State, ways: &mut Ways) {
        let outcome = self.first_test(rule, &state);
        if outcome == Some(false) {
            ways.here = Some(state);
            return;
        }
        let certain = outcome == Some(true) && rule.links.len() == 1;
        let mut after = state.clone();
        let mut doubtful = state.clone();
        for link in &rule.links {
            self.assign(&link.sets, &mut after);
            doubtful.join(&after);
        }
        let prospect = if certain && self.is_foregone(rule, &after) {
            self.found.prelude.matched.push(at);
            Prospect::Done
        } else {
            self.end_prelude(&state);
            if outcome == Some(true) { Prospect::Matches } else { Prospect::Open }
        };
        if let Some(slot) = self.found.rules.get_mut(at as usize) {
            *slot = prospect;
        }
        if !certain {
            // Tests of a chain assign on their own.
            ways.here = Some(doubtful);
        }
        let switches = |control: &Control| matches!(control, Control::RuleEngine(EngineMode::Off));
        let may_end =
            rule.disruption != Disruption::Pass || rule.links.iter().any(|link| link.controls.iter().any(switches));
        if may_end {
            join(&mut ways.out, &after);
            join(&mut self.leaving, &after);
            // Whether an intervention ends the phase depends on the mode.
            join(&mut ways.here, &after);
        }
        match rule.skip_to {
            Some(target) => ways.jump(target, &after),
            None => join(&mut ways.here, &after),
        }
    }

    /// Whether the first test of a rule matches; `None` if that depends on the request.
    fn first_test(&self, rule: &Rule, state: &State) -> Option<bool> {
        let link = rule.links.first()?;
        match FirstTest::of(link, self.operators) {
            FirstTest::None => Some(true),
            FirstTest::Number { subject, kind, argument, negated } => {
                let number = match subject {
                    Subject::Slot(slot) => match state.get(slot) {
                        Fact::Unknown => return None,
                        Fact::Missing => return Some(false),
                        Fact::Constant(value) => integer(self.text(value)),
                    },
                    Subject::HasSlot(slot) => match state.get(slot) {
                        Fact::Unknown => return None,
                        Fact::Missing => 0,
                        Fact::Constant(_) => 1,
                    },
                    Subject::Scalar(_) | Subject::Count => return None,
                };
                let argument = match argument {
                    Number::Constant(argument) => argument,
                    Number::Slot(slot) => match state.get(slot) {
                        Fact::Unknown => return None,
                        Fact::Missing => 0,
                        Fact::Constant(value) => integer(self.text(value)),
                    },
                };
                Some(Operator::compares(kind, number, argument) != negated)
            }
            FirstTest::Unknown | FirstTest::Gate(_) => None,
        }
    }

    fn text(&self, constant: Value) -> &[u8] {
        let at = (constant as usize).checked_sub(1);
        at.and_then(|at| self.constants.get(at)).map(|text| &**text).unwrap_or_default()
    }

    fn assign(&self, sets: &[SetVariable], state: &mut State) {
        for set in sets.iter().filter(|set| set.variable == Variable::Tx) {
            let fact = self.operand(set, state);
            match set.slot {
                Some(slot) if self.is_volatile(slot) => {}
                Some(slot) => {
                    if let Some(known) = state.0.get_mut(slot as usize) {
                        *known = fact;
                    }
                }
                None => self.assign_unnamed(&set.key, state),
            }
        }
    }

    fn operand(&self, set: &SetVariable, state: &State) -> Fact {
        match (set.operation, set.constant, set.value.0.as_slice()) {
            (SetOperation::Nothing, ..) => Fact::Missing,
            (SetOperation::To, Some(constant), _) => Fact::Constant(constant),
            (SetOperation::To, None, [MacroPiece::Slot(from)]) => match state.get(*from) {
                Fact::Missing => Fact::Constant(EMPTY),
                known => known,
            },
            _ => Fact::Unknown,
        }
    }

    /// A name that holds macros may be any that begins with the text before them.
    fn assign_unnamed(&self, key: &Macro, state: &mut State) {
        let prefix = match key.0.first() {
            Some(MacroPiece::Text(text)) => text,
            _ => &[][..],
        };
        for (name, fact) in self.names.list.iter().zip(&mut state.0) {
            if name.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix)) {
                *fact = Fact::Unknown;
            }
        }
    }

    /// Whether a rule that certainly matches can have run in advance, with what holds after it.
    fn is_foregone(&self, rule: &Rule, after: &State) -> bool {
        let known = |set: &SetVariable| set.slot.is_some_and(|slot| after.get(slot) != Fact::Unknown);
        self.exact && rule.is_bookkeeping && rule.links.iter().all(|link| link.sets.iter().all(known))
    }

    /// From here on it is not certain what happens.
    fn end_prelude(&mut self, state: &State) {
        if !std::mem::take(&mut self.exact) {
            return;
        }
        let value = |fact: &Fact| match fact {
            Fact::Constant(value) => Some(*value),
            Fact::Missing | Fact::Unknown => None,
        };
        self.found.prelude.slots = state.0.iter().map(value).collect();
    }
}
