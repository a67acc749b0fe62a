use kit::Settings as _;
use serde_json::{Value, json};

use super::*;
use crate::breached::Digest;
use crate::{Endpoint, EndpointKind};

fn read(config: Value) -> Result<LoginGuardConfig, Vec<FieldProblem>> {
    LoginGuardConfig::read(config.as_object().unwrap())
}

fn pointers(config: Value) -> Vec<String> {
    read(config).unwrap_err().into_iter().map(|problem| problem.pointer).collect()
}

#[test]
fn the_defaults_are_those_of_the_page() {
    let config = read(json!({})).unwrap();
    let step = config.step().unwrap();
    let limits = step.limits.unwrap();
    assert_eq!((step.endpoints.len(), step.methods.as_slice()), (0, &["POST".to_owned()][..]));
    assert_eq!((step.failure_statuses.as_slice(), step.window_millis), (&[401, 403][..], 900_000));
    assert_eq!((limits.source_failures, limits.source_accounts), (20, 10));
    assert_eq!((limits.account_failures, limits.account_sources, limits.takeover_accounts), (10, 5, 3));
    let weights =
        [limits.stuffing_weight, limits.spraying_weight, limits.account_attack_weight, limits.takeover_weight];
    assert_eq!((weights, limits.breached_weight), ([50.0, 70.0, 40.0, 80.0], 20.0));
    assert_eq!((step.body_limit, step.failure_marker.as_str(), step.realm.as_str()), (65_536, "", ""));
    assert_eq!((step.username_fields.len(), step.password_fields.len(), config.breached_passwords), (8, 4, false));
}

#[test]
fn paths_become_patterns() {
    let config = json!({ "login_paths": [
        "/login", "/api/v1.0/auth*", { "path": "/signup", "kind": "registration" }, { "path": "/reset", "kind": "reset" }, { "path": "/a" },
    ] });
    let endpoints = read(config).unwrap().step().unwrap().endpoints;
    let patterns: Vec<&str> = endpoints.iter().map(|endpoint| endpoint.pattern.as_str()).collect();
    assert_eq!(
        patterns,
        [
            r"^/login(?:\.[A-Za-z0-9]{1,8})?/?$",
            r"^/api/v1\.0/auth",
            r"^/signup(?:\.[A-Za-z0-9]{1,8})?/?$",
            r"^/reset(?:\.[A-Za-z0-9]{1,8})?/?$",
            r"^/a(?:\.[A-Za-z0-9]{1,8})?/?$"
        ]
    );
    let paths: Vec<&str> = endpoints.iter().map(|endpoint| endpoint.path.as_str()).collect();
    assert_eq!(paths, ["/login", "/api/v1.0/auth", "/signup", "/reset", "/a"]);
    let kinds: Vec<EndpointKind> = endpoints.iter().map(Endpoint::kind).collect();
    assert_eq!(kinds[1..4], [EndpointKind::Login, EndpointKind::Registration, EndpointKind::Reset]);
}

#[test]
fn each_fault_has_its_pointer() {
    let wrong = json!({
        "login_paths": ["login", "/a?b", "/a*b", 7, { "path": "x" }, { "path": "/a", "kind": "logout" }, { "paths": "/a" }],
        "methods": [], "username_fields": [""], "password_fields": vec!["x"; 65], "failure_statuses": [99],
        "failure_marker": "x".repeat(257), "realm": "x".repeat(257), "window_seconds": 59,
        "source_failures": 0, "source_accounts": 129, "account_failures": 33, "account_sources": 0,
        "stuffing_weight": 101, "spraying_weight": -1, "account_attack_weight": 101, "takeover_accounts": 0,
        "takeover_weight": 101, "breached_weight": 101, "body_limit": 1023,
    });
    let expected = [
        "/login_paths/0",
        "/login_paths/1",
        "/login_paths/2",
        "/login_paths/3",
        "/login_paths/4/path",
        "/login_paths/5/kind",
        "/login_paths/6/paths",
        "/methods",
        "/username_fields/0",
        "/password_fields",
        "/failure_statuses/0",
        "/failure_marker",
        "/realm",
        "/window_seconds",
        "/source_failures",
        "/source_accounts",
        "/account_failures",
        "/account_sources",
        "/stuffing_weight",
        "/spraying_weight",
        "/account_attack_weight",
        "/takeover_accounts",
        "/takeover_weight",
        "/breached_weight",
        "/body_limit",
    ];
    assert_eq!(pointers(wrong), expected);
    assert_eq!(pointers(json!({ "login_path": [] })), ["/login_path"]);
    assert_eq!(pointers(json!({ "login_paths": vec!["/a"; 65] })), ["/login_paths"]);
}

