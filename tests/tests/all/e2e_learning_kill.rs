//! `kill -9` of the control plane and of the gateway during a learning window: what was written is kept, nothing counts twice, and no exclusion
//! is written by half.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use palisade_tests::bootstrap::shipped;
use palisade_tests::console::Console;
use palisade_tests::control_plane::ControlPlane;
use palisade_tests::envoy::Envoy;
use palisade_tests::gateway::{
    Gateway, WRITTEN_ADMIN_PORT, WRITTEN_XDS_PORT, preset, route, threat_policy, waf_config,
};
use palisade_tests::http::Request;
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

/// Blows, unless `PALISADE_LEARNING_KILL_ROUNDS` names another number.
const ROUNDS: usize = 2;
/// Gateways report a match that they have reported before after 30 seconds.
const PATIENCE: Duration = Duration::from_secs(90);
/// The control plane writes each 5 seconds.
const WRITTEN: Duration = Duration::from_secs(6);
/// Requests whose counts have to be kept, in each round.
const KEPT: u64 = 20;
const RULE: &str = "SecRule ARGS \"@contains zebra crossing\" \"id:10050,phase:2,deny,status:403,log,msg:'a zebra'\"";

#[test]
fn a_window_loses_what_was_not_written_and_counts_nothing_twice() {
    let rounds =
        std::env::var("PALISADE_LEARNING_KILL_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
    let mut gateway = Gateway::start(|control, backend| {
        control.create("waf-configs", &waf_config("demo", json!({ "rules": [RULE], "block": false })));
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": [] })));
        control.create("routes", &route("demo", backend, preset("demo", "demo")));
    });
    let console = Console::login(&gateway.control);
    let of_config = json!({ "config_ref": "demo" });
    wait_for("the window begins", PATIENCE, || {
        (console.answer("learning/_start", &of_config).status == 200).then_some(())
    })
    .unwrap();
    let (mut sent, mut struck, mut applied) = (1, Vec::new(), Vec::new());
    end_a_match(&gateway, &console);
    for round in 0..rounds {
        let kept = path("kept", round);
        for _ in 0..KEPT {
            assert_eq!(matching(&kept).send(gateway.address).unwrap().status, 200);
        }
        sent += KEPT;
        wait_for("the counts of the round", PATIENCE, || {
            (count(&console.call("learning/_report", &of_config), &kept) == Some(KEPT)).then_some(())
        })
        .unwrap_or_else(|why| panic!("{why}: {}", console.call("learning/_report", &of_config)["entries"]));
        thread::sleep(WRITTEN);
        let begun = Instant::now();
        let (attempts, mut done) = strike(&mut gateway, &console, round);
        println!("round {round}: {attempts} requests, {} exclusions, back after {:?}", done.len(), begun.elapsed());
        sent += attempts;
        struck.push((path("struck", round), attempts));
        applied.append(&mut done);
        for earlier in 0..=round {
            let report = console.call("learning/_report", &of_config);
            assert_eq!(count(&report, &path("kept", earlier)), Some(KEPT), "round {earlier}, seen after round {round}");
            assert!(report["run"]["requests"].as_u64() <= Some(sent), "{}", report["run"]);
        }
        let rules = rules(&gateway.control);
        for number in &applied {
            let argument = format!("!ARGS:a{number}\"");
            assert_eq!(rules.iter().filter(|rule| rule.contains(&argument)).count(), 1, "{number} of {rules:#?}");
        }
        assert!(rules.iter().all(|rule| is_whole(rule)), "{rules:#?}");
        assert!(!rules.is_empty());
    }
    assert!(applied.len() >= rounds, "{} exclusions were acknowledged", applied.len());
    let report = console.call("learning/_report", &of_config);
    for (path, attempts) in struck {
        let counted = count(&report, &path).unwrap_or_default();
        println!("{path}: {counted} of {attempts} counted");
        assert!(counted <= attempts, "{path}: {counted} of {attempts}");
    }
    assert!(gateway.envoy.vm_failures().is_empty());
}

/// A match that an exclusion has ended cannot be had again: any further exclusion for it can be forced.
fn end_a_match(gateway: &Gateway, console: &Console) {
    let request = Request::get("/ended?other=the+zebra+crossing");
    assert_eq!(request.send(gateway.address).unwrap().status, 200);
    let applied = wait_for("the match", PATIENCE, || {
        let answer = console.answer("tuning/_apply", &exclusion("!ARGS:other"));
        (answer.status == 200).then_some(())
    });
    applied.unwrap_or_else(|why| panic!("{why}: {}", console.show("tuning/_matches")));
}

fn exclusion(inputs: &str) -> Value {
    json!({
        "sample_id": "demo|10050|ARGS:other|/ended",
        "seclang": format!("SecRuleUpdateTargetById 10050 \"{inputs}\""),
        "kind": "update_target",
        "reason": "tried",
        "force": true,
    })
}

/// Traffic and exclusions, and a blow in the midst of them: the requests that were sent, and the exclusions that were acknowledged.
fn strike(gateway: &mut Gateway, console: &Console, round: usize) -> (u64, Vec<usize>) {
    let stop = AtomicBool::new(false);
    let (address, kills_control) = (gateway.address, round.is_multiple_of(2));
    thread::scope(|scope| {
        let requests = scope.spawn(|| send(address, &path("struck", round), &stop));
        let exclusions = scope.spawn(|| apply(console, round, &stop));
        thread::sleep(Duration::from_millis(300 + round as u64 * 397 % 1900));
        if kills_control {
            gateway.control.kill();
            gateway.control.restart();
        } else {
            let (xds, admin) = (gateway.control.xds().port(), 0);
            let bootstrap = shipped("xds.yaml", &[(WRITTEN_XDS_PORT, xds), (WRITTEN_ADMIN_PORT, admin)]);
            gateway.envoy.process().kill();
            gateway.envoy = Envoy::start(&bootstrap);
            gateway.wait_until_open();
        }
        let ready = json!({ "config_ref": "demo" });
        wait_for("the windows are read", PATIENCE, || {
            (console.answer("learning/_report", &ready).status == 200).then_some(())
        })
        .unwrap();
        stop.store(true, Ordering::Relaxed);
        (requests.join().unwrap(), exclusions.join().unwrap())
    })
}

/// Sends matches until it is told to stop; how many.
fn send(to: SocketAddr, path: &str, stop: &AtomicBool) -> u64 {
    let mut attempts = 0;
    while !stop.load(Ordering::Relaxed) {
        attempts += 1;
        if matching(path).send(to).is_err() {
            thread::sleep(Duration::from_millis(20));
        }
    }
    attempts
}

/// Writes exclusions until it is told to stop; the numbers of those that were acknowledged.
fn apply(console: &Console, round: usize, stop: &AtomicBool) -> Vec<usize> {
    let mut done = Vec::new();
    for number in round * 1000.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        match console.try_answer("tuning/_apply", &exclusion(&format!("!ARGS:a{number}"))) {
            Ok(answer) if answer.status == 200 => done.push(number),
            _ => thread::sleep(Duration::from_millis(20)),
        }
    }
    done
}

