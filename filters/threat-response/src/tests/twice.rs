//! A threat response in the global chain and another in that of the route.

use exchange::{Chain, Flow, Request, Response, Run, Start};
use snapshot::{RouteChain, Snapshot, Step};

use super::*;

/// A detector that adds as many points as its configuration says, and refuses where that ends with `!`.
struct Finds(f64, bool);

impl Finds {
    fn verdict(&self, exchange: &mut Exchange) -> Verdict {
        let signal = super::exchange(self.0).score.signals()[0].clone();
        exchange.score.add(signal);
        match self.1 {
            true => Verdict::Refuse(Refusal::new(406, Category::Threat, "rule 949110").scored()),
            false => Verdict::Pass,
        }
    }

    fn read(config: &[u8]) -> Self {
        let text = String::from_utf8_lossy(config);
        Self(text.trim_end_matches('!').parse().unwrap(), text.ends_with('!'))
    }
}

impl Plugin for Finds {
    fn request(&self, exchange: &mut Exchange, _has_body: bool, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        self.verdict(exchange)
    }
}

/// The same at the response.
struct FindsLate(Finds);

impl Plugin for FindsLate {
    fn response(&self, exchange: &mut Exchange, _has_body: bool, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        self.0.verdict(exchange)
    }
}

fn finds(config: &[u8], _build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    Ok(Box::new(Finds::read(config)))
}

fn finds_late(config: &[u8], _build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    Ok(Box::new(FindsLate(Finds::read(config))))
}

const REGISTRY: &[PluginDefinition] = &[
    PLUGIN,
    PluginDefinition::new("finds", finds).role(Role::Detector),
    PluginDefinition::new("finds-late", finds_late).role(Role::Detector),
];

fn detector(config: &str) -> Step {
    Step { plugin: "finds".into(), config: config.into(), ..Step::default() }
}

fn late_detector(config: &str) -> Step {
    Step { plugin: "finds-late".into(), ..detector(config) }
}

fn acting(id: &str, dry_run: bool, tiers: &[Tier]) -> Step {
    let policy = Policy { id: id.into(), name: id.into(), dry_run, tiers: tiers.to_vec(), ..Policy::default() };
    let config = ThreatResponseStep { policy: Some(policy), maze: None }.encode_to_vec();
    Step { plugin: PLUGIN.name.into(), config, ..Step::default() }
}

fn chain(global: Vec<Step>, route: Vec<Step>) -> Chain {
    chain_of("preset", global, route)
}

fn chain_of(filter: &str, global: Vec<Step>, route: Vec<Step>) -> Chain {
    let routes = vec![RouteChain { name: "r".into(), steps: route, ..RouteChain::default() }];
    let snapshot = Snapshot { filter: filter.into(), global, routes, ..Snapshot::default() };
    Chain::load(&snapshot, REGISTRY).unwrap()
}

fn run(chain: &Chain, host: &FakeHost) -> Run {
    let request = Request { path: b"/".to_vec(), ..Request::default() };
    Run::new(chain, Start { request, route: b"r", peer: b"192.0.2.1:1", node: &"n".into() }, host)
}

/// The actions of the events so far, with their policies.
fn actions(host: &FakeHost) -> Vec<(String, String)> {
    let word = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let events = host.events_json();
    events.iter().map(|event| (word(&event["event"]["action"]), word(&event["decision"]["policy"]))).collect()
}

/// The outcome of a request.
fn ask(chain: &Chain, host: &FakeHost) -> Flow {
    let mut run = run(chain, host);
    let flow = run.request_headers(false, host);
    run.finish(host);
    flow
}

#[test]
fn a_global_policy_in_dry_run_leaves_the_ban_of_the_routes_policy() {
    let (ban, log) = ([tier(0, 40.0, Action::Ban)], [tier(0, 40.0, Action::Log)]);
    for (global, route, policy) in [
        (acting("g", true, &ban), acting("r", false, &ban), "r"),
        (acting("g", false, &log), acting("r", false, &ban), "r"),
        (acting("g", false, &[]), acting("r", false, &ban), "r"),
        // Nor does the route's take it from the global one.
        (acting("g", false, &ban), acting("r", true, &ban), "g"),
        (acting("g", false, &ban), acting("r", false, &ban), "r"),
    ] {
        let host = FakeHost::at(0);
        let flow = ask(&chain(vec![global], vec![detector("95!"), route]), &host);
        assert!(matches!(flow, Flow::Answer(reply) if reply.status == 403));
        assert_eq!(host.bans.borrow().len(), 1);
        let events = host.events_json();
        assert_eq!(events.len(), 1, "{events:?}");
        assert_eq!(events[0]["decision"]["policy"], format!("threat-policies/{policy}"));
    }
}

