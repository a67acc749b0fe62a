//! What the filters cost: requests per second, latency and CPU time of a worker for a bare Envoy, one with a filter that does
//! nothing, and one with the preset, measured in turns in one run on one machine; answering by itself, and in front of a
//! backend. The requests of the kinds `varied` differ from each other; `get-repeated` and `form-repeated` are one request.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use clap::Parser;
use palisade_tests::bootstrap::Static;
use palisade_tests::envoy::Envoy;
use palisade_tests::http::Request;
use palisade_tests::load::{Load, Plan, Report};
use palisade_tests::parts;
use recording::varied::{self, Kind};
use serde_json::{Value, json};

/// How many different requests a kind has: no cache of the filters holds as many.
const DIFFERENT: u64 = 10_000;
/// What the generated requests begin with.
const SEED: u64 = 1;

/// Measures bare Envoy, Envoy with noop.wasm and Envoy with preset.wasm.
///
/// Envoy has one worker on processor 0; the load has processor 1. It answers requests itself, which shows the filters'
/// cost at its largest, or forwards them (`varied-proxied`) as gateways do, to another Envoy on processor 1.
#[derive(Debug, Parser)]
struct Options {
    /// The file that the figures go to.
    #[arg(long, default_value = "target/bench/gateway.json")]
    out: PathBuf,
    /// The folder of entities that the preset is compiled from.
    #[arg(long)]
    entities: Option<PathBuf>,
    /// Rounds; each measures every variant once.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of one measurement.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Connections, each with one request under way.
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// Leaves the preset out: what remains needs no control plane.
    #[arg(long)]
    without_preset: bool,
    /// Only this kind of requests.
    #[arg(long)]
    kind: Option<String>,
}

/// One measurement.
#[derive(Debug, Clone, Copy)]
struct Sample {
    per_second: f64,
    p50: u32,
    p99: u32,
    /// The CPU time of the worker for each request, in microseconds.
    cpu: f64,
}

/// Samples by kind of request, then by variant in order of measurement.
type Samples = BTreeMap<&'static str, Vec<(&'static str, Vec<Sample>)>>;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let folder = options.out.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let page = "<!doctype html><html><body><p>A page of the usual kind.</p></body></html>\n".repeat(8);
    let snapshot = if options.without_preset { None } else { Some(compile(options, folder)?) };
    let answering = Static::answering(&page);
    let backend = Envoy::start_with(&answering.render(), 1, Some(1))?;
    let proxying = Static::to(backend.listener(Static::LISTENER));
    let alone = gateways(&answering, snapshot.as_deref())?;
    let proxies = gateways(&proxying, snapshot.as_deref())?;

    let time = Duration::from_secs_f64(options.seconds);
    let mut samples = Samples::new();
    let wanted = |kind: &str| options.kind.as_deref().is_none_or(|only| only == kind);
    for (kind, proxied, requests) in requests().into_iter().filter(|(kind, ..)| wanted(kind)) {
        let gateways = if proxied { &proxies } else { &alone };
        let measured =
            samples.entry(kind).or_insert_with(|| gateways.iter().map(|(name, _)| (*name, Vec::new())).collect());
        // Round 0 warms up: connections, caches, and code that is compiled when it is first used.
        for round in 0..=options.rounds {
            for ((name, envoy), (_, kept)) in gateways.iter().zip(measured.iter_mut()) {
                let plan = Plan {
                    to: envoy.listener(Static::LISTENER),
                    connections: options.connections,
                    requests: requests.clone(),
                    pause: Duration::ZERO,
                    cpu: Some(1),
                };
                let before = envoy.worker_cpu_time();
                let report = Load::during(plan, if round == 0 { time.min(Duration::from_secs(1)) } else { time });
                accept(name, kind, envoy, &report)?;
                if round > 0 {
                    kept.push(Sample {
                        per_second: report.per_second(),
                        p50: report.quantile(0.5),
                        p99: report.quantile(0.99),
                        cpu: micros_each(envoy.worker_cpu_time().saturating_sub(before), report.answers()),
                    });
                }
            }
        }
    }
    let figures = figures(options, &samples);
    print(&figures);
    std::fs::write(&options.out, format!("{figures:#}\n"))
        .map_err(|error| format!("{}: {error}", options.out.display()))?;
    println!("\nwritten to {}", options.out.display());
    Ok(())
}

/// Envoy closes a connection whose request it answers before the body has come, and the figures would be those of new
/// connections. Every variant waits for the whole request before it answers.
fn whole_request() -> Value {
    json!({
        "name": "envoy.filters.http.buffer",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer",
            "max_request_bytes": 65536,
        },
    })
}

/// A figure counts only where every request was let through: a refusal is cheaper.
fn accept(name: &str, kind: &str, envoy: &Envoy, report: &Report) -> Result<(), String> {
    let failures = envoy.vm_failures();
    if report.dropped > 0 || report.statuses.keys().any(|status| *status != 200) || !failures.is_empty() {
        return Err(format!(
            "{name} did not serve every {kind} request: {:?}, {} dropped {:?}, failures {failures:?}\n{}",
            report.statuses,
            report.dropped,
            report.reasons,
            envoy.log_tail(40)
        ));
    }
    Ok(())
}

/// One gateway for each variant.
fn gateways(base: &Static, snapshot: Option<&[u8]>) -> Result<Vec<(&'static str, Envoy)>, String> {
    let mut variants = vec![
        ("bare", base.clone().filter(whole_request())),
        ("noop", base.clone().wasm("noop", &parts::filter("noop"), b"").filter(whole_request())),
    ];
    if let Some(snapshot) = snapshot {
        variants
            .push(("preset", base.clone().wasm("preset", &parts::filter("preset"), snapshot).filter(whole_request())));
    }
    variants.iter().map(|(name, bootstrap)| Ok((*name, Envoy::start_with(&bootstrap.render(), 1, Some(0))?))).collect()
}

