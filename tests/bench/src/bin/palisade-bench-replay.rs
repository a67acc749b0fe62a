//! `palisade-bench-replay`: how fast `palisade-replay run` is, and what memory it takes.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use clap::Parser;
use recording::write::Writer;
use recording::{Entry, Options};
use serde_json::{Value, json};

/// Replays a long recording through the preset, with the plugins linked in and in the shipped module, in turns, and prints
/// requests per second of the whole process (reading, filters, report) and its memory. No time decides the exit code.
#[derive(Parser)]
#[command(name = "palisade-bench-replay", version)]
struct Arguments {
    /// The program
    #[arg(long, default_value = "target/release/palisade-replay", value_name = "FILE")]
    program: PathBuf,
    /// The module of engine `wasm`
    #[arg(long, default_value = "target/filters/preset.wasm", value_name = "FILE.wasm")]
    filter: PathBuf,
    /// The entities that the preset runs
    #[arg(long, default_value = "envoy/entities", value_name = "DIR")]
    entities: PathBuf,
    /// What the long recording is made of, again and again
    #[arg(long, num_args = 1.., value_name = "PATH",
        default_values = ["tests/traffic/tap-json", "tests/traffic/browser.har"])]
    traffic: Vec<PathBuf>,
    /// How many requests it has
    #[arg(long, default_value_t = 100_000)]
    requests: usize,
    /// How often each engine replays it
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Where the JSON document goes
    #[arg(long, default_value = "target/bench/replay.json", value_name = "FILE")]
    out: PathBuf,
}

const ENGINES: [&str; 2] = ["native", "wasm"];
/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// What one replay took.
struct Sample {
    seconds: f64,
    /// Resident memory in KiB, as it was seen.
    memory: Vec<u64>,
}

fn main() -> ExitCode {
    match measure(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("palisade-bench-replay: {error}");
            ExitCode::from(2)
        }
    }
}

fn measure(arguments: &Arguments) -> Result<(), String> {
    let folder = arguments.out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let recording = folder.join("replay.jsonl");
    write(arguments, &recording)?;
    let mut samples: [Vec<Sample>; ENGINES.len()] = Default::default();
    for round in 1..=arguments.rounds.max(1) {
        for (engine, samples) in ENGINES.iter().zip(&mut samples) {
            eprintln!("round {round} of {}: {engine}", arguments.rounds.max(1));
            samples.push(replay(arguments, engine, &recording, folder)?);
        }
    }
    let mut engines = serde_json::Map::new();
    println!(
        "{} requests through the preset, the whole process; medians of {} rounds",
        arguments.requests, arguments.rounds
    );
    println!("engine   requests/s  of native  MiB at a quarter  at the end");
    let mut native = 0.0;
    for (engine, samples) in ENGINES.iter().zip(&samples) {
        let rate = median(samples.iter().map(|sample| arguments.requests as f64 / sample.seconds).collect());
        let part = |at: f64| {
            let seen = samples.iter().map(|sample| {
                let place = (sample.memory.len() as f64 * at) as usize;
                sample.memory.get(place.min(sample.memory.len().saturating_sub(1))).copied().unwrap_or(0)
            });
            median(seen.map(|kib| kib as f64 / 1024.0).collect())
        };
        let (quarter, end) = (part(0.25), part(0.99));
        if native == 0.0 {
            native = rate;
        }
        println!("{engine:<8} {rate:>10.0} {:>9.0}% {quarter:>17.1} {end:>11.1}", rate / native * 100.0);
        engines.insert(
            (*engine).to_owned(),
            json!({"requests_per_second": rate.round(), "ratio_to_native": rate / native,
                "mib_at_a_quarter": quarter, "mib_at_the_end": end}),
        );
    }
    let document: Value = json!({"requests": arguments.requests, "rounds": arguments.rounds, "engines": engines});
    std::fs::write(&arguments.out, format!("{document:#}\n"))
        .map_err(|error| format!("{}: {error}", arguments.out.display()))?;
    println!("\nwritten to {}", arguments.out.display());
    Ok(())
}

/// Writes the long recording: the entries again and again, 20 ms apart, from 500 callers, each with a word of its own.
fn write(arguments: &Arguments, to: &Path) -> Result<(), String> {
    let recording = recording::open(&arguments.traffic, &Options::default()).map_err(|error| error.to_string())?;
    let entries: Vec<Entry> = recording.collect::<Result<_, _>>().map_err(|bad| bad.to_string())?;
    if entries.is_empty() {
        return Err("there are no requests to replay".to_owned());
    }
    let failed = |error: std::io::Error| format!("{}: {error}", to.display());
    let mut writer = Writer::create(to).map_err(failed)?;
    for (number, entry) in (0..arguments.requests).zip(entries.iter().cycle()) {
        let mut entry = entry.clone();
        let millis = u64::try_from(number * 20).unwrap_or(u64::MAX);
        entry.at_millis = Some(1_750_000_000_000 + millis);
        let request = &mut entry.exchange.request;
        request.peer = format!("198.51.{}.{}:40000", number % 500 / 250, number % 250 + 1);
        if let Some((_, path)) = request.headers.iter_mut().find(|(name, _)| name == b":path") {
            let mark = if path.contains(&b'?') { '&' } else { '?' };
            path.extend_from_slice(format!("{mark}visit=n{number:x}").as_bytes());
        }
        writer.write(&entry).map_err(failed)?;
    }
    writer.finish().map_err(failed)
}

fn replay(arguments: &Arguments, engine: &str, recording: &Path, folder: &Path) -> Result<Sample, String> {
    let began = Instant::now();
    let mut child = Command::new(&arguments.program)
        .args(["run", "--format", "json", "--engine", engine, "--entities"])
        .arg(&arguments.entities)
        .arg("--filter")
        .arg(&arguments.filter)
        .arg("--traffic")
        .arg(recording)
        .arg("--out")
        .arg(folder.join(format!("replay-{engine}.json")))
        .stdin(Stdio::null())
        .spawn()
        .map_err(|error| format!("{}: {error}", arguments.program.display()))?;
    let mut memory = Vec::new();
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            let seconds = began.elapsed().as_secs_f64();
            return match status.success() {
                true => Ok(Sample { seconds, memory }),
                false => Err(format!("the replay with {engine} ended with {status}")),
            };
        }
        memory.extend(palisade_tests::process::resident_kib(child.id()));
        std::thread::sleep(LOOK);
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
