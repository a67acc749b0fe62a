mod answers;
mod budget;
mod lookups;
mod rest;
mod signals;

use super::*;
use exchange::fake::FakeHost;
use exchange::{Headers, Request, Response};
use seclang::Source;
use snapshot::content_hash;

struct Nothing;

impl seclang::DataFiles for Nothing {
    fn read(&self, _name: &str) -> Option<Vec<u8>> {
        None
    }
}

const RULES: &str = r#"
SecRuleEngine On
SecRequestBodyAccess On
SecResponseBodyAccess On
SecResponseBodyMimeType text/plain
SecRule REQUEST_URI "@contains attack" "id:1,phase:1,deny,status:406,log,msg:'attack in the path'"
SecRule ARGS:q "@streq evil" "id:2,phase:2,deny,status:403,log,msg:'evil argument'"
SecRule ARGS:q "@streq odd" "id:3,phase:2,pass,log,msg:'odd argument'"
SecRule RESPONSE_BODY "@contains secret" "id:4,phase:4,deny,status:500,log,msg:'leak'"
"#;

pub(crate) fn step() -> WafStep {
    WafStep {
        id: "waf-config_1".into(),
        block: true,
        contribute: true,
        block_weight: 50.0,
        match_weight: 20.0,
        inspect_input_body: true,
        input_body_limit: 1000,
        reject_oversize: true,
        inspect_output_body: true,
        output_body_limit: 1000,
        decompressed_input_body_limit: 10_000,
        max_input_compression_ratio: 100,
        ..WafStep::default()
    }
}

pub(crate) fn plugin(step: WafStep) -> Box<dyn Plugin> {
    plugin_of(RULES, step)
}

pub(crate) fn plugin_of(rules: &str, step: WafStep) -> Box<dyn Plugin> {
    let mut text = rules.to_owned();
    if !step.block {
        text.push_str("SecRuleEngine DetectionOnly\n");
    }
    let source = Source { origin: "test".into(), text: text.into_bytes() };
    let program = seclang::compile(&[source], &Nothing).unwrap_or_else(|errors| panic!("{}", errors[0])).encode();
    plugin_from(&program, step)
}

/// The plugin with a compiled program.
pub(crate) fn plugin_from(program: &[u8], mut step: WafStep) -> Box<dyn Plugin> {
    step.program = content_hash(program).to_vec();
    let parts = [(step.program.clone(), program.to_vec())];
    let mut parts = Build::new(parts.iter().map(|(hash, data)| (hash.as_slice(), data.as_slice())));
    build(&step.encode_to_vec(), &mut parts).unwrap()
}

pub(crate) fn exchange(path: &str, headers: Headers) -> Exchange {
    let request = Request {
        method: b"GET".to_vec(),
        path: path.as_bytes().to_vec(),
        authority: b"example.com".to_vec(),
        protocol: b"HTTP/1.1".to_vec(),
        headers,
        ..Request::default()
    };
    Exchange { request, ..Exchange::default() }
}

pub(crate) fn status(verdict: &Verdict) -> Option<u16> {
    match verdict {
        Verdict::Refuse(refusal) => Some(refusal.status),
        _ => None,
    }
}

/// Hands a request over as the host does.
pub(crate) fn send(
    plugin: &dyn Plugin,
    exchange: &mut Exchange,
    body: Body<'_>,
    slot: &mut Slot,
    host: &FakeHost,
) -> Verdict {
    let has_body = !body.bytes.is_empty() || !body.complete;
    match plugin.request(exchange, has_body, slot, host) {
        Verdict::NeedBody(need) => plugin.request_body(exchange, body.prefix(need.limit), slot, host),
        Verdict::ReadBody(need) => {
            let read = body.prefix(need.limit);
            for piece in read.bytes.chunks(100) {
                match plugin.request_piece(exchange, piece, slot, host) {
                    Verdict::Pass => {}
                    refused => return refused,
                }
            }
            plugin.request_body(exchange, Body { bytes: b"", complete: read.complete }, slot, host)
        }
        other => other,
    }
}

