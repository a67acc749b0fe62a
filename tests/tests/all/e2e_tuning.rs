//! Tuning against a real gateway: a false positive is reported with its request, an exclusion is proposed, tried, written and taken back.

use std::net::Ipv4Addr;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use palisade_tests::console::Console;
use palisade_tests::control_plane::ControlPlane;
use palisade_tests::gateway::{Gateway, preset, route, threat_policy, waf_config};
use palisade_tests::http::{Request, percent};
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(20);
/// A rule that is too eager.
const EAGER: &str = "SecRule ARGS \"@contains zebra crossing\" \"id:10050,phase:2,deny,status:403,log,msg:'a zebra'\"";
/// A rule that catches some of the known attacks. With the core rule set, all that is tried here takes a minute in a test build.
const SQL: &str = "SecRule ARGS \"@rx (?i)union.{1,40}select\" \"id:10051,phase:2,deny,status:403,log,msg:'SQL'\"";
/// One against methods, as the core rule set has it.
const METHODS: &str = "SecRule REQUEST_METHOD \"!@within GET HEAD POST OPTIONS\" \
     \"id:10053,phase:1,deny,status:403,log,msg:'Method is not allowed by policy'\"";
const FORM: &str = "application/x-www-form-urlencoded";

fn comment(path: &str) -> Request {
    let body = format!("content={}&password=hunter2secret&page=1", percent("meet at the zebra crossing"));
    Request::post(path, FORM, body)
}

/// One comment that the exclusion is for, twice, one on another path, an attack, and one that no rule matches.
fn recording() -> String {
    let lines = [
        ("/posts/1/comments", "meet at the zebra crossing"),
        ("/posts/1/comments", "meet at the zebra crossing"),
        ("/drafts/1/comments", "meet at the zebra crossing"),
        ("/posts/1/comments", "1 union select 2"),
        ("/posts/1/comments", "hello"),
    ];
    let line = |(path, content): (&str, &str)| {
        let headers = json!([["host", "shop.example"], ["content-type", FORM]]);
        let body = format!("content={}", percent(content));
        let request = json!({ "method": "POST", "path": path, "headers": headers, "body": body });
        json!({ "request": request, "response": { "status": 200 } }).to_string() + "\n"
    };
    lines.into_iter().map(line).collect()
}

fn matches(console: &Console) -> Vec<Value> {
    console.show("tuning/_matches")["matches"].as_array().unwrap().clone()
}

fn the_match(console: &Console, count: u64) -> Value {
    let is_it = |one: &Value| one["rule_id"] == 10_050 && one["count"].as_u64() >= Some(count);
    wait_for("the match", PATIENCE, || matches(console).into_iter().find(is_it)).unwrap()
}

