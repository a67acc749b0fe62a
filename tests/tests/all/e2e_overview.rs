//! What the console shows of the traffic of a real gateway: how many requests, what was refused, and why one was.

use std::time::Duration;

use palisade_tests::console::Console;
use palisade_tests::gateway::{Gateway, preset, route, threat_policy, waf_config};
use palisade_tests::http::Request;
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

/// Counts are reported every five seconds, and written every ten.
const PATIENCE: Duration = Duration::from_secs(60);
const RULE: &str = r#"SecRule ARGS:probe "@streq 1" "id:10001,phase:1,deny,status:403,msg:'probe'""#;

#[test]
fn requests_and_refusals_of_a_gateway_are_in_the_overview_and_a_refusal_is_found_by_its_reference() {
    let mut gateway = Gateway::start(|control, backend| {
        control.create("waf-configs", &waf_config("demo", json!({ "rules": [RULE] })));
        control.create("threat-policies", &threat_policy("demo", json!({ "dry_run": false })));
        control.create("routes", &route("demo", backend, preset("demo", "demo")));
    });
    let console = Console::login(&gateway.control);
    gateway.until(&Request::get("/"), 200, PATIENCE);
    let before = gateway_requests(&console);
    let (passed, refused) = (40, 3);
    for _ in 0..passed {
        assert_eq!(Request::get("/").send(gateway.address).unwrap().status, 200);
    }
    let mut text = String::new();
    for _ in 0..refused {
        let answer = Request::get("/?probe=1").send(gateway.address).unwrap();
        assert_eq!(answer.status, 403);
        text = answer.text();
    }
    wait_for("all requests are counted", PATIENCE, || {
        let shown = console.show("events/_overview");
        let row = shown["by_route"].as_array()?.iter().find(|row| row["id"] == "demo")?.clone();
        let counts = ["requests", "refused"].map(|name| (row[name].as_u64(), shown["totals"][name].as_u64()));
        // Those of the start may have been reported after the first look.
        let [(Some(requests), all), (Some(denied), _)] = counts else { return None };
        (all == Some(requests) && requests >= before + passed + refused && denied == refused).then_some(())
    })
    .unwrap();

    let (_, reference) = text.split_once("Reference: ").expect("a refusal names its request");
    let path = format!("events/_reference?reference={}", reference.trim());
    let why = wait_for("the event is stored", PATIENCE, || {
        let why = console.show(&path);
        (why["rules"].as_array().is_some_and(|rules| !rules.is_empty())).then_some(why)
    })
    .unwrap();
    assert_eq!((&why["request"]["path"], &why["request"]["route"]["id"]), (&json!("/"), &json!("demo")), "{why}");
    assert_eq!((&why["verdict"]["outcome"], &why["verdict"]["enforced"]), (&json!("blocked"), &json!(true)), "{why}");
    assert_eq!(why["rules"][0]["rule_id"].to_string().trim_matches('"'), "10001", "{why}");
}

/// The requests that the overview has now.
fn gateway_requests(console: &Console) -> u64 {
    let shown: Value = console.show("events/_overview");
    shown["totals"]["requests"].as_u64().unwrap()
}
