//! Policies as the control plane compiles them, in a plugin as a filter runs it.
#![cfg(feature = "control")]

mod canaries;
mod differential;
mod paths;
mod reactions;

use exchange::fake::FakeHost;
use exchange::{Chain, Flow, Headers, Run, Start};
use kit::{Head, Item};
use serde_json::{Value, json};
use snapshot::{Part, Snapshot, Step, content_hash};
use threat_response::ThreatResponseStep;

use super::*;
use crate::control::{HoneypotPolicy, compile};

/// A caller that no list has.
const PEER: &[u8] = b"192.0.2.7:4711";

/// A policy of these fields, without the decoys of a new one.
fn policy(fields: &Value) -> HoneypotPolicy {
    let mut all = json!({ "paths": [] });
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    serde_json::from_value(all).unwrap()
}

/// The global chain of a gateway with this policy alone.
fn chain(policy: HoneypotPolicy) -> Chain {
    chain_with(policy, None)
}

/// The same, with a threat response by a policy.
fn chain_with(policy: HoneypotPolicy, response: Option<snapshot::Policy>) -> Chain {
    let policy = Item { head: Head { id: "traps".into(), ..Head::default() }, body: policy };
    let data = compile::traps(&policy.body).encode_to_vec();
    let hash = content_hash(&data).to_vec();
    let config = compile::step(&policy, hash.clone()).encode_to_vec();
    let mut global = vec![Step { plugin: PLUGIN.name.into(), config, ..Step::default() }];
    if let Some(policy) = response {
        let config = ThreatResponseStep { policy: Some(policy), maze: None }.encode_to_vec();
        global.push(Step { plugin: threat_response::PLUGIN.name.into(), config, ..Step::default() });
    }
    let parts = vec![Part { hash, data }];
    // The composite leaves nothing in the filter state of a request, which a fake host has but one of.
    let snapshot = Snapshot { filter: "preset".into(), global, parts, ..Snapshot::default() };
    Chain::load(&snapshot, &[PLUGIN, threat_response::PLUGIN]).unwrap()
}

/// A request that no route matches.
fn get(target: &[u8], headers: &[(&str, &[u8])]) -> Request {
    Request {
        method: b"GET".to_vec(),
        path: target.to_vec(),
        authority: b"shop.example".to_vec(),
        headers: Headers::new(headers),
        ..Request::default()
    }
}

/// The status that a request gets; `None` where it passes.
fn status(chain: &Chain, request: Request, host: &FakeHost) -> Option<u16> {
    let mut run = Run::new(chain, Start { request, route: b"", peer: PEER, node: &"node".into() }, host);
    match run.request_headers(false, host) {
        Flow::Continue => None,
        Flow::Answer(reply) => Some(reply.status),
        other => panic!("{other:?}"),
    }
}

/// The tags of the events of a request.
fn tags(chain: &Chain, request: Request) -> Vec<String> {
    let host = FakeHost::at(0);
    status(chain, request, &host);
    let tags = host.events_json().into_iter().flat_map(|event| event["threat"]["tags"].as_array().cloned().unwrap());
    tags.map(|tag| tag.as_str().unwrap().to_owned()).collect()
}

/// Whether a path is a decoy.
fn caught(chain: &Chain, target: impl AsRef<[u8]>) -> bool {
    !tags(chain, get(target.as_ref(), &[])).is_empty()
}
