//! The costliest requests beside clean ones, on one worker.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use adversary::demo;
use adversary::wire::{Patience, http1};
use palisade_bench::cost::{Recipe, seeds};
use palisade_tests::figures::quantile;
use palisade_tests::parts;

use crate::Stop;
use crate::clean::Clients;

const PATIENCE: Patience = Patience { first: Duration::from_secs(60), more: Duration::ZERO };

/// What to do.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// How long
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// Bytes of a costly request
    #[arg(long, default_value_t = 65_536)]
    size: usize,
    /// Costly requests at a time
    #[arg(long, default_value_t = 4)]
    at_once: usize,
    /// So many of the costliest are sent in turn
    #[arg(long, default_value_t = 8)]
    kinds: usize,
    /// Clean requests a second
    #[arg(long, default_value_t = 100)]
    per_second: u32,
    /// More recipes, as the search for costly requests keeps them
    #[arg(long, value_name = "DIR")]
    costly: Option<PathBuf>,
}

/// Runs it; whether every clean request was answered with 200.
pub(crate) fn run(options: &Options) -> Result<bool, String> {
    let folder = options.costly.clone().unwrap_or_else(|| parts::root().join("tests/harness/costly"));
    let mut recipes = seeds();
    recipes.extend(kept(&folder)?);
    let gateway = demo::start_workers(1);
    let address = gateway.address;
    let mut costly: Vec<(Duration, String, Vec<u8>)> = Vec::new();
    for recipe in &recipes {
        let bytes = encode(recipe, options.size);
        // The first of a kind pays for what a worker makes once.
        let _ = http1::exchange(address, &bytes, None, PATIENCE);
        let start = Instant::now();
        let answers = http1::exchange(address, &bytes, None, PATIENCE);
        costly.push((start.elapsed(), format!("{} ({})", recipe.what, adversary::run::seen(&answers)), bytes));
    }
    costly.sort_by_key(|one| std::cmp::Reverse(one.0));
    costly.truncate(options.kinds);
    println!("the costliest of {} requests of at most {} bytes, each alone:", recipes.len(), options.size);
    for (time, what, bytes) in &costly {
        println!("  {:>8.1} ms  {:>7} bytes  {what}", time.as_secs_f64() * 1000.0, bytes.len());
    }

    let alone = Clients::start(address, options.per_second);
    thread::sleep(Duration::from_secs(5));
    let alone = alone.stop();
    let clients = Clients::start(address, options.per_second);
    let (stop, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let _stop = Stop(&stop);
        for attacker in 0..options.at_once {
            let (costly, stop, sent) = (&costly, &stop, &sent);
            scope.spawn(move || {
                for (_, _, bytes) in costly.iter().cycle().skip(attacker) {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let answered = !http1::exchange(address, bytes, None, PATIENCE).statuses.is_empty();
                    sent.fetch_add(u64::from(answered), Ordering::Relaxed);
                }
            });
        }
        thread::sleep(Duration::from_secs_f64(options.minutes * 60.0));
    });
    let mut seen = clients.stop();
    let mut before = alone.millis;
    println!("costly requests sent: {}", sent.load(Ordering::Relaxed));
    println!(
        "clean requests alone: p50 {:.1} ms, p99 {:.1} ms",
        quantile(&mut before, 0.5),
        quantile(&mut before, 0.99)
    );
    println!(
        "clean requests beside them: p50 {:.1} ms, p99 {:.1} ms, the longest {:.1} ms: {}",
        quantile(&mut seen.millis, 0.5),
        quantile(&mut seen.millis, 0.99),
        quantile(&mut seen.millis, 1.0),
        seen.text()
    );
    let failures = gateway.envoy.vm_failures();
    for failure in &failures {
        println!("of the gateway: {failure}");
    }
    Ok(seen.failed() == 0 && !failures.iter().any(|failure| crate::mixed::is_a_vms(failure)))
}

/// The recipes that are kept in a folder.
fn kept(folder: &std::path::Path) -> Result<Vec<Recipe>, String> {
    let Ok(listed) = std::fs::read_dir(folder) else {
        return Ok(Vec::new());
    };
    let mut paths: Vec<PathBuf> = listed.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        serde_json::from_str::<Recipe>(&text).map_err(|error| error.to_string())
    };
    paths.iter().map(|path| read(path).map_err(|why| format!("{}: {why}", path.display()))).collect()
}

/// A recipe's request on the wire.
fn encode(recipe: &Recipe, size: usize) -> Vec<u8> {
    let request = recipe.exchange(size).request;
    let pseudo = |name: &[u8]| {
        let found = request.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let mut out = [&pseudo(b":method")[..], b" ", &pseudo(b":path"), b" HTTP/1.1\r\nhost: demo.test\r\n"].concat();
    for (name, value) in request.headers.iter().filter(|(name, _)| !name.starts_with(b":")) {
        out.extend_from_slice(&[&name[..], b": ", value, b"\r\n"].concat());
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(&request.body);
    out
}
