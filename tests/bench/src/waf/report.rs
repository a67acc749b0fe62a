//! The figures as a document and as a table.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::loads::Load;
use super::varied::VariedRow;
use super::{Row, Verdict, median};

/// What the ratios to libmodsecurity are to be at least.
const RATIOS: [(&str, f64); 2] = [("native", 30.0), ("wasm", 12.0)];
/// The most that ten times as much may cost.
const LINEAR: f64 = 12.0;
/// The most that loading in the filter may take, by paranoia level, in milliseconds.
const LOADS: [(u8, f64); 2] = [(1, 50.0), (4, 100.0)];
/// The most that a VM's memory may grow to, in bytes.
const MEMORY: usize = 48 << 20;
/// Pairs of cases of which the second is ten times the first.
const TENFOLD: [(&str, &str); 6] = [
    ("form-10k", "form-100k"),
    ("form-100k", "form-1m"),
    ("json-10k", "json-100k"),
    ("json-100k", "json-1m"),
    ("args-10", "args-100"),
    ("args-100", "args-1000"),
];

/// All figures of one run.
#[derive(Debug, Default)]
pub struct Figures {
    /// The rule set's version.
    pub crs: String,
    /// What libmodsecurity calls itself; `None` where it was left out.
    pub peer: Option<String>,
    /// The processor.
    pub machine: String,
    /// How often every engine had its turn.
    pub rounds: usize,
    /// The engines' names, in the order of the rows' times.
    pub engines: Vec<&'static str>,
    /// The cases.
    pub rows: Vec<Row>,
    /// Requests that differ from each other.
    pub varied: Vec<VariedRow>,
    /// The engines of [`Figures::varied`], in the order of its times.
    pub varied_engines: Vec<&'static str>,
    /// The module's time for case `get` without any rule: everything around the engine, in nanoseconds.
    pub around: Option<u64>,
    /// Load times.
    pub loads: Vec<Load>,
    /// Readings of a VM's memory, in bytes; empty where it was not asked for.
    pub memory: Vec<usize>,
    /// How many requests there were between two readings.
    pub memory_every: usize,
}

