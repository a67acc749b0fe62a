//! Rules of the WAF that look up countries and DNS blocklists, without the IP reputation in the chain.

use dns::fake::{DnsServer, Says};
use domain::base::Rtype;
use palisade_tests::gateway::waf_config;

use super::*;

const RULES: [&str; 3] = [
    "SecRule REMOTE_ADDR \"@geoLookup\" \"id:1,phase:1,deny,status:451,chain\"\nSecRule GEO:COUNTRY_NAME \"@streq Germany\"",
    "SecRule REQUEST_HEADERS:X-Peer \"@rbl bl.test\" \"id:2,phase:1,deny,status:406,t:none,t:trim\"",
    "SecRule REMOTE_ADDR \"!@geoLookup\" \"id:3,phase:1,deny,status:410,chain\"\nSecRule REQUEST_URI \"@beginsWith /known\"",
];

fn peer(address: &str) -> Request {
    from("203.0.113.200").header("x-peer", address)
}

/// What requests are answered with once the tables are there.
fn looks_up(filters: &Value) -> Vec<u16> {
    let dns = DnsServer::start();
    let lists = |name: &str| dns.says(name, Rtype::A, Says::Addresses(vec!["127.0.0.2".parse().unwrap()]));
    ["2.0.0.127.bl.test", "7.51.51.198.bl.test"].into_iter().for_each(lists);
    let germany = json!({ "country": { "iso_code": "DE", "names": { "en": "Germany" } } });
    let brazil = json!({ "country": { "iso_code": "BR", "names": { "en": "Brazil" } } });
    let places = serve(mmdb::database(&[("192.0.2.0/24", germany), ("203.0.113.0/24", brazil)]));
    let mut gateway = Gateway::start(|control, backend| {
        let zones = json!([{ "zone": "BL.test.", "weight": 0 }]);
        control.configure(&json!({
            "gateway": { "filters": filters }, "identity": { "trusted_hops": 1 },
            "security": { "ledger": { "enabled": false },
                          "dnsbl": { "zones": zones, "resolvers": [dns.address.to_string()], "timeout_millis": 1000 } },
        }));
        control.create(
            "geo-databases",
            &json!({ "id": "places", "url": format!("http://{places}/file"), "allow_private": true }),
        );
        control.create("waf-configs", &waf_config("rules", json!({ "rules": RULES })));
        let plugins = json!([{ "plugin": "SvcWaf", "plugin_index": 3, "config": { "ref": "rules" } }]);
        control.create("routes", &route("demo", backend, plugins));
    });
    gateway.until(&from("192.0.2.7"), 451, PATIENCE);
    gateway.until(&peer(" 198.51.51.7 "), 406, PATIENCE);
    // An address that no zone lists is asked for as well; here its verdict changes nothing.
    let _ = gateway.status(&peer("198.51.52.7"));
    let known = Request::get("/known").header("x-forwarded-for", "198.51.100.1");
    gateway.until(&known, 410, PATIENCE);
    // Each worker has tables of its own.
    let requests = [from("192.0.2.8"), peer("198.51.51.7"), known];
    let statuses = palisade_tests::process::wait_for("all workers", PATIENCE, || {
        let all: Vec<Vec<u16>> = requests.iter().map(|request| gateway.statuses_of_all_workers(request)).collect();
        let alike = all.iter().all(|statuses| statuses.iter().all(|status| Some(status) == statuses.first()));
        alike.then(|| all.iter().filter_map(|statuses| statuses.first().copied()).collect::<Vec<u16>>())
    });
    let mut statuses = statuses.unwrap();
    statuses.extend(
        [from("203.0.113.7"), from("198.51.100.1"), peer("198.51.52.7"), peer("198.51.51.8")]
            .iter()
            .map(|request| gateway.status(request)),
    );
    let asked = dns.asked().iter().filter(|(name, _)| name == "7.51.51.198.bl.test").count();
    assert_eq!(asked, 1, "one lookup of all requests and workers");

    let console = Console::login(&gateway.control);
    let test = |address: &str, peer: &str| {
        let request = json!({ "remote_addr": address, "headers": { "x-peer": peer } });
        let answer = console.call("utils/_test", &json!({ "rules": RULES, "request": request }));
        assert_eq!((&answer["done"], &answer["warning"]), (&json!(true), &Value::Null), "{answer}");
        answer["result"]["disposition"]["status"].clone()
    };
    assert_eq!(test("192.0.2.7", "198.51.52.7"), json!(451));
    assert_eq!(test("203.0.113.7", "198.51.51.7"), json!(406));
    let passes = test("203.0.113.7", "198.51.52.7");
    assert!(passes != json!(406) && passes != json!(451), "{passes}");
    let misspelt = json!({ "rules": ["SecRule REMOTE_ADDR \"@rbl lb.test\" \"id:1,phase:1,deny\""] });
    let answer = console.call("utils/_compile", &misspelt);
    assert!(
        answer["warning"].as_str().is_some_and(|warning| warning.contains("`@rbl lb.test` never matches")),
        "{answer}"
    );
    assert!(gateway.envoy.vm_failures().is_empty());
    statuses
}

#[test]
fn rules_look_up_countries_and_listings_in_the_preset_and_in_a_filter_of_their_own() {
    let together = looks_up(&json!(["preset"]));
    assert_eq!(together, [451, 406, 410, 200, 200, 200, 200]);
    assert_eq!(looks_up(&json!(["waf", "threat-response"])), together);
}
