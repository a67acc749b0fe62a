//! The identity of a caller at a real gateway: an unverified claim is none, a verified name is; and
//! addresses of IPv6 are judged by their network.

use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

use palisade_tests::backend::Backend;
use palisade_tests::bootstrap::{Static, wasm_filter};
use palisade_tests::console::Console;
use palisade_tests::envoy::Envoy;
use palisade_tests::gateway::{Gateway, preset, route, threat_policy, waf_config};
use palisade_tests::http::Request;
use palisade_tests::parts;
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(20);
/// A match, which is worth 20.
const SUSPECT: &str = r#"SecRule ARGS:probe "@streq 1" "id:10001,phase:1,pass,log,msg:'suspect'""#;
const ATTACK: &str = "/?probe=1";
/// Signed with the key of [`JWKS`], by hand: `{"iss":"test","sub":"ada"}` and the same of bob.
const ADA: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImsifQ.eyJpc3MiOiJ0ZXN0Iiwic3ViIjoiYWRhIn0.G_X2_TFpDBEEVqxB6SXu3DhjXx_Tlf0jMcCP8ZkCk1E";
const BOB: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImsifQ.eyJpc3MiOiJ0ZXN0Iiwic3ViIjoiYm9iIn0.eIc63923qptWnZUk1fnqDWxbDPTWjxz5ZdWFj9EnfG4";
const JWKS: &str =
    r#"{"keys": [{"kty": "oct", "kid": "k", "alg": "HS256", "k": "cGFsaXNhZGUtdGVzdC1rZXktb2YtMzItYnl0ZXMhISE"}]}"#;

/// A gateway whose policy bans suspect callers.
fn gateway(identity: Value) -> Gateway {
    let mut gateway = Gateway::start(|control, backend| {
        control.configure(&json!({"identity": identity, "security": {"ledger": {"enabled": false}}}));
        control.create("waf-configs", &waf_config("rules", json!({"rules": [SUSPECT]})));
        let tiers = json!([{"min_score": 20, "action": "ban", "status": 403, "ban_for_seconds": 600}]);
        control.create("threat-policies", &threat_policy("bans", json!({"tiers": tiers})));
        control.create("routes", &route("demo", backend, preset("bans", "rules")));
    });
    gateway.until(&Request::get("/"), 200, PATIENCE);
    gateway
}

fn status(gateway: &Gateway, source: Ipv4Addr, request: &Request) -> u16 {
    request
        .send_from(source, gateway.address)
        .unwrap_or_else(|error| panic!("no answer: {error}\n{}", gateway.envoy.log_tail(40)))
        .status
}