/// Everything as one document, with what missed its target and what the engines do not agree on.
#[must_use]
pub fn document(figures: &Figures) -> Value {
    let (mut misses, mut disagreements) = (Vec::new(), Vec::new());
    let mut rows = Vec::new();
    for row in &figures.rows {
        let mut ratios = serde_json::Map::new();
        for (engine, target) in RATIOS {
            let Some(ratio) = ratio(figures, row, engine) else { continue };
            ratios.insert(engine.to_owned(), rounded(ratio));
            if ratio < target {
                misses.push(format!("{}: {engine} is {ratio:.1} times as fast, {target} are wanted", row.name));
            }
        }
        let verdicts = figures.engines.iter().zip(&row.verdicts);
        let verdicts = verdicts.map(|(engine, verdict)| {
            let said = json!({ "refused": verdict.refused, "rules": verdict.rules, "attacks": verdict.attacks() });
            ((*engine).to_owned(), said)
        });
        let verdicts: Value = verdicts.collect::<serde_json::Map<_, _>>().into();
        if !row.agreed() {
            disagreements.push(json!({ "case": row.name, "verdicts": verdicts }));
        }
        if !row.as_meant() {
            misses.push(format!("{}: attack rules match where none should, or none where some should", row.name));
        }
        let times = figures.engines.iter().zip(&row.times);
        let times = times.map(|(engine, times)| {
            let best = times.iter().min().copied().unwrap_or(0);
            ((*engine).to_owned(), json!({ "median_ns": median(times), "best_ns": best, "samples": times.len() }))
        });
        rows.push(json!({
            "name": row.name,
            "what": row.what,
            "body_bytes": row.body,
            "times": times.collect::<serde_json::Map<_, _>>(),
            "ratio": ratios,
            "rules": row.work.rules,
            "operators": row.work.operators,
            "regex_searches": row.work.patterns,
            "agreed": row.agreed(),
            "verdicts": verdicts,
        }));
    }
    let tenfold = tenfold(figures);
    for (from, to, factors) in &tenfold {
        let judged = factors.iter().filter(|(engine, factor)| *engine != "libmodsecurity" && *factor > LINEAR);
        misses.extend(judged.map(|(engine, factor)| {
            format!("{engine}: {to} takes {factor:.1} times as long as {from}, at most {LINEAR} are wanted")
        }));
    }
    for load in &figures.loads {
        let target = LOADS.iter().find(|(level, _)| *level == load.paranoia).map_or(f64::MAX, |(_, most)| *most);
        if millis(load.wasm) > target {
            let took = millis(load.wasm);
            misses.push(format!("paranoia level {}: {took:.1} ms to load in wasm, {target} are wanted", load.paranoia));
        }
    }
    if let Some(last) = figures.memory.last() {
        if *last > MEMORY {
            misses.push(format!("the VM's memory is {} MiB, {} are wanted", last >> 20, MEMORY >> 20));
        }
        if figures.memory.get(figures.memory.len() / 2) != Some(last) {
            misses.push("the VM's memory grew in the second half".to_owned());
        }
    }
    json!({
        "crs": figures.crs,
        "peer": figures.peer,
        "machine": figures.machine,
        "rounds": figures.rounds,
        "transactions": rows,
        "tenfold": tenfold.iter().map(|(from, to, factors)| json!({
            "from": from,
            "to": to,
            "factor": factors.iter().map(|(engine, factor)| ((*engine).to_owned(), rounded(*factor)))
                .collect::<serde_json::Map<_, _>>(),
        })).collect::<Vec<_>>(),
        "different_requests": figures.varied.iter().map(|row| varied(figures, row)).collect::<Vec<_>>(),
        "around_the_engine_ns": figures.around,
        "load": figures.loads.iter().map(|load| json!({
            "paranoia_level": load.paranoia,
            "rules": load.rules,
            "program_bytes": load.bytes,
            "native_ns": load.native,
            "wasm_ns": load.wasm,
            "wasm_again_ns": load.again,
            "vm_memory_bytes": load.memory,
            "libmodsecurity_ns": load.peer,
        })).collect::<Vec<_>>(),
        "memory": (!figures.memory.is_empty()).then(|| json!({
            "paranoia_level": 4,
            "every": figures.memory_every,
            "bytes": figures.memory,
        })),
        "disagreements": disagreements,
        "misses": misses,
    })
}