#[test]
fn a_preset_lays_it_down_with_its_paths() {
    let laid_down = |fields: Value| PLUGIN.preset.lay_down.unwrap()(fields.as_object().unwrap());
    assert_eq!(laid_down(json!({ "login_paths": ["/login"] })).unwrap().0, None);
    let config = laid_down(json!({ "login": true, "login_paths": ["/login"] })).unwrap().0;
    assert_eq!(config, Some(json!({ "login_paths": ["/login"] })));
    assert_eq!(laid_down(json!({ "login_paths": ["login"] })).unwrap_err().pointer, "/login_paths/0");
    assert_eq!(laid_down(json!({ "login": 1 })).unwrap_err().pointer, "/login");
}

#[test]
fn settings_have_defaults_and_limits() {
    let defaults = LoginSettings::default();
    assert_eq!(
        (defaults.check(), defaults.has_source(), defaults.wait_millis, defaults.timeout_millis),
        (vec![], false, 200, 5_000)
    );
    let wrong = LoginSettings {
        breached_file: "breached.txt".to_owned(),
        breached_url: "ftp://x".to_owned(),
        wait_millis: 0,
        timeout_millis: 99,
        ..LoginSettings::default()
    };
    let pointers: Vec<String> = wrong.check().into_iter().map(|problem| problem.pointer).collect();
    assert_eq!(pointers, ["/breached_file", "/breached_url", "/wait_millis", "/timeout_millis"]);
}

/// Hashes as a list has them, sorted.
fn hashes(count: u32) -> Vec<[u8; 20]> {
    let mut hashes: Vec<[u8; 20]> = (0..count)
        .map(|number| {
            use sha1::Digest as _;
            sha1::Sha1::digest(number.to_le_bytes()).into()
        })
        .collect();
    hashes.sort_unstable();
    hashes
}

#[test]
fn ranges_of_a_file_are_found_by_halves() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("list.txt");
    let hashes = hashes(5_000);
    let line =
        |(hash, number): (&[u8; 20], usize)| format!("{}:{}\r\n", snapshot::hex(hash).to_uppercase(), number * number);
    std::fs::write(&file, hashes.iter().zip(1..).map(line).collect::<String>()).unwrap();
    let found = |prefix| corpus::of_file(&file, prefix).unwrap();
    for hash in hashes.iter().step_by(97).chain([&hashes[0], &hashes[4_999]]) {
        let digest = Digest::of_hash(hash);
        let same = hashes.iter().filter(|other| Digest::of_hash(*other).prefix == digest.prefix).count();
        let range = found(digest.prefix);
        assert_eq!(range.len(), 8 * same);
        assert!(range.chunks(8).any(|suffix| suffix == digest.suffix));
    }
    let absent = (0..1 << 20).find(|prefix| hashes.iter().all(|hash| Digest::of_hash(hash).prefix != *prefix)).unwrap();
    assert_eq!((found(absent), found((1 << 20) - 1)), (vec![], vec![]));
    assert!(corpus::of_file(&folder.path().join("none"), 1).is_err() && corpus::of_file(folder.path(), 1).is_err());
    for odd in ["", "\n\n", "no hash\n", &"x".repeat(10_000)] {
        std::fs::write(&file, odd).unwrap();
        // Nothing is found in it, or it is no list.
        assert!(corpus::of_file(&file, 1).is_ok_and(|found| found.is_empty()) || !odd.is_empty());
    }
}

#[test]
fn answers_of_an_address_are_read_without_their_padding() {
    let digest = Digest::of(b"hunter2");
    let rest = |text: &[u8]| {
        use sha1::Digest as _;
        snapshot::hex(&sha1::Sha1::digest(text))[5..].to_uppercase()
    };
    let body = format!("{}:3\r\n{}:0\r\nno line\r\n\u{ff}:1\n", rest(b"hunter2"), rest(b"padding"));
    assert_eq!(corpus::of_answer(body.as_bytes(), digest.prefix), digest.suffix);
    assert_eq!(corpus::of_answer(b"", 1), [] as [u8; 0]);
}