/// Kinds of requests, and whether a backend answers them.
fn requests() -> Vec<(&'static str, bool, Vec<Vec<u8>>)> {
    let get = Request::get("/catalogue/garden?category=chairs&sort=price&page=2")
        .header("accept-encoding", "gzip, deflate, br")
        .header("cookie", "session=6f1c2a9d; theme=light")
        .header("referer", "http://demo.test/catalogue");
    let text = "It arrived on time and looks good in the garden. ".repeat(18);
    let form = format!("name=Ada+Lovelace&city=London&rating=5&review={}", text.replace(' ', "+"));
    let form = Request::post("/reviews", "application/x-www-form-urlencoded", form);
    let of_kind = |kind| (0..DIFFERENT).map(|number| varied::of_kind(SEED, number, kind).request.on_wire()).collect();
    let mixed: Vec<Vec<u8>> = (0..DIFFERENT).map(|number| varied::exchange(SEED, number).1.request.on_wire()).collect();
    vec![
        ("varied-get", false, of_kind(Kind::Get)),
        ("varied-form", false, of_kind(Kind::Form)),
        ("varied-json", false, of_kind(Kind::Json)),
        ("varied-proxied", true, mixed),
        ("get-repeated", false, vec![get.encode()]),
        ("form-repeated", false, vec![form.encode()]),
        ("get-repeated-proxied", true, vec![get.encode()]),
    ]
}

fn micros_each(time: Duration, requests: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "counts of one run are small")]
    let requests = requests.max(1) as f64;
    time.as_secs_f64() * 1e6 / requests
}

fn compile(options: &Options, folder: &Path) -> Result<Vec<u8>, String> {
    let out = folder.join("preset.snapshot");
    let entities = options.entities.clone().unwrap_or_else(|| parts::root().join("envoy/entities"));
    let output = Command::new(parts::palisade())
        .arg("compile")
        .arg("--entities")
        .arg(&entities)
        .arg("--out")
        .arg(&out)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", parts::palisade().display()))?;
    if !output.status.success() {
        return Err(format!(
            "palisade compile --entities {}:\n{}{}",
            entities.display(),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    std::fs::read(&out).map_err(|error| format!("{}: {error}", out.display()))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.len() % 2, values.get(middle.saturating_sub(1)), values.get(middle)) {
        (0, Some(low), Some(high)) => f64::midpoint(*low, *high),
        (_, _, Some(value)) => *value,
        _ => 0.0,
    }
}

fn figures(options: &Options, samples: &Samples) -> Value {
    let mut kinds = serde_json::Map::new();
    for (kind, variants) in samples {
        let bare = &variants[0].1;
        let mut rows = serde_json::Map::new();
        for (name, measured) in variants {
            // Neighbouring measurements share the machine's mood: the ratio is taken round by round.
            let ratios = measured.iter().zip(bare).map(|(one, bare)| one.per_second / bare.per_second).collect();
            rows.insert(
                (*name).to_owned(),
                json!({
                    "requests_per_second": median(measured.iter().map(|sample| sample.per_second).collect()).round(),
                    "p50_micros": median(measured.iter().map(|sample| f64::from(sample.p50)).collect()),
                    "p99_micros": median(measured.iter().map(|sample| f64::from(sample.p99)).collect()),
                    "worker_cpu_micros": (median(measured.iter().map(|sample| sample.cpu).collect()) * 10.0).round() / 10.0,
                    "ratio_to_bare": (median(ratios) * 1000.0).round() / 1000.0,
                    "rounds": measured.iter().map(|sample| sample.per_second.round()).collect::<Vec<_>>(),
                }),
            );
        }
        kinds.insert((*kind).to_owned(), rows.into());
    }
    json!({
        "machine": {"processors": std::thread::available_parallelism().map_or(1, usize::from), "model": cpu_model()},
        "method": {
            "workers": 1, "connections": options.connections, "rounds": options.rounds, "seconds": options.seconds,
            "different_requests": DIFFERENT,
            "backend": "Envoy answers by itself, once it has the whole request; where proxied, another Envoy does",
        },
        "requests": kinds,
    })
}

fn cpu_model() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(':')).map_or("unknown", |(_, model)| model.trim()).to_owned()
}

/// A table; behind each figure its ratio to the bare gateway's.
fn print(figures: &Value) {
    println!(
        "request              variant   requests/s  of bare      p50 us  of bare      p99 us  of bare  CPU us  more than bare"
    );
    for (kind, variants) in figures["requests"].as_object().into_iter().flatten() {
        let figure = |name: &str, field: &str| variants[name][field].as_f64().unwrap_or_default();
        for name in variants.as_object().into_iter().flatten().map(|(name, _)| name) {
            let times = |field| figure(name, field) / figure("bare", field).max(f64::MIN_POSITIVE);
            println!(
                "{kind:<20} {name:<8} {:>11.0} {:>7.1}% {:>11.0} {:>7.2}x {:>11.0} {:>7.2}x {:>7.1} {:>15.1}",
                figure(name, "requests_per_second"),
                figure(name, "ratio_to_bare") * 100.0,
                figure(name, "p50_micros"),
                times("p50_micros"),
                figure(name, "p99_micros"),
                times("p99_micros"),
                figure(name, "worker_cpu_micros"),
                figure(name, "worker_cpu_micros") - figure("bare", "worker_cpu_micros"),
            );
        }
    }
}
