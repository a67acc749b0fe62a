//! What operators may do by their role: every described operation with every role, and the ways around.

use accounts::Role;
use api::names::NAMESPACE;
use serde_json::{Value, json};

use crate::console_support::{ConsoleApi, Login};
use crate::entities_support::Answer;

/// An operator of each role.
const OPERATORS: [(Role, &str); 3] = [(Role::Viewer, "victor"), (Role::Analyst, "anna"), (Role::Admin, "alice")];

/// What changes something or might, and is open to viewers.
const POSTS_OF_VIEWERS: [&str; 18] = [
    "/learning/_report",
    "/query-guard/_operations",
    "/reputation/_geo",
    "/reputation/_lookup",
    "/security/_fingerprints",
    "/security/_ledger",
    "/security/_robots_txt",
    "/session/_logout",
    "/session/_passkey_add",
    "/session/_passkey_begin",
    "/session/_passkey_confirm_begin",
    "/session/_passkey_remove",
    "/session/_password",
    "/session/_revoke",
    "/session/_revoke_others",
    "/session/_second_factor_confirm",
    "/session/_second_factor_enrol",
    "/session/_second_factor_remove",
];
/// The same for analysts, but for batches of entities.
const POSTS_OF_ANALYSTS: [&str; 22] = [
    "/learning/_discard",
    "/learning/_start",
    "/learning/_stop",
    "/replay/_cancel",
    "/replay/_delete",
    "/replay/_record_events",
    "/replay/_start",
    "/replay/_upload",
    "/reputation/_template",
    "/security/_allow",
    "/security/_ban",
    "/security/_challenge_from_preset",
    "/security/_contract_check",
    "/security/_disallow",
    "/security/_extend",
    "/security/_incident_state",
    "/security/_simulate",
    "/security/_unban",
    "/tuning/_preview",
    "/tuning/_propose",
    "/utils/_compile",
    "/utils/_test",
];

/// The operations of the console that need a session: method, path below the namespace as described, role.
async fn operations(console: &ConsoleApi) -> Vec<(String, String, Role)> {
    let request = axum::http::Request::builder().uri("/openapi.json").body(axum::body::Body::empty()).unwrap();
    let document = console.api.send(request).await.body;
    let mut operations = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let Some(below) = path.strip_prefix(NAMESPACE) else { continue };
        for (method, operation) in methods.as_object().unwrap() {
            // One pattern has all collections: two of them stand for the rest. The stream has no end.
            let collection = below.strip_prefix("/entities/").and_then(|below| below.split('/').next());
            let left_out =
                collection.is_some_and(|name| !name.starts_with('_') && !["routes", "global-config"].contains(&name));
            if operation["security"] == json!([]) || left_out || below == "/events/_live" {
                continue;
            }
            let role = operation["x-palisade-role"].as_str().unwrap_or_else(|| panic!("{method} {path} has no role"));
            operations.push((method.to_uppercase(), below.to_owned(), role.parse().unwrap()));
        }
    }
    operations
}

fn filled(path: &str) -> String {
    path.split('/').map(|part| if part.starts_with('{') { "x" } else { part }).collect::<Vec<_>>().join("/")
}

async fn ask(console: &ConsoleApi, login: &Login, method: &str, path: &str) -> Answer {
    let headers = [("cookie", login.cookie.as_str()), ("x-csrf-token", login.csrf.as_str())];
    console.send(method, path, &headers, None).await
}

/// Whether an answer says that the role is too low. A HEAD has no body.
fn is_refused(answer: &Answer) -> bool {
    answer.status == 403 && (answer.text.is_empty() || answer.body["error"] == "role")
}

#[tokio::test]
async fn every_operation_needs_the_role_that_it_is_described_with() {
    let console = ConsoleApi::new().await;
    let operations = operations(&console).await;
    assert!(operations.len() > 100, "{}", operations.len());
    for (role, name) in OPERATORS {
        let mut login = console.login(name).await;
        for (method, path, needed) in &operations {
            let place = format!("{name}: {method} {path}");
            // Without it batches need more than they are described with; another test looks at that.
            let dry_run = if path.ends_with("/_bulk") || path.ends_with("/_import") { "?dry_run=true" } else { "" };
            let path = format!("{}{dry_run}", filled(path));
            let answer = ask(&console, &login, method, &path).await;
            assert_ne!(answer.status, 401, "{place}: {}", answer.text);
            assert_eq!(is_refused(&answer), role < *needed, "{place}: {} {}", answer.status, answer.text);
            if method == "GET" {
                let head = ask(&console, &login, "HEAD", &path).await;
                assert_eq!(is_refused(&head), role < *needed, "{place}: {}", head.status);
            }
            if path == "/session/_logout" {
                login = console.login(name).await;
            }
        }
    }
}

