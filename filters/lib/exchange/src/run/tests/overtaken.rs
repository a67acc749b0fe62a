//! Responses that come before the end of their request.

use super::*;
use crate::SkipNote;

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
        assert_eq!(on.overtaken(200, false, &host), Some(Flow::Continue));
        assert_eq!(kinds(&on), ["b:", "b:", "r:"], "{need}");
        assert_eq!(respond(&mut on, &host), Flow::Continue);
        assert_eq!(kinds(&on), ["b:", "b:", "r:", "s:", "s:"], "{need}: the response has its phases");
        // No step sees what arrives of it later.
        assert_eq!(on.request_body(body(b"late", true), &host), Flow::Continue);
        assert_eq!(on.request_piece(b"late", &host), Flow::Continue);
        assert_eq!((on.request_end(true, &host), on.rest_from()), (Flow::Continue, None));
        assert_eq!(kinds(&on).len(), 5);
    }
    // After some pieces.
    let mut on = run(&[step("r:read8 p:note b:note e:note")], &host);
    assert_eq!(on.request_headers(true, &host), Flow::Read { limit: 8 });
    assert_eq!(on.request_piece(b"abc", &host), Flow::Read { limit: 8 });
    assert_eq!((on.overtaken(200, false, &host), on.rest_from()), (Some(Flow::Continue), None));
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
        assert!(matches!(on.overtaken(200, false, &host), Some(Flow::Answer(reply)) if reply.status == 403));
        assert_eq!(respond(&mut on, &host), Flow::Continue);
        assert!(on.exchange().response.is_none(), "it is not the backend's");
    }
}

#[test]
fn the_response_waits_for_an_answer_and_for_a_delay() {
    let host = FakeHost::default();
    let mut on = run(&[step("r:8"), step("r:ask yes:note"), step("r:hold"), step("r:4 b:note s:note")], &host);
    assert_eq!(on.request_headers(true, &host), Flow::Buffer { limit: 8 });
    assert!(matches!(on.overtaken(200, false, &host), Some(Flow::Ask(_))));
    assert_eq!(on.answered(yes(), &host), Flow::Hold { millis: 500 });
    assert_eq!(on.resume(&host), Flow::Continue);
    assert_eq!(respond(&mut on, &host), Flow::Continue);
    assert_eq!(kinds(&on), ["yes:", "b:", "s:"]);
    // It comes while they are under way.
    let mut on = run(&[step("r:8 b:ask yes:replace"), step("r:hold"), step("r:4 b:note s:note")], &host);
    assert_eq!(on.request_headers(true, &host), Flow::Buffer { limit: 8 });
    assert!(matches!(on.request_body(body(b"secret", true), &host), Flow::Ask(_)));
    assert_eq!(on.overtaken(200, false, &host), None);
    assert_eq!(on.answered(yes(), &host), Flow::Hold { millis: 500 });
    assert_eq!(on.overtaken(200, false, &host), None);
    assert_eq!(on.resume(&host), Flow::Continue);
    assert_eq!(respond(&mut on, &host), Flow::Continue);
    assert_eq!((kinds(&on), on.take_replaced_body()), (vec!["b:".to_owned(), "s:".to_owned()], None));
    // A step that asks without its body may want it after the answer as well.
    let mut on = run(&[step("r:8 b:ask yes:4"), step("r:note")], &host);
    assert_eq!(on.request_headers(true, &host), Flow::Buffer { limit: 8 });
    assert!(matches!(on.overtaken(200, false, &host), Some(Flow::Ask(_))));
    assert_eq!((on.answered(yes(), &host), kinds(&on)), (Flow::Continue, vec!["r:".to_owned()]));
}

#[test]
fn a_request_that_went_on_is_not_overtaken() {
    let host = FakeHost::default();
    let mut on = run(&[step("r:4 b:change s:note")], &host);
    assert_eq!(on.request_headers(true, &host), Flow::Buffer { limit: 4 });
    assert_eq!(on.request_body(body(b"abcd", false), &host), Flow::Continue);
    assert_eq!(on.overtaken(200, false, &host), Some(Flow::Continue));
    assert_eq!(respond(&mut on, &host), Flow::Continue);
    assert_eq!((kinds(&on).len(), on.take_changes(Half::Request).len()), (1, 1));
    // One whose response is there before it has nothing that could still be changed.
    let mut on = run(&[step("r:change"), step("r:4 s:note")], &host);
    assert_eq!(on.request_headers(true, &host), Flow::Buffer { limit: 4 });
    assert_eq!(on.overtaken(200, false, &host), Some(Flow::Continue));
    assert_eq!(respond(&mut on, &host), Flow::Continue);
    assert_eq!((kinds(&on).len(), on.take_changes(Half::Request).len()), (1, 0));
}

