//! The regression suite of the OWASP Core Rule Set, run on an engine.
//!
//! The suite is a folder of YAML files, one for each rule ([`case`]); a stage of a test becomes an exchange
//! ([`request`]), which runs under the suite's own configuration ([`rules`]), and is judged by the ids of the rules that
//! were logged ([`judge`]). [`suite`] does all of that for a folder, [`report`] tells what came of it.

pub mod blocking;
pub mod case;
mod ignore;
pub mod judge;
mod recording;
pub mod report;
pub mod request;
pub mod rules;
pub mod scoring;
pub mod suite;

pub use ignore::{Ignore, Ignored};
pub use recording::Stages;
