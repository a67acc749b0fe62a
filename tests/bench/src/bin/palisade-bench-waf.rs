//! `palisade-bench-waf`: the rule engine beside libmodsecurity.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use palisade_bench::waf::rules::{self, RuleSet};
use palisade_bench::waf::{Engine, Native, Peer, Plan, Wasm, cases, loads, memory, report, run, varied};
use proxy_host::Module;

/// Measures the rule engine, linked in and in the shipped module, beside libmodsecurity: the core rule set at paranoia
/// level 1, all phases, medians of rounds in which the engines take turns. No time decides the exit code.
#[derive(Parser)]
#[command(name = "palisade-bench-waf", version)]
struct Arguments {
    /// The rule set: a folder with rules/ and crs-setup.conf (or crs-setup.conf.example)
    #[arg(long, env = "PALISADE_CRS_DIR", value_name = "DIR")]
    crs: PathBuf,
    /// The module of engine `wasm`
    #[arg(long, default_value = "target/filters/waf.wasm", value_name = "FILE.wasm")]
    filter: PathBuf,
    /// Another build of the module, for the requests that all differ (two releases, two ways to build)
    #[arg(long, value_name = "FILE.wasm")]
    other: Option<PathBuf>,
    /// libmodsecurity's program (tests/bench-waf/peer.cpp, built); without it there are no ratios
    #[arg(long, value_name = "FILE")]
    peer: Option<PathBuf>,
    /// About 40 seconds in place of four minutes
    #[arg(long)]
    quick: bool,
    /// Measure a VM's memory at paranoia level 4 over 100,000 requests as well (some minutes more)
    #[arg(long)]
    memory: bool,
    /// Only the transactions whose name begins so; `varied` for the requests that all differ
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Count the instructions of requests that all differ, in a metered VM, and measure nothing else: the same on every machine
    #[arg(long)]
    instructions: bool,
    /// Print the JSON document in place of the table
    #[arg(long)]
    json: bool,
    /// Where the JSON document goes
    #[arg(long, default_value = "target/bench/waf.json", value_name = "FILE")]
    out: PathBuf,
}

fn main() -> ExitCode {
    match measure(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("palisade-bench-waf: {error}");
            ExitCode::from(2)
        }
    }
}

fn measure(arguments: &Arguments) -> Result<(), String> {
    let folder = arguments.out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut progress = Progress::new();
    progress.say("compiling the rules and the module");
    let level = |paranoia| rules::compile(&arguments.crs, paranoia, folder);
    let (lenient, strict) = (level(1)?, level(4)?);
    let filter = &arguments.filter;
    let bytes = std::fs::read(filter).map_err(|error| {
        format!("{}: {error}; `make filters` builds the modules, --filter names another one", filter.display())
    })?;
    if arguments.instructions {
        return count_instructions(arguments, &lenient);
    }
    let module = Module::compile(&bytes).map_err(|error| format!("{}: {error}", filter.display()))?;

    let mut figures = report::Figures {
        crs: version(&arguments.crs),
        machine: machine(),
        memory_every: memory::EVERY,
        ..report::Figures::default()
    };
    if arguments.only.as_ref().is_none_or(|only| only != "varied") {
        measure_cases(arguments, &lenient, &strict, &module, &mut figures, &mut progress)?;
    }
    if arguments.only.as_ref().is_none_or(|only| only == "varied") {
        measure_varied(arguments, &lenient, &module, &mut figures, &mut progress)?;
    }
    if arguments.memory {
        let cases = cases::all();
        figures.memory = memory::measure(&module, &strict.snapshot, &cases, 100_000, |what| progress.say(what))?;
    }
    progress.done();

    let document = report::document(&figures);
    let written = std::fs::write(&arguments.out, format!("{document:#}\n"));
    written.map_err(|error| format!("{}: {error}", arguments.out.display()))?;
    let mut out = std::io::stdout().lock();
    let printed = match arguments.json {
        true => writeln!(out, "{document:#}"),
        false => write!(out, "{}\nwritten to {}\n", report::table(&figures), arguments.out.display()),
    };
    printed.map_err(|error| format!("standard output: {error}"))
}

