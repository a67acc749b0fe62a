//! Alerts, from a request to the decision service.

use super::*;

/// A matching rule that refuses, and one that does not.
const ATTACK: &str = r#"SecRule ARGS:attack "@streq 1" "id:10002,phase:1,deny,status:403,msg:'an attack of the test'""#;

/// A decision service that takes alerts of the machine `gateway`.
#[derive(Clone, Default)]
struct Lapi(Arc<Mutex<Vec<Value>>>);

impl Lapi {
    fn serve(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let lapi = self.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
                    head.push(byte[0]);
                }
                let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
                let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
                let mut body = vec![0; length.unwrap_or(0)];
                let _ = stream.read_exact(&mut body);
                let (status, answer) = lapi.answer(&head, &body);
                let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close", answer.len());
                let _ = write!(stream, "{head}\r\n\r\n{answer}");
            }
        });
        address
    }

    fn answer(&self, head: &str, body: &[u8]) -> (u16, &'static str) {
        let line = head.lines().next().unwrap_or_default();
        if line.contains("/v1/decisions/stream") {
            return (200, r#"{"new":null,"deleted":null}"#);
        }
        if line.contains("/v1/watchers/login") {
            let login: Value = serde_json::from_slice(body).unwrap();
            return match login["machine_id"] == "gateway" && login["password"] == "hunter3" {
                true => (200, r#"{"code":200,"expire":"","token":"tok"}"#),
                false => (403, "{}"),
            };
        }
        match head.contains("authorization: bearer tok") {
            true if line.contains("/v1/alerts") => {
                let alerts: Vec<Value> = serde_json::from_slice(body).unwrap();
                self.0.lock().unwrap().extend(alerts);
                (201, r#"["1"]"#)
            }
            true => (200, "{}"),
            false => (401, "{}"),
        }
    }

    /// Waits for an alert on an address.
    fn alert(&self, address: &str) -> Value {
        let find = || self.0.lock().unwrap().iter().find(|alert| alert["source"]["value"] == address).cloned();
        palisade_tests::process::wait_for(&format!("an alert on {address}"), PATIENCE, find).unwrap()
    }

    fn has(&self, address: &str) -> bool {
        self.0.lock().unwrap().iter().any(|alert| alert["source"]["value"] == address)
    }
}

fn attack(address: &str) -> Request {
    Request::get("/search?attack=1").header("x-forwarded-for", address)
}

#[test]
fn a_refusal_by_rules_is_an_alert_at_the_decision_service() {
    let lapi = Lapi::default();
    let address = lapi.serve();
    let publisher = Publisher::start("192.0.2.99");
    let mut gateway = Gateway::start(|control, backend| {
        control.configure(&json!({
            "gateway": { "filters": ["preset"] }, "identity": { "trusted_hops": 1 }, "security": { "ledger": { "enabled": false } },
        }));
        let rules = json!({ "id": "rules", "name": "rules", "rules": [ATTACK] });
        control.create("waf-configs", &rules);
        control.create("threat-feeds", &publisher.feed("block"));
        control.create(
            "svc-bouncers",
            &json!({ "id": "crowd", "lapi_url": format!("http://{address}"), "api_key": "hunter2", "allow_private": true,
                     "push_enabled": true, "push_machine_id": "gateway", "push_password": "hunter3", "push_interval_seconds": 1,
                     "push_waf_detections": true, "push_with_decision": true, "push_decision_duration": "90m" }),
        );
        let config = |report: bool| {
            json!([
                { "plugin": "SvcIpReputation", "plugin_index": 3, "config": { "report_to_bouncer": report } },
                { "plugin": "SvcWaf", "plugin_index": 5, "config": { "ref": "rules" } },
            ])
        };
        let reporting = route("demo", backend, config(true));
        control.create("routes", &reporting);
    });
    gateway.until(&attack("192.0.2.7"), 403, PATIENCE);
    let alert = lapi.alert("192.0.2.7");
    let decision = (&alert["decisions"][0]["duration"], &alert["decisions"][0]["value"], &alert["remediation"]);
    assert_eq!(decision, (&json!("90m"), &json!("192.0.2.7"), &json!(true)), "{alert}");
    assert_eq!(alert["message"], "an attack of the test", "{alert}");
    let facts = alert["events"][0]["meta"].as_array().unwrap();
    assert!(facts.contains(&json!({ "key": "rules", "value": "10002" })), "{alert}");
    assert!(facts.iter().any(|fact| fact["key"] == "http_path"), "{alert}");

    // A caller on a list: of a step that reports.
    gateway.until(&from("192.0.2.99"), 403, PATIENCE);
    let alert = lapi.alert("192.0.2.99");
    assert!(alert["message"].as_str().unwrap().contains("Bad callers"), "{alert}");

    let console = Console::login(&gateway.control);
    let shown = palisade_tests::process::wait_for("what is shown", PATIENCE, || {
        let bouncer = console.show("reputation/_status")["svc_bouncers"][0].clone();
        (bouncer["push"]["sent"].as_u64() >= Some(2) && bouncer["pending_push"] == 0).then_some(bouncer)
    });
    let shown = shown.unwrap();
    assert_eq!((&shown["push"]["last_error"], &shown["push"]["dropped"]), (&Value::Null, &json!(0)), "{shown}");
    assert!(!shown.to_string().contains("hunter"), "{shown}");

    // Rules that refuse nothing, of a bouncer that is told of them and of no others.
    gateway.control.patch(
        "svc-bouncers",
        "crowd",
        &json!({ "push_waf_detections": false, "push_waf_monitored": true }),
    );
    gateway.control.patch("waf-configs", "rules", &json!({ "block": false }));
    gateway.until(&attack("192.0.2.9"), 200, PATIENCE);
    let alert = lapi.alert("192.0.2.9");
    assert_eq!((&alert["remediation"], alert.get("decisions")), (&json!(false), None), "{alert}");
    gateway.control.patch("waf-configs", "rules", &json!({ "block": true }));
    gateway.until(&attack("192.0.2.10"), 403, PATIENCE);
    let is_everywhere = || gateway.statuses_of_all_workers(&attack("192.0.2.10")).iter().all(|status| *status == 403);
    palisade_tests::process::wait_for("all workers", PATIENCE, || is_everywhere().then_some(())).unwrap();
    assert_eq!(gateway.status(&attack("192.0.2.8")), 403);
    gateway.until(&from("192.0.2.99"), 403, PATIENCE);
    let listed = || lapi.0.lock().unwrap().iter().filter(|alert| alert["source"]["value"] == "192.0.2.99").count();
    palisade_tests::process::wait_for("what came later", PATIENCE, || (listed() >= 2).then_some(())).unwrap();
    assert!(!lapi.has("192.0.2.8"));
    assert!(gateway.envoy.vm_failures().is_empty());
}
