//! What a field has that a document leaves out.

use bot_guard::control::BotPolicy;
use serde_json::json;

use super::kind;

#[test]
fn every_field_has_the_default_of_the_specification() {
    let decoys = [
        "/.env",
        "/.env.local",
        "/.git/config",
        "/.git/HEAD",
        "/.aws/credentials",
        "/wp-login.php",
        "/wp-admin*",
        "/xmlrpc.php",
        "/phpmyadmin*",
        "/phpinfo.php",
        "/actuator/env",
        "/actuator/heapdump",
        "/_ignition/execute-solution",
        "/vendor/phpunit*",
        "/solr/admin*",
        "/config.json.bak",
    ];
    let expected = [
        (
            "threat-feeds",
            json!({
                "enabled": true, "url": "", "method": "GET", "headers": {}, "follow_redirects": true,
                "allow_private": false, "format": "cidr_lines", "options": {}, "refresh_interval_seconds": 3600, "timeout_millis": 30000,
                "max_entries": 2000000, "weight": 50, "action": "monitor", "tag": "", "catalog_ref": null
            }),
        ),
        (
            "geo-databases",
            json!({
                "enabled": true, "url": "https://download.db-ip.com/free/dbip-country-lite-{yyyy}-{MM}.mmdb.gz",
                "username": "", "password": "", "headers": {}, "allow_private": false, "refresh_interval_seconds": 86400,
                "timeout_millis": 300000, "max_size_mb": 512, "attribution": "IP Geolocation by DB-IP",
                "attribution_url": "https://db-ip.com"
            }),
        ),
        (
            "svc-bouncers",
            json!({
                "enabled": true, "lapi_url": "http://127.0.0.1:8080", "allow_private": false, "api_key": "", "poll_interval_seconds": 10,
                "timeout_millis": 10000, "scopes": ["ip", "range"], "origins_filter": [], "weight": 90,
                "action": "block", "tag": "crowd", "push_enabled": false, "push_machine_id": "", "push_password": "",
                "push_scenario": "svc/threat-protection", "push_interval_seconds": 10, "push_max_batch": 50,
                "push_with_decision": false, "push_decision_duration": "4h", "push_waf_detections": false,
                "push_waf_monitored": false
            }),
        ),
        (
            "challenge-providers",
            json!({
                "enabled": true, "kind": "pow", "difficulty_floor": 18, "difficulty_ceiling": 24,
                "challenge_ttl_seconds": 300, "clearance_ttl_seconds": 1800, "cookie_name": "svc-clearance",
                "secret": "", "previous_secret": "", "secret_generation": 0, "bind_ip": true, "bind_ua": true,
                "without_javascript": true, "wait_floor_seconds": 5, "wait_ceiling_seconds": 30, "preset_ref": null, "widget_script_url": "",
                "widget_html": "", "response_field": "", "verify_url": "", "site_key": "", "secret_key": "",
                "title": "", "message": ""
            }),
        ),
        (
            "honeypot-policies",
            json!({
                "enabled": true, "paths": decoys, "weight": 100, "action": "deny", "ban_for_seconds": 86400,
                "status": 404, "canaries": []
            }),
        ),
        ("api-contracts", json!({"enabled": true, "spec": "", "base_path": ""})),
        (
            "alert-rules",
            json!({
                "enabled": true, "trigger": "incident", "min_score": 70, "min_count": 1, "enforced_only": true,
                "categories": [], "routes": [], "burst_threshold": 100, "burst_window_seconds": 60,
                "cooldown_seconds": 900,
                "channel": {"kind": "event", "url": "", "routing_key": "", "headers": {}, "timeout_millis": 10000}
            }),
        ),
        (
            "malware-scanners",
            json!({
                "enabled": true, "kind": "clamd", "host": "127.0.0.1", "port": 3310, "service": "avscan",
                "icap_mode": "respmod", "timeout_millis": 30000, "max_file_size": 26214400
            }),
        ),
    ];
    for (collection, mut fields) in expected {
        let kind = kind(collection);
        if kind.own_kinds.is_empty() {
            fields["kind"] = json!(kind.kind);
        }
        assert_eq!(kind.template(), fields, "{collection}");
    }
    let icap = kind("malware-scanners").read(json!({"id": "x", "kind": "icap"})).unwrap().shown();
    assert_eq!(icap["port"], 1344);
}