pub(crate) fn form() -> Headers {
    Headers::from([("content-type", "application/x-www-form-urlencoded")])
}

#[test]
fn a_rule_of_phase_1_refuses_with_its_status_and_leaves_a_signal_and_a_trail() {
    let host = FakeHost::at(0);
    let mut exchange = exchange("/attack", Headers::default());
    let verdict = plugin(step()).request(&mut exchange, false, &mut Slot::default(), &host);
    let Verdict::Refuse(refusal) = &verdict else { panic!("{verdict:?}") };
    assert_eq!((refusal.status, refusal.scored), (406, true));
    assert_eq!(refusal.reason, "rule 1: attack in the path");
    assert_eq!((exchange.score.total(), exchange.score.tags()), (50.0, vec!["waf:blocked"]));
    let trail = &host.events_json()[0];
    assert_eq!((&trail["@type"], &trail["blocking"]), (&"SvcWafTrailEvent".into(), &true.into()));
    assert_eq!(trail["block"]["rule_id"], 1);
    assert_eq!(trail["matches"][0]["variable"], "REQUEST_URI");
    assert_eq!((&trail["rule_ids"], &trail["matched"]), (&serde_json::json!([1]), &1.into()));
}

#[test]
fn rules_see_the_address_that_the_connection_came_to() {
    let rules = r#"
SecRuleEngine On
SecRule SERVER_ADDR "@streq 2001:db8::1" "id:1,phase:1,pass,log"
SecRule SERVER_PORT "@eq 8443" "id:2,phase:1,pass,log,msg:'%{SERVER_ADDR} %{SERVER_PORT}'"
"#;
    let plugin = plugin_of(rules, step());
    let trail = |local: Option<&str>| {
        let host = FakeHost::at(0);
        *host.local.borrow_mut() = local.map(|local| local.as_bytes().to_vec());
        let (mut exchange, mut slot) = (exchange("/", Headers::default()), Slot::default());
        assert_eq!(plugin.request(&mut exchange, false, &mut slot, &host), Verdict::Pass);
        plugin.finish(&mut exchange, &mut slot, &host);
        host.events_json().into_iter().next().unwrap_or_default()
    };
    let own = trail(Some("[2001:db8::1]:8443"));
    assert_eq!((&own["rule_ids"], &own["matches"][1]["msg"]), (&[1, 2].into(), &"2001:db8::1 8443".into()), "{own}");
    let other = trail(Some("192.0.2.9:8443"));
    assert_eq!((&other["rule_ids"], &other["matches"][0]["msg"]), (&[2].into(), &"192.0.2.9 8443".into()), "{other}");
    assert!(trail(None).is_null(), "a gateway that does not say");
}

#[test]
fn the_trail_lists_more_ids_than_matches_and_still_ends() {
    let mut rules = "SecRuleEngine On\n".to_owned();
    (1..=600).for_each(|id| rules.push_str(&format!("SecAction \"id:{id},phase:1,pass,log\"\n")));
    let (host, plugin) = (FakeHost::at(0), plugin_of(&rules, step()));
    let (mut exchange, mut slot) = (exchange("/", Headers::default()), Slot::default());
    assert_eq!(plugin.request(&mut exchange, false, &mut slot, &host), Verdict::Pass);
    plugin.finish(&mut exchange, &mut slot, &host);
    let trail = &host.events_json()[0];
    let length = |name: &str| trail[name].as_array().map(Vec::len);
    assert_eq!((length("matches"), length("rule_ids")), (Some(32), Some(512)));
    assert_eq!((&trail["matched"], &trail["rule_ids"][511]), (&600.into(), &512.into()));
}

