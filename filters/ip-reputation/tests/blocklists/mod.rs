//! DNS blocklists, from a request to the zone and back.

use dns::fake::{DnsServer, Says};
use domain::base::Rtype;

use super::*;

/// A caller: each is of a network of its own.
fn caller(number: u8) -> String {
    format!("198.51.{number}.7")
}

fn name(number: u8) -> String {
    format!("7.{number}.51.198.bl.test")
}

fn lists(dns: &DnsServer, number: u8) {
    dns.says(&name(number), Rtype::A, Says::Addresses(vec!["127.0.0.2".parse().unwrap()]));
}

fn asked(dns: &DnsServer, number: u8) -> usize {
    dns.asked().iter().filter(|(asked, _)| *asked == name(number)).count()
}

fn settings(dns: &DnsServer, wait_millis: u32) -> Value {
    json!({ "security": { "ledger": { "enabled": false }, "dnsbl": {
        "zones": [{ "zone": "bl.test", "weight": 40, "action": "block" }], "resolvers": [dns.address.to_string()],
        "wait_millis": wait_millis, "timeout_millis": 1000,
    } } })
}

#[test]
fn a_listed_caller_is_refused_at_once_or_from_the_next_request_on() {
    let dns = DnsServer::start();
    dns.says("2.0.0.127.bl.test", Rtype::A, Says::Addresses(vec!["127.0.0.2".parse().unwrap()]));
    (1..250).for_each(|number| lists(&dns, number));
    let mut gateway = Gateway::start(|control, backend| {
        control.configure(&json!({ "gateway": { "filters": ["preset"] }, "identity": { "trusted_hops": 1 } }));
        control.configure(&settings(&dns, 2000));
        let plugins = json!([{ "plugin": "SvcIpReputation", "plugin_index": 3, "config": { "status": 451 } }]);
        control.create("routes", &route("demo", backend, plugins));
    });
    gateway.until(&from(&caller(1)), 451, PATIENCE);
    let event = gateway.control.event("a refusal", |event| event["event"]["module"] == "ip-reputation");
    assert_eq!(event["threat"]["tags"], json!(["dnsbl:bl.test", "reputation:bl.test"]), "{event}");
    assert_eq!((&event["threat"]["score"], &event["source"]["ip"]), (&json!(40), &json!(caller(1))), "{event}");
    assert_eq!(event["decision"]["reason"], "the caller's address is on the DNS blocklist `bl.test`", "{event}");
    // Requests wait for the verdict: of ten callers at least one is refused with its first one, however busy the machine is.
    let first: Vec<u16> = (10..20).map(|number| gateway.status(&from(&caller(number)))).collect();
    assert!(first.contains(&451), "{first:?}");
    for number in 10..20 {
        gateway.until(&from(&caller(number)), 451, PATIENCE);
        let statuses = gateway.statuses_of_all_workers(&from(&caller(number)));
        assert!(statuses.iter().all(|status| *status == 451), "{statuses:?}");
        assert_eq!(asked(&dns, number), 1, "one lookup of all requests");
    }
    assert_eq!((gateway.status(&from("192.0.2.100")), gateway.status(&from("10.1.2.3"))), (200, 200));

    let console = Console::login(&gateway.control);
    let zone = console.show("reputation/_status")["dnsbl"][0].clone();
    assert_eq!(
        (&zone["zone"], &zone["health"]["ok"], &zone["health"]["error"]),
        (&json!("bl.test"), &json!(true), &Value::Null)
    );
    let verdict = console.call("reputation/_lookup", &json!({ "ip": caller(21) }))["verdict"].clone();
    assert_eq!((&verdict["blocking"], &verdict["score"]), (&json!(true), &json!(40)), "{verdict}");
    let hit = json!({ "kind": "dnsbl", "source_id": "bl.test", "source_name": "bl.test", "tag": "dnsbl:bl.test", "weight": 40,
                      "blocking": true, "detail": "127.0.0.2" });
    assert_eq!(verdict["hits"], json!([hit]), "{verdict}");

    // Without a wait the first request passes, and the next ones do not. The answer changes when gateways have the new settings.
    gateway.control.configure(&settings(&dns, 0));
    let passed = palisade_tests::process::wait_for("a first request that passes", PATIENCE, || {
        let number = (22..250).find(|number| asked(&dns, *number) == 0)?;
        (gateway.status(&from(&caller(number))) == 200).then_some(number)
    });
    gateway.until(&from(&caller(passed.unwrap())), 451, PATIENCE);
    assert!(gateway.envoy.vm_failures().is_empty());
}
