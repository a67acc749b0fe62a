//! Two challenge providers in the chain of one request: that of the global policy and that of the route's.

use exchange::{Ask, Chain, Flow, Headers, Request, Run, Start};
use serde_json::{Value, json};
use snapshot::{Challenge, RouteChain, Snapshot, Step, VerifyToken, Widget, YesNo};
use threat_gate::ThreatGateStep;

use super::*;

const REGISTRY: &[PluginDefinition] = &[PLUGIN, threat_gate::PLUGIN];

fn work(id: &str) -> Challenge {
    Challenge { provider: id.into(), ..provider() }
}

fn widget(id: &str) -> Challenge {
    Challenge { widget: Some(Widget::default()), ..work(id) }
}

fn policy(challenge: &Challenge) -> Policy {
    let tiers = vec![tier(0, 40.0, Action::Challenge)];
    Policy { id: challenge.provider.clone(), tiers, challenge: Some(challenge.clone()), ..Policy::default() }
}

fn gate(challenge: &Challenge) -> Step {
    let config = ThreatGateStep { policy: Some(policy(challenge)) }.encode_to_vec();
    Step { plugin: threat_gate::PLUGIN.name.into(), config, ..Step::default() }
}

fn response(challenge: &Challenge) -> Step {
    let config = ThreatResponseStep { policy: Some(policy(challenge)), maze: None }.encode_to_vec();
    Step { plugin: PLUGIN.name.into(), config, ..Step::default() }
}

fn chain(filter: &str, global: Vec<Step>, route: Vec<Step>) -> Chain {
    let routes = vec![RouteChain { name: "r".into(), steps: route, ..RouteChain::default() }];
    let snapshot = Snapshot { filter: filter.into(), global, routes, ..Snapshot::default() };
    Chain::load(&snapshot, REGISTRY).unwrap()
}

/// The filters that a request passes, with both providers: one with everything, or one for gates and one for threat responses.
fn both_ways(first: &Challenge, second: &Challenge) -> [Vec<Chain>; 2] {
    let both = |challenge| vec![gate(challenge), response(challenge)];
    let apart = vec![
        chain("threat-gate", vec![gate(first)], vec![gate(second)]),
        chain("threat-response", vec![response(first)], vec![response(second)]),
    ];
    [vec![chain("preset", both(first), both(second))], apart]
}

/// What a submission is answered with, `None` if it goes on to the backend; and whom the control plane was asked about. It says yes to
/// puzzles, and to tokens of `good`; vendors of providers that are called `down` cannot be reached.
fn submit(filters: &[Chain], submission: &str, good: &str, host: &FakeHost) -> (Option<u16>, Vec<String>) {
    // A request of its own.
    host.state.borrow_mut().clear();
    let mut asked = Vec::new();
    let mut answer = |ask: &Ask| {
        let token: Option<VerifyToken> = ask.question.read();
        let yes = token.as_ref().is_none_or(|token| token.provider == good);
        let is_down = token.as_ref().is_some_and(|token| token.provider == "down");
        asked.push(token.map_or("puzzle".to_owned(), |token| token.provider));
        if is_down {
            return Answer::Unavailable;
        }
        Answer::Data(YesNo { yes }.encode_to_vec())
    };
    for filter in filters {
        let headers = Headers::from([(":method", "POST"), (":path", "/"), (challenge::HEADER, submission)]);
        let (request, _) = Request::read(headers, b"HTTP/1.1".to_vec(), false);
        let mut run = Run::new(filter, Start { request, route: b"r", peer: b"192.0.2.1:1", node: &"n".into() }, host);
        let mut flow = run.request_headers(false, host);
        while let Flow::Ask(ask) = &flow {
            flow = run.answered(answer(ask), host);
        }
        match flow {
            Flow::Continue => {}
            Flow::Answer(reply) => return (Some(reply.status), asked),
            other => panic!("{other:?}"),
        }
    }
    (None, asked)
}

/// A solved puzzle of a provider.
fn solved(challenge: &Challenge, host: &FakeHost) -> String {
    let challenges = Challenges::new(challenge.clone()).unwrap();
    let asked = challenges.present(&exchange(50.0), 50.0, 403, host);
    let puzzle = serde_json::from_slice::<Value>(&asked.body).unwrap()["challenge"].as_str().unwrap().to_owned();
    let nonces = (0_u32..).map(|nonce| nonce.to_string());
    let nonce = { nonces }.find(|nonce| challenge::solves(puzzle.as_bytes(), nonce.as_bytes(), 1)).unwrap();
    json!({ "challenge": puzzle, "nonce": nonce }).to_string()
}

