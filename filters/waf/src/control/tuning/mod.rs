//! Tuning: from a false positive to an exclusion that is known to end it and to let no known attack pass.
//!
//! Gateways report matches of rules with a sample of the request ([`matches`]). Of a match, exclusions are proposed, the narrowest first
//! ([`exclusion`]). A preview sends the sample and known attacks through the engine with and without an exclusion ([`preview`]), and only
//! what stands that is written, into a ruleset of its own ([`written`]). The same is done from recorded traffic ([`recorded`]).

mod corpus;
mod exclusion;
mod keep;
mod learning;
mod matches;
mod operations;
mod preview;
mod proposals;
mod recorded;
mod schemas;
mod shape;
mod target;
mod windows;
mod workers;
mod written;

pub(super) use keep::{Reported, gather};
pub(super) use learning::{DISCARD, LEARNING_APPLY, REPORT, START, STOP};
pub(super) use operations::{APPLY, MATCHES, PREVIEW, PROPOSE, REVERT};
pub(super) use recorded::TUNING;
