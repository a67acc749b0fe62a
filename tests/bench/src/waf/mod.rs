//! What the rule engine costs, beside libmodsecurity in the same run.
//!
//! Three engines take the same transactions on the same rules: `native` is the engine linked in, `wasm` the shipped
//! module in a VM with everything around the engine, `libmodsecurity` a process of its own (`tests/bench-waf/peer.cpp`).
//! They take turns, and what is taken is the time that their thread ran, so that what else the machine does hits all of
//! them alike; [`report`] makes ratios of the medians. Nobody's time decides anything: misses are marked, and what the engines do not agree on is said.

pub mod cases;
pub mod loads;
pub mod memory;
mod native;
mod peer;
pub mod report;
mod rounds;
pub mod rules;
pub mod varied;
mod wasm;

use std::time::{Duration, Instant};

use proxy_host::cpu_time;
use proxy_host::traffic::Exchange;

pub use native::Native;
pub use peer::Peer;
pub use rounds::{Plan, Row, run};
pub use wasm::Wasm;

/// Where the clocks of all engines stand, in milliseconds since the Unix epoch.
pub(crate) const NOW_MILLIS: u64 = 1_750_000_000_000;
/// What random numbers begin with.
pub(crate) const SEED: u64 = 7;

/// What an engine made of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The status of the refusal; `None` where it passed.
    pub refused: Option<u16>,
    /// The ids of the rules that matched and are logged, sorted, each once.
    pub rules: Vec<u64>,
}

/// An engine that takes transactions, one after the other. Cases are known by their number.
pub trait Engine {
    /// Its name in the report.
    fn name(&self) -> &'static str;

    /// Runs a case once and says what came of it.
    ///
    /// # Errors
    ///
    /// The engine died.
    fn judge(&mut self, case: usize) -> Result<Verdict, String>;

    /// Runs a case until it ran `count` times or `budget` is over, at least once; gives each time in nanoseconds.
    ///
    /// # Errors
    ///
    /// The engine died.
    fn measure(&mut self, case: usize, count: usize, budget: Duration) -> Result<Vec<u64>, String>;
}

impl Verdict {
    /// A verdict on rules in any order.
    #[must_use]
    pub fn new(refused: Option<u16>, mut rules: Vec<u64>) -> Self {
        rules.sort_unstable();
        rules.dedup();
        Self { refused, rules }
    }

    /// The rules that recognise something. Those that add up scores and refuse are left out: engines differ in whether
    /// a refusal is logged as a match or told by itself.
    #[must_use]
    pub fn attacks(&self) -> Vec<u64> {
        let sums = |id: &u64| matches!(id / 1000, 949 | 959 | 980);
        self.rules.iter().copied().filter(|id| !sums(id)).collect()
    }
}

/// Times a closure as [`Engine::measure`] says.
pub(crate) fn timed(count: usize, budget: Duration, mut run: impl FnMut()) -> Vec<u64> {
    let began = Instant::now();
    let mut times = Vec::with_capacity(count.min(10_000));
    loop {
        let one = cpu_time();
        run();
        times.push(nanos(cpu_time().saturating_sub(one)));
        if times.len() >= count || began.elapsed() >= budget {
            return times;
        }
    }
}

/// A duration in nanoseconds.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The median of a list; 0 of an empty one.
#[must_use]
pub fn median(times: &[u64]) -> u64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

/// A header or pseudo header of a request as text, for engines that take text.
pub(crate) fn word<'a>(exchange: &'a Exchange, name: &str) -> &'a [u8] {
    exchange.request.header(name).unwrap_or_default()
}

/// The request's headers as rules see them: the host first, then all but the pseudo headers.
pub(crate) fn rule_headers(exchange: &Exchange) -> impl Iterator<Item = (&[u8], &[u8])> {
    let regular = exchange.request.headers.iter().filter(|(name, _)| !name.starts_with(b":"));
    let host = (b"host".as_slice(), word(exchange, ":authority"));
    std::iter::once(host).chain(regular.map(|(name, value)| (name.as_slice(), value.as_slice())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_no_attacks_and_an_id_counts_once() {
        let verdict = Verdict::new(Some(403), vec![949_110, 942_100, 942_100, 980_170, 920_350]);
        assert_eq!(verdict.rules, [920_350, 942_100, 949_110, 980_170]);
        assert_eq!(verdict.attacks(), [920_350, 942_100]);
    }

    #[test]
    fn a_case_runs_at_least_once_and_at_most_so_often() {
        assert_eq!(timed(5, Duration::ZERO, || {}).len(), 1);
        assert_eq!(timed(5, Duration::from_secs(60), || {}).len(), 5);
        assert_eq!((median(&[]), median(&[3, 1, 2])), (0, 2));
    }
}
