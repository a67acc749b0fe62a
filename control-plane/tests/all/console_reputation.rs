//! The console's `reputation/…` as far as it needs no gatherer; with one it is tested beside the plugin.

use std::sync::Arc;
use std::time::Duration;

use crate::console_support::{ConsoleApi, Login};
use api::names::NAMESPACE;
use axum::body::Body;
use axum::http::Request;
use entities::plugins;
use kit::{EntitySource, SourceHealth, Sources, Surroundings};
use material::Material;
use outbound::Outbound;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;

#[tokio::test]
async fn a_feed_is_made_of_an_entry_of_the_catalogue_and_can_be_saved() {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    let catalog = console.get(&login, "/reputation/_catalog").await;
    assert_eq!(catalog.status.as_u16(), 200, "{}", catalog.text);
    assert_eq!(catalog.body["categories"], json!(["anonymity", "blocklist", "cloud", "allowlist"]));
    let entries = catalog.body["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 14);
    let drop = entries.iter().find(|entry| entry["id"] == "spamhaus-drop").unwrap();
    let expected = json!({ "weight": 90, "action": "block", "tag": "feed:spamhaus-drop", "format": "cidr_lines", "options": {},
                           "refresh_interval_seconds": 43_200, "requires_auth": false, "auth_hint": null, "manual_url": false });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(drop[field], *value, "{field}");
    }
    for entry in entries {
        let made = console.post(&login, "/reputation/_template", &json!({ "entry": entry["id"] })).await;
        assert_eq!((made.status.as_u16(), &made.body["done"]), (200, &json!(true)), "{}", made.text);
        let feed = made.body["feed"].clone();
        assert_eq!((&feed["catalog_ref"], &feed["url"], &feed["tag"]), (&entry["id"], &entry["url"], &entry["tag"]));
        let saved = console.api.call("POST", "/threat-feeds", Some(feed)).await;
        assert_eq!(saved.status.as_u16(), 201, "{}", saved.text);
    }
    let status = console.get(&login, "/reputation/_status").await;
    let feeds = status.body["feeds"].as_array().unwrap();
    assert_eq!((feeds.len(), &status.body["svc_bouncers"]), (14, &json!([])), "{}", status.text);
    for feed in feeds {
        let snapshot = &feed["snapshot"];
        assert_eq!(
            (&snapshot["entries"], &snapshot["ranges"], &snapshot["rejected"]),
            (&json!(0), &json!(0), &json!(0))
        );
        assert_eq!((&snapshot["error"], &feed["previous"]), (&Value::Null, &Value::Null), "{feed}");
    }
}

#[tokio::test]
async fn a_call_that_cannot_be_carried_out_is_answered_with_done_false() {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    let feed = json!({ "id": "off", "url": "https://feeds.test/list", "enabled": false });
    assert_eq!(console.api.call("POST", "/threat-feeds", Some(feed)).await.status, 201);
    for (path, body, says) in [
        ("_template", json!({ "entry": "spamhaus" }), "unknown entry"),
        ("_template", json!({}), "/entry: the field `entry` is required"),
        ("_template", json!([]), "the body is not a JSON object"),
        ("_refresh", json!({ "feed": "gone" }), "there is no feed `gone`"),
        ("_refresh", json!({ "feed": "off" }), "the feed `off` is disabled"),
        ("_refresh", json!({ "asn": true, "feed": "off" }), "either `feed`, or `asn` and `geo`"),
        ("_geo", json!({ "ips": ["192.0.2.7", "here"] }), "`here` is not an address"),
        ("_geo", json!({ "ips": vec!["192.0.2.7"; 501] }), "501 addresses are too many"),
        ("_refresh", json!({ "force": true }), "`force` is for one feed, or for databases"),
        ("_refresh", json!({ "fed": "off" }), "did you mean `feed`"),
        ("_rollback", json!({ "feed": "gone" }), "there is no feed `gone`"),
        ("_rollback", json!({ "feed": "off" }), "gathers no feeds"),
        ("_lookup", json!({ "ip": "here" }), "`here` is not an address"),
    ] {
        let answer = console.post(&login, &format!("/reputation/{path}"), &body).await;
        assert_eq!((answer.status.as_u16(), &answer.body["done"]), (200, &json!(false)), "{path} {}", answer.text);
        assert!(answer.body["error"].as_str().unwrap().contains(says), "{path}: {}", answer.text);
    }
    for (text, says) in [("", "no body"), ("{", "invalid json body")] {
        let request = Request::builder().method("POST").uri(format!("{NAMESPACE}/reputation/_lookup"));
        let request = request.header("host", "127.0.0.1:8900").header("content-type", "application/json");
        let request = request.header("cookie", &login.cookie).header("x-csrf-token", &login.csrf);
        let answer = console.api.send_as_it_is(request.body(Body::from(text)).unwrap()).await;
        assert_eq!((answer.status.as_u16(), &answer.body), (200, &json!({ "done": false, "error": says })));
    }
    let answer = console.post(&login, "/reputation/_lookup", &json!({ "ip": "::ffff:192.0.2.7" })).await;
    let verdict = json!({ "ip": "192.0.2.7", "score": 0, "blocking": false, "tags": [], "hits": [], "location": null });
    assert_eq!(answer.body, json!({ "done": true, "verdict": verdict }));
}