#[test]
fn puzzles_of_both_providers_are_taken_and_what_is_of_none_is_refused_once() {
    let (one, two, third) = (work("p1"), work("p2"), work("p3"));
    for filters in both_ways(&one, &two) {
        let host = FakeHost::at(1_000);
        for provider in [&one, &two] {
            let submission = solved(provider, &host);
            assert_eq!(submit(&filters, &submission, "", &host), (Some(204), vec!["puzzle".to_owned()]));
            assert_eq!(submit(&filters, &submission, "", &host).0, Some(403), "it is spent");
        }
        for garbage in [solved(&third, &host), r#"{"token":"x"}"#.to_owned(), "{}".to_owned()] {
            host.events.borrow_mut().clear();
            assert_eq!(submit(&filters, &garbage, "", &host), (Some(403), Vec::new()), "{garbage}");
            assert_eq!(host.events.borrow().len(), 1, "{garbage}");
        }
    }
}

#[test]
fn tokens_of_both_vendors_are_taken_and_none_is_asked_twice() {
    let (one, two) = (widget("p1"), widget("p2"));
    for filters in both_ways(&one, &two) {
        for (submission, good, status, asked) in [
            (json!({ "token": "x", "by": "p1" }), "p1", 204, vec!["p1"]),
            (json!({ "token": "x", "by": "p2" }), "p2", 204, vec!["p2"]),
            (json!({ "token": "x", "by": "p1" }), "p2", 403, vec!["p1"]),
            (json!({ "token": "x", "by": "p2" }), "p1", 403, vec!["p2"]),
            (json!({ "token": "x", "by": "p3" }), "p1", 403, vec![]),
            (json!({ "token": "x", "by": 7 }), "p1", 403, vec![]),
            (json!({ "token": "x" }), "p1", 204, vec!["p1"]),
            (json!({ "token": "x" }), "p2", 204, vec!["p1", "p2"]),
            (json!({ "token": "x" }), "", 403, vec!["p1", "p2"]),
        ] {
            let host = FakeHost::at(1_000);
            let asked: Vec<String> = asked.into_iter().map(str::to_owned).collect();
            assert_eq!(submit(&filters, &submission.to_string(), good, &host), (Some(status), asked), "{submission}");
            assert_eq!(host.events.borrow().len(), 1, "{submission}");
        }
    }
    // One after the other kind.
    for filters in both_ways(&one, &work("p2")) {
        let host = FakeHost::at(1_000);
        assert_eq!(submit(&filters, &solved(&work("p2"), &host), "", &host).0, Some(204));
        assert_eq!(submit(&filters, r#"{"token":"x","by":"p1"}"#, "p1", &host).0, Some(204));
    }
}

#[test]
fn a_token_without_a_provider_is_judged_by_the_vendor_that_can_be_reached() {
    for (first, second, good, status, asked) in [
        ("down", "p2", "p2", 204, vec!["down", "p2"]),
        ("down", "p2", "", 403, vec!["down", "p2"]),
        ("p1", "down", "p1", 204, vec!["p1"]),
        ("p1", "down", "", 403, vec!["p1", "down"]),
    ] {
        let asked: Vec<String> = asked.into_iter().map(str::to_owned).collect();
        for filters in both_ways(&widget(first), &widget(second)) {
            let host = FakeHost::at(1_000);
            let came = submit(&filters, r#"{"token":"x"}"#, good, &host);
            assert_eq!(came, (Some(status), asked.clone()), "{first} {second} {good}");
        }
    }
    // One that names its provider is for that alone.
    for filters in both_ways(&widget("down"), &widget("p2")) {
        let host = FakeHost::at(1_000);
        let came = submit(&filters, r#"{"token":"x","by":"down"}"#, "p2", &host);
        assert_eq!(came, (Some(403), vec!["down".to_owned()]));
    }
}

#[test]
fn a_gate_without_a_response_refuses_what_it_does_not_take() {
    for (one, submission) in [(widget("p1"), r#"{"token":"x","by":"p2"}"#), (work("p1"), r#"{"token":"x"}"#)] {
        let host = FakeHost::at(1_000);
        let filters = [chain("preset", vec![], vec![gate(&one)])];
        assert_eq!(submit(&filters, submission, "p2", &host), (Some(403), vec![]), "{submission}");
    }
}

#[test]
fn a_single_provider_refuses_what_it_does_not_take() {
    let one = widget("p1");
    let filters = [chain("preset", vec![], vec![gate(&one), response(&one)])];
    for (submission, asked) in [(r#"{"token":"x"}"#, vec!["p1".to_owned()]), (r#"{"token":"x","by":"p2"}"#, vec![])] {
        let host = FakeHost::at(1_000);
        assert_eq!(submit(&filters, submission, "", &host), (Some(403), asked), "{submission}");
        assert_eq!(host.events.borrow().len(), 1);
    }
}