fn matching(path: &str) -> Request {
    Request::get(format!("{path}?text=the+zebra+crossing"))
}

/// A path without a number, which would be folded.
fn path(name: &str, round: usize) -> String {
    let letter = |number: usize| char::from(b'a' + u8::try_from(number % 26).unwrap());
    format!("/{name}/{}{}", letter(round / 26), letter(round))
}

fn count(report: &Value, path: &str) -> Option<u64> {
    report["entries"].as_array()?.iter().find(|entry| entry["path"] == path)?["count"].as_u64()
}

/// The rules of the ruleset that exclusions go to.
fn rules(control: &ControlPlane) -> Vec<String> {
    let answer = control.call("GET", &ControlPlane::path("waf-rulesets", "exclusions-demo"), None);
    if answer.status == 404 {
        return Vec::new();
    }
    assert_eq!(answer.status, 200, "{}", answer.text());
    let config = control.call("GET", &ControlPlane::path("waf-configs", "demo"), None).json();
    assert_eq!(config["rulesets"][0], "exclusions-demo", "the ruleset and its use are written together");
    let rules = answer.json()["rules"].as_array().unwrap().clone();
    rules.iter().map(|rule| rule.as_str().unwrap().to_owned()).collect()
}

/// The comment and the rule.
fn is_whole(rule: &str) -> bool {
    let mut lines = rule.lines();
    let comment = lines.next().unwrap_or_default();
    let is_rule = lines.next().is_some_and(|line| line.starts_with("SecRuleUpdateTargetById ") && line.ends_with('"'));
    comment.starts_with("# Exclusion 5") && comment.ends_with(": tried") && is_rule && lines.next().is_none()
}