#[tokio::test]
async fn what_reads_is_a_get_and_wants_a_session() {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    for path in ["/reputation/_catalog", "/reputation/_status"] {
        assert_eq!(console.send("GET", path, &[], None).await.status, 401);
        assert_eq!(
            console.send("GET", path, &[("cookie", &login.cookie)], None).await.status,
            200,
            "it changes nothing"
        );
        assert_eq!(console.post(&login, path, &json!({})).await.status, 405);
    }
    let request = Request::builder().uri("/openapi.json").header("host", "127.0.0.1:8900").body(Body::empty()).unwrap();
    let document = console.api.send_as_it_is(request).await.body;
    let read = &document["paths"][format!("{NAMESPACE}/reputation/_status")]["get"];
    assert_eq!((&read["operationId"], &read["requestBody"]), (&json!("console.reputationStatus"), &Value::Null));
    let refresh = &document["paths"][format!("{NAMESPACE}/reputation/_refresh")]["post"];
    assert_eq!(
        refresh["responses"]["400"]["content"]["application/json"]["schema"]["properties"]["error"]["enum"],
        json!(["invalid_query"])
    );
}

/// What is told of sources goes nowhere.
struct Untold;

impl SourceHealth for Untold {
    fn fails(&self, _subject: &str, _why: &str) {}

    fn works(&self, _subject: &str) {}

    fn ends(&self, _subject: &str) {}
}

/// Starts the gatherer of the plugin beside a console.
fn gather(console: &ConsoleApi) {
    let mut changes = console.api.state.entities.subscribe();
    let now: Arc<dyn EntitySource + Send + Sync> = changes.borrow_and_update().clone();
    let (sender, entities) = watch::channel(now);
    tokio::spawn(async move {
        while changes.changed().await.is_ok() {
            let now: Arc<dyn EntitySource + Send + Sync> = changes.borrow_and_update().clone();
            sender.send_replace(now);
        }
    });
    let plugin = plugins::active().find(|plugin| plugin.name == "ip-reputation").unwrap();
    let around = Surroundings {
        entities,
        material: Material::default(),
        store: Arc::clone(&console.api.state.store),
        outbound: Outbound::new(Vec::new()),
        health: Arc::new(Untold),
        clock: base::clock::now_millis,
        trouble: Arc::new(|_, _| {}),
        runtimes: console.runtimes.clone(),
        reports: Arc::new(|kind| panic!("nothing is received of `{kind}`")),
        gateways: kit::Gateways::none(),
    };
    tokio::spawn(plugin.gather.unwrap()(Sources::new(plugin, &around)));
}

