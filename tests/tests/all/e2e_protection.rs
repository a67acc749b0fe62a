//! One gateway with the preset: what it refuses, what it lets through, what it leaves alone, and what it survives.

use std::io::Write;
use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use palisade_tests::gateway::{Gateway, preset, route, threat_policy, waf_config};
use palisade_tests::h2;
use palisade_tests::http::{Connection, Request, multipart, percent};
use palisade_tests::parts;
use palisade_tests::process::wait_for;
use serde_json::json;

const SQL: &str = "1' UNION SELECT password FROM users-- -";
const FORM: &str = "application/x-www-form-urlencoded";
const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn the_preset_protects_a_route() {
    let mut gateway = Gateway::start(|control, backend| {
        control.create("waf-configs", &waf_config("demo", json!({})));
        control.create("threat-policies", &threat_policy("demo", json!({})));
        let mut demo = route("demo", backend, preset("demo", "demo"));
        demo["hosts"] = json!(["demo.test"]);
        control.create("routes", &demo);
        let prefix = json!({"oversize_body_action": "inspect_prefix", "input_files_limit": 1 << 20});
        control.create("waf-configs", &waf_config("long", prefix));
        let mut long = route("long", backend, preset("demo", "long"));
        (long["hosts"], long["paths"]) = (json!(["demo.test"]), json!(["/long"]));
        control.create("routes", &long);
    });
    gateway.until(&Request::get("/long"), 200, PATIENCE);
    attacks_are_refused_and_the_rest_passes(&gateway);
    refusals_leave_events(&gateway);
    streams_and_upgrades_are_not_held(&gateway);
    odd_requests_get_an_answer(&mut gateway);
    traffic_without_a_route_is_covered(&mut gateway);
    let failures = gateway.envoy.vm_failures();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
    assert!(gateway.envoy.lives());
}