#[test]
fn the_query_is_inspected_without_a_body_and_a_form_with_one() {
    let (host, plugin) = (FakeHost::at(0), plugin(step()));
    let mut query = exchange("/?q=evil", Headers::default());
    assert_eq!(status(&plugin.request(&mut query, false, &mut Slot::default(), &host)), Some(403));
    let (mut post, mut slot) = (exchange("/", form()), Slot::default());
    let first = plugin.request(&mut post, true, &mut slot, &host);
    assert_eq!(first, Verdict::NeedBody(BodyNeed { limit: 1000 }));
    let body = Body { bytes: b"q=evil", complete: true };
    assert_eq!(status(&plugin.request_body(&mut post, body, &mut slot, &host)), Some(403));
}

#[test]
fn without_blocking_matches_count_and_nothing_is_denied() {
    let host = FakeHost::at(0);
    let plugin = plugin(WafStep { block: false, ..step() });
    let (mut exchange, mut slot) = (exchange("/?q=odd", Headers::default()), Slot::default());
    assert_eq!(plugin.request(&mut exchange, false, &mut slot, &host), Verdict::Pass);
    assert_eq!((exchange.score.total(), exchange.score.tags()), (20.0, vec!["waf:match"]));
    plugin.finish(&mut exchange, &mut slot, &host);
    plugin.finish(&mut exchange, &mut slot, &host);
    let trails = host.events_json();
    assert_eq!(trails.len(), 1);
    assert_eq!((&trails[0]["blocking"], &trails[0]["block"]), (&false.into(), &serde_json::Value::Null));
}

#[test]
fn without_blocking_a_rule_that_denies_counts_as_a_match() {
    let (host, plugin) = (FakeHost::at(0), plugin(WafStep { block: false, ..step() }));
    let (mut exchange, mut slot) = (exchange("/?q=evil", Headers::default()), Slot::default());
    assert_eq!(plugin.request(&mut exchange, false, &mut slot, &host), Verdict::Pass);
    assert_eq!((exchange.score.total(), exchange.score.tags()), (50.0, vec!["waf:match"]));
}

#[test]
fn a_body_over_its_limit_is_inspected_in_part_or_refused() {
    let long = [b"q=evil&x=".as_slice(), &[b'a'; 991]].concat();
    let body = Body { bytes: &long, complete: false };
    let ask = |step| {
        let (host, plugin, mut slot) = (FakeHost::at(0), plugin(step), Slot::default());
        let mut exchange = exchange("/", form());
        status(&send(&*plugin, &mut exchange, body, &mut slot, &host))
    };
    assert_eq!(ask(WafStep { reject_oversize: false, ..step() }), Some(403));
    assert_eq!(ask(step()), Some(413));
}

#[test]
fn a_body_that_cannot_be_decoded_is_refused_unless_raw_bytes_will_do() {
    let headers =
        || Headers::from([("content-type", "application/x-www-form-urlencoded"), ("content-encoding", "gzip")]);
    let ask = |step, bytes: &'static [u8]| {
        let (host, plugin, mut slot) = (FakeHost::at(0), plugin(step), Slot::default());
        let mut exchange = exchange("/", headers());
        let _ = plugin.request(&mut exchange, true, &mut slot, &host);
        status(&plugin.request_body(&mut exchange, Body { bytes, complete: true }, &mut slot, &host))
    };
    let truncated = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x2b";
    assert_eq!(ask(step(), truncated), Some(400));
    assert_eq!(ask(WafStep { inspect_undecodable: true, ..step() }, truncated), None);
    assert_eq!(ask(WafStep { inspect_undecodable: true, ..step() }, b"q=evil"), Some(403));
}

#[test]
fn a_response_is_inspected_where_its_media_type_is() {
    let ask = |step, kind: &str| {
        let (host, plugin, mut slot) = (FakeHost::at(0), plugin(step), Slot::default());
        let mut exchange = exchange("/", Headers::default());
        let _ = plugin.request(&mut exchange, false, &mut slot, &host);
        let headers = Headers::from([("content-type", kind)]);
        exchange.response = Some(Response { status: 200, headers, streaming: false });
        match plugin.response(&mut exchange, true, &mut slot, &host) {
            Verdict::NeedBody(_) => {}
            other => return status(&other),
        }
        let body = Body { bytes: b"a secret", complete: true };
        let verdict = plugin.response_body(&mut exchange, body, &mut slot, &host);
        assert!(matches!(&verdict, Verdict::Refuse(refusal) if !refusal.scored), "{verdict:?}");
        status(&verdict)
    };
    assert_eq!(ask(step(), "text/plain; charset=utf-8"), Some(500));
    assert_eq!(ask(step(), "image/png"), None);
}

