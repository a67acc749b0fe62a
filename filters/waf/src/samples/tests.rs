mod callers;
mod parameters;
mod secrets;

use std::io::Write as _;

use exchange::fake::FakeHost;
use exchange::{Body, Headers, Plugin, Route, Slot, Verdict, Workers, offline};
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message as _;

use super::messages::{MATCHES, MAX_BODY, MAX_CALLERS, MatchReport, SampledRequest};
use super::sampler::{MAX_HELD, MAX_KEYS, MAX_REPORT, MAX_REPORTS, PERIOD, REQUEST_SILENCE, TICK};
use super::*;
use crate::WafStep;
use crate::tests::{exchange, form, plugin_of, send, status, step};

const RULES: &str = r#"
SecRuleEngine On
SecRequestBodyAccess On
SecRule ARGS "@contains evil" "id:1,phase:2,deny,status:403,log,msg:'evil argument'"
SecRule ARGS "@contains odd" "id:2,phase:2,pass,log,msg:'odd argument'"
SecRule REQUEST_HEADERS:User-Agent "@contains odd" "id:3,phase:1,pass,log,msg:'odd client'"
SecRule REQUEST_COOKIES "@contains odd" "id:4,phase:1,pass,log,msg:'odd cookie'"
SecRule ARGS "@contains quiet" "id:5,phase:2,pass,nolog"
SecRule TX:none|REQUEST_METHOD "@streq GET" "id:6,phase:1,pass,log,msg:'no input'"
SecRule ARGS_NAMES "@contains odd" "id:7,phase:2,pass,log,msg:'odd name'"
SecRule REQUEST_BODY "@contains whole" "id:8,phase:2,pass,log,msg:'odd body'"
SecRule XML:/* "@contains odd" "id:9,phase:2,pass,log,msg:'odd text'"
"#;

const START: u64 = 1_000_000_000;

fn host() -> FakeHost {
    FakeHost::at(START)
}

/// Hands a whole request over.
fn ask(plugin: &dyn Plugin, mut exchange: Exchange, body: &[u8], host: &FakeHost) -> Verdict {
    let mut slot = Slot::default();
    let verdict = send(plugin, &mut exchange, Body { bytes: body, complete: true }, &mut slot, host);
    plugin.finish(&mut exchange, &mut slot, host);
    // The state and the events of a gateway are not those of one request.
    host.state.take();
    host.events.take();
    verdict
}

fn get(plugin: &dyn Plugin, path: &str, host: &FakeHost) -> Verdict {
    ask(plugin, exchange(path, Headers::default()), b"", host)
}

/// The reports of matches of the next tick.
fn tick(plugin: &dyn Plugin, host: &FakeHost) -> Vec<MatchReport> {
    let mut reports = all_of_tick(plugin, host);
    reports.retain(|report| !report.matches.is_empty());
    assert!(reports.len() <= MAX_REPORTS);
    reports
}

fn all_of_tick(plugin: &dyn Plugin, host: &FakeHost) -> Vec<MatchReport> {
    host.advance(u64::from(TICK));
    plugin.on_timer(host);
    let reports = host.reports.take();
    let read = |(kind, bytes): &(&str, Vec<u8>)| {
        assert!(*kind == MATCHES && bytes.len() <= MAX_REPORT, "{kind}: {}", bytes.len());
        MatchReport::decode(bytes.as_slice()).unwrap()
    };
    reports.iter().map(read).collect()
}

fn matches(reports: &[MatchReport]) -> Vec<&Matched> {
    reports.iter().flat_map(|report| &report.matches).collect()
}

/// The one match of the next tick.
fn matched(plugin: &dyn Plugin, host: &FakeHost) -> Matched {
    let reports = tick(plugin, host);
    let matches = matches(&reports);
    assert_eq!(matches.len(), 1, "{matches:?}");
    matches[0].clone()
}

#[test]
fn all_exchanges_are_counted_with_their_scores() {
    let rules = format!(
        "{RULES}\nSecRule ARGS \"@contains odd\" \"id:10,phase:2,pass,nolog,setvar:tx.blocking_inbound_anomaly_score=7\"\n"
    );
    let (host, plugin) = (host(), plugin_of(&rules, WafStep { block: false, ..step() }));
    let totals = |host: &FakeHost| {
        let reports = all_of_tick(&*plugin, host);
        let found: Vec<_> = reports.iter().flat_map(|report| report.totals.clone()).collect();
        found
            .into_iter()
            .map(|one| (one.config, one.requests, one.matched, one.would_block, one.scores))
            .collect::<Vec<_>>()
    };
    for query in ["fine", "odd", "odd", "quiet"] {
        ask(&*plugin, exchange(&format!("/?q={query}"), Headers::from([(":method", "POST")])), b"", &host);
    }
    let found = totals(&host);
    assert_eq!(found.len(), 1);
    let (config, requests, matched, would_block, scores) = &found[0];
    assert_eq!((config.as_str(), *requests, *would_block), ("waf-config_1", 4, 0));
    assert!((2..=4).contains(matched), "{matched}");
    let scores: Vec<(u32, u64)> = scores.iter().map(|one| (one.score, one.requests)).collect();
    assert_eq!(scores, [(7, 2)]);
    get(&*plugin, "/?q=evil", &host);
    assert_eq!(totals(&host), [], "the next ones after a while");
    host.advance(PERIOD);
    let found = totals(&host);
    assert_eq!((found[0].1, found[0].2, found[0].3), (1, 1, 1), "{found:?}");
}

/// Each input of a rule is a match with its own value, whichever link of a chain has seen it.
#[test]
fn every_input_of_a_rule_is_a_match() {
    let rules = r#"
SecRuleEngine On
SecRule ARGS "@rx ^odd (\w+)$" "id:1,phase:2,pass,log,capture,msg:'odd %{TX.1}',chain"
SecRule TX:1 "@rx ^[a-z]+$"
SecRule ARGS "@contains odd" "id:2,phase:2,pass,log"
"#;
    let (host, plugin) = (host(), plugin_of(rules, step()));
    let found = |query: &str| {
        get(&*plugin, &format!("/?{query}"), &host);
        host.advance(PERIOD);
        let reports = tick(&*plugin, &host);
        let shown = |one: &&Matched| {
            (one.rule_id, one.target.clone(), String::from_utf8_lossy(&one.value).into_owned(), one.msg.clone())
        };
        let mut found: Vec<_> = matches(&reports).iter().map(shown).collect();
        found.sort();
        found.into_iter().map(|(rule, target, value, msg)| format!("{rule} {target} {value} {msg}")).collect::<Vec<_>>()
    };
    assert_eq!(
        found("b=odd+two&c=fine&a=odd+one"),
        ["1 ARGS:a odd one odd one", "1 ARGS:b odd two odd one", "2 ARGS:a odd one ", "2 ARGS:b odd two "]
    );
    // A message may show what the rest of the chain has made of a secret.
    let secret = found("pin=odd+hunter");
    assert_eq!(secret, ["1 ARGS:pin *** ***", "2 ARGS:pin *** "]);
}

fn header<'a>(request: &'a SampledRequest, name: &str) -> Option<&'a [u8]> {
    request.headers.iter().find(|header| header.name == name.as_bytes()).map(|header| header.value.as_slice())
}

#[test]
fn a_match_is_reported_with_its_request_at_the_next_tick() {
    let (host, plugin) = (host(), plugin_of(RULES, step()));
    let timer = plugin.timer().unwrap();
    assert_eq!((timer.millis, timer.on), (TICK, Workers::All));
    let mut exchange =
        exchange("/orders/4711/items?q=an+odd+one", Headers::from([("user-agent", "test"), ("cookie", "a=1")]));
    exchange.route = Route { id: "route_1".into(), label: "shop".into(), ..Route::default() };
    exchange.caller.ip = "192.0.2.7".into();
    assert_eq!(ask(&*plugin, exchange, b"", &host), Verdict::Pass);
    let reports = tick(&*plugin, &host);
    assert_eq!((reports.len(), reports[0].sequence), (1, 1));
    assert_ne!(reports[0].worker, 0);
    let found = matches(&reports)[0].clone();
    let request = found.request.clone().unwrap();
    let expected = Matched {
        config: "waf-config_1".into(),
        route_id: "route_1".into(),
        route_name: "shop".into(),
        rule_id: 2,
        phase: 2,
        msg: "odd argument".into(),
        target: "ARGS:q".into(),
        path: "/orders/{id}/items".into(),
        count: 1,
        age: u64::from(TICK),
        callers: found.callers.clone(),
        shapes: vec![ValueShape::of(found.callers[0], b"an odd one")],
        value: b"an odd one".to_vec(),
        method: "GET".into(),
        request: found.request.clone(),
        ..Matched::default()
    };
    assert_eq!(found, expected);
    assert_eq!(found.callers.len(), 1);
    assert_eq!((request.method.as_str(), request.protocol.as_str(), request.body.len()), ("GET", "HTTP/1.1", 0));
    assert_eq!(request.uri, b"/orders/4711/items?q=an+odd+one");
    assert_eq!(header(&request, "host"), Some(b"example.com".as_slice()));
    assert_eq!(
        (header(&request, "user-agent"), header(&request, "cookie")),
        (Some(b"test".as_slice()), Some(b"a=***".as_slice()))
    );
    assert!(!request.cut && !request.masked);
    assert!(tick(&*plugin, &host).is_empty(), "sent once");
}

#[test]
fn a_key_is_reported_at_once_then_every_30_seconds_with_a_request_every_ten_minutes() {
    let (host, plugin) = (host(), plugin_of(RULES, step()));
    let (mut reported, mut requested, mut counted) = (Vec::new(), Vec::new(), 0);
    let seconds = 2 * REQUEST_SILENCE / 1_000;
    for second in 0..seconds {
        get(&*plugin, "/?q=odd", &host);
        for found in matches(&tick(&*plugin, &host)) {
            counted += found.count;
            reported.push(second);
            if found.request.is_some() {
                requested.push(second);
            }
        }
    }
    assert_eq!((reported[0], reported[1], reported[2]), (0, 30, 60));
    assert_eq!(requested.len(), 2);
    assert!((590..=660).contains(&requested[1]), "{requested:?}");
    assert!(counted > seconds - PERIOD / 1_000);
}

#[test]
fn nothing_is_sent_where_nothing_that_can_be_excluded_matches() {
    let (host, plugin) = (host(), plugin_of(RULES, step()));
    // Rule 6 matches each time, at no input that an exclusion can name; rule 5 is not logged.
    get(&*plugin, "/?q=fine", &host);
    get(&*plugin, "/?q=quiet", &host);
    let mut secret = exchange("/?q=odd", Headers::default());
    secret.target_is_secret = true;
    ask(&*plugin, secret, b"", &host);
    get(&*plugin, &format!("/{}?q=odd", "a/".repeat(40)), &host);
    assert!(tick(&*plugin, &host).is_empty());
    assert_eq!(Samples::of(&host).0.borrow().load(), (0, 0, 0));
}

#[test]
fn refusals_count_whether_they_are_made_or_not() {
    for block in [true, false] {
        let (host, plugin) = (host(), plugin_of(RULES, WafStep { block, ..step() }));
        let verdict = get(&*plugin, "/?q=evil", &host);
        assert_eq!(status(&verdict), block.then_some(403));
        let found = matched(&*plugin, &host);
        assert_eq!((found.rule_id, found.count, found.would_block, found.blocked), (1, 1, 1, block));
    }
}

#[test]
fn each_key_counts_once_in_an_exchange() {
    let rules = "SecRuleEngine On\nSecRule ARGS \"@contains odd\" \"id:2,phase:1,pass,log\"\n\
        SecRule ARGS \"@contains odd\" \"id:3,phase:1,pass,log\"\n\
        SecRule REQUEST_HEADERS \"@contains odd\" \"id:4,phase:1,pass,log\"";
    let (host, plugin) = (host(), plugin_of(rules, step()));
    let (mut exchange, mut slot) = (exchange("/?a=odd&b=odd", Headers::from([("x-a", "odd")])), Slot::default());
    assert_eq!(plugin.request(&mut exchange, false, &mut slot, &host), Verdict::Pass);
    // What the trailers bring is judged with the headers once more.
    let trailers = Headers::from([("x-late", "odd")]);
    assert_eq!(plugin.request_trailers(&mut exchange, &trailers, &mut slot, &host), Verdict::Pass);
    plugin.finish(&mut exchange, &mut slot, &host);
    let reports = tick(&*plugin, &host);
    let mut found: Vec<(u64, &str, u64)> =
        matches(&reports).iter().map(|found| (found.rule_id, found.target.as_str(), found.count)).collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            (2, "ARGS:a", 1),
            (2, "ARGS:b", 1),
            (3, "ARGS:a", 1),
            (3, "ARGS:b", 1),
            (4, "REQUEST_HEADERS:x-a", 1),
            (4, "REQUEST_HEADERS:x-late", 1)
        ]
    );
    let late = matches(&reports).into_iter().find(|found| found.target.ends_with("x-late")).unwrap();
    assert_eq!(header(late.request.as_ref().unwrap(), "x-late"), Some(b"odd".as_slice()));
}

#[test]
fn bodies_are_sampled_however_they_come() {
    let text = format!("q=odd&x={}", "y".repeat(600));
    let mut zipped = GzEncoder::new(Vec::new(), Compression::default());
    zipped.write_all(text.as_bytes()).unwrap();
    let zipped = zipped.finish().unwrap();
    let coded = Headers::from([("content-type", "application/x-www-form-urlencoded"), ("content-encoding", "gzip")]);
    let pieces = WafStep { reject_oversize: false, ..step() };
    for (step, headers, body) in
        [(step(), form(), text.as_bytes()), (pieces, form(), text.as_bytes()), (step(), coded, &zipped)]
    {
        let (host, plugin) = (host(), plugin_of(RULES, step));
        let mut exchange = exchange("/", headers);
        exchange.request.method = b"POST".to_vec();
        assert_eq!(ask(&*plugin, exchange, body, &host), Verdict::Pass);
        let found = matched(&*plugin, &host);
        let request = found.request.unwrap();
        assert_eq!((found.method.as_str(), request.method.as_str()), ("POST", "POST"));
        assert_eq!((request.body.escape_ascii().to_string(), request.cut), (text.clone(), false));
        assert_eq!(header(&request, "content-encoding"), None);
    }
}

#[test]
fn a_body_in_front_of_no_rule_and_a_long_one_are_said_to_be_cut() {
    let (host, plugin) = (
        host(),
        plugin_of(
            RULES,
            WafStep { reject_oversize: false, input_body_limit: 100_000, input_files_limit: 100_000, ..step() },
        ),
    );
    let body = format!("q=odd&x={}", "y".repeat(50_000));
    assert_eq!(ask(&*plugin, exchange("/", form()), body.as_bytes(), &host), Verdict::Pass);
    let request = matched(&*plugin, &host).request.unwrap();
    assert_eq!((request.body.as_slice(), request.cut), (&body.as_bytes()[..MAX_BODY], true));
    let early = "SecRuleEngine On\nSecRequestBodyAccess On\nSecRule ARGS_GET:q \"@streq evil\" \"id:1,phase:1,deny,status:403,log\"";
    let plugin = plugin_of(early, step());
    assert_eq!(status(&ask(&*plugin, exchange("/early?q=evil", form()), b"a=1", &host)), Some(403));
    let request = matched(&*plugin, &host).request.unwrap();
    assert_eq!((request.body.len(), request.cut), (0, true));
}

#[test]
fn what_matches_behind_the_inspected_part_is_sampled_without_its_text() {
    let rules = "SecRuleEngine On\nSecRequestBodyAccess On\nSecRule ARGS \"@contains odd\" \"id:2,phase:2,pass,log\"";
    let step = WafStep { reject_oversize: false, input_body_limit: 100, input_files_limit: 100, ..step() };
    let (host, plugin) = (host(), plugin_of(rules, step));
    let body = format!("q={}&password=hunter2+odd", "y".repeat(90));
    ask(&*plugin, exchange("/", form()), body.as_bytes(), &host);
    let mut slot = Slot::default();
    let mut long = exchange("/", form());
    assert!(matches!(plugin.request(&mut long, true, &mut slot, &host), Verdict::ReadBody(_)));
    plugin.request_piece(&mut long, &body.as_bytes()[..100], &mut slot, &host);
    plugin.request_body(&mut long, Body { bytes: b"", complete: false }, &mut slot, &host);
    plugin.request_rest(&mut long, &body.as_bytes()[100..], true, &mut slot, &host);
    plugin.finish(&mut long, &mut slot, &host);
    let reports = tick(&*plugin, &host);
    let rest = matches(&reports).into_iter().find(|found| found.target == "ARGS:rest_of_body").expect("it is sampled");
    assert_eq!(rest.value, b"***");
    assert!(rest.request.as_ref().unwrap().masked);
    assert!(reports.iter().all(|report| !contains(&report.encode_to_vec(), b"hunter")));
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_flood_of_keys_stays_within_its_bounds() {
    let (host, plugin) = (host(), plugin_of(RULES, step()));
    let long = "z".repeat(900);
    let (mut sequence, mut keys) = (0, 0);
    for number in 0..100_000_u32 {
        get(&*plugin, &format!("/?n{number}=odd&x={long}"), &host);
        let (known, held, _) = Samples::of(&host).0.borrow().load();
        assert!(known <= MAX_KEYS && held <= MAX_HELD, "{known} {held}");
        if number % 500 == 0 {
            for report in all_of_tick(&*plugin, &host) {
                assert_eq!(report.sequence, sequence + 1);
                sequence = report.sequence;
                keys += report.matches.len();
                assert!(report.matches.iter().all(|found| found.request.is_some()), "all are new");
            }
        }
    }
    let (known, _, left_out) = Samples::of(&host).0.borrow().load();
    assert!(known > MAX_KEYS / 2 && left_out > 0 && keys > 5_000, "{known} {left_out} {keys}");
    // Once the flood is over, others are taken again.
    for _ in 0..200 {
        tick(&*plugin, &host);
    }
    get(&*plugin, "/after?q=odd", &host);
    assert_eq!(matched(&*plugin, &host).path, "/after");
}

#[test]
fn large_requests_are_reported_one_after_the_other() {
    let step = WafStep { input_body_limit: 100_000, ..step() };
    let (host, plugin) = (host(), plugin_of(RULES, step));
    let cookie = format!("a={}", "c".repeat(20_000));
    for number in 0..20 {
        let headers = Headers::from([
            ("content-type", "application/x-www-form-urlencoded"),
            ("cookie", &cookie),
            ("x-long", &"h".repeat(9_000)),
            ("x-longer", &"h".repeat(9_000)),
        ]);
        let path = format!("/p{}/{}?x={}", char::from(b'a' + number), "n".repeat(60), "u".repeat(9_000));
        ask(&*plugin, exchange(&path, headers), format!("q=odd&x={}", "%01".repeat(20_000)).as_bytes(), &host);
    }
    let mut found = 0;
    for _ in 0..10 {
        let reports = tick(&*plugin, &host);
        found += matches(&reports).len();
        assert!(matches(&reports).iter().all(|found| found.request.as_ref().is_some_and(|request| request.cut)));
    }
    assert_eq!(found, 20);
}

#[test]
fn without_a_control_plane_it_counts_on() {
    let (host, plugin) = (host(), plugin_of(RULES, step()));
    offline::mark(host.shared(), START + 100_000, START);
    for _ in 0..10 {
        get(&*plugin, "/?q=odd", &host);
        assert!(tick(&*plugin, &host).is_empty());
    }
    host.advance(100_000);
    let found = matched(&*plugin, &host);
    assert_eq!((found.count, found.request.is_some()), (10, true));
}

#[test]
fn another_snapshot_goes_on_with_what_was_counted() {
    let (host, plugins) = (host(), [plugin_of(RULES, step()), plugin_of(RULES, step())]);
    get(&*plugins[0], "/?q=odd", &host);
    let first = tick(&*plugins[0], &host);
    get(&*plugins[1], "/?q=odd", &host);
    host.advance(PERIOD);
    let second = tick(&*plugins[1], &host);
    // The second one was that of all exchanges.
    assert_eq!((second[0].worker, second[0].sequence), (first[0].worker, 3));
    assert_eq!(matches(&second)[0].request, None);
    let other = plugin_of(RULES, WafStep { id: "waf-config_2".into(), ..step() });
    get(&*other, "/?q=odd", &host);
    assert_eq!(matched(&*other, &host).config, "waf-config_2", "a key of its own");
}

#[test]
fn idle_keys_are_forgotten() {
    let (host, plugin) = (host(), plugin_of(RULES, step()));
    get(&*plugin, "/?q=odd", &host);
    tick(&*plugin, &host);
    host.advance(3_500_000);
    tick(&*plugin, &host);
    assert_eq!(Samples::of(&host).0.borrow().load().0, 1);
    host.advance(200_000);
    tick(&*plugin, &host);
    assert_eq!(Samples::of(&host).0.borrow().load(), (0, 0, 0));
}
