//! Recorded exchanges through engines, on all cores. What comes out is the same however many there are.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, Scope, available_parallelism, scope};

use kit::RecordedExchange;
use seclang::Engine;
use snapshot::IdentitySource;

use super::worker::{Part, Timed, Worker};
use crate::WafStep;

/// Where the clock begins if the recording has no times, in milliseconds since 1970, and how far exchanges are apart then.
const START_MILLIS: u64 = 1_750_000_000_000;
const STEP_MILLIS: u64 = 10;
/// The exchanges that run together, and the bytes of their bodies from which on no further one joins them.
const BATCH: usize = 64;
const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// The batches that wait for a thread.
const QUEUED: usize = 2;
/// The threads, at most, and the stack of each in bytes.
const MAX_THREADS: usize = 32;
const STACK: usize = 8 * 1024 * 1024;

/// An engine, and what runs it.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) engine: Arc<Engine>,
    pub(super) step: WafStep,
    pub(super) identity: IdentitySource,
}

/// What a batch counted for with each of the engines.
type Counted = Result<Vec<Vec<Part>>, String>;

/// Sends exchanges through each of some engines. `take` gets what they counted for in the order of the exchanges, with the place of the
/// engine, and tells how many exchanges ran.
///
/// # Errors
/// The plugin cannot be made, or a thread; for people.
pub(super) fn replay(
    setups: &[Setup],
    exchanges: &mut dyn Iterator<Item = RecordedExchange>,
    take: &mut dyn FnMut(usize, Part),
) -> Result<u64, String> {
    // Rules that count over exchanges have to see all of them, one after the other.
    let in_order = setups.iter().any(|setup| setup.engine.uses_collections());
    let threads = if in_order { 1 } else { available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS) };
    scope(|scope| {
        let (results, done) = channel();
        let workers = (0..threads).map(|_| start(scope, setups, results.clone()));
        let workers: Vec<SyncSender<_>> = workers.collect::<Result<_, String>>()?;
        drop(results);
        let mut batches = Batches { exchanges, latest: None, ran: 0 };
        let mut merge = Merge { waiting: BTreeMap::new(), next: 0, take };
        for (number, worker) in (0_u64..).zip(workers.iter().cycle()) {
            let batch = batches.next();
            if batch.is_empty() {
                break;
            }
            if worker.send((number, batch)).is_err() {
                break;
            }
            for (number, counted) in done.try_iter() {
                merge.add(number, counted)?;
            }
        }
        drop(workers);
        for (number, counted) in done {
            merge.add(number, counted)?;
        }
        Ok(batches.ran)
    })
}

/// A thread that runs what it is sent until there is no more.
fn start<'s>(
    scope: &'s Scope<'s, '_>,
    setups: &'s [Setup],
    results: Sender<(u64, Counted)>,
) -> Result<SyncSender<(u64, Vec<Timed>)>, String> {
    let (sender, receiver) = sync_channel(QUEUED);
    let work = move || run(setups, receiver, &results);
    let started = Builder::new().stack_size(STACK).spawn_scoped(scope, work);
    started.map_err(|error| format!("a thread cannot be started: {error}"))?;
    Ok(sender)
}

fn run(setups: &[Setup], batches: Receiver<(u64, Vec<Timed>)>, results: &Sender<(u64, Counted)>) {
    let workers: Result<Vec<Worker>, String> = setups.iter().map(Worker::new).collect();
    for (number, batch) in batches {
        let counted = match &workers {
            Ok(workers) => Ok(workers.iter().map(|worker| worker.run(&batch)).collect()),
            Err(why) => Err(why.clone()),
        };
        if results.send((number, counted)).is_err() {
            return;
        }
    }
}

/// Exchanges in batches, with their times.
struct Batches<'a> {
    exchanges: &'a mut dyn Iterator<Item = RecordedExchange>,
    latest: Option<u64>,
    ran: u64,
}

impl Batches<'_> {
    /// The next ones; none at the end.
    fn next(&mut self) -> Vec<Timed> {
        let (mut batch, mut bytes) = (Vec::with_capacity(BATCH), 0_usize);
        while batch.len() < BATCH && bytes < BATCH_BYTES {
            let Some(exchange) = self.exchanges.next() else { break };
            // A clock does not go back.
            let at_millis = match (exchange.at_millis, self.latest) {
                (Some(at), latest) => at.max(latest.unwrap_or_default()),
                (None, Some(latest)) => latest.saturating_add(STEP_MILLIS),
                (None, None) => START_MILLIS,
            };
            self.latest = Some(at_millis);
            self.ran = self.ran.saturating_add(1);
            bytes = bytes.saturating_add(exchange.body.len()).saturating_add(exchange.response_body.len());
            batch.push(Timed { number: self.ran, at_millis, exchange });
        }
        batch
    }
}

/// Puts what batches counted for in their order.
struct Merge<'a> {
    waiting: BTreeMap<u64, Vec<Vec<Part>>>,
    next: u64,
    take: &'a mut dyn FnMut(usize, Part),
}

impl Merge<'_> {
    fn add(&mut self, number: u64, counted: Counted) -> Result<(), String> {
        self.waiting.insert(number, counted?);
        while let Some(of_engines) = self.waiting.remove(&self.next) {
            self.next = self.next.saturating_add(1);
            for (engine, parts) in of_engines.into_iter().enumerate() {
                parts.into_iter().for_each(|part| (self.take)(engine, part));
            }
        }
        Ok(())
    }
}