#[test]
fn what_is_announced_as_grpc_has_to_be_framed_so() {
    let refused = |bytes: &[u8], step: WafStep| {
        let (host, mut slot) = (FakeHost::at(0), Slot::default());
        let mut exchange = exchange("/svc/Method", Headers::from([("content-type", "application/grpc")]));
        exchange.request.streaming = true;
        let plugin = plugin(step);
        assert_eq!(plugin.request(&mut exchange, true, &mut slot, &host), Verdict::Pass);
        status(&plugin.stream_start(&mut exchange, bytes, &mut slot, &host))
    };
    assert_eq!(refused(b"q=evil", step()), Some(400));
    assert_eq!(refused(b"\0\0\0", step()), Some(400), "it ends in the prefix");
    for whole in [b"".as_slice(), b"\0\0\0\0\0", b"\x01\0\0\0\x02"] {
        assert_eq!(refused(whole, step()), None, "{whole:?}");
    }
    assert_eq!(refused(b"q=evil", WafStep { block: false, ..step() }), None);
    assert_eq!(refused(b"q=evil", WafStep { inspect_input_body: false, ..step() }), None);
}

#[test]
fn an_upgrade_brings_no_body() {
    let answer = |more: (&str, &str)| {
        let (host, mut slot) = (FakeHost::at(0), Slot::default());
        let mut exchange = exchange("/ws", Headers::from([("connection", "upgrade"), ("upgrade", "websocket"), more]));
        exchange.request.streaming = true;
        status(&plugin(step()).request(&mut exchange, true, &mut slot, &host))
    };
    assert_eq!(answer(("content-length", "41")), Some(400));
    assert_eq!(answer(("transfer-encoding", "chunked")), Some(400));
    assert_eq!(answer(("content-length", "0")), None);
    assert_eq!(answer(("content-length", "00")), Some(400));
    assert_eq!(answer(("sec-websocket-version", "13")), None);
}

#[test]
fn content_encodings_in_several_headers_are_one_list() {
    let (host, mut slot) = (FakeHost::at(0), Slot::default());
    let form = ("content-type", "application/x-www-form-urlencoded");
    let encodings = [("content-encoding", "identity"), ("content-encoding", "made-up")];
    let mut exchange = exchange("/", Headers::from([form, encodings[0], encodings[1]]));
    let plugin = plugin(step());
    assert!(matches!(plugin.request(&mut exchange, true, &mut slot, &host), Verdict::NeedBody(_)));
    let body = Body { bytes: b"q=1", complete: true };
    assert_eq!(status(&plugin.request_body(&mut exchange, body, &mut slot, &host)), Some(415));
}

#[test]
fn rules_see_that_a_body_came_in_chunks_although_the_gateway_hides_it() {
    let rules = r#"
SecRuleEngine On
SecRule REQUEST_HEADERS:Transfer-Encoding "@streq chunked" "id:1,phase:1,deny,status:406"
"#;
    let ask = |headers: &[(&str, &str)], protocol: &[u8], has_body: bool, streaming: bool| {
        let mut exchange = exchange("/", Headers::new(headers));
        exchange.request.protocol = protocol.to_vec();
        exchange.request.streaming = streaming;
        status(&plugin_of(rules, step()).request(&mut exchange, has_body, &mut Slot::default(), &FakeHost::at(0)))
    };
    assert_eq!(ask(&[], b"HTTP/1.1", true, false), Some(406));
    // With a length, in a protocol that needs neither, without a body, and where what follows is no body.
    assert_eq!(ask(&[("content-length", "1")], b"HTTP/1.1", true, false), None);
    assert_eq!(ask(&[], b"HTTP/2", true, false), None);
    assert_eq!(ask(&[], b"HTTP/1.1", false, false), None);
    assert_eq!(ask(&[], b"HTTP/1.1", true, true), None);
}

