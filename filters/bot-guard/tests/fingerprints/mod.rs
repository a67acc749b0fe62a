//! TLS fingerprints in a real gateway that ends TLS, with clients of different software.

use std::process::Command;
use std::time::Duration;

use palisade_tests::console::Console;
use palisade_tests::gateway::{Gateway, route, threat_policy};
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);
const CHROME: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";

/// A request, as each client takes it: the port, then pairs of a header's name and value. The status is what they print.
const PYTHON: &str = "
import http.client, ssl, sys
port, *pairs = sys.argv[1:]
connection = http.client.HTTPSConnection('127.0.0.1', int(port), timeout=20, context=ssl._create_unverified_context())
connection.request('GET', '/', headers=dict(zip(pairs[::2], pairs[1::2])))
print(connection.getresponse().status)
";
const NODE: &str = "
const [port, ...pairs] = process.argv.slice(1);
const headers = {};
for (let place = 0; place < pairs.length; place += 2) headers[pairs[place]] = pairs[place + 1];
const options = { host: '127.0.0.1', port, headers, rejectUnauthorized: false, agent: false };
require('https').get(options, answer => { console.log(answer.statusCode); answer.destroy(); });
";

/// A program with a TLS of its own.
#[derive(Clone, Copy)]
enum Client {
    Curl,
    Python,
    Node,
}

impl Client {
    /// The status that the program gets for a request with these headers; 0 if it gets none.
    fn status(self, gateway: &Gateway, headers: &[(&str, &str)]) -> u16 {
        let port = gateway.address.port().to_string();
        let pairs = headers.iter().flat_map(|(name, value)| [*name, *value]);
        let (mut command, name) = match self {
            Client::Curl => {
                let mut curl = Command::new("curl");
                curl.args(["-sk", "--max-time", "20", "-o", "/dev/null", "-w", "%{http_code}"]);
                for (name, value) in headers {
                    curl.args(["-H", &format!("{name}: {value}")]);
                }
                curl.arg(format!("https://127.0.0.1:{port}/"));
                (curl, "curl")
            }
            Client::Python => {
                let mut python = Command::new("python3");
                python.args(["-c", PYTHON, &port]).args(pairs);
                (python, "python3")
            }
            Client::Node => {
                let mut node = Command::new("node");
                node.args(["-e", NODE, &port]).args(pairs);
                (node, "node")
            }
        };
        let output = command.output();
        assert!(output.is_ok(), "`{name}` is needed: {output:?}");
        String::from_utf8_lossy(&output.unwrap().stdout).trim().parse().unwrap_or(0)
    }

    /// What its agent says by default.
    fn agent(self) -> (&'static str, &'static str) {
        match self {
            Client::Curl => ("curl", "curl/8.5.0"),
            Client::Python => ("python", "python-requests/2.32"),
            Client::Node => ("node", "node-fetch/3.3"),
        }
    }

    fn says(self, gateway: &Gateway, agent: &str, address: &str) -> u16 {
        self.status(gateway, &[("user-agent", agent), ("x-forwarded-for", address)])
    }
}

/// Waits until every one of some requests on fresh connections gets a status: each worker is sent changes of its own.
fn settles(what: &str, status: u16, ask: impl Fn() -> u16) {
    let mut last = 0;
    let outcome = wait_for(what, PATIENCE, || {
        (0..6)
            .all(|_| {
                last = ask();
                last == status
            })
            .then_some(())
    });
    assert!(outcome.is_ok(), "{outcome:?}; the last was {last}");
}

fn gateway(filters: &Value, plugins: Value) -> Gateway {
    Gateway::start(|control, backend| {
        let signed = rcgen::generate_simple_self_signed(vec!["demo.test".to_owned()]).unwrap();
        let (certificate, private_key) = (control.data().join("tls.pem"), control.data().join("tls.key"));
        std::fs::write(&certificate, signed.cert.pem()).unwrap();
        std::fs::write(&private_key, signed.signing_key.serialize_pem()).unwrap();
        control.configure(&json!({
            "gateway": { "filters": filters, "tls": { "certificate": certificate, "private_key": private_key } },
            "identity": { "trusted_hops": 1, "tls_fingerprint": true },
            "security": { "ledger": { "enabled": false } },
        }));
        let tiers = json!([{ "min_score": 40, "action": "deny", "status": 418 }]);
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": tiers })));
        control.create(
            "bot-policies",
            &json!({
                "id": "bots", "name": "Bots", "verify_known_bots": false, "deny_status": 451,
                "fingerprints": { "enabled": true },
            }),
        );
        control.create("routes", &route("demo", backend, plugins));
    })
}

/// The JA4 that gateways have reported of a client; it has come from two networks.
fn learned(gateway: &Gateway, console: &Console, client: Client) -> String {
    let (family, agent) = client.agent();
    let asked = json!({ "family": family, "min_networks": 2, "state": "candidate" });
    let pair = wait_for(&format!("the fingerprint of {family}"), PATIENCE, || {
        for address in ["198.51.100.7", "203.0.113.7"] {
            assert_eq!(client.says(gateway, agent, address), 200, "{family}");
        }
        let page = console.post("_fingerprints", &asked);
        page["entries"].as_array()?.first().cloned()
    });
    let pair = pair.unwrap();
    assert_eq!((&pair["networks"], &pair["also"]), (&json!(2), &json!([])), "{pair}");
    pair["ja4"].as_str().unwrap().to_owned()
}

