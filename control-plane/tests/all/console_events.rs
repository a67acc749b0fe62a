//! Stored events in the console: the search, one request by its reference, and the overview.

use std::path::Path;
use std::sync::Arc;

use crate::cli_support::{Server, exchange, run_with, text};
use crate::console_support::{BEGINNING, ConsoleApi, Login, PASSWORD};
use crate::entities_support::Answer;
use serde_json::{Value, json};
use store::events::NewEvent;
use store::rollups::{Rollup, RollupCounts, RollupStep, Tally};

const SPAN: u64 = 60_000;

fn event(number: u64) -> Value {
    json!({
        "@type": "SvcSecurityEvent", "@id": format!("event_{number}"), "@timestamp": BEGINNING - 1000 + number,
        "event": { "category": "threat", "action": "deny", "outcome": if number.is_multiple_of(2) { "blocked" } else { "observed" },
            "module": "threat-response" },
        "source": { "ip": "2001:db8::7", "network": "2001:db8::/64", "user": "ada" },
        "route": { "id": "shop", "name": "Shop", "node": "edge-1" }, "incident": { "id": "incident_1" },
        "threat": { "score": 72, "signals": [{ "source": "waf.seclang", "kind": "waf", "tag": "waf:match" }] },
        "http": { "request_id": format!("ref-{number}"), "method": "GET", "host": "shop.test", "path": "/a", "status": 403 },
        "decision": { "tier": 1, "dry_run": !number.is_multiple_of(2), "enforced": number.is_multiple_of(2), "reason": "score 72", "policy": "threat-policies/strict" },
    })
}

async fn store(console: &ConsoleApi, events: &[Value]) {
    let new = |event: &Value| NewEvent::read(&event.to_string().into_bytes().into(), BEGINNING).unwrap();
    console.stored.append(events.iter().map(new).collect()).await.unwrap();
}

async fn with_events(events: &[Value]) -> (ConsoleApi, Login) {
    let console = ConsoleApi::new().await;
    store(&console, events).await;
    let login = console.login("alice").await;
    (console, login)
}

