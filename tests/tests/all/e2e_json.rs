//! Gateways whose own configuration can only carry JSON (Istio's WasmPlugin, Envoy Gateway's EnvoyExtensionPolicy): the
//! snapshot comes in base64, and the filter cannot have headers held until it has seen the body.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use palisade_tests::backend::Backend;
use palisade_tests::bootstrap::Static;
use palisade_tests::envoy::Envoy;
use palisade_tests::http::{Connection, Request, percent};
use palisade_tests::parts;
use prost::Message;
use serde_json::{Value, json};
use snapshot::{Snapshot, Step, configuration_json, seal};

const SQL: &str = "1' UNION SELECT password FROM users-- -";
/// As in `envoy/entities-global`.
const LIMIT: usize = 524_288;
/// As in `buffers.yaml` of both gateways.
const GATEWAY_BUFFERS: usize = 8 << 20;
const HELD: Duration = Duration::from_millis(400);

/// The filter as such a gateway makes it: no way to say that headers may be held.
fn plugin(filter: &str, configuration: &str) -> Value {
    json!({
        "name": filter,
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm",
            "config": {
                "name": filter,
                "root_id": filter,
                "vm_config": {
                    "runtime": "envoy.wasm.runtime.v8",
                    "code": {"local": {"filename": parts::filter(filter)}},
                },
                "configuration": {
                    "@type": "type.googleapis.com/google.protobuf.StringValue",
                    "value": configuration,
                },
            },
        },
    })
}

/// What `palisade compile` prints for a folder of entities.
fn compile(entities: &Path) -> String {
    let output = Command::new(parts::palisade())
        .args(["compile", "--format", "json", "--out", "-", "--entities"])
        .arg(entities)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A policy for every route: the core rule set and rules of our own, with a waf-config in front that only scores.
fn policy(folder: &Path) {
    let write = |file: &str, entity: Value| {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, entity.to_string()).unwrap();
    };
    write(
        "global-config/global-config.json",
        json!({"incoming_request_validators": [
            {"plugin": "SvcThreatGate", "config": {"policy": "main"}},
            {"plugin": "Waf", "config": {"ref": "marks"}},
            {"plugin": "SvcThreatResponse", "config": {"policy": "main"}},
            {"plugin": "Waf", "config": {"ref": "main"}},
        ]}),
    );
    write(
        "threat-policies/main.json",
        json!({"id": "main", "name": "main", "dry_run": false, "tiers": [
            {"min_score": 1, "action": "tarpit", "tarpit_millis": u64::try_from(HELD.as_millis()).unwrap()},
            {"min_score": 95, "action": "deny"},
        ]}),
    );
    write(
        "waf-configs/marks.json",
        json!({"id": "marks", "name": "marks", "inspect_input_body": false, "inspect_output_body": false, "rules": [
            "SecRule ARGS:mark \"@streq 1\" \"id:10001,phase:1,pass,log,msg:'mark'\"",
        ]}),
    );
    write(
        "waf-configs/main.json",
        json!({"id": "main", "name": "main", "input_body_limit": LIMIT, "input_files_limit": LIMIT,
            "oversize_body_action": "inspect_prefix", "rules": [
            "@import_preset crs",
            "SecResponseBodyAccess On",
            "SecRule RESPONSE_BODY \"@contains secret-word\" \"id:10002,phase:4,deny,status:502,msg:'secret'\"",
        ]}),
    );
}

