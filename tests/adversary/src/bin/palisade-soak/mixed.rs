//! Every attack in turn beside clean clients, for half an hour.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use adversary::case::{self, Case, Kind};
use adversary::demo;
use adversary::wire::{Patience, exchange};
use palisade_tests::figures::quantile;

use crate::Stop;
use crate::clean::Clients;

/// Hostile connections at a time.
const ATTACKERS: usize = 3;
/// A pause of each after an attack: the machine is to be busy with all sorts, not with one.
const PAUSE: Duration = Duration::from_millis(20);
/// How long the control plane is away.
const AWAY: Duration = Duration::from_secs(20);
/// Lines about memory.
const LINES: u32 = 30;

/// What to do.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// How long
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,
    /// Clean requests a second
    #[arg(long, default_value_t = 100)]
    per_second: u32,
    /// From the second tenth to the last one, the gateway's memory may grow by this share
    #[arg(long, default_value_t = 0.1)]
    growth: f64,
}

/// Runs it; whether memory stayed flat, no VM was loaded again and no clean request was lost.
pub(crate) fn run(options: &Options) -> Result<bool, String> {
    let all = case::all(None)?;
    // Connections that are slow on purpose would only hold the attackers up.
    let attacks: Vec<&Case> = all.iter().filter(|case| case.kind != Kind::Control && case.wait.is_none()).collect();
    let mut gateway = demo::start();
    let (address, process) = (gateway.address, gateway.envoy.process().id());
    let time = Duration::from_secs_f64(options.minutes * 60.0);
    println!("{} attacks in turn, {} clean requests/s, {} min", attacks.len(), options.per_second, options.minutes);
    let clients = Clients::start(address, options.per_second);
    let (stop, sent, next) = (AtomicBool::new(false), AtomicU64::new(0), AtomicUsize::new(0));
    let mut memory = Vec::new();
    thread::scope(|scope| {
        let _stop = Stop(&stop);
        for _ in 0..ATTACKERS {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let case = attacks[next.fetch_add(1, Ordering::Relaxed) % attacks.len()];
                    let patience = Patience { first: Duration::from_secs(20), more: Duration::ZERO };
                    if let Ok(sending) = case.sending("demo.test") {
                        let _ = exchange(address, &sending, patience);
                    }
                    sent.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(PAUSE);
                }
            });
        }
        let start = Instant::now();
        let mut killed = false;
        for line in 1..=LINES {
            thread::sleep((start + time * line / LINES).saturating_duration_since(Instant::now()));
            memory.push(palisade_tests::process::resident_kib(process).unwrap_or_default());
            let kib = memory.last().copied().unwrap_or_default();
            println!(
                "{:>6.1} min  Envoy {:>7.1} MiB  {:>8} attacks  {} failures of VMs",
                start.elapsed().as_secs_f64() / 60.0,
                kib as f64 / 1024.0,
                sent.load(Ordering::Relaxed),
                gateway.envoy.vm_failures().iter().filter(|failure| is_a_vms(failure)).count()
            );
            if !killed && line >= LINES / 2 {
                killed = true;
                gateway.control.kill();
                println!("the control plane is killed");
                thread::sleep(AWAY.min(time / 10));
                gateway.control.restart();
                println!("the control plane is back");
            }
        }
    });
    let mut seen = clients.stop();
    let failures: Vec<String> = gateway.envoy.vm_failures().into_iter().filter(|failure| is_a_vms(failure)).collect();
    let tenth = (memory.len() / 10).max(1);
    let mean = |part: &[u64]| part.iter().sum::<u64>() as f64 / part.len().max(1) as f64;
    let (early, late) = (mean(&memory[tenth..2 * tenth]), mean(&memory[memory.len() - tenth..]));
    println!("clean requests: {}", seen.text());
    println!("  p50 {:.1} ms, p99 {:.1} ms", quantile(&mut seen.millis, 0.5), quantile(&mut seen.millis, 0.99));
    println!(
        "memory: {:.1} MiB early, {:.1} MiB late ({:+.1} %)",
        early / 1024.0,
        late / 1024.0,
        (late / early - 1.0) * 100.0
    );
    println!("failures of VMs: {failures:?}");
    Ok(seen.failed() == 0 && failures.is_empty() && late <= early * (1.0 + options.growth))
}

/// What the gateway reports that is the failure of a VM, and not a filter's refusal to judge.
pub(crate) fn is_a_vms(failure: &str) -> bool {
    !failure.contains("plugin_failures")
}
