//! The plugin in a real gateway with a control plane, and a DNS server beside them.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

mod fingerprints;
mod ranges;
mod serving;
mod signing;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use dns::fake::{DnsServer, Says};
use domain::base::Rtype;
use palisade_tests::console::Console;
use palisade_tests::gateway::{Gateway, route, threat_policy};
use palisade_tests::http::Request;
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(30);
const GOOGLE: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";

/// A publisher of a list of addresses that are bad; the crawler's is one of them.
fn publisher() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
                head.push(byte[0]);
            }
            let list = "192.0.2.0/24\n2001:db8::/32\n";
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{list}", list.len());
            let _ = stream.write_all(head.as_bytes());
        }
    });
    address
}

/// A gateway behind a proxy that names callers, with a bot policy and a feed that blocks.
fn gateway(filters: &Value, dns: &DnsServer, plugins: Value) -> Gateway {
    let feed = publisher();
    Gateway::start(|control, backend| {
        let bots = json!({ "resolvers": [dns.address.to_string()], "timeout_millis": 200, "failed_ttl_seconds": 10 });
        control.configure(&json!({
            "gateway": { "filters": filters }, "identity": { "trusted_hops": 1 }, "security": { "bots": bots, "ledger": { "enabled": false } }
        }));
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": [] })));
        control.create(
            "threat-feeds",
            &json!({
                "id": "bad", "url": format!("http://{feed}/"), "allow_private": true, "weight": 1, "action": "block"
            }),
        );
        let rules = json!([{ "target": "name:gptbot", "action": "deny", "weight": 7 }, { "target": "*", "weight": 0 }]);
        control.create("bot-policies", &json!({ "id": "bots", "name": "Bots", "rules": rules, "deny_status": 451 }));
        control.create("routes", &route("demo", backend, plugins));
    })
}

fn from(address: &str, user_agent: &str) -> Request {
    Request::get("/").header("x-forwarded-for", address).header("user-agent", user_agent)
}

fn crawls(address: &str) -> Request {
    from(address, GOOGLE)
}

/// Waits until all workers answer with this status: each is sent tables of its own.
fn on_all_workers(gateway: &mut Gateway, request: &Request, status: u16) {
    gateway.until(request, status, PATIENCE);
    wait_for("all workers", PATIENCE, || {
        gateway.statuses_of_all_workers(request).iter().all(|answer| *answer == status).then_some(())
    })
    .unwrap();
}

/// A crawler is blocked by a feed until it is verified; one that is not what it says is refused.
fn verifies(gateway: &mut Gateway, dns: &DnsServer) {
    dns.crawler("192.0.2.7", "crawl-7.googlebot.com");
    dns.crawler("2001:db8::7", "crawl-6.googlebot.com");
    // A worker that has no table of feeds yet lets crawlers pass as well.
    on_all_workers(gateway, &from("192.0.2.7", "Mozilla/5.0 Firefox/140.0"), 403);
    for address in ["192.0.2.7", "2001:db8::7"] {
        on_all_workers(gateway, &crawls(address), 200);
    }
    assert_eq!(gateway.status(&from("192.0.2.7", "Mozilla/5.0 Firefox/140.0")), 403, "the crawler alone passes");
    assert_eq!(gateway.status(&crawls("192.0.2.8")), 403, "it is in the feed, and no verdict is there");

    // Names that look like the bot's, and none.
    dns.reverse("198.51.100.7", Says::Names(vec!["evilgooglebot.com".into(), "googlebot.com.evil.example".into()]));
    for address in ["198.51.100.7", "203.0.113.9"] {
        gateway.until(&crawls(address), 451, PATIENCE);
        let event = gateway.control.event("the impersonator", |event| event["source"]["ip"] == address);
        let tags = json!(["bot:impersonator:googlebot", "bot:search:googlebot", "bot:search"]);
        assert_eq!((&event["threat"]["tags"], &event["threat"]["score"]), (&tags, &json!(60)), "{event}");
        assert_eq!((&event["event"]["module"], &event["event"]["outcome"]), (&json!("bot-guard"), &json!("blocked")));
        assert_eq!(event["threat"]["signals"][0]["source"], "bots.identity", "{event}");
    }
}

