//! What exchanges are replayed on.

use std::collections::BTreeMap;

use super::control::Counts;
use proxy_host::Finished;
use proxy_host::traffic::{Exchange, Fault};

/// A gateway with a clock, in which several exchanges are under way at a time.
pub trait Gateway {
    /// The engine's word on the command line.
    fn name(&self) -> &'static str;

    /// The clock, in milliseconds since the Unix epoch.
    fn now_millis(&self) -> u64;

    /// Moves the clock on to a time, and runs what is due on the way; a time that is over changes nothing.
    fn run_until(&mut self, millis: u64);

    /// Starts an exchange. Under its ticket it comes out of [`Gateway::take_finished`], now or later.
    fn begin(&mut self, ticket: u64, exchange: &Exchange);

    /// Takes the exchanges that are over, with their events.
    fn take_finished(&mut self) -> Vec<Finished>;

    /// Moves the clock on until nothing is under way.
    fn drain(&mut self);

    /// Takes the faults that are no exchange's: a timer died.
    fn take_faults(&mut self) -> Vec<Fault> {
        Vec::new()
    }

    /// How many ticks were left out, because nothing happens in them.
    fn skipped_ticks(&self) -> u64 {
        0
    }

    /// What the control plane has heard.
    fn control(&self) -> Counts {
        Counts::default()
    }

    /// The filters' metrics by name.
    fn metrics(&self) -> BTreeMap<String, i64> {
        BTreeMap::new()
    }
}
