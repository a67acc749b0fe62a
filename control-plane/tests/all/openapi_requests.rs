//! Made-up requests against a running control plane: every answer is one that its OpenAPI document describes.
//!
//! schemathesis makes them up from the document, right ones and wrong ones: `make schemathesis` installs it. Which of its
//! checks are left out, and why, stands in `tests/openapi/schemathesis.toml`. `PALISADE_API_SEED` and
//! `PALISADE_API_SECONDS` take other requests, and more of them, than every run of the tests does, and those of every collection.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli_support::{Server, exchange, run_with, text};
use serde_json::Value;

/// The collections that every run of the tests asks: all are served by the same code, and these differ most in shape.
const SAMPLE: [&str; 4] = ["routes", "waf-configs", "threat-policies", "global-config"];
/// Those of them that are not asked with a session as well: the same handlers answer there.
const BY_KEY_ALONE: [&str; 3] = ["routes", "threat-policies", "global-config"];

const PASSWORD: &str = "correct horse battery";

/// The folder of the virtual environment's programs.
fn tools() -> PathBuf {
    let given = std::env::var_os("PALISADE_SCHEMATHESIS").map(PathBuf::from);
    let folder =
        given.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache/schemathesis")).join("bin");
    assert!(folder.join("st").exists(), "schemathesis is not at {}: run `make schemathesis`", folder.display());
    folder
}

/// A control plane with two operators: who logs out must not end, by too many sessions, what the other works with.
fn start(folder: &Path) -> Server {
    let data = folder.join("data");
    let server = Server::start(&data);
    let data = data.to_str().unwrap();
    for name in ["alice", "bob"] {
        let arguments = ["operator", "add", name, "--email", "someone@example.com", "--data", data];
        let added = run_with(&arguments, &format!("{PASSWORD}\n"));
        assert!(added.status.success(), "{}", text(&added.stderr));
    }
    server
}

/// The paths that are not asked.
fn left_out() -> String {
    let names = entities::registry::KINDS.iter().map(|kind| kind.collection).filter(|name| !SAMPLE.contains(name));
    let (names, by_key) = (names.collect::<Vec<_>>().join("|"), BY_KEY_ALONE.join("|"));
    format!("/({names})(/|$)|/entities/({by_key})(/|$)")
}

#[test]
fn the_document_is_openapi() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let (status, _, document) = exchange(&server.rest, &[], "GET", "/openapi.json", "").unwrap();
    assert_eq!(status, 200);
    let file = folder.path().join("openapi.json");
    std::fs::write(&file, document).unwrap();
    let checked = Command::new(tools().join("openapi-spec-validator")).arg(&file).output().unwrap();
    assert!(checked.status.success(), "{}{}", text(&checked.stdout), text(&checked.stderr));
}

#[test]
fn every_answer_is_one_that_the_document_describes() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let login = format!(r#"{{"name": "alice", "password": "{PASSWORD}"}}"#);
    let path = "/extensions/svc/extensions/waf/session/_login";
    let (status, head, body) = exchange(&server.rest, &[], "POST", path, &login).unwrap();
    assert_eq!(status, 200, "{body}");
    let session = head.split("palisade_session=").nth(1).unwrap().split(';').next().unwrap();
    let body: Value = serde_json::from_str(&body).unwrap();
    let key = std::fs::read(folder.path().join("data/admin-key.json")).unwrap();
    let key: Value = serde_json::from_slice(&key).unwrap();

    let setting = |name: &str, otherwise: &str| std::env::var(name).unwrap_or_else(|_| otherwise.to_owned());
    let report = folder.path().join("report.json");
    let mut command = Command::new(tools().join("st"));
    command
        .args(["--config-file", "schemathesis.toml", "run", "--no-color", "--output-truncate", "true"])
        .args(["--seed", &setting("PALISADE_API_SEED", "1"), "--report", "json", "--report-json-path"])
        .arg(&report)
        .arg(format!("http://{}/openapi.json", server.rest));
    match std::env::var("PALISADE_API_SECONDS") {
        Ok(seconds) => command.args(["--max-time", &seconds]),
        Err(_) => command.args(["--max-examples", "3", "--exclude-path-regex", &left_out()]),
    };
    let done = command
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openapi"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("HYPOTHESIS_STORAGE_DIRECTORY", folder.path().join("hypothesis"))
        .env("PALISADE_URL", format!("http://{}", server.rest))
        .env("PALISADE_KEY_ID", key["id"].as_str().unwrap())
        .env("PALISADE_KEY_SECRET", key["secret"].as_str().unwrap())
        .env("PALISADE_SESSION", session)
        .env("PALISADE_CSRF", body["csrf_token"].as_str().unwrap())
        .env("PALISADE_OPERATOR", "bob")
        .env("PALISADE_PASSWORD", PASSWORD)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}{}", text(&done.stdout), text(&done.stderr));

    // That nothing was found must not be because nothing was asked.
    let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    let count = |pointer: &str| report.pointer(pointer).and_then(Value::as_u64).unwrap();
    assert!(count("/operations/tested") > 80 && count("/operations/tested") == count("/operations/selected"));
    assert!(count("/test_cases/generated") > 3_000, "{}", count("/test_cases/generated"));
    let asked_in_vain = &report["warnings"]["missing_auth"];
    assert_eq!(asked_in_vain.as_array().map(Vec::len), Some(0), "the credentials did not hold: {asked_in_vain}");
    for phase in ["coverage", "fuzzing", "stateful"] {
        assert_eq!(report["phases"][phase]["status"], "success", "{phase}");
    }
}
