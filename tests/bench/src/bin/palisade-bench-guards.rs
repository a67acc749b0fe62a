//! What the guards cost in a VM with the shipped module of the preset.
//!
//! Figures come with the limits that they are held against; they are printed and written to a file, and decide nothing.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use palisade_bench::guards::{Crowd, GUARDS, Kind, ObjectRows, Reading, Row, compile, crowd, objects, switched_on};
use palisade_tests::figures::{Figures, Target, ended, wanted};
use proxy_host::Module;

/// Measures what each guard costs requests that do not concern it and those that do, and memory and time with many callers.
#[derive(Debug, Parser)]
#[command(name = "palisade-bench-guards", version)]
struct Options {
    /// The file that the figures go to.
    #[arg(long, default_value = "target/bench/guards.json", value_name = "FILE")]
    out: PathBuf,
    /// The module: that of the preset.
    #[arg(long, default_value = "target/filters/preset.wasm", value_name = "FILE.wasm")]
    filter: PathBuf,
    /// The control plane's program, which compiles the chains.
    #[arg(long, env = "PALISADE_BIN", default_value = "target/debug/palisade", value_name = "FILE")]
    palisade: PathBuf,
    /// Only these parts: `switched`, `busy`, `objects`, `crowd`; all where none is named.
    #[arg(long, value_name = "PART")]
    only: Vec<String>,
    /// Different requests of each kind.
    #[arg(long, default_value_t = 4000)]
    requests: u64,
    /// Rounds of them in which processor time is measured.
    #[arg(long, default_value_t = 3)]
    rounds: u64,
    /// Consumers of objects.
    #[arg(long, default_value_t = 20_000)]
    consumers: u64,
    /// Requests of the crowd, each from another caller, within a minute.
    #[arg(long, default_value_t = 100_000)]
    crowd: u64,
}

