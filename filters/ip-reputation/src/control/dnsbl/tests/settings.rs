//! What settings say, and what is wrong with them.

use std::net::Ipv4Addr;

use dns::Resolver;
use kit::Settings as _;

use super::super::zone::Zone;
use super::*;

#[test]
fn wrong_settings_are_named() {
    let problems = |settings: Value| -> Vec<String> {
        let settings: DnsblSettings = serde_json::from_value(settings).unwrap();
        settings.check().into_iter().map(|problem| problem.pointer).collect()
    };
    assert_eq!(problems(two()), [] as [&str; 0]);
    assert_eq!(
        problems(json!({ "zones": [{}, { "zone": "a..b" }, { "zone": "a b" }] })),
        ["/zones/0/zone", "/zones/1/zone", "/zones/2/zone"]
    );
    assert_eq!(problems(json!({ "zones": [{ "zone": "x".repeat(64) }, { "zone": "xx.".repeat(60) + "y" }] })).len(), 2);
    assert_eq!(problems(json!({ "zones": [{ "zone": "a.test" }, { "zone": "A.test." }] })), ["/zones/1/zone"]);
    let zone = |fields: Value| {
        let mut zone = json!({ "zone": "a.test" });
        zone.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        problems(json!({ "zones": [zone] }))
    };
    assert_eq!(zone(json!({ "weight": 101, "tag": "a b" })), ["/zones/0/weight", "/zones/0/tag"]);
    let codes = json!({ "codes": ["127.0.0.2", "127.0.0.1", "127.255.255.254", "10.0.0.1", "x"] });
    assert_eq!(zone(codes), ["/zones/0/codes/1", "/zones/0/codes/2", "/zones/0/codes/3", "/zones/0/codes/4"]);
    assert_eq!(zone(json!({ "codes": vec!["127.0.0.2"; 65] })), ["/zones/0/codes"]);
    let many: Vec<Value> = (0..17).map(|number| json!({ "zone": format!("z{number}.test") })).collect();
    assert_eq!(problems(json!({ "zones": many })), ["/zones"]);
    assert_eq!(problems(json!({ "resolvers": ["192.0.2.53", "[::1]:5353", "resolver.test"] })), ["/resolvers/2"]);
    let limits = json!({ "wait_millis": 2001, "timeout_millis": 0, "lookups_per_second": 0, "listed_ttl_seconds": 0,
                         "unlisted_ttl_seconds": 86_401, "failed_ttl_seconds": 0, "max_entries": 1_000_001 });
    assert_eq!(problems(limits).len(), 7);
}

#[tokio::test]
async fn codes_say_which_answers_are_listings() {
    let dns = DnsServer::start();
    let resolver = Resolver { servers: vec![dns.address], timeout: Duration::from_secs(1) };
    let found = async |name: &str, codes: &[&str], answers: &[&str]| {
        lists(&dns, name, "192.0.2.7", answers);
        let settings = DnsblZone {
            zone: name.to_owned(),
            codes: codes.iter().map(|code| (*code).to_owned()).collect(),
            ..DnsblZone::default()
        };
        Zone::of(&settings).look_up("192.0.2.7".parse().unwrap(), &resolver).await
    };
    let last = |last: u8| Ipv4Addr::new(127, 0, 0, last);
    assert_eq!(
        found("any.test", &[], &["127.0.0.10", "127.1.2.3"]).await,
        Ok(vec![last(10), Ipv4Addr::new(127, 1, 2, 3)])
    );
    assert_eq!(found("some.test", &["127.0.0.4"], &["127.0.0.2", "127.0.0.4"]).await, Ok(vec![last(4)]));
    assert_eq!(found("some.test", &["127.0.0.4"], &["127.0.0.2"]).await, Ok(Vec::new()));
    // ZEN lists dial-up lines, from which callers come.
    for zen in ["zen.spamhaus.org", "ZEN.Spamhaus.org.", "key.zen.dq.spamhaus.net"] {
        let name = zen.trim_end_matches('.').to_lowercase();
        lists(&dns, &name, "192.0.2.7", &["127.0.0.10", "127.0.0.11"]);
        assert_eq!(found(&name, &[], &["127.0.0.10", "127.0.0.11"]).await, Ok(Vec::new()), "{zen}");
        let all =
            ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6", "127.0.0.7", "127.0.0.9", "127.0.0.10"];
        assert_eq!(found(&name, &[], &all).await, Ok([2, 3, 4, 5, 6, 7, 9].map(last).to_vec()), "{zen}");
        assert_eq!(found(&name, &["127.0.0.10"], &all).await, Ok(vec![last(10)]), "{zen}: as it is said");
        assert!(found(&name, &[], &["127.255.255.254"]).await.unwrap_err().contains("public resolvers"));
    }
}

#[test]
fn a_zone_whose_codes_differ_is_another_one_for_verdicts() {
    let key = |codes: &[&str], weight| {
        let codes = codes.iter().map(|code| (*code).to_owned()).collect();
        zone_key(&DnsblZone { zone: "a.test".into(), codes, weight, ..DnsblZone::default() })
    };
    assert_eq!(key(&["127.0.0.2", "127.0.0.3"], 1.0), key(&["127.0.0.3", "127.0.0.2"], 2.0));
    assert_ne!(key(&["127.0.0.2"], 1.0), key(&[], 1.0));
    assert_ne!(key_of("a.test"), crate::control::table::key("a.test"));
}