fn attacks_are_refused_and_the_rest_passes(gateway: &Gateway) {
    let (attack_type, attack_body) = multipart(&[("note", None, SQL.as_bytes()), ("file", Some("a.txt"), b"x")]);
    let (benign_type, benign_body) = multipart(&[("note", None, b"two chairs"), ("file", Some("a.txt"), b"text")]);
    let cases = [
        ("a page", Request::get("/search?q=garden+chairs"), 200),
        ("an attack in the query", Request::get(format!("/search?q={}", percent(SQL))), 403),
        (
            "an attack in a header",
            Request::get("/").header("referer", "http://x/<script>alert(document.cookie)</script>"),
            403,
        ),
        ("an attack in a cookie", Request::get("/").header("cookie", format!("id={}", percent(SQL))), 403),
        ("JSON", Request::json("/echo", &json!({"name": "Ada", "tags": ["garden", "chairs"]})), 200),
        ("an attack in JSON", Request::json("/echo", &json!({"user": {"name": SQL}})), 403),
        ("a form", Request::post("/echo", FORM, "name=Ada&city=London"), 200),
        ("an attack in a form", Request::post("/echo", FORM, format!("name=Ada&city={}", percent(SQL))), 403),
        ("multipart", Request::post("/echo", &benign_type, benign_body), 200),
        ("an attack in multipart", Request::post("/echo", &attack_type, attack_body), 403),
        (
            "an attack in a chunked form",
            Request::post("/echo", FORM, format!("name=Ada&city={}", percent(SQL))).chunked(7),
            403,
        ),
        ("a path that climbs", Request::get("/download?file=../../../../etc/passwd"), 403),
        ("a command", Request::get(format!("/ping?host={}", percent("127.0.0.1; cat /etc/passwd"))), 403),
    ];
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(what, request, status)| {
            let answer = gateway.send(request);
            (answer.status != *status).then(|| format!("{what}: {} instead of {status}", answer.status))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    // What was inspected arrives whole.
    let body = "name=".to_owned() + &"garden+chairs+".repeat(500);
    let seen = gateway.send(&Request::post("/echo", FORM, &body).chunked(1000)).json();
    assert_eq!(seen["body_length"], body.len());
    assert_eq!(seen["body_sha256"], palisade_tests::backend::hex(&<sha2::Sha256 as sha2::Digest>::digest(&body)));
    // An error page of a database does not reach the client.
    let leak = gateway.send(&Request::get("/leak"));
    assert!(!leak.text().contains("SQL syntax"), "status {}: {}", leak.status, leak.text());
}

fn refusals_leave_events(gateway: &Gateway) {
    let source = Ipv4Addr::new(127, 0, 1, 1);
    let attack = Request::get(format!("/search?q={}", percent(SQL)));
    assert_eq!(attack.send_from(source, gateway.address).unwrap().status, 403);
    let event = gateway.control.event("a blocked threat of 127.0.1.1", |event| {
        event["@type"] == "SvcSecurityEvent" && event["source"]["ip"] == "127.0.1.1"
    });
    assert_eq!(event["event"]["outcome"], "blocked", "{event}");
    assert_eq!(event["route"]["id"], "demo", "{event}");
    assert!(event["threat"]["score"].as_f64().is_some_and(|score| score >= 40.0), "{event}");
    let trail = gateway
        .control
        .event("a trail of the WAF", |event| event["@type"] == "SvcWafTrailEvent" && event["blocking"] == true);
    assert!(!trail["block"].is_null(), "{trail}");
    // The same line is in the gateway's access log, for gateways whose control plane is away.
    wait_for("the event in the access log", Duration::from_secs(15), || {
        gateway.access_log().contains("127.0.1.1").then_some(())
    })
    .unwrap();
    // And the incident it belongs to, as the admin key reads it.
    let incident = wait_for("an incident of 127.0.1.1", Duration::from_secs(15), || {
        let answer = gateway.control.call("GET", "/api/extensions/svc/waf/api/_incidents", None);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let incidents = answer.json();
        let found =
            incidents["incidents"].as_array()?.iter().find(|incident| incident["key"] == "ip:127.0.1.1")?.clone();
        Some(found)
    })
    .unwrap();
    assert!(incident["count"].as_u64().is_some_and(|count| count >= 1), "{incident}");
}

fn streams_and_upgrades_are_not_held(gateway: &Gateway) {
    let mut stream = Connection::open(gateway.address).unwrap();
    let start = Instant::now();
    stream.write(&Request::get("/sse").header("accept", "text/event-stream").encode()).unwrap();
    assert_eq!(stream.read_head().unwrap().status, 200);
    // The stream has no end: what arrives was not waited for.
    let mut seen = String::new();
    while !seen.contains("tick 3") {
        seen.push_str(&String::from_utf8_lossy(&stream.read_some().unwrap()));
    }
    println!("three events after {:?}", start.elapsed());

    let mut socket = Connection::open(gateway.address).unwrap();
    let upgrade = Request::get("/ws")
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    socket.write(&upgrade.encode()).unwrap();
    assert_eq!(socket.read_head().unwrap().status, 101);
    for text in [b"first".as_slice(), b"1' UNION SELECT password FROM users"] {
        socket.write(text).unwrap();
        assert_eq!(socket.read_some().unwrap(), text);
    }
}

fn odd_requests_get_an_answer(gateway: &mut Gateway) {
    let many = (0..1000).fold(Request::get("/"), |request, index| request.header(format!("x-odd-{index}"), "value"));
    let fewer = (0..900).fold(Request::get("/"), |request, index| request.header(format!("x-odd-{index}"), "value"));
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all("name=Ada&city=London&".repeat(200).as_bytes()).unwrap();
    let mut gzip = gzip.finish().unwrap();
    gzip.truncate(gzip.len() / 2);
    let large = vec![b'a'; 5 << 20];
    let bytes: Vec<u8> = (0x80..=0xff).collect();
    // The core rule set's 3.3 line, which is what a machine without the release gets, takes such a form for an attack.
    let version = std::fs::read_to_string(parts::crs().join("VERSION")).unwrap();
    let odd_form = if version.starts_with('3') { 403 } else { 200 };
    // (what, request, its status)
    let cases: Vec<(&str, Request, u16)> = vec![
        ("bytes that are no UTF-8 in a header", Request::get("/").header("x-odd", &bytes), 200),
        ("bytes that are no UTF-8 in a cookie", Request::get("/").header("cookie", b"a=\xff\xfe; b=\xc3"), 200),
        (
            "bytes that are no UTF-8 as the user agent",
            Request::new("GET", "/").header("user-agent", b"\xff\xfe\xfd"),
            200,
        ),
        ("bytes that are no UTF-8 in a form", Request::post("/echo", FORM, &bytes), odd_form),
        ("900 headers", fewer, 200),
        ("1000 headers", many, 431),
        ("a path of 60 KB", Request::get(format!("/{}", "a".repeat(60 << 10))), 200),
        ("a query of more arguments than are inspected", Request::get(format!("/?{}", "a=b&".repeat(15 << 10))), 400),
        ("a body over every limit", Request::post("/echo", FORM, &large), 413),
        ("a chunked body over every limit", Request::post("/echo", FORM, &large).chunked(64 << 10), 413),
        // The core rule set forbids the header, so the threat response has its say.
        ("a truncated gzip", Request::post("/echo", FORM, &gzip).header("content-encoding", "gzip"), 403),
        ("JSON that breaks off", Request::post("/echo", "application/json", "{\"a\": [1, {\"b\":"), 403),
        ("JSON of depth 10,000", Request::post("/echo", "application/json", "[".repeat(10_000)), 403),
        ("multipart without its boundary", Request::post("/echo", "multipart/form-data", "x"), 403),
        ("XML that breaks off", Request::post("/echo", "text/xml", "<a><b>"), 403),
        ("an empty body with a content type", Request::post("/echo", "application/json", ""), 200),
        ("a HEAD", Request::new("HEAD", "/"), 200),
        ("percent signs that encode nothing", Request::get("/%zz?%=%f&%00=1"), 403),
        ("a NUL in the path", Request::get("/a%00b"), 400),
        ("an unusual method", Request::new("PROPFIND", "/"), 403),
        // Envoy itself refuses what is no registered method.
        ("an unknown method", Request::new("BREW", "/"), 400),
    ];
    let mut wrong = Vec::new();
    for (what, request, status) in &cases {
        match request.send(gateway.address) {
            Ok(answer) if answer.status == *status => {}
            Ok(answer) => wrong.push(format!("{what}: {} instead of {status}", answer.status)),
            Err(error) => wrong.push(format!("{what}: {error}")),
        }
        if !gateway.envoy.lives() {
            panic!("{what} ended Envoy\n{}", gateway.envoy.log_tail(60));
        }
        let failures = gateway.envoy.vm_failures();
        assert!(failures.is_empty(), "{what} made a VM fail: {failures:?}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");

    // A body that is longer than what is inspected passes where that is wanted, however the network cuts it.
    for round in 0..40 {
        let mut request = Request::post("/long/echo", FORM, &large);
        if round % 2 == 1 {
            request = request.chunked(64 << 10);
        }
        let answer = request.send(gateway.address).unwrap();
        assert_eq!(answer.status, 200, "round {round}: {}", answer.text());
    }

    // A client that leaves in the middle of its body.
    let mut gone = Connection::open(gateway.address).unwrap();
    gone.write(
        b"POST /echo HTTP/1.1\r\nhost: demo.test\r\ncontent-type: text/plain\r\ncontent-length: 1000\r\n\r\nhalf",
    )
    .unwrap();
    drop(gone);

    // The same over HTTP/2, at once on one connection.
    let attack = format!("/search?q={}", percent(SQL));
    let mut requests = vec![
        h2::Request::get("/"),
        h2::Request::get(&attack),
        h2::Request::post("/echo", FORM, "name=Ada"),
        h2::Request::post("/echo", FORM, format!("name={}", percent(SQL))),
        h2::Request::get("/"),
    ];
    requests[4].headers.push(("x-odd".into(), vec![0xff, 0xfe]));
    let answers = h2::exchange_as("demo.test", gateway.address, &requests).unwrap();
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.as_ref().map_or(0, |answer| answer.status)).collect();
    assert_eq!(statuses, [200, 403, 200, 403, 200], "{answers:?}");

    // Whoever answered all that still works: both workers do.
    let after = gateway.statuses_of_all_workers(&Request::get("/search?q=garden+chairs"));
    assert!(after.iter().all(|status| *status == 200), "{after:?}");
    let after = gateway.statuses_of_all_workers(&Request::get(&attack));
    assert!(after.iter().all(|status| *status == 403), "{after:?}");
}

fn traffic_without_a_route_is_covered(gateway: &mut Gateway) {
    let unrouted = |target: String| Request::get(target).header("host", "elsewhere.test");
    let attack = unrouted(format!("/nowhere?q={}", percent(SQL)));
    assert_eq!(gateway.status(&attack), 404, "no chain covers it yet");
    gateway.control.configure(&json!({
        "incoming_request_validators": [
            {"plugin": "IncomingRequestValidatorSvcWaf", "enabled": true, "config": {"ref": "demo"}},
        ],
    }));
    let took = gateway.until(&attack, 403, PATIENCE);
    println!("the global chain was in force after {took:?}");
    assert_eq!(gateway.status(&unrouted("/nowhere".into())), 404);
    assert_eq!(gateway.status(&Request::get("/")), 200);
}

const OWN_RULES: &str = "SecRuleEngine On\nSecRequestBodyAccess On\n\
    SecRule ARGS|REQUEST_BODY \"@contains UNION SELECT\" \"id:1,phase:2,deny,status:403,log,msg:'SQL'\"";

#[test]
fn bodies_are_inspected_whatever_the_headers_say_and_wherever_the_limit_lies() {
    let mut gateway = Gateway::start(|control, backend| {
        let short = json!({"rules": [OWN_RULES], "input_body_limit": 1000, "input_files_limit": 1000,
            "oversize_body_action": "inspect_prefix"});
        control.create("waf-configs", &waf_config("short", short));
        let exact = json!({"rules": [OWN_RULES], "input_body_limit": 6000, "oversize_body_action": "reject"});
        control.create("waf-configs", &waf_config("exact", exact));
        let plugins = json!([
            {"plugin": "SvcWaf", "config": {"ref": "short"}},
            {"plugin": "SvcWaf", "config": {"ref": "exact"}},
        ]);
        control.create("routes", &route("own", backend, plugins.clone()));
        let mut streams = route("streams", backend, plugins);
        streams["paths"] = json!(["/grpc"]);
        streams["backend"]["protocol"] = json!("http2");
        control.create("routes", &streams);
    });
    gateway.until(&Request::get("/"), 200, PATIENCE);

    let form = |size: usize| format!("a={}", "b".repeat(size - 2));
    let behind = format!("{}&q={SQL}", form(3000));
    for (what, request, status) in [
        ("a body of the limit", Request::post("/echo", FORM, form(6000)), 200),
        ("the same in chunks", Request::post("/echo", FORM, form(6000)).chunked(1000), 200),
        ("a byte more", Request::post("/echo", FORM, form(6001)), 413),
        ("an attack behind the first limit", Request::post("/echo", FORM, &behind), 403),
        ("gRPC over HTTP/1.1", Request::post("/echo", "application/grpc-web", SQL), 403),
        ("gRPC and something else", Request::post("/echo", "application/grpcx", SQL), 403),
        (
            "an upgrade with a body",
            Request::post("/echo", FORM, SQL).header("connection", "upgrade").header("upgrade", "websocket"),
            400,
        ),
    ] {
        assert_eq!(gateway.status(&request), status, "{what}");
    }

    // Over HTTP/2 a body and its end come at once: nothing comes after it that could wake up a second step.
    let framed = |body: &str| [&[0, 0, 0, 0, 5], body.as_bytes()].concat();
    let requests = [
        h2::Request::post("/echo", FORM, form(3000)),
        h2::Request::post("/echo", FORM, &behind),
        h2::Request::post("/grpc/echo", "application/grpc", format!("q={SQL}")),
        h2::Request::post("/grpc/echo", "application/grpc", framed("hello")),
        h2::Request::post("/echo", "application/grpc", framed(&format!("&q={SQL}"))),
    ];
    let answers = h2::exchange(gateway.address, &requests).unwrap();
    let [whole, attack, disguised, grpc, to_http1] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!(whole.as_ref().unwrap().status, 200);
    assert_eq!(attack.as_ref().unwrap().status, 403);
    // A gateway refuses gRPC with 200 and a status of its own. A backend that speaks HTTP/1.1 is sent no gRPC at all, so
    // there the body is inspected whatever it looks like.
    for refused in [disguised, to_http1] {
        assert!(refused.as_ref().unwrap().header("grpc-status").is_some_and(|status| status != "0"), "{refused:?}");
    }
    let passed = grpc.as_ref().unwrap();
    assert!(passed.status != 403 && passed.header("grpc-status").is_none_or(|status| status == "0"), "{passed:?}");
    let failures = gateway.envoy.vm_failures();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
}

#[test]
fn many_requests_can_be_let_go_at_once() {
    let mut gateway = Gateway::start(|control, backend| {
        control.create("waf-configs", &waf_config("own", json!({"rules": [OWN_RULES]})));
        let tiers = json!([{"min_score": 40, "action": "tarpit", "tarpit_millis": 3000}]);
        control.create("threat-policies", &threat_policy("slow", json!({"tiers": tiers})));
        control.create("routes", &route("own", backend, preset("slow", "own")));
    });
    gateway.until(&Request::get("/"), 200, PATIENCE);
    // All are due within a tick or two, hundreds on each worker.
    let attacks = vec![h2::Request::post("/echo", FORM, format!("q={SQL}")); 80];
    let others: Vec<String> = thread::scope(|scope| {
        let clients: Vec<_> = (0..20).map(|_| scope.spawn(|| h2::exchange(gateway.address, &attacks))).collect();
        let answers = clients.into_iter().flat_map(|client| client.join().unwrap().unwrap());
        answers.filter(|it| !it.as_ref().is_ok_and(|it| it.status == 403)).map(|it| format!("{it:?}")).collect()
    });
    assert!(others.is_empty(), "{} others, such as {}", others.len(), others[0]);
    let failures = gateway.envoy.vm_failures();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
}
