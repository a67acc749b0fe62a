//! Recorded traffic of the operator, without an exclusion and with it.

use std::collections::BTreeSet;
use std::sync::Arc;

use kit::{RecordedExchange, RecordedTraffic};
use serde::Serialize;
use snapshot::content_hash;

use super::attacks::{Hits, PEER, is_blocked};
use super::bench::Bench;
use super::parallel::each;
use crate::control::operations::trial::{ReadRequest, Trial};
use crate::control::tuning::exclusion::Place;

/// What the requests of a recording come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(in super::super) struct TrafficOutcome {
    /// The id of the recording, and its name.
    pub(in super::super) id: String,
    pub(in super::super) name: String,
    /// The exchanges of the whole recording, and the requests of it that were replayed.
    pub(in super::super) total: u64,
    pub(in super::super) requests: usize,
    /// Those that are refused, or would be if the config blocked.
    pub(in super::super) refused_before: usize,
    pub(in super::super) refused_after: usize,
    /// Those in which the rule matches at the input of the exclusion.
    pub(in super::super) matched_before: usize,
    pub(in super::super) matched_after: usize,
}

/// Recorded requests, and what they come to without an exclusion.
pub(super) struct Traffic {
    recorded: Arc<RecordedTraffic>,
    before: Arc<Vec<Option<Ran>>>,
}

/// What a recorded request comes to; `None` stands for one that cannot be run.
pub(super) struct Ran {
    hits: Hits,
    refused: bool,
}

impl Traffic {
    /// The recording that was uploaded last, unless there is none. It runs without an exclusion, unless that was done lately.
    ///
    /// # Errors
    /// The recording cannot be read, or the config does not compile; for people.
    pub(super) fn latest(bench: &Bench<'_>) -> Result<Option<Self>, String> {
        let Some(recorded) = bench.traffic.map_or(Ok(None), |source| source.latest())? else { return Ok(None) };
        let key = content_hash(&[bench.fingerprint().as_slice(), recorded.id.as_bytes()].concat());
        let before = match bench.bases.traffic(&key) {
            Some(known) => known,
            None => {
                let built = bench.build(None)?;
                let trial = bench.trial(&built);
                let ran = Arc::new(each(bench.threads, &recorded.exchanges, |exchange| run(&trial, exchange)));
                bench.bases.put_traffic(key, &ran);
                ran
            }
        };
        Ok(Some(Self { recorded, before }))
    }

    /// What changes with an exclusion. `changed` are the rules that it changes, `None` for any: a request that none of them has matched comes
    /// to the same end and is not run again.
    pub(super) fn outcome(
        &self,
        threads: usize,
        trial: &Trial<'_>,
        place: &Place,
        changed: Option<&BTreeSet<u64>>,
    ) -> TrafficOutcome {
        let RecordedTraffic { id, name, exchanges, total } = &*self.recorded;
        let ran = || self.before.iter().flatten();
        let touched = exchanges.iter().zip(&*self.before).filter_map(|(exchange, before)| {
            let before = before.as_ref()?;
            changed.is_none_or(|changed| before.hits.have_rule(changed)).then_some((exchange, before))
        });
        let touched: Vec<_> = touched.collect();
        let after = each(threads, &touched, |(exchange, _)| run(trial, exchange));
        let (refused, matched) = (|one: &Ran| one.refused, |one: &Ran| one.hits.have(place));
        // How many have a property from then on: those that keep it because nothing about them changes, and those that are run again.
        let count = |has: &dyn Fn(&Ran) -> bool| -> (usize, usize) {
            let before = ran().filter(|one| has(one)).count();
            let touched = touched.iter().filter(|(_, one)| has(one)).count();
            let after = after.iter().flatten().filter(|one| has(one)).count();
            (before, before.saturating_sub(touched).saturating_add(after))
        };
        let ((refused_before, refused_after), (matched_before, matched_after)) = (count(&refused), count(&matched));
        let (id, name, requests) = (id.clone(), name.clone(), ran().count());
        TrafficOutcome {
            id,
            name,
            total: *total,
            requests,
            refused_before,
            refused_after,
            matched_before,
            matched_after,
        }
    }
}

fn run(trial: &Trial<'_>, exchange: &RecordedExchange) -> Option<Ran> {
    let seen = trial.pass_as(b"", &read(exchange)?, None).ok()?;
    Some(Ran { hits: Hits::of(&seen), refused: is_blocked(&seen) })
}

/// A recorded request as the engine takes it; `None` where it has no method or no path.
fn read(exchange: &RecordedExchange) -> Option<ReadRequest> {
    let named = |wanted: &[u8]| exchange.headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
    let method = String::from_utf8(named(b":method")?.clone()).ok()?;
    let uri = named(b":path")?.clone();
    let given = exchange.headers.iter().filter(|(name, _)| !name.starts_with(b":"));
    let mut headers: Vec<_> = given.map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
    if let Some(host) = named(b":authority").filter(|_| !headers.iter().any(|(name, _)| name == b"host")) {
        headers.insert(0, (b"host".to_vec(), host.clone()));
    }
    let protocol = String::from_utf8(exchange.protocol.clone()).ok().filter(|protocol| !protocol.is_empty());
    let protocol = protocol.unwrap_or_else(|| PROTOCOL.to_owned());
    let peer = if exchange.peer.is_empty() { PEER.to_owned() } else { exchange.peer.clone() };
    Some(ReadRequest { method, uri, protocol, headers, body: exchange.body.clone(), peer })
}

/// The protocol of a request that names none.
const PROTOCOL: &str = "HTTP/1.1";