#[test]
fn headers_of_the_gateway_are_left_out_only_with_what_it_writes() {
    let rules = "SecRuleEngine On\n\
        SecRule REQUEST_HEADERS|!REQUEST_HEADERS:Host \"@rx .\" \"id:1,phase:1,deny,status:418,log\"\n";
    for (name, written) in [
        ("x-envoy-expected-rq-timeout-ms", "15000"),
        ("x-envoy-internal", "true"),
        ("x-envoy-external-address", "2001:db8::1"),
        ("x-envoy-external-address", "192.0.2.7"),
    ] {
        let ask = |value: &str| {
            let mut exchange = exchange("/", Headers::from([(name, value)]));
            status(&plugin_of(rules, step()).request(&mut exchange, false, &mut Slot::default(), &FakeHost::at(0)))
        };
        assert_eq!(ask(written), None, "{name}");
        for other in ["${jndi:ldap://x}", "192.0.2.7, ${ctx:x}", "1 or 1=1", "True", "-1"] {
            assert_eq!(ask(other), Some(418), "{name}: {other}");
        }
    }
}

#[test]
fn the_target_of_a_tunnel_is_its_authority() {
    let rules = "SecRuleEngine On\nSecRule REQUEST_LINE \"@streq CONNECT example.com HTTP/1.1\" \"id:1,phase:1,deny,status:406\"";
    let mut exchange = exchange("", Headers::default());
    exchange.request.method = b"CONNECT".to_vec();
    let verdict = plugin_of(rules, step()).request(&mut exchange, false, &mut Slot::default(), &FakeHost::at(0));
    assert_eq!(status(&verdict), Some(406));
}

const LOGINS: &str = r#"
SecRuleEngine On
SecAction "id:1,phase:1,pass,nolog,initcol:ip=%{REMOTE_ADDR}"
SecAction "id:2,phase:1,pass,nolog,setvar:ip.logins=+1,expirevar:ip.logins=60"
SecRule IP:LOGINS "@gt 5" "id:3,phase:1,deny,status:429,log,msg:'too many logins'"
"#;

fn login(plugin: &dyn Plugin, ip: &str, host: &FakeHost) -> Option<u16> {
    let mut exchange = exchange("/login", Headers::default());
    exchange.caller.ip = ip.to_owned();
    status(&plugin.request(&mut exchange, false, &mut Slot::default(), host))
}

#[test]
fn a_counter_of_rules_holds_over_workers_until_it_ends() {
    let (host, workers) = (FakeHost::at(1_000_000), [plugin_of(LOGINS, step()), plugin_of(LOGINS, step())]);
    for at in 0..5 {
        assert_eq!(login(&*workers[at % 2], "192.0.2.1", &host), None, "{at}");
    }
    assert_eq!(login(&*workers[0], "192.0.2.1", &host), Some(429));
    assert_eq!(login(&*workers[1], "192.0.2.1", &host), Some(429));
    assert_eq!(login(&*workers[1], "192.0.2.2", &host), None, "another client");
    host.advance(60_000);
    assert_eq!(login(&*workers[1], "192.0.2.1", &host), None, "the time is over");
    assert_eq!(host.counts.borrow().get(&Metric::CollectionWritesLost), None);
}

#[test]
fn writes_that_cannot_be_kept_are_counted() {
    let rules = format!(
        "SecRuleEngine On\nSecAction \"id:1,phase:1,pass,nolog,initcol:ip=x,setvar:ip.a={}\"",
        "x".repeat(2000)
    );
    let host = FakeHost::at(0);
    let (mut exchange, mut slot, plugin) =
        (exchange("/", Headers::default()), Slot::default(), plugin_of(&rules, step()));
    assert_eq!(plugin.request(&mut exchange, false, &mut slot, &host), Verdict::Pass);
    plugin.finish(&mut exchange, &mut slot, &host);
    assert_eq!(host.counts.borrow().get(&Metric::CollectionWritesLost), Some(&1));
}

