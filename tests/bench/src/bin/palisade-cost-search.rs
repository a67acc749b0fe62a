//! `palisade-cost-search`: the request that costs a worker most.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use palisade_bench::cost::search::{self, Found, Plan};
use palisade_bench::cost::{Cost, Meter, Recipe, seeds};
use palisade_bench::waf::{Native, rules};
use proxy_host::Module;
use seclang::Spent;
use serde_json::json;

/// Searches for the request that makes the shipped module run the most instructions, by mutation from requests that are
/// known to be dear, and prints the dearest of each kind with the time that they take.
#[derive(Parser)]
#[command(name = "palisade-cost-search", version)]
struct Arguments {
    /// The rule set: a folder with rules/ and crs-setup.conf (or crs-setup.conf.example)
    #[arg(long, env = "PALISADE_CRS_DIR", value_name = "DIR")]
    crs: PathBuf,
    /// The module
    #[arg(long, default_value = "target/filters/waf.wasm", value_name = "FILE.wasm")]
    filter: PathBuf,
    /// The paranoia level, 1 to 4
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=4))]
    paranoia: u8,
    /// The most bytes of a request, its headers aside
    #[arg(long, default_value_t = 65_536, value_name = "BYTES")]
    size: usize,
    /// How long to search; 0 runs the first recipes alone
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// What random numbers begin with
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Recipes to begin with, beside those that are built in: files of JSON, or folders of them
    #[arg(long, value_name = "PATH")]
    from: Vec<PathBuf>,
    /// Where the dearest recipe of each place is written, as NAME.json
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// How many are printed
    #[arg(long, default_value_t = 15)]
    top: usize,
    /// A request ends after so many instructions, as if the VM had died
    #[arg(long, default_value_t = 20_000_000_000)]
    limit: u64,
    /// Print a JSON document in place of the table
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("palisade-cost-search: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let bytes = std::fs::read(&arguments.filter)
        .map_err(|error| format!("{}: {error}; `make filters` builds the modules", arguments.filter.display()))?;
    let out = tempfile::tempdir().map_err(|error| error.to_string())?;
    let rules = rules::compile(&arguments.crs, arguments.paranoia, out.path())?;
    let snapshot = rules.snapshot;
    let native = Native::load(&rules.program, &[])?;
    let metered = Module::metered(&bytes).map_err(|error| error.to_string())?;
    let plain = Module::compile(&bytes).map_err(|error| error.to_string())?;
    let mut first = seeds();
    for path in &arguments.from {
        first.extend(read(path)?);
    }

    let mut meter = Meter::new(&metered, &snapshot, arguments.limit)?;
    let plan = Plan { size: arguments.size, time: Duration::from_secs(arguments.seconds), seed: arguments.seed };
    let (terminal, began) = (std::io::stderr().is_terminal(), Instant::now());
    let (mut found, tried) = search::run(&mut meter, &first, plan, |tried, best| {
        if terminal && let Some(best) = best {
            let (seconds, dearest) = (began.elapsed().as_secs(), best.cost.instructions / 1_000_000);
            eprint!("\r\x1b[K{seconds} s, {tried} requests, the dearest: {dearest} million instructions");
            let _ = std::io::stderr().flush();
        }
    });
    if terminal {
        eprint!("\r\x1b[K");
    }
    if let Some(folder) = &arguments.keep {
        keep(folder, &found, arguments)?;
    }
    found.truncate(arguments.top);
    let mut timer = Meter::new(&plain, &snapshot, arguments.limit)?;
    let rows = found.iter().map(|found| {
        let (first, next) = measure(&mut timer, &found.recipe, arguments.size)?;
        let charged = native.charged(&found.recipe.exchange(arguments.size)).spent;
        Ok(Row { found, first, next, charged })
    });
    let rows = rows.collect::<Result<Vec<_>, String>>()?;
    print(&rows, tried, arguments)
}

/// What is printed of a recipe.
struct Row<'f> {
    found: &'f Found,
    first: Cost,
    next: Duration,
    /// What the budget of the engine says of it.
    charged: Spent,
}

/// The time and memory of a recipe in a module that counts nothing: of the first request of a VM, and the best time of the
/// next three, which find what the first one has built.
fn measure(timer: &mut Meter, recipe: &Recipe, size: usize) -> Result<(Cost, Duration), String> {
    let exchange = recipe.exchange(size);
    let first = timer.run_alone(&exchange)?;
    let next = (0..3).map(|_| timer.run(&exchange).cpu).min().unwrap_or_default();
    Ok((first, next))
}

fn read(path: &Path) -> Result<Vec<Recipe>, String> {
    let mut files = Vec::new();
    if path.is_dir() {
        let listed = std::fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
        files.extend(listed.filter_map(|entry| Some(entry.ok()?.path())));
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    let parse = |file: &PathBuf| {
        let text = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", file.display()))
    };
    files.iter().map(parse).collect()
}

fn keep(folder: &Path, found: &[Found], arguments: &Arguments) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut places = Vec::new();
    for found in found {
        if places.contains(&found.recipe.place) {
            continue;
        }
        places.push(found.recipe.place);
        let place = json!(found.recipe.place);
        let name = format!("{}-pl{}-{}.json", place.as_str().unwrap_or("x"), arguments.paranoia, arguments.seed);
        let text = serde_json::to_string_pretty(&found.recipe).map_err(|error| error.to_string())?;
        let path = folder.join(name);
        std::fs::write(&path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

fn print(rows: &[Row<'_>], tried: u64, arguments: &Arguments) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    let printed = if arguments.json {
        let rows = rows.iter().map(|Row { found, first: plain, next, charged }| {
            json!({
                "recipe": found.recipe,
                "instructions": found.cost.instructions,
                "first_cpu_micros": plain.cpu.as_micros() as u64,
                "cpu_micros": next.as_micros() as u64,
                "memory_bytes": plain.memory,
                "charged": { "work": charged.work, "memory": charged.memory },
                "status": plain.status,
                "died": found.cost.died || plain.died,
            })
        });
        let rows: Vec<_> = rows.collect();
        let document = json!({
            "size": arguments.size, "paranoia": arguments.paranoia, "requests": tried, "dearest": rows,
        });
        writeln!(out, "{document:#}")
    } else {
        let head =
            format!("{tried} requests of at most {} bytes, paranoia level {}", arguments.size, arguments.paranoia);
        let mut text = format!(
            "{head}\n{:>9}  {:>8}  {:>8}  {:>8}  {:>7}  {:>7}  {:>6}  what\n",
            "M instr.", "charged", "first ms", "ms", "MiB", "charged", "status"
        );
        for Row { found, first: plain, next, charged } in rows {
            let place = json!(found.recipe.place);
            text += &format!(
                "{:>9.1}  {:>8.1}  {:>8.1}  {:>8.1}  {:>7.1}  {:>7.1}  {:>6}  {}: {}{}\n",
                found.cost.instructions as f64 / 1e6,
                charged.work as f64 / 1e6,
                plain.cpu.as_secs_f64() * 1e3,
                next.as_secs_f64() * 1e3,
                plain.memory as f64 / f64::from(1 << 20),
                charged.memory as f64 / f64::from(1 << 20),
                plain.status,
                place.as_str().unwrap_or_default(),
                found.recipe.what,
                if found.cost.died || plain.died { " (the VM died)" } else { "" },
            );
        }
        write!(out, "{text}")
    };
    printed.map_err(|error| format!("standard output: {error}"))
}
