//! Several control planes on one Redis while the network or the server fails: requests go on, what is degraded is said, and afterwards all
//! have the same.

use std::collections::BTreeSet;

use palisade_tests::proxy::Network;
use serde_json::{Value, json};
use snapshot::{BanRequest, Up};

use crate::alerts_support::{LONG, World, link};
use crate::cli_support::request;
use crate::shared_support::{Pair, incidents, keys, leads, metric, told, until};

const ENTITIES: &str = "/apis/palisade.svc/v1";
/// A server that hangs is an error after half a second.
const SHORT: &str = "?timeout_millis=500";

fn ready(world: &World) -> (u16, Value) {
    let (status, body) = request(&world.server.rest, "", "GET", "/readyz", "").unwrap();
    (status, serde_json::from_str(&body).unwrap())
}

fn entity(world: &World, id: &str) -> u16 {
    let body = json!({ "id": id, "rules": ["SecRuleEngine On"] }).to_string();
    request(&world.server.rest, &world.server.authorization, "POST", &format!("{ENTITIES}/waf-configs"), &body)
        .unwrap()
        .0
}

/// Bans, the allowlist, entities.
type State = [BTreeSet<String>; 3];

/// `None` while the store cannot be read.
fn state(world: &World) -> Option<State> {
    let (status, body) =
        request(&world.server.rest, &world.server.authorization, "GET", &format!("{ENTITIES}/waf-configs"), "")
            .unwrap();
    if status != 200 || ready(world).0 != 200 {
        return None;
    }
    let found: Value = serde_json::from_str(&body).unwrap();
    let entities = found.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    Some([keys(world, "_bans", "bans", "key"), keys(world, "_allowlist", "entries", "key"), entities])
}

fn set<const N: usize>(keys: [&str; N]) -> BTreeSet<String> {
    keys.map(str::to_owned).into()
}

async fn agree(pair: &Pair, wanted: &State) {
    let agreed = until("both agree", async || pair.both().iter().all(|world| state(world).as_ref() == Some(wanted)));
    if tokio::time::timeout(LONG / 2, agreed).await.is_err() {
        panic!("{wanted:?}: {:?}", pair.both().map(state));
    }
}

