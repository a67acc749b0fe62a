use exchange::fake::FakeHost;
use exchange::{Chain, Flow, Headers, Registry, Request, Response, Run, Start};
use snapshot::{Snapshot, Step};

use super::*;

mod counting;
mod keys;
mod refusals;
mod rotation;

const NOW: u64 = 1_700_000_000_000;
const MINUTE: u64 = 60_000;

fn part(place: KeyPlace, text: &str) -> KeyPart {
    KeyPart { place: place.into(), text: text.to_owned() }
}

fn statuses(all: &[u32]) -> Vec<StatusRange> {
    all.iter().map(|status| StatusRange { first: *status, last: *status }).collect()
}

fn limits(max_retry: u32) -> Fail2BanRule {
    Fail2BanRule {
        statuses: statuses(&[401, 403, 407, 429]),
        max_retry,
        detect_millis: 10 * MINUTE,
        ban_millis: 60 * MINUTE,
        ..Fail2BanRule::default()
    }
}

/// The defaults but for the dry run, with three tries.
fn step() -> Fail2BanStep {
    Fail2BanStep {
        key: vec![part(KeyPlace::RouteId, ""), part(KeyPlace::Literal, "-"), part(KeyPlace::Ip, "")],
        weight: 3.0,
        general: Some(limits(3)),
        ..Fail2BanStep::default()
    }
}

fn chain(step: &Fail2BanStep) -> Chain {
    chain_of(&[(PLUGIN.name, step.encode_to_vec())], &[PLUGIN])
}

fn chain_of(steps: &[(&str, Vec<u8>)], registry: &Registry) -> Chain {
    let step = |(plugin, config): &(&str, Vec<u8>)| Step {
        plugin: (*plugin).to_owned(),
        config: config.clone(),
        ..Step::default()
    };
    let global = steps.iter().map(step).collect();
    Chain::load(&Snapshot { filter: "preset".into(), global, ..Snapshot::default() }, registry).unwrap()
}

/// A request from an address that the backend answers with a status.
fn send(chain: &Chain, host: &FakeHost, ip: &str, path: &str, status: u16) {
    let request = Request { method: b"POST".to_vec(), path: path.as_bytes().to_vec(), ..Request::default() };
    send_as(chain, host, ip, request, status);
}

fn send_as(chain: &Chain, host: &FakeHost, ip: &str, request: Request, status: u16) {
    let start = Start { request, route: b"", peer: ip.as_bytes(), node: &"node".into() };
    let mut run = Run::new(chain, start, host);
    if run.request_headers(false, host) == Flow::Continue {
        let response = Response { status, headers: Headers::default(), streaming: false };
        assert_eq!(run.response_headers(response, false, host), Flow::Continue);
    }
    run.finish(host);
}

fn banned(host: &FakeHost) -> Vec<String> {
    host.bans.borrow().iter().map(|ban| ban.identity.key()).collect()
}
