//! `palisade-replay` as the child of another program: its limits, its end, its progress.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;

fn record(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_palisade-replay"));
    command.arg("record").args(arguments).stdin(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn line(number: u64) -> String {
    json!({ "at": number, "request": { "path": format!("/{:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) } })
        .to_string()
        + "\n"
}

#[test]
fn it_ends_as_soon_as_its_input_does() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to.jsonl");
    let mut child =
        record(&["--listen", "127.0.0.1:0", "--to", to.to_str().unwrap(), "--end-with-input"]).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("listening"), "{first}");
    assert!(child.try_wait().unwrap().is_none());
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
fn progress_comes_in_lines_of_json() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from.jsonl"), folder.path().join("to.jsonl"));
    std::fs::write(&from, line(7) + "broken\n" + &line(9)).unwrap();
    let arguments =
        ["--from", from.to_str().unwrap(), "--to", to.to_str().unwrap(), "--progress-lines", "--background"];
    let output = record(&arguments).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let told: Vec<Value> = said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(
        told,
        [json!({ "progress": { "recorded": 2, "bad": 1, "first": 7, "last": 9, "unrouted": 2 } })],
        "{said}"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn limits_end_it() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to.jsonl");
    for (limit, signal) in [("--max-file-mib", SIGXFSZ), ("--max-cpu-seconds", SIGXCPU)] {
        let mut child = record(&["--from", "-", "--to", to.to_str().unwrap(), "--force", limit, "1"]).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        // Until it has ended.
        let written = (0..).try_for_each(|number| input.write_all(line(number).as_bytes()));
        assert!(written.is_err());
        assert_eq!(child.wait().unwrap().signal(), Some(signal), "{limit}");
    }
    let output =
        record(&["--from", "nothing", "--to", to.to_str().unwrap(), "--max-memory-mib", "1"]).output().unwrap();
    assert!(!output.status.success());
}
