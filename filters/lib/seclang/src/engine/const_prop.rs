//! Constant propagation over TX, when the engine is built.
//!
//! Rule sets configure themselves. The first dozens of rules of the CRS assign defaults to names of TX, and a rule with
//! a paranoia level tests one of these names to decide whether it runs. If the rules determine what a name holds, the
//! result of the test is known in advance: a rule that cannot match is not run, its prefilter is not scanned for, and
//! the assignments of the first rules are present when a transaction begins.
//!
//! The walk follows every path a transaction may take and joins the states at its end. It does not follow a `ctl` that
//! removes a rule, or TX from a rule, on which a prediction relies: a transaction in which one takes effect runs the
//! rules as they are written.

use std::collections::BTreeMap;

use super::arena::{EMPTY, Value};
use super::names::Names;
use super::prefilter::{FirstTest, Number, Subject};
use super::rules::{BuiltOperator, Control, Macro, MacroPiece, Rule, RuleFilter, SetOperation, SetVariable};
use crate::operator::{Operator, integer};
use crate::program::EngineMode;
use crate::program::wire::Disruption;
use crate::vocabulary::Variable;

/// The captures have the first slots; their values are never constant.
const CAPTURES: usize = 10;

/// The target of a jump to the end of the phase.
const END: u32 = u32::MAX;

/// The result of the propagation.
#[derive(Default)]
pub(super) struct ConstProp {
    /// For each rule, what its first test does.
    rules: Vec<Prediction>,
    pub(super) prelude: Prelude,
}

/// What is known of a rule before there is a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prediction {
    /// The rule is never reached, or its first test never matches.
    NeverMatches,
    /// The first test matches whenever the rule is reached.
    AlwaysMatches,
    /// The request decides.
    Unknown,
    /// Its assignments are part of the [`Prelude`]: it is not run again.
    Applied,
}

/// The state after the first rules of phase 1, which is the same in every transaction.
#[derive(Default)]
pub(super) struct Prelude {
    /// TX, for each slot.
    pub(super) slots: Vec<Option<Value>>,
    /// The rules that matched, in order.
    pub(super) matched: Vec<u32>,
}

/// The abstract value of a name of TX at one point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fact {
    Missing,
    Constant(Value),
    Unknown,
}

/// The abstract value of each slot of TX at one point.
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

/// The rules, and the results so far.
struct Walk<'e> {
    rules: &'e [Rule],
    operators: &'e [BuiltOperator],
    names: &'e Names,
    constants: &'e [Box<[u8]>],
    /// The slot of a name that the engine itself may set at any time.
    volatile: Option<u32>,
    found: ConstProp,
    /// The joined state of the paths that leave out phases.
    leaving: Option<State>,
    /// Whether every rule so far is decided.
    exact: bool,
}

/// The pending paths through one phase.
struct PhasePaths {
    /// The state at the next rule; `None` if no path leads there.
    here: Option<State>,
    /// The states at rules to which paths jump, by rule.
    later: BTreeMap<u32, State>,
    /// The joined state of the paths that left the phase.
    out: Option<State>,
}

impl PhasePaths {
    fn jump(&mut self, target: u32, state: &State) {
        match self.later.get_mut(&target) {
            Some(pending) => pending.join(state),
            None => drop(self.later.insert(target, state.clone())),
        }
    }

    /// Joins the paths that jump to a rule.
    fn arrive(&mut self, at: u32) {
        while let Some(entry) = self.later.first_entry().filter(|entry| *entry.key() <= at) {
            join(&mut self.here, &entry.remove());
        }
    }
}