fn is_of_store(event: &Value, words: &str) -> bool {
    event["event"]["category"] == "dependency"
        && event["event"]["module"] == "store"
        && event["message"].as_str().unwrap_or_default().contains(words)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_cut_off_says_so_and_both_agree_afterwards() {
    let mut pair = Pair::start_with(SHORT).await;
    let ban = |world: &World, ip: &str| world.answer("POST", "_ban", &json!({ "ref": format!("ip:{ip}") }));
    assert_eq!(entity(&pair.one, "before"), 201);
    assert_eq!(ban(&pair.other, "192.0.2.1").1["done"], true);
    let allowed = json!({ "ref": "ip:192.0.2.8", "reason": "a test" });
    assert_eq!(pair.one.console("POST", "_allow", &allowed)["done"], true);
    told(&mut pair.one, "ip:192.0.2.1", |ban| ban.until_millis > 0).await;
    for world in pair.both() {
        world.event("198.51.100.1", 1.0).await;
    }
    until("one incident", async || incidents(&pair.one).iter().any(|row| row.2 == 2)).await;
    agree(&pair, &[set(["ip:192.0.2.1"]), set(["ip:192.0.2.8"]), set(["before"])]).await;

    pair.networks[0].set(Network::BlackHole);
    // What a gateway asks for meanwhile is in force there at once.
    let tier = BanRequest {
        key: "ip:192.0.2.3".into(),
        until_millis: base::clock::now_millis() + 600_000,
        issued_at_millis: base::clock::now_millis(),
        reason: "tier".into(),
        ..BanRequest::default()
    };
    pair.one.up.send(Up { node: "edge-1".into(), bans: vec![tier], ..Up::default() }).await.unwrap();
    assert!(told(&mut pair.one, "ip:192.0.2.3", |_| true).await.unrecorded);
    // The one that is cut off takes no change, and says why.
    let (status, refusal) = ban(&pair.one, "192.0.2.50");
    assert!(status >= 500 && refusal.to_string().contains("no answer"), "{status} {refusal}");
    assert!(entity(&pair.one, "refused") >= 500);
    until("it does not lead, and the other one does", async || !leads(&pair.one) && leads(&pair.other)).await;
    let (status, said) = ready(&pair.one);
    assert_eq!((status, &said["missing"]), (503, &json!(["store"])), "{said}");
    assert!(said["problems"].to_string().contains("no answer"), "{said}");
    assert!(metric(&pair.one, r#"palisade_health_troubles{part="store"}"#) >= 1.0);
    pair.one.exported(|event| is_of_store(event, "no answer")).await;
    let status = pair.one.console("GET", "_status", &Value::Null);
    let shared = &status["shared_state"];
    assert!(shared["warning"].as_str().unwrap().contains("does not work"), "{shared}");
    assert_eq!((&shared["leads"], &shared["dedicated_store"]), (&json!(false), &json!(true)));
    // The other one works, and its gateway has what is new.
    assert_eq!(ready(&pair.other).0, 200);
    assert_eq!(ban(&pair.other, "192.0.2.2").1["done"], true);
    told(&mut pair.other, "ip:192.0.2.2", |ban| ban.until_millis > 0).await;
    assert_eq!(entity(&pair.other, "meanwhile"), 201);
    assert_eq!(pair.other.console("POST", "_disallow", &json!({ "ref": "ip:192.0.2.8" }))["done"], true);
    for world in pair.both() {
        world.event("198.51.100.1", 1.0).await;
    }

    pair.networks[0].set(Network::Whole);
    let bans = set(["ip:192.0.2.1", "ip:192.0.2.2", "ip:192.0.2.3"]);
    agree(&pair, &[bans, set([]), set(["before", "meanwhile"])]).await;
    told(&mut pair.one, "ip:192.0.2.2", |ban| ban.until_millis > 0).await;
    assert!(!told(&mut pair.other, "ip:192.0.2.3", |ban| ban.until_millis > 0).await.unrecorded);
    until("one incident of all events", async || {
        pair.both().iter().all(|world| incidents(world).iter().any(|row| row.2 == 4))
    })
    .await;
    pair.one.exported(|event| is_of_store(event, "works again")).await;
    until("nothing is wrong any more", async || {
        pair.both().iter().all(|world| ready(world).1["status"] == "ready")
            && pair.one.console("GET", "_status", &Value::Null)["shared_state"]["warning"].is_null()
    })
    .await;
    assert_eq!(pair.both().iter().filter(|world| leads(world)).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_older_data_is_followed_by_all_with_their_gateways() {
    let mut pair = Pair::start_with(SHORT).await;
    let ban = |world: &World, ip: &str| world.console("POST", "_ban", &json!({ "ref": format!("ip:{ip}") }));
    assert_eq!(entity(&pair.one, "older"), 201);
    assert_eq!(ban(&pair.other, "192.0.2.1")["done"], true);
    pair.one.event("198.51.100.1", 1.0).await;
    until("the incident", async || pair.both().iter().all(|world| incidents(world).len() == 1)).await;
    let older = [set(["ip:192.0.2.1"]), set([]), set(["older"])];
    agree(&pair, &older).await;
    let saved = pair.redis.saved();
    assert_eq!(entity(&pair.other, "newer"), 201);
    assert_eq!(ban(&pair.one, "192.0.2.2")["done"], true);
    assert_eq!(pair.one.console("POST", "_unban", &json!({ "ref": "ip:192.0.2.1" }))["done"], true);
    pair.other.event("198.51.100.2", 1.0).await;
    until("the next incident", async || pair.both().iter().all(|world| incidents(world).len() == 2)).await;
    agree(&pair, &[set(["ip:192.0.2.2"]), set([]), set(["older", "newer"])]).await;

    pair.redis.restore(&saved);
    agree(&pair, &older).await;
    // Gateways have what the store has: a ban that it does not have is lifted, one that it has again holds.
    for world in [&mut pair.one, &mut pair.other] {
        told(world, "ip:192.0.2.2", |ban| ban.until_millis == 0).await;
        world.exported(|event| is_of_store(event, "has lost changes") && is_of_store(event, "192.0.2.2")).await;
        assert_eq!(metric(world, "palisade_store_setbacks_total"), 1.0);
    }
    let again = pair.one.up.clone();
    let tier = BanRequest {
        key: "ip:192.0.2.4".into(),
        until_millis: base::clock::now_millis() + 600_000,
        issued_at_millis: base::clock::now_millis(),
        ..BanRequest::default()
    };
    again.send(Up { node: "edge-1".into(), bans: vec![tier], ..Up::default() }).await.unwrap();
    agree(&pair, &[set(["ip:192.0.2.1", "ip:192.0.2.4"]), set([]), set(["older"])]).await;
    until("the incidents of the older data", async || pair.both().iter().all(|world| incidents(world).len() == 1))
        .await;
    // A write at each goes on from there.
    assert_eq!((entity(&pair.one, "next"), entity(&pair.other, "last")), (201, 201));
    agree(&pair, &[set(["ip:192.0.2.1", "ip:192.0.2.4"]), set([]), set(["older", "next", "last"])]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_emptied_server_is_refused_by_all_and_their_gateways_keep_what_they_have() {
    let mut pair = Pair::start_with(SHORT).await;
    assert_eq!(entity(&pair.one, "kept"), 201);
    assert_eq!(pair.one.console("POST", "_ban", &json!({ "ref": "ip:192.0.2.1" }))["done"], true);
    let kept = [set(["ip:192.0.2.1"]), set([]), set(["kept"])];
    agree(&pair, &kept).await;
    let saved = pair.redis.saved();
    assert_eq!(pair.redis.cli(&["FLUSHALL"]), "OK");
    for world in [&mut pair.one, &mut pair.other] {
        until("it is not ready", async || ready(world).0 == 503).await;
        world.exported(|event| is_of_store(event, "lost everything")).await;
        let status = world.console("GET", "_status", &Value::Null);
        assert!(status["shared_state"]["warning"].to_string().contains("lost everything"), "{status}");
        assert!(entity(world, "refused") >= 500);
        // A gateway that starts gets what was known last.
        (world.up, world.down) = link(&world.server).await;
        told(world, "ip:192.0.2.1", |ban| ban.until_millis > 0).await;
    }
    pair.redis.restore(&saved);
    agree(&pair, &kept).await;
}
