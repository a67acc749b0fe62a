//! A threat response in the global chain and another in that of the route.

use exchange::{Chain, Flow, Request, Run, Start};
use snapshot::{RouteChain, Snapshot, Step};

use super::*;

/// A detector that adds as many points as its configuration says, and refuses where that ends with `!`.
struct Finds(f64, bool);

impl Plugin for Finds {
    fn request(&self, exchange: &mut Exchange, _has_body: bool, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        let signal = super::exchange(self.0).score.signals()[0].clone();
        exchange.score.add(signal);
        match self.1 {
            true => Verdict::Refuse(Refusal::new(406, Category::Threat, "rule 949110").scored()),
            false => Verdict::Pass,
        }
    }
}

fn finds(config: &[u8], _build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let text = String::from_utf8_lossy(config);
    Ok(Box::new(Finds(text.trim_end_matches('!').parse().unwrap(), text.ends_with('!'))))
}

const REGISTRY: &[PluginDefinition] = &[PLUGIN, PluginDefinition::new("finds", finds).role(Role::Detector)];

fn detector(config: &str) -> Step {
    Step { plugin: "finds".into(), config: config.into(), ..Step::default() }
}

fn acting(id: &str, dry_run: bool, tiers: &[Tier]) -> Step {
    let policy = Policy { id: id.into(), name: id.into(), dry_run, tiers: tiers.to_vec(), ..Policy::default() };
    let config = ThreatResponseStep { policy: Some(policy), maze: None }.encode_to_vec();
    Step { plugin: PLUGIN.name.into(), config, ..Step::default() }
}

fn chain(global: Vec<Step>, route: Vec<Step>) -> Chain {
    let routes = vec![RouteChain { name: "r".into(), steps: route, ..RouteChain::default() }];
    let snapshot = Snapshot { filter: "preset".into(), global, routes, ..Snapshot::default() };
    Chain::load(&snapshot, REGISTRY).unwrap()
}

/// The outcome of a request.
fn ask(chain: &Chain, host: &FakeHost) -> Flow {
    let request = Request { path: b"/".to_vec(), ..Request::default() };
    let start = Start { request, route: b"r", peer: b"192.0.2.1:1", node: &"n".into() };
    let mut run = Run::new(chain, start, host);
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