fn ids(answer: &Answer) -> Vec<&str> {
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.body["events"].as_array().unwrap().iter().map(|entry| entry["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn events_are_found_in_pages_by_all_filters() {
    let events: Vec<Value> = (0..25).map(event).collect();
    let (console, login) = with_events(&events).await;
    let first = console.get(&login, "/events/_search?limit=10&filter.route=shop").await;
    assert_eq!(ids(&first), (15..25).rev().map(|number| format!("event_{number}")).collect::<Vec<_>>());
    assert_eq!((&first.body["complete"], &first.body["searched_from"]), (&json!(true), &Value::Null));
    assert_eq!(first.body["events"][0]["event"], event(24));
    assert_eq!(first.body["events"][0]["at"], "2027-01-15T07:59:59.024Z");
    assert_eq!(first.header("cache-control"), "no-store");
    let mut found = 10;
    let mut next = first.body["next"].as_str().unwrap().to_owned();
    loop {
        let page = console.get(&login, &format!("/events/_search?limit=10&filter.route=shop&cursor={next}")).await;
        found += ids(&page).len();
        match page.body["next"].as_str() {
            Some(more) => more.clone_into(&mut next),
            None => break,
        }
    }
    assert_eq!(found, 25);
    for (query, count) in [
        ("filter.reference=ref-7", 1),
        ("filter.ref=user:ada&filter.outcome=blocked", 13),
        ("filter.ref=ip:2001:DB8::/64", 25),
        ("filter.ref=ip:2001:db8:0::7&filter.dry_run=true", 12),
        ("filter.incident=incident_1&from=1799999999010&until=1799999999012", 2),
        ("from=2027-01-15T07:59:59.020Z", 5),
        ("filter.plugin=threat-response&filter.action=deny&filter.category=threat&filter.node=edge-1", 25),
        ("filter.type=security&filter.id=event_3", 1),
        ("filter.type=trail", 0),
        ("filter.rule=942100", 0),
        ("filter.config=c", 0),
        ("filter.policy=threat-policies/strict", 25),
        ("filter.policy=strict", 0),
        ("filter.route=%25", 0),
        ("filter.route=sho_", 0),
        ("filter.route=%27%20OR%201=1", 0),
        ("filter.route=%00", 0),
        ("filter.route=%ff%fe", 0),
        ("until=0", 0),
    ] {
        let page = console.get(&login, &format!("/events/_search?{query}")).await;
        assert_eq!(ids(&page).len(), count, "{query}");
        assert_eq!(page.body["complete"], true);
    }
}

#[tokio::test]
async fn a_wrong_query_is_refused_and_so_is_one_without_a_session() {
    let (console, login) = with_events(&[]).await;
    let long = format!("filter.node={}", "x".repeat(1025));
    for (path, name) in [
        ("_search?filter.ref=192.0.2.1", "filter.ref"),
        ("_search?filter.ref=ip:192.0.2.0/24", "filter.ref"),
        ("_search?filter.colour=red", "filter.colour"),
        ("_search?limit=0", "limit"),
        ("_search?limit=501", "limit"),
        ("_search?from=soon", "from"),
        ("_search?cursor=1", "cursor"),
        ("_search?filter.route=a&filter.route=b", "filter.route"),
        (format!("_search?{long}").as_str(), "filter.node"),
        ("_reference", "reference"),
        ("_reference?reference=", "reference"),
        ("_overview?span=year", "span"),
        ("_live?filter.id=x", "filter.id"),
        ("_live?limit=1", "limit"),
        ("_status?x=1", "x"),
    ] {
        let answer = console.get(&login, &format!("/events/{path}")).await;
        assert_eq!(answer.status, 400, "{path}: {}", answer.text);
        assert!(answer.text.contains(name) && answer.text.len() < 1000, "{path}: {}", answer.text);
    }
    for path in ["_search", "_reference?reference=a", "_overview", "_status", "_live"] {
        let answer = console.send("GET", &format!("/events/{path}"), &[], None).await;
        assert_eq!(answer.status, 401, "{path}");
    }
}

#[tokio::test]
async fn a_reference_explains_what_happened_to_a_request() {
    let mut observed = event(9);
    observed["http"]["request_id"] = json!("ref-8");
    observed["threat"]["signals"] =
        json!([{ "source": "fail2ban" }, { "source": "waf.seclang", "kind": "waf", "tag": "waf:match" }]);
    let trail = json!({
        "@type": "SvcWafTrailEvent", "@id": "trail_1", "@timestamp": BEGINNING, "config": { "id": "c", "name": "Config" },
        "block": { "status": 403, "rule_id": 942_100, "msg": "SQL" }, "would_block": null,
        "matches": [
            { "rule_id": 942_100, "phase": 2, "msg": "SQL", "variable": "ARGS:q", "value": "1 or 1=1", "tags": [], "severity": 2, "logdata": "" },
            { "rule_id": 949_110, "phase": 2, "msg": "score", "variable": "TX:a", "value": "5", "tags": [], "severity": null, "logdata": "" },
        ],
        "http": { "request_id": "ref-8", "method": "GET", "host": "shop.test", "path": "/a", "status": 403 },
    });
    let (console, login) = with_events(&[event(8), observed, trail, event(10)]).await;
    let answer = console.get(&login, "/events/_reference?reference=ref-8").await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let body = &answer.body;
    assert_eq!(
        (&body["found"], &body["truncated"], &body["incident"]),
        (&json!(true), &json!(false), &json!("incident_1"))
    );
    assert_eq!(
        body["verdict"],
        json!({
            "outcome": "blocked", "action": "deny", "module": "threat-response", "dry_run": false, "enforced": true, "score": 72,
            "tier": 1, "reason": "score 72", "policy": "threat-policies/strict",
        })
    );
    assert_eq!(body["request"]["route"], json!({ "id": "shop", "name": "Shop", "node": "edge-1" }));
    assert_eq!(body["request"]["source"]["network"], "2001:db8::/64");
    assert_eq!(body["signals"].as_array().unwrap().len(), 2, "each once: {}", body["signals"]);
    assert_eq!((&body["rules"][0]["rule_id"], &body["rules"][0]["refused"]), (&json!(942_100), &json!(true)));
    assert_eq!((&body["rules"][1]["refused"], &body["rules"][1]["config"]["id"]), (&json!(false), &json!("c")));
    assert_eq!(ids(&answer).len(), 3);

    let none = console.get(&login, "/events/_reference?reference=ref-11").await;
    assert_eq!(
        (&none.body["found"], &none.body["request"], &none.body["verdict"]),
        (&json!(false), &Value::Null, &Value::Null)
    );
    assert_eq!((&none.body["signals"], &none.body["events"]), (&json!([]), &json!([])));
}

#[tokio::test]
async fn what_a_client_sends_cannot_break_an_answer() {
    let odd = [
        json!({ "@type": "SvcSecurityEvent", "@id": "a", "http": { "request_id": "r" }, "threat": { "signals": "x" } }),
        json!({ "@type": "SvcWafTrailEvent", "@id": "b", "http": { "request_id": "r" }, "matches": 7, "block": [] }),
        json!({ "@type": [], "@id": "c", "http": { "request_id": "r", "path": "\u{0}</script>\r\n\r\ndata: x" } }),
        json!({ "@id": "d", "@timestamp": {}, "http": { "request_id": "r" }, "event": null, "source": [], "threat": { "score": "high" } }),
    ];
    let many: Vec<Value> = (0..150)
        .map(|number| json!({ "@type": "SvcSecurityEvent", "@id": format!("m{number}"), "http": { "request_id": "many" } }))
        .collect();
    let (console, login) = with_events(&[&odd[..], &many].concat()).await;
    let answer = console.get(&login, "/events/_reference?reference=r").await;
    assert_eq!(ids(&answer).len(), 4);
    let answer = console.get(&login, "/events/_reference?reference=many").await;
    assert_eq!((ids(&answer).len(), &answer.body["truncated"]), (100, &json!(true)));
}

#[tokio::test]
async fn the_overview_adds_up_the_rollups_of_its_span() {
    let (console, login) = with_events(&[]).await;
    let mut rollups = Vec::new();
    for minutes in [0, 1, 59, 60, 119, 120, 1500] {
        let at_millis = BEGINNING - minutes * SPAN;
        let mut counts = RollupCounts::default();
        let tally = Tally { requests: 9, refused: 2, observed: 1, dry_run: 1 };
        counts.total.add(tally);
        counts.plugins.add("waf", tally);
        counts.routes.add("", tally);
        for number in 0..12 {
            counts.actions.add(&format!("a{number:02}"), Tally { refused: 12 - number, ..Tally::default() });
        }
        for step in RollupStep::ALL {
            rollups.push(Rollup { step, at_millis: step.begin(at_millis), counts: counts.clone() });
        }
    }
    console.api.state.store.rollups_add(rollups, BEGINNING).await.unwrap();
    let hour = console.get(&login, "/events/_overview").await;
    assert_eq!(hour.status, 200, "{}", hour.text);
    let body = &hour.body;
    assert_eq!((&body["span"], &body["step_seconds"]), (&json!("hour"), &json!(60)));
    assert_eq!(body["totals"], json!({ "requests": 27, "refused": 6, "observed": 3, "dry_run": 3 }));
    assert_eq!(body["before"], json!({ "requests": 18, "refused": 4, "observed": 2, "dry_run": 2 }));
    let steps = body["steps"].as_array().unwrap();
    assert_eq!(
        (steps.len(), &steps[59]["refused"], &steps[58]["refused"], &steps[57]["refused"]),
        (60, &json!(2), &json!(2), &json!(0))
    );
    assert_eq!((&steps[59]["at"], &steps[0]["refused"]), (&json!("2027-01-15T08:00:00.000Z"), &json!(2)));
    assert_eq!(body["by_plugin"][0]["name"], "waf");
    assert_eq!((&body["by_route"][0]["id"], body["by_route"][0].get("other")), (&Value::Null, None));
    let actions = body["by_action"].as_array().unwrap();
    assert_eq!((actions.len(), &actions[0]["name"], &actions[0]["refused"]), (11, &json!("a00"), &json!(36)));
    assert_eq!((&actions[10]["other"], &actions[10]["refused"]), (&json!(true), &json!(9)));
    assert!(body["health"]["exporters"].is_array() && body["health"]["event_store"]["enabled"] == true);
    let day = console.get(&login, "/events/_overview?span=day").await;
    assert_eq!((&day.body["totals"]["refused"], &day.body["before"]["refused"]), (&json!(12), &json!(2)));
    assert_eq!((day.body["steps"].as_array().unwrap().len(), &day.body["step_seconds"]), (144, &json!(600)));
    let week = console.get(&login, "/events/_overview?span=week").await;
    assert_eq!((&week.body["totals"]["refused"], week.body["steps"].as_array().unwrap().len()), (&json!(14), 168));
}

#[tokio::test]
async fn answers_are_those_that_the_document_describes() {
    let (console, login) = with_events(&(0..3).map(event).collect::<Vec<_>>()).await;
    let (now, counts) =
        (BEGINNING, RollupCounts { total: Tally { refused: 1, ..Tally::default() }, ..RollupCounts::default() });
    let rollup = Rollup { step: RollupStep::Minute, at_millis: RollupStep::Minute.begin(now), counts };
    console.api.state.store.rollups_add(vec![rollup], now).await.unwrap();
    let request = axum::http::Request::builder().uri("/openapi.json").body(axum::body::Body::empty()).unwrap();
    let document = console.api.send(request).await.body;
    for (path, name) in [
        ("_search", "EventPage"),
        ("_reference?reference=ref-0", "EventReference"),
        ("_reference?reference=none", "EventReference"),
        ("_overview", "EventOverview"),
        ("_status", "EventStoreState"),
    ] {
        let schema = json!({ "$ref": format!("#/components/schemas/{name}"), "components": document["components"] });
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        let answer = console.get(&login, &format!("/events/{path}")).await;
        assert_eq!(answer.status, 200, "{path}");
        let errors: Vec<String> = validator.iter_errors(&answer.body).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{path}");
    }
}

// === a whole control plane ===

/// A control plane with an operator, and the cookie of a session.
fn serve(data: &Path, options: &[&str]) -> (Server, String) {
    let server = Server::start_with(data, options);
    let arguments = ["operator", "add", "alice", "--email", "a@example.com", "--data", data.to_str().unwrap()];
    let _there_already = run_with(&arguments, &format!("{PASSWORD}\n"));
    let login = json!({ "name": "alice", "password": PASSWORD }).to_string();
    let (status, head, body) = exchange(&server.rest, &[], "POST", &at("session/_login"), &login).unwrap();
    assert_eq!(status, 200, "{body}");
    let cookie = head.split("palisade_session=").nth(1).unwrap().split(';').next().unwrap();
    (server, format!("palisade_session={cookie}"))
}

fn at(path: &str) -> String {
    format!("{}/{path}", api::names::NAMESPACE)
}

fn get(server: &Server, cookie: &str, path: &str) -> Value {
    let (status, _, body) = exchange(&server.rest, &[("cookie", cookie)], "GET", &at(path), "").unwrap();
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// The entities of this control plane that stored events say were written.
fn written(server: &Server, cookie: &str) -> Vec<String> {
    let found = get(server, cookie, "events/_search?filter.type=audit&filter.action=create&limit=500");
    found["events"].as_array().unwrap().iter().map(|entry| entry["event"]["ref"].as_str().unwrap().to_owned()).collect()
}

fn wait_for(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        #[allow(clippy::disallowed_methods, reason = "a process is waited for, in no filter")]
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{what}");
}

#[test]
fn events_survive_a_kill_and_an_unusable_file_is_put_aside() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (server, cookie) = serve(&data, &[]);
    for number in 0..20 {
        let body = json!({ "id": format!("r{number}") }).to_string();
        let path = "/apis/palisade.svc/v1/waf-rulesets";
        let (status, _, body) = exchange(
            &server.rest,
            &[("authorization", &server.authorization), ("content-type", "application/json")],
            "POST",
            path,
            &body,
        )
        .unwrap();
        assert_eq!(status, 201, "{body}");
    }
    wait_for("events are stored", || written(&server, &cookie).len() == 20);
    let status = get(&server, &cookie, "events/_status");
    assert_eq!(status["retention"], json!({ "days": 7, "max_mib": 512, "max_events": 1_000_000 }));
    assert_eq!((&status["enabled"], &status["error"]), (&json!(true), &Value::Null));
    server.signal("KILL");
    drop(server);
    let (server, cookie) = serve(&data, &[]);
    assert_eq!(written(&server, &cookie).len(), 20, "what was stored is there after a kill");
    server.signal("KILL");
    drop(server);
    for log in ["events.db-wal", "events.db-shm"] {
        let _folded_in = std::fs::remove_file(data.join(log));
    }
    std::fs::write(data.join("events.db"), "no database".repeat(1000)).unwrap();
    let (server, cookie) = serve(&data, &[]);
    wait_for("events go on", || !get(&server, &cookie, "events/_search")["events"].as_array().unwrap().is_empty());
    assert!(data.join("events.db.unusable").exists());
    drop(server);

    let (server, cookie) = serve(&folder.path().join("other"), &["--events-store-days", "0"]);
    assert_eq!(get(&server, &cookie, "events/_status")["enabled"], false);
    assert_eq!(get(&server, &cookie, "events/_search")["complete"], true);
    assert!(!folder.path().join("other/events.db").exists());
    let backup = folder.path().join("backup.db");
    let made = run_with(&["backup", backup.to_str().unwrap(), "--data", data.to_str().unwrap()], "");
    assert!(made.status.success(), "{}", text(&made.stderr));
}

#[tokio::test]
async fn a_store_that_is_closed_is_an_error_of_the_search_and_not_of_the_status() {
    let (console, login) = with_events(&[event(1)]).await;
    Arc::clone(&console.stored).close().await.unwrap();
    assert_eq!(console.get(&login, "/events/_search").await.status, 503);
    let status = console.get(&login, "/events/_status").await;
    assert_eq!(status.status, 200);
    assert!(status.body["error"].as_str().unwrap().contains("closed"), "{}", status.text);
}
