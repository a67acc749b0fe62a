//! Bans and the allowlist from the console.

use super::Desk;
use crate::xds_support::until;
use serde_json::{Value, json};
use store::fabric::{Charge, LedgerRules, Note};

#[tokio::test]
async fn a_ban_by_hand_is_shown_extended_and_lifted() {
    let desk = Desk::new().await;
    let now = desk.now();
    let answer = desk.post("_ban", json!({"ref": "ip:192.0.2.9", "duration_seconds": 60, "reason": "scans"})).await;
    let expected = json!({
        "ref": {"kind": "ip", "value": "192.0.2.9"}, "key": "ip:192.0.2.9", "reason": "scans", "tags": ["manual"],
        "score": 0, "issued_at": now, "until": now + 60_000, "issued_by": "alice", "signals": [],
        "timeline": [{"at": now, "action": "ban", "by": "alice", "detail": "scans"}],
        "last_action": "ban", "last_action_by": "alice", "last_action_at": now,
    });
    let reason = "no chain has a threat gate: neither an enabled route (`SecuritySuitePreset`, `SvcThreatGate`) nor the global \
                  chain";
    assert_eq!(answer, json!({"done": true, "ban": expected, "enforced": false, "reason": reason}));
    assert_eq!(desk.get("_bans").await, json!({"bans": [expected]}));
    desk.console.advance(10_000);
    let answer = desk.post("_extend", json!({"ref": "ip:192.0.2.9", "duration_seconds": 30})).await;
    assert_eq!((&answer["done"], &answer["ban"]["until"]), (&json!(true), &json!(now + 90_000)), "{answer}");
    assert_eq!(answer["ban"]["last_action"], "extend");
    desk.console.advance(80_000);
    assert_eq!(desk.get("_bans").await, json!({"bans": []}), "it ends by itself");
    let answer = desk.post("_extend", json!({"ref": "ip:192.0.2.9", "duration_seconds": 30})).await;
    assert_eq!(answer, json!({"done": false, "error": "there is no live ban on ip:192.0.2.9"}));

    let answer = desk.post("_ban", json!({"ref": "ip:10.1.2.3/8"})).await;
    assert_eq!(answer["ban"]["key"], "ip:10.0.0.0/8");
    assert_eq!(answer["ban"]["until"], desk.now() + 3_600_000, "an hour where nothing is said");
    desk.post("_ban", json!({"ref": "apikey:k1"})).await;
    desk.post("_ban", json!({"ref": "user:ada"})).await;
    let user = json!({"done": true, "ref": {"kind": "user", "value": "ada"}, "still_banned_by": []});
    assert_eq!(desk.post("_unban", json!({"ref": "user:ada"})).await, user);
    assert_eq!(desk.post("_unban", json!({"ref": "user:ada"})).await, user, "true even where there was none");
    assert_eq!(desk.post("_unban", json!({"all": true})).await, json!({"done": true, "removed": 2}));
    assert_eq!(desk.get("_bans").await, json!({"bans": []}));

    let audits = desk.audits().await;
    let actions: Vec<&str> = audits.iter().map(|audit| audit["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["ban", "extend", "ban", "ban", "ban", "unban", "unban", "unban-all"]);
    assert_eq!(audits[0]["user"], json!({"name": "alice", "email": "alice@example.com"}));
    assert_eq!((&audits[0]["ref"], &audits[0]["detail"]), (&json!("ip:192.0.2.9"), &json!("for another 60 s: scans")));
}

#[tokio::test]
async fn a_ban_says_whether_anything_enforces_it() {
    let desk = Desk::new().await;
    let enforced = async |body: Value| {
        let answer = desk.post("_ban", body).await;
        assert_eq!(
            (&answer["done"], answer["reason"].is_null()),
            (&json!(true), answer["enforced"] == true),
            "{answer}"
        );
        answer["enforced"] == true
    };
    assert!(!enforced(json!({"ref": "ip:192.0.2.9"})).await, "there is no chain");
    let entities = &desk.console.api;
    let route = json!({"id": "shop", "plugins": [{"plugin": "SecuritySuitePreset", "config": {}}]});
    let created = entities.call("POST", "/routes", Some(route)).await;
    assert_eq!(created.status, 201, "{}", created.text);
    assert!(!enforced(json!({"ref": "ip:192.0.2.9"})).await, "no gateway is linked");
    let linked = desk.console.linked().await;
    // The policy that is in force, the built-in one, is in dry run.
    until("the gateway", async || enforced(json!({"ref": "ip:192.0.2.9"})).await.then_some(())).await;
    let extended = desk.post("_extend", json!({"ref": "ip:192.0.2.9"})).await;
    assert_eq!((&extended["enforced"], &extended["reason"]), (&json!(true), &Value::Null), "{extended}");
    for unverified in ["user:ada", "apikey:k1"] {
        assert!(!enforced(json!({"ref": unverified})).await, "nothing verifies {unverified}");
    }
    let identity = json!({"identity": {"verified_by": [{"kind": "jwt", "path": ["payload", "sub"]}]}});
    let changed = entities.call("PATCH", "/global-config/global-config", Some(identity)).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    assert!(!enforced(json!({"ref": "user:ada"})).await, "the listener that xDS serves has no such filter");
    let taken = json!({"gateway": {"delivery": "ecds"}});
    let changed = entities.call("PATCH", "/global-config/global-config", Some(taken)).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    assert!(enforced(json!({"ref": "user:ada"})).await && !enforced(json!({"ref": "apikey:k1"})).await);
    let exempt = json!({"id": "main", "enabled": true, "exemptions": ["192.0.2.0/24"]});
    let created = entities.call("POST", "/threat-policies", Some(exempt)).await;
    assert_eq!(created.status, 201, "{}", created.text);
    assert!(!enforced(json!({"ref": "ip:192.0.2.9"})).await, "the policy lets it pass");
    assert!(!enforced(json!({"ref": "ip:192.0.2.128/25"})).await);
    assert!(enforced(json!({"ref": "ip:192.0.3.9"})).await);
    let extended = desk.post("_extend", json!({"ref": "ip:192.0.2.9"})).await;
    assert!(extended["enforced"] == false && extended["reason"].is_string(), "{extended}");
    drop(linked);
}

#[tokio::test]
async fn an_address_of_ipv6_stands_for_its_network() {
    let desk = Desk::new().await;
    let key = async |path: &str, reference: &str| {
        let answer = desk.post(path, json!({"ref": reference})).await;
        assert_eq!(answer["done"], true, "{answer}");
        answer["ban"]["key"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(key("_ban", "ip:2001:db8:1:2::9").await, "ip:2001:db8:1:2::/64");
    assert_eq!(key("_extend", "ip:2001:db8:1:2:ffff::1").await, "ip:2001:db8:1:2::/64");
    assert_eq!(key("_ban", "ip:2001:db8:1:3::9/128").await, "ip:2001:db8:1:3::9");
    assert_eq!(key("_extend", "ip:2001:db8:1:3::9").await, "ip:2001:db8:1:3::9");
    assert_eq!(key("_ban", "ip:::ffff:192.0.2.1").await, "ip:192.0.2.1");
    for reference in ["ip:2001:db8:1:2::77", "ip:2001:db8:1:3::9", "ip:192.0.2.1"] {
        key("_unban", reference).await;
    }
    assert_eq!(desk.get("_bans").await, json!({"bans": []}));
    // A list is asked by whom a ban is on, and what covers an address beside its own ban is said.
    for reference in ["ip:2001:db8:1:2::9", "ip:2001:db8:1::/56", "ip:2001:db8::/32", "ip:192.0.0.0/16"] {
        key("_ban", reference).await;
    }
    let asked = desk.get("_bans?filter.ref=ip:2001:db8:1:2::77").await;
    assert_eq!(
        (asked["bans"].as_array().unwrap().len(), &asked["bans"][0]["key"]),
        (1, &json!("ip:2001:db8:1:2::/64"))
    );
    let still = async |reference: &str| desk.post("_unban", json!({"ref": reference})).await["still_banned_by"].take();
    assert_eq!(still("ip:2001:db8:1:2::77").await, json!(["ip:2001:db8:1::/56", "ip:2001:db8::/32"]));
    assert_eq!(still("ip:192.0.2.1").await, json!(["ip:192.0.0.0/16"]));
    assert_eq!((still("ip:198.51.100.1").await, still("user:ada").await), (json!([]), json!([])));
    desk.post("_unban", json!({"all": true})).await;
    // Whom the allowlist gets is forgotten as it is charged.
    let store = &desk.console.api.state.store;
    let rules = LedgerRules { window_millis: 3_600_000, threshold: 1000.0, ban_millis: 1000 };
    let charge = Charge { key: "ip:2001:db8:1:9::/64".into(), points: 50.0, at: desk.now(), ..Charge::default() };
    store.ledger_charge(vec![charge], rules, desk.now(), Note::none()).await.unwrap();
    desk.post("_allow", json!({"ref": "ip:2001:db8:1:9::5"})).await;
    assert_eq!(desk.post("_ledger", json!({"ref": "ip:2001:db8:1:9::5"})).await["score"], 0);

    desk.event("2001:db8:1:2::1", 60.0, "threat-response");
    desk.event("2001:db8:1:2::2", 60.0, "threat-response");
    let incidents = desk.get("_incidents").await;
    assert_eq!(
        (&incidents["incidents"][0]["key"], &incidents["incidents"][0]["count"]),
        (&json!("ip:2001:db8:1:2::/64"), &json!(2))
    );
    let asked = desk.get("_incidents?filter.ref=ip:2001:db8:1:2::77").await;
    assert_eq!(asked["incidents"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn what_cannot_be_is_answered_with_200_and_changes_nothing() {
    let desk = Desk::new().await;
    let error = async |path: &str, body: Value| {
        let answer = desk.post(path, body).await;
        assert_eq!(answer["done"], false, "{answer}");
        answer["error"].as_str().unwrap().to_owned()
    };
    for path in
        ["_ban", "_extend", "_unban", "_allow", "_disallow", "_incident_state", "_ledger", "_simulate", "_alert_test"]
    {
        let headers = [("cookie", desk.login.cookie.as_str()), ("x-csrf-token", desk.login.csrf.as_str())];
        let answer = desk.console.send("POST", &format!("/security/{path}"), &headers, None).await;
        assert_eq!((answer.status.as_u16(), answer.body), (200, json!({"done": false, "error": "no body"})), "{path}");
        assert!(error(path, json!([])).await.starts_with("invalid json body"), "{path}");
        assert!(error(path, json!({"nonsense": 1})).await.contains("nonsense"), "{path}");
        let forged = desk.console.send("POST", &format!("/security/{path}"), &headers[..1], Some(&json!({}))).await;
        assert_eq!(forged.status, 403, "{path} without the token");
        let stranger = desk.console.send("POST", &format!("/security/{path}"), &[], Some(&json!({}))).await;
        assert_eq!(stranger.status, 401, "{path} without a session");
    }
    for path in ["_ban", "_extend", "_unban", "_allow", "_disallow"] {
        assert_eq!(error(path, json!({})).await, "no identity provided", "{path}");
        assert!(error(path, json!({"ref": "office"})).await.contains("`office` is not an identity"), "{path}");
    }
    for seconds in [0, 315_360_001_u64] {
        let body = json!({"ref": "ip:192.0.2.1", "duration_seconds": seconds});
        assert!(error("_ban", body.clone()).await.contains("expected 1 to 315360000"));
        assert!(error("_allow", body).await.contains("expected 1 to 315360000"));
    }
    assert!(error("_ban", json!({"ref": "ip:0.0.0.0/0"})).await.contains("every address"));
    let wrong = error("_incident_state", json!({"key": "ip:192.0.2.1", "state": "closed"})).await;
    assert_eq!(wrong, "`closed` is not a state; expected `open`, `acknowledged` or `resolved`");
    assert!(error("_simulate", json!({"score": 101})).await.contains("0 to 100"));
    assert!(error("_simulate", json!({"score": 50, "policy": "none"})).await.contains("`none`"));
    assert_eq!(desk.audits().await, Vec::<Value>::new(), "what changed nothing is not told");
}

#[tokio::test]
async fn the_allowlist_lifts_and_holds() {
    let desk = Desk::new().await;
    desk.post("_ban", json!({"ref": "ip:192.0.2.9"})).await;
    let now = desk.now();
    let answer = desk
        .post("_allow", json!({"ref": "ip:192.0.2.0/24", "reason": "office", "unban": true, "duration_seconds": 60}))
        .await;
    let entry = json!({
        "ref": {"kind": "ip", "value": "192.0.2.0/24"}, "key": "ip:192.0.2.0/24", "reason": "office", "added_by": "alice",
        "added_at": now, "until": now + 60_000, "permanent": false,
    });
    assert_eq!(answer, json!({"done": true, "entry": entry, "released": true, "lifted": ["ip:192.0.2.9"]}));
    assert_eq!(desk.get("_allowlist").await, json!({"entries": [entry]}));
    let answer = desk.post("_ban", json!({"ref": "ip:192.0.2.9"})).await;
    assert_eq!((&answer["done"], &answer["refused"]), (&json!(false), &json!("allowlisted")));
    assert_eq!(answer["allowlist"], entry);
    desk.console.advance(60_000);
    assert_eq!(desk.post("_ban", json!({"ref": "ip:192.0.2.9"})).await["done"], true, "the entry has ended");
    let answer = desk.post("_allow", json!({"ref": "ip:192.0.2.9", "unban": false, "duration_seconds": null})).await;
    assert_eq!((&answer["entry"]["permanent"], &answer["entry"]["until"]), (&json!(true), &Value::Null));
    assert_eq!(answer["released"], false);
    assert_eq!(desk.get("_bans").await["bans"].as_array().unwrap().len(), 1);
    let gone = json!({"done": true, "ref": {"kind": "ip", "value": "192.0.2.9"}});
    assert_eq!(desk.post("_disallow", json!({"ref": "ip:192.0.2.9"})).await, gone);
    assert_eq!(desk.get("_allowlist").await, json!({"entries": []}));
    let audits = desk.audits().await;
    let actions: Vec<&str> = audits.iter().map(|audit| audit["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["ban", "allowlist", "ban-refused", "ban", "allowlist", "allowlist-remove"]);
}

#[tokio::test]
async fn long_lists_come_in_pages_and_are_filtered() {
    let desk = Desk::new().await;
    let page = async |path: &str| {
        let answer = desk.console.get(&desk.login, &format!("/security/{path}")).await;
        let header = |name: &str| answer.header(name).parse::<usize>().unwrap_or_else(|_| panic!("{}", answer.text));
        let field = path.split('?').next().unwrap();
        let field = match field {
            "_bans" => "bans",
            "_allowlist" => "entries",
            _ => "incidents",
        };
        let keys = answer.body[field].as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap().to_owned());
        (keys.collect::<Vec<_>>(), header("x-pages"), header("x-total"))
    };
    assert_eq!(page("_bans").await, (vec![], 1, 0));
    for number in 0..5 {
        desk.post("_ban", json!({"ref": format!("user:u{number}"), "reason": format!("r{}", number % 2)})).await;
        desk.post("_allow", json!({"ref": format!("apikey:k{number}"), "reason": format!("r{}", number % 2)})).await;
        desk.event(&format!("192.0.2.{number}"), 55.0, "waf");
    }
    let users = |numbers: &[u32]| numbers.iter().map(|number| format!("user:u{number}")).collect::<Vec<_>>();
    assert_eq!(page("_bans").await, (users(&[0, 1, 2, 3, 4]), 1, 5));
    assert_eq!(page("_bans?pageSize=2").await, (users(&[0, 1]), 3, 5));
    assert_eq!(page("_bans?pageSize=2&page=3").await, (users(&[4]), 3, 5));
    assert_eq!(page("_bans?page=2").await, (vec![], 1, 5), "a page that there is not is empty");
    assert_eq!(page("_bans?filter.reason=r1").await, (users(&[1, 3]), 1, 2));
    assert_eq!(page("_bans?filter.issued_by=alice&filter.ref=user:u3").await, (users(&[3]), 1, 1));
    assert_eq!(page("_bans?filter.issued_by=bob").await, (vec![], 1, 0));
    assert_eq!(page("_allowlist?pageSize=4&page=2").await, (vec!["apikey:k4".to_owned()], 2, 5));
    assert_eq!(page("_allowlist?filter.reason=r0&filter.added_by=alice").await.2, 3);
    assert_eq!(page("_bans?filter.text=R1").await, (users(&[1, 3]), 1, 2));
    assert_eq!(page("_bans?filter.text=alice&pageSize=2&page=2").await, (users(&[2, 3]), 3, 5));
    assert_eq!(page("_bans?filter.text=%20").await.2, 5, "blanks are no search");
    desk.post("_ban", json!({"ref": "ip:2001:db8::1"})).await;
    for typed in ["2001:db8::9", "ip:2001:db8:0:0:1::", "+2001:db8::9+"] {
        assert_eq!(page(&format!("_bans?filter.text={typed}")).await.0, ["ip:2001:db8::/64"], "its network is banned");
    }
    desk.post("_unban", json!({"ref": "ip:2001:db8::1"})).await;
    assert_eq!(page("_allowlist?filter.text=K3").await.0, ["apikey:k3"]);
    assert_eq!(page("_allowlist?filter.text=r1&filter.ref=apikey:k0").await.2, 0);
    for text in ["192.0.2.3", "IP:192.0.2.3"] {
        assert_eq!(page(&format!("_incidents?filter.text={text}")).await.0, ["ip:192.0.2.3"]);
    }
    assert_eq!(page("_incidents?filter.text=WAF:M&pageSize=2").await.2, 5, "a tag");
    assert_eq!(page("_incidents?filter.text=no+such+text").await.2, 0);
    let (first, pages, total) = page("_incidents?pageSize=3").await;
    assert_eq!((first.len(), pages, total), (3, 2, 5));
    assert_eq!(page("_incidents?filter.ref=ip:192.0.2.4&filter.state=open").await.0, ["ip:192.0.2.4"]);
    for wrong in [
        "_bans?page=0",
        "_bans?pageSize=10001",
        "_bans?filter.score=1",
        "_allowlist?pageSize=x",
        "_incidents?filter.x=",
        "_incidents?filter.outcome=refused",
    ] {
        let answer = desk.console.get(&desk.login, &format!("/security/{wrong}")).await;
        assert_eq!((answer.status.as_u16(), &answer.body["error"]), (400, &json!("invalid_query")), "{wrong}");
    }
    let outcome = async |word: &str| page(&format!("_incidents?filter.outcome={word}")).await.2;
    assert_eq!((outcome("enforced").await, outcome("observed").await, outcome("banned").await), (5, 0, 0));
    // A range that is banned holds who is in it, although the incident's own key is not banned.
    desk.post("_ban", json!({"ref": "ip:192.0.2.0/24"})).await;
    assert_eq!(outcome("banned").await, 5);
    let one = desk.get("_incidents?filter.ref=ip:192.0.2.4").await["incidents"][0].clone();
    assert_eq!((&one["banned"], &one["ban"]["key"]), (&json!(true), &json!("ip:192.0.2.0/24")));
}
