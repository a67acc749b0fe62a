//! Samples of matches of the core rule set: what is sampled leads to the same match again.

use exchange::fake::FakeHost;
use exchange::{Body, Exchange, Headers, Plugin, Slot, Timer};
use prost::Message as _;
use seclang::Source;

use super::messages::{MatchReport, Matched, SampledRequest};
use super::sampler::TICK;
use crate::WafStep;
use crate::tests::{exchange, plugin_from, send, step};

fn plugin() -> Box<dyn Plugin> {
    let mut sources = waf_presets::by_name("crs").unwrap().sources();
    sources.push(Source { origin: "test".into(), text: b"SecRuleEngine DetectionOnly".to_vec() });
    let program =
        seclang::compile(&sources, waf_presets::data_files()).unwrap_or_else(|errors| panic!("{}", errors[0]));
    let step = WafStep { block: false, input_body_limit: 100_000, input_files_limit: 100_000, ..step() };
    plugin_from(&program.encode(), step)
}

fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> Exchange {
    let usual =
        [("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"), ("accept", "*/*"), ("authorization", "Bearer hunter2")];
    let usual = usual.into_iter().filter(|(name, _)| !headers.iter().any(|(other, _)| other == name));
    let headers: Vec<(&str, &str)> = usual.chain(headers.iter().copied()).collect();
    let mut exchange = exchange(path, Headers::new(&headers));
    exchange.request.method = method.as_bytes().to_vec();
    exchange
}

/// What the tick after the exchange reports.
fn sampled(plugin: &dyn Plugin, mut exchange: Exchange, body: &[u8]) -> Vec<Matched> {
    let (host, mut slot) = (FakeHost::at(1_000_000_000), Slot::default());
    send(plugin, &mut exchange, Body { bytes: body, complete: true }, &mut slot, &host);
    plugin.finish(&mut exchange, &mut slot, &host);
    let mut found = Vec::new();
    for _ in 0..20 {
        host.advance(u64::from(TICK));
        plugin.on_timer(&host);
        for (_, report) in host.reports.take() {
            assert!(!report.windows(7).any(|part| part == b"hunter2"), "{}", report.escape_ascii());
            found.extend(MatchReport::decode(report.as_slice()).unwrap().matches);
        }
    }
    found
}

fn again(plugin: &dyn Plugin, request: &SampledRequest) -> Vec<Matched> {
    let headers: Vec<(&[u8], &[u8])> =
        request.headers.iter().map(|header| (header.name.as_slice(), header.value.as_slice())).collect();
    let mut sent = exchange("", Headers::new(&headers));
    (sent.request.method, sent.request.path) = (request.method.clone().into_bytes(), request.uri.clone());
    sampled(plugin, sent, &request.body)
}

#[test]
fn a_sampled_request_has_its_match_again() {
    let plugin = plugin();
    assert!(matches!(plugin.timer(), Some(Timer { millis: TICK, .. })));
    let form = ("content-type", "application/x-www-form-urlencoded");
    let parts = ("content-type", "multipart/form-data; boundary=----b");
    let multipart = "------b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nhunter2\r\n------b\r\n\
        Content-Disposition: form-data; name=\"note\"\r\n\r\n<script>alert(1)</script>\r\n------b--\r\n";
    let cases: [(Exchange, &str, &str); 8] = [
        (request("GET", "/shop/4711?q=1%27%20or%201=1--%20&token=hunter2", &[]), "", "ARGS:q"),
        (
            request("POST", "/blog", &[form]),
            "password=hunter2&content=%3Cscript%3Ealert(1)%3C/script%3E",
            "ARGS:content",
        ),
        (
            request("POST", "/api/notes", &[("content-type", "application/json")]),
            r#"{"user":{"password":"hunter2"},"text":"see ../../../etc/passwd","pin":"hunter2"}"#,
            "ARGS:json.text",
        ),
        (request("POST", "/upload", &[parts]), multipart, "ARGS:note"),
        (request("GET", "/", &[("user-agent", "sqlmap/1.7")]), "", "REQUEST_HEADERS:user-agent"),
        (
            request("GET", "/", &[("cookie", "a=hunter2; prefs=<script>alert(1)</script>; sid=hunter2")]),
            "",
            "REQUEST_COOKIES:prefs",
        ),
        (request("GET", "/x/..%2f..%2f..%2fetc/passwd?token=hunter2", &[]), "", "REQUEST_URI_RAW"),
        (
            request("GET", "/go?to=http%3A%2F%2F10.0.0.1%2F%3Faccess_token%3Dhunter2%26x%3D/etc/passwd", &[]),
            "",
            "ARGS:to",
        ),
    ];
    let mut misses = Vec::new();
    for (exchange, body, target) in cases {
        let found = sampled(&*plugin, exchange, body.as_bytes());
        let of_target: Vec<&Matched> = found.iter().filter(|found| found.target.eq_ignore_ascii_case(target)).collect();
        assert!(!of_target.is_empty(), "{target}: {found:?}");
        for first in of_target {
            let request = first.request.as_ref().unwrap();
            assert!(!request.masked && !request.cut, "{first:?}");
            let second = again(&*plugin, request);
            let same = second.iter().find(|second| (second.rule_id, &second.target) == (first.rule_id, &first.target));
            match same {
                // Of an input with secrets the text is shown, in place of what the rule has made of it.
                Some(_) if first.value.ends_with(b"***") || first.target == "ARGS:to" => {}
                Some(second) => assert_eq!(second.value, first.value),
                None => misses.push(format!("{}: {} at {target}", first.rule_id, first.msg)),
            }
        }
    }
    assert!(misses.is_empty(), "{misses:?}");
}

#[test]
fn a_clean_request_is_no_sample() {
    let plugin = plugin();
    let form = ("content-type", "application/x-www-form-urlencoded");
    assert!(sampled(&*plugin, request("GET", "/shop?q=red+shoes", &[]), b"").is_empty());
    assert!(sampled(&*plugin, request("POST", "/login", &[form]), b"user=ann&password=hunter2").is_empty());
}

#[test]
fn an_attack_in_a_header_of_the_gateway_is_found() {
    let plugin = plugin();
    for name in ["x-envoy-expected-rq-timeout-ms", "x-envoy-internal", "x-envoy-external-address"] {
        let found = sampled(&*plugin, request("GET", "/", &[(name, "${jndi:ldap://x}")]), b"");
        let target = format!("REQUEST_HEADERS:{name}");
        let is_it = |found: &Matched| found.rule_id == 944_150 && found.target.eq_ignore_ascii_case(&target);
        assert!(found.iter().any(is_it), "{name}: {found:?}");
    }
}