/// A pattern that needs backtracking, and a value on which it gives up.
const COSTLY: &str = r#"
SecRuleEngine On
SecRule ARGS:q "@rx (x+x+)+(?=y)z" "id:1,phase:1,deny,status:403"
"#;

#[test]
fn an_engine_that_gives_up_answers_503_unless_it_fails_open() {
    let ask = |step| {
        let (host, mut slot) = (FakeHost::at(0), Slot::default());
        let mut exchange = exchange(&format!("/?q={}yz", "x".repeat(200)), Headers::default());
        let plugin = plugin_of(COSTLY, step);
        let verdict = plugin.request(&mut exchange, false, &mut slot, &host);
        let failures = host.counts.borrow().get(&Metric::PluginFailures).copied();
        plugin.finish(&mut exchange, &mut slot, &host);
        let named: Vec<_> = host.events_json().iter().map(|event| event["limits"][0]["rule_id"].clone()).collect();
        (status(&verdict), failures, named)
    };
    let named = vec![serde_json::Value::from(1)];
    assert_eq!(ask(step()), (Some(503), Some(1), named.clone()));
    let told = (None, Some(1), named);
    assert_eq!(ask(WafStep { fail_open: true, ..step() }), told);
    assert_eq!(ask(WafStep { block: false, ..step() }), told, "where nothing is denied, this is not either");
}

#[test]
fn what_rules_sanitise_is_masked_in_the_trail() {
    let rules = "SecRuleEngine On\n\
        SecRule ARGS:q \"@contains cre\" \"id:1,phase:1,pass,log,msg:'m',logdata:'%{MATCHED_VAR}'\"\n\
        SecAction \"id:2,phase:5,pass,nolog,sanitiseArg:q\"";
    let (host, plugin) = (FakeHost::at(0), plugin_of(rules, step()));
    let (mut exchange, mut slot) = (exchange("/?q=secret", Headers::default()), Slot::default());
    let _ = plugin.request(&mut exchange, false, &mut slot, &host);
    plugin.finish(&mut exchange, &mut slot, &host);
    let trail = &host.events_json()[0];
    assert_eq!((&trail["matches"][0]["value"], &trail["matches"][0]["logdata"]), (&"******".into(), &"******".into()));
}

#[test]
fn a_rule_that_gives_up_is_told_once_a_minute_and_counted_each_time() {
    let rules = r#"
SecRuleEngine On
SecRule ARGS "@rx (x+x+)+(?=y)z" "id:9,phase:1,deny"
SecRule ARGS:odd "@unconditionalMatch" "id:10,phase:1,pass,log"
"#;
    let (host, plugin) = (FakeHost::at(0), plugin_of(rules, WafStep { fail_open: true, ..step() }));
    let evil = format!("/?q={}yz", "x".repeat(40));
    let run = |path: &str, host: &FakeHost| {
        let (mut exchange, mut slot) = (exchange(path, Headers::default()), Slot::default());
        assert_eq!(plugin.request(&mut exchange, false, &mut slot, host), Verdict::Pass);
        plugin.finish(&mut exchange, &mut slot, host);
    };
    run("/?q=x", &host);
    assert!(host.events_json().is_empty());
    run(&evil, &host);
    run(&evil, &host);
    let trails = host.events_json();
    assert_eq!(trails.len(), 1, "{trails:?}");
    let limits = serde_json::json!([{ "rule_id": 9, "variable": "ARGS:q", "values": 1 }]);
    assert_eq!((&trails[0]["@type"], &trails[0]["limits"]), (&"SvcWafTrailEvent".into(), &limits));
    assert_eq!((&trails[0]["matched"], &trails[0]["block"]), (&0.into(), &serde_json::Value::Null));
    // Where there is an event anyway, it says so too.
    run(&format!("{evil}&odd=1"), &host);
    assert_eq!(host.events_json()[1]["limits"], limits);
    host.advance(60_000);
    run(&evil, &host);
    assert_eq!(host.events_json().len(), 3);
    assert_eq!(host.counts.borrow().get(&exchange::Metric::RuleLimits), Some(&4));
}

