//! What parameters of requests teach.

use exchange::{Response, Signal};

use super::*;
use crate::samples::cardinality::estimate;
use crate::samples::messages::{MAX_SHAPES, Parameter};

/// A request of a caller that the backend answers with a status.
fn answered(path: &str, (address, status): (&str, u16)) -> Exchange {
    let mut exchange = exchange(path, Headers::default());
    exchange.caller.ip = address.into();
    exchange.response = Some(Response { status, ..Response::default() });
    exchange
}

fn found_bad(exchange: &mut Exchange) {
    exchange.score.add(Signal {
        source: "login-guard".into(),
        kind: "login-guard".into(),
        weight: 30.0,
        confidence: 1.0,
        tag: "guess".into(),
        detail: String::new(),
        at: 0,
    });
}

/// The parameters of the next report, by target.
fn learned(plugin: &dyn Plugin, host: &FakeHost) -> Vec<Parameter> {
    host.advance(PERIOD);
    let reports = all_of_tick(plugin, host);
    let mut all: Vec<Parameter> = reports.into_iter().flat_map(|report| report.parameters).collect();
    all.sort_by(|one, other| (&one.target, &one.path).cmp(&(&other.target, &other.path)));
    all
}

fn names(parameters: &[Parameter]) -> Vec<&str> {
    parameters.iter().map(|one| one.target.as_str()).collect()
}

#[test]
fn requests_that_are_answered_well_teach() {
    let (host, plugin) = (host(), plugin_of(RULES, step()));
    for (path, status) in [
        ("/a?page=1", 200),
        ("/a?page=22", 303),
        ("/a?missing=1", 404),
        ("/a?failed=1", 500),
        ("/a?unanswered=1", 0),
        ("/a?early=1", 103),
    ] {
        ask(&*plugin, answered(path, ("192.0.2.1", status)), b"", &host);
    }
    get(&*plugin, "/a?nowhere=1", &host);
    let found = learned(&*plugin, &host);
    assert_eq!(names(&found), ["ARGS:page"]);
    assert_eq!((found[0].count, found[0].shapes[0].shortest, found[0].shapes[0].longest), (2, 1, 2));
}

#[test]
fn callers_that_other_plugins_find_bad_teach_nothing() {
    let (host, plugin) = (host(), plugin_of(RULES, step()));
    let ask_as = |path: &str, address: &str| ask(&*plugin, answered(path, (address, 200)), b"", &host);
    ask_as("/a?page=1", "192.0.2.1");
    ask_as("/a?page=abc", "192.0.2.2");
    // The second one is found bad by the response, behind the WAF.
    let mut bad = answered("/a?page=xyz", ("192.0.2.2", 200));
    let mut slot = Slot::default();
    send(&*plugin, &mut bad, Body { bytes: b"", complete: true }, &mut slot, &host);
    plugin.response(&mut bad, false, &mut slot, &host);
    found_bad(&mut bad);
    plugin.finish(&mut bad, &mut slot, &host);
    ask_as("/a?page=-;-", "192.0.2.2");
    let found = learned(&*plugin, &host);
    assert_eq!((found.len(), found[0].shapes.len(), found[0].shapes[0].longest), (1, 1, 1), "{found:?}");
}

