use std::rc::Rc;

use ::tables::{LabelWidth, RangesBuilder, State};
use exchange::fake::FakeHost;
use exchange::{Headers, Tables, Taken};

use super::*;

mod dimensions;
mod events;
mod learning;
mod memory;
mod simulation;

const NOW: u64 = 1_700_000_000_000;
const BUCKET: u64 = 10_000;

/// The defaults.
fn step() -> TrafficGuardStep {
    let all = [
        (Dimension::Route, 20.0, 40.0),
        (Dimension::Source, 5.0, 40.0),
        (Dimension::Consumer, 10.0, 40.0),
        (Dimension::Asn, 20.0, 30.0),
    ];
    let dimension =
        |(dimension, floor, weight): (Dimension, _, _)| DimensionOfStep { dimension: dimension.into(), floor, weight };
    TrafficGuardStep {
        dimensions: all.map(dimension).to_vec(),
        surge_factor: 3.0,
        bucket_millis: 10_000,
        learning_buckets: 60,
        warmup_buckets: 6,
        max_keys: 200_000,
    }
}

fn limits() -> Limits {
    Limits { factor: 3.0, millis: 10_000, learning: 60, warmup: 6 }
}

/// One dimension of the defaults.
fn only(dimension: Dimension) -> TrafficGuardStep {
    let dimensions = step().dimensions.into_iter().filter(|one| one.dimension == i32::from(dimension)).collect();
    TrafficGuardStep { dimensions, ..step() }
}

/// The plugin on a worker that knows `192.0.2.0/24` as AS64496.
fn plugin(step: &TrafficGuardStep) -> Box<dyn Plugin> {
    plugin_with(step, true)
}

/// The plugin on a worker with the table of networks, or without.
fn plugin_with(step: &TrafficGuardStep, networks: bool) -> Box<dyn Plugin> {
    let tables = Rc::new(Tables::default());
    let mut build_of = Build::new(std::iter::empty()).with_tables(Rc::clone(&tables));
    let plugin = build(&step.encode_to_vec(), &mut build_of).unwrap();
    if !networks {
        return plugin;
    }
    let mut builder = RangesBuilder::new(LabelWidth::Four);
    builder.set("192.0.2.0".parse().unwrap(), "192.0.2.255".parse().unwrap(), 64496).unwrap();
    let data = builder.build().unwrap();
    let (state, size) = (State::of_base(&data).0.to_vec(), u32::try_from(data.len()).unwrap());
    let change = snapshot::TableChange { name: NETWORKS.into(), state, data, size, ..Default::default() };
    assert_eq!(tables.take(&change), Taken::Applied);
    plugin
}

/// A request.
#[derive(Clone, Copy)]
struct From<'a> {
    ip: &'a str,
    route: &'a str,
    apikey: Option<&'a str>,
    path: &'a str,
}

const ONE: From<'static> = From { ip: "198.51.100.1", route: "shop", apikey: None, path: "/" };

fn exchange(from: From<'_>) -> Exchange {
    let mut exchange = Exchange::default();
    exchange.caller.ip = from.ip.into();
    exchange.caller.apikey = from.apikey.map(str::to_owned);
    exchange.route.id = from.route.into();
    exchange.request.path = from.path.into();
    exchange.request.headers = Headers::new(&[("user-agent", "curl/8")]);
    exchange
}

/// Sends a request: its score, and its tags with a space between them.
fn send(plugin: &dyn Plugin, host: &FakeHost, from: From<'_>) -> (f64, String) {
    host.state.borrow_mut().clear();
    let mut exchange = exchange(from);
    let mut slot = Slot::default();
    assert_eq!(plugin.access(&mut exchange, &mut slot, host), Verdict::Pass);
    plugin.finish(&mut exchange, &mut slot, host);
    (exchange.score.total(), exchange.score.tags().join(" "))
}

/// Sends requests within a bucket, and goes on to the next: the outcome of the last one.
fn bucket(plugin: &dyn Plugin, host: &FakeHost, from: From<'_>, requests: u32) -> (f64, String) {
    let last = (0..requests).map(|_| send(plugin, host, from)).last();
    host.advance(BUCKET);
    last.unwrap_or_default()
}

fn messages(host: &FakeHost) -> Vec<String> {
    let event = |event: serde_json::Value| {
        assert_eq!((&event["event"]["category"], &event["event"]["outcome"]), (&"traffic".into(), &"observed".into()));
        event["message"].as_str().unwrap().to_owned()
    };
    host.events_json().into_iter().map(event).collect()
}
