//! Requests that differ from each other: what an engine keeps between requests answers for none of them.

use std::time::Duration;

use recording::varied::{self, Kind};

use proxy_host::Module;

use super::cases::Case;
use super::{Engine, median};
use crate::cost::Meter;

/// What the generated requests begin with.
const SEED: u64 = 1;

/// What the requests of one kind cost.
#[derive(Debug, Clone)]
pub struct VariedRow {
    /// The kind.
    pub kind: Kind,
    /// How many different requests were run in each round.
    pub requests: usize,
    /// The median time of a request, in nanoseconds, by engine in the engines' order.
    pub medians: Vec<u64>,
    /// The mean time of a request, in nanoseconds, by engine.
    pub means: Vec<u64>,
}

/// This many different requests, honest all of them, in the mix of [`varied::exchange`].
#[must_use]
pub fn cases(count: usize) -> Vec<Case> {
    let case = |number: u64| {
        let (kind, exchange) = varied::exchange(SEED, number);
        Case { name: format!("{}-{number}", kind.name()), what: String::new(), attack: false, exchange }
    };
    (0..count as u64).map(case).collect()
}

/// Runs every case once in each round, the engines in turns of a tenth of the cases; the first round is not counted.
///
/// # Errors
///
/// An engine died.
pub fn measure(
    cases: &[Case],
    engines: &mut [&mut dyn Engine],
    rounds: usize,
    mut progress: impl FnMut(&str),
) -> Result<Vec<VariedRow>, String> {
    let kinds: Vec<Kind> = (0..cases.len() as u64).map(|number| varied::exchange(SEED, number).0).collect();
    let mut times = vec![vec![Vec::new(); engines.len()]; Kind::ALL.len()];
    for round in 0..=rounds {
        for turn in 0..10 {
            // Each engine comes first as often as last: the one behind another finds other things in the processor's caches.
            for place in 0..engines.len() {
                let at = (turn + place) % engines.len();
                let engine = &mut engines[at];
                progress(&format!("different requests, round {round} of {rounds}: {}", engine.name()));
                for case in cases.len() * turn / 10..cases.len() * (turn + 1) / 10 {
                    let taken = engine.measure(case, 1, Duration::ZERO)?;
                    if round > 0 {
                        times[kinds[case] as usize][at].extend(taken);
                    }
                }
            }
        }
    }
    let mean = |times: &Vec<u64>| times.iter().sum::<u64>() / (times.len() as u64).max(1);
    let row = |kind: Kind| VariedRow {
        kind,
        requests: kinds.iter().filter(|one| **one == kind).count(),
        medians: times[kind as usize].iter().map(|times| median(times)).collect(),
        means: times[kind as usize].iter().map(mean).collect(),
    };
    Ok(Kind::ALL.into_iter().map(row).collect())
}

/// The mean number of instructions of each kind of request in a metered module. The first tenth of the cases is not counted: a VM
/// builds its automata for them.
///
/// # Errors
///
/// The filter refuses the snapshot, or a request ended its VM.
pub fn instructions(cases: &[Case], module: &Module, snapshot: &[u8]) -> Result<Vec<(Kind, u64)>, String> {
    let mut meter = Meter::new(module, snapshot, u64::MAX)?;
    let mut counts = vec![(0, 0); Kind::ALL.len()];
    for (number, case) in cases.iter().enumerate() {
        let cost = meter.run(&case.exchange);
        if cost.died {
            return Err(format!("the VM ended with the request {}", case.name));
        }
        if number >= cases.len() / 10 {
            let (sum, requests) = &mut counts[varied::exchange(SEED, number as u64).0 as usize];
            (*sum, *requests) = (*sum + cost.instructions, *requests + 1_u64);
        }
    }
    Ok(Kind::ALL.into_iter().zip(counts).map(|(kind, (sum, requests))| (kind, sum / requests.max(1))).collect())
}