#[test]
fn names_and_values_at_the_edges() {
    let (host, plugin) = (host(), plugin_of(RULES, step()));
    let long = format!("/a?{}=1&long={}", "n".repeat(300), "v".repeat(2_000));
    for path in [
        "/a?empty=&twice=1&twice=2&Case=1&case=2&nul%00=1&nul=%00%ff&%ff=1&%e2%80%aegap=1",
        "/a?a[]=1&b[0]=x&b[1]=y&c[k]=z&a.b=1&=1&nothing",
        "/a?eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9&password=x&Page=1",
        "/a?page=2",
        &long,
    ] {
        ask(&*plugin, answered(path, ("192.0.2.1", 200)), b"", &host);
    }
    let mut json = answered("/a", ("192.0.2.1", 200));
    json.request.headers = Headers::from([("content-type", "application/json")]);
    let rules = format!(
        "{RULES}\nSecRule REQUEST_HEADERS:Content-Type \"@contains json\" \"id:99,phase:1,pass,nolog,ctl:requestBodyProcessor=JSON\"\n"
    );
    let body =
        br#"{"items":[{"n":1},{"n":2}],"map":{"507f1f77bcf86cd799439011":1},"a":{"b":"x"},"a.b":"y","c":{"d":1}}"#;
    ask(&*plugin_of(&rules, step()), json, body, &host);
    let found = learned(&*plugin, &host);
    assert_eq!(
        names(&found),
        [
            "ARGS:Page",
            "ARGS:a.b",
            "ARGS:a[]",
            "ARGS:b[0]",
            "ARGS:c[k]",
            "ARGS:empty",
            "ARGS:json.c.d",
            "ARGS:json.items.array_0.n",
            "ARGS:long",
            "ARGS:nothing",
            "ARGS:nul",
        ]
    );
    let of = |target: &str| found.iter().find(|one| one.target == target).unwrap();
    assert_eq!((of("ARGS:empty").count, of("ARGS:empty").shapes.len()), (1, 0));
    assert_eq!((of("ARGS:Page").count, estimate(&of("ARGS:Page").distinct)), (2, 2), "in any case");
    assert_eq!(of("ARGS:long").shapes[0].longest, 257);
}

#[test]
fn one_network_takes_no_place_in_a_profile_that_others_need() {
    let (host, plugin) = (host(), plugin_of(RULES, step()));
    for number in 0..400 {
        ask(&*plugin, answered("/a?page=%3d%3d", (&format!("2001:db8:1:{number:x}::1"), 200)), b"", &host);
        if number % 100 == 0 {
            host.advance(u64::from(TICK));
            plugin.on_timer(&host);
            host.reports.take();
            for network in 0..5 {
                ask(&*plugin, answered("/a?page=1", (&format!("198.51.{network}.7"), 200)), b"", &host);
            }
        }
    }
    let found = learned(&*plugin, &host);
    let digits = ValueShape::of(0, b"1").alphabet;
    let ordinary = found[0].shapes.iter().filter(|one| one.alphabet == digits).count();
    assert_eq!((found[0].shapes.len(), ordinary), (MAX_SHAPES, 5), "{found:?}");
}

#[test]
fn another_snapshot_goes_on_with_what_was_learned() {
    let (host, plugins) = (host(), [plugin_of(RULES, step()), plugin_of(RULES, step())]);
    for plugin in &plugins {
        ask(&**plugin, answered("/users/7?page=1", ("192.0.2.1", 200)), b"", &host);
    }
    let found = learned(&*plugins[1], &host);
    assert_eq!((found.len(), found[0].count, found[0].path.as_str()), (1, 2, "/users/{id}"));
    assert!(learned(&*plugins[1], &host).is_empty(), "once");
}

/// A thousand parameters, and long names and values: what is looked at is bounded.
#[test]
fn a_large_request_costs_little() {
    let (host, plugin) = (host(), plugin_of(RULES, WafStep { input_body_limit: 4 << 20, ..step() }));
    let many: Vec<String> = (0..1_000).map(|number| format!("name{}x={number}", number % 997)).collect();
    let long = format!("{}=1&v={}", "passport".repeat(60_000), "x".repeat(1 << 20));
    for body in [many.join("&"), long] {
        let mut request = answered("/a", ("192.0.2.1", 200));
        (request.request.method, request.request.headers) = (b"POST".to_vec(), form());
        let mut slot = Slot::default();
        send(&*plugin, &mut request, Body { bytes: body.as_bytes(), complete: true }, &mut slot, &host);
        #[expect(clippy::disallowed_methods, reason = "it prints times")]
        let start = std::time::Instant::now();
        plugin.finish(&mut request, &mut slot, &host);
        println!("{} bytes: {:?} at the end", body.len(), start.elapsed());
    }
    let found = learned(&*plugin, &host);
    assert_eq!(found.len(), 30, "{:?}", names(&found));
    assert!(found.iter().any(|one| one.target == "ARGS:v"));
}
