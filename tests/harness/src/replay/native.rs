//! The plugins linked in, with the hours of a gateway.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::control::Counts;
use super::gateway::Gateway;
use crate::engine::{self, Journey, Stage};
use proxy_host::traffic::Exchange;
use proxy_host::{Finished, Options};

/// How often filters look at what they hold where the snapshot does not say, in milliseconds.
const TICK: u32 = 200;
/// What a snapshot may say.
const TICK_RANGE: std::ops::RangeInclusive<u32> = 50..=1000;
/// The most exchanges that are held; past that they are let go at once, as the filters do.
const MAX_HELD: usize = 1000;
/// And the bytes of them.
const MAX_HELD_BYTES: usize = 64 << 20;
/// What the client gets where an exchange was held for too long.
const TIMED_OUT: u16 = 408;

/// [`engine::Native`] on the recording's clock. What is held goes on at the ticks of a filter that was started with it.
pub struct Native {
    engine: engine::Native,
    started: u64,
    tick: u64,
    held: BTreeMap<(u64, u64), Held>,
    /// The bytes of the exchanges that are held.
    held_bytes: usize,
    order: u64,
    finished: Vec<Finished>,
}

struct Held {
    ticket: u64,
    exchange: Exchange,
    journey: Box<Journey>,
    since: u64,
    spent: Duration,
}

impl Native {
    /// Loads a snapshot in its envelope on a node, with the clock at the given time, in milliseconds since the Unix epoch.
    ///
    /// # Errors
    ///
    /// What is wrong with the snapshot.
    pub fn load(configuration: &[u8], node: &str, now_millis: u64, seed: u64) -> Result<Self, String> {
        let engine = engine::Native::load(configuration, node, now_millis, seed)?;
        let (_, snapshot) = snapshot::open(configuration).map_err(|error| error.to_string())?;
        let tick = snapshot.link.map(|link| link.flush_millis).filter(|millis| TICK_RANGE.contains(millis));
        let tick = u64::from(tick.unwrap_or(TICK));
        Ok(Self {
            engine,
            started: now_millis,
            tick,
            held: BTreeMap::new(),
            held_bytes: 0,
            order: 0,
            finished: Vec::new(),
        })
    }

    /// The first tick that lets go of what is held until a time.
    fn release(&self, until: u64) -> u64 {
        let next = self.engine.now_millis().saturating_add(1).max(until);
        self.started + (next - self.started).div_ceil(self.tick) * self.tick
    }

    /// Whether one more may be held; one at a time may be in any case.
    fn has_room(&self, exchange: &Exchange) -> bool {
        let bytes = self.held_bytes.saturating_add(exchange.weight());
        self.held.is_empty() || (self.held.len() < MAX_HELD && bytes <= MAX_HELD_BYTES)
    }

    fn note(&mut self, ticket: u64, exchange: &Exchange, mut stage: Stage, began: Instant, before: Duration) {
        loop {
            match stage {
                Stage::Over(outcome) => {
                    let spent = before + began.elapsed();
                    let outcome = *outcome;
                    return self.finished.push(Finished { ticket, outcome, spent, notes: Vec::new() });
                }
                Stage::Held(journey, _) if !self.has_room(exchange) => {
                    stage = self.engine.resume(journey, 0, exchange);
                }
                Stage::Held(journey, millis) => {
                    let since = self.engine.now_millis();
                    let at = self.release(since.saturating_add(u64::from(millis)));
                    self.order += 1;
                    self.held_bytes = self.held_bytes.saturating_add(exchange.weight());
                    let spent = before + began.elapsed();
                    let held = Held { ticket, exchange: exchange.clone(), journey, since, spent };
                    self.held.insert((at.min(since + limit()), self.order), held);
                    return;
                }
            }
        }
    }
}

/// The longest that anything is held, in milliseconds.
fn limit() -> u64 {
    Options::default().max_hold_millis
}

impl Gateway for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn now_millis(&self) -> u64 {
        self.engine.now_millis()
    }

    fn run_until(&mut self, millis: u64) {
        while let Some(first) = self.held.first_entry().filter(|first| first.key().0 <= millis) {
            let ((at, _), held) = first.remove_entry();
            self.held_bytes = self.held_bytes.saturating_sub(held.exchange.weight());
            self.engine.set_now_millis(at.max(self.engine.now_millis()));
            let (began, held_millis) = (Instant::now(), at - held.since);
            if held_millis >= limit() {
                let outcome = self.engine.give_up(*held.journey, held_millis, TIMED_OUT);
                let spent = held.spent + began.elapsed();
                self.finished.push(Finished { ticket: held.ticket, outcome, spent, notes: Vec::new() });
                continue;
            }
            let stage = self.engine.resume(held.journey, held_millis, &held.exchange);
            self.note(held.ticket, &held.exchange, stage, began, held.spent);
        }
        self.engine.set_now_millis(self.engine.now_millis().max(millis));
    }

    fn begin(&mut self, ticket: u64, exchange: &Exchange) {
        let began = Instant::now();
        let stage = self.engine.begin(exchange);
        self.note(ticket, exchange, stage, began, Duration::ZERO);
    }

    fn take_finished(&mut self) -> Vec<Finished> {
        std::mem::take(&mut self.finished)
    }

    fn drain(&mut self) {
        while let Some((at, _)) = self.held.keys().next().copied() {
            self.run_until(at);
        }
    }

    fn control(&self) -> Counts {
        let (events, bans) = self.engine.sent();
        Counts { events, bans, ..Counts::default() }
    }

    fn metrics(&self) -> BTreeMap<String, i64> {
        self.engine.metrics()
    }
}
