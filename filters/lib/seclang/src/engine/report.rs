//! What a transaction reports: interventions, matched rules, exceeded limits, and the work done.

use super::budget::Spent;
use crate::vocabulary::Severity;

/// An intervention that a rule or a limit demands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intervention {
    /// The status to answer with.
    pub status: u16,
    /// The rule; 0 if a limit was exceeded.
    pub rule_id: u64,
    /// What to do.
    pub kind: InterventionKind,
    /// The message of the rule.
    pub msg: Vec<u8>,
}

/// How a transaction ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InterventionKind {
    /// An answer with the status.
    Deny,
    /// The connection is closed.
    Drop,
    /// An answer that sends the client to this URL.
    Redirect(Vec<u8>),
}

/// A rule that matched, with its whole chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchedRule {
    /// The id.
    pub rule_id: u64,
    /// 1 to 5.
    pub phase: u8,
    /// The message, macros expanded, at most [`super::limits::REPORTED_LENGTH`] bytes.
    pub msg: Vec<u8>,
    /// Whether the message is all of the rule's own text: without macros nothing of the request is in it.
    pub msg_is_fixed: bool,
    /// The log data, macros expanded, at most [`super::limits::REPORTED_LENGTH`] bytes.
    pub logdata: Vec<u8>,
    /// The severity, if the rule has one.
    pub severity: Option<Severity>,
    /// The tags.
    pub tags: Vec<Vec<u8>>,
    /// The full name of what matched last, as `ARGS:id`.
    pub variable: Vec<u8>,
    /// What matched last, transformed, at most [`super::limits::REPORTED_LENGTH`] bytes.
    pub value: Vec<u8>,
    /// What else matched in the chain, in order, each name once: at most [`super::limits::REPORTED_INPUTS`].
    pub earlier: Vec<MatchedInput>,
    /// Whether the rule ends the transaction (or would, if the engine only detects).
    pub disruptive: bool,
    /// Whether the rule wants to be logged.
    pub logged: bool,
    /// Whether the rule wants to be in the audit log.
    pub audited: bool,
}

/// A variable at which a rule matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchedInput {
    /// The full name, as `ARGS:id`.
    pub variable: Vec<u8>,
    /// The first value of that name that matched, transformed, at most [`super::limits::REPORTED_LENGTH`] bytes.
    pub value: Vec<u8>,
}

impl MatchedRule {
    /// The full names of all that matched in the chain with their values, in order, each name once; what matched last is the last.
    pub fn inputs(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let earlier = self.earlier.iter().map(|input| (input.variable.as_slice(), input.value.as_slice()));
        earlier.chain([(self.variable.as_slice(), self.value.as_slice())])
    }
}

/// A rule whose operator gave up at a limit, which counts as no match although it might match. Or the rule at which the
/// budget of the transaction, and with it the phase, ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExceededLimit {
    /// The id; 0 if the rule has none, or if the budget ended before a rule was run.
    pub rule_id: u64,
    /// The full name of the first value it gave up on, as `ARGS:id`, at most [`super::limits::REPORTED_LENGTH`] bytes.
    pub variable: Vec<u8>,
    /// How many values it gave up on.
    pub searches: u64,
    /// The work and memory spent, if the budget ended; `None` if one operator gave up.
    pub spent: Option<Spent>,
}

/// How much a transaction had evaluated so far: what a slow rule set spends its time on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Rules begun.
    pub rules: u64,
    /// Operators run, each on one value.
    pub operators: u64,
    /// Regular expressions among them.
    pub patterns: u64,
    /// Backtracking steps, for values and for names of collections: at most [`crate::operator::BACKTRACK_BUDGET`] each.
    pub backtracks: u64,
    /// Bytes that transformations read.
    pub transformed: u64,
    /// Bytes that the prefilter scanned.
    pub scanned: u64,
    /// Bytes that operators searched.
    pub searched: u64,
    /// Values stored.
    pub values: u64,
    /// Bytes of names of arguments.
    pub name_bytes: u64,
    /// The work in units of two to five instructions of a wasm VM, and the memory, as of now.
    pub spent: Spent,
}