#[test]
fn from_a_false_positive_to_an_exclusion_and_back() {
    let mut gateway = Gateway::start(|control, backend| {
        let rules = json!([EAGER, SQL, METHODS]);
        control.create("waf-configs", &waf_config("demo", json!({ "rules": rules })));
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": [] })));
        control.create("routes", &route("demo", backend, preset("demo", "demo")));
    });
    let console = Console::login(&gateway.control);
    gateway.until(&comment("/posts/42/comments"), 403, PATIENCE);
    for number in 0..5 {
        assert_eq!(gateway.status(&comment(&format!("/posts/{number}00/comments"))), 403);
    }

    let found = the_match(&console, 6);
    assert_eq!(found["key"], "demo|10050|ARGS:content|/posts/{id}/comments");
    let target = json!({ "collection": "ARGS", "member": "content", "full": "ARGS:content", "excludable": true });
    assert_eq!((&found["target"], &found["blocked"], &found["method"]), (&target, &json!(true), &json!("POST")));
    assert!(found["matched_value"].as_str().unwrap().contains("zebra crossing"), "{found}");
    assert_eq!(
        (&found["config_ref"], &found["route_id"], &found["callers"]),
        (&json!("demo"), &json!("demo"), &json!(1))
    );

    let proposed = console.call("tuning/_propose", &json!({ "sample_id": found["id"] }));
    let proposals = proposed["proposals"].as_array().unwrap();
    let kinds: Vec<&str> = proposals.iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["scoped_target", "update_target", "scoped_remove", "remove_rule"]);
    let first = &proposals[0];
    let preview = &first["preview"];
    assert_eq!((&first["recommended"], &preview["safe"]), (&json!(true), &json!(true)), "{first}");
    assert_eq!((&preview["reproduced"], &preview["effective"]), (&json!(true), &json!(true)));
    assert!(preview["corpus"]["injected"].as_u64() > Some(100), "{preview}");
    assert!(preview["corpus"]["caught_before"].as_u64() > Some(20), "{preview}");

    // The recording that was uploaded last is replayed as well.
    assert_eq!(preview["recording"], Value::Null, "{preview}");
    console.upload("monday", &recording());
    let seclang = first["seclang"].as_str().unwrap();
    let body = json!({ "sample_id": found["id"], "seclang": seclang, "kind": "scoped_target" });
    let preview = console.call("tuning/_preview", &body);
    let replayed = &preview["recording"];
    assert_eq!((&replayed["name"], &replayed["total"]), (&json!("monday"), &json!(5)), "{preview}");
    assert_eq!(
        (&replayed["requests"], &replayed["refused_before"]),
        (&json!(4), &json!(3)),
        "one comes twice: {preview}"
    );
    assert_eq!(replayed["refused_after"], 2, "{preview}");
    assert_eq!((&replayed["matched_before"], &replayed["matched_after"]), (&json!(2), &json!(1)), "{preview}");

    // What cannot be written, and what should not be.
    let apply = |seclang: &str, more: Value| {
        let mut body = json!({ "sample_id": found["id"], "seclang": seclang, "kind": "scoped_target", "reason": "children's books" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        console.answer("tuning/_apply", &body)
    };
    let broken = apply("SecRule REQUEST_FILENAME \"@rx (\" \"id:50000,phase:1,pass\"", json!({}));
    assert_eq!((broken.status, &broken.json()["preview"]["compiles"]), (400, &json!(false)), "{}", broken.text());
    let useless = apply("SecRuleRemoveById 10051", json!({}));
    assert_eq!((useless.status, &useless.json()["preview"]["effective"]), (400, &json!(false)), "{}", useless.text());
    let off = apply("SecRuleRemoveById 10050 10051", json!({}));
    assert_eq!((off.status, &off.json()["needs_force"]), (409, &json!(true)), "{}", off.text());
    assert!(!off.json()["preview"]["regressions"].as_array().unwrap().is_empty());
    assert_eq!(apply(first["seclang"].as_str().unwrap(), json!({ "reason": " " })).status, 400);
    let unknown = console.answer("tuning/_preview", &json!({ "sample_id": "0", "seclang": "", "kind": "remove_rule" }));
    assert_eq!(unknown.status, 400, "{}", unknown.text());
    assert_eq!(gateway.status(&comment("/posts/1/comments")), 403, "nothing was written");

    let applied = apply(first["seclang"].as_str().unwrap(), json!({})).json();
    let written = &applied["applied"];
    assert_eq!(
        (&written["ruleset_id"], &written["ruleset_created"]),
        (&json!("exclusions-demo"), &json!(true)),
        "{applied}"
    );
    let entry = written["entry"].as_str().unwrap();
    assert!(
        entry.starts_with("# Exclusion 50000 by alice at ") && entry.contains(": children's books\nSecRule "),
        "{entry}"
    );
    gateway.until(&comment("/posts/7/comments"), 200, PATIENCE);
    assert_eq!(gateway.status(&comment("/drafts/7/comments")), 403, "another path");
    let other = Request::get("/posts/7/comments?other=zebra+crossing");
    assert_eq!(gateway.status(&other), 403, "another input");
    let _audit =
        gateway.control.event("the audit", |event| event.to_string().contains("exclusion 50000 in the ruleset"));

    // It survives a restart, and is one exclusion of several.
    let again = the_match(&console, 6);
    thread::sleep(Duration::from_secs(6));
    gateway.control.kill();
    gateway.control.restart();
    let kept = the_match(&console, again["count"].as_u64().unwrap());
    assert_eq!(kept["id"], found["id"]);
    let second = apply("SecRuleUpdateTargetById 10050 \"!ARGS:content\"", json!({ "kind": "update_target" }));
    assert_eq!((second.status, &second.json()["preview"]["reproduced"]), (409, &json!(false)), "{}", second.text());
    let forced =
        apply("SecRuleUpdateTargetById 10050 \"!ARGS:content\"", json!({ "kind": "update_target", "force": true }));
    assert_eq!((forced.status, &forced.json()["applied"]["exclusion"]), (200, &json!(50_001)), "{}", forced.text());
    gateway.until(&comment("/drafts/7/comments"), 200, PATIENCE);

    let revert =
        |exclusion: u64| console.answer("tuning/_revert", &json!({ "config_ref": "demo", "exclusion": exclusion }));
    for exclusion in [50_001, 50_000] {
        assert_eq!(revert(exclusion).status, 200);
        assert_eq!(revert(exclusion).status, 400, "it is gone");
    }
    gateway.until(&comment("/posts/7/comments"), 403, PATIENCE);
    let letter = comment("/letters/7/comments");
    from_a_reference(&mut gateway, &console, &letter, (10_050, "ARGS:content", "/letters/{id}/comments"));
    let delete = Request::new("DELETE", "/letters/7");
    from_a_reference(&mut gateway, &console, &delete, (10_053, "REQUEST_METHOD:DELETE", "/letters/{id}"));
    two_operators_at_once(&gateway, &console, &found["id"]);
    // The last of them is taken back on the gateway too.
    gateway.until(&comment("/posts/7/comments"), 403, PATIENCE);
    learns(&mut gateway, &console);
    assert!(gateway.envoy.vm_failures().is_empty());
}

/// The reference of the answer that a refused caller sees leads to the exclusion of the rule at that input on that path.
fn from_a_reference(
    gateway: &mut Gateway,
    console: &Console,
    request: &Request,
    (rule, target, path): (u64, &str, &str),
) {
    let refused = gateway.send(request);
    let text = refused.text();
    let (_, reference) = text.split_once("Reference: ").expect("a refusal names its request");
    let reference = reference.trim();
    let proposed = wait_for("the match of the request", PATIENCE, || {
        let answer = console.answer("tuning/_propose", &json!({ "reference": reference }));
        (answer.status == 200).then(|| answer.json())
    })
    .unwrap();
    let found = (&proposed["rule_id"], &proposed["target"]["full"], &proposed["path"]);
    assert_eq!(found, (&json!(rule), &json!(target), &json!(path)), "{proposed}");
    let first = &proposed["proposals"][0];
    // Where the config blocks, the answer to the method is the WAF's own: only the operator knows whether the application takes it.
    let is_method = target.starts_with("REQUEST_METHOD");
    assert_eq!(first["recommended"], !is_method, "{first}");
    let mut body = json!({
        "sample_id": proposed["sample_id"], "seclang": first["seclang"], "kind": first["kind"], "reason": "a letter",
    });
    if is_method {
        let doubted = console.answer("tuning/_apply", &body);
        assert_eq!((doubted.status, &doubted.json()["needs_force"]), (409, &json!(true)), "{}", doubted.text());
        body["force"] = json!(true);
    }
    let applied = console.call("tuning/_apply", &body);
    gateway.until(request, 200, PATIENCE);
    assert_eq!(gateway.status(&Request::new("PUT", "/letters/7")), 403, "another method");
    let exclusion = &applied["applied"]["exclusion"];
    assert_eq!(console.answer("tuning/_revert", &json!({ "config_ref": "demo", "exclusion": exclusion })).status, 200);
    let unknown = console.answer("tuning/_propose", &json!({ "reference": "none" }));
    assert_eq!(unknown.status, 400, "{}", unknown.text());
    let both = console.answer("tuning/_propose", &json!({ "reference": reference, "sample_id": "1" }));
    assert_eq!(both.status, 400, "{}", both.text());
}

/// What was acknowledged is there, and what was not is told to its operator: never does one overwrite the other.
fn two_operators_at_once(gateway: &Gateway, console: &Console, sample: &Value) {
    let (mut acknowledged, mut conflicts) = (Vec::new(), 0);
    for round in 0..6 {
        let together = Barrier::new(2);
        let answers = thread::scope(|scope| {
            let [one, two] = [0, 1].map(|operator| {
                let together = &together;
                scope.spawn(move || {
                    // The first of them ends the match; behind it the match cannot be had again, which `force` does not mind.
                    let seclang =
                        format!("SecRuleUpdateTargetById 10050 \"!ARGS:content|!ARGS:a{round}_{operator}\"");
                    let body = json!({
                        "sample_id": sample, "seclang": seclang, "kind": "update_target", "reason": "both", "force": true,
                    });
                    together.wait();
                    (seclang, console.answer("tuning/_apply", &body))
                })
            });
            [one.join().unwrap(), two.join().unwrap()]
        });
        for (seclang, answer) in answers {
            match answer.status {
                200 => acknowledged.push((seclang, answer.json()["applied"]["exclusion"].as_u64().unwrap())),
                409 => {
                    assert_eq!(answer.json()["needs_force"], false, "{}", answer.text());
                    assert!(answer.json()["error"].as_str().unwrap().contains("another operator"), "{}", answer.text());
                    conflicts += 1;
                }
                _ => panic!("{} {}", answer.status, answer.text()),
            }
        }
    }
    println!("{} exclusions written, {conflicts} conflicts", acknowledged.len());
    let path = ControlPlane::path("waf-rulesets", "exclusions-demo");
    let ruleset = gateway.control.call("GET", &path, None).json();
    let rules: Vec<&str> = ruleset["rules"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(rules.len(), acknowledged.len(), "{rules:#?}");
    for (seclang, exclusion) in acknowledged {
        let head = format!("# Exclusion {exclusion} ");
        assert!(rules.iter().any(|rule| rule.starts_with(&head) && rule.ends_with(&seclang)), "{seclang}: {rules:#?}");
        assert_eq!(
            console.answer("tuning/_revert", &json!({ "config_ref": "demo", "exclusion": exclusion })).status,
            200
        );
    }
}

/// A window over traffic that is only watched: what many callers send is excluded, what one sends is not.
fn learns(gateway: &mut Gateway, console: &Console) {
    let of_config = json!({ "config_ref": "demo" });
    let blocking = console.call("learning/_start", &of_config);
    assert_eq!(
        (&blocking["mode"]["mode"], &blocking["mode"]["rule_counts_complete"]),
        (&json!("blocking"), &json!(false))
    );
    assert_eq!(console.call("learning/_discard", &of_config)["done"], true);
    assert_eq!(console.answer("learning/_report", &of_config).status, 400, "there is no window");
    gateway.control.patch("waf-configs", "demo", &json!({ "block": false }));
    gateway.until(&comment("/posts/7/comments"), 200, PATIENCE);
    let started = console.call("learning/_start", &of_config);
    assert_eq!((&started["mode"]["mode"], &started["config"]["id"]), (&json!("detection_only"), &json!("demo")));

    let text = percent("the zebra crossing again");
    for number in 0..1100_u32 {
        // Five callers in two networks: the window has seen a third one, so that those of one alone would not do.
        let caller = number / 10 % 5;
        let source = Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 0, 9, 1)) + caller + 256 * (caller % 2));
        let request = match number % 10 {
            0 => Request::get(format!("/blog/{number}00?page={number}&text={text}")),
            _ => Request::get(format!("/blog/{number}00?page={number}&text=nothing")),
        };
        assert_eq!(request.send_from(source, gateway.address).unwrap().status, 200);
    }
    let lone = Request::get(format!("/lone?text={text}"));
    (0..5).for_each(|_| assert_eq!(lone.send_from(Ipv4Addr::new(127, 0, 9, 99), gateway.address).unwrap().status, 200));

    // Gateways report after half a minute at the latest.
    let report = wait_for("all that was counted", Duration::from_secs(60), || {
        let report = console.call("learning/_report", &of_config);
        let count = |path: &str| {
            let entries = report["entries"].as_array()?;
            entries.iter().find(|entry| entry["path"] == path)?["count"].as_u64()
        };
        let all = report["run"]["requests"].as_u64() >= Some(1105)
            && count("/blog/{id}") == Some(110)
            && count("/lone") == Some(5)
            && page(&report["profile"]).is_some_and(|page| page["seclang"].is_string());
        all.then_some(report)
    })
    .unwrap();
    assert_eq!((&report["running"], &report["nodes"]), (&json!(true), &json!(1)));
    // The window has what was not reported yet when it began: the comments above.
    let would_block = report["run"]["would_block"].as_u64().unwrap();
    assert!((115..=130).contains(&would_block), "{would_block}");
    let exclusion = |path: &str| {
        let all = report["exclusions"].as_array().unwrap();
        all.iter().find(|one| one["entry"]["path"] == path).unwrap().clone()
    };
    let (shared, lone) = (exclusion("/blog/{id}"), exclusion("/lone"));
    assert_eq!((&shared["accepted"], &shared["proposal"]["kind"]), (&json!(true), &json!("scoped_target")), "{shared}");
    assert_eq!((&shared["entry"]["callers"], &shared["entry"]["networks"]), (&json!(5), &json!(2)));
    assert!(lone["note"].as_str().unwrap().starts_with("not proposed: 1 callers"), "{lone}");
    assert!(report["verdict"].as_str().unwrap().starts_with("Blocking is not safe yet"), "{}", report["verdict"]);
    assert_eq!(report["proof"]["attacks_missed_before"], report["proof"]["attacks_missed_after"]);

    let apply = |keys: Value| {
        console.answer("learning/_apply", &json!({ "config_ref": "demo", "keys": keys, "reason": "learned" }))
    };
    assert_eq!(apply(json!([lone["key"]])).status, 400, "what is not verified is never applied");
    let applied = apply(json!([shared["key"], lone["key"]]));
    assert_eq!((applied.status, &applied.json()["count"]), (200, &json!(1)), "{}", applied.text());
    assert_eq!(console.call("learning/_stop", &of_config)["done"], true);
    gateway.control.patch("waf-configs", "demo", &json!({ "block": true }));
    gateway.until(&Request::get(format!("/lone?text={text}")), 403, PATIENCE);
    assert_eq!(gateway.status(&Request::get(format!("/blog/77?text={text}"))), 200);
    profile(gateway, console, &report["profile"]);
}

