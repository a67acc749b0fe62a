use std::collections::{BTreeMap, BTreeSet};

use exchange::fake::FakeHost;
use exchange::{GivenAnswer, Headers, MatchedOperation, Response};
use snapshot::{AddToSet, AddedToSet, CountsDown, Message as _, SetMembership};

use super::*;

mod attacks;
mod budgets;
mod identification;
mod patterns;
mod simulation;

/// Some seconds after a full hour, and after a full minute.
const NOW: u64 = 1_700_002_810_000;

/// The defaults.
fn step() -> ObjectGuardStep {
    ObjectGuardStep {
        auto_detect: true,
        budget_window_seconds: 3600,
        surge: Some(SurgeLimits {
            factor: 5.0,
            floor: 30,
            ceiling: 150,
            bucket_seconds: 60,
            learning: 60,
            warmup: 10,
            weight: 40.0,
        }),
        walk: Some(WalkLimits { min: 30, window_seconds: 600, max_gap: 3, weight: 50.0 }),
        enumeration: Some(EnumerationLimits {
            min: 20,
            ratio: 0.5,
            window_seconds: 300,
            statuses: vec![401, 403, 404],
            weight: 50.0,
        }),
        max_keys: 20_000,
        ..ObjectGuardStep::default()
    }
}

fn scored() -> ObjectGuardStep {
    ObjectGuardStep { contribute: true, ..step() }
}

fn plugin(step: &ObjectGuardStep) -> Box<dyn Plugin> {
    build(&step.encode_to_vec(), &mut Build::new(std::iter::empty())).unwrap()
}

/// A request.
#[derive(Clone, Copy)]
struct Request<'a> {
    consumer: &'a str,
    path: &'a str,
    status: u16,
}

const GET: Request<'static> = Request { consumer: "shop", path: "/orders/1", status: 200 };

/// What has become of a request.
#[derive(Debug, Clone, Default, PartialEq)]
struct Sent {
    /// The status of a refusal.
    refused: Option<u16>,
    retry_after: Option<u64>,
    score: f64,
    /// With a space between them.
    tags: String,
}

fn exchange(consumer: &str, path: &str) -> Exchange {
    let mut exchange = Exchange::default();
    exchange.caller.ip = "192.0.2.1".into();
    exchange.caller.apikey = (!consumer.is_empty()).then(|| consumer.to_owned());
    exchange.route.id = "app".into();
    exchange.request.method = b"GET".to_vec();
    exchange.request.path = path.into();
    exchange
}

/// The sets of the control plane.
#[derive(Default)]
struct Store {
    sets: BTreeMap<u64, BTreeSet<u64>>,
    asked: usize,
    /// It does not answer.
    is_gone: bool,
}

impl Store {
    fn answer(&mut self, ask: &exchange::Ask) -> Answer {
        let Some(question) = ask.question.read::<AddToSet>().filter(|_| !self.is_gone) else {
            return Answer::Unavailable;
        };
        self.asked += 1;
        let set = self.sets.entry(question.own.unwrap().key).or_default();
        let membership = match () {
            () if set.contains(&question.member) => SetMembership::Known,
            () if set.len() >= question.limit as usize => SetMembership::Full,
            () => SetMembership::Added,
        };
        if membership == SetMembership::Added {
            set.insert(question.member);
        }
        let size = u32::try_from(set.len()).unwrap();
        Answer::Data(AddedToSet { membership: membership.into(), size }.encode_to_vec())
    }

    fn members(&self) -> usize {
        self.sets.values().map(BTreeSet::len).sum()
    }
}

/// A node that has the secret of all nodes.
fn node() -> FakeHost {
    let host = FakeHost::at(NOW);
    joins(&host, NOW);
    host
}

fn joins(host: &FakeHost, now_millis: u64) {
    let down = CountsDown { now_millis, key: vec![9; 16], instance: 1, ..CountsDown::default() };
    exchange::shared_counts::learn(host.shared(), &down, host.now());
}

fn pass(
    plugin: &dyn Plugin,
    host: &FakeHost,
    mut exchange: Exchange,
    status: u16,
    store: &mut Store,
) -> (Sent, Exchange) {
    host.state.borrow_mut().clear();
    let mut slot = Slot::default();
    let mut verdict = plugin.request(&mut exchange, false, &mut slot, host);
    while let Verdict::Ask(ask) = &verdict {
        let answer = store.answer(ask);
        verdict = plugin.answered(&mut exchange, answer, &mut slot, host);
    }
    let mut sent = Sent::default();
    if let Verdict::Refuse(refusal) = verdict {
        let header = refusal.headers.iter().find(|(name, _)| name == "retry-after");
        sent.refused = Some(refusal.status);
        sent.retry_after = header.map(|(_, value)| String::from_utf8_lossy(value).parse().unwrap());
    } else {
        assert_eq!(verdict, Verdict::Pass);
        exchange.response = Some(Response { status, ..Response::default() });
        assert_eq!(plugin.response(&mut exchange, true, &mut slot, host), Verdict::Pass);
    }
    plugin.finish(&mut exchange, &mut slot, host);
    (sent.score, sent.tags) = (exchange.score.total(), exchange.score.tags().join(" "));
    (sent, exchange)
}

/// Sends a request of a chain without a budget.
fn send(plugin: &dyn Plugin, host: &FakeHost, request: Request<'_>) -> Sent {
    let Request { consumer, path, status } = request;
    pass(plugin, host, exchange(consumer, path), status, &mut Store { is_gone: true, ..Store::default() }).0
}

/// The kinds of the events so far, by their tags.
fn told(host: &FakeHost) -> Vec<String> {
    let text = |event: serde_json::Value| {
        let tags = event["threat"]["tags"].as_array().unwrap().iter().map(|tag| tag.as_str().unwrap().to_owned());
        format!("{} {}", event["event"]["category"].as_str().unwrap(), tags.collect::<Vec<_>>().join(" "))
    };
    host.events_json().into_iter().map(text).collect()
}

fn messages(host: &FakeHost) -> Vec<String> {
    host.events_json().iter().map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}