impl ConstProp {
    /// Propagates constants through the phases, each a list of rules in order.
    pub(super) fn new(
        rules: &[Rule],
        phases: &[Vec<u32>],
        operators: &[BuiltOperator],
        names: &Names,
        constants: &[Box<[u8]>],
    ) -> Self {
        let found = Self { rules: vec![Prediction::NeverMatches; rules.len()], prelude: Prelude::default() };
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

    /// Whether a prediction relies on any of the rules that the filter selects. Rules that may match or not are no base
    /// of a prediction: both paths were followed.
    pub(super) fn relies_on(&self, rules: &[Rule], filter: &RuleFilter) -> bool {
        let mut rules = rules.iter().zip(&self.rules);
        rules.any(|(rule, prediction)| *prediction == Prediction::AlwaysMatches && filter.matches(rule))
    }

    /// The prediction for a rule.
    pub(super) fn of(&self, rule: u32) -> Prediction {
        self.rules.get(rule as usize).copied().unwrap_or(Prediction::Unknown)
    }
}

impl Walk<'_> {
    fn is_volatile(&self, slot: u32) -> bool {
        (slot as usize) < CAPTURES || self.volatile == Some(slot)
    }

    /// Follows the paths through a phase; returns the state at its end.
    fn phase(&mut self, list: &[u32], state: State) -> State {
        let entry = state.clone();
        let mut paths = PhasePaths { here: Some(state), later: BTreeMap::new(), out: None };
        for &at in list {
            paths.arrive(at);
            let Some(state) = paths.here.take() else { continue };
            match self.rules.get(at as usize) {
                Some(rule) => self.rule(at, rule, state, &mut paths),
                None => paths.here = Some(state),
            }
        }
        paths.arrive(END);
        let mut end = paths.out;
        if let Some(state) = &paths.here {
            join(&mut end, state);
        }
        // No path leaves the phase: the transaction ends in it.
        end.unwrap_or(entry)
    }

    /// Follows a rule that is reached in `state`.
    fn rule(&mut self, at: u32, rule: &Rule, state: State, paths: &mut PhasePaths) {
        let outcome = self.first_test(rule, &state);
        if outcome == Some(false) {
            paths.here = Some(state);
            return;
        }
        let certain = outcome == Some(true) && rule.links.len() == 1;
        let mut after = state.clone();
        let mut doubtful = state.clone();
        for link in &rule.links {
            self.assign(&link.sets, &mut after);
            doubtful.join(&after);
        }
        let prediction = if certain && self.is_applied_in_advance(rule, &after) {
            self.found.prelude.matched.push(at);
            Prediction::Applied
        } else {
            self.end_prelude(&state);
            if outcome == Some(true) { Prediction::AlwaysMatches } else { Prediction::Unknown }
        };
        if let Some(slot) = self.found.rules.get_mut(at as usize) {
            *slot = prediction;
        }
        if !certain {
            // The tests of a chain assign before the whole chain has matched.
            paths.here = Some(doubtful);
        }
        let switches = |control: &Control| matches!(control, Control::RuleEngine(EngineMode::Off));
        let may_end =
            rule.disruption != Disruption::Pass || rule.links.iter().any(|link| link.controls.iter().any(switches));
        if may_end {
            join(&mut paths.out, &after);
            join(&mut self.leaving, &after);
            // The mode decides whether an intervention ends the phase.
            join(&mut paths.here, &after);
        }
        match rule.skip_to {
            Some(target) => paths.jump(target, &after),
            None => join(&mut paths.here, &after),
        }
    }

    /// The result of the first test of a rule; `None` if it depends on the request.
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
            FirstTest::Unknown | FirstTest::Prefilter(_) => None,
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
                    if let Some(slot) = state.0.get_mut(slot as usize) {
                        *slot = fact;
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
                fact => fact,
            },
            _ => Fact::Unknown,
        }
    }

    /// A name with macros may be any name that begins with the text before the first macro.
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

    /// Whether a rule that certainly matches can be part of the prelude; `after` is the state behind it.
    fn is_applied_in_advance(&self, rule: &Rule, after: &State) -> bool {
        let is_constant = |set: &SetVariable| set.slot.is_some_and(|slot| after.get(slot) != Fact::Unknown);
        self.exact && rule.is_assignment_only && rule.links.iter().all(|link| link.sets.iter().all(is_constant))
    }

    /// The first undecided rule: the prelude ends with the state before it.
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
