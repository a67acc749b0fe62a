use super::abi::{Status, decode_pairs, encode_pairs};
use super::*;
use crate::traffic::{Exchange, Request, Response};

/// A filter that does one thing for each number of headers.
const FILTER: &str = r#"(module
  (import "env" "proxy_send_local_response" (func $reply (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "env" "proxy_set_tick_period_milliseconds" (func $tick_period (param i32) (result i32)))
  (import "env" "proxy_continue_stream" (func $continue (param i32) (result i32)))
  (import "env" "proxy_set_effective_context" (func $effective (param i32) (result i32)))
  (import "env" "proxy_set_buffer_bytes" (func $set_buffer (param i32 i32 i32 i32 i32) (result i32)))
  (import "env" "proxy_get_property" (func $get_property (param i32 i32 i32 i32) (result i32)))
  (import "env" "proxy_set_property" (func $set_property (param i32 i32 i32 i32) (result i32)))
  (import "env" "proxy_log" (func $log (param i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 16) "secret")
  (data (i32.const 32) "xds\00route_name")
  (data (i32.const 64) "svc.route")
  (global $top (mut i32) (i32.const 4096))
  (global $held (mut i32) (i32.const 0))
  (global $buffering (mut i32) (i32.const 0))
  (func (export "proxy_on_memory_allocate") (param $size i32) (result i32)
    global.get $top
    (global.set $top (i32.add (global.get $top) (local.get $size))))
  (func (export "proxy_on_context_create") (param i32 i32))
  (func (export "proxy_on_configure") (param i32) (param $size i32) (result i32)
    (drop (call $tick_period (i32.const 100)))
    (drop (call $log (i32.const 4) (i32.const 16) (i32.const 6)))
    (i32.ne (local.get $size) (i32.const 13)))
  (func (export "proxy_on_request_headers") (param $context i32) (param $count i32) (param i32) (result i32)
    (global.set $buffering (i32.eq (local.get $count) (i32.const 6)))
    (if (i32.eq (local.get $count) (i32.const 4)) (then unreachable))
    (if (i32.eq (local.get $count) (i32.const 5)) (then
      (drop (call $reply (i32.const 418) (i32.const 16) (i32.const 6) (i32.const 16) (i32.const 6)
        (i32.const 0) (i32.const 0) (i32.const -1)))
      (return (i32.const 1))))
    (if (i32.eq (local.get $count) (i32.const 7)) (then (global.set $held (local.get $context))))
    (if (i32.eq (local.get $count) (i32.const 9)) (then
      (drop (call $get_property (i32.const 32) (i32.const 14) (i32.const 0) (i32.const 4)))
      (drop (call $set_property (i32.const 64) (i32.const 9) (i32.load (i32.const 0)) (i32.load (i32.const 4))))
      (return (i32.const 0))))
    (i32.ge_u (local.get $count) (i32.const 6)))
  (func (export "proxy_on_request_body") (param i32) (param i32) (param $end i32) (result i32)
    (if (i32.eqz (global.get $buffering)) (then (return (i32.const 0))))
    (if (i32.eqz (local.get $end)) (then (return (i32.const 1))))
    (call $set_buffer (i32.const 0) (i32.const 0) (i32.const 0x7fffffff) (i32.const 16) (i32.const 6)))
  (func (export "proxy_on_response_headers") (param i32 i32 i32) (result i32) i32.const 0)
  (func (export "proxy_on_response_body") (param i32 i32 i32) (result i32) i32.const 0)
  (func (export "proxy_on_tick") (param i32)
    (if (global.get $held) (then
      (drop (call $effective (global.get $held)))
      (drop (call $continue (i32.const 0)))
      (global.set $held (i32.const 0)))))
  (func (export "proxy_on_log") (param i32) (drop (call $log (i32.const 2) (i32.const 16) (i32.const 6)))))"#;

fn vm() -> Vm {
    let options = Options { chunk: 4, buffer_limit: 64, ..Options::default() };
    Vm::with_options(&module(), b"any", &Node::new("node-1", 1000, 1), options).unwrap()
}

fn module() -> Module {
    Module::compile(&wat::parse_str(FILTER).unwrap()).unwrap()
}

/// An exchange whose request has so many headers.
fn with_headers(count: usize, body: &[u8]) -> Exchange {
    let mut request = Request { body: body.to_vec(), route: "route-1".into(), ..Request::get("/a b") };
    while request.headers.len() < count {
        request.headers.push((b"x".to_vec(), b"y".to_vec()));
    }
    let headers = vec![(b"content-type".to_vec(), b"text/plain".to_vec())];
    Exchange { request, response: Response { headers, body: b"hello world".to_vec(), ..Response::default() } }
}

#[test]
fn what_no_filter_touches_arrives_as_it_was_sent() {
    let exchange = with_headers(3, b"some longer body");
    let outcome = vm().exchange(&exchange);
    assert_eq!((outcome.status, outcome.reached_backend, &outcome.local_reply), (200, true, &None));
    assert_eq!((outcome.request_body, outcome.body), (exchange.request.body, exchange.response.body));
    assert_eq!(outcome.request_headers, exchange.request.headers);
    assert_eq!(outcome.response_headers[0], (b":status".to_vec(), b"200".to_vec()));
    // The last line is the one of on_log.
    assert_eq!(outcome.logs.last().unwrap().text, "secret");
}

#[test]
fn an_answer_takes_the_backends_place() {
    let outcome = vm().exchange(&with_headers(5, b""));
    let reply = outcome.local_reply.unwrap();
    assert_eq!((outcome.status, outcome.reached_backend, outcome.body.as_slice()), (418, false, &b"secret"[..]));
    assert_eq!((reply.status, reply.details.as_str()), (418, "secret"));
    assert!(outcome.response_headers.contains(&(b"content-length".to_vec(), b"6".to_vec())));
}

#[test]
fn a_held_body_is_whole_at_its_end_and_can_be_replaced() {
    let mut vm = vm();
    assert_eq!(vm.exchange(&with_headers(6, b"123456789")).request_body, b"secret");
    // Not more is held back than the gateway buffers.
    let outcome = vm.exchange(&with_headers(6, &[b'a'; 65]));
    assert_eq!((outcome.status, outcome.reached_backend), (413, false));
}

#[test]
fn time_stands_until_somebody_waits_and_timers_are_on_time() {
    let mut vm = vm();
    assert_eq!(vm.exchange(&with_headers(3, b"")).held_millis, 0);
    assert_eq!(vm.node().now_millis(), 1000);
    let outcome = vm.exchange(&with_headers(7, b""));
    assert_eq!((outcome.status, outcome.held_millis, vm.node().now_millis()), (200, 100, 1100));
    vm.advance(250).unwrap();
    assert_eq!(vm.node().now_millis(), 1350);
    // The next tick is 50 ms away.
    assert_eq!(vm.exchange(&with_headers(7, b"")).held_millis, 50);
}

#[test]
fn who_is_never_let_go_gets_a_timeout() {
    let mut vm = vm();
    let outcome = vm.exchange(&with_headers(8, b""));
    assert!(outcome.stalled && !outcome.reached_backend);
    assert_eq!(outcome.status, 408);
    assert_eq!(vm.node().now_millis(), 301_000);
}

#[test]
fn a_trap_is_told_with_its_place_and_the_next_exchange_goes_on() {
    let mut vm = vm();
    let outcome = vm.exchange(&with_headers(4, b""));
    let fault = outcome.fault.unwrap();
    assert_eq!((outcome.status, fault.callback.as_str()), (503, "on_request_headers"));
    assert_eq!(fault.request, "GET /a b HTTP/1.1");
    assert!(fault.message.contains("unreachable") && fault.message.contains("backtrace"), "{}", fault.message);
    assert_eq!(vm.exchange(&with_headers(3, b"")).status, 200);
    // The timers of the new VM run as well.
    assert_eq!(vm.exchange(&with_headers(7, b"")).held_millis, 100);
}

#[test]
fn filter_state_and_the_routes_name_are_properties() {
    let outcome = vm().exchange(&with_headers(9, b""));
    assert_eq!(outcome.filter_state.get("svc.route").map(Vec::as_slice), Some(&b"route-1"[..]));
}

#[test]
fn a_refused_configuration_and_an_unknown_import_are_named() {
    let error = Vm::load(&module(), b"thirteen long", &Node::new("", 0, 0)).err().unwrap();
    assert_eq!(error.to_string(), "the filter refuses its configuration: secret");
    let wat = r#"(module (import "env" "proxy_unheard_of" (func)))"#;
    let error = Module::compile(&wat::parse_str(wat).unwrap()).err().unwrap().to_string();
    assert!(error.contains("proxy_unheard_of"), "{error}");
    assert!(Module::compile(b"no module").is_err());
}

#[test]
fn shared_data_knows_who_came_first() {
    let node = Node::new("", 0, 0);
    node.set_shared(b"k".to_vec(), b"1".to_vec(), 77).unwrap();
    let (_, token) = node.get_shared(b"k").unwrap();
    node.clone().set_shared(b"k".to_vec(), b"2".to_vec(), token).unwrap();
    assert_eq!(node.set_shared(b"k".to_vec(), b"3".to_vec(), token), Err(Status::CasMismatch));
    node.set_shared(b"k".to_vec(), b"4".to_vec(), 0).unwrap();
    assert_eq!(node.shared_data(b"k").unwrap(), b"4");
}

#[test]
fn queues_hand_out_in_order() {
    let node = Node::new("", 0, 0);
    let id = node.register_queue(b"q".to_vec(), 1);
    assert_eq!((node.register_queue(b"q".to_vec(), 1), node.resolve_queue(b"r")), (id, None));
    node.enqueue(id, b"1".to_vec()).unwrap();
    node.enqueue(id, b"2".to_vec()).unwrap();
    assert_eq!([node.dequeue(id), node.dequeue(id)], [Ok(b"1".to_vec()), Ok(b"2".to_vec())]);
    assert_eq!((node.dequeue(id), node.dequeue(id + 1)), (Err(Status::Empty), Err(Status::NotFound)));
}

#[test]
fn pairs_survive_and_odd_ones_are_refused() {
    let pairs = vec![(b":path".to_vec(), b"/\xff".to_vec()), (b"x".to_vec(), Vec::new())];
    let encoded = encode_pairs(&pairs).unwrap();
    assert_eq!(decode_pairs(&encoded), Some(pairs));
    assert_eq!(decode_pairs(b""), Some(Vec::new()));
    for cut in 1..encoded.len() {
        assert_eq!(decode_pairs(&encoded[..cut]), None, "{cut}");
    }
    assert_eq!(encode_pairs(&vec![(b"x".to_vec(), Vec::new()); 1025]), None);
}

#[test]
fn headers_change_as_the_gateway_changes_them() {
    let pair = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
    let mut map = vec![pair("a", "1"), pair("b", "2"), pair("a", "3")];
    headers::replace(&mut map, b"A", b"4".to_vec());
    assert_eq!(map, [pair("a", "4"), pair("b", "2")]);
    headers::replace(&mut map, b"c", b"5".to_vec());
    headers::add(&mut map, b"B", b"6".to_vec());
    headers::remove(&mut map, b"a");
    assert_eq!(map, [pair("b", "2"), pair("c", "5"), pair("b", "6")]);
    let mut buffer = b"abc".to_vec();
    headers::splice(&mut buffer, 0, 0, b"x".to_vec()).unwrap();
    headers::splice(&mut buffer, 4, 0, b"y".to_vec()).unwrap();
    assert_eq!(buffer, b"xabcy");
    assert!(headers::splice(&mut buffer, 1, 1, Vec::new()).is_err());
    headers::splice(&mut buffer, 0, 99, Vec::new()).unwrap();
    assert!(buffer.is_empty());
}

#[test]
fn a_root_context_that_lives_has_its_timer_and_can_be_gone_back_to() {
    let mut vm = vm();
    let first = vm.root();
    vm.advance(50).unwrap();
    assert_eq!(vm.reconfigure_beside(b"other").unwrap(), first);
    let second = vm.root();
    assert_ne!(first, second);
    // Each has its own timer: the first one's comes sooner.
    assert_eq!(vm.exchange(&with_headers(7, b"")).held_millis, 50);
    assert_eq!(vm.exchange(&with_headers(7, b"")).held_millis, 50);
    vm.go_back(first);
    assert_eq!(vm.root(), first);
    vm.end_root(second).unwrap();
    vm.advance(20).unwrap();
    assert_eq!(vm.exchange(&with_headers(7, b"")).held_millis, 30, "the timer of the first one alone");
    assert_eq!(vm.exchange(&with_headers(7, b"")).held_millis, 100);
    // A configuration that is refused leaves the one that was there, and its timer.
    assert!(vm.reconfigure(b"thirteen byte").is_err());
    assert_eq!((vm.root(), vm.exchange(&with_headers(7, b"")).held_millis), (first, 100));
}