#[test]
fn a_new_asn_database_weighs_the_classes_of_the_specification() {
    let template = kind("asn-databases").template();
    let classes: Vec<_> = template["categories"].as_array().unwrap().iter().collect();
    let weights: Vec<_> =
        classes.iter().map(|class| (class["name"].as_str().unwrap(), class["weight"].clone())).collect();
    assert_eq!(weights, [("cdn", json!(0)), ("vpn", json!(30)), ("hosting", json!(15))]);
    assert!(classes.iter().all(|class| class["action"] == "monitor" && class["tag"] == ""));
    assert_eq!(classes[0]["asns"], json!([13335, 54113, 20940, 212238]));
    assert_eq!(classes[1]["asns"], json!([9009]));
    assert_eq!(classes[2]["asns"].as_array().unwrap().len(), 11);
    let mut rest = template;
    rest.as_object_mut().unwrap().shift_remove("categories");
    let expected = json!({
        "enabled": true, "url": "https://iptoasn.com/data/ip2asn-v4.tsv.gz", "allow_private": false, "gzip": true, "format": "iptoasn_tsv",
        "refresh_interval_seconds": 86400, "timeout_millis": 120000, "max_entries": 1500000, "kind": "asn-database"
    });
    assert_eq!(rest, expected);
}

#[test]
fn a_new_bot_policy_knows_27_bots_and_denies_nothing() {
    let mut template = kind("bot-policies").template();
    let signatures = template["signatures"].take();
    let signatures = signatures.as_array().unwrap();
    let of = |category: &str| signatures.iter().filter(|bot| bot["category"] == category).count();
    assert_eq!((signatures.len(), of("search"), of("ai"), of("seo"), of("monitoring")), (27, 6, 15, 4, 2));
    for bot in signatures {
        let verifiable = bot["category"] == "search" || bot["name"] == "ahrefsbot";
        assert_eq!(bot["verifiable"], verifiable, "{bot}");
        assert_eq!(bot["rdns_suffixes"].as_array().unwrap().is_empty(), !verifiable, "{bot}");
    }
    let bing = signatures.iter().find(|bot| bot["name"] == "bingbot").unwrap();
    assert_eq!(bing["ua_contains"], json!(["bingbot", "adidxbot", "msnbot"]));
    assert_eq!(BotPolicy::known_signatures().len(), 27);
    let expected = json!({
        "enabled": true, "signatures": null,
        "rules": [
            {"target": "category:search", "action": "allow", "weight": 0},
            {"target": "category:monitoring", "action": "allow", "weight": 0},
            {"target": "category:ai", "action": "monitor", "weight": 0},
            {"target": "category:seo", "action": "monitor", "weight": 10}
        ],
        "verify_known_bots": true, "verify_by_ip_ranges": false, "verify_by_signatures": false, "signature_max_age_seconds": 86400,
        "signature_nonce_required": false, "signature_hosts": [], "signatures_per_second": 100, "verified_bypass": true, "impersonator_weight": 60,
        "impersonator_action": "deny",
        "unknown_bot_weight": 0, "deny_status": 403, "robots_extra": "", "llms_txt": "", "robots_licenses": [],
        "serve_robots_txt": false, "serve_llms_txt": false, "robots_weight": 20,
        "fingerprints": {
            "enabled": false, "pairs": [], "rules": [], "mismatch_weight": 40, "unknown_weight": 0, "rotation_weight": 0,
            "rotation_families": 3, "rotation_networks": 8, "learn": true
        },
        "kind": "bot-policy"
    });
    assert_eq!(template, expected);
}
