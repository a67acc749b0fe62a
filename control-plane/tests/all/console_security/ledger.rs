//! The ledger, and what a policy would do.

use super::Desk;
use serde_json::{Value, json};

#[tokio::test]
async fn the_ledger_promotes_and_is_read_and_cleared() {
    let desk = Desk::new().await;
    let task = tokio::spawn(desk.console.fabric.clone().keep_ledger());
    desk.event("192.0.2.7", 60.0, "threat-response");
    desk.event("192.0.2.8", 30.0, "threat-response");
    desk.event("192.0.2.9", 90.0, "waf");
    let total = async |ip: &str| desk.post("_ledger", json!({"ref": format!("ip:{ip}")})).await["score"].clone();
    while total("192.0.2.8").await != json!(30) {
        tokio::task::yield_now().await;
    }
    let top =
        json!({"done": true, "top": [{"key": "ip:192.0.2.7", "score": 60}, {"key": "ip:192.0.2.8", "score": 30}]});
    assert_eq!(desk.post("_ledger", json!({})).await, top, "the WAF has a weight of its own, and none by default");
    let answer = desk.post("_ledger", json!({"ref": "ip:192.0.2.8"})).await;
    assert_eq!(answer, json!({"done": true, "ref": {"kind": "ip", "value": "192.0.2.8"}, "score": 30}));
    assert_eq!(desk.post("_ledger", json!({"ref": "ip:192.0.2.8", "forget": true})).await, json!({"done": true}));
    assert_eq!(total("192.0.2.8").await, json!(0));
    assert_eq!(desk.get("_bans").await, json!({"bans": []}));
    desk.event("192.0.2.7", 40.0, "threat-response");
    let bans = loop {
        let bans = desk.get("_bans").await["bans"].clone();
        if bans != json!([]) {
            break bans;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((&bans[0]["key"], &bans[0]["issued_by"]), (&json!("ip:192.0.2.7"), &json!("ledger")));
    assert_eq!(total("192.0.2.7").await, json!(0), "consumed");
    task.abort();
}

#[tokio::test]
async fn a_simulation_chooses_as_gateways_do() {
    let desk = Desk::new().await;
    let simulate = async |body: Value| {
        let answer = desk.post("_simulate", body).await;
        assert_eq!(answer["done"], true, "{answer}");
        (answer["tier"].clone(), answer["action"].as_str().unwrap().to_owned(), answer["enforced"] == true)
    };
    let answer = desk.post("_simulate", json!({"score": 75})).await;
    let policy = json!({"id": "builtin", "name": "Built-in (dry run)", "dry_run": true});
    assert_eq!(
        answer,
        json!({"done": true, "policy": policy, "score": 75, "tier": 1, "action": "tarpit", "enforced": false})
    );
    assert_eq!(simulate(json!({"score": 95, "policy": "builtin"})).await, (json!(2), "ban".into(), false));
    assert_eq!(simulate(json!({"score": 39.5, "policy": "builtin"})).await, (Value::Null, "allow".into(), false));
    let tiers = json!([{"min_score": 90, "action": "ban"}, {"min_score": 20, "action": "log"}, {"min_score": 50, "action": "throttle"}]);
    let document = json!({"id": "mine", "name": "mine", "dry_run": false, "tiers": tiers});
    let made = desk.console.api.call("POST", "/threat-policies", Some(document)).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let mine = |score: u32| json!({"score": score, "policy": "mine"});
    assert_eq!(simulate(mine(100)).await, (json!(0), "ban".into(), true));
    assert_eq!(simulate(mine(89)).await, (json!(2), "throttle".into(), false));
    assert_eq!(simulate(mine(20)).await, (json!(1), "log".into(), false));
    assert_eq!(simulate(json!({"score": 100})).await, (json!(0), "ban".into(), true), "the first enabled one");
}