#[test]
fn a_preset_verifies_crawlers_and_acts_by_the_policy() {
    let dns = DnsServer::start();
    let plugins = json!([{ "plugin": "SecuritySuitePreset", "config": { "threat_policy": "demo" } }]);
    let mut gateway = gateway(&json!(["preset"]), &dns, plugins);
    let console = Console::login(&gateway.control);
    gateway.until(&from("198.51.100.1", "x (GPTBot/1.2)"), 451, PATIENCE);
    let event = gateway.control.event("the refusal", |event| event["event"]["module"] == "bot-guard");
    let incident = (&event["event"]["category"], &event["threat"]["tags"], &event["threat"]["score"]);
    assert_eq!(incident, (&json!("threat"), &json!(["bot:ai:gptbot", "bot:ai"]), &json!(7)), "{event}");
    verifies(&mut gateway, &dns);

    // A flood of requests of one address is one question.
    (0..50).for_each(|_| assert_eq!(gateway.status(&crawls("198.51.100.7")), 451));
    assert_eq!(dns.asked_of("198.51.100.7"), 1);

    // User agents of all kinds.
    let from = |user_agent: &[u8]| {
        Request::get("/").header("x-forwarded-for", "198.51.100.2").header("user-agent", user_agent)
    };
    assert_eq!(gateway.status(&Request::get("/").header("x-forwarded-for", "198.51.100.2")), 200);
    assert_eq!(gateway.status(&from(&[b"x".repeat(50_000), b"GPTBot".to_vec()].concat())), 200, "behind what is read");
    assert_eq!(gateway.status(&from(&[b"GPTBot".to_vec(), b"x".repeat(50_000)].concat())), 451);
    assert_eq!(gateway.status(&from(b"\xff\xfe GPTBOT \x80")), 451);
    assert_eq!(gateway.status(&from(b"Firefox").header("user-agent", "gptbot")), 451, "in a second header");

    // What operators see.
    let state = console.get("_bot_status")["verification"].clone();
    assert_eq!((&state["verified"], &state["error"]), (&json!(2), &Value::Null), "{state}");
    assert_eq!(state["resolvers"], json!([dns.address.to_string()]));
    let entries = console.get("_bot_catalog")["entries"].as_array().map(Vec::len);
    assert_eq!(entries, Some(27));
    let robots = console.post("_robots_txt", &json!({ "policy": "bots" }));
    assert!(robots["robots_txt"].as_str().unwrap().contains("User-agent: gptbot\nDisallow: /\n"), "{robots}");
    assert_eq!(console.post("_robots_txt", &json!({ "policy": "none" }))["done"], false);

    // The resolver goes down and comes back: one event each, and no caller is an impersonator meanwhile.
    dns.says(".", Rtype::NS, Says::Silence);
    let outage = |word: &str| {
        let events = gateway.control.events().into_iter();
        let subject = "DNS resolver of the bot guard";
        let mut of = events.filter(|event| event["event"]["category"] == "dependency");
        of.find(|event| event["message"].as_str().is_some_and(|text| text.contains(subject) && text.contains(word)))
    };
    // A lookup from before that is answered now lets failures be counted anew: so callers keep coming.
    let mut callers = (1..=u8::MAX).map(|low| format!("198.18.{low}.1"));
    wait_for("the event of the outage", PATIENCE, || {
        if let Some(caller) = callers.next() {
            dns.reverse(&caller, Says::Silence);
            assert_eq!(gateway.status(&crawls(&caller)), 200);
        }
        outage("fails")
    })
    .unwrap();
    assert_eq!(gateway.status(&crawls("198.18.1.1")), 200);
    assert_eq!(gateway.status(&crawls("192.0.2.7")), 200, "verdicts hold");
    dns.says(".", Rtype::NS, Says::Code(domain::base::iana::Rcode::NOERROR));
    wait_for("the event of the recovery", PATIENCE, || outage("works")).unwrap();

    // A rule that denies holds for verified crawlers as well; without the policy nothing is done.
    gateway.control.patch(
        "bot-policies",
        "bots",
        &json!({ "rules": [{ "target": "category:search", "action": "deny" }] }),
    );
    gateway.until(&crawls("192.0.2.7"), 451, PATIENCE);
    gateway.control.patch("bot-policies", "bots", &json!({ "enabled": false }));
    gateway.until(&crawls("198.51.100.7"), 200, PATIENCE);
    assert!(gateway.envoy.vm_failures().is_empty());
}

#[test]
fn a_filter_of_its_own_vouches_for_crawlers_to_the_filters_behind() {
    let dns = DnsServer::start();
    let plugins = json!([
        { "plugin": "SvcBotGuard", "plugin_index": 2 },
        { "plugin": "SvcIpReputation", "plugin_index": 3 },
        { "plugin": "SvcThreatResponse", "plugin_index": 900, "config": { "policy": "demo" } },
    ]);
    let mut gateway = gateway(&json!(["bot-guard", "ip-reputation", "threat-response"]), &dns, plugins);
    verifies(&mut gateway, &dns);
    gateway.control.patch("bot-policies", "bots", &json!({ "verified_bypass": false }));
    gateway.until(&crawls("192.0.2.7"), 403, PATIENCE);
    assert!(gateway.envoy.vm_failures().is_empty());
}
