use super::*;
use exchange::fake::FakeHost;
use exchange::{Metric, Signal};
use maze::{MazeBudget, MazeLimits};
use node_state::{allowlist, bans};

mod providers;
mod twice;

fn tier(index: u32, min_score: f64, action: Action) -> Tier {
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

fn response(dry_run: bool, tiers: Vec<Tier>) -> Box<dyn Plugin> {
    let policy = Policy { id: "p".into(), name: "test".into(), dry_run, tiers, ..Policy::default() };
    with(policy)
}

fn with(policy: Policy) -> Box<dyn Plugin> {
    with_maze(policy, 1000)
}

fn with_maze(policy: Policy, pages: u32) -> Box<dyn Plugin> {
    let budget = MazeBudget { pages, kibibytes: 100_000, micros: 100_000 };
    let limits = MazeLimits { path: "/m/".into(), page_bytes: 2048, hold_millis: 500, caller: budget, all: budget };
    let step = ThreatResponseStep { policy: Some(policy), maze: Some(limits) };
    build(&step.encode_to_vec(), &mut Build::new(std::iter::empty())).unwrap()
}

fn exchange(score: f64) -> Exchange {
    let mut exchange = Exchange::default();
    exchange.caller.ip = "192.0.2.1".into();
    exchange.score.add(Signal {
        source: "waf.seclang".into(),
        kind: "waf".into(),
        weight: score,
        confidence: 1.0,
        tag: "waf:match".into(),
        detail: String::new(),
        at: 0,
    });
    exchange
}

fn ask(plugin: &dyn Plugin, score: f64, host: &FakeHost) -> Verdict {
    plugin.request(&mut exchange(score), false, &mut Slot::default(), host)
}

fn status(verdict: &Verdict) -> Option<u16> {
    match verdict {
        Verdict::Enforce { reply, .. } => reply.as_ref().map(|reply| reply.status),
        _ => None,
    }
}

#[test]
fn the_highest_tier_that_is_reached_wins_whatever_the_order() {
    let host = FakeHost::at(0);
    let plugin =
        response(false, vec![tier(0, 40.0, Action::Log), tier(1, 90.0, Action::Ban), tier(2, 70.0, Action::Deny)]);
    assert_eq!(ask(&*plugin, 39.0, &host), Verdict::Pass);
    assert_eq!(status(&ask(&*plugin, 40.0, &host)), None);
    assert_eq!(status(&ask(&*plugin, 89.0, &host)), Some(403));
    assert!(host.bans.borrow().is_empty());
    ask(&*plugin, 90.0, &host);
    assert_eq!(host.bans.borrow()[0].identity.key(), "ip:192.0.2.1");
    assert_eq!(bans::standing(&host.shared_data, "ip:192.0.2.1", 0).unwrap().until, 60_000);
    let outcomes: Vec<_> = host.events_json().iter().map(|event| event["event"]["outcome"].clone()).collect();
    assert_eq!(outcomes, ["observed", "blocked", "blocked"]);
}

#[test]
fn dry_run_records_the_decision_and_lets_the_request_pass() {
    let host = FakeHost::at(0);
    let plugin = response(true, vec![tier(0, 50.0, Action::Ban)]);
    assert_eq!(status(&ask(&*plugin, 95.0, &host)), None);
    assert!(host.bans.borrow().is_empty());
    let event = &host.events_json()[0];
    assert_eq!((&event["event"]["action"], &event["event"]["outcome"]), (&"ban".into(), &"observed".into()));
    assert_eq!(event["decision"]["enforced"], false);
    assert_eq!(event["decision"]["policy"], "threat-policies/p");
}

#[test]
fn the_event_of_a_refusal_names_the_policy_that_was_followed() {
    let about = About { policy: "honeypot-policies/traps".into(), tag: "x:y".into(), subject: "/a/{id}".into() };
    let refusal = Refusal::new(404, Category::Honeypot, "a decoy").scored().about(about);
    let named = |action, dry_run| {
        let (host, plugin) = (FakeHost::at(0), response(dry_run, vec![tier(0, 40.0, action)]));
        plugin.on_refusal(&mut exchange(95.0), &refusal, "honeypot", Half::Request, &host);
        let decision = host.events_json()[0]["decision"].clone();
        assert_eq!((&decision["tag"], &decision["subject"]), (&"x:y".into(), &"/a/{id}".into()));
        decision["policy"].as_str().unwrap().to_owned()
    };
    assert_eq!(named(Action::Log, false), "honeypot-policies/traps");
    assert_eq!(named(Action::Ban, true), "honeypot-policies/traps");
    assert_eq!(named(Action::Ban, false), "threat-policies/p", "its answer is stricter");
}

#[test]
fn throttle_lets_a_quota_pass_and_says_when_to_come_back() {
    let host = FakeHost::at(0);
    let plugin = response(false, vec![tier(0, 10.0, Action::Throttle)]);
    assert_eq!([(); 3].map(|()| status(&ask(&*plugin, 20.0, &host))), [None, None, Some(429)]);
    host.advance(4_000);
    let Verdict::Enforce { reply: Some(reply), .. } = ask(&*plugin, 20.0, &host) else { panic!("it passed") };
    assert!(reply.headers.contains(&("retry-after".into(), b"6".to_vec())));
    host.advance(6_000);
    assert_eq!(status(&ask(&*plugin, 20.0, &host)), None);
}

#[test]
fn a_window_of_before_the_clock_was_set_back_does_not_go_on() {
    let host = FakeHost::at(86_400_000);
    let plugin = response(false, vec![tier(0, 10.0, Action::Throttle)]);
    assert_eq!([(); 3].map(|()| status(&ask(&*plugin, 20.0, &host))), [None, None, Some(429)]);
    host.clock.set(0);
    assert_eq!([(); 3].map(|()| status(&ask(&*plugin, 20.0, &host))), [None, None, Some(429)]);
    host.advance(10_000);
    assert_eq!(status(&ask(&*plugin, 20.0, &host)), None);
}

#[test]
fn tarpit_holds_and_lets_go() {
    let host = FakeHost::at(0);
    let plugin = response(false, vec![tier(0, 10.0, Action::Tarpit)]);
    let verdict = ask(&*plugin, 20.0, &host);
    assert!(matches!(verdict, Verdict::Enforce { hold_millis: 3000, reply: None, .. }), "{verdict:?}");
    // It reaches the backend: its event does not say that it was blocked, but that it was held.
    let event = &host.events_json()[0];
    assert_eq!((&event["event"]["action"], &event["event"]["outcome"]), (&"tarpit".into(), &"observed".into()));
    assert_eq!((&event["decision"]["enforced"], &event["decision"]["held_ms"]), (&true.into(), &3000.into()));
    assert_eq!(host.counts.borrow().get(&Metric::Refused), None);
}

#[test]
fn a_refusal_is_answered_more_strictly_never_more_mildly() {
    let refusal = Refusal::new(406, Category::Threat, "rule 949110").scored();
    let answer = |tiers, dry_run| {
        let host = FakeHost::at(0);
        let verdict = response(dry_run, tiers).on_refusal(&mut exchange(95.0), &refusal, "waf", Half::Request, &host);
        let actions: Vec<_> = host.events_json().iter().map(|event| event["event"]["action"].clone()).collect();
        assert_eq!(actions.len(), 1, "one outcome, one event");
        (verdict.unwrap(), actions[0].clone(), host.bans.borrow().len())
    };
    let (verdict, action, bans) = answer(vec![tier(0, 40.0, Action::Log)], false);
    assert_eq!((status(&verdict), action, bans), (None, "deny".into(), 0));
    let (verdict, action, bans) = answer(vec![tier(0, 40.0, Action::Ban)], false);
    assert_eq!((status(&verdict), action, bans), (Some(403), "ban".into(), 1));
    let (verdict, action, bans) = answer(vec![tier(0, 40.0, Action::Ban)], true);
    assert_eq!((status(&verdict), action, bans), (None, "deny".into(), 0));
    // Each with the status of its tier, held or not.
    for stern in [Action::Tarpit, Action::Deny, Action::Ban] {
        let (verdict, action, _) = answer(vec![Tier { status: 418, ..tier(0, 40.0, stern) }], false);
        assert_eq!((status(&verdict), action), (Some(418), stern.word().into()));
        let held = matches!(&verdict, Verdict::Enforce { hold_millis: 3000, .. });
        assert_eq!(held, stern == Action::Tarpit, "{verdict:?}");
    }
}

#[test]
fn the_banned_identity_is_the_one_that_the_policy_names() {
    let banned = |ban_address, ban_api_key_only, apikey: Option<&str>| {
        let host = FakeHost::at(0);
        let tiers = vec![tier(0, 10.0, Action::Ban)];
        let mut exchange = exchange(50.0);
        exchange.caller.apikey = apikey.map(str::to_owned);
        let plugin = with(Policy { tiers, ban_address, ban_api_key_only, ..Policy::default() });
        plugin.request(&mut exchange, false, &mut Slot::default(), &host);
        host.bans.borrow().first().map(|ban| ban.identity.key())
    };
    assert_eq!(banned(false, false, Some("k1")).as_deref(), Some("apikey:k1"));
    assert_eq!(banned(true, false, Some("k1")).as_deref(), Some("ip:192.0.2.1"));
    assert_eq!(banned(false, true, None), None);
}

#[test]
fn a_caller_of_ipv6_is_banned_and_counted_by_its_network() {
    let host = FakeHost::at(0);
    let from = |ip: &str| {
        let mut exchange = exchange(50.0);
        exchange.caller.ip = ip.into();
        exchange
    };
    let plugin = with(Policy { tiers: vec![tier(0, 10.0, Action::Ban)], ..Policy::default() });
    plugin.request(&mut from("2001:db8:1:2::7"), false, &mut Slot::default(), &host);
    let ban = host.bans.borrow().first().cloned().unwrap();
    assert_eq!((ban.identity.key().as_str(), ban.address.as_str()), ("ip:2001:db8:1:2::/64", "2001:db8:1:2::7"));
    assert!(bans::standing(&host.shared_data, "ip:2001:db8:1:2:ffff::1", 1).is_some());
    // One address of a network that the allowlist has is not banned on the node, nor its network for it.
    allowlist::apply(&host.shared_data, "ip:2001:db8:1:3::7", 1_000, 0).unwrap();
    plugin.request(&mut from("2001:db8:1:3::7"), false, &mut Slot::default(), &host);
    assert_eq!(bans::standing(&host.shared_data, "ip:2001:db8:1:3::1", 1), None);
    let quota = Tier { throttle_quota: 2, throttle_window_seconds: 10, ..tier(0, 10.0, Action::Throttle) };
    let plugin = with(Policy { tiers: vec![quota], ..Policy::default() });
    let statuses = ["2001:db8:9:9::1", "2001:db8:9:9::2", "2001:db8:9:9::3", "2001:db8:9:8::1"]
        .map(|ip| status(&plugin.request(&mut from(ip), false, &mut Slot::default(), &host)));
    assert_eq!(statuses, [None, None, Some(429), None]);
}

#[test]
fn an_exempt_address_skips_the_fabric() {
    let host = FakeHost::at(0);
    let plugin = with(Policy {
        tiers: vec![tier(0, 10.0, Action::Ban)],
        exemptions: vec!["192.0.2.1".into()],
        ..Policy::default()
    });
    assert_eq!(ask(&*plugin, 99.0, &host), Verdict::Pass);
}

#[test]
fn nobody_on_the_allowlist_is_banned_on_the_node_and_the_control_plane_is_asked_all_the_same() {
    let host = FakeHost::at(0);
    let plugin = response(false, vec![tier(0, 90.0, Action::Ban)]);
    allowlist::apply(&host.shared_data, "ip:192.0.2.0/24", 1_000, 0).unwrap();
    assert_eq!(status(&ask(&*plugin, 95.0, &host)), Some(403), "the request itself is refused");
    assert_eq!(bans::standing(&host.shared_data, "ip:192.0.2.1", 0), None);
    assert_eq!(host.bans.borrow().len(), 1);
}

fn provider() -> snapshot::Challenge {
    snapshot::Challenge {
        provider: "c".into(),
        difficulty_floor: 1,
        difficulty_ceiling: 1,
        challenge_ttl_seconds: 60,
        clearance_ttl_seconds: 600,
        cookie_name: "clearance".into(),
        keys: vec![b"key".to_vec()],
        ..snapshot::Challenge::default()
    }
}

fn challenging(dry_run: bool, challenge: Option<snapshot::Challenge>) -> Box<dyn Plugin> {
    let tiers = vec![tier(0, 40.0, Action::Challenge), tier(1, 90.0, Action::Deny)];
    with(Policy { id: "p".into(), name: "test".into(), dry_run, tiers, challenge, ..Policy::default() })
}

#[test]
fn a_challenged_caller_works_and_goes_on() {
    let host = FakeHost::at(1_000);
    let plugin = challenging(false, Some(provider()));
    let Verdict::Enforce { decision, reply: Some(asked), .. } = ask(&*plugin, 50.0, &host) else { panic!("it passed") };
    assert_eq!((asked.status, decision.action, decision.enforced), (403, Action::Challenge, true));
    let event = host.events_json().pop().unwrap();
    assert_eq!((&event["event"]["category"], &event["event"]["action"]), (&"challenge".into(), &"challenge".into()));
    assert_eq!(event["event"]["outcome"], "blocked");
    let body = String::from_utf8(asked.body).unwrap();
    let challenge = body.split("\"challenge\":\"").nth(1).unwrap().split('"').next().unwrap();
    let nonce = (0..).find(|nonce: &u32| challenge::solves(challenge.as_bytes(), nonce.to_string().as_bytes(), 1));
    let submission = format!(r#"{{"challenge":"{challenge}","nonce":{}}}"#, nonce.unwrap());
    let mut submitting = exchange(95.0);
    submitting.request.method = b"POST".to_vec();
    submitting.request.headers = exchange::Headers::from([(challenge::HEADER, submission)]);
    assert!(matches!(plugin.access(&mut submitting, &mut Slot::default(), &host), Verdict::Ask(_)));
    let yes = Answer::Data(snapshot::YesNo { yes: true }.encode_to_vec());
    let answered = plugin.answered(&mut submitting, yes, &mut Slot::default(), &host);
    let Verdict::Enforce { reply: Some(earned), .. } = answered else { panic!("{answered:?}") };
    assert_eq!(earned.status, 204);
    let cookie = String::from_utf8(earned.headers[0].1.clone()).unwrap();
    let mut cleared = exchange(50.0);
    cleared.request.headers = exchange::Headers::from([("cookie", cookie.split(';').next().unwrap())]);
    assert_eq!(status(&plugin.request(&mut cleared, false, &mut Slot::default(), &host)), None);
    let event = host.events_json().pop().unwrap();
    assert_eq!((&event["event"]["outcome"], &event["decision"]["enforced"]), (&"observed".into(), &false.into()));
    assert_eq!(event["threat"]["tags"][1], "challenge:passed");
    // A sterner tier is no business of a clearance.
    cleared.score.add(Signal { weight: 45.0, ..cleared.score.signals()[0].clone() });
    assert_eq!(status(&plugin.request(&mut cleared, false, &mut Slot::default(), &host)), Some(403));
}

#[test]
fn a_preflight_is_not_challenged_and_nothing_else_passes_as_one() {
    let host = FakeHost::at(1_000);
    let plugin = challenging(false, Some(provider()));
    let cors = [("origin", "https://shop.example"), ("access-control-request-method", "POST")];
    let sent = |method: &str, headers: &[(&str, &str)], score: f64, has_body: bool, streaming: bool| {
        let mut exchange = exchange(score);
        exchange.request.method = method.into();
        exchange.request.headers = exchange::Headers::new(headers);
        exchange.request.streaming = streaming;
        status(&plugin.request(&mut exchange, has_body, &mut Slot::default(), &host))
    };
    assert_eq!(sent("OPTIONS", &cors, 50.0, false, false), None);
    let event = host.events_json().pop().unwrap();
    assert_eq!((&event["event"]["outcome"], &event["decision"]["enforced"]), (&"observed".into(), &false.into()));
    assert!(event["message"].as_str().unwrap().contains("a preflight is not asked"), "{event}");
    assert_eq!(sent("OPTIONS", &cors, 95.0, false, false), Some(403), "a sterner tier");
    assert_eq!(sent("OPTIONS", &cors, 50.0, true, false), Some(403), "a body");
    assert_eq!(sent("OPTIONS", &cors, 50.0, false, true), Some(403), "an upgrade");
    assert_eq!(sent("POST", &cors, 50.0, false, false), Some(403), "the request behind it");
    for headers in [&cors[..1], &cors[1..], &[cors[0], cors[1], ("x-http-method-override", "DELETE")]] {
        assert_eq!(sent("OPTIONS", headers, 50.0, false, false), Some(403), "{headers:?}");
    }
    for more in [("cookie", "a=b"), ("authorization", "x"), ("content-type", "text/plain"), (challenge::HEADER, "{}")] {
        assert_eq!(sent("OPTIONS", &[cors[0], cors[1], more], 50.0, false, false), Some(403), "{more:?}");
    }
}

#[test]
fn a_preflight_with_an_api_key_in_a_header_is_challenged() {
    let tiers = vec![tier(0, 0.0, Action::Challenge)];
    let policy = Policy { id: "p".into(), tiers, challenge: Some(provider()), ..Policy::default() };
    let config = ThreatResponseStep { policy: Some(policy), maze: None }.encode_to_vec();
    let global = vec![snapshot::Step { plugin: PLUGIN.name.into(), config, ..snapshot::Step::default() }];
    let identity = snapshot::IdentitySource {
        api_key_header: "x-key".into(),
        api_key_query: "key".into(),
        ..snapshot::IdentitySource::default()
    };
    let snapshot = snapshot::Snapshot {
        filter: "preset".into(),
        global,
        identity: Some(identity),
        ..snapshot::Snapshot::default()
    };
    let chain = exchange::Chain::load(&snapshot, &[PLUGIN]).unwrap();
    let passes = |header: &str| {
        let host = FakeHost::at(1_000);
        let headers = [
            (":method", "OPTIONS"),
            (":path", "/?key=k"),
            ("origin", "https://shop.example"),
            ("access-control-request-method", "POST"),
            (header, "k"),
        ];
        let (request, _) = exchange::Request::read(headers.into(), b"HTTP/1.1".to_vec(), false);
        let start = exchange::Start { request, route: b"", peer: b"192.0.2.1:1", node: &"n".into() };
        exchange::Run::new(&chain, start, &host).request_headers(false, &host) == exchange::Flow::Continue
    };
    assert!(passes("x-other"), "a key in the query is that of the request behind it");
    assert!(!passes("x-key"));
}

#[test]
fn a_preflight_is_spared_nothing_where_nothing_is_presented() {
    let (host, plugin) = (FakeHost::at(1_000), challenging(false, None));
    let mut exchange = exchange(50.0);
    exchange.request.method = b"OPTIONS".to_vec();
    let cors = [("origin", "https://shop.example"), ("access-control-request-method", "POST")];
    exchange.request.headers = exchange::Headers::from(cors);
    assert_eq!(status(&plugin.request(&mut exchange, false, &mut Slot::default(), &host)), None);
    let event = host.events_json().pop().unwrap();
    let message = event["message"].as_str().unwrap();
    assert!(message.contains("no challenge provider") && !message.contains("preflight"), "{message}");
}

#[test]
fn dry_run_and_a_missing_provider_ask_nobody() {
    for (plugin, why) in
        [(challenging(true, Some(provider())), "tier 0"), (challenging(false, None), "no challenge provider")]
    {
        let host = FakeHost::at(1_000);
        assert_eq!(status(&ask(&*plugin, 50.0, &host)), None);
        let event = host.events_json().pop().unwrap();
        assert_eq!(
            (&event["event"]["outcome"], &event["event"]["category"]),
            (&"observed".into(), &"challenge".into())
        );
        assert!(event["message"].as_str().unwrap().contains(why), "{event}");
    }
}

/// Asks with a path and further tags; the status, the action of the event, and how long it was held.
fn wanders(
    plugin: &dyn Plugin,
    (method, path): (&str, &str),
    score: f64,
    tag: &'static str,
    host: &FakeHost,
) -> Wandered {
    let mut exchange = exchange(score);
    (exchange.request.method, exchange.request.path) = (method.into(), path.into());
    exchange.score.add(Signal { weight: 0.0, tag: tag.into(), ..exchange.score.signals()[0].clone() });
    let verdict = plugin.request(&mut exchange, false, &mut Slot::default(), host);
    let held = if let Verdict::Enforce { hold_millis, .. } = verdict { hold_millis } else { 0 };
    let event = host.events_json().pop().unwrap_or_default();
    let action = event["event"]["action"].as_str().unwrap_or_default().to_owned();
    (status(&verdict), if verdict == Verdict::Pass { String::new() } else { action }, held)
}

type Wandered = (Option<u16>, String, u32);

#[test]
fn a_tier_shows_the_maze_to_those_that_do_not_obey_within_the_budget() {
    let host = FakeHost::at(1_000_000);
    let maze = || Policy { tiers: vec![tier(0, 40.0, Action::Maze)], ..Policy::default() };
    let plugin = with_maze(maze(), 3);
    let page = |status| (Some(status), "maze".to_owned(), 500);
    let denied = (Some(403), "deny".to_owned(), 0);
    assert_eq!(wanders(&*plugin, ("GET", "/x"), 50.0, "x", &host), page(200));
    for spared in ["bot:verified:googlebot", "bot:spared:gptbot", "bot:signed"] {
        assert_eq!(wanders(&*plugin, ("GET", "/x"), 50.0, spared, &host), denied, "{spared}");
    }
    assert_eq!(wanders(&*plugin, ("POST", "/x"), 50.0, "x", &host), denied);
    // It stays in the maze without a score, and nothing else of it does.
    assert_eq!(wanders(&*plugin, ("GET", "/m/a-b-1"), 0.0, "x", &host), page(200));
    assert_eq!(wanders(&*plugin, ("GET", "/x"), 0.0, "x", &host), (None, String::new(), 0));
    assert_eq!(wanders(&*plugin, ("HEAD", "/x"), 50.0, "x", &host), page(200));
    assert_eq!(wanders(&*plugin, ("GET", "/x"), 50.0, "x", &host), denied, "the budget of the caller is used up");
    assert_eq!(wanders(&*plugin, ("GET", "/m/a"), 0.0, "x", &host), (Some(404), "deny".to_owned(), 0));
    let event = host.events_json().pop().unwrap();
    assert!(event["message"].as_str().unwrap().contains("a budget is used up"), "{event}");
    // In dry run the request passes, and is not drawn in afterwards.
    let (plugin, host) = (with_maze(Policy { dry_run: true, ..maze() }, 3), FakeHost::at(1_000_000));
    assert_eq!(wanders(&*plugin, ("GET", "/x"), 50.0, "x", &host), (None, "maze".to_owned(), 0));
    assert_eq!(wanders(&*plugin, ("GET", "/m/x"), 0.0, "x", &host), (None, String::new(), 0));
}

#[test]
fn a_refusal_becomes_a_page_and_a_page_becomes_nothing_but_a_ban() {
    let answer = |action: Action, of: Refusal| {
        let host = FakeHost::at(0);
        let mut exchange = exchange(95.0);
        exchange.request.method = b"GET".to_vec();
        let plugin = response(false, vec![tier(0, 40.0, action)]);
        let verdict = plugin.on_refusal(&mut exchange, &of, "waf", Half::Request, &host).unwrap();
        let event = host.events_json().pop().unwrap();
        let Verdict::Enforce { decision, hold_millis, .. } = &verdict else { panic!("{verdict:?}") };
        assert_eq!(decision.held_millis, *hold_millis);
        (status(&verdict), event["event"]["action"].as_str().unwrap().to_owned(), *hold_millis)
    };
    let denial = || Refusal::new(406, Category::Threat, "rule 949110").scored();
    let page = || denial().action(Action::Maze).held(70);
    assert_eq!(answer(Action::Maze, denial()), (Some(200), "maze".to_owned(), 500));
    for milder in [Action::Log, Action::Tarpit, Action::Deny, Action::Maze] {
        assert_eq!(answer(milder, page()), (None, "maze".to_owned(), 70), "{milder:?}");
    }
    assert_eq!(answer(Action::Ban, page()), (Some(403), "ban".to_owned(), 0));
}
