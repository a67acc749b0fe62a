//! How many events get through control planes into their files, and whether every one that does not is counted.

use std::time::{Duration, Instant};

use palisade_tests::figures::{Figures, Target};
use palisade_tests::process::wait_for;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::events_count::{self, Found};
use crate::pair::Pair;
use crate::sender::{Sender, Sent};

/// How long each rate is tried while the highest one is looked for.
const TRY: Duration = Duration::from_secs(10);
/// Events each second before anything is measured.
const WARM_UP: f64 = 5000.0;
/// The factor between two rates.
const STEP: f64 = 1.5;
/// More is not tried: senders share the processors.
const MOST_RATE: f64 = 200_000.0;
/// How much the memory may grow from the first quarter of a minute to its end, in MiB.
const MOST_GROWTH: f64 = 16.0;
/// How long the last events may take into the file.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is sent.
pub(crate) struct Plan {
    pub(crate) rate: u64,
    pub(crate) seconds: u64,
    pub(crate) senders: usize,
}

/// What one run has shown.
struct Run {
    sent: Sent,
    found: Found,
    /// Events of the senders that exporters have dropped.
    exporter_dropped: u64,
    stored: u64,
    store_dropped: u64,
    /// Offences that were not charged because too many waited; their events are written all the same.
    ledger_lost: u64,
    elapsed: f64,
    cpu: f64,
    redis_cpu: f64,
    redis_commands: f64,
    /// Resident memory of all control planes at the first quarter and at the end, in MiB.
    memory: (f64, f64),
}

impl Run {
    fn lossless(&self) -> bool {
        self.sent.made == self.found.ours
    }

    fn reached(&self) -> f64 {
        self.found.ours as f64 / self.elapsed
    }
}

pub(crate) fn measure(runtime: &Runtime, store: &str, plan: &Plan, figures: &mut Figures) -> Result<(), String> {
    let mut bench = Bench { pair: Pair::start(store)?, senders: plan.senders, runs: 0, lines: 0 };
    // Control planes have made events at their start.
    bench.found()?;
    let title = bench.pair.title();
    println!("events of {} nodes; control planes: {title}", plan.senders);
    let time = Duration::from_secs(plan.seconds);
    let mut run = |rate: f64, time: Duration| bench.run(runtime, rate, time).map_err(|why| bench.pair.explain(why));
    // Incidents and accounts of the ledger are made in this time; what follows finds them.
    run(WARM_UP, TRY * 2)?;
    let first = run(plan.rate as f64, time)?;
    tell(&format!("events, {title}, at {}/s", plan.rate), &first, true, figures);
    let (mut best, mut over) = (plan.rate as f64, None);
    while over.is_none() && best * STEP <= MOST_RATE {
        let rate = best * STEP;
        let tried = run(rate, TRY)?;
        println!(
            "  {rate:.0}/s for {} s: {:.0}/s written, {} dropped",
            TRY.as_secs(),
            tried.reached(),
            tried.sent.dropped
        );
        if tried.lossless() && tried.elapsed < TRY.as_secs_f64() * 1.1 { best = rate } else { over = Some(tried) }
    }
    // A rate that holds for some seconds may not hold for a minute.
    let highest = loop {
        let held = run(best, time)?;
        if held.lossless() || best < 1.0 {
            break held;
        }
        best /= STEP.sqrt();
    };
    figures.add(
        &format!("events, {title}: highest rate without a loss"),
        best,
        "per s",
        Target::AtLeast(plan.rate as f64),
    );
    tell(&format!("events, {title}, at that rate"), &highest, true, figures);
    let overload = run(best * STEP * STEP, TRY * 2)?;
    tell(&format!("events, {title}, at {:.0}/s", best * STEP * STEP), &overload, false, figures);
    Ok(())
}

fn tell(what: &str, run: &Run, kept: bool, figures: &mut Figures) {
    let Run { sent, found, .. } = run;
    let (made, written) = (sent.made as f64, found.ours as f64);
    figures.add(&format!("{what}: sent"), made, "events", Target::None);
    figures.add(
        &format!("{what}: written"),
        written,
        "events",
        if kept { Target::AtLeast(made) } else { Target::None },
    );
    figures.add(&format!("{what}: written"), run.reached(), "per s", Target::None);
    figures.add(&format!("{what}: dropped by nodes"), sent.dropped as f64, "events", Target::None);
    figures.add(&format!("{what}: dropped by exporters"), run.exporter_dropped as f64, "events", Target::None);
    figures.add(&format!("{what}: stored"), run.stored as f64, "events", Target::None);
    figures.add(&format!("{what}: dropped by event stores"), run.store_dropped as f64, "events", Target::None);
    // Exactly: what was sent, without what was written and without every drop that is counted.
    let uncounted = made - written - sent.dropped as f64 - run.exporter_dropped as f64;
    figures.add(&format!("{what}: lost without a count"), uncounted.abs(), "events", Target::AtMost(0.0));
    figures.add(&format!("{what}: offences not charged"), run.ledger_lost as f64, "events", Target::None);
    figures.add(&format!("{what}: written twice"), found.twice as f64, "events", Target::AtMost(0.0));
    let micros = |seconds: f64| seconds * 1e6 / written.max(1.0);
    figures.add(&format!("{what}: CPU of control planes"), micros(run.cpu), "us/event", Target::None);
    if run.redis_commands > 0.0 {
        figures.add(&format!("{what}: CPU of Redis"), micros(run.redis_cpu), "us/event", Target::None);
        figures.add(&format!("{what}: commands of Redis"), run.redis_commands / run.elapsed, "per s", Target::None);
    }
    figures.add(&format!("{what}: memory at its end"), run.memory.1, "MiB", Target::None);
    let growth = run.memory.1 - run.memory.0;
    figures.add(&format!("{what}: memory grown since its first quarter"), growth, "MiB", Target::AtMost(MOST_GROWTH));
}

