use super::*;
use crate::fake::FakeHost;
use crate::{
    Action, Answer, Ask, BodyNeed, Build, Category, Decision, Headers, Plugin, PluginDefinition, Question, Refusal,
    Signal,
};
use snapshot::{RouteChain, Snapshot};

mod asking;
mod changing;
mod overtaken;

/// A plugin whose configuration is the script of what it does, a word for each phase: `a:` access, `r:` request,
/// `b:` request body, `l:` its trailers, `g:` first bytes of a stream, `s:` response, `t:` response body, `u:` its trailers, `yes:`,
/// `no:`, `none:` answers.
struct Scripted(String);

fn build(config: &[u8], _build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    match String::from_utf8_lossy(config).into_owned() {
        script if script == "broken" => Err("it is broken".into()),
        script => Ok(Box::new(Scripted(script))),
    }
}

const REGISTRY: &[PluginDefinition] = &[PluginDefinition::new("scripted", build)];

impl Scripted {
    fn verdict(&self, phase: &str, exchange: &mut Exchange, seen: &[u8]) -> Verdict {
        let host = FakeHost::at(0);
        let note = |exchange: &mut Exchange, weight: f64| {
            exchange.score.add(Signal {
                source: "scripted".into(),
                kind: phase.to_owned().into(),
                weight,
                confidence: 1.0,
                tag: format!("{phase}{}", String::from_utf8_lossy(seen)).into(),
                detail: String::new(),
                at: 0,
            });
        };
        let Some(word) = self.0.split(' ').find_map(|word| word.strip_prefix(phase)) else { return Verdict::Pass };
        match word {
            "note" => note(exchange, 10.0),
            "pass" => {}
            "change" if exchange.response.is_some() => {
                exchange.change_response(HeaderChange::add("x-changed", "1"), &host);
            }
            "change" => {
                exchange.change_request(HeaderChange::add("x-changed", "1"), &host);
            }
            "refuse" => {
                let refusal = Refusal::new(403, Category::Threat, "scripted").scored();
                let refusal = refusal.header("location", "/a\r\nx: y").header("set-cookie", "a\r\nx: y");
                return Verdict::Refuse(refusal);
            }
            "replace" => return Verdict::ReplaceBody(b"[masked]".to_vec()),
            "ask" => {
                let question = Question { topic: "t".into(), data: phase.as_bytes().to_vec() };
                return Verdict::Ask(Ask { question, millis: 100, body: false });
            }
            "send" => {
                let question = Question { topic: "t".into(), data: phase.as_bytes().to_vec() };
                return Verdict::Ask(Ask { question, millis: 100, body: true });
            }
            "long" => {
                let question = Question { topic: "t".into(), data: vec![0; snapshot::MAX_QUESTION + 1] };
                return Verdict::Ask(Ask { question, millis: 100, body: false });
            }
            "forever" => {
                let question = Question { topic: "t".into(), data: Vec::new() };
                return Verdict::Ask(Ask { question, millis: u32::MAX, body: false });
            }
            "hold" => return Verdict::Enforce { decision: decision(), hold_millis: 500, reply: None },
            read if read.starts_with("read") => {
                return Verdict::ReadBody(BodyNeed { limit: read.trim_start_matches("read").parse().unwrap() });
            }
            need => return Verdict::NeedBody(BodyNeed { limit: need.parse().unwrap() }),
        }
        Verdict::Pass
    }
}

fn decision() -> Decision {
    Decision { tier: Some(0), ..Decision::new(Action::Tarpit, 70.0, "").enforced().held(500) }
}