#[test]
fn one_policy_in_both_chains_acts_once() {
    let throttle = [Tier { throttle_quota: 20, ..tier(0, 20.0, Action::Throttle) }];
    let policy = || acting("p", false, &throttle);
    let (host, chain) = (FakeHost::at(0), chain(vec![detector("30"), policy()], vec![policy()]));
    for number in 1..=21 {
        let passes = ask(&chain, &host) == Flow::Continue;
        assert_eq!((passes, host.events_json().len()), (number <= 20, number));
    }
}

#[test]
fn one_policy_in_both_chains_acts_again_by_a_higher_tier_alone() {
    let actions = |tiers: &[Tier], first: &str, second: &str| {
        let policy = || acting("p", false, tiers);
        let (host, chain) = (FakeHost::at(0), chain(vec![detector(first), policy()], vec![detector(second), policy()]));
        let flow = ask(&chain, &host);
        let actions = host.events_json().iter().map(|event| event["event"]["action"].clone()).collect::<Vec<_>>();
        (flow, actions)
    };
    let tiers = [tier(0, 20.0, Action::Tarpit), tier(1, 90.0, Action::Ban)];
    assert_eq!(actions(&tiers, "30", "30"), (Flow::Hold { millis: 3000 }, vec!["tarpit".into()]));
    let tiers = [tier(0, 20.0, Action::Log), tier(1, 90.0, Action::Ban)];
    assert_eq!(actions(&tiers, "30", "30"), (Flow::Continue, vec!["log".into()]));
    let (flow, both) = actions(&tiers, "30", "65");
    assert!(matches!(flow, Flow::Answer(_)));
    assert_eq!(both, ["log", "ban"]);
}

/// What a policy of the global chain and one of the route's, which bans, do by the points of a response.
fn late(action: Action) -> [Step; 2] {
    [acting("g", false, &[tier(0, 90.0, action)]), acting("r", false, &[tier(0, 90.0, Action::Ban)])]
}

fn acts(action: &str, policy: &str) -> (String, String) {
    (action.to_owned(), format!("threat-policies/{policy}"))
}

#[test]
fn a_late_decision_of_the_global_policy_leaves_the_late_ban_of_the_routes() {
    for (action, word) in [(Action::Log, "log"), (Action::Deny, "deny")] {
        let host = FakeHost::at(0);
        let [global, route] = late(action);
        let chain = chain(vec![late_detector("95"), global], vec![route]);
        let mut run = run(&chain, &host);
        assert_eq!(run.request_headers(false, &host), Flow::Continue);
        let flow = run.response_headers(Response { status: 200, ..Response::default() }, false, &host);
        assert!(matches!(flow, Flow::Answer(_)), "{flow:?}");
        run.finish(&host);
        assert_eq!(host.bans.borrow().len(), 1, "{word}");
        assert_eq!(actions(&host), [acts(word, "g"), acts("ban", "r")]);
    }
}

#[test]
fn a_late_decision_in_another_filter_leaves_that_ban_too() {
    let host = FakeHost::at(0);
    let [global, route] = late(Action::Deny);
    let for_others = |step: &Step| Step { on_refusal_only: true, ..step.clone() };
    let detectors = chain_of("finds-late", vec![late_detector("95"), for_others(&global)], vec![for_others(&route)]);
    let responses = chain_of("threat-response", vec![global], vec![route]);
    let mut first = run(&detectors, &host);
    assert_eq!(first.request_headers(false, &host), Flow::Continue);
    let mut second = run(&responses, &host);
    assert_eq!(second.request_headers(false, &host), Flow::Continue);
    let response = || Response { status: 200, ..Response::default() };
    assert_eq!(second.response_headers(response(), false, &host), Flow::Continue);
    assert!(matches!(first.response_headers(response(), false, &host), Flow::Answer(_)));
    second.finish(&host);
    assert_eq!(host.bans.borrow().len(), 1);
    assert_eq!(actions(&host), [acts("deny", "g"), acts("ban", "r")], "each once");
}

#[test]
fn a_refused_response_is_judged_once_by_all_policies() {
    let host = FakeHost::at(0);
    let [global, route] = late(Action::Ban);
    let chain = chain(vec![global], vec![late_detector("95!"), route]);
    let mut run = run(&chain, &host);
    assert_eq!(run.request_headers(false, &host), Flow::Continue);
    assert!(matches!(run.response_headers(Response::default(), false, &host), Flow::Answer(_)));
    run.finish(&host);
    assert_eq!((host.bans.borrow().len(), actions(&host)), (1, vec![acts("ban", "r")]));
}