/// A publisher of a list of one address, another one each time; or one that takes requests and answers none.
async fn publisher(answers: bool) -> Value {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for number in 1_u8.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else { return };
                    head.push(byte);
                }
                let list = format!("192.0.2.{number}");
                let length = list.len();
                let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{list}");
                match answers {
                    true => stream.write_all(answer.as_bytes()).await.unwrap(),
                    false => while stream.read_u8().await.is_ok() {},
                }
            });
        }
    });
    json!({ "url": format!("http://{address}/list"), "allow_private": true, "refresh_interval_seconds": 86_400 })
}

/// The entries of a feed's list and of the previous one, once there is a list.
async fn listed(console: &ConsoleApi, login: &Login, id: &str) -> (Value, Value) {
    for _ in 0..2000 {
        let status = console.get(login, "/reputation/_status").await.body;
        let feed = status["feeds"].as_array().unwrap().iter().find(|feed| feed["id"] == id).unwrap().clone();
        if feed["snapshot"]["entries"] == 1 {
            return (feed["snapshot"]["entries"].clone(), feed["previous"].clone());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("`{id}` has no list within 10 s");
}

#[tokio::test]
async fn a_rollback_waits_for_no_fetch_and_is_audited() {
    let console = ConsoleApi::new().await;
    gather(&console);
    let login = console.login("alice").await;
    for (id, answers) in [("good", true), ("slow-1", false), ("slow-2", false)] {
        let mut feed = publisher(answers).await;
        feed["id"] = json!(id);
        assert_eq!(console.api.call("POST", "/threat-feeds", Some(feed)).await.status, 201);
    }
    listed(&console, &login, "good").await;
    let refreshed = console.post(&login, "/reputation/_refresh", &json!({ "feed": "good" })).await;
    assert_eq!(refreshed.body["snapshots"][0]["refreshing"], json!(false), "{}", refreshed.text);
    assert_ne!(listed(&console, &login, "good").await.1, Value::Null);

    let body = |id: &str| json!({ "feed": id });
    let (one, two) = (body("slow-1"), body("slow-2"));
    let refresh = |body| console.post(&login, "/reputation/_refresh", body);
    let roll_back = async {
        // So that both of the others are at work; more does no harm.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let begun = tokio::time::Instant::now();
        let answer = console.post(&login, "/reputation/_rollback", &body("good")).await;
        let took = begun.elapsed();
        for id in ["slow-1", "slow-2"] {
            let off = json!({ "enabled": false });
            assert_eq!(console.api.call("PATCH", &format!("/threat-feeds/{id}"), Some(off)).await.status, 200);
        }
        (answer, took)
    };
    let (slow, other, (answer, took)) = tokio::join!(refresh(&one), refresh(&two), roll_back);
    assert_eq!((answer.status.as_u16(), &answer.body["done"]), (200, &json!(true)), "{}", answer.text);
    assert!(took < Duration::from_secs(9), "a turn is waited for 10 s: {took:?}");
    for refused in [slow, other] {
        assert!(refused.body["error"].as_str().unwrap().contains("was not fetched"), "{}", refused.text);
    }
    let gone = console.post(&login, "/reputation/_rollback", &body("good")).await;
    assert_eq!(gone.body["error"], "the feed `good` has no previous snapshot");

    let events = console.events().await;
    let told = |action: &str| -> Vec<&Value> { events.iter().filter(|event| event["action"] == action).collect() };
    let [refresh] = told("feed-refresh")[..] else { panic!("{events:?}") };
    let [rollback] = told("feed-rollback")[..] else { panic!("{events:?}") };
    for event in [refresh, rollback] {
        assert_eq!((&event["@type"], &event["ref"]), (&json!("SvcWafSecurityAudit"), &json!("threat-feeds/good")));
        assert_eq!((&event["user"]["name"], &event["source"]["ip"]), (&json!("alice"), &json!("192.0.2.1")));
    }
    assert_eq!(refresh["detail"], "feeds: 1, with an error: 0, still being fetched: 0");
    assert_eq!(rollback["detail"], "1 entries");
}
