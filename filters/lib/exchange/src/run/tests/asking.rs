//! Questions in every phase.

use super::*;
use crate::MAX_FOLLOW_UPS;

/// The phase that has asked, and how long it waits.
fn asked(flow: &Flow) -> (&str, u32) {
    let Flow::Ask(ask) = flow else { panic!("no question: {flow:?}") };
    (std::str::from_utf8(&ask.question.data).unwrap(), ask.millis)
}

fn respond(run: &mut Run, has_body: bool, host: &FakeHost) -> Flow {
    run.response_headers(Response { status: 200, ..Response::default() }, has_body, host)
}

#[test]
fn a_question_with_the_body_in_hand_leaves_it_to_the_steps_behind() {
    let host = FakeHost::default();
    let steps = [step("r:8 b:ask yes:note"), step("r:4 b:note"), step("r:6 b:ask yes:replace"), step("r:9 b:note")];
    let mut on = run(&steps, &host);
    assert_eq!(on.request_headers(true, &host), Flow::Buffer { limit: 8 });
    assert_eq!(asked(&on.request_body(body(b"abcdef", true), &host)), ("b:", 100));
    assert_eq!(on.request_body(body(b"abcdef", true), &host), Flow::Continue, "it still waits");
    assert_eq!(on.answered(yes(), &host), Flow::Buffer { limit: 4 });
    assert_eq!(on.request_body(body(b"abcd", false), &host), Flow::Buffer { limit: 6 });
    assert_eq!(asked(&on.request_body(body(b"abcdef", true), &host)), ("b:", 100));
    assert_eq!(on.answered(yes(), &host), Flow::Buffer { limit: 9 });
    assert_eq!(on.request_body(body(b"abcdef", true), &host), Flow::Continue);
    assert_eq!(kinds(&on), ["yes:", "b:abcd", "b:[masked]"]);
    assert_eq!(on.take_replaced_body().as_deref(), Some(b"[masked]".as_slice()));
}

#[test]
fn a_step_that_is_asked_with_the_body_there_may_ask_as_well() {
    let host = FakeHost::default();
    let mut on = run(&[step("r:4 b:note"), step("r:ask yes:6 b:note"), step("r:ask no:refuse")], &host);
    assert_eq!(on.request_headers(true, &host), Flow::Buffer { limit: 4 });
    assert_eq!(asked(&on.request_body(body(b"abcd", false), &host)).0, "r:");
    assert_eq!(on.answered(yes(), &host), Flow::Buffer { limit: 6 }, "as the phase at the headers may");
    assert_eq!(asked(&on.request_body(body(b"abcdef", false), &host)).0, "r:");
    assert!(matches!(on.answered(no(), &host), Flow::Answer(reply) if reply.status == 403));
    assert_eq!(kinds(&on), ["b:abcd", "b:abcdef"]);
}

#[test]
fn a_question_behind_the_pieces_of_a_body_keeps_what_follows_them() {
    let host = FakeHost::default();
    for (script, rest) in [("r:read4 p:note b:ask yes:note e:note", Some(4)), ("r:read4 p:note b:ask yes:note", None)] {
        let mut on = run(&[step(script), step("r:9 b:note")], &host);
        assert_eq!(on.request_headers(true, &host), Flow::Read { limit: 4 });
        assert_eq!(on.request_piece(b"abcd", &host), Flow::Read { limit: 4 });
        assert_eq!(asked(&on.request_end(false, &host)).0, "b:");
        assert_eq!(on.rest_from(), None, "{script}: nothing has passed yet");
        assert_eq!(on.answered(yes(), &host), Flow::Buffer { limit: 9 });
        assert_eq!(on.request_body(body(b"abcdefgh", true), &host), Flow::Continue);
        assert_eq!(kinds(&on), ["p:abcd", "yes:", "b:abcdefgh"]);
        assert_eq!(on.rest_from(), rest, "{script}");
    }
    // The same where an earlier step has waited for the body.
    let mut on = run(&[step("r:6 b:note"), step("r:read4 p:note b:ask yes:note e:note")], &host);
    assert_eq!(on.request_headers(true, &host), Flow::Buffer { limit: 6 });
    assert_eq!(asked(&on.request_body(body(b"abcdef", false), &host)).0, "b:");
    assert_eq!(on.answered(yes(), &host), Flow::Continue);
    assert_eq!((kinds(&on), on.rest_from()), (vec!["b:abcdef".into(), "p:abcd".into(), "yes:".into()], Some(4)));
}

