//! Rules in their executable form: chains of links, their targets, assignments and controls.

use std::sync::OnceLock;

use super::arena::Value;
use super::negative_cache::NegativeChain;
use super::pairs::Pairs;
use super::prefilter::LinkPrefilter;
use crate::operator::{ByteSet, Operator, OperatorArgument, OperatorKind, shortest_match};
use crate::program::wire::{Disruption, IdRange};
use crate::program::{EngineMode, XmlArguments};
use crate::transform::Transform;
use crate::vocabulary::{Severity, Variable};

/// An operator, and its argument if that holds macros.
pub(super) struct BuiltOperator {
    pub(super) operator: Operator,
    pub(super) argument: Option<Macro>,
    /// With `@within`: the pairs of the constant that the argument expanded to at first.
    pub(super) pairs: Option<OnceLock<(Value, Pairs)>>,
    /// Whether it is a regular expression.
    pub(super) is_pattern: bool,
    /// Whether a search may step back.
    pub(super) steps_back: bool,
    /// The number of its prefilter in the scanner.
    pub(super) prefilter: Option<u32>,
    /// Whether a non-match on a value clears the prefilter in the row of the value: the transformations of every test
    /// with this operator keep a value as it is whenever they keep the prefilters it passes.
    pub(super) settles: bool,
}

/// A rule with its chain.
pub(super) struct Rule {
    pub(super) id: u64,
    pub(super) phase: u8,
    pub(super) links: Vec<Link>,
    pub(super) disruption: Disruption,
    pub(super) status: u16,
    pub(super) redirect: Macro,
    pub(super) msg: Macro,
    /// The message as written.
    pub(super) msg_text: Box<[u8]>,
    pub(super) logdata: Macro,
    pub(super) severity: Option<Severity>,
    /// Indexes of strings.
    pub(super) tags: Vec<u32>,
    pub(super) version: Option<u32>,
    pub(super) revision: Option<u32>,
    pub(super) log: bool,
    pub(super) audit_log: bool,
    pub(super) skip: u32,
    pub(super) skip_to: Option<u32>,
    /// Whether a match only assigns and skips, and is not reported: such a rule need not be run if its first test is a
    /// numeric comparison or if it has no test. Most rules that match are of this kind.
    pub(super) is_assignment_only: bool,
    /// The chain, if the negative cache may keep that it does not match for a value.
    pub(super) negative_chain: Option<NegativeChain>,
}

impl Rule {
    /// Whether a match is reported with all its details.
    pub(super) fn is_reported(&self) -> bool {
        self.log || self.audit_log || self.disruption.blocks()
    }
}

/// One test of a chain.
pub(super) struct Link {
    pub(super) targets: Vec<Target>,
    pub(super) exclusions: Vec<Target>,
    pub(super) operator: Option<u32>,
    /// The number of the test, if its result depends on the value only.
    pub(super) test_number: Option<u32>,
    pub(super) negated: bool,
    pub(super) transforms: Vec<Transform>,
    /// The transformations do not change a value without any of these bytes.
    pub(super) triggers: Option<ByteSet>,
    /// The bit that a scanned value has if it holds any of these bytes; 0 if there is none.
    pub(super) changes: u64,
    pub(super) prefilter: Option<LinkPrefilter>,
    /// With a prefilter: the number of each target in [`super::prefilter::TargetTable`].
    pub(super) target_numbers: Box<[u32]>,
    pub(super) multi_match: bool,
    pub(super) capture: bool,
    pub(super) sets: Vec<SetVariable>,
    pub(super) controls: Vec<Control>,
}

impl Link {
    /// Whether a match only assigns names of TX, with values that do not depend on the match.
    pub(super) fn is_assignment_only(&self) -> bool {
        let plain = |value: &Macro| {
            let mut pieces = value.0.iter();
            pieces.all(|piece| matches!(piece, MacroPiece::Text(_) | MacroPiece::Slot(_)))
        };
        !self.capture && self.controls.is_empty() && self.sets.iter().all(|set| set.slot.is_some() && plain(&set.value))
    }
}

/// A target of a link, or an exclusion.
pub(super) struct Target {
    pub(super) variable: Variable,
    pub(super) key: KeySelector,
    pub(super) count: bool,
}

/// Selects names of a collection.
pub(super) enum KeySelector {
    All,
    Name(Box<[u8]>),
    /// A name of TX with a slot: see [`super::names::Names`].
    Slot(u32),
    Pattern(Box<KeyPattern>),
}

/// A pattern of names.
pub(super) struct KeyPattern {
    pub(super) operator: Operator,
    /// The least number of bytes of a matching name.
    pub(super) min_length: usize,
    /// The slots of TX whose names match, found at the first use.
    pub(super) slots: OnceLock<Box<[u32]>>,
}

impl KeySelector {
    pub(super) fn pattern(argument: &OperatorArgument) -> Result<Self, String> {
        let operator = Operator::build(OperatorKind::Rx, argument)?;
        let min_length = shortest_match(argument);
        Ok(Self::Pattern(Box::new(KeyPattern { operator, min_length, slots: OnceLock::new() })))
    }
}

/// An assignment: `setvar`, `expirevar` and the like.
pub(super) struct SetVariable {
    pub(super) variable: Variable,
    /// The slot, for a name of TX without macros.
    pub(super) slot: Option<u32>,
    /// Whether the name has macros and cannot be a name with a slot.
    pub(super) is_dynamic: bool,
    pub(super) key: Macro,
    pub(super) operation: SetOperation,
    pub(super) value: Macro,
    /// The value, if it is the same in every transaction.
    pub(super) constant: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetOperation {
    To,
    Add,
    Subtract,
    Nothing,
    /// Attaches the record with this key to the collection.
    Attach,
    /// Expires the variable after a number of seconds.
    Expire,
    /// Decreases the variable by an amount in every period.
    Deprecate,
    /// Masks the value in reports.
    Sanitise,
}

/// A `ctl`.
pub(super) enum Control {
    RuleEngine(EngineMode),
    RequestBodyAccess(bool),
    ResponseBodyAccess(bool),
    RequestBodyProcessor(Box<[u8]>),
    ForceRequestBodyVariable(bool),
    RequestBodyLimit(u64),
    ResponseBodyLimit(u64),
    XmlArguments(XmlArguments),
    Remove(RuleFilter),
    RemoveTarget(RuleFilter, Target),
}

/// Selects the rules of a `ctl:ruleRemove*`.
#[derive(Debug, Clone)]
pub(super) enum RuleFilter {
    Ids(IdRange),
    /// The index of the tag in the strings; `None` if no rule has it.
    Tag(Option<u32>),
    Msg(Box<[u8]>),
}

/// Text with macros, parsed and bound to slots.
#[derive(Default)]
pub(super) struct Macro(pub(super) Vec<MacroPiece>);

pub(super) enum MacroPiece {
    Text(Box<[u8]>),
    Slot(u32),
    Value(Variable, Option<Box<[u8]>>),
    /// The first value of a collection that a pattern selects.
    Selected(Variable, KeySelector),
}

impl Macro {
    /// Whether it expands to the same text in every transaction.
    pub(super) fn is_fixed(&self) -> bool {
        self.0.iter().all(|piece| matches!(piece, MacroPiece::Text(_)))
    }
}

impl RuleFilter {
    pub(super) fn matches(&self, rule: &Rule) -> bool {
        match self {
            Self::Ids(range) => (range.first..=range.last).contains(&rule.id),
            Self::Tag(tag) => tag.is_some_and(|tag| rule.tags.contains(&tag)),
            Self::Msg(msg) => *rule.msg_text == **msg,
        }
    }
}
