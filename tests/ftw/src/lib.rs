//! The regression suite of the OWASP Core Rule Set, run on an engine.
//!
//! The suite is a folder of YAML files, one for each rule ([`case`]); a stage of a test becomes an exchange
//! ([`request`]), which runs under the suite's own configuration ([`rules`]), and is judged by the ids of the rules that
//! were logged ([`judge`]). [`suite`] does all of that for a folder, [`report`] tells what came of it.

pub mod blocking;
pub mod case;
pub mod corpus;
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

use proxy_host::Vm;
use proxy_host::traffic::{Exchange, Outcome};

/// Runs exchanges one after the other. Engines of one configuration give equal outcomes, except for random ids.
pub trait Engine {
    /// The engine's word on the command line.
    fn name(&self) -> &'static str;

    /// Runs one exchange from its first header to its log.
    fn exchange(&mut self, exchange: &Exchange) -> Outcome;
}

impl Engine for Vm {
    fn name(&self) -> &'static str {
        "wasm"
    }

    fn exchange(&mut self, exchange: &Exchange) -> Outcome {
        Self::exchange(self, exchange)
    }
}
