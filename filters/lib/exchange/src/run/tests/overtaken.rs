//! Responses that come before the end of their request.

use super::*;

fn respond(run: &mut Run, host: &FakeHost) -> Flow {
    run.response_headers(Response { status: 200, ..Response::default() }, false, host)
}

#[test]
fn a_step_that_waits_for_the_body_judges_the_request_without_it() {
    let host = FakeHost::default();
    for need in ["r:8", "r:read8"] {
        let steps = [step(&format!("{need} p:note b:note")), step("r:4 b:note s:note"), step("r:note s:note")];
        let mut on = run(&steps, &host);
        assert!(matches!(on.request_headers(true, &host), Flow::Buffer { .. } | Flow::Read { .. }));
        assert_eq!(on.overtaken(&host), Some(Flow::Continue));
        assert_eq!(kinds(&on), ["b:", "b:", "r:"], "{need}");
        assert_eq!(respond(&mut on, &host), Flow::Continue);
        assert_eq!(kinds(&on), ["b:", "b:", "r:", "s:", "s:"], "{need}: the response has its phases");
        // What comes of it later is nothing to any step.
        assert_eq!(on.request_body(body(b"late", true), &host), Flow::Continue);
        assert_eq!(on.request_piece(b"late", &host), Flow::Continue);
        assert_eq!((on.request_end(true, &host), on.rest_from()), (Flow::Continue, None));
        assert_eq!(kinds(&on).len(), 5);
    }
    // After some pieces.
    let mut on = run(&[step("r:read8 p:note b:note e:note")], &host);
    assert_eq!(on.request_headers(true, &host), Flow::Read { limit: 8 });
    assert_eq!(on.request_piece(b"abc", &host), Flow::Read { limit: 8 });
    assert_eq!((on.overtaken(&host), on.rest_from()), (Some(Flow::Continue), None));
    assert_eq!(kinds(&on), ["p:abc", "b:"]);
}

#[test]
fn what_it_refuses_is_answered_in_place_of_the_response() {
    let host = FakeHost::default();
    for steps in
        [vec![step("r:8 b:refuse")], vec![step("r:8"), step("r:refuse")], vec![step("r:8"), step("r:4 b:refuse")]]
    {
        let mut on = run(&steps, &host);
        assert_eq!(on.request_headers(true, &host), Flow::Buffer { limit: 8 });
        assert!(matches!(on.overtaken(&host), Some(Flow::Answer(reply)) if reply.status == 403));
        assert_eq!(respond(&mut on, &host), Flow::Continue);
        assert!(on.exchange().response.is_none(), "it is not the backend's");
    }
}

#[test]
fn the_response_waits_for_an_answer_and_for_a_delay() {
    let host = FakeHost::default();
    let mut on = run(&[step("r:8"), step("r:ask yes:note"), step("r:hold"), step("r:4 b:note s:note")], &host);
    assert_eq!(on.request_headers(true, &host), Flow::Buffer { limit: 8 });
    assert!(matches!(on.overtaken(&host), Some(Flow::Ask(_))));
    assert_eq!(on.answered(yes(), &host), Flow::Hold { millis: 500 });
    assert_eq!(on.resume(&host), Flow::Continue);
    assert_eq!(respond(&mut on, &host), Flow::Continue);
    assert_eq!(kinds(&on), ["yes:", "b:", "s:"]);
    // It comes while they are under way.
    let mut on = run(&[step("r:8 b:ask yes:replace"), step("r:hold"), step("r:4 b:note s:note")], &host);
    assert_eq!(on.request_headers(true, &host), Flow::Buffer { limit: 8 });
    assert!(matches!(on.request_body(body(b"secret", true), &host), Flow::Ask(_)));
    assert_eq!(on.overtaken(&host), None);
    assert_eq!(on.answered(yes(), &host), Flow::Hold { millis: 500 });
    assert_eq!(on.overtaken(&host), None);
    assert_eq!(on.resume(&host), Flow::Continue);
    assert_eq!(respond(&mut on, &host), Flow::Continue);
    assert_eq!((kinds(&on), on.take_replaced_body()), (vec!["b:".to_owned(), "s:".to_owned()], None));
    // A step that asks without its body may want it after the answer as well.
    let mut on = run(&[step("r:8 b:ask yes:4"), step("r:note")], &host);
    assert_eq!(on.request_headers(true, &host), Flow::Buffer { limit: 8 });
    assert!(matches!(on.overtaken(&host), Some(Flow::Ask(_))));
    assert_eq!((on.answered(yes(), &host), kinds(&on)), (Flow::Continue, vec!["r:".to_owned()]));
}

#[test]
fn a_request_that_went_on_is_not_overtaken() {
    let host = FakeHost::default();
    let mut on = run(&[step("r:4 b:change s:note")], &host);
    assert_eq!(on.request_headers(true, &host), Flow::Buffer { limit: 4 });
    assert_eq!(on.request_body(body(b"abcd", false), &host), Flow::Continue);
    assert_eq!(on.overtaken(&host), Some(Flow::Continue));
    assert_eq!(respond(&mut on, &host), Flow::Continue);
    assert_eq!((kinds(&on).len(), on.take_changes(Half::Request).len()), (1, 1));
    // One whose response is there before it has nothing that could still be changed.
    let mut on = run(&[step("r:change"), step("r:4 s:note")], &host);
    assert_eq!(on.request_headers(true, &host), Flow::Buffer { limit: 4 });
    assert_eq!(on.overtaken(&host), Some(Flow::Continue));
    assert_eq!(respond(&mut on, &host), Flow::Continue);
    assert_eq!((kinds(&on).len(), on.take_changes(Half::Request).len()), (1, 0));
}
