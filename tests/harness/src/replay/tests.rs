use std::time::Duration;

use recording::{BadEntry, Entry, Place};
use report::{Effect, Row};
use snapshot::{ApiKeyDigest, BanRequest, Down, IdentitySource, Message as _, Up, Verifier, content_hash};

use super::run::MAX_FAULTS;
use super::*;
use proxy_host::traffic::{Exchange, Request};
use proxy_host::{Answer, Delivery, Module, Node, Options};

/// A filter that does one thing for each number of headers. Its timer runs every 100 ms and lets go of what is held.
const FILTER: &str = r#"(module
  (import "env" "proxy_send_local_response" (func $reply (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "env" "proxy_set_tick_period_milliseconds" (func $tick_period (param i32) (result i32)))
  (import "env" "proxy_continue_stream" (func $continue (param i32) (result i32)))
  (import "env" "proxy_set_effective_context" (func $effective (param i32) (result i32)))
  (import "env" "proxy_http_call"
    (func $http_call (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "env" "proxy_grpc_call"
    (func $grpc_call (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "env" "proxy_grpc_stream" (func $grpc_stream (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "env" "proxy_get_header_map_value" (func $header (param i32 i32 i32 i32 i32) (result i32)))
  (import "env" "proxy_get_status" (func $status (param i32 i32 i32) (result i32)))
  (import "env" "proxy_register_shared_queue" (func $register (param i32 i32 i32) (result i32)))
  (import "env" "proxy_enqueue_shared_queue" (func $enqueue (param i32 i32 i32) (result i32)))
  (import "env" "proxy_dequeue_shared_queue" (func $dequeue (param i32 i32 i32) (result i32)))
  (import "env" "proxy_define_metric" (func $define (param i32 i32 i32 i32) (result i32)))
  (import "env" "proxy_increment_metric" (func $increment (param i32 i64) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 16) "queue")
  (data (i32.const 32) "arrivals")
  (data (i32.const 48) "ticks")
  (data (i32.const 64) ":status")
  (data (i32.const 80) "\0a\03\0a\01c")
  (data (i32.const 96) "a.Service")
  (data (i32.const 112) "Method")
  (data (i32.const 200) "m")
  (data (i32.const 128) "\03\00\00\00\05\00\00\00\02\00\00\00\07\00\00\00\03\00\00\00\0a\00\00\00\01\00\00\00:path\00/x\00:method\00GET\00:authority\00a\00")
  (global $top (mut i32) (i32.const 4096))
  (global $held (mut i32) (i32.const 0))
  (global $queue (mut i32) (i32.const 0))
  (global $arrivals (mut i32) (i32.const 0))
  (global $ticks (mut i32) (i32.const 0))
  (func (export "proxy_on_memory_allocate") (param $size i32) (result i32)
    global.get $top
    (global.set $top (i32.add (global.get $top) (local.get $size))))
  (func (export "proxy_on_context_create") (param i32 i32))
  (func (export "proxy_on_configure") (param i32) (param $size i32) (result i32)
    (drop (call $tick_period (i32.const 100)))
    (drop (call $register (i32.const 16) (i32.const 5) (i32.const 0)))
    (global.set $queue (i32.load (i32.const 0)))
    (drop (call $define (i32.const 0) (i32.const 32) (i32.const 8) (i32.const 0)))
    (global.set $arrivals (i32.load (i32.const 0)))
    (drop (call $define (i32.const 0) (i32.const 48) (i32.const 5) (i32.const 0)))
    (global.set $ticks (i32.load (i32.const 0)))
    (i32.const 1))
  (func $refuse (param $status i32)
    (drop (call $reply (local.get $status) (i32.const 16) (i32.const 5) (i32.const 16) (i32.const 5)
      (i32.const 0) (i32.const 0) (i32.const -1))))
  (func (export "proxy_on_request_headers") (param $context i32) (param $count i32) (param i32) (result i32)
    (if (i32.eq (local.get $count) (i32.const 4)) (then (loop $forever (br $forever))))
    (if (i32.eq (local.get $count) (i32.const 5)) (then unreachable))
    (if (i32.eq (local.get $count) (i32.const 6)) (then
      (global.set $held (local.get $context))
      (return (i32.const 1))))
    (if (i32.eq (local.get $count) (i32.const 7)) (then
      (if (call $http_call (i32.const 84) (i32.const 1) (i32.const 128) (i32.const 62) (i32.const 0) (i32.const 0)
          (i32.const 0) (i32.const 0) (i32.const 1000) (i32.const 0)) (then unreachable))
      (return (i32.const 1))))
    (if (i32.eq (local.get $count) (i32.const 8)) (then
      (if (call $grpc_call (i32.const 80) (i32.const 5) (i32.const 96) (i32.const 9) (i32.const 112) (i32.const 6)
          (i32.const 0) (i32.const 0) (i32.const 16) (i32.const 5) (i32.const 1000) (i32.const 0)) (then unreachable))
      (return (i32.const 1))))
    (if (i32.eq (local.get $count) (i32.const 9)) (then
      (drop (call $enqueue (global.get $queue) (i32.const 16) (i32.const 5)))))
    (if (i32.eq (local.get $count) (i32.const 10)) (then
      (if (call $grpc_stream (i32.const 80) (i32.const 5) (i32.const 96) (i32.const 9) (i32.const 112) (i32.const 6)
          (i32.const 0) (i32.const 0) (i32.const 0)) (then unreachable))
      (return (i32.const 1))))
    (i32.const 0))
  (func (export "proxy_on_request_body") (param i32 i32 i32) (result i32) i32.const 0)
  (func (export "proxy_on_response_headers") (param i32 i32 i32) (result i32) i32.const 0)
  (func (export "proxy_on_response_body") (param i32 i32 i32) (result i32) i32.const 0)
  ;; An answer with a body of two bytes lets the request go on; any other is its status, or 400 without headers.
  (func (export "proxy_on_http_call_response") (param i32 i32) (param $headers i32) (param $body i32) (param i32)
    (if (i32.eq (local.get $body) (i32.const 2)) (then
      (drop (call $continue (i32.const 0)))
      (return)))
    (if (i32.eqz (local.get $headers)) (then (call $refuse (i32.const 400)) (return)))
    (if (call $header (i32.const 6) (i32.const 64) (i32.const 7) (i32.const 0) (i32.const 4)) (then unreachable))
    ;; The last digit of the status.
    (call $refuse (i32.add (i32.const 460)
      (i32.sub (i32.load8_u (i32.add (i32.load (i32.const 0)) (i32.const 2))) (i32.const 48)))))
  ;; The beginning of a stream is counted, and so is the end of one.
  (func (export "proxy_on_grpc_receive_initial_metadata") (param i32 i32 i32)
    (if (call $header (i32.const 4) (i32.const 200) (i32.const 1) (i32.const 0) (i32.const 4)) (then unreachable))
    (drop (call $increment (global.get $arrivals) (i64.const 1))))
  (func (export "proxy_on_grpc_receive_trailing_metadata") (param i32 i32 i32)
    (drop (call $increment (global.get $arrivals) (i64.const 100))))
  (func (export "proxy_on_grpc_receive") (param i32 i32 i32) (drop (call $continue (i32.const 0))))
  (func (export "proxy_on_grpc_close") (param i32 i32 i32)
    (if (call $status (i32.const 0) (i32.const 4) (i32.const 8)) (then unreachable))
    (call $refuse (i32.add (i32.const 480) (i32.load (i32.const 0)))))
  (func (export "proxy_on_queue_ready") (param i32 i32)
    (drop (call $dequeue (global.get $queue) (i32.const 0) (i32.const 4)))
    (drop (call $increment (global.get $arrivals) (i64.const 1))))
  (func (export "proxy_on_tick") (param i32)
    (if (global.get $held) (then
      (drop (call $increment (global.get $ticks) (i64.const 1)))
      (drop (call $effective (global.get $held)))
      (drop (call $continue (i32.const 0)))
      (global.set $held (i32.const 0))))))"#;

const LOOPS: usize = 4;
const TRAPS: usize = 5;
const HELD: usize = 6;
const CALLS: usize = 7;
const CALLS_GRPC: usize = 8;
const QUEUES: usize = 9;
const STREAMS: usize = 10;
const PLAIN: usize = 3;

const START: u64 = 1_000_000;

fn entry(number: u64, at: Option<u64>, headers: usize) -> Result<Entry, BadEntry> {
    let mut request = Request { peer: format!("192.0.2.{number}:1"), ..Request::get("/") };
    while request.headers.len() < headers {
        request.headers.push((b"x".to_vec(), b"y".to_vec()));
    }
    let exchange = Exchange { request, ..Exchange::default() };
    let place = Place { file: "test".into(), number };
    let at_millis = at.map(|at| START + at);
    Ok(Entry { place, at_millis, status: None, notes: Vec::new(), exchange })
}

fn module() -> Module {
    Module::compile(&wat::parse_str(FILTER).unwrap()).unwrap()
}

/// Runs exchanges at times, on so many workers, with a script.
fn replay_on(
    module: &Module,
    entries: Vec<Result<Entry, BadEntry>>,
    workers: usize,
    script: &str,
) -> (Vec<Row>, Summary) {
    let (rows, summary) = replay_all(module, entries, workers, script);
    (rows.into_iter().map(Result::unwrap).collect(), summary)
}

/// [`replay_on`] with what cannot be read.
fn replay_all(
    module: &Module,
    entries: Vec<Result<Entry, BadEntry>>,
    workers: usize,
    script: &str,
) -> (Vec<Result<Row, BadEntry>>, Summary) {
    let script = Script::parse(script).unwrap();
    let start = |now| {
        let node = Node::new("node-1", now, 1);
        let wasm = Wasm::start(module, b"", &node, workers, &Options::default(), script);
        Ok(Box::new(wasm.map_err(|error| error.to_string())?) as Box<dyn Gateway>)
    };
    let mut rows = Vec::new();
    let summary = run(&mut entries.into_iter(), start, &Naming::default(), "", &mut |row| rows.push(row)).unwrap();
    (rows, summary)
}

fn replay(wanted: &[(Option<u64>, usize)], script: &str) -> (Vec<Row>, Summary) {
    let entries = (1..).zip(wanted).map(|(number, (at, headers))| entry(number, *at, *headers)).collect();
    replay_on(&module(), entries, 1, script)
}

fn statuses(rows: &[Row]) -> Vec<(Effect, u16, u64)> {
    rows.iter().map(|row| (row.effect, row.status, row.held_millis)).collect()
}

#[test]
fn what_is_held_holds_nobody_else_and_rows_keep_their_order() {
    let (rows, summary) = replay(&[(Some(0), PLAIN), (Some(20), HELD), (Some(30), PLAIN), (Some(150), PLAIN)], "[]");
    let found: Vec<_> = rows.iter().map(|row| (row.id.as_str(), row.at - START, row.held_millis)).collect();
    assert_eq!(found, [("test#1", 0, 0), ("test#2", 20, 80), ("test#3", 30, 0), ("test#4", 150, 0)]);
    assert_eq!((rows[1].effect, rows[2].effect, summary.waited), (Effect::Slowed, Effect::Passed, 3));
    // What is held last is waited for.
    let (rows, _) = replay(&[(Some(0), HELD)], "[]");
    assert_eq!(statuses(&rows), [(Effect::Slowed, 200, 100)]);
}

#[test]
fn the_clock_never_goes_back_and_stands_where_no_time_is_known() {
    let (rows, summary) = replay(&[(None, PLAIN), (Some(500), PLAIN), (Some(200), PLAIN), (None, PLAIN)], "[]");
    let times: Vec<_> = rows.iter().map(|row| row.at - START).collect();
    // The first time that is known is where it begins.
    assert_eq!((times, summary.span.0), (vec![500, 500, 500, 500], START + 500));
    assert!(rows[2].notes[0].contains("300 ms after its time"), "{:?}", rows[2].notes);
    assert!(rows[0].notes.is_empty() && rows[3].notes.is_empty());
    let (rows, _) = replay(&[(None, PLAIN)], "[]");
    assert_eq!(rows[0].at, START_MILLIS);
}

#[test]
fn a_month_without_traffic_is_no_month_of_ticks() {
    let month = 30 * 86_400_000;
    let (rows, summary) = replay(&[(Some(0), PLAIN), (Some(month + 30), HELD)], "[]");
    // The timer keeps its beat.
    assert_eq!((rows[1].at, rows[1].held_millis), (START + month + 30, 70));
    assert!(summary.skipped_ticks > 25_000_000, "{summary:?}");
    // A minute of ticks runs before anything is left out, and what is held is never left out.
    let (_, summary) = replay(&[(Some(0), PLAIN), (Some(50_000), PLAIN)], "[]");
    assert_eq!(summary.skipped_ticks, 0);
}

#[test]
fn a_trap_fails_its_vm_and_the_run_goes_on() {
    let (rows, _) = replay(&[(Some(0), HELD), (Some(10), TRAPS), (Some(20), PLAIN), (Some(30), HELD)], "[]");
    let found: Vec<_> = rows.iter().map(|row| (row.effect, row.status)).collect();
    let failed = (Effect::Failed, 503);
    assert_eq!(found, [failed, failed, (Effect::Passed, 200), (Effect::Slowed, 200)]);
    let fault = rows[1].fault.as_deref().unwrap();
    assert!(fault.starts_with("GET / HTTP/1.1 in on_request_headers\n"), "{fault}");
    assert!(fault.contains("unreachable") && fault.contains("backtrace"), "{fault}");
    assert!(rows[0].fault.as_deref().unwrap().contains("held this one and died of another"), "{:?}", rows[0].fault);
}

#[test]
fn a_timer_that_dies_is_told() {
    let wat = FILTER.replace(
        "(func (export \"proxy_on_tick\") (param i32)",
        "(func (export \"proxy_on_tick\") (param i32) unreachable",
    );
    let module = Module::compile(&wat::parse_str(wat).unwrap()).unwrap();
    let entries = vec![entry(1, Some(0), HELD), entry(2, Some(150), PLAIN), entry(3, Some(160), PLAIN)];
    let (rows, summary) = replay_on(&module, entries, 1, "[]");
    let found: Vec<_> = rows.iter().map(|row| (row.effect, row.notes.len())).collect();
    assert_eq!(found, [(Effect::Failed, 0), (Effect::Passed, 1), (Effect::Passed, 0)]);
    assert!(rows[1].notes[0].starts_with("a filter died in on_tick before this request"), "{:?}", rows[1].notes);
    assert!(summary.timer_faults.iter().all(|fault| fault.callback == "on_tick"));
    // Those behind the last entry are told as well.
    assert!(summary.timer_faults.len() > 10);
    // A filter that always dies is started anew for a minute of a gap, and then left alone.
    let entries = vec![entry(1, Some(0), PLAIN), entry(2, Some(86_400_000), PLAIN)];
    let (rows, summary) = replay_on(&module, entries, 1, "[]");
    assert_eq!((rows[1].effect, summary.timer_faults.len()), (Effect::Passed, MAX_FAULTS));
    assert!(summary.skipped_ticks > 860_000, "{}", summary.skipped_ticks);
}

#[test]
fn a_filter_that_never_returns_is_ended() {
    let module = Module::guarded(&wat::parse_str(FILTER).unwrap(), Duration::from_millis(100)).unwrap();
    let entries = vec![entry(1, None, LOOPS), entry(2, None, PLAIN)];
    let (rows, _) = replay_on(&module, entries, 1, "[]");
    assert_eq!(statuses(&rows), [(Effect::Failed, 503, 0), (Effect::Passed, 200, 0)]);
    let fault = rows[0].fault.as_deref().unwrap();
    assert!(fault.contains("did not return in time") && fault.contains("on_request_headers"), "{fault}");
}

#[test]
fn calls_without_a_script_find_nobody() {
    let (rows, summary) = replay(&[(Some(0), CALLS), (Some(5), CALLS_GRPC), (Some(10), STREAMS)], "[]");
    assert_eq!(summary.metrics["arrivals"], 100, "a stream ends with its trailers");
    let blocked = |status| (Effect::Blocked, status, 1);
    assert_eq!(statuses(&rows), [blocked(463), blocked(494), blocked(494)]);
}

#[test]
fn a_script_answers_calls_at_their_times() {
    let script = r#"
- match: { kind: http, cluster: c, path: /x*, method: get }
  answer: { status: 201, headers: { X-Any: y }, body: ok, after_millis: 40 }
- match: { kind: grpc, path: /a.Service/Method }
  answer: { body_base64: AAE=, headers: { M: x }, after_millis: 250 }
"#;
    let calls = [(Some(0), CALLS), (Some(5), CALLS_GRPC), (Some(10), PLAIN), (Some(20), STREAMS)];
    let (rows, summary) = replay(&calls, script);
    assert_eq!(summary.metrics["arrivals"], 1, "a stream begins with its headers");
    let slowed = |millis| (Effect::Slowed, 200, millis);
    assert_eq!(statuses(&rows), [slowed(40), slowed(250), (Effect::Passed, 200, 0), slowed(250)]);
    // JSON is YAML; failures are as a gateway tells them: 504 late, no headers at all after a reset.
    let call = |answer: &str| replay(&[(Some(0), CALLS)], &format!(r#"[{{"answer": {{{answer}}}}}]"#)).0;
    assert_eq!(statuses(&call(r#""after_millis": 2000, "body": "ok""#)), [(Effect::Blocked, 464, 1000)]);
    assert_eq!(statuses(&call(r#""fail": "timeout""#)), [(Effect::Blocked, 464, 1000)]);
    assert_eq!(statuses(&call(r#""fail": "reset", "after_millis": 7"#)), [(Effect::Blocked, 400, 7)]);
    let call = |answer: &str| replay(&[(Some(0), CALLS_GRPC)], &format!("[{{answer: {{{answer}}}}}]")).0;
    assert_eq!(statuses(&call("status: 7, body: no")), [(Effect::Blocked, 487, 1)]);
    assert_eq!(statuses(&call("fail: timeout")), [(Effect::Blocked, 484, 1000)]);
}

#[test]
fn a_script_that_is_none_is_refused_with_its_place() {
    for (text, why) in [
        ("- answer: { stauts: 200 }", "stauts"),
        ("- answer: { fail: late }", "late"),
        ("- match: { kind: http }\n  answer: { status: 99 }", "rule 1: an HTTP status"),
        ("- answer: { fail: reset, status: 200 }", "rule 1: `fail`"),
        ("- answer: { body_base64: '%' }", "rule 1: `body_base64`"),
        ("answer: {}", ""),
    ] {
        let error = Script::parse(text).unwrap_err();
        assert!(error.contains(why), "{text}: {error}");
    }
    assert!(Script::read("/no/such/file".as_ref()).unwrap_err().contains("/no/such/file"));
}

#[test]
fn a_queue_wakes_the_worker_that_registered_it_last() {
    for workers in [1, 3] {
        let entries = (1..=8).map(|number| entry(number, Some(number * 10), QUEUES)).collect();
        let (rows, summary) = replay_on(&module(), entries, workers, "[]");
        assert!(rows.iter().all(|row| row.effect == Effect::Passed));
        assert_eq!(summary.metrics["arrivals"], 8);
    }
}

#[test]
fn connections_stay_with_their_worker() {
    // Of three workers one dies: what the others hold lives on.
    let entries = |second: usize| {
        let mut entries: Vec<_> = (1..=9).map(|number| entry(number, Some(number), HELD)).collect();
        entries.push(entry(1, Some(10), second));
        entries
    };
    let (rows, _) = replay_on(&module(), entries(TRAPS), 3, "[]");
    let failed = rows.iter().filter(|row| row.effect == Effect::Failed).count();
    assert!((2..9).contains(&failed), "{failed}");
    assert_eq!(rows[0].effect, Effect::Failed, "the same connection, the same worker");
    let (again, _) = replay_on(&module(), entries(TRAPS), 3, "[]");
    let effects = |rows: &[Row]| rows.iter().map(|row| row.effect).collect::<Vec<_>>();
    assert_eq!(effects(&rows), effects(&again));
}

#[test]
fn what_cannot_be_read_comes_in_its_place() {
    let bad = BadEntry { place: Place { file: "a\x1b[31m".into(), number: 2 }, why: "line 7:\x07 no JSON".into() };
    // The first is held, so the others wait for it.
    let entries = vec![entry(1, Some(0), HELD), Err(bad), entry(3, None, PLAIN)];
    let (rows, summary) = replay_all(&module(), entries, 1, "[]");
    assert_eq!((summary.ran, summary.bad, rows.len()), (2, 1, 3));
    assert!(rows[0].is_ok() && rows[2].is_ok());
    assert_eq!(rows[1].as_ref().unwrap_err().to_string(), "a\\u{1b}[31m#2: line 7:\\u{7} no JSON");
}

#[test]
fn callers_are_named_as_the_filters_name_them() {
    let caller = |identity: IdentitySource, path: &str, headers: &[(&str, &str)]| {
        let mut request = Request { peer: "[::ffff:192.0.2.9]:1".into(), ..Request::get(path) };
        request.headers.extend(headers.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        // So many that the filter has nothing to do for them.
        request.headers.extend(vec![(b"x".to_vec(), b"y".to_vec()); STREAMS]);
        let exchange = Exchange { request, ..Exchange::default() };
        let place = Place { file: "test".into(), number: 1 };
        let entry = Entry { place, at_millis: None, status: Some(404), notes: Vec::new(), exchange };
        let (mut rows, module) = (Vec::new(), module());
        let start = |now| {
            let node = Node::new("node-1", now, 1);
            let wasm = Wasm::start(&module, b"", &node, 1, &Options::default(), Script::default());
            Ok(Box::new(wasm.unwrap()) as Box<dyn Gateway>)
        };
        run(&mut [Ok(entry)].into_iter(), start, &Naming { identity }, "", &mut |row| rows.push(row.unwrap())).unwrap();
        assert_eq!((rows[0].recorded_status, rows[0].action.as_str()), (Some(404), "none"));
        rows.remove(0).caller
    };
    let plain = IdentitySource::default();
    assert_eq!(caller(plain.clone(), "/", &[("x-forwarded-for", "198.51.100.1")]), "192.0.2.9");
    let label = IdentitySource { user_header: "x-user".into(), ..plain.clone() };
    assert_eq!(caller(label, "/", &[("x-user", "ada")]), "192.0.2.9", "it is not verified");
    let verifiers = vec![Verifier { header: "x-user".into(), ..Verifier::default() }];
    let user = IdentitySource { verifiers, ..plain.clone() };
    assert_eq!(caller(user, "/", &[("x-user", "a\u{202e}b")]), "user:a\\u{202e}b");
    let api_keys = vec![ApiKeyDigest { id: "k1".into(), sha256: content_hash(b"secret").to_vec() }];
    let key = IdentitySource { api_key_query: "key".into(), api_keys, ..plain };
    assert_eq!(caller(key.clone(), "/?key=secret", &[]), "apikey:k1");
    assert_eq!(caller(key, "/?key=k1", &[]), "192.0.2.9");
}

#[test]
fn texts_do_nothing_to_a_terminal() {
    let show = |bytes: &[u8]| printable(bytes, 20);
    assert_eq!(show("/grün?q=\u{202e}x".as_bytes()), "/grün?q=\\u{202e}x");
    assert_eq!(show(b"\x1b[2J\xff\r\n"), "\\u{1b}[2J\\xff\\r\\n");
    assert_eq!(show(&[b'a'; 21]), format!("{}…", "a".repeat(20)));
}

#[test]
fn a_ban_of_one_worker_goes_to_all_and_to_those_that_come_later() {
    let mut control = ControlPlane::default();
    // Every worker is greeted; the bans that stand come with it.
    let told = |answers: &[Answer]| -> Vec<usize> {
        let message = |answer: &Answer| match &answer.delivery {
            Delivery::Message(message) => Down::decode(message.as_slice()).unwrap().bans.len(),
            other => panic!("{other:?}"),
        };
        answers.iter().map(message).collect()
    };
    assert_eq!((told(&control.open(1, 11, 0)), told(&control.open(2, 22, 0))), (vec![0], vec![0]));
    let ban = |key: &str, until_millis| BanRequest { key: key.into(), until_millis, ..BanRequest::default() };
    let up = Up { events: vec![b"{}".to_vec()], bans: vec![ban("ip:192.0.2.1", 50)], dropped: 3, ..Up::default() };
    let answers = control.hear(1, 11, &up.encode_to_vec());
    let to: Vec<_> = answers.iter().map(|answer| (answer.worker, answer.token)).collect();
    assert_eq!(to, [(1, 11), (2, 22)]);
    let Delivery::Message(message) = &answers[1].delivery else { panic!("{answers:?}") };
    assert_eq!(Down::decode(message.as_slice()).unwrap().bans[0].key, "ip:192.0.2.1");
    assert_eq!(told(&control.open(3, 33, 49)), [1]);
    assert_eq!(told(&control.open(4, 44, 50)), [0], "it is over");
    // What is no message, and what comes on another stream, changes nothing.
    assert!(control.hear(1, 11, b"\xff").is_empty() && control.hear(1, 12, &up.encode_to_vec()).is_empty());
    control.gone(2);
    control.close(4, 44);
    assert_eq!(control.hear(1, 11, &up.encode_to_vec()).len(), 2);
    assert_eq!(control.counts(), Counts { events: 2, dropped: 6, bans: 2, loads: 0, unreadable: 1 });
    let many = Up { bans: (0..100_010).map(|at| ban(&format!("ip:{at}"), 100 + at)).collect(), ..Up::default() };
    // Of too many, those that end first go.
    control.hear(1, 11, &many.encode_to_vec()[..]);
    assert_eq!(control.bans(), 100_000);
}
