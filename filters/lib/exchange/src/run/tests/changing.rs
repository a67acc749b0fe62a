//! Messages that plugins change, on their way through a chain.

use super::*;

/// A filter of its own with these steps, which shares requests with others.
fn shared(script: &str) -> Chain {
    let snapshot = Snapshot { filter: "waf".into(), global: vec![step(script)], ..Snapshot::default() };
    Chain::load(&snapshot, REGISTRY).unwrap()
}

fn changed(run: &mut Run, half: Half) -> Vec<String> {
    run.take_changes(half).iter().map(|change| format!("{change:?}").split(' ').next().unwrap().to_owned()).collect()
}

#[test]
fn changes_wait_for_the_end_of_the_message_and_go_once() {
    let host = FakeHost::at(0);
    let mut on = run(&[step("a:change"), step("r:9 b:change"), step("b:note")], &host);
    assert_eq!(on.request_headers(true, &host), Flow::Buffer { limit: 9 });
    assert_eq!(on.exchange().request.headers.all("x-changed").count(), 1);
    assert_eq!(on.request_body(body(b"abc", true), &host), Flow::Continue);
    assert_eq!(changed(&mut on, Half::Request), ["Add", "Add"]);
    assert!(changed(&mut on, Half::Request).is_empty());
    let response = Response { status: 200, ..Response::default() };
    assert_eq!(on.response_headers(response, false, &host), Flow::Continue);
}

#[test]
fn a_refusal_discards_changes() {
    let host = FakeHost::at(0);
    let mut refused = run(&[step("a:change"), step("r:refuse")], &host);
    assert!(
        matches!(refused.request_headers(false, &host), Flow::Answer(reply) if reply.headers.iter().all(|(name, _)| name != "x-changed"))
    );
    assert!(changed(&mut refused, Half::Request).is_empty());
    let mut of_response = run(&[step("s:9 t:replace"), step("s:refuse")], &host);
    assert_eq!(of_response.request_headers(false, &host), Flow::Continue);
    let headers = Headers::from([("content-length", "3")]);
    let response = Response { status: 200, headers, streaming: false };
    assert_eq!(of_response.response_headers(response, true, &host), Flow::Buffer { limit: 9 });
    assert!(matches!(of_response.response_body(body(b"abc", true), &host), Flow::Answer(_)));
    assert!(changed(&mut of_response, Half::Response).is_empty());
    assert_eq!(of_response.take_replaced_body(), None);
}

#[test]
fn a_body_is_replaced_only_as_a_whole_and_in_hand() {
    let host = FakeHost::at(0);
    let mut part = run(&[step("r:3 b:replace")], &host);
    assert_eq!(part.request_headers(true, &host), Flow::Buffer { limit: 3 });
    assert!(matches!(part.request_body(body(b"abc", false), &host), Flow::Answer(reply) if reply.status == 500));
    assert_eq!(part.take_replaced_body(), None);
    let mut pieces = run(&[step("r:read3 p:pass b:replace")], &host);
    assert_eq!(pieces.request_headers(true, &host), Flow::Read { limit: 3 });
    assert!(matches!(pieces.request_end(false, &host), Flow::Answer(reply) if reply.status == 500));
    let mut at_headers = run(&[step("r:replace")], &host);
    assert_eq!(at_headers.request_headers(true, &host), Flow::Continue);
    assert_eq!(
        (at_headers.take_replaced_body(), host.logged.borrow().last().unwrap().contains("no body in hand")),
        (None, true)
    );
    // The headers are gone, as where a gateway does not hold them.
    let mut gone = run(&[step("r:9 b:replace")], &host);
    assert_eq!(gone.request_headers(true, &host), Flow::Buffer { limit: 9 });
    assert!(changed(&mut gone, Half::Request).is_empty());
    assert!(matches!(gone.request_body(body(b"abc", true), &host), Flow::Answer(reply) if reply.status == 500));
}

#[test]
fn a_replaced_body_is_whole_for_later_steps_as_far_as_they_ask() {
    let host = FakeHost::at(0);
    // The new body is `[masked]`, of eight bytes.
    let steps = [step("r:20 b:replace"), step("r:4 b:note"), step("r:9 b:replace"), step("r:read4 p:note")];
    let mut on = run(&steps, &host);
    assert_eq!(on.request_headers(true, &host), Flow::Buffer { limit: 20 });
    assert_eq!(on.request_body(body(b"abcdefghijkl", true), &host), Flow::Continue);
    assert_eq!(kinds(&on), ["b:[mas", "p:[mas"]);
    assert_eq!(on.take_replaced_body().as_deref(), Some(&b"[masked]"[..]));
    // A question between them: the gateway hands over what it has, which is longer than the limit.
    let mut asked = run(&[step("r:20 b:replace"), step("r:ask"), step("r:9 b:replace")], &host);
    assert_eq!(asked.request_headers(true, &host), Flow::Buffer { limit: 20 });
    assert!(matches!(asked.request_body(body(b"abcdefghijkl", true), &host), Flow::Ask(_)));
    assert_eq!(asked.answered(yes(), &host), Flow::Buffer { limit: 9 });
    assert_eq!(asked.request_body(body(b"abcdefghi", false), &host), Flow::Continue);
    assert_eq!(asked.take_replaced_body().as_deref(), Some(&b"[masked]"[..]));
}

#[test]
fn the_answer_of_another_filter_is_not_changed() {
    let host = FakeHost::at(0);
    let (first, second) = (shared("a:change s:change"), shared("r:refuse"));
    let mut in_front = run_on(&first, "r", "/", false, &host);
    assert_eq!(in_front.request_headers(false, &host), Flow::Continue);
    let mut behind = run_on(&second, "r", "/", false, &host);
    assert!(matches!(behind.request_headers(false, &host), Flow::Answer(_)));
    let response = Response { status: 403, ..Response::default() };
    assert_eq!(in_front.response_headers(response, true, &host), Flow::Continue);
    assert!(changed(&mut in_front, Half::Response).is_empty());
    assert!(in_front.exchange().response.is_none(), "as where both are one filter");
}

#[test]
fn trailers_of_a_response_are_shown_once_it_has_gone() {
    let host = FakeHost::at(0);
    let mut on = run(&[step("u:note"), step("s:9 t:note")], &host);
    assert!(!on.wants_response_trailers());
    assert_eq!(on.request_headers(false, &host), Flow::Continue);
    let response = Response { status: 200, ..Response::default() };
    assert_eq!(on.response_headers(response, true, &host), Flow::Buffer { limit: 9 });
    let trailers = Headers::from([("t", "sum")]);
    assert!(on.wants_response_trailers());
    on.response_trailers(&trailers, &host);
    assert!(kinds(&on).is_empty(), "the body is held");
    assert_eq!(on.response_body(body(b"abc", true), &host), Flow::Continue);
    on.response_trailers(&trailers, &host);
    assert_eq!(kinds(&on), ["t:abc", "u:sum"]);
}
