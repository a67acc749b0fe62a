//! Signed requests in a real gateway, with all plugins in one filter and with a filter for each.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ed25519_dalek::{Signer as _, SigningKey};
use palisade_tests::console::Console;
use palisade_tests::gateway::{Gateway, route, threat_policy};
use palisade_tests::http::Request;
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(30);
/// An agent that has the user agent of a browser, as deployed ones do.
const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const SIGNER: &str = "x (SignerBot/1.0)";

fn key() -> SigningKey {
    SigningKey::from_bytes(&[42; 32])
}

/// The server of a key directory.
fn directory() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let x = URL_SAFE_NO_PAD.encode(key().verifying_key().to_bytes());
    let set = json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "x": x, "use": "sig" }] }).to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
                head.push(byte[0]);
            }
            let is_directory = head.starts_with(b"GET /.well-known/http-message-signatures-directory HTTP/1.1\r\n");
            let status = if is_directory { "200 OK" } else { "404 Not Found" };
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/http-message-signatures-directory+json\r\n\
                 content-length: {}\r\nconnection: close\r\n\r\n{set}",
                set.len()
            );
            let _ = stream.write_all(head.as_bytes());
        }
    });
    address
}

/// Signs for a directory; requests of the same signer with the same nonce have one signature.
struct Agent {
    directory: SocketAddr,
    now: u64,
}