#[test]
fn responses_wait_for_answers_as_requests_do() {
    let host = FakeHost::default();
    let steps = [step("s:ask yes:8 t:note"), step("s:note t:note"), step("s:6 t:ask yes:replace no:refuse")];
    for (answer, refused) in [(yes(), false), (no(), true)] {
        let mut on = run(&steps, &host);
        assert_eq!(on.request_headers(false, &host), Flow::Continue);
        assert_eq!(asked(&respond(&mut on, true, &host)).0, "s:");
        assert_eq!(on.answered(yes(), &host), Flow::Buffer { limit: 8 });
        assert_eq!(asked(&on.response_body(body(b"secret", true), &host)).0, "t:");
        let flow = on.answered(answer, &host);
        assert_eq!(kinds(&on), ["t:secret", "s:"]);
        match refused {
            true => assert!(matches!(flow, Flow::Answer(reply) if reply.status == 403)),
            false => {
                assert_eq!(flow, Flow::Continue);
                assert_eq!(on.take_replaced_body().as_deref(), Some(b"[masked]".as_slice()));
            }
        }
    }
    // Without a body there is none to wait for.
    let mut on = run(&steps, &host);
    assert_eq!(on.request_headers(false, &host), Flow::Continue);
    assert_eq!(asked(&respond(&mut on, false, &host)).0, "s:");
    assert_eq!(on.answered(yes(), &host), Flow::Continue);
}

#[test]
fn an_answer_may_lead_to_a_few_further_questions() {
    let host = FakeHost::default();
    for script in ["a:ask yes:ask none:refuse", "r:ask yes:ask none:refuse", "r:9 b:ask yes:ask none:refuse"] {
        let mut on = run(&[step(script)], &host);
        let mut flow = on.request_headers(true, &host);
        if flow == (Flow::Buffer { limit: 9 }) {
            flow = on.request_body(body(b"x", true), &host);
        }
        for _ in 0..MAX_FOLLOW_UPS {
            asked(&flow);
            flow = on.answered(yes(), &host);
        }
        asked(&flow);
        let flow = on.answered(yes(), &host);
        assert!(matches!(flow, Flow::Answer(reply) if reply.status == 403), "{script}: without an answer");
    }
    let unanswered = host.counts.borrow().get(&Metric::QuestionsUnanswered).copied();
    assert_eq!(unanswered, Some(3));
    let mut endless = run(&[step("a:ask yes:ask none:ask"), step("r:note")], &host);
    let mut flow = endless.request_headers(false, &host);
    for _ in 0..=MAX_FOLLOW_UPS {
        asked(&flow);
        flow = endless.answered(yes(), &host);
    }
    assert_eq!((flow, kinds(&endless)), (Flow::Continue, vec!["r:".to_owned()]));
}

#[test]
fn what_happens_without_an_answer_is_up_to_the_step_and_counted() {
    let host = FakeHost::default();
    let unanswered = || host.counts.borrow().get(&Metric::QuestionsUnanswered).copied().unwrap_or_default();
    let mut open = run(&[step("a:ask yes:refuse no:refuse"), step("r:note")], &host);
    asked(&open.request_headers(false, &host));
    assert_eq!(open.answered(Answer::Unavailable, &host), Flow::Continue);
    assert_eq!((kinds(&open).len(), unanswered()), (1, 1));
    let mut closed = run(&[step("a:ask none:refuse")], &host);
    asked(&closed.request_headers(false, &host));
    // An answer beyond the limits is none.
    let long = Answer::Data(vec![0; snapshot::MAX_ANSWER + 1]);
    assert!(matches!(closed.answered(long, &host), Flow::Answer(_)));
    assert_eq!(unanswered(), 2);
    let mut without = run(&[step("a:ask none:refuse")], &host);
    asked(&without.request_headers(false, &host));
    assert_eq!(without.answered(Answer::NoControlPlane, &host), Flow::Continue);
    assert_eq!(unanswered(), 2, "a gateway without a control plane has no trouble");
    let mut overrun = run(&[step("a:ask none:refuse")], &host);
    asked(&overrun.request_headers(true, &host));
    assert!(matches!(overrun.answered(Answer::Overrun, &host), Flow::Answer(_)));
    assert_eq!(unanswered(), 3);
}

#[test]
fn questions_are_bounded_in_length_and_time() {
    let host = FakeHost::default();
    let mut long = run(&[step("a:long none:refuse")], &host);
    assert!(matches!(long.request_headers(false, &host), Flow::Answer(_)), "it was never sent");
    let mut forever = run(&[step("r:forever")], &host);
    assert_eq!(asked(&forever.request_headers(false, &host)), ("", snapshot::MAX_WAIT_MILLIS));
}

#[test]
fn an_answer_is_carried_out_as_the_verdict_of_its_phase() {
    let host = FakeHost::default();
    let mut held = run(&[step("r:ask yes:hold"), step("r:note")], &host);
    asked(&held.request_headers(false, &host));
    assert_eq!(held.answered(yes(), &host), Flow::Hold { millis: 500 });
    assert_eq!(held.resume(&host), Flow::Continue);
    assert_eq!(kinds(&held), ["r:"]);
    // The access phase asks for no body.
    let mut access = run(&[step("a:ask yes:9 b:note"), step("a:note")], &host);
    asked(&access.request_headers(true, &host));
    assert_eq!(access.answered(yes(), &host), Flow::Continue);
    assert_eq!(kinds(&access), ["a:"]);
    // Where nothing is held any more, no question is asked.
    let mut trailers = run(&[step("l:ask"), step("g:ask")], &host);
    assert_eq!(trailers.request_headers(true, &host), Flow::Continue);
    assert_eq!(trailers.request_trailers(&Headers::from([("t", "v")]), &host), Flow::Continue);
    assert_eq!(trailers.stream_start(b"early", &host), Flow::Continue);
}
