//! Recorded traffic through the shipped filter: every engine says the same, and a long run keeps nothing.

use crate::kit;

use std::path::PathBuf;

use ftw::rules::compile_text;
use harness::engine::Envoy;
use harness::replay::{Gateway, Naming, Native, Real, Script, Summary, Wasm, run};
use proxy_host::{Module, Node, Options};
use recording::{BadEntry, Entry, Place};
use report::{Effect, Row};
use snapshot::{LinkSettings, Message as _, Policy, RouteChain, Snapshot, Step, Tier, TierAction, open, seal};
use threat_gate::ThreatGateStep;
use threat_response::ThreatResponseStep;
use waf::WafStep;

use proxy_host::traffic::{Exchange, Request, Response};

const ROUTE: &str = "demo";
/// How far apart the ticks of the host are at most, in milliseconds.
const TICK_MILLIS: u64 = 200;
/// How long the tarpit of [`policy`] holds, in milliseconds.
const HELD_MILLIS: u64 = 3000;

/// What they match is worth 25 points; `evil` is denied.
const RULES: &str = r#"
SecRule ARGS:q "@contains a" "id:1,phase:2,pass,log,msg:'has a'"
SecRule ARGS:w "@streq evil" "id:9,phase:2,deny,status:406,log,msg:'evil'"
SecRule RESPONSE_BODY "@contains secret" "id:10,phase:4,deny,status:502,log,msg:'leak'"
"#;
/// What this one matches is worth 50.
const HEAVY: &str = r#"SecRule ARGS:q "@contains b" "id:2,phase:2,pass,log,msg:'has b'""#;

/// A snapshot for the preset: the gate, these rules, and a response of these tiers.
fn snapshot(tiers: Vec<Tier>) -> Vec<u8> {
    let waf = |rules: &str, weight: f64| {
        let (_, waf) = open(&compile_text("rules", rules).unwrap().snapshot).unwrap();
        let mut step = WafStep::decode(waf.global[0].config.as_slice()).unwrap();
        (step.block, step.contribute, step.block_weight, step.match_weight) = (true, true, 95.0, weight);
        (step.encode_to_vec(), waf.parts)
    };
    let ((light, mut parts), (heavy, more)) = (waf(RULES, 25.0), waf(HEAVY, 50.0));
    parts.extend(more);
    let policy = Policy { id: "p".into(), name: "p".into(), tiers, ..Policy::default() };
    let make = |plugin: &str, config: Vec<u8>| Step { plugin: plugin.into(), config, ..Step::default() };
    let steps = vec![
        make("threat-gate", ThreatGateStep { policy: Some(policy.clone()) }.encode_to_vec()),
        make("waf", light),
        make("waf", heavy),
        make("threat-response", ThreatResponseStep { policy: Some(policy), maze: None }.encode_to_vec()),
    ];
    let routes = vec![RouteChain { name: ROUTE.into(), id: "r".into(), steps, ..RouteChain::default() }];
    let link = Some(LinkSettings { cluster: "control".into(), flush_millis: 200, max_queued: 1000 });
    seal(&Snapshot { filter: "preset".into(), routes, parts, link, ..Snapshot::default() }).encode_to_vec()
}

fn tier(index: u32, min_score: f64, action: TierAction) -> Tier {
    Tier {
        index,
        min_score,
        action: action.into(),
        status: 403,
        tarpit_millis: 3000,
        ban_for_seconds: 60,
        throttle_quota: 2,
        throttle_window_seconds: 10,
    }
}

fn policy() -> Vec<u8> {
    let actions = [(20.0, TierAction::Throttle), (45.0, TierAction::Tarpit), (90.0, TierAction::Ban)];
    snapshot(actions.into_iter().zip(0..).map(|((score, action), at)| tier(at, score, action)).collect())
}

fn preset() -> &'static Module {
    static PRESET: std::sync::OnceLock<Module> = std::sync::OnceLock::new();
    PRESET.get_or_init(|| Module::compile(&kit::filter("preset")).unwrap())
}

fn entry(number: u64, at: Option<u64>, peer: &str, path: &str) -> Result<Entry, BadEntry> {
    let request = Request { peer: format!("{peer}:4000"), ..Request::get(path) };
    let body = if path.contains("leak") { b"a secret".to_vec() } else { b"hello".to_vec() };
    let headers = vec![(b"content-type".to_vec(), b"text/plain".to_vec())];
    let exchange = Exchange { request, response: Response { body, headers, ..Response::default() } };
    let at_millis = at.map(|at| kit::NOW_MILLIS + at);
    Ok(Entry { place: Place { file: "mixed".into(), number }, at_millis, status: Some(200), notes: vec![], exchange })
}