#[tokio::test]
async fn other_spellings_and_methods_lead_no_further() {
    let console = ConsoleApi::new().await;
    let operations = operations(&console).await;
    let login = console.login("victor").await;
    for (method, path, needed) in operations.iter().filter(|(_, _, needed)| *needed > Role::Viewer) {
        let path = filled(path);
        let (parent, last) = path.rsplit_once('/').unwrap();
        let encoded = format!("%{:02X}{}", last.as_bytes()[0], &last[1..]);
        for other in [
            format!("{path}/"),
            format!("{parent}//{last}"),
            format!("{parent}/{encoded}"),
            format!("{parent}/./{last}"),
            format!("{parent}/x/../{last}"),
            format!("{parent}/{last};x"),
            format!("{parent}/{}", last.to_uppercase()),
        ] {
            let answer = ask(&console, &login, method, &other).await;
            assert!(!answer.status.is_success() || path == other, "{method} {other} ({needed}): {}", answer.text);
        }
        for other in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"] {
            let described = |method: &str| operations.iter().any(|(own, at, _)| own == method && filled(at) == path);
            if !described(other) {
                let answer = ask(&console, &login, other, &path).await;
                assert!([403, 404, 405].contains(&answer.status.as_u16()), "{other} {path}: {}", answer.status);
            }
        }
        // A method that a proxy or a framework might take from a header does not count.
        let headers = [
            ("cookie", login.cookie.as_str()),
            ("x-csrf-token", login.csrf.as_str()),
            ("x-http-method-override", "GET"),
            ("x-original-url", "/extensions/svc/extensions/waf/session/_me"),
        ];
        assert_eq!(console.send(method, &path, &headers, None).await.status, 403, "{method} {path}");
    }
}

#[tokio::test]
async fn viewers_and_analysts_have_these_and_no_others() {
    let console = ConsoleApi::new().await;
    let operations = operations(&console).await;
    let of = |role: Role| {
        let own = operations
            .iter()
            .filter(|(method, path, needed)| method != "GET" && *needed == role && !path.starts_with("/entities/"));
        let mut paths: Vec<&str> = own.map(|(_, path, _)| path.as_str()).collect();
        paths.sort_unstable();
        paths
    };
    assert_eq!(of(Role::Viewer), POSTS_OF_VIEWERS);
    assert_eq!(of(Role::Analyst), POSTS_OF_ANALYSTS);
    for (method, path, needed) in operations.iter().filter(|(_, path, _)| path.starts_with("/entities/")) {
        let expected = match method.as_str() {
            "GET" => Role::Viewer,
            _ if path.ends_with("/_bulk") || path.ends_with("/_import") => Role::Analyst,
            _ => Role::Admin,
        };
        assert_eq!(*needed, expected, "{method} {path}");
    }
    let reads = operations.iter().filter(|(method, _, needed)| method == "GET" && *needed > Role::Viewer);
    let reads: Vec<&str> = reads.map(|(_, path, _)| path.as_str()).collect();
    assert_eq!(reads, ["/operators/_list", "/operators/_sessions", "/keys/_list"]);
}

#[tokio::test]
async fn an_analyst_has_batches_checked_and_not_written() {
    let console = ConsoleApi::new().await;
    let login = console.login("anna").await;
    let send = async |path: &str| {
        let request = axum::http::Request::builder().method("POST").uri(format!("{NAMESPACE}{path}"));
        let request = request.header("cookie", &login.cookie).header("x-csrf-token", &login.csrf);
        let body = "{\"id\": \"a\"}\n";
        let request = request.header("content-type", "application/x-ndjson").body(body.into()).unwrap();
        console.api.send(request).await
    };
    let checked = send("/entities/waf-rulesets/_bulk?dry_run=true").await;
    assert_eq!(checked.status, 200, "{}", checked.text);
    for query in ["", "?dry_run=false", "?dry_run=true&dry_run=false", "?dry_run=0", "?atomic=true"] {
        let answer = send(&format!("/entities/waf-rulesets/_bulk{query}")).await;
        assert!(is_refused(&answer) || answer.status == 400, "{query}: {} {}", answer.status, answer.text);
    }
    assert_eq!(send("/entities/_bulk").await.status, 403);
    let count = console.get(&login, "/entities/waf-rulesets/_count").await;
    assert_eq!(count.body["count"], 0, "nothing was written");
}