fn known_by_their_tls(gateway: &Gateway) {
    use Client::{Curl, Node, Python};
    let console = Console::login(&gateway.control);
    settles("the gateway", 200, || Curl.says(gateway, "curl/8.5.0", "198.51.100.1"));
    let [curl, python, node] = [Curl, Python, Node].map(|client| learned(gateway, &console, client));
    assert!(curl != python && python != node && node != curl, "{curl} {python} {node}");

    // Nothing that was learned acts by itself.
    assert_eq!(Curl.says(gateway, CHROME, "192.0.2.7"), 200);
    let accepted = console.post("_fingerprint_decide", &json!({ "family": "curl", "ja4": curl, "decision": "accept" }));
    assert_eq!((&accepted["done"], &accepted["networks"]), (&json!(true), &json!(2)), "{accepted}");
    settles("the mismatch", 418, || Curl.says(gateway, CHROME, "192.0.2.7"));
    let event = gateway.control.event("the mismatch", |event| event["threat"]["score"] == 40);
    assert_eq!(event["threat"]["tags"], json!(["bot:fingerprint:mismatch:chrome"]), "{event}");
    assert_eq!(event["threat"]["signals"][0]["source"], "bots.fingerprint", "{event}");
    assert_eq!(Curl.says(gateway, "curl/8.5.0", "192.0.2.7"), 200, "it says what it is");
    assert_eq!(Python.says(gateway, CHROME, "192.0.2.7"), 200, "its fingerprint is not known");
    let audit = gateway.control.event("the audit", |event| event["action"] == "fingerprint-decision");
    assert!(audit.to_string().contains(&curl), "{audit}");

    // Headers say nothing: neither better nor worse than it is.
    let forged = |client: Client, ja4: &str| {
        let names = ["svc.ja4", "x-ja4", "ja4"].map(|name| (name, ja4));
        let own = [("user-agent", CHROME), ("x-forwarded-for", "192.0.2.7")];
        client.status(gateway, &[&own[..], &names].concat())
    };
    assert_eq!((forged(Python, &curl), forged(Curl, &python)), (200, 418));

    // A ban on a fingerprint holds from every address, until it is lifted.
    let reference = format!("ja4:{python}");
    let ban = console.post("_ban", &json!({ "ref": reference, "duration_seconds": 600, "reason": "a botnet" }));
    assert_eq!((&ban["done"], &ban["enforced"]), (&json!(true), &json!(true)), "{ban}");
    settles("the ban", 403, || Python.says(gateway, "python-requests/2.32", "192.0.2.8"));
    assert_eq!(Python.says(gateway, CHROME, "203.0.113.99"), 403);
    assert_eq!(Node.says(gateway, "node-fetch/3.3", "192.0.2.8"), 200, "the address is not banned");
    let allowed = console.post("_allow", &json!({ "ref": "ip:203.0.113.50", "reason": "our own monitoring" }));
    assert_eq!(allowed["done"], true, "{allowed}");
    settles("the allowlist", 200, || Python.says(gateway, "python-requests/2.32", "203.0.113.50"));
    assert_eq!(console.post("_unban", &json!({ "ref": reference }))["done"], true);
    settles("the lifted ban", 200, || Python.says(gateway, "python-requests/2.32", "192.0.2.8"));

    // Rules: one fingerprint is denied, another is limited as an identity of its own.
    let rules = json!([
        { "fingerprint": node, "action": "deny" },
        { "fingerprint": python, "action": "deny", "requests_per_minute": 1 },
    ]);
    gateway.control.patch("bot-policies", "bots", &json!({ "fingerprints": { "enabled": true, "rules": rules } }));
    settles("the rule", 451, || Node.says(gateway, "node-fetch/3.3", "192.0.2.9"));
    settles("the limit", 429, || Python.says(gateway, "python-requests/2.32", "192.0.2.10"));
    assert_eq!(Curl.says(gateway, "curl/8.5.0", "192.0.2.10"), 200);
    assert!(gateway.envoy.vm_failures().is_empty());
}

#[test]
fn clients_are_known_by_their_tls_in_the_preset() {
    let plugins = json!([{ "plugin": "SecuritySuitePreset", "config": { "threat_policy": "demo" } }]);
    known_by_their_tls(&gateway(&json!(["preset"]), plugins));
}

#[test]
fn clients_are_known_by_their_tls_in_separate_filters() {
    let plugins = json!([
        { "plugin": "SvcThreatGate", "plugin_index": 1, "config": { "policy": "demo" } },
        { "plugin": "SvcBotGuard", "plugin_index": 2 },
        { "plugin": "SvcThreatResponse", "plugin_index": 900, "config": { "policy": "demo" } },
    ]);
    known_by_their_tls(&gateway(&json!(["threat-gate", "bot-guard", "threat-response"]), plugins));
}