/// Who asks for what, when, and what comes of it: the effect, the status, the action.
type Case = (Option<u64>, &'static str, &'static str, Effect, u16, &'static str);

const MIXED: &[Case] = {
    use Effect::{Blocked, Observed, Passed, Slowed};
    &[
        (Some(0), "192.0.2.1", "/", Passed, 200, "none"),
        (Some(10), "192.0.2.2", "/?q=a", Observed, 200, "throttle"),
        (Some(20), "192.0.2.2", "/?q=a", Observed, 200, "throttle"),
        (Some(30), "192.0.2.2", "/?q=a", Blocked, 429, "throttle"),
        // Held until the first tick behind its time, and nobody else with it.
        (Some(100), "192.0.2.3", "/?q=ab", Slowed, 200, "tarpit"),
        (Some(200), "192.0.2.1", "/", Passed, 200, "none"),
        (None, "192.0.2.1", "/later", Passed, 200, "none"),
        // The window of the throttle is over.
        (Some(11_000), "192.0.2.2", "/?q=a", Observed, 200, "throttle"),
        // The rules deny, and the tier bans.
        (Some(12_000), "192.0.2.4", "/?w=evil", Blocked, 403, "ban"),
        (Some(12_500), "192.0.2.4", "/", Blocked, 403, "deny"),
        (Some(13_000), "192.0.2.1", "/leak", Blocked, 502, "deny"),
        // An hour later the ban is over.
        (Some(3_600_000), "192.0.2.4", "/", Passed, 200, "none"),
    ]
};

fn mixed() -> Vec<Result<Entry, BadEntry>> {
    (1..).zip(MIXED).map(|(number, (at, peer, path, ..))| entry(number, *at, peer, path)).collect()
}

fn replay<'a>(
    entries: Vec<Result<Entry, BadEntry>>,
    start: impl FnOnce(u64) -> Box<dyn Gateway + 'a>,
) -> (Vec<Row>, Summary) {
    let mut rows = Vec::new();
    let naming = Naming::default();
    let summary =
        run(&mut entries.into_iter(), |now| Ok(start(now)), &naming, ROUTE, &mut |row| rows.push(row.unwrap()));
    let timeless = |row: Row| Row { micros: 0, held_millis: on_time(&row), ..row };
    (rows.into_iter().map(timeless).collect(), summary.unwrap())
}

/// How long a tarpit was to hold the request of a row: it goes on with the first tick behind that, at most one period later.
fn on_time(row: &Row) -> u64 {
    if (HELD_MILLIS..=HELD_MILLIS + TICK_MILLIS).contains(&row.held_millis) { HELD_MILLIS } else { row.held_millis }
}

fn wasm(now: u64, snapshot: &[u8], workers: usize) -> Box<dyn Gateway> {
    let node = Node::new("node-1", now, 7);
    Box::new(Wasm::start(preset(), snapshot, &node, workers, &Options::default(), Script::default()).unwrap())
}

fn native(now: u64, snapshot: &[u8]) -> Box<dyn Gateway> {
    Box::new(Native::load(snapshot, "node-1", now, 7).unwrap())
}

#[test]
fn native_and_wasm_say_the_same_of_mixed_traffic() {
    let snapshot = policy();
    let (rows, summary) = replay(mixed(), |now| wasm(now, &snapshot, 1));
    let found: Vec<_> = rows.iter().map(|row| (row.effect, row.status, row.action.as_str())).collect();
    let expected: Vec<_> = MIXED.iter().map(|(.., effect, status, action)| (*effect, *status, *action)).collect();
    assert_eq!(found, expected, "{rows:#?}");
    // A tarpit holds its own exchange: those behind it begin at their times.
    let times: Vec<_> = rows[3..8].iter().map(|row| (row.at - kit::NOW_MILLIS, row.held_millis)).collect();
    assert_eq!(times, [(30, 0), (100, HELD_MILLIS), (200, 0), (200, 0), (11_000, 0)]);
    let rules: Vec<_> = rows[4].rules.iter().map(|rule| (rule.id, rule.msg.as_str())).collect();
    assert_eq!(rules, [(1, "has a"), (2, "has b")]);
    assert_eq!((rows[4].caller.as_str(), rows[4].score, rows[4].signals.len()), ("192.0.2.3", 75.0, 2));
    assert!(rows[9].reason.contains("banned for another 60 s"), "{}", rows[9].reason);
    assert_eq!((summary.ran, summary.control.bans, summary.waited), (12, 1, 4));
    assert!(summary.control.events >= 9 && summary.skipped_ticks > 10_000, "{summary:?}");

    let (linked, counted) = replay(mixed(), |now| native(now, &snapshot));
    assert_eq!(linked, rows);
    assert_eq!((counted.control.events, counted.control.bans), (summary.control.events, summary.control.bans));
    let named = |name: &str| (counted.metrics.get(name).copied(), summary.metrics.get(name).copied());
    assert_eq!(named("palisade.requests"), (Some(12), Some(12)));
    assert_eq!(named("palisade.bans"), (Some(1), Some(1)));

    // Workers share the node: one bans, the other refuses.
    let (shared, shared_summary) = replay(mixed(), |now| wasm(now, &snapshot, 3));
    assert_eq!(shared, rows);
    assert_eq!(shared_summary.control.loads, 3);
}