#[tokio::test]
async fn a_viewer_reads_the_ledger_and_does_not_clear_it() {
    let console = ConsoleApi::new().await;
    let (victor, anna) = (console.login("victor").await, console.login("anna").await);
    assert_eq!(console.post(&victor, "/security/_ledger", &json!({})).await.body["done"], true);
    let forget = json!({ "ref": "ip:192.0.2.1", "forget": true });
    assert!(is_refused(&console.post(&victor, "/security/_ledger", &forget).await));
    assert_eq!(console.post(&anna, "/security/_ledger", &forget).await.body["done"], true);
}

#[tokio::test]
async fn a_refusal_is_in_the_audit_and_names_the_roles() {
    let console = ConsoleApi::new().await;
    let login = console.login("victor").await;
    let ban = json!({ "ref": "ip:192.0.2.1" });
    let refused = console.post(&login, "/security/_ban", &ban).await;
    assert_eq!(refused.body["error_description"], "this needs the role `analyst`; yours is `viewer`");
    let events = console.events().await;
    let event = events.iter().find(|event| event["action"] == "role-refused").unwrap();
    assert_eq!((&event["user"]["name"], &event["source"]["ip"]), (&json!("victor"), &json!("192.0.2.1")));
    assert!(event["detail"].as_str().unwrap().contains("/security/_ban: needs `analyst`, has `viewer`"), "{event}");
}

#[tokio::test]
async fn a_role_holds_from_the_next_request_on() {
    let console = ConsoleApi::new().await;
    let (alice, anna) = (console.login("alice").await, console.login("anna").await);
    let changed = console.post(&alice, "/operators/_role", &json!({ "name": "Anna", "role": "viewer" })).await;
    assert_eq!(
        (&changed.body["operator"]["role"], changed.status.as_u16()),
        (&json!("viewer"), 200),
        "{}",
        changed.text
    );
    assert_eq!(console.get(&anna, "/session/_me").await.status, 401, "her sessions have ended");
    let anna = console.login("anna").await;
    assert_eq!(console.get(&anna, "/session/_me").await.body["operator"]["role"], "viewer");
    assert!(is_refused(&console.post(&anna, "/security/_ban", &json!({ "ref": "ip:192.0.2.1" })).await));
    // The same role again changes nothing.
    let again = console.post(&alice, "/operators/_role", &json!({ "name": "anna", "role": "viewer" })).await;
    assert_eq!(again.status, 200);
    assert_eq!(console.get(&anna, "/session/_me").await.status, 200);
    let events = console.events().await;
    let changes: Vec<&Value> = events.iter().filter(|event| event["action"] == "operator-role").collect();
    assert_eq!((changes.len(), &changes[0]["ref"]), (1, &json!("operators/anna")));
    assert_eq!((&changes[0]["detail"], &changes[0]["user"]["name"]), (&json!("analyst to viewer"), &json!("alice")));
}

#[tokio::test]
async fn the_last_admin_stays() {
    let console = ConsoleApi::new().await;
    let alice = console.login("alice").await;
    assert_eq!(console.post(&alice, "/operators/_remove", &json!({ "name": "bob" })).await.status, 200);
    for (path, body) in [
        ("/operators/_remove", json!({ "name": "alice" })),
        ("/operators/_role", json!({ "name": "alice", "role": "analyst" })),
    ] {
        let refused = console.post(&alice, path, &body).await;
        assert_eq!((refused.status.as_u16(), &refused.body["error"]), (409, &json!("last_admin")), "{}", refused.text);
    }
    assert_eq!(console.get(&alice, "/session/_me").await.status, 200);
    let unknown = console.post(&alice, "/operators/_remove", &json!({ "name": "missing" })).await;
    assert_eq!((unknown.status.as_u16(), &unknown.body["error"]), (404, &json!("unknown_operator")));
    // Two admins who demote each other at once: one of them stays.
    let promoted = console.post(&alice, "/operators/_role", &json!({ "name": "anna", "role": "admin" })).await;
    assert_eq!(promoted.status, 200, "{}", promoted.text);
    let anna = console.login("anna").await;
    let demote = |name: &str| json!({ "name": name, "role": "viewer" });
    let (first, second) = (demote("anna"), demote("alice"));
    let (first, second) = tokio::join!(
        console.post(&alice, "/operators/_role", &first),
        console.post(&anna, "/operators/_role", &second)
    );
    let mut statuses = [first.status.as_u16(), second.status.as_u16()];
    statuses.sort_unstable();
    assert!(statuses == [200, 409] || statuses == [200, 401], "{statuses:?}");
    let admins = console.api.state.store.operators().await.unwrap();
    assert_eq!(admins.iter().filter(|operator| operator.role == Role::Admin).count(), 1);
}