impl Agent {
    fn request(&self, address: &str, user_agent: &str, nonce: &str, signed: &str) -> Request {
        let x = URL_SAFE_NO_PAD.encode(key().verifying_key().to_bytes());
        let thumbprint = snapshot::content_hash(format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#).as_bytes());
        let (keyid, url) = (URL_SAFE_NO_PAD.encode(thumbprint), format!("http://{}", self.directory));
        let nonce = if nonce.is_empty() { String::new() } else { format!(";nonce=\"{nonce}\"") };
        let input = format!(
            r#"("@authority" "@method" "@path" "signature-agent";key="sig");created={};expires={};keyid="{keyid}"{nonce};tag="web-bot-auth""#,
            self.now,
            self.now + 3600
        );
        let base = format!(
            "\"@authority\": {signed}\n\"@method\": GET\n\"@path\": /a\n\"signature-agent\";key=\"sig\": \"{url}\"\n\"@signature-params\": {input}"
        );
        Request::new("GET", "/a?x=1")
            .header("x-forwarded-for", address)
            .header("user-agent", user_agent)
            .header("signature-agent", format!("sig=\"{url}\""))
            .header("signature-input", format!("sig={input}"))
            .header("signature", format!("sig=:{}:", STANDARD.encode(key().sign(base.as_bytes()).to_bytes())))
    }
}

fn gateway(filters: &Value, directory: SocketAddr, plugins: Value) -> Gateway {
    let feed = super::publisher();
    let allow = ["--outbound-allow", "127.0.0.1/32"].map(String::from);
    Gateway::start_with(&allow, |control, backend| {
        control.configure(&json!({
            "gateway": { "filters": filters }, "identity": { "trusted_hops": 1 }, "security": { "ledger": { "enabled": false } }
        }));
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": [] })));
        let feed = json!({ "id": "bad", "url": format!("http://{feed}/"), "allow_private": true, "weight": 1, "action": "block" });
        control.create("threat-feeds", &feed);
        let signature = json!({
            "name": "signerbot", "category": "ai", "ua_contains": ["signerbot"], "key_directory": format!("http://{directory}")
        });
        let policy = json!({ "id": "bots", "signatures": [signature], "rules": [], "deny_status": 451, "verify_by_signatures": true });
        control.create("bot-policies", &policy);
        control.create("routes", &route("demo", backend, plugins));
    })
}

/// What holds in both modes: the addresses 192.0.2.x are in a feed that blocks, unless a signature verifies. Returns a request that is
/// signed rightly.
fn signs(gateway: &mut Gateway, directory: SocketAddr) -> Request {
    #[allow(clippy::disallowed_methods, reason = "a client signs by its own clock, in no filter")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let agent = Agent { directory, now };
    let unsigned = Request::new("GET", "/a?x=1").header("x-forwarded-for", "192.0.2.7").header("user-agent", BROWSER);
    let right = agent.request("192.0.2.7", BROWSER, "", "demo.test");
    // A worker that has no table of feeds yet lets all pass as well.
    for (request, status) in [(&unsigned, 403), (&right, 200)] {
        gateway.until(request, status, PATIENCE);
        wait_for("all workers", PATIENCE, || {
            gateway.statuses_of_all_workers(request).iter().all(|answer| *answer == status).then_some(())
        })
        .unwrap();
    }
    assert_eq!(gateway.status(&agent.request("192.0.2.8", SIGNER, "", "demo.test")), 200);
    // A nonce is good once, on whichever worker it comes again.
    let once = agent.request("192.0.2.7", BROWSER, "once", "demo.test");
    assert_eq!(gateway.status(&once), 200);
    assert!(gateway.statuses_of_all_workers(&once).iter().all(|status| *status == 403));
    // A signature for another host is a bad one; a browser with one is a browser.
    let forged = agent.request("198.51.100.7", SIGNER, "", "other.test");
    assert!(gateway.statuses_of_all_workers(&forged).iter().all(|status| *status == 451));
    let event = gateway.control.event("the bad signature", |event| event["source"]["ip"] == "198.51.100.7");
    let tags = json!(["bot:bad-signature", "bot:bad-signature:signerbot", "bot:ai:signerbot", "bot:ai"]);
    assert_eq!((&event["threat"]["tags"], &event["threat"]["score"]), (&tags, &json!(60)), "{event}");
    assert_eq!(gateway.status(&agent.request("198.51.100.8", BROWSER, "", "other.test")), 200);
    // Fields that cannot be read change nothing.
    for field in [b"sig=(".as_slice(), b"\xff\xfe", &b"(".repeat(8000), b"sig=(\"@authority\");tag=\"web-bot-auth\""] {
        let request = Request::new("GET", "/").header("x-forwarded-for", "198.51.100.9").header("user-agent", SIGNER);
        assert_eq!(gateway.status(&request.header("signature-input", field).header("signature", field)), 200);
    }
    right
}

#[test]
fn a_preset_verifies_signed_requests() {
    let directory = directory();
    let plugins = json!([{ "plugin": "SecuritySuitePreset", "config": { "threat_policy": "demo" } }]);
    let mut gateway = gateway(&json!(["preset"]), directory, plugins);
    let right = signs(&mut gateway, directory);
    let shown = Console::login(&gateway.control).get("_bot_status")["key_directories"].clone();
    assert_eq!(
        (&shown[0]["bot"], &shown[0]["in_force"], &shown[0]["keys"]),
        (&json!("signerbot"), &json!(true), &json!(1)),
        "{shown}"
    );
    // Without the switch no signature counts.
    gateway.control.patch("bot-policies", "bots", &json!({ "verify_by_signatures": false }));
    gateway.until(&right, 403, PATIENCE);
    assert!(gateway.envoy.vm_failures().is_empty());
}

#[test]
fn a_filter_of_its_own_verifies_signed_requests() {
    let directory = directory();
    let plugins = json!([
        { "plugin": "SvcBotGuard", "plugin_index": 2 },
        { "plugin": "SvcIpReputation", "plugin_index": 3 },
        { "plugin": "SvcThreatResponse", "plugin_index": 900, "config": { "policy": "demo" } },
    ]);
    let mut gateway = gateway(&json!(["bot-guard", "ip-reputation", "threat-response"]), directory, plugins);
    signs(&mut gateway, directory);
    assert!(gateway.envoy.vm_failures().is_empty());
}