fn main() -> ExitCode {
    ended("palisade-bench-guards", run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), String> {
    let bytes = std::fs::read(&options.filter)
        .map_err(|error| format!("{}: {error}; `make filters` builds the modules", options.filter.display()))?;
    let module = Module::compile(&bytes).map_err(|error| error.to_string())?;
    let metered = Module::metered(&bytes).map_err(|error| error.to_string())?;
    let mut figures = Figures::default();
    if wanted(&options.only, "switched") {
        for (kind, what, target) in
            [(Kind::Image, "GET of an image", Target::AtMost(2.0)), (Kind::Page, "GET of a page", Target::None)]
        {
            switched(options, (&metered, &module), kind, what, target, &mut figures)?;
        }
    }
    if wanted(&options.only, "busy") {
        for (kind, guards, what) in [
            (Kind::Login, &["login"][..], "login that succeeds"),
            (Kind::FailedLogin, &["login"], "login that fails"),
            (Kind::Upload, &["uploads"], "upload of 64 KiB"),
            (Kind::Json, &["error_leakage", "sensitive_data"], "answer of 200 KiB of JSON"),
        ] {
            let chains = [compile(&options.palisade, &[], false)?, compile(&options.palisade, guards, false)?];
            let requests = if kind == Kind::Json { 200 } else { options.requests.min(1000) };
            let rows = switched_on((&metered, &module), &chains, kind, requests, 1)?;
            let what = format!("{}, {what}", guards.join(" and "));
            let more = |of: fn(&Row) -> f64| of(&rows[1]) - of(&rows[0]);
            figures.add(&format!("{what}: instructions"), more(|row| row.instructions), "", Target::None);
            figures.add(&format!("{what}: processor time"), more(|row| row.nanos) / 1e3, "us", Target::None);
        }
    }
    if wanted(&options.only, "objects") {
        of_objects(options, (&metered, &module), &mut figures)?;
    }
    if wanted(&options.only, "crowd") {
        crowds(options, &module, &mut figures)?;
    }
    figures.write(&options.out)
}

/// What each guard adds to the whole preset.
fn switched(
    options: &Options,
    modules: (&Module, &Module),
    kind: Kind,
    what: &str,
    target: Target,
    figures: &mut Figures,
) -> Result<(), String> {
    let mut names = vec!["all guards".to_owned()];
    let mut chains = vec![compile(&options.palisade, &[], true)?, compile(&options.palisade, &GUARDS, true)?];
    for guard in GUARDS {
        names.push(guard.to_owned());
        chains.push(compile(&options.palisade, &[guard], true)?);
    }
    let rows = switched_on(modules, &chains, kind, options.requests, options.rounds)?;
    let Some((preset, guarded)) = rows.split_first() else { return Ok(()) };
    figures.add(&format!("{what}, the preset: instructions"), preset.instructions, "", Target::None);
    figures.add(&format!("{what}, the preset: processor time"), preset.nanos / 1e3, "us", Target::None);
    for (name, row) in names.iter().zip(guarded) {
        // The limit is for each of them.
        let target = if name == "all guards" { Target::None } else { target };
        let more = |of: fn(&Row) -> f64| (of(row) / of(preset) - 1.0) * 100.0;
        figures.add(&format!("{what}, {name}: instructions more"), more(|row| row.instructions), "%", target);
        figures.add(&format!("{what}, {name}: processor time more"), more(|row| row.nanos), "%", target);
    }
    Ok(())
}

/// What the object guard adds to a request for an object.
fn of_objects(options: &Options, modules: (&Module, &Module), figures: &mut Figures) -> Result<(), String> {
    let (without, with) = (compile(&options.palisade, &[], false)?, compile(&options.palisade, &["objects"], false)?);
    let consumers = options.consumers;
    let ObjectRows { ordinary, eager, shared } =
        objects(modules, [&without, &with], (consumers, options.requests * 5))?;
    for (rows, what) in [(ordinary, format!("{consumers} consumers")), (eager, "consumers of 300 objects".to_owned())] {
        let what = format!("objects, a new object of {what}");
        let more = |of: fn(&Row) -> f64| of(&rows[1]) - of(&rows[0]);
        figures.add(&format!("{what}: instructions"), more(|row| row.instructions), "", Target::None);
        figures.add(&format!("{what}: processor time"), more(|row| row.nanos) / 1e3, "us", Target::AtMost(5.0));
    }
    let mib = shared[1].saturating_sub(shared[0]) as f64 / f64::from(1 << 20);
    figures.add(&format!("objects, a node's shared data, {consumers} consumers"), mib, "MiB", Target::None);
    Ok(())
}

/// Many callers beside few, and the memory of all tables.
fn crowds(options: &Options, module: &Module, figures: &mut Figures) -> Result<(), String> {
    let guarded = compile(&options.palisade, &GUARDS, false)?;
    let without = compile(&options.palisade, &[], false)?;
    let many = Crowd { identities: options.crowd, requests: options.crowd, millis: 60_000 };
    let few = crowd(module, &guarded, Crowd { identities: 100, ..many })?;
    let bare = crowd(module, &without, many)?;
    let many = crowd(module, &guarded, many)?;
    let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    let last = |readings: &[Reading]| readings.last().copied().ok_or("nothing was read");
    // The first tenth fills caches and tables.
    let micros = |readings: &[Reading]| {
        let later = readings.get(2..).unwrap_or_default();
        later.iter().map(|reading| reading.cpu.as_secs_f64() * 1e6).sum::<f64>() / later.len().max(1) as f64
    };
    for reading in &many {
        println!(
            "  {:7} callers: {:6.1} us a request, VM {:.1} MiB, shared {} values, {:.1} MiB",
            reading.requests,
            reading.cpu.as_secs_f64() * 1e6,
            mib(reading.memory),
            reading.shared,
            mib(reading.shared_bytes)
        );
    }
    let callers = options.crowd;
    figures.add("a request of 100 callers", micros(&few), "us", Target::None);
    figures.add(&format!("a request of {callers} callers"), micros(&many), "us", Target::None);
    figures.add("times that of 100", micros(&many) / micros(&few), "x", Target::AtMost(2.0));
    let half = many.get(many.len() / 2).copied().ok_or("nothing was read")?;
    let grown = mib(last(&many)?.memory.saturating_sub(half.memory));
    figures.add("a VM's memory, second half of the callers", grown, "MiB more", Target::None);
    let more = mib(last(&many)?.memory.saturating_sub(last(&bare)?.memory));
    figures.add("a VM's memory for all guards, tables full", more, "MiB", Target::AtMost(24.0));
    figures.add("a node's shared data, 100 callers", mib(last(&few)?.shared_bytes), "MiB", Target::None);
    figures.add(
        &format!("a node's shared data, {callers} callers"),
        mib(last(&many)?.shared_bytes),
        "MiB",
        Target::None,
    );
    figures.add("of it without guards", mib(last(&bare)?.shared_bytes), "MiB", Target::None);
    Ok(())
}