impl Plugin for Scripted {
    fn access(&self, exchange: &mut Exchange, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        self.verdict("a:", exchange, b"")
    }
    fn request(&self, exchange: &mut Exchange, _has_body: bool, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        self.verdict("r:", exchange, b"")
    }
    fn request_body(&self, exchange: &mut Exchange, body: Body<'_>, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        self.verdict("b:", exchange, body.bytes)
    }
    fn inspects_trailers(&self) -> bool {
        self.0.contains("l:")
    }
    fn request_trailers(&self, exchange: &mut Exchange, trailers: &Headers, _: &mut Slot, _host: &dyn Host) -> Verdict {
        self.verdict("l:", exchange, trailers.get("t").unwrap_or_default())
    }
    fn request_piece(&self, exchange: &mut Exchange, bytes: &[u8], _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        self.verdict("p:", exchange, bytes)
    }
    fn reads_rest(&self, _slot: &mut Slot) -> bool {
        self.0.contains("e:")
    }
    fn request_rest(&self, exchange: &mut Exchange, bytes: &[u8], _: bool, _: &mut Slot, _host: &dyn Host) -> Verdict {
        self.verdict("e:", exchange, bytes)
    }
    fn stream_start(&self, exchange: &mut Exchange, bytes: &[u8], _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        self.verdict("g:", exchange, bytes)
    }
    fn response(&self, exchange: &mut Exchange, _has_body: bool, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        self.verdict("s:", exchange, b"")
    }
    fn response_body(&self, exchange: &mut Exchange, body: Body<'_>, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        self.verdict("t:", exchange, body.bytes)
    }
    fn inspects_response_trailers(&self) -> bool {
        self.0.contains("u:")
    }
    fn response_trailers(&self, exchange: &mut Exchange, trailers: &Headers, _: &mut Slot, _host: &dyn Host) {
        self.verdict("u:", exchange, trailers.get("t").unwrap_or_default());
    }
    fn answered(&self, exchange: &mut Exchange, answer: Answer, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        match answer {
            Answer::Data(data) if data == b"no" => self.verdict("no:", exchange, b""),
            Answer::Unavailable | Answer::Overrun => self.verdict("none:", exchange, b""),
            _ => self.verdict("yes:", exchange, b""),
        }
    }
    fn stricter(&self, _: &Exchange, _: &Refusal) -> Option<Action> {
        self.0.contains("stern").then_some(Action::Ban)
    }
    fn on_refusal(&self, _: &mut Exchange, _: &Refusal, _by: &str, _half: Half, _host: &dyn Host) -> Option<Verdict> {
        let status = self.0.split(' ').find_map(|word| word.strip_prefix("fabric"))?.parse().unwrap_or(418);
        let reply = Some(Reply { status, ..Reply::default() });
        Some(Verdict::Enforce { decision: decision(), hold_millis: 0, reply })
    }
}

fn step(script: &str) -> snapshot::Step {
    snapshot::Step { plugin: "scripted".into(), config: script.into(), ..snapshot::Step::default() }
}

fn chain(global: &[snapshot::Step], route: &[snapshot::Step]) -> Chain {
    let routes =
        vec![RouteChain { name: "r".into(), id: "route_1".into(), steps: route.to_vec(), ..RouteChain::default() }];
    let snapshot = Snapshot { filter: "preset".into(), global: global.to_vec(), routes, ..Snapshot::default() };
    Chain::load(&snapshot, REGISTRY).unwrap()
}

fn run_on(chain: &Chain, route: &str, path: &str, streaming: bool, host: &FakeHost) -> Run {
    let request = Request { path: path.into(), streaming, headers: Headers::default(), ..Request::default() };
    Run::new(chain, Start { request, route: route.as_bytes(), peer: b"192.0.2.1:1", node: &"n".into() }, host)
}

fn run(route: &[snapshot::Step], host: &FakeHost) -> Run {
    run_on(&chain(&[], route), "r", "/", false, host)
}

fn kinds(run: &Run) -> Vec<String> {
    run.exchange().score.signals().iter().map(|signal| signal.tag.clone().into_owned()).collect()
}

fn yes() -> Answer {
    Answer::Data(b"yes".to_vec())
}

fn no() -> Answer {
    Answer::Data(b"no".to_vec())
}

fn body(bytes: &[u8], complete: bool) -> Body<'_> {
    Body { bytes, complete }
}