#[test]
fn a_filter_that_cannot_hold_headers_lets_nothing_through_and_hangs_nobody() {
    let folder = tempfile::tempdir().unwrap();
    policy(folder.path());
    let backend = Backend::start();
    let gateway = Static::to(backend.address()).filter(plugin("preset", &compile(folder.path())));
    let mut gateway: Value = serde_json::from_str(&gateway.render()).unwrap();
    gateway["static_resources"]["listeners"][0]["per_connection_buffer_limit_bytes"] = json!(GATEWAY_BUFFERS);
    let envoy = Envoy::start(&gateway.to_string());
    let to = envoy.listener(Static::LISTENER);
    let status = |request: &Request| {
        request.send(to).map_or_else(|error| panic!("{error}\n{}", envoy.log_tail(40)), |answer| answer.status)
    };
    let form = |text: &str| Request::post("/echo", "application/x-www-form-urlencoded", text);

    assert_eq!(status(&Request::get("/")), 200);
    assert_eq!(status(&Request::get(format!("/?q={}", percent(SQL)))), 403);
    for chunked in [false, true] {
        let cut = |request: Request| if chunked { request.chunked(7) } else { request };
        let answer = cut(form("name=garden+chairs")).send(to).unwrap();
        assert_eq!((answer.status, &answer.json()["body_length"]), (200, &json!(18)), "chunked {chunked}");
        assert_eq!(status(&cut(form(&format!("name={}", percent(SQL))))), 403, "chunked {chunked}");
        assert_eq!(status(&cut(form(""))), 200, "chunked {chunked}");
    }
    // Longer than what is inspected however the network cuts it.
    let large = vec![b'a'; 3 << 20];
    for round in 0..20 {
        let mut request = Request::post("/echo", "application/x-www-form-urlencoded", &large);
        if round % 2 == 1 {
            request = request.chunked(64 << 10);
        }
        assert_eq!(status(&request), 200, "round {round}");
    }

    // Held at its headers, and a body is wanted behind that.
    for (body, expected) in [("name=x".to_owned(), 200), (format!("name={}", percent(SQL)), 403)] {
        let request = Request::post("/echo?mark=1", "application/x-www-form-urlencoded", &body);
        for request in [request.clone(), request.chunked(5)] {
            let began = Instant::now();
            assert_eq!(status(&request), expected, "{body}");
            assert!(began.elapsed() >= HELD, "it was not held: {:?}", began.elapsed());
        }
    }

    // A body that never comes: the backend answers these paths from the headers.
    let withheld = |method: &str, target: &str, framing: &str| {
        let mut connection = Connection::open(to).unwrap();
        let head = format!("{method} {target} HTTP/1.1\r\nhost: shop.example\r\n{framing}\r\n\r\n");
        connection.write(head.as_bytes()).unwrap();
        connection.read(false)
    };
    let attack = format!("/status/200?q={}", percent(SQL));
    for framing in ["content-length: 1", "transfer-encoding: chunked"] {
        let form = format!("content-type: application/x-www-form-urlencoded\r\n{framing}");
        let answered = |method: &str, target: &str| withheld(method, target, &form).unwrap().status;
        assert_eq!(answered("GET", &attack), 403, "{framing}");
        assert_eq!(answered("POST", &attack), 403, "{framing}");
        assert_eq!(answered("POST", "/status/200?q=garden+chairs"), 200, "{framing}");
        assert_eq!(answered("POST", "/status/401"), 401, "{framing}: a backend that refuses before it has the body");
        let began = Instant::now();
        assert_eq!(answered("POST", "/status/200?mark=1"), 200, "{framing}");
        assert!(began.elapsed() >= HELD, "it was not held: {:?}", began.elapsed());
        let leak = withheld("POST", "/leak", &form);
        assert!(!leak.is_ok_and(|answer| answer.text().contains("SQL syntax")), "{framing}: the response is inspected");
    }

    // The headers of a response are on their way; its body does not follow them.
    let reflect = |body: &str| {
        Request::json("/reflect", &json!({"status": 200, "headers": {"content-type": "text/plain"}, "body": body}))
    };
    assert_eq!(reflect("harmless").send(to).unwrap().text(), "harmless");
    let refused = reflect("the secret-word is here").send(to);
    assert!(!refused.is_ok_and(|answer| answer.text().contains("secret-word")));
    assert!(envoy.vm_failures().is_empty(), "{:?}", envoy.vm_failures());
}

#[test]
fn a_body_is_not_replaced_where_its_length_is_on_its_way() {
    let step = Step { plugin: "rewrite".into(), ..Step::default() };
    let snapshot = Snapshot { filter: "rewrite".into(), global: vec![step], ..Snapshot::default() };
    let configuration = configuration_json(&seal(&snapshot).encode_to_vec());
    let backend = Backend::start();
    let gateway = Static::to(backend.address()).filter(plugin("rewrite", &configuration.to_string()));
    let envoy = Envoy::start(&gateway.render());
    let to = envoy.listener(Static::LISTENER);
    assert_eq!(Request::post("/echo", "text/plain", "as it was").send(to).unwrap().status, 200);
    assert_eq!(Request::post("/echo", "text/plain", "cut:this").send(to).unwrap().status, 500);
    // A connection that saw one goes on with whole requests or is closed: the next answer is not a part of the last.
    let mut connection = Connection::open(to).unwrap();
    let _ = connection.exchange(&Request::post("/echo", "text/plain", "grow:this"));
    if let Ok(answer) = connection.exchange(&Request::get("/")) {
        assert!(answer.status == 200 && answer.text().contains("Demo shop"), "{}", answer.text());
    }
}

#[test]
fn headers_are_held_where_the_configuration_says_so() {
    let folder = tempfile::tempdir().unwrap();
    policy(folder.path());
    let mut configuration: Value = serde_json::from_str(&compile(folder.path())).unwrap();
    configuration["hold_headers"] = json!(true);
    let mut filter = plugin("preset", &configuration.to_string());
    filter["typed_config"]["config"]["allow_on_headers_stop_iteration"] = json!(true);
    let backend = Backend::start();
    let envoy = Envoy::start(&Static::to(backend.address()).filter(filter).render());
    let to: SocketAddr = envoy.listener(Static::LISTENER);
    let wish = json!({"status": 200, "headers": {"content-type": "text/plain"}, "body": "the secret-word is here"});
    assert_eq!(Request::json("/reflect", &wish).send(to).unwrap().status, 502);
}

#[test]
fn what_is_no_configuration_is_named() {
    for (configuration, words) in [
        (json!({"snapshot": "SNAPSHOT"}).to_string(), "palisade compile"),
        (json!({"snapshots": ""}).to_string(), "unknown field `snapshots`"),
    ] {
        let backend = Backend::start();
        let gateway = Static::to(backend.address()).filter(plugin("preset", &configuration));
        let why = Envoy::start_with(&gateway.render(), 1, None).map(|envoy| envoy.log()).unwrap_or_else(|why| why);
        assert!(why.contains("refuses its configuration") && why.contains(words), "{why}");
    }
}