#[test]
fn what_lacks_the_body_is_not_judged_behind_an_error() {
    let host = FakeHost::default();
    for (status, judged) in [(204, true), (399, true), (400, false), (503, false)] {
        let steps = [step("r:8 b:note s:note"), step("r:note s:note"), step("r:read8 b:refuse")];
        let steps = if judged { &steps[..2] } else { &steps[..] };
        let mut on = run(steps, &host);
        assert_eq!(on.request_headers(true, &host), Flow::Buffer { limit: 8 });
        assert_eq!(on.overtaken(status, true, &host), Some(Flow::Continue));
        assert_eq!(respond(&mut on, &host), Flow::Continue);
        let expected = if judged { &["b:", "r:", "s:", "s:"][..] } else { &["r:", "s:", "s:"] };
        assert_eq!(kinds(&on), expected, "{status}");
        assert!(on.withholds_body());
    }
}

#[test]
fn a_whole_body_goes_on_after_the_wait() {
    let host = FakeHost::default();
    for (first, head_sent, withheld) in [
        ("r:8 b:ask yes:replace", true, false),
        ("r:read8 b:ask yes:replace", true, false),
        ("r:8 b:ask yes:replace", false, true),
    ] {
        let mut on = run(&[step(first), step("r:hold"), step("r:4 b:note s:note")], &host);
        let whole = match on.request_headers(true, &host) {
            Flow::Buffer { .. } => on.request_body(body(b"secret", true), &host),
            _ => {
                assert_eq!(on.request_piece(b"secret", &host), Flow::Read { limit: 8 });
                on.request_end(true, &host)
            }
        };
        assert!(matches!(whole, Flow::Ask(_)));
        assert_eq!((on.overtaken(200, head_sent, &host), on.withholds_body()), (None, withheld), "{first}");
        assert_eq!(on.answered(yes(), &host), Flow::Hold { millis: 500 });
        if withheld {
            assert_eq!((on.resume(&host), on.take_replaced_body()), (Flow::Continue, None));
            continue;
        }
        assert_eq!(on.resume(&host), Flow::Buffer { limit: 4 }, "steps behind get it");
        assert_eq!(on.request_body(body(b"secr", false), &host), Flow::Continue);
        assert_eq!(on.take_replaced_body().as_deref(), Some(b"[masked]".as_slice()));
        assert_eq!(respond(&mut on, &host), Flow::Continue);
        assert_eq!(kinds(&on), ["b:[mas", "s:"]);
    }
    // A part of it does not.
    let mut on = run(&[step("r:4 b:ask")], &host);
    assert_eq!(on.request_headers(true, &host), Flow::Buffer { limit: 4 });
    assert!(matches!(on.request_body(body(b"secr", false), &host), Flow::Ask(_)));
    assert_eq!((on.overtaken(200, true, &host), on.withholds_body()), (None, true));
}

/// One of several filters of a gateway.
fn filter(name: &str, steps: &[snapshot::Step], host: &FakeHost) -> Run {
    let snapshot = Snapshot { filter: name.into(), global: steps.to_vec(), ..Snapshot::default() };
    run_on(&Chain::load(&snapshot, REGISTRY).unwrap(), "", "/", false, host)
}

#[test]
fn what_filters_behind_have_left_meanwhile_is_kept() {
    for waits in ["r:8 b:note", "r:8 b:ask yes:note"] {
        let host = FakeHost::default();
        let mut first = filter("first", &[step("a:note"), step(waits)], &host);
        assert_eq!(first.request_headers(true, &host), Flow::Buffer { limit: 8 });
        // The headers went on. The filter behind sees the response before this one.
        let mut behind = filter("behind", &[step("r:note s:note")], &host);
        behind.exchange.decision = Some(decision());
        behind.exchange.note_decided("threat-policies/p", 70.0);
        let skip = SkipNote { by: "b".into(), steps: crate::Skipped::Detectors, reason: "r".into() };
        behind.exchange.skips.push(skip.clone());
        assert_eq!(behind.request_headers(true, &host), Flow::Continue);
        assert_eq!(respond(&mut behind, &host), Flow::Continue);
        match first.overtaken(200, true, &host) {
            Some(Flow::Ask(_)) => assert_eq!(first.answered(yes(), &host), Flow::Continue),
            flow => assert_eq!(flow, Some(Flow::Continue)),
        }
        assert_eq!(respond(&mut first, &host), Flow::Continue);
        first.finish(&host);
        behind.finish(&host);
        for run in [&first, &behind] {
            let tags = kinds(run);
            let own = if waits.contains("ask") { "yes:" } else { "b:" };
            assert!(["a:", "r:", "s:", own].iter().all(|tag| tags.iter().any(|known| known == tag)), "{tags:?}");
            assert_eq!(run.exchange().score.total(), 40.0, "each counts once");
            assert!(run.exchange().is_decided());
            assert_eq!(run.exchange().skips, std::slice::from_ref(&skip));
        }
        assert_eq!(first.exchange().decided_score("threat-policies/p"), Some(70.0));
    }
}
