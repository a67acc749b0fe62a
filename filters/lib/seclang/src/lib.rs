//! SecLang, the rule language of ModSecurity v3: parse, check, compile, evaluate.
//!
//! - [`compile()`] turns rule text into a [`Program`]: every rule checked, files resolved, removals and updates applied.
//!   It runs where rules are written and reports every error with its place.
//! - [`Engine`] is the executable form of a [`Program`]: it runs where rules are enforced.
//! - [`Transaction`] takes one request and its response through the five phases of an [`Engine`].
//!
//! Nothing here reads a clock, a file or the network: the time and the random number come with
//! [`TransactionStart`], data files through [`DataFiles`], what is known of addresses through [`Lookups`].

pub mod body;
pub mod compile;
pub mod engine;
mod expansion;
mod id_set;
pub mod operator;
pub mod program;
mod short_mark;
mod source;
mod syntax;
pub mod transform;
pub mod vocabulary;

pub use compile::compile;
pub use engine::limits::{MATCHED_IDS, RECORD_LENGTH, REPORTED_INPUTS};
pub use engine::{
    BodyLimits, BudgetLimits, CollectionKind, Collections, Engine, ExceededLimit, Intervention, InterventionKind,
    Lookup, Lookups, MatchedInput, MatchedRule, Place, REST_OF_BODY, RecordName, Spent, StoredRecord, Transaction,
    TransactionStart, Uninspected, UpdateLost, Work,
};
pub use operator::DataFiles;
pub use program::{Coverage, EngineMode, NOTHING_SELECTED, Program, RuleLookups, Settings};
pub use source::{Diagnostic, Source};

/// The engine configuration a rule set for ModSecurity expects to find loaded before it: the rule engine on, both
/// bodies inspected, limits, the JSON and XML body processors chosen by `Content-Type`, and the rules that refuse
/// bodies which cannot be parsed (ids 200000 to 200007).
pub const ENGINE_CONF: &str = include_str!("../assets/engine.conf");