/// Control planes whose files are emptied after each run.
struct Bench {
    pair: Pair,
    senders: usize,
    runs: u64,
    /// Lines that all files had so far.
    lines: u64,
}

impl Bench {
    /// Sends at a rate for a time, waits until all has been written, and compares the sums.
    fn run(&mut self, runtime: &Runtime, rate: f64, time: Duration) -> Result<Run, String> {
        self.runs += 1;
        let before = sums(&self.pair);
        let (cpu, redis_cpu, commands) = (self.pair.cpu()?, self.pair.redis_cpu()?, self.pair.redis_commands()?);
        let controls: Vec<_> = self.pair.controls.iter().map(|control| control.xds()).collect();
        let start = Instant::now();
        let mut tasks = JoinSet::new();
        let _in_runtime = runtime.enter();
        for number in 0..self.senders {
            let (control, per_second) = (controls[number % controls.len()], rate / self.senders as f64);
            tasks.spawn(Sender { number, run: self.runs, control, per_second, time }.send());
        }
        std::thread::sleep(time / 4);
        let early = self.pair.resident()?;
        let sent = runtime.block_on(async {
            let mut all = Sent::default();
            while let Some(sent) = tasks.join_next().await {
                let sent = sent.map_err(|error| error.to_string())??;
                all.made += sent.made;
                all.dropped += sent.dropped;
                all.reports += sent.reports;
            }
            Ok::<Sent, String>(all)
        })?;
        // All that was sent is taken; what is taken is written or dropped.
        let mut after = Sums::default();
        wait_for("exporters are done", PATIENCE, || {
            after = sums(&self.pair);
            let taken = after.taken - before.taken >= sent.made - sent.dropped + sent.reports;
            (taken && after.are_complete()).then_some(())
        })
        .map_err(|why| format!("{why}: {sent:?}, {before:?}, {after:?}"))?;
        let (elapsed, late) = (start.elapsed().as_secs_f64(), self.pair.resident()?);
        let (cpu, redis_cpu) = (self.pair.cpu()? - cpu, self.pair.redis_cpu()? - redis_cpu);
        let redis_commands = self.pair.redis_commands()?.since(commands).all();
        let (found, after) = self.found()?;
        let node_dropped = after.node_dropped - before.node_dropped;
        if node_dropped != sent.dropped {
            return Err(format!("nodes have dropped {} events, control planes count {node_dropped}", sent.dropped));
        }
        // What nodes have sent is taken, and so are the events that control planes make of reports of drops, and of troubles of their own.
        let (taken, expected) = (after.taken - before.taken, sent.made - sent.dropped + sent.reports);
        if taken < expected {
            return Err(format!("{expected} events and reports of drops were sent, control planes count {taken}"));
        }
        // What control planes have made themselves is not in their files either if an exporter has dropped it.
        let own_dropped = after.given() - before.given() - (sent.made - sent.dropped) - found.others;
        let exporter_dropped = after.dropped - before.dropped - own_dropped;
        let ledger_lost = after.ledger_lost - before.ledger_lost;
        Ok(Run {
            ledger_lost,
            sent,
            found,
            exporter_dropped,
            stored: after.stored - before.stored,
            store_dropped: after.store_dropped - before.store_dropped,
            elapsed,
            cpu,
            redis_cpu,
            redis_commands,
            memory: (early, late),
        })
    }

    /// What the files have, once it is all that control planes have counted: they write events of their own as well.
    fn found(&mut self) -> Result<(Found, Sums), String> {
        let (mut found, start) = (Found::default(), Instant::now());
        loop {
            let sums = sums(&self.pair);
            for control in &self.pair.controls {
                let more = events_count::take(&control.data().join("events.jsonl"), self.runs)?;
                self.lines += more.ours + more.twice + more.others;
                found = found + more;
            }
            if sums.written == self.lines && sums.are_complete() {
                return Ok((found, sums));
            }
            if start.elapsed() > PATIENCE {
                return Err(format!("control planes count {sums:?}, their files had {} lines", self.lines));
            }
        }
    }
}

/// The labels of the exporters.
const FILE: &str = "exporter=\"file:";
const STORE: &str = "exporter=\"store\"";

/// The sums of all control planes.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    taken: u64,
    audited: u64,
    /// By the exporters to files.
    written: u64,
    dropped: u64,
    /// By the event stores.
    stored: u64,
    store_dropped: u64,
    node_dropped: u64,
    ledger_lost: u64,
}

impl Sums {
    fn given(&self) -> u64 {
        self.taken + self.audited
    }

    /// Whether each event is written or dropped, by both exporters.
    fn are_complete(&self) -> bool {
        let given = self.given();
        given == self.written + self.dropped && given == self.stored + self.store_dropped
    }
}

fn sums(pair: &Pair) -> Sums {
    pair.metrics().iter().fold(Sums::default(), |sums, scrape| Sums {
        taken: sums.taken + scrape.sum("palisade_events_total", "outcome=\"taken\""),
        audited: sums.audited + scrape.sum("palisade_events_total", "outcome=\"audited\""),
        written: sums.written + scrape.sum("palisade_exporter_written_events_total", FILE),
        dropped: sums.dropped + scrape.sum("palisade_events_dropped_total", FILE),
        stored: sums.stored + scrape.sum("palisade_exporter_written_events_total", STORE),
        store_dropped: sums.store_dropped + scrape.sum("palisade_events_dropped_total", STORE),
        node_dropped: sums.node_dropped + scrape.sum("palisade_link_dropped_total", ""),
        ledger_lost: sums.ledger_lost + scrape.sum("palisade_ledger_lost_total", ""),
    })
}