#[test]
fn trailers_are_judged_like_headers() {
    let rules = r#"
SecRuleEngine On
SecRule REQUEST_HEADERS "@contains evil" "id:1,phase:1,deny,status:406,log,msg:'evil field'"
SecRule REQUEST_HEADERS:x-late "@streq odd" "id:2,phase:2,pass,log,msg:'odd field'"
SecRule REQUEST_HEADERS:host "@contains example" "id:3,phase:1,pass,log,msg:'as always'"
"#;
    let judged = |step: WafStep, value: &str| {
        let (host, mut slot) = (FakeHost::at(0), Slot::default());
        let (plugin, mut exchange) = (plugin_of(rules, step), exchange("/", Headers::default()));
        assert_eq!(status(&plugin.request(&mut exchange, false, &mut slot, &host)), None);
        let before = exchange.score.signals().len();
        let trailers = Headers::from([("x-late", value)]);
        let verdict = plugin.request_trailers(&mut exchange, &trailers, &mut slot, &host);
        let trails = host.events_json();
        (
            status(&verdict),
            exchange.score.signals().len() - before,
            trails.iter().find_map(|trail| trail.get("rule_ids")).cloned(),
        )
    };
    assert_eq!(judged(step(), "fine"), (None, 0, None));
    assert_eq!(judged(step(), "so evil").0, Some(406));
    assert_eq!(judged(step(), "odd"), (None, 1, Some(serde_json::json!([3, 2]))));
    let monitoring = || WafStep { block: false, ..step() };
    assert_eq!(judged(monitoring(), "so evil"), (None, 1, Some(serde_json::json!([1, 3]))));
}

/// A body may bring as many matches as its trailers do.
#[test]
fn what_trailers_bring_is_told_whatever_the_body_brought() {
    let rules = r#"
SecRuleEngine On
SecRequestBodyAccess On
SecRule ARGS:q "@streq odd" "id:1,phase:2,pass,log,msg:'odd argument'"
SecRule REQUEST_HEADERS "@contains evil" "id:2,phase:1,deny,status:406,log,msg:'evil field'"
"#;
    let (host, mut slot) = (FakeHost::at(0), Slot::default());
    let plugin = plugin_of(rules, WafStep { block: false, ..step() });
    let mut exchange = exchange("/", form());
    let body = Body { bytes: b"q=odd", complete: true };
    assert_eq!(status(&send(&*plugin, &mut exchange, body, &mut slot, &host)), None);
    let trailers = Headers::from([("x-late", "so evil")]);
    assert_eq!(status(&plugin.request_trailers(&mut exchange, &trailers, &mut slot, &host)), None);
    let trails = host.events_json();
    assert!(trails.iter().any(|trail| trail["rule_ids"] == serde_json::json!([2])), "{trails:?}");
}

#[test]
fn a_redirect_carries_what_the_request_has_and_the_chain_encodes_it() {
    let rules = r#"
SecRuleEngine On
SecRule REQUEST_URI "@contains attack" "id:1,phase:1,redirect:'https://example.com%{REQUEST_URI}',status:302,log"
"#;
    let plugin = plugin_of(rules, step());
    let mut exchange = exchange("/attack%0d%0aset-cookie:%20a=b", Headers::default());
    let verdict = plugin.request(&mut exchange, false, &mut Slot::default(), &FakeHost::at(0));
    let Verdict::Refuse(refusal) = verdict else { panic!("{verdict:?}") };
    let mut reply = exchange::Reply { headers: refusal.headers, ..exchange::Reply::default() };
    assert!(reply.make_safe().is_empty());
    let (_, location) = reply.headers.pop().unwrap();
    assert!(location.starts_with(b"https://example.com/attack%0"), "{}", location.escape_ascii());
    assert!(location.iter().all(u8::is_ascii_graphic), "{}", location.escape_ascii());
}

