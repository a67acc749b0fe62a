//! What the API accepts as a route, a real Envoy accepts as well, and requests get there.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::entities_support::Api;
use crate::xds_support::{ControlPlane, Envoy, backend, get, noop_filter, until};
use axum::http::StatusCode;
use compiler::{Compiler, Settings};
use serde_json::{Value, json};
use xds::Kind;
use xds::resources::{Gateway, ListenerSettings, build};

/// How many routes are tried.
const ROUTES: usize = 400;
/// Pieces that hosts are made of.
const HOSTS: [&str; 26] = [
    "*",
    "*",
    ".",
    "-",
    "shop",
    "SHOP",
    "example",
    "com",
    "api",
    "x",
    ":",
    "80",
    "[",
    "]",
    "::1",
    "[::1]",
    "127.0.0.1",
    " ",
    "/",
    "\u{e9}",
    "_",
    "xn--caf-dma",
    "@",
    ",",
    "?",
    "1",
];
/// So many of them, from the first on, are in many hosts.
const LIKELY: usize = 10;
/// Pieces that paths are made of.
const PATHS: [&str; 14] = ["/", "/", "a", "api", "..", ".", "%2f", "%", "*", "\\", "{x}", ":", "\u{e9}", "//"];
/// Backends that nobody can reach, or hardly.
const BACKENDS: [&str; 10] = ["::1", "127.0.0.1", "a..b", ".", ":::", "[::1]", "-", "1.2.3.4.5", "x_y", "a:b"];

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(sides).unwrap()).unwrap()
    }

    fn text(&mut self, pieces: &[&str], most: usize) -> String {
        (0..=self.throw(most)).map(|_| pieces[self.throw(pieces.len())]).collect()
    }
}

/// A host that a pattern answers to.
fn host_of(pattern: &str) -> String {
    match pattern {
        "*" => "any.test".to_owned(),
        pattern => pattern.replace('*', "q7"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_route_the_api_accepts_can_be_published_and_envoy_takes_it() {
    let api = Api::new().await;
    api.state.entities.add_admission(Arc::new(Compiler::new(Settings::default())));
    let (served, mut dice) = (backend("here").await, Dice(0x5eed));
    let fixed = [
        "shop.*",
        "*shop.com",
        "*-bar.foo.com",
        "*.a.test",
        "*.b.a.test",
        "a.*",
        "[::1]",
        "UPPER.test",
        "a.test.",
        "*",
        "shop.test:80",
        "foo*bar",
        "**",
        "*.*",
    ];
    let mut accepted: Vec<(String, String)> = Vec::new();
    for index in 0..ROUTES {
        let hosts: Vec<String> = match fixed.get(index) {
            Some(host) => vec![(*host).to_owned()],
            // Half of them of what hosts have, the others of anything.
            None => (0..=dice.throw(2))
                .map(|_| match dice.throw(2) {
                    0 => dice.text(&HOSTS[..LIKELY], 5),
                    _ => dice.text(&HOSTS, 5),
                })
                .collect(),
        };
        // A path of its own says which route a request has come to.
        let (own, other) = (format!("/own-{index}/"), dice.text(&PATHS, 3));
        let paths = if dice.throw(4) == 0 { vec![own.clone(), other] } else { vec![own.clone()] };
        let (address, port) = match dice.throw(6) {
            0 if index >= fixed.len() => (BACKENDS[dice.throw(BACKENDS.len())].to_owned(), 9),
            _ => (served.ip().to_string(), served.port()),
        };
        let reachable = port == served.port();
        let timeout = [15_000, 0, 31_536_000_000_u64, 9, 60_000, u64::MAX][dice.throw(6)];
        let route = json!({
            "id": format!("route-{index}"), "hosts": hosts, "paths": paths,
            "backend": {"address": address, "port": port, "tls": dice.throw(9) == 0 && !reachable, "timeout_millis": timeout},
        });
        let answer = api.call("POST", "/routes", Some(route.clone())).await;
        match answer.status {
            StatusCode::CREATED if reachable => accepted.extend(hosts.into_iter().map(|host| (host, own.clone()))),
            StatusCode::CREATED => {}
            status => assert_eq!(status, StatusCode::BAD_REQUEST, "{route}: {}", answer.text),
        }
    }
    assert!(accepted.len() > 40, "{} hosts were accepted", accepted.len());

    let set = api.state.entities.subscribe().borrow().clone();
    let compiled = Compiler::new(Settings::default()).compile(&set).unwrap();
    let listener = ListenerSettings { address: "127.0.0.1".into(), port: 0, ..compiled.gateway.listener.clone() };
    let listener = ListenerSettings { access_log: None, ..listener };
    let gateway = Gateway { listener, filters: vec![noop_filter("preset", "x")], ..compiled.gateway };
    let control_plane = ControlPlane::start(Vec::new()).await;
    control_plane.hub.publish(build(&gateway).unwrap());
    let envoy = Envoy::start(control_plane.address, true).await;
    until("every type is taken", async || {
        let node = control_plane.hub.nodes().into_iter().next()?;
        let refused: Vec<_> = node.types.iter().filter_map(|status| status.nack.as_ref()).collect();
        assert!(refused.is_empty(), "{refused:?}");
        let taken = node.types.iter().filter(|status| status.acked_version == status.sent_version).count();
        (taken == Kind::ALL.len()).then_some(())
    })
    .await;

    let listener: SocketAddr = envoy.listener().await;
    for (pattern, path) in accepted {
        let answer = get(listener, &host_of(&pattern), &path).await;
        assert_eq!(answer, Some((200, "here".into())), "{pattern:?} {path}");
        // The same host as an absolute name, and one that a backend could read as it.
        if pattern == "UPPER.test" {
            assert_eq!(get(listener, "upper.test.", &path).await, Some((200, "here".into())));
            assert_eq!(get(listener, "upper.test.:81", &path).await, Some((200, "here".into())));
            let two_dots = get(listener, "upper.test..", &path).await;
            assert_eq!(two_dots.map(|(status, _)| status), Some(400));
        }
        if pattern == "[::1]" {
            assert_eq!(get(listener, "[0:0:0:0:0:0:0:1]", &path).await, Some((200, "here".into())));
        }
    }
}

#[tokio::test]
async fn what_is_stored_can_be_served() {
    let api = Api::new().await;
    api.state.entities.add_admission(Arc::new(Compiler::new(Settings::default())));
    let route = |hosts: Value| json!({"id": "r", "hosts": hosts, "backend": {"address": "127.0.0.1", "port": 80}});
    for (host, word) in
        [("a*b", "one `*`"), ("shop.test:8443", "port"), ("https://shop.test", "URL"), ("a..b", "empty")]
    {
        let answer = api.call("POST", "/routes", Some(route(json!(["fine.test", host])))).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{host}");
        assert_eq!(answer.body["errors"][0]["pointer"], "/hosts/1", "{}", answer.text);
        assert!(answer.body["errors"][0]["message"].as_str().unwrap().contains(word), "{}", answer.text);
    }
    let answer = api.call("POST", "/routes", Some(route(json!(["shop.*", "*shop.com", "*-bar.foo.com"])))).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
}
