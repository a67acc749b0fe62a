//! The text of every error, with its JSON pointer.

use serde_json::json;

use super::entities_samples::problems;
use super::kind;

#[test]
fn errors_name_the_field_and_what_it_should_be() {
    let cases = [
        (
            "threat-feeds",
            json!({}),
            "/url: an enabled feed is fetched from somewhere (expected a value, or `enabled: false`)",
        ),
        (
            "threat-feeds",
            json!({"url": "http://a", "format": "csvv"}),
            "/format: unknown value `csvv`, did you mean `csv`? (expected one of `cidr_lines`, `csv`, `json_array`, `json_path`, `misp`)",
        ),
        (
            "threat-feeds",
            json!({"url": "http://a", "format": "json_path"}),
            "/options/path: the format `json_path` needs the path of the addresses (expected such as `data[].ipAddress`)",
        ),
        (
            "threat-feeds",
            json!({"url": "http://a", "format": "json_path", "options": {"path": "a..b"}}),
            "/options/path: `a..b` is not a path (expected such as `data[].ipAddress`)",
        ),
        (
            "threat-feeds",
            json!({"url": "http://a", "format": "csv", "options": {"field": "ip", "column": 1024}}),
            "/options/field: the format `csv` has no option `field` (expected one of `column`, `separator`, `skip_header`) | \
             /options/column: 1024 is not within the limits (expected 0 to 1023)",
        ),
        (
            "threat-feeds",
            json!({"url": "http://a", "options": {"path": "a"}}),
            "/options/path: the format `cidr_lines` has no option `path` (expected no options)",
        ),
        (
            "threat-feeds",
            json!({"url": "http://a", "format": "csv", "options": {"separator": "\n"}}),
            "/options/separator: '\\n' cannot be between columns (expected one character such as `,` or `;`)",
        ),
        (
            "threat-feeds",
            json!({"url": "https://user:hunter2@a/list"}),
            "/url: `https://***@a/list` has credentials: put them into a header (expected a URL such as \
             `https://example.com/list.txt`)",
        ),
        (
            "threat-feeds",
            json!({"url": "http://a", "headers": {"a b": "x"}}),
            "/headers/a b: `a b` is not a header name (expected such as `X-Api-Key`)",
        ),
        (
            "threat-feeds",
            json!({"url": "http://a", "headers": "Key: hunter2"}),
            "/headers: invalid type: string (expected an object)",
        ),
        (
            "threat-feeds",
            json!({"url": "http://a", "headers": {"Key": 12345}}),
            "/headers/Key: a secret is text (expected a string)",
        ),
        (
            "threat-feeds",
            json!({"url": "http://a", "catalog_ref": "spamhaus"}),
            "/catalog_ref: unknown value `spamhaus` (expected one of `tor-exit-nodes`, `firehol-level1`, `firehol-level2`, \
             `firehol-level3`, `emerging-threats-compromised`, `spamhaus-drop`, `abuseipdb-blacklist`, `aws-ranges-v4`, \
             `aws-ranges-v6`, `gcp-ranges-v4`, `digitalocean-ranges`, `cloudflare-v4`, `cloudflare-v6`, `azure-ranges`)",
        ),
        (
            "asn-databases",
            json!({"categories": [{"name": "a"}, {"name": "a"}]}),
            "/categories/1/name: the class `a` is there twice (expected a unique name)",
        ),
        (
            "asn-databases",
            json!({"categories": [{"name": "a", "action": "block"}]}),
            "/categories/0/action: unknown value `block` (expected `monitor`)",
        ),
        ("asn-databases", json!({"categories": [{}]}), "/categories/0/name: the field `name` is required"),
        ("geo-databases", json!({"password": "hunter2"}), "/username: a password without a user (expected the user)"),
        (
            "geo-databases",
            json!({"url": "http://a/{dd}"}),
            "/url: the URL has a placeholder that is not known (expected `{yyyy}` and `{MM}` alone)",
        ),
        (
            "svc-bouncers",
            json!({}),
            "/api_key: an enabled bouncer needs the key that the service has given it (expected a value, or `enabled: false`)",
        ),
        (
            "svc-bouncers",
            json!({"api_key": "********"}),
            "/api_key: `********` means the stored secret, and none is stored (expected the secret itself)",
        ),
        (
            "svc-bouncers",
            json!({"api_key": "k", "push_enabled": true}),
            "/push_machine_id: alerts cannot be sent without it (expected a value, or `push_enabled: false`) | \
             /push_password: alerts cannot be sent without it (expected a value, or `push_enabled: false`)",
        ),
        (
            "svc-bouncers",
            json!({"api_key": "k", "scopes": ["rang"]}),
            "/scopes/0: unknown value `rang`, did you mean `range`? (expected one of `ip`, `range`, `country`, `as`)",
        ),
        (
            "bot-policies",
            json!({"rules": [{"target": "category:serch"}, {"target": "name:gtpbot"}, {"target": "gptbot"}]}),
            "/rules/0/target: unknown value `serch`, did you mean `search`? (expected one of `search`, `ai`, `seo`, `monitoring`) | \
             /rules/1/target: no signature has the name `gtpbot`, did you mean `gptbot`? (expected the name of one of the \
             policy's `signatures`) | \
             /rules/2/target: `gptbot` is not a target (expected `*`, `name:<bot>` or `category:` with search, ai, seo, monitoring)",
        ),
        (
            "bot-policies",
            json!({"rules": [{"target": "*", "action": "challenge"}]}),
            "/rules/0/action: unknown value `challenge` (expected one of `allow`, `monitor`, `deny`, `maze`)",
        ),
        (
            "bot-policies",
            json!({"rules": [], "signatures": [{"name": "a", "category": "ai", "ua_contains": ["a"], "verifiable": true}]}),
            "/signatures/0/verifiable: without `rdns_suffixes` nothing can be verified (expected false, or suffixes)",
        ),
        (
            "challenge-providers",
            json!({"kind": "vendr"}),
            "/kind: unknown value `vendr`, did you mean `vendor`? (expected one of `pow`, `vendor`)",
        ),
        (
            "challenge-providers",
            json!({"kind": "vendor"}),
            "/verify_url: a widget cannot be verified without it (expected a value, or `enabled: false`) | \
             /response_field: a widget cannot be verified without it (expected a value, or `enabled: false`) | \
             /secret_key: a widget cannot be verified without it (expected a value, or `enabled: false`)",
        ),
        (
            "challenge-providers",
            json!({"difficulty_floor": 25}),
            "/difficulty_ceiling: 24 is less than the floor of 25 (expected at least `difficulty_floor`)",
        ),
        (
            "challenge-providers",
            json!({"wait_floor_seconds": 60}),
            "/wait_ceiling_seconds: 30 is less than the floor of 60 (expected at least `wait_floor_seconds`)",
        ),
        (
            "challenge-providers",
            json!({"preset_ref": "turnstyle"}),
            "/preset_ref: unknown value `turnstyle`, did you mean `turnstile`? (expected one of `friendly-captcha`, \
             `captcha-eu`, `turnstile`, `hcaptcha`)",
        ),
        (
            "honeypot-policies",
            json!({"paths": ["/", "/a*b"], "canaries": [{"value": "abc"}, {"value": "abcd", "where": "body"}]}),
            "/canaries/1/where: unknown value `body` (expected one of `any`, `header`, `path`, `query`)",
        ),
        (
            "honeypot-policies",
            json!({"paths": ["/", "/a*b"], "canaries": [{"value": "abc"}]}),
            "/paths/0: `/` is requested by every client (expected a path that no legitimate client requests) | \
             /paths/1: `/a*b` is not a decoy path (expected a path that begins with /, without query; a `*` at its end alone) | \
             /canaries/0/value: a value of 3 bytes (expected 4 to 1024 bytes: what is shorter is found by chance)",
        ),
        (
            "api-contracts",
            json!({}),
            "/spec: an enabled contract is a document (expected a value, or `enabled: false`)",
        ),
        ("api-contracts", json!({"spec": {"openapi": "3.1.0"}}), "/spec: invalid type: map (expected a string)"),
        (
            "alert-rules",
            json!({"channel": {"kind": "slak"}}),
            "/channel/kind: unknown value `slak`, did you mean `slack`? (expected one of `slack`, `teams`, `pagerduty`, \
             `webhook`, `event`)",
        ),
        (
            "alert-rules",
            json!({"channel": {"kind": "slack"}}),
            "/channel/url: the channel needs a URL that messages are posted to (expected a value, or `enabled: false`)",
        ),
        (
            "alert-rules",
            json!({"channel": {"kind": "pagerduty"}}),
            "/channel/routing_key: the channel needs the key of an integration (expected a value, or `enabled: false`)",
        ),
        (
            "alert-rules",
            json!({"channel": {"kind": "slack", "url": "hunter2/hook"}}),
            "/channel/url: this is not a URL (expected a URL such as `https://example.com/hook`)",
        ),
        (
            "alert-rules",
            json!({"channel": "https://hooks.example/hunter2"}),
            "/channel: invalid type: string (expected an object)",
        ),
        (
            "alert-rules",
            json!({"routes": ["gone"]}),
            "/routes/0: there is no entity `gone` in routes (expected the id of an entity in routes)",
        ),
        (
            "malware-scanners",
            json!({"kind": "icaps"}),
            "/kind: unknown value `icaps`, did you mean `icap`? (expected one of `clamd`, `icap`)",
        ),
        (
            "malware-scanners",
            json!({"prt": 1}),
            "/prt: unknown field `prt`, did you mean `port`? (expected one of `enabled`, `kind`, `host`, `port`, `service`, \
             `icap_mode`, `timeout_millis`, `max_file_size`, `id`, `name`, `description`, `tags`, `metadata`)",
        ),
        (
            "threat-policies",
            json!({"challenge_provider": "gone"}),
            "/challenge_provider: there is no entity `gone` in challenge-providers (expected the id of an entity in \
             challenge-providers)",
        ),
    ];
    let mut wrong = Vec::new();
    for (collection, mut document, expected) in cases {
        document["id"] = json!("x");
        let found = problems(kind(collection), document.clone()).join(" | ");
        assert!(!found.contains("hunter2"), "{found}");
        if found != expected {
            wrong.push(format!("{collection} {document}\n  found    {found}\n  expected {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
