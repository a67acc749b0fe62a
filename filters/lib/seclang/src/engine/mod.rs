//! The engine, and one transaction on it.

mod act;
mod arena;
mod arguments;
mod as_sent;
mod automata;
mod body;
mod budget;
mod build;
mod builder;
mod captured;
mod clock;
mod collect;
mod const_prop;
mod declared;
mod evaluate;
mod exceeded;
mod expand;
mod hot_cache;
mod lookups;
mod names;
mod negative_cache;
mod only;
mod oversize;
mod pairs;
mod persist;
mod phase;
mod phase_summary;
mod plan;
mod prefilter;
mod prepare;
mod report;
mod request;
mod response;
mod rest;
mod rules;
mod sanitise;
mod scanner;
mod store;
mod suspicion;
mod transaction;
mod undeclared;
mod uninspected;

pub use body::BodyLimits;
pub use budget::{BudgetLimits, Spent};
pub use build::Engine;
pub use lookups::{Lookup, Lookups, Place};
pub use oversize::REST_OF_BODY;
pub(crate) use persist::READ_ONLY;
pub use persist::{CollectionKind, Collections, RecordName, StoredRecord, UpdateLost};
pub use report::{ExceededLimit, Intervention, InterventionKind, MatchedInput, MatchedRule, Work};
pub use transaction::{Transaction, TransactionStart};
pub use uninspected::Uninspected;

/// Limits of one transaction. Content beyond them is left out without an error; what is left out of a message is
/// reported ([`Transaction::uninspected`]).
pub mod limits {
    /// The most names that rules create at run time in each of TX, IP, GLOBAL, SESSION, USER, RESOURCE and ENV.
    pub const DYNAMIC_NAMES: usize = 4096;
    /// How many bytes an expanded macro may have.
    pub const EXPANSION_LENGTH: usize = 256 * 1024;
    /// How many headers are kept, of the request and of the response each.
    pub const HEADERS: usize = 1000;
    /// How many bytes of the name of an argument are stored with its values. A longer name ends with a mark that no
    /// uncut name has; the whole name is a value of ARGS_NAMES, once.
    pub const NAME_LENGTH: usize = crate::body::WHOLE;
    /// How many cookies are kept.
    pub const COOKIES: usize = 1000;
    /// How many matches of one chain MATCHED_VARS keeps.
    pub const MATCHED_VARS: usize = 1000;
    /// How many matched rules are reported.
    pub const MATCHED_RULES: usize = 2048;
    /// How many matched rules are counted by their id.
    pub const MATCHED_IDS: usize = 8192;
    /// How many rules that gave up at a limit are reported.
    pub const EXCEEDED_RULES: usize = 16;
    /// How many bytes of a matched value, of a message and of logdata are reported.
    pub const REPORTED_LENGTH: usize = 1024;
    /// How many variables at which a rule matched are reported beside the last.
    pub const REPORTED_INPUTS: usize = 15;
    /// How many targets `ctl:ruleRemoveTarget*` may remove.
    pub const REMOVED_TARGETS: usize = 4096;
    /// The bytes of all values from which the value cache is full: transformed values are then no longer kept, and each
    /// rule transforms anew.
    pub const CACHED_BYTES: usize = 16 * 1024 * 1024;
    /// How many variables a record of a persistent collection has.
    pub const RECORD_VARIABLES: usize = 32;
    /// How many bytes a record of a persistent collection takes, names and times included.
    pub const RECORD_LENGTH: usize = 1024;
    /// How many bytes the name of a variable in a record has.
    pub const RECORD_NAME_LENGTH: usize = 64;
    /// How many values `sanitise*` masks.
    pub const SANITISED: usize = 256;
    /// How many bytes of a match MATCHED_VAR keeps once the cache is full.
    pub const KEPT_LENGTH: usize = 64 * 1024;
}

#[cfg(test)]
mod tests;