fn measure_cases(
    arguments: &Arguments,
    lenient: &RuleSet,
    strict: &RuleSet,
    module: &Module,
    figures: &mut report::Figures,
    progress: &mut Progress,
) -> Result<(), String> {
    let mut cases = cases::all();
    let only = arguments.only.as_deref().unwrap_or_default();
    cases.retain(|case| case.name.starts_with(only));
    let plan = match arguments.quick {
        false => Plan { rounds: 9, turn: Duration::from_millis(350), most: Duration::from_secs(12) },
        true => Plan { rounds: 3, turn: Duration::from_millis(150), most: Duration::from_secs(3) },
    };
    let mut native = Native::load(&lenient.program, &cases)?;
    let work: Vec<_> = (0..cases.len()).map(|case| native.work(case)).collect();
    let mut wasm = Wasm::load(module, &lenient.snapshot, &cases)?;
    let start = |program: &PathBuf| Peer::start(program, &lenient.files, &cases);
    let mut peer = arguments.peer.as_ref().map(start).transpose()?;
    figures.peer = peer.as_ref().map(|peer| peer.version.clone());
    figures.rounds = plan.rounds;
    let mut engines: Vec<&mut dyn Engine> = vec![&mut native, &mut wasm];
    engines.extend(peer.as_mut().map(|peer| peer as &mut dyn Engine));
    figures.engines = engines.iter().map(|engine| engine.name()).collect();
    figures.rows = run(&cases, &work, &mut engines, plan, |what| progress.say(what))?;

    if let Some(get) = cases.iter().position(|case| case.name == "get") {
        progress.say("the module without any rule");
        let mut empty = Wasm::load(module, &rules::without_rules()?, &cases)?;
        empty.measure(get, 2000, plan.turn)?;
        figures.around = Some(palisade_bench::waf::median(&empty.measure(get, 20_000, plan.turn * 3)?));
    }
    let times = if arguments.quick { 5 } else { 11 };
    for (rules, paranoia) in [(lenient, 1), (strict, 4)] {
        progress.say(&format!("loading the rules, paranoia level {paranoia}"));
        // The files are the same at every level but for one action: once is enough for libmodsecurity.
        let peer = peer.as_mut().filter(|_| paranoia == 1);
        figures.loads.push(loads::measure(rules, paranoia, module, peer, times)?);
    }
    Ok(())
}

fn measure_varied(
    arguments: &Arguments,
    rules: &RuleSet,
    module: &Module,
    figures: &mut report::Figures,
    progress: &mut Progress,
) -> Result<(), String> {
    let (count, rounds) = if arguments.quick { (1_000, 1) } else { (10_000, 3) };
    let cases = varied::cases(count);
    let mut native = Native::load(&rules.program, &cases)?;
    let mut wasm = Wasm::load(module, &rules.snapshot, &cases)?;
    let start = |program: &PathBuf| Peer::start(program, &rules.files, &cases);
    let mut peer = arguments.peer.as_ref().map(start).transpose()?;
    figures.peer = peer.as_ref().map(|peer| peer.version.clone());
    let other = arguments.other.as_ref().map(|file| {
        let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        Module::compile(&bytes).map_err(|error| format!("{}: {error}", file.display()))
    });
    let other = other.transpose()?;
    let load = |module| Wasm::load(module, &rules.snapshot, &cases).map(|wasm| wasm.named("other wasm"));
    let mut other = other.as_ref().map(load).transpose()?;
    let mut engines: Vec<&mut dyn Engine> = vec![&mut native, &mut wasm];
    engines.extend(peer.as_mut().map(|peer| peer as &mut dyn Engine));
    engines.extend(other.as_mut().map(|other| other as &mut dyn Engine));
    figures.varied_engines = engines.iter().map(|engine| engine.name()).collect();
    figures.varied = varied::measure(&cases, &mut engines, rounds, |what| progress.say(what))?;
    Ok(())
}

/// Prints the mean of each kind, of the module and of the other one.
fn count_instructions(arguments: &Arguments, rules: &RuleSet) -> Result<(), String> {
    let cases = varied::cases(if arguments.quick { 1_000 } else { 10_000 });
    let mut files = vec![&arguments.filter];
    files.extend(&arguments.other);
    let mut means = Vec::new();
    for file in files {
        let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let module = Module::metered(&bytes).map_err(|error| format!("{}: {error}", file.display()))?;
        means.push(varied::instructions(&cases, &module, &rules.snapshot)?);
    }
    let mut out = std::io::stdout().lock();
    for (at, (kind, mean)) in means[0].iter().enumerate() {
        let _ = write!(out, "{:8} {mean:9} instructions", kind.name());
        if let Some((_, other)) = means.get(1).and_then(|other| other.get(at)) {
            let _ =
                write!(out, ", the other module {other:9} ({:+.2} %)", (*mean as f64 / *other as f64 - 1.0) * 100.0);
        }
        let _ = writeln!(out);
    }
    Ok(())
}

/// The rule set's version, as the file VERSION or the setup has it.
fn version(crs: &Path) -> String {
    let read = |name| std::fs::read_to_string(crs.join(name)).ok();
    read("VERSION").map_or_else(|| "of an unknown version".to_owned(), |text| text.trim().to_owned())
}

/// The processor's name and how many there are.
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{count} x {}", name.map_or("unknown processor", |(_, name)| name.trim()))
}

/// What is going on, on a terminal.
struct Progress {
    began: Instant,
    shown: Option<Instant>,
    terminal: bool,
}

impl Progress {
    fn new() -> Self {
        Self { began: Instant::now(), shown: None, terminal: std::io::stderr().is_terminal() }
    }

    fn say(&mut self, what: &str) {
        let recent = self.shown.is_some_and(|shown| shown.elapsed() < Duration::from_millis(100));
        if self.terminal && !recent {
            self.shown = Some(Instant::now());
            eprint!("\r\x1b[K{:4} s  {what}", self.began.elapsed().as_secs());
        }
    }

    fn done(&self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }
}