#[test]
fn access_comes_before_every_transformer_and_the_global_chain_before_the_route() {
    let host = FakeHost::at(0);
    let chain = chain(&[step("r:note")], &[step("a:note r:note")]);
    let mut on_route = run_on(&chain, "r", "/", false, &host);
    assert_eq!(on_route.request_headers(false, &host), Flow::Continue);
    assert_eq!(kinds(&on_route), ["a:", "r:", "r:"]);
    let mut without_route = run_on(&chain, "", "/", false, &host);
    assert_eq!(without_route.request_headers(false, &host), Flow::Continue);
    assert_eq!(kinds(&without_route), ["r:"]);
}

#[test]
fn a_refused_request_goes_no_further_and_makes_one_event() {
    let host = FakeHost::at(0);
    let mut run = run(&[step("a:refuse"), step("a:note r:note")], &host);
    let Flow::Answer(reply) = run.request_headers(false, &host) else { panic!("it went on") };
    assert_eq!(reply.status, 403);
    assert!(kinds(&run).is_empty());
    assert_eq!(host.events_json().len(), 1);
    // Our own answer comes by as a response; nothing looks at it.
    assert_eq!(run.response_headers(Response::default(), true, &host), Flow::Continue);
}

#[test]
fn a_threat_response_answers_a_refusal_even_where_it_does_not_run() {
    let host = FakeHost::at(0);
    let fabric = snapshot::Step { on_refusal_only: true, ..step("fabric r:note") };
    let mut refused = run(&[step("r:refuse"), fabric.clone()], &host);
    let Flow::Answer(reply) = refused.request_headers(false, &host) else { panic!("it went on") };
    assert_eq!(reply.status, 418);
    let mut passed = run(&[step("r:note"), fabric], &host);
    assert_eq!(passed.request_headers(false, &host), Flow::Continue);
    assert_eq!(kinds(&passed).len(), 1);
}