/// The figures as text; what missed its target is marked with an exclamation mark and listed at the end.
#[must_use]
pub fn table(figures: &Figures) -> String {
    let mut out = String::new();
    let peer = figures.peer.as_deref().unwrap_or("left out");
    let _ = writeln!(
        out,
        "Core rule set {}, paranoia level 1; libmodsecurity: {peer}; {}; medians of {} rounds in turns\n",
        figures.crs, figures.machine, figures.rounds
    );
    let _ = writeln!(
        out,
        "{:11} {:>10} {:>10} {:>14} {:>9} {:>9} {:>6} {:>9} {:>8}  what",
        "transaction", "native", "wasm", "libmodsecurity", "native", "wasm", "rules", "operators", "regexes"
    );
    for row in &figures.rows {
        let time = |engine| time_of(figures, row, engine).map_or_else(|| "-".to_owned(), duration);
        let ratio = |engine, target| match ratio(figures, row, engine) {
            Some(ratio) => format!("{ratio:.1}x{}", if ratio < target { "!" } else { " " }),
            None => "- ".to_owned(),
        };
        let _ = writeln!(
            out,
            "{:11} {:>10} {:>10} {:>14} {:>9} {:>9} {:>6} {:>9} {:>8}  {}",
            row.name,
            time("native"),
            time("wasm"),
            time("libmodsecurity"),
            ratio("native", RATIOS[0].1),
            ratio("wasm", RATIOS[1].1),
            row.work.rules,
            row.work.operators,
            row.work.patterns,
            row.what,
        );
        for (engine, verdict) in figures.engines.iter().zip(&row.verdicts).filter(|_| !row.agreed()) {
            let _ = writeln!(out, "  WARNING: they do not agree: {engine}: {}", said(verdict));
        }
        if let Some(verdict) = row.verdicts.first().filter(|verdict| row.agreed() && !verdict.attacks().is_empty()) {
            let _ = writeln!(out, "  all engines: {}", said(verdict));
        }
    }
    let _ = match figures.rows.iter().filter(|row| !row.agreed()).count() {
        0 => writeln!(out, "\nAll engines agree: the same attack rules match, the same transactions are refused."),
        count => {
            writeln!(out, "\nWARNING: the engines do not agree on {count} transactions: their times do not compare.")
        }
    };
    let _ = writeln!(out, "\nTen times as much costs at most {LINEAR} times as much:");
    for (from, to, factors) in tenfold(figures) {
        let factors = factors.iter().map(|(engine, factor)| {
            let mark = if *factor > LINEAR && *engine != "libmodsecurity" { "!" } else { "" };
            format!("{engine} {factor:.1}{mark}")
        });
        let _ = writeln!(out, "  {from} to {to}: {}", factors.collect::<Vec<_>>().join(", "));
    }
    varied_table(figures, &mut out);
    if let Some(around) = figures.around {
        let _ = writeln!(
            out,
            "\nWithout any rule, `get` takes {} in wasm: all that is around the engine",
            duration(around)
        );
    }
    let _ = writeln!(out, "\nLoading the rules:");
    for load in &figures.loads {
        let target = LOADS.iter().find(|(level, _)| *level == load.paranoia).map_or(f64::MAX, |(_, most)| *most);
        let _ = writeln!(
            out,
            "  level {}: {} rules, {} KiB: native {}, wasm {}{} (VM {:.1} MiB), again {}{}",
            load.paranoia,
            load.rules,
            load.bytes >> 10,
            duration(load.native),
            duration(load.wasm),
            if millis(load.wasm) > target { "!" } else { "" },
            mebibytes(load.memory),
            duration(load.again),
            load.peer.map_or_else(String::new, |peer| format!(", libmodsecurity {}", duration(peer))),
        );
    }
    if !figures.memory.is_empty() {
        let readings = figures.memory.iter().map(|bytes| format!("{:.1}", mebibytes(*bytes)));
        let _ = writeln!(
            out,
            "\nA VM's memory at level 4, in MiB, every {} requests: {}",
            figures.memory_every,
            readings.collect::<Vec<_>>().join(" ")
        );
    }
    let document = document(figures);
    let misses = document["misses"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !misses.is_empty() {
        let _ = writeln!(out, "\n! Not as wanted:");
    }
    for miss in misses.iter().filter_map(Value::as_str) {
        let _ = writeln!(out, "  {miss}");
    }
    out
}

fn varied(figures: &Figures, row: &VariedRow) -> Value {
    let times = figures.varied_engines.iter().zip(row.medians.iter().zip(&row.means));
    let times =
        times.map(|(engine, (median, mean))| ((*engine).to_owned(), json!({ "median_ns": median, "mean_ns": mean })));
    json!({
        "kind": row.kind.name(),
        "requests": row.requests,
        "times": times.collect::<serde_json::Map<_, _>>(),
    })
}

/// Means: a request in a hundred that costs a hundred times as much is half of the load.
fn varied_table(figures: &Figures, out: &mut String) {
    if figures.varied.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nRequests that all differ, mean of each kind:");
    for row in &figures.varied {
        let peer = figures.varied_engines.iter().position(|name| *name == "libmodsecurity");
        let peer = peer.and_then(|at| row.means.get(at)).copied();
        let times = figures.varied_engines.iter().zip(&row.means).map(|(engine, mean)| {
            let ratio =
                peer.filter(|peer| peer != mean).map(|peer| format!(" ({:.1}x)", peer as f64 / (*mean).max(1) as f64));
            format!("{engine} {}{}", duration(*mean), ratio.unwrap_or_default())
        });
        let _ = writeln!(out, "  {:5} {:>6}: {}", row.kind.name(), row.requests, times.collect::<Vec<_>>().join(", "));
    }
}

/// A verdict in words: the status, and the attack rules that matched.
fn said(verdict: &Verdict) -> String {
    let status = verdict.refused.map_or_else(|| "passed".to_owned(), |status| format!("refused with {status}"));
    format!("{status}, matched {:?}", verdict.attacks())
}

fn time_of(figures: &Figures, row: &Row, engine: &str) -> Option<u64> {
    let at = figures.engines.iter().position(|name| *name == engine)?;
    row.times.get(at).filter(|times| !times.is_empty()).map(|times| median(times))
}

/// How many times as fast as libmodsecurity an engine is.
fn ratio(figures: &Figures, row: &Row, engine: &str) -> Option<f64> {
    let peer = time_of(figures, row, "libmodsecurity")?;
    time_of(figures, row, engine).map(|time| peer as f64 / time.max(1) as f64)
}

/// Two transactions, and by engine how many times the cost of the one the other has.
type Tenfold = (&'static str, &'static str, Vec<(&'static str, f64)>);

/// What ten times as much costs, by engine.
fn tenfold(figures: &Figures) -> Vec<Tenfold> {
    let row = |name: &str| figures.rows.iter().find(|row| row.name == name);
    let factors = |from: &Row, to: &Row| {
        let factor = |engine: &&'static str| {
            let (one, ten) = (time_of(figures, from, engine)?, time_of(figures, to, engine)?);
            Some((*engine, ten as f64 / one.max(1) as f64))
        };
        figures.engines.iter().filter_map(factor).collect::<Vec<_>>()
    };
    TENFOLD.iter().filter_map(|(from, to)| Some((*from, *to, factors(row(from)?, row(to)?)))).collect()
}

fn rounded(value: f64) -> Value {
    json!((value * 100.0).round() / 100.0)
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

fn mebibytes(bytes: usize) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn duration(nanos: u64) -> String {
    match nanos {
        0..10_000_000 => format!("{:.1} us", nanos as f64 / 1e3),
        _ => format!("{:.1} ms", millis(nanos)),
    }
}

#[cfg(test)]
mod tests {
    use seclang::Work;

    use super::*;

    fn figures(native: u64, peer: u64, seen: &[u64]) -> Figures {
        let verdict = |rules: &[u64]| Verdict::new(None, rules.to_vec());
        let row = |name: &str, native: u64| Row {
            name: name.to_owned(),
            what: String::new(),
            body: 0,
            attack: false,
            work: Work::default(),
            verdicts: vec![verdict(&[]), verdict(&[]), verdict(seen)],
            times: vec![vec![native], vec![native * 2], vec![peer]],
        };
        Figures {
            engines: vec!["native", "wasm", "libmodsecurity"],
            rows: vec![row("form-100k", native), row("form-1m", native * 13)],
            ..Figures::default()
        }
    }

    #[test]
    fn ratios_and_factors_that_miss_are_listed_and_marked() {
        let figures = figures(100, 3000, &[]);
        let document = document(&figures);
        assert_eq!(document["transactions"][0]["ratio"], json!({ "native": 30.0, "wasm": 15.0 }));
        assert_eq!(document["misses"].as_array().map(Vec::len), Some(4), "{document:#}");
        assert_eq!(document["disagreements"], json!([]));
        let table = table(&figures);
        assert!(table.contains("30.0x ") && table.contains("2.3x!") && table.contains("native 13.0!"), "{table}");
    }

    #[test]
    fn what_the_engines_do_not_agree_on_is_said() {
        let figures = figures(100, 3000, &[942_100]);
        assert_eq!(document(&figures)["disagreements"][0]["case"], "form-100k");
        assert!(table(&figures).contains("WARNING: they do not agree: libmodsecurity: passed, matched [942100]"));
    }
}