/// The status of a request whose body is announced, begins with this, and never ends before the response is there.
fn overtaken(step: WafStep, path: &str, headers: Headers, begins: &[u8]) -> Option<u16> {
    overtaken_by(200, &*plugin(step), path, headers, begins).0
}

/// The same with a response of this status, and the tags of its signals.
fn overtaken_by(
    by: u16,
    plugin: &dyn Plugin,
    path: &str,
    headers: Headers,
    begins: &[u8],
) -> (Option<u16>, Vec<String>) {
    let (host, mut slot) = (FakeHost::at(0), Slot::default());
    let mut exchange = exchange(path, headers);
    match plugin.request(&mut exchange, true, &mut slot, &host) {
        Verdict::NeedBody(_) => {}
        Verdict::ReadBody(_) => {
            assert_eq!(plugin.request_piece(&mut exchange, begins, &mut slot, &host), Verdict::Pass)
        }
        verdict => panic!("{verdict:?}"),
    }
    let verdict = plugin.without_body(&mut exchange, by, &mut slot, &host);
    if verdict == Verdict::Pass {
        exchange.response = Some(Response { status: by, ..Response::default() });
        assert!(matches!(plugin.response(&mut exchange, false, &mut slot, &host), Verdict::Pass));
    }
    plugin.finish(&mut exchange, &mut slot, &host);
    (status(&verdict), exchange.score.tags().iter().map(|tag| (*tag).to_owned()).collect())
}

#[test]
fn what_a_refused_request_lacks_is_on_its_way() {
    let rules = r#"
SecRuleEngine On
SecRequestBodyAccess On
SecRule REQUEST_METHOD "@within GET POST" "id:1,phase:2,deny,status:403,log,chain"
  SecRule &ARGS:csrf "@eq 0" ""
"#;
    let form_needs_token = plugin_of(rules, step());
    for (by, expected) in [(200, Some(403)), (204, Some(403)), (302, Some(403)), (0, Some(403))] {
        assert_eq!(overtaken_by(by, &*form_needs_token, "/", form(), b"").0, expected, "{by}");
    }
    for by in [401, 404, 413, 429, 503] {
        assert_eq!(overtaken_by(by, &*form_needs_token, "/", form(), b""), (None, Vec::new()), "{by}");
    }
}

#[test]
fn a_body_that_is_withheld_is_no_way_around_phase_2() {
    let prefix = || WafStep { reject_oversize: false, ..step() };
    let multipart = || Headers::from([("content-type", "multipart/form-data; boundary=b")]);
    for step in [step, prefix] {
        assert_eq!(overtaken(step(), "/?q=evil", Headers::default(), b""), Some(403));
        assert_eq!(overtaken(step(), "/?q=evil", form(), b"a=b"), Some(403));
        assert_eq!(overtaken(step(), "/?q=evil", multipart(), b"--b\r\n"), Some(403));
        assert_eq!(overtaken(WafStep { block: false, ..step() }, "/?q=evil", form(), b"a=b"), None);
        // A backend that refuses an upload early: the cut is no error of the request, nor is any limit exceeded.
        for (headers, begins) in [
            (Headers::default(), b"".as_slice()),
            (form(), b"a=b&q=ev"),
            (multipart(), b"--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"a\"\r\n\r\nhalf"),
            (Headers::from([("content-type", "application/json")]), b"{\"q\": [1, "),
            (Headers::from([("content-encoding", "gzip")]), b"\x1f\x8b"),
        ] {
            assert_eq!(overtaken(step(), "/?q=garden", headers.clone(), begins), None, "{headers:?}");
        }
    }
    // What is there of it is inspected where it is read as it comes.
    assert_eq!(overtaken(prefix(), "/", form(), b"q=evil&a="), Some(403));
}