#[test]
fn what_is_held_is_bounded_in_bytes() {
    let snapshot = policy();
    let long = |number: u64| {
        let mut entry = entry(number, Some(number), &format!("192.0.2.{number}"), "/?q=ab").unwrap();
        entry.exchange.request.body = vec![b'x'; 4 << 20];
        Ok(entry)
    };
    let (rows, _) = replay((1..=40).map(long).collect(), |now| native(now, &snapshot));
    let held = rows.iter().filter(|row| row.held_millis == HELD_MILLIS).count();
    // 64 MiB of them; the others go on at once.
    assert_eq!((rows.len(), held), (40, 15), "{:?}", rows.iter().map(|row| row.held_millis).collect::<Vec<_>>());
}

/// Its clock is the wall's: what depends on the recording's is left out of the comparison.
#[test]
fn a_real_envoy_says_the_same_as_far_as_it_does_not_need_the_recordings_clock() {
    let part =
        |variable: &str, default: &str| std::env::var_os(variable).map_or_else(|| kit::own(default), PathBuf::from);
    let program = part("PALISADE_ENVOY", "../../.cache/envoy/envoy");
    let filter = part("PALISADE_FILTERS", "../../target/filters").join("preset.wasm");
    let snapshot = policy();
    let engine = Envoy::for_replay(&program, &filter, &snapshot, ROUTE, "node-1").unwrap_or_else(|why| panic!("{why}"));
    let (rows, _) = replay(mixed(), |_| Box::new(Real::new(engine, ROUTE)));
    let (expected, _) = replay(mixed(), |now| wasm(now, &snapshot, 1));
    let timeless = |row: &Row| (row.id.clone(), row.caller.clone(), row.rules.clone(), row.signals.clone(), row.score);
    // The throttle's second window and the end of the ban are the recording's.
    let on_the_wall = [7, 11];
    for (at, (row, wanted)) in rows.iter().zip(&expected).enumerate() {
        if at != 11 {
            assert_eq!(timeless(row), timeless(wanted));
        }
        if !on_the_wall.contains(&at) {
            let of = |row: &Row| (row.effect, row.status, row.action.clone());
            assert_eq!(of(row), of(wanted), "{row:#?}");
        }
    }
    assert_eq!((rows.len(), rows[4].held_millis), (12, HELD_MILLIS));
    assert!(rows[4].notes.iter().any(|note| note.contains("clock is the wall's")), "{:?}", rows[4].notes);
    assert_eq!(rows[11].status, 403, "on the wall's clock the ban stands");
}

/// What 20,000 exchanges leave behind is what a few leave behind: tables of the node, whose size has a bound.
#[test]
fn a_long_run_keeps_nothing() {
    let snapshot = policy();
    let node = Node::new("node-1", kit::NOW_MILLIS, 7);
    let mut gateway = Wasm::start(preset(), &snapshot, &node, 2, &Options::default(), Script::default()).unwrap();
    let mut memory = Vec::new();
    for number in 0..20_000_u64 {
        gateway.run_until(kit::NOW_MILLIS + number * 50);
        let path = if number % 10 == 0 { "/?q=a" } else { "/" };
        let Entry { mut exchange, .. } = entry(number, None, &format!("192.0.2.{}", number % 200), path).unwrap();
        exchange.request.route = ROUTE.to_owned();
        gateway.begin(number, &exchange);
        assert_eq!(gateway.take_finished().len(), 1);
        if number % 5000 == 4999 {
            memory.push(gateway.workers().iter().map(|vm| vm.memory_size()).collect::<Vec<_>>());
        }
    }
    gateway.drain();
    for vm in gateway.workers() {
        assert!(vm.is_idle() && vm.under_way() == 0);
        assert_eq!(vm.grpc_streams().len(), 1, "the node link");
        assert!(vm.grpc_streams()[0].sent.is_empty());
        assert!(vm.kept() < 10, "{}", vm.kept());
    }
    assert_eq!(memory.first(), memory.last(), "{memory:?}");
    let counts = gateway.control();
    assert_eq!((counts.events, counts.bans, counts.unreadable, counts.dropped), (4000, 0, 0, 0));
}
