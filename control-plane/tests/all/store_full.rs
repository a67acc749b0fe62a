//! A volume that is full: writes are refused, and what was acknowledged is still there.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cli_support::{exchange, request};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const BASE: &str = "/apis/palisade.svc/v1/waf-rulesets";

/// Serves from a volume of 2 MiB in a mount namespace of its own until killed, then again with room.
const SCRIPT: &str = r#"
mount -t tmpfs -o size=2m tmpfs "$2" || exit 42
"$1" serve --listen 127.0.0.1:0 --xds-listen 127.0.0.1:0 --data "$2/data" --ready-file "$3"
mount -o remount,size=8m "$2"
exec "$1" serve --listen 127.0.0.1:0 --xds-listen 127.0.0.1:0 --data "$2/data" --ready-file "$4"
"#;

/// The whole group of processes; killed when dropped.
struct Group(std::process::Child);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-s", "KILL", "--", &format!("-{}", self.0.id())]).status();
        let _ = self.0.wait();
    }
}

/// Waits for the ready file; `None` when there can be no such volume here.
fn ready(group: &mut Group, file: &Path, log: &Path) -> Option<Value> {
    // The bound only keeps a hanging start from hanging the test.
    for _ in 0..3000 {
        if let Ok(text) = std::fs::read(file) {
            return Some(serde_json::from_slice(&text).unwrap());
        }
        if let Some(status) = group.0.try_wait().unwrap() {
            let said = std::fs::read_to_string(log).unwrap();
            assert!(status.code() == Some(42) || said.contains("unshare"), "ended with {status}: {said}");
            return None;
        }
        #[allow(clippy::disallowed_methods, reason = "a process is waited for, in no filter")]
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("did not get ready: {}", std::fs::read_to_string(log).unwrap());
}

#[test]
fn a_full_volume_is_507_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (volume, log) = (at("volume"), at("log"));
    std::fs::create_dir(&volume).unwrap();
    let child = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", SCRIPT, "sh", env!("CARGO_BIN_EXE_palisade")])
        .args([&volume, &at("first"), &at("second")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log).unwrap())
        .process_group(0)
        .spawn();
    let Ok(child) = child else {
        return eprintln!("not tested: there is no `unshare` here");
    };
    let mut group = Group(child);
    let Some(first) = ready(&mut group, &at("first"), &log) else {
        return eprintln!("not tested: no volume of its own may be mounted here");
    };
    let rest = first["rest"].as_str().unwrap();
    let inside = PathBuf::from(format!("/proc/{}/root{}", first["pid"], volume.display()));
    let key: Value = serde_json::from_slice(&std::fs::read(inside.join("data/admin-key.json")).unwrap()).unwrap();
    let pair = format!("{}:{}", key["id"].as_str().unwrap(), key["secret"].as_str().unwrap());
    let authorization = format!("Basic {}", STANDARD.encode(pair));
    let entity = |id: String, size: usize| json!({ "id": id, "description": "x".repeat(size) });

    let mut kept = BTreeSet::new();
    let (mut refused, mut number) = (0, 0);
    // Ever smaller ones, until not even the smallest has room.
    for size in [60_000, 9_000, 1_000] {
        loop {
            assert!(number < 3000, "the volume never was full");
            number += 1;
            let (id, body) = (format!("r{number}"), entity(format!("r{number}"), size).to_string());
            let (status, text) = request(rest, &authorization, "POST", BASE, &body).unwrap();
            if status != 201 {
                assert_eq!(status, 507, "{text}");
                assert!(text.contains("insufficient_storage") && text.contains("nothing was written"), "{text}");
                refused += 1;
                break;
            }
            kept.insert(id);
        }
    }
    assert_eq!(refused, 3);
    let lines: String = (0..20).map(|index| format!("{}\n", entity(format!("bulk{index}"), 9_000))).collect();
    let headers = [("authorization", authorization.as_str()), ("content-type", "application/x-ndjson")];
    let (_, _, text) = exchange(rest, &headers, "POST", &format!("{BASE}/_bulk"), &lines).unwrap();
    assert_eq!(text.matches("\"status\":507").count(), 20, "{text}");
    // Reading goes on.
    assert_eq!(ids(rest, &authorization), kept);

    let killed = Command::new("kill").args(["-s", "KILL", &first["pid"].to_string()]).status().unwrap();
    assert!(killed.success());
    let second = ready(&mut group, &at("second"), &log).unwrap();
    let rest = second["rest"].as_str().unwrap();
    assert_eq!(ids(rest, &authorization), kept, "after a crash on a full volume");
    let again = entity("again".to_owned(), 60_000).to_string();
    assert_eq!(request(rest, &authorization, "POST", BASE, &again).unwrap().0, 201);
}

fn ids(rest: &str, authorization: &str) -> BTreeSet<String> {
    let (status, text) = request(rest, authorization, "GET", BASE, "").unwrap();
    assert_eq!(status, 200, "{text}");
    let list: Vec<Value> = serde_json::from_str(&text).unwrap();
    list.iter().map(|entity| entity["id"].as_str().unwrap().to_owned()).collect()
}