fn banned(console: &Console) -> Vec<String> {
    let bans = console.get("_bans");
    let keys = bans["bans"].as_array().expect("a list").iter();
    keys.map(|ban| ban["key"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Waits until the control plane has exactly these bans.
fn until_banned(console: &Console, expected: &[&str]) {
    wait_for("the bans", PATIENCE, || (banned(console) == expected).then_some(()))
        .unwrap_or_else(|why| panic!("{why}: {:?}", banned(console)));
}

#[test]
fn what_a_caller_says_of_itself_bans_the_caller_alone() {
    let gateway = gateway(json!({
        "api_key_header": "x-api-key", "api_key_query": "key", "user_header": "x-user",
        // Only a filter of the gateway may set it, and there is none.
        "verified_by": [{"kind": "trusted_header", "header": "x-auth-user"}],
    }));
    let console = Console::login(&gateway.control);
    let victim = Ipv4Addr::new(127, 20, 0, 99);
    for (number, header, value) in
        [(1, "x-user", "victim"), (2, "x-api-key", "made-up-key-0123456789"), (3, "x-auth-user", "victim")]
    {
        let attacker = Ipv4Addr::new(127, 20, 0, number);
        assert_eq!(status(&gateway, attacker, &Request::get(ATTACK).header(header, value)), 403, "{header}");
        // Another name is no way out, and who has that name is not concerned.
        for other in ["another", "and-another"] {
            assert_eq!(status(&gateway, attacker, &Request::get("/").header(header, other)), 403, "{header}: {other}");
        }
        assert_eq!(status(&gateway, victim, &Request::get("/").header(header, value)), 200, "{header}");
        let ip = attacker.to_string();
        let event = gateway
            .control
            .event("the ban", |event| event["source"]["ip"] == ip && event["decision"]["action"] == "ban");
        assert_eq!((&event["source"]["user"], &event["source"]["apikey"]), (&Value::Null, &Value::Null), "{event}");
        match header {
            "x-user" => assert_eq!(event["labels"], json!({"user": "victim"}), "{event}"),
            "x-api-key" => {
                assert!(event["labels"]["apikey"].is_string() && !event.to_string().contains("made-up"), "{event}")
            }
            _ => assert_eq!(event.get("labels"), None, "the listener has taken it from the client: {event}"),
        }
    }
    until_banned(&console, &["ip:127.20.0.1", "ip:127.20.0.2", "ip:127.20.0.3"]);
    let refused = console.post("_ban", &json!({"ref": "apikey:made-up"}));
    assert_eq!((&refused["done"], &refused["enforced"]), (&json!(true), &json!(false)), "{refused}");
    let failures = gateway.envoy.vm_failures();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
}

#[test]
fn a_network_of_ipv6_is_one_caller_and_a_run_of_them_is_one_ban() {
    let gateway = gateway(json!({"trusted_hops": 1}));
    let console = Console::login(&gateway.control);
    let from = |address: &str, path: &str| gateway.status(&Request::get(path).header("x-forwarded-for", address));
    assert_eq!(from("2001:db8:1:2::1", ATTACK), 403);
    for neighbour in ["2001:db8:1:2::2", "2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:0db8:0001:0002::3"] {
        assert_eq!(from(neighbour, "/"), 403, "{neighbour}");
    }
    for other in ["2001:db8:1:3::1", "2001:db8:1:1::1", "::ffff:192.0.2.9"] {
        assert_eq!(from(other, "/"), 200, "{other}");
    }
    until_banned(&console, &["ip:2001:db8:1:2::/64"]);
    // IPv4 that is written as IPv6 is IPv4.
    assert_eq!(from("::ffff:192.0.2.9", ATTACK), 403);
    assert_eq!((from("192.0.2.9", "/"), from("192.0.2.10", "/")), (403, 200));
    until_banned(&console, &["ip:192.0.2.9", "ip:2001:db8:1:2::/64"]);
    // By hand an address stands for its network as well, but for the one that the allowlist names.
    let answer = console.post("_ban", &json!({"ref": "ip:2001:db8:2:7::5", "reason": "by hand"}));
    assert_eq!(
        (&answer["ban"]["key"], &answer["enforced"]),
        (&json!("ip:2001:db8:2:7::/64"), &json!(true)),
        "{answer}"
    );
    assert_eq!(console.post("_allow", &json!({"ref": "ip:2001:db8:2:7::9", "unban": false}))["done"], true);
    wait_for("both are in force", PATIENCE, || {
        (from("2001:db8:2:7::6", "/") == 403 && from("2001:db8:2:7::9", "/") == 200).then_some(())
    })
    .unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(console.post("_unban", &json!({"ref": "ip:2001:db8:2:7::5"}))["done"], true);
    wait_for("it is lifted", PATIENCE, || (from("2001:db8:2:7::6", "/") == 200).then_some(()))
        .unwrap_or_else(|why| panic!("{why}"));
    // A run of neighbours: eight within a /56 are one.
    for net in 0..8 {
        assert_eq!(from(&format!("2001:db8:3:10{net}::1"), ATTACK), 403);
    }
    wait_for("the wider ban", PATIENCE, || (from("2001:db8:3:1ff::1", "/") == 403).then_some(()))
        .unwrap_or_else(|why| panic!("{why}: {:?}", banned(&console)));
    assert!(banned(&console).contains(&"ip:2001:db8:3:100::/56".to_owned()), "{:?}", banned(&console));
    assert_eq!(from("2001:db8:3:200::1", "/"), 200);
}

#[test]
fn a_ban_by_hand_holds_under_a_dry_run() {
    let mut gateway = Gateway::start(|control, backend| {
        control.create("waf-configs", &waf_config("rules", json!({"rules": [SUSPECT]})));
        let tiers = json!([{"min_score": 20, "action": "ban", "status": 403}]);
        let exempt = json!({"tiers": tiers, "dry_run": true, "exemptions": ["127.21.0.3"]});
        control.create("threat-policies", &threat_policy("dry", exempt));
        let own = |name: &str, plugins: Value| {
            let mut own = route(name, backend, plugins);
            own["hosts"] = json!([format!("{name}.test")]);
            own
        };
        control.create("routes", &own("dry", preset("dry", "rules")));
        control.create("routes", &own("bare", json!([])));
    });
    let to = |path: &str| Request::get(path).header("host", "dry.test");
    gateway.until(&to("/"), 200, PATIENCE);
    let console = Console::login(&gateway.control);
    let (hand, allowed, exempt, tier) = (
        Ipv4Addr::new(127, 21, 0, 1),
        Ipv4Addr::new(127, 21, 0, 2),
        Ipv4Addr::new(127, 21, 0, 3),
        Ipv4Addr::new(127, 21, 1, 1),
    );
    assert_eq!(console.post("_allow", &json!({"ref": format!("ip:{allowed}")}))["done"], true);
    let refused = console.post("_ban", &json!({"ref": format!("ip:{allowed}")}));
    assert_eq!(refused["refused"], "allowlisted", "{refused}");
    let answer = console.post("_ban", &json!({"ref": "ip:127.21.0.0/24", "reason": "by hand"}));
    assert_eq!((&answer["done"], &answer["enforced"]), (&json!(true), &json!(true)), "{answer}");
    wait_for("it is in force", PATIENCE, || (status(&gateway, hand, &to("/")) == 403).then_some(()))
        .unwrap_or_else(|why| panic!("{why}"));
    let event = gateway.control.event("the refusal", |event| event["source"]["ip"] == hand.to_string());
    assert_eq!(
        (&event["event"]["outcome"], &event["event"]["category"]),
        (&json!("blocked"), &json!("ban")),
        "{event}"
    );
    assert_eq!(status(&gateway, allowed, &to("/")), 200);
    assert_eq!(status(&gateway, exempt, &to("/")), 200);
    // Tiers still ban no caller.
    assert_eq!(status(&gateway, tier, &to(ATTACK)), 200);
    assert_eq!(status(&gateway, tier, &to("/")), 200);
    // Where no chain has a gate, nothing enforces it, and the answer says so.
    let path = palisade_tests::control_plane::ControlPlane::path("routes", "dry");
    assert_eq!(gateway.control.call("DELETE", &path, None).status, 200);
    let answer = console.post("_ban", &json!({"ref": "ip:127.21.2.1"}));
    assert_eq!((&answer["done"], &answer["enforced"]), (&json!(true), &json!(false)), "{answer}");
    assert!(answer["reason"].as_str().is_some_and(|reason| reason.contains("threat gate")), "{answer}");
}

/// In a listener that Palisade does not serve, `jwt_authn` has verified the caller before our filter sees the request.
#[test]
fn a_token_that_envoy_has_verified_names_the_user() {
    let backend = Backend::start();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, entity: Value| std::fs::write(folder.path().join(name), entity.to_string()).unwrap();
    let verifier = json!({"kind": "jwt", "path": ["payload", "sub"]});
    write(
        "global.json",
        json!({"kind": "global-config", "identity": {"user_header": "x-user", "verified_by": [verifier]}}),
    );
    let tier = json!({"min_score": 20, "action": "ban", "status": 403, "ban_for_seconds": 600});
    write("policy.json", json!({"kind": "threat-policy", "id": "bans", "dry_run": false, "tiers": [tier]}));
    write("waf.json", json!({"kind": "waf-config", "id": "rules", "rules": [SUSPECT]}));
    let mut demo = route("r1", backend.address(), preset("bans", "rules"));
    (demo["kind"], demo["envoy_route"]) = (json!("route"), json!(Static::ROUTE));
    write("route.json", demo);
    let out = folder.path().join("snapshot.pb");
    let compiled = Command::new(parts::palisade())
        .args(["compile", "--format", "snapshot", "--out"])
        .arg(&out)
        .arg("--entities")
        .arg(folder.path())
        .output()
        .expect("the program starts");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let authn = json!({
        "name": "envoy.filters.http.jwt_authn",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication",
            "providers": {"test": {
                "issuer": "test", "local_jwks": {"inline_string": JWKS}, "payload_in_metadata": "payload", "forward": true,
            }},
            "rules": [{
                "match": {"prefix": "/"},
                "requires": {"requires_any": {"requirements": [{"provider_name": "test"}, {"allow_missing_or_failed": {}}]}},
            }],
        },
    });
    let ours = wasm_filter("preset", &parts::filter("preset"), &std::fs::read(&out).unwrap());
    let envoy = Envoy::start(&Static::to(backend.address()).filter(authn).filter(ours).render());
    let gateway = envoy.listener(Static::LISTENER);
    let (one, other) = (Ipv4Addr::new(127, 22, 0, 1), Ipv4Addr::new(127, 22, 0, 2));
    let ask = |source: Ipv4Addr, path: &str, token: Option<&str>| {
        let request = Request::get(path).header("x-user", "ada");
        let request = match token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        };
        request.send_from(source, gateway).unwrap_or_else(|error| panic!("{error}\n{}", envoy.log_tail(40))).status
    };
    assert_eq!(ask(one, ATTACK, Some(ADA)), 403);
    assert_eq!(ask(other, "/", Some(ADA)), 403, "the user is banned, wherever from");
    assert_eq!(ask(one, "/", Some(BOB)), 200, "the address is not");
    assert_eq!(ask(one, "/", None), 200, "nor who only says that it is her");
    // A wrong token identifies no client: the address is charged.
    let forged = format!("{}x", ADA.get(..ADA.len() - 2).unwrap());
    assert_eq!(ask(other, ATTACK, Some(&forged)), 403);
    assert_eq!(ask(other, "/", Some(BOB)), 403, "the address is banned");
    assert!(envoy.vm_failures().is_empty(), "{:?}", envoy.vm_failures());
}
