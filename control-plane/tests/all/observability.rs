//! What the control plane tells about itself while it runs: metrics, log levels, request ids.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::cli_support::{Server, exchange, request};
use serde_json::{Value, json};
use telemetry::{CATALOGUE, MetricKind, markdown};

const LOG_LEVEL: &str = "/api/extensions/svc/waf/api/_log-level";
const RULESETS: &str = "/apis/palisade.svc/v1/waf-rulesets";

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The texts of all sources below `folder`.
fn sources(folder: &Path, texts: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, texts);
        } else if path.file_name().unwrap() != "catalogue.rs" {
            texts.push(std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn names_follow_the_convention_and_are_sorted() {
    for described in CATALOGUE {
        let name = described.name;
        assert!(name.split('_').count() >= 3 && !name.contains("__"), "{name}");
        assert!(name.starts_with("palisade_") && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
        assert_eq!(name.ends_with("_total"), described.kind == MetricKind::Counter, "{name}");
        if described.kind == MetricKind::Histogram {
            assert!(name.ends_with("_seconds") || name.ends_with("_bytes"), "{name} has no unit");
        }
        assert!(described.labels.is_sorted() && !described.help.is_empty(), "{name}");
    }
    assert!(CATALOGUE.is_sorted_by_key(|described| described.name));
}

#[test]
fn the_catalogue_has_what_the_sources_emit_and_nothing_else() {
    let mut texts = Vec::new();
    // Plugins have a side in the control plane.
    let crates = ["control-plane", "filters"].map(|folder| std::fs::read_dir(repository(folder)).unwrap());
    let crates = crates.into_iter().flatten().map(|entry| entry.unwrap().path());
    for folder in
        crates.map(|path| path.join("src")).chain([repository("control-plane/src")]).filter(|path| path.is_dir())
    {
        sources(&folder, &mut texts);
    }
    let mut emitted = BTreeSet::new();
    for text in &texts {
        for macro_name in ["counter!(", "gauge!(", "histogram!("] {
            for (at, _) in text.match_indices(macro_name) {
                let rest = text[at + macro_name.len()..].trim_start();
                if let Some(quoted) = rest.strip_prefix('"') {
                    emitted.insert(quoted.split('"').next().unwrap().to_owned());
                }
            }
        }
    }
    let known: BTreeSet<String> = CATALOGUE.iter().map(|described| described.name.to_owned()).collect();
    assert_eq!(emitted, known);
}

#[test]
fn the_document_lists_every_metric() {
    let text = std::fs::read_to_string(repository("docs/metrics.md")).unwrap();
    assert!(text.contains(&markdown()), "docs/metrics.md should have this table:\n{}", markdown());
}

/// The expressions of a dashboard, by the id of their panel.
fn queries(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get("expr").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|value| queries(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| queries(value, found)),
        _ => {}
    }
}

#[test]
fn the_dashboard_asks_for_metrics_that_exist() {
    let text = std::fs::read_to_string(repository("docs/grafana/palisade.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "each panel has an id of its own");
    let document = std::fs::read_to_string(repository("docs/metrics.md")).unwrap();
    let listed: BTreeSet<&str> = document.split('`').skip(1).step_by(2).collect();
    let mut expressions = Vec::new();
    queries(&dashboard["panels"], &mut expressions);
    assert!(expressions.len() > 20);
    for expression in &expressions {
        let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let used: Vec<&str> =
            words.filter(|word| word.starts_with("palisade_") || word.starts_with("envoy_")).collect();
        assert!(!used.is_empty(), "{expression}");
        for name in used {
            let base =
                ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
            // A label of Envoy's own begins like a metric.
            let label = name == "envoy_cluster_name" || name == "envoy_http_conn_manager_prefix";
            assert!(label || listed.contains(name) || listed.contains(base), "{name} in {expression}");
        }
    }
    // What bots are verified by is all on it.
    for bots in CATALOGUE.iter().filter(|described| described.name.starts_with("palisade_bots_")) {
        let is_asked = |expression: &String| expression.contains(&format!("{}{{", bots.name));
        assert!(expressions.iter().any(is_asked), "no panel has {}", bots.name);
    }
}

#[test]
fn what_a_run_shows_is_described() {
    let folder = tempfile::tempdir().unwrap();
    let syslog = format!("udp://127.0.0.1:{}", palisade_tests::ports::free());
    let server =
        Server::start_with(&folder.path().join("data"), &["--events-syslog", &syslog, "--events-spill-mib", "16"]);
    let (rest, key) = (&server.rest, &server.authorization);
    let get = |path: &str| request(rest, key, "GET", path, "").unwrap();
    let body = r#"{"id": "base", "name": "Base"}"#;
    assert_eq!(request(rest, key, "POST", RULESETS, body).unwrap().0, 201);
    assert_eq!(request(rest, "Basic bm9ib2R5OndvcmRz", "GET", RULESETS, "").unwrap().0, 401);
    let login = "/extensions/svc/extensions/waf/session/_login";
    assert_eq!(request(rest, "", "POST", login, r#"{"name": "a", "password": "b"}"#).unwrap().0, 401);
    assert_eq!(get("/nothing/here").0, 404);
    let (status, text) = get("/metrics");
    assert_eq!(status, 200);

    let word = |line: &str, index: usize| line.split(' ').nth(index).unwrap_or_default().to_owned();
    let helped: BTreeSet<String> = text.lines().filter(|l| l.starts_with("# HELP ")).map(|l| word(l, 2)).collect();
    let shown: BTreeMap<String, String> =
        text.lines().filter(|l| l.starts_with("# TYPE ")).map(|l| (word(l, 2), word(l, 3))).collect();
    for (name, kind) in &shown {
        let described = CATALOGUE.iter().find(|described| described.name == name);
        let expected = described.map(|described| format!("{:?}", described.kind).to_lowercase());
        assert_eq!(expected.as_deref(), Some(kind.as_str()), "{name} is in the catalogue");
        assert!(helped.contains(name), "{name} has a help text");
    }
    for line in text.lines().filter(|line| !line.starts_with('#') && line.contains('{')) {
        let (name, rest) = line.split_once('{').unwrap();
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
        let described = CATALOGUE.iter().find(|described| described.name == base || described.name == name).unwrap();
        for label in rest.split_once('}').unwrap().0.split("\",").map(|pair| pair.split('=').next().unwrap()) {
            assert!(label == "le" || described.labels.contains(&label), "{label} in {line}");
        }
    }
    // Those that need a gateway, a vendor, a feed, a database, a crawler, or TLS, are left out; the rest has a value by now.
    const ABSENT: [&str; 16] = [
        "_bots_verifications_",
        "_challenge_",
        "_bouncers_",
        "_databases_",
        "_dnsbl_",
        "_events_missed_",
        "_feeds_",
        "_xds_",
        "_link_",
        "_counts_",
        "_reports_",
        "_node_auth_",
        "_tls_",
        "_upload_",
        "_reload",
        "console_refusals",
    ];
    let absent = CATALOGUE.iter().map(|described| described.name).filter(|name| !shown.contains_key(*name));
    let unexpected: Vec<&str> = absent.filter(|name| !ABSENT.iter().any(|part| name.contains(part))).collect();
    assert!(unexpected.is_empty(), "{unexpected:?}");
    for value in ["palisade_store_queued_writes 0", "palisade_snapshot_compiles 1", "palisade_compile_problems 0"] {
        assert!(text.contains(value), "{value}: {text}");
    }
    assert!(text.contains(r#"palisade_access_refusals_total{reason="wrong"} 1"#), "{text}");
    assert!(text.contains(r#"palisade_console_logins_total{outcome="refused"} 1"#), "{text}");
}

#[test]
fn the_log_level_changes_while_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let put = |body: &str| {
        let (status, body) = request(&server.rest, &server.authorization, "PUT", LOG_LEVEL, body).unwrap();
        (status, serde_json::from_str::<Value>(&body).unwrap())
    };
    let get = || request(&server.rest, &server.authorization, "GET", LOG_LEVEL, "").unwrap();
    let info = json!({ "level": "info", "until": null, "standing": "info" });
    assert_eq!(serde_json::from_str::<Value>(&get().1).unwrap(), info);
    let log = || std::fs::read_to_string(&server.log).unwrap();
    let answered = || log().matches("answered").count();

    let before = answered();
    get();
    assert_eq!(answered(), before + 1, "requests are told at `info`");
    let (status, answer) = put(r#"{"level": "warn"}"#);
    assert_eq!((status, &answer["level"]), (200, &json!("warn")));
    let before = answered();
    get();
    assert_eq!(answered(), before, "and not at `warn`");
    let (status, answer) = put(r#"{"level": "info,api::rest=debug", "for_seconds": 600}"#);
    assert_eq!((status, &answer["standing"]), (200, &json!("warn")));
    assert!(answer["until"].as_str().unwrap().ends_with('Z'), "{answer}");
    let before = answered();
    get();
    assert_eq!(answered(), before + 1);

    for (body, pointer, what) in [
        (r#"{"level": "inof"}"#, "/level", "part 1 (`inof`, from character 1)"),
        (r#"{"level": "info,a=b"}"#, "/level", "part 2 (`a=b`, from character 6)"),
        (r#"{"level": "info", "for_seconds": 0}"#, "/for_seconds", "1 to 86400"),
        (r#"{"level": 3}"#, "/level", "expected a string"),
        (r#"{"lvl": "info"}"#, "", "unknown field"),
        (r#"{}"#, "", "missing field `level`"),
    ] {
        let (status, answer) = put(body);
        let error = &answer["errors"][0];
        assert_eq!((status, &error["message"].as_str().unwrap().contains(what)), (400, &true), "{body}: {answer}");
        if !pointer.is_empty() {
            assert_eq!(error["pointer"], pointer, "{answer}");
        }
    }
    assert_eq!(serde_json::from_str::<Value>(&get().1).unwrap()["level"], "info,api::rest=debug");
    assert_eq!(request(&server.rest, "", "GET", LOG_LEVEL, "").unwrap().0, 401);
    let events: Vec<Value> = wait_for_events(&server, "log-level", 2);
    assert_eq!(events[0]["detail"], "warn");
    assert!(events[1]["detail"].as_str().unwrap().starts_with("info,api::rest=debug until 20"), "{}", events[1]);
}

/// The audit events of this action, once there are so many.
fn wait_for_events(server: &Server, action: &str, count: usize) -> Vec<Value> {
    // The bound only keeps a failure from hanging the test.
    for _ in 0..3000 {
        let text = std::fs::read_to_string(&server.events).unwrap_or_default();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let events: Vec<Value> = events.filter(|event| event["action"] == action).collect();
        if events.len() >= count {
            return events;
        }
        #[allow(clippy::disallowed_methods, reason = "a process is waited for, in no filter")]
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Vec::new()
}

#[test]
fn a_request_is_named_in_its_answer_its_log_and_its_event() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let send = |id: &str, path: &str, body: &str| {
        let headers = [("authorization", server.authorization.as_str()), ("x-request-id", id)];
        let (status, head, _) = exchange(&server.rest, &headers, "POST", path, body).unwrap();
        assert_eq!(status, 201);
        let line = head.lines().find_map(|line| line.strip_prefix("x-request-id: ")).unwrap();
        line.to_owned()
    };
    assert_eq!(send("ticket-4711.a_b", RULESETS, r#"{"id": "a", "name": "A"}"#), "ticket-4711.a_b");
    let made = send("no token", RULESETS, r#"{"id": "b", "name": "B"}"#);
    assert_eq!(made.len(), 36, "{made}");
    let long = "x".repeat(129);
    assert_ne!(send(&long, RULESETS, r#"{"id": "c", "name": "C"}"#), long);
    let events = wait_for_events(&server, "create", 3);
    assert_eq!((&events[0]["request_id"], &events[1]["request_id"]), (&json!("ticket-4711.a_b"), &json!(made)));
    let log = std::fs::read_to_string(&server.log).unwrap();
    assert!(log.lines().any(|line| line.contains("ticket-4711.a_b") && line.contains("answered")), "{log}");
}
