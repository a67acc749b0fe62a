//! The recordings in `tests/traffic`, replayed as users do it, against the reports that are checked in.
//!
//! `PALISADE_BLESS=1` writes the reports anew; read the difference before it is committed.

use crate::kit;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const RECORDINGS: [&str; 3] = ["tap-json", "tap-proto", "browser.har"];

fn root() -> PathBuf {
    kit::own("../..").canonicalize().unwrap()
}

fn filters() -> PathBuf {
    std::env::var_os("PALISADE_FILTERS").map_or_else(|| kit::own("../../target/filters"), PathBuf::from)
}

fn palisade() -> PathBuf {
    std::env::var_os("PALISADE_BIN").map_or_else(|| kit::own("../../target/debug/palisade"), PathBuf::from)
}

/// A report without what the real clock and the build say.
fn replay(recording: &str, engine: &str, more: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_palisade-replay"))
        .current_dir(root())
        .env("PALISADE_BIN", palisade())
        .args(["run", "--format", "json", "--engine", engine, "--entities", "tests/traffic/entities", "--filter"])
        .arg(filters().join("preset.wasm"))
        .args(["--traffic", &format!("tests/traffic/{recording}")])
        .args(more)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
    report["about"]["facts"] = Value::Null;
    report["totals"]["timing"] = Value::Null;
    for row in report["requests"].as_array_mut().unwrap() {
        row["micros"] = 0.into();
    }
    report
}

/// The report with a request on each line, as differences are read.
fn lines(report: &Value) -> String {
    let mut rest = report.clone();
    let requests: Vec<String> = rest["requests"].take().as_array().unwrap().iter().map(Value::to_string).collect();
    format!("{rest:#}\n{}\n", requests.join("\n"))
}

#[test]
fn recordings_give_the_reports_that_are_checked_in() {
    let bless = std::env::var_os("PALISADE_BLESS").is_some();
    for recording in RECORDINGS {
        let report = lines(&replay(recording, "wasm", &[]));
        let golden = root().join("tests/traffic/expected").join(format!("{recording}.txt"));
        if bless {
            std::fs::write(&golden, &report).unwrap();
        }
        let expected = std::fs::read_to_string(&golden).unwrap();
        let first = report.lines().zip(expected.lines()).find(|(one, other)| one != other);
        assert!(report == expected, "{}: {first:#?}", Path::new(recording).display());
        assert_eq!(lines(&replay(recording, "native", &[])), expected, "{recording}: native says otherwise");
    }
}

/// Fields of rows that a real gateway shares with the others.
fn verdicts(report: &Value) -> Vec<String> {
    let rows = report["requests"].as_array().unwrap().iter();
    let fields = ["id", "effect", "status", "action", "score", "rules"];
    rows.map(|row| fields.map(|field| row[field].to_string()).join(" ")).collect()
}

#[test]
fn a_real_gateway_says_the_same() {
    for recording in ["tap-json", "browser.har"] {
        let (gateway, native) =
            (verdicts(&replay(recording, "envoy", &[])), verdicts(&replay(recording, "native", &[])));
        // A path with an escaped slash never gets to the filters: the listener refuses it.
        let refused = |line: &String| line.starts_with("\"tests/traffic/tap-json/request_12.json#1\"");
        let at_the_edge: Vec<&String> = gateway.iter().filter(|line| refused(line)).collect();
        assert!(at_the_edge.iter().all(|line| line.contains("\"blocked\" 400 \"none\"")), "{at_the_edge:?}");
        assert_eq!(at_the_edge.len(), usize::from(recording == "tap-json"));
        let judged = |lines: &[String]| lines.iter().filter(|line| !refused(line)).cloned().collect::<Vec<_>>();
        assert_eq!(judged(&gateway), judged(&native), "{recording}");
    }
}

/// The two formats of the tap filter hold the same requests.
#[test]
fn formats_do_not_matter() {
    let without_id = |report: &Value| -> Vec<String> {
        verdicts(report).iter().map(|verdict| verdict.split_once(' ').unwrap().1.to_owned()).collect()
    };
    assert_eq!(without_id(&replay("tap-json", "native", &[])), without_id(&replay("tap-proto", "native", &[])));
}