const PAGE: &str = "ARGS:page|/blog/{id}";

/// The profile of a parameter.
fn page(profile: &Value) -> Option<&Value> {
    profile["parameters"].as_array()?.iter().find(|one| one["key"] == PAGE)
}

/// What the profile of a parameter says, and a rule of it: off until it is asked for, and it refuses nothing.
fn profile(gateway: &Gateway, console: &Console, learned: &Value) {
    let page = page(learned).unwrap_or_else(|| panic!("{learned:#}"));
    assert_eq!((&page["kind"], &page["note"]), (&json!("number"), &json!("")), "{page}");
    assert!(
        page["callers"].as_u64() >= Some(3) && page["networks"] == 2 && page["distinct"].as_u64() >= Some(10),
        "{page}"
    );
    let apply = |named: &str| {
        let body = json!({ "config_ref": "demo", "parameters": [named], "reason": "pages are numbers" });
        console.answer("learning/_apply", &body)
    };
    let unknown = apply("ARGS:nothing|/blog/{id}");
    assert_eq!(unknown.status, 400, "{}", unknown.text());
    let odd = Request::get("/blog/77?page=1%27--");
    assert_eq!(gateway.status(&odd), 200);
    let applied = apply(PAGE);
    assert_eq!((applied.status, &applied.json()["count"]), (200, &json!(1)), "{}", applied.text());
    let entry = applied.json()["applied"][0].clone();
    assert!(entry["entry"].as_str().unwrap().starts_with("# Profile 5"), "{entry}");
    let again = apply(PAGE);
    assert!(again.status == 400 && again.text().contains("take it back first"), "{}", again.text());
    let reported = wait_for("a report of the rule", PATIENCE, || {
        assert_eq!(gateway.status(&odd), 200, "it refuses nothing");
        gateway
            .control
            .events()
            .into_iter()
            .find(|event| event.to_string().contains("ARGS:page is not what it usually is"))
    });
    assert!(reported.unwrap().to_string().contains("palisade-profile"));
    let revert = json!({ "config_ref": "demo", "exclusion": entry["exclusion"] });
    assert_eq!(console.answer("tuning/_revert", &revert).status, 200);
    assert_eq!(console.answer("tuning/_revert", &revert).status, 400, "it is gone");
}