#[test]
fn of_several_threat_responses_the_strictest_answers_and_of_those_alike_the_last() {
    let status = |global: &str, route: &str| {
        let host = FakeHost::at(0);
        let chain = chain(&[step(global)], &[step("r:refuse"), step(route)]);
        match run_on(&chain, "r", "/", false, &host).request_headers(false, &host) {
            Flow::Answer(reply) => reply.status,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(status("fabric418", "fabric419"), 419);
    assert_eq!(status("fabric418 stern", "fabric419"), 418);
    assert_eq!(status("fabric418 stern", "fabric419 stern"), 419);
    assert_eq!(status("fabric418", "stern"), 418, "one that does not answer");
}

#[test]
fn steps_behind_one_that_waits_for_the_body_wait_with_it_and_may_ask_for_more() {
    let host = FakeHost::at(0);
    let mut run = run(&[step("r:4 b:note"), step("r:8 b:note"), step("r:note")], &host);
    assert_eq!(run.request_headers(true, &host), Flow::Buffer { limit: 4 });
    assert!(kinds(&run).is_empty());
    assert_eq!(run.request_body(body(b"abcd", false), &host), Flow::Buffer { limit: 8 });
    assert_eq!(run.request_body(body(b"abcdef", true), &host), Flow::Continue);
    assert_eq!(kinds(&run), ["b:abcd", "b:abcdef", "r:"]);
}

#[test]
fn a_replaced_body_is_what_later_steps_see() {
    let host = FakeHost::at(0);
    let mut run = run(&[step("r:9 b:replace"), step("r:9 b:note")], &host);
    assert_eq!(run.request_headers(true, &host), Flow::Buffer { limit: 9 });
    assert_eq!(run.request_body(body(b"secret", true), &host), Flow::Continue);
    assert_eq!(kinds(&run), ["b:[masked]"]);
    assert_eq!(run.take_replaced_body().as_deref(), Some(b"[masked]".as_slice()));
    assert_eq!(run.take_replaced_body(), None);
}

#[test]
fn streams_are_never_held() {
    let host = FakeHost::at(0);
    let chain = chain(&[], &[step("r:9 s:9")]);
    let mut run = run_on(&chain, "r", "/", true, &host);
    assert_eq!(run.request_headers(true, &host), Flow::Continue);
    let response = Response { streaming: true, ..Response::default() };
    assert_eq!(run.response_headers(response, true, &host), Flow::Continue);
}

#[test]
fn who_needs_the_body_of_an_upgrade_learns_that_there_is_none() {
    let host = FakeHost::at(0);
    let chain = chain(&[], &[step("r:9 b:refuse")]);
    let flow = |length: &str| {
        let headers = [(":method", "POST"), (":path", "/"), ("upgrade", "websocket"), ("content-length", length)];
        let (request, _) = Request::read(Headers::from(headers), b"HTTP/1.1".to_vec(), false);
        let start = Start { request, route: b"r", peer: b"192.0.2.1:1", node: &"n".into() };
        Run::new(&chain, start, &host).request_headers(true, &host)
    };
    assert!(matches!(flow("20"), Flow::Answer(_)));
    assert_eq!(flow("0"), Flow::Continue);
}

#[test]
fn a_held_request_goes_on_with_the_steps_behind_the_hold() {
    let host = FakeHost::at(0);
    let mut run = run(&[step("r:hold"), step("r:note")], &host);
    assert_eq!(run.request_headers(false, &host), Flow::Hold { millis: 500 });
    assert!(kinds(&run).is_empty());
    assert_eq!(run.resume(&host), Flow::Continue);
    assert_eq!(kinds(&run), ["r:"]);
    assert_eq!(run.resume(&host), Flow::Continue);
    assert_eq!(kinds(&run).len(), 1, "a second wake-up does nothing");
}

#[test]
fn a_step_behind_a_hold_still_gets_the_body() {
    let host = FakeHost::at(0);
    let mut run = run(&[step("r:hold"), step("r:9 b:note")], &host);
    assert_eq!(run.request_headers(true, &host), Flow::Hold { millis: 500 });
    assert_eq!(run.resume(&host), Flow::Buffer { limit: 9 });
    assert_eq!(run.request_body(body(b"abc", true), &host), Flow::Continue);
    assert_eq!(kinds(&run), ["b:abc"]);
}

#[test]
fn a_step_never_gets_more_of_a_body_than_it_asked_for() {
    let long = body(b"abcdef", true).prefix(3);
    assert_eq!((long.bytes, long.complete), (b"abc".as_slice(), false));
    assert!(body(b"abc", true).prefix(3).complete);
    let host = FakeHost::at(0);
    let mut run = run(&[step("r:9 b:note"), step("r:3 b:note")], &host);
    assert_eq!(run.request_headers(true, &host), Flow::Buffer { limit: 9 });
    assert_eq!(run.request_body(body(b"abcdef", true), &host), Flow::Continue);
    assert_eq!(kinds(&run), ["b:abcdef", "b:abc"]);
}

#[test]
fn a_stream_can_be_refused_by_how_it_begins() {
    let host = FakeHost::at(0);
    let chain = chain(&[], &[step("g:note"), step("g:refuse"), step("g:note")]);
    let mut run = run_on(&chain, "r", "/", true, &host);
    assert_eq!(run.stream_start(b"early", &host), Flow::Continue, "nothing was asked yet");
    assert_eq!(run.request_headers(true, &host), Flow::Continue);
    assert!(matches!(run.stream_start(b"?", &host), Flow::Answer(reply) if reply.status == 403));
    assert_eq!(kinds(&run), ["g:?"]);
    assert_eq!(host.events_json().len(), 1);
}

#[test]
fn the_rest_of_a_body_that_is_read_passes_by_the_step_that_wants_it() {
    let host = FakeHost::at(0);
    let mut passing = run(&[step("r:read4 p:note e:note"), step("r:note")], &host);
    assert_eq!(passing.request_headers(true, &host), Flow::Read { limit: 4 });
    assert_eq!(passing.rest_from(), None, "nothing has passed yet");
    assert_eq!(passing.request_piece(b"abcd", &host), Flow::Read { limit: 4 });
    assert_eq!(passing.request_end(false, &host), Flow::Continue);
    assert_eq!(passing.rest_from(), Some(4));
    assert_eq!(passing.request_rest(b"efg", false, &host), Flow::Continue);
    assert_eq!(kinds(&passing), ["p:abcd", "r:", "e:efg"]);
    // Once the response is there, it would be too late.
    assert_eq!(passing.response_headers(Response::default(), true, &host), Flow::Continue);
    assert_eq!(passing.rest_from(), None);
    assert_eq!(passing.request_rest(b"hij", true, &host), Flow::Continue);
    assert_eq!(kinds(&passing).len(), 3);
    let mut refused = run(&[step("r:read4 e:refuse")], &host);
    assert_eq!(refused.request_headers(true, &host), Flow::Read { limit: 4 });
    assert_eq!(refused.request_end(false, &host), Flow::Continue);
    assert!(matches!(refused.request_rest(b"efg", false, &host), Flow::Answer(reply) if reply.status == 403));
    assert_eq!(refused.rest_from(), None);
    // The whole body, or a step that does not care for the rest.
    for (script, complete) in [("r:read4 e:note", true), ("r:read4", false)] {
        let mut whole = run(&[step(script)], &host);
        assert_eq!(whole.request_headers(true, &host), Flow::Read { limit: 4 });
        assert_eq!(whole.request_end(complete, &host), Flow::Continue);
        assert_eq!(whole.rest_from(), None, "{script}");
    }
}

#[test]
fn responses_go_through_their_own_phases() {
    let host = FakeHost::at(0);
    let mut run = run(&[step("s:4 t:replace"), step("s:note t:note")], &host);
    assert_eq!(run.request_headers(false, &host), Flow::Continue);
    assert_eq!(
        run.response_headers(Response { status: 200, ..Response::default() }, true, &host),
        Flow::Buffer { limit: 4 }
    );
    assert_eq!(run.response_body(body(b"abcd", true), &host), Flow::Continue);
    assert_eq!(kinds(&run), ["s:"]);
    assert!(run.take_replaced_body().is_some());
}

#[test]
fn a_step_acts_on_the_paths_of_its_scope() {
    let host = FakeHost::at(0);
    let scoped = snapshot::Step { exclude: vec!["^/health$".into()], ..step("a:refuse") };
    let chain = chain(&[], &[scoped]);
    let answers =
        |path| matches!(run_on(&chain, "r", path, false, &host).request_headers(false, &host), Flow::Answer(_));
    assert!(answers("/shop") && answers("/healthy"));
    assert!(!answers("/health") && !answers("/health?full=1"));
}

#[test]
fn signals_travel_between_filters_that_share_requests() {
    let host = FakeHost::at(0);
    let snapshot = |filter: &str, script: &str| Snapshot {
        filter: filter.into(),
        routes: vec![RouteChain { name: "r".into(), steps: vec![step(script)], ..RouteChain::default() }],
        ..Snapshot::default()
    };
    let first = Chain::load(&snapshot("waf", "r:note"), REGISTRY).unwrap();
    let _ = run_on(&first, "r", "/", false, &host).request_headers(false, &host);
    let second = Chain::load(&snapshot("threat-response", ""), REGISTRY).unwrap();
    assert_eq!(run_on(&second, "r", "/", false, &host).exchange().score.total(), 10.0);
    // Whatever else stands there is as good as nothing.
    host.set_filter_state(crate::EXCHANGE_TOKEN, b"\xff not ours");
    assert_eq!(run_on(&second, "r", "/", false, &host).exchange().score.total(), 0.0);
}

#[test]
fn a_decision_is_known_to_the_filters_before_it_and_so_are_later_signals() {
    let host = FakeHost::at(0);
    let chain = |filter: &str, script: &str| {
        let route = RouteChain { name: "r".into(), steps: vec![step(script)], ..RouteChain::default() };
        Chain::load(&Snapshot { filter: filter.into(), routes: vec![route], ..Snapshot::default() }, REGISTRY).unwrap()
    };
    let (waf, response) = (chain("waf", "r:note s:note"), chain("threat-response", "r:hold"));
    let mut first = run_on(&waf, "r", "/", false, &host);
    assert_eq!(first.request_headers(false, &host), Flow::Continue);
    let mut second = run_on(&response, "r", "/", false, &host);
    assert!(!second.exchange().is_decided());
    assert_eq!(second.request_headers(false, &host), Flow::Hold { millis: 500 });
    assert!(second.exchange().is_decided() && !first.exchange().is_decided());
    first.finish(&host);
    assert!(first.exchange().is_decided());
    // What filters behind this one have found is there for the response.
    let mut again = run_on(&waf, "r", "/", false, &host);
    assert_eq!(again.request_headers(false, &host), Flow::Continue);
    let mut behind = run_on(&chain("other", "r:note"), "r", "/", false, &host);
    assert_eq!(behind.request_headers(false, &host), Flow::Continue);
    let found = behind.exchange().score.total();
    assert_eq!(again.response_headers(Response::default(), false, &host), Flow::Continue);
    assert_eq!(again.exchange().score.total(), found + 10.0);
}

#[test]
fn headers_that_cannot_be_read_are_refused_with_a_signal_and_an_event() {
    let host = FakeHost::at(0);
    let mut refused = run(&[step("a:note r:note")], &host);
    let Flow::Answer(reply) = refused.unreadable_headers(&host) else { panic!("it went on") };
    assert_eq!((reply.status, kinds(&refused)), (431, vec!["http:too_many_headers".to_owned()]));
    let event = &host.events_json()[0];
    assert_eq!((&event["event"]["outcome"], &event["event"]["module"]), (&"blocked".into(), &"gateway".into()));
    assert_eq!((&event["threat"]["score"], &event["source"]["ip"]), (&20.into(), &"192.0.2.1".into()));
    assert_eq!(refused.request_headers(false, &host), Flow::Continue, "it is answered already");
    // So are trailers, once all in front of them has gone on.
    let mut behind = run(&[step("a:note r:note")], &host);
    assert_eq!(behind.unreadable_trailers(&host), Flow::Continue);
    let _headers = behind.request_headers(false, &host);
    let Flow::Answer(reply) = behind.unreadable_trailers(&host) else { panic!("it went on") };
    assert_eq!(reply.status, 431);
    assert!(kinds(&behind).contains(&"http:too_many_trailers".to_owned()), "{:?}", kinds(&behind));
    assert_eq!(host.events_json().last().unwrap()["event"]["outcome"], "blocked");
    // The threat response may answer more sternly.
    let mut fabric = run(&[step("fabric")], &host);
    assert!(matches!(fabric.unreadable_headers(&host), Flow::Answer(reply) if reply.status == 418));
}

#[test]
fn a_step_that_cannot_be_made_is_named_by_its_place() {
    let load = |step: snapshot::Step| {
        let routes = vec![RouteChain { name: "shop".into(), steps: vec![step], ..RouteChain::default() }];
        Chain::load(&Snapshot { routes, ..Snapshot::default() }, REGISTRY).err().unwrap().to_string()
    };
    assert_eq!(load(step("broken")), "route `shop`, step 1 (`scripted`): it is broken");
    let unknown = load(snapshot::Step { plugin: "nothing".into(), ..snapshot::Step::default() });
    assert!(unknown.contains("no such plugin"), "{unknown}");
}

#[test]
fn a_question_holds_the_request_and_the_chain_goes_on_behind_its_answer() {
    let asked = |flow: &Flow| matches!(flow, Flow::Ask(ask) if ask.millis == 100);
    let host = FakeHost::default();
    let steps = [step("a:ask yes:note no:refuse r:note"), step("a:note r:ask yes:note"), step("r:note")];
    let mut on = run(&steps, &host);
    assert!(asked(&on.request_headers(true, &host)));
    assert_eq!(on.resume(&host), Flow::Continue, "it was not held for a time");
    assert!(asked(&on.answered(yes(), &host)));
    assert_eq!(
        kinds(&on),
        ["yes:", "a:", "r:"],
        "access of all comes first, then the transformers up to the next question"
    );
    assert_eq!(on.answered(Answer::NoControlPlane, &host), Flow::Continue);
    assert_eq!(kinds(&on), ["yes:", "a:", "r:", "yes:", "r:"]);
    assert_eq!(on.answered(no(), &host), Flow::Continue, "no question is open any more");

    let mut refused = run(&steps, &host);
    assert!(asked(&refused.request_headers(false, &host)));
    let Flow::Answer(reply) = refused.answered(no(), &host) else { panic!("it went on") };
    assert_eq!(reply.status, 403);
    assert_eq!(kinds(&refused), [""; 0]);
}

#[test]
fn no_byte_of_a_header_ends_it_early() {
    let host = FakeHost::default();
    let mut run = run(&[step("r:refuse")], &host);
    let Flow::Answer(reply) = run.request_headers(false, &host) else { panic!() };
    let value = |name: &str| reply.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_slice());
    assert_eq!(value("location"), Some(b"/a%0D%0Ax:%20y".as_slice()));
    assert_eq!(value("set-cookie"), None);
    assert!(host.logged.borrow().iter().any(|line| line.contains("set-cookie")));
}

#[test]
fn trailers_are_dropped_unless_a_step_looks_at_them() {
    let host = FakeHost::default();
    let of = |trailers: snapshot::Trailers, script: &str| {
        let global = vec![step(script)];
        let snapshot = Snapshot { filter: "preset".into(), global, trailers: trailers.into(), ..Snapshot::default() };
        let chain = Chain::load(&snapshot, REGISTRY).unwrap();
        let run = run_on(&chain, "r", "/", false, &host);
        (run.drops_trailers(&chain), run)
    };
    assert!(of(snapshot::Trailers::Drop, "l:note").0);
    assert!(of(snapshot::Trailers::Inspect, "r:note").0);
    assert!(!of(snapshot::Trailers::Pass, "r:note").0);
    let trailers = Headers::from([("t", "v")]);

    let (dropped, mut run) = of(snapshot::Trailers::Inspect, "l:note");
    assert!(!dropped);
    assert_eq!(run.request_trailers(&trailers, &host), Flow::Continue);
    assert_eq!(kinds(&run), Vec::<String>::new(), "what is in front of them has not gone on");
    assert_eq!(run.request_headers(true, &host), Flow::Continue);
    assert_eq!(run.request_trailers(&trailers, &host), Flow::Continue);
    assert_eq!(kinds(&run), ["l:v"]);

    let (_, mut run) = of(snapshot::Trailers::Inspect, "l:refuse");
    assert_eq!(run.request_headers(true, &host), Flow::Continue);
    assert!(matches!(run.request_trailers(&trailers, &host), Flow::Answer(reply) if reply.status == 403));
}

#[test]
fn an_exclusion_does_not_hold_for_a_path_that_backends_read_differently() {
    let host = FakeHost::default();
    let excluded = snapshot::Step { exclude: vec!["^/public/".into()], ..step("r:refuse") };
    let status = |path: &str| {
        let mut run = run_on(&chain(&[], std::slice::from_ref(&excluded)), "r", path, false, &host);
        matches!(run.request_headers(false, &host), Flow::Answer(_))
    };
    assert!(!status("/public/a%20b?c=%2f..") && status("/admin"));
    for path in
        ["/public/..%2fadmin", "/public/..%252Fadmin?x", "/public/..\\admin", "/public/%2e%2e/admin", "/public//../x"]
    {
        assert!(status(path), "{path}");
    }
}
