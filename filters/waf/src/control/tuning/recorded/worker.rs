//! The plugin on recorded exchanges, in one thread.

use std::rc::Rc;

use exchange::{Build, Chain, Headers, Request, Run, Start, Tables};
use kit::RecordedExchange;

use super::host::RecordedHost;
use super::replay::Setup;
use crate::PLUGIN;
use crate::control::operations::trial::{Pass, ReadResponse};
use crate::samples::Counted;
use crate::samples::messages::{Matched, Parameter, Totals};
use crate::samples::recorded::{counting, has_room, keep_secrets, take_matches, take_parameters, take_totals};

/// An exchange with its place and its time.
pub(super) struct Timed {
    /// From 1.
    pub(super) number: u64,
    /// In milliseconds since 1970.
    pub(super) at_millis: u64,
    pub(super) exchange: RecordedExchange,
}

/// What some exchanges counted for.
#[derive(Default)]
pub(super) struct Part {
    /// The time of the last of them, in milliseconds since 1970.
    pub(super) now_millis: u64,
    pub(super) totals: Option<Totals>,
    pub(super) matches: Vec<Matched>,
    pub(super) parameters: Vec<Parameter>,
}

/// One engine, as a worker of a node has it.
pub(super) struct Worker {
    chain: Chain,
    host: RecordedHost,
    counted: Rc<Counted>,
    config: String,
    node: Rc<str>,
}

impl Worker {
    /// # Errors
    /// The plugin cannot be made; for people.
    pub(super) fn new(setup: &Setup) -> Result<Self, String> {
        let build = Build::new(std::iter::empty()).with_tables(Rc::new(Tables::default()));
        let config = setup.step.id.clone();
        let (plugin, counted) = counting(setup.step.clone(), setup.engine.clone(), &build)?;
        let mut chain = Chain::single(PLUGIN.name, plugin);
        chain.identity = setup.identity.clone();
        let host = RecordedHost::default();
        keep_secrets(&host);
        Ok(Self { chain, host, counted, config, node: Rc::from("") })
    }

    /// Runs exchanges. What they count for does not depend on what ran before, but for what rules keep themselves.
    pub(super) fn run(&self, batch: &[Timed]) -> Vec<Part> {
        let mut parts = Vec::new();
        for one in batch {
            self.exchange(one);
            // No match is left out because many bodies wait.
            if !has_room(&self.host) {
                parts.push(self.part(one.at_millis));
            }
        }
        parts.extend(batch.last().map(|last| self.part(last.at_millis)));
        parts
    }

    fn part(&self, now_millis: u64) -> Part {
        Part {
            now_millis,
            totals: take_totals(&self.counted, &self.config),
            matches: take_matches(&self.host),
            parameters: take_parameters(&self.host),
        }
    }

    fn exchange(&self, Timed { number, at_millis, exchange }: &Timed) {
        self.host.begin(*number, *at_millis, &exchange.local);
        let (headers, protocol) = (Headers::new(&exchange.headers), exchange.protocol.clone());
        let (mut request, opening) = Request::read(headers, protocol, true);
        request.id = format!("{number:032x}").into_bytes();
        let start = Start { request, route: b"", peer: exchange.peer.as_bytes(), node: &self.node };
        let run = Run::new(&self.chain, start, &self.host);
        let mut headers = vec![(b":status".to_vec(), exchange.status.to_string().into_bytes())];
        headers.extend(exchange.response_headers.iter().cloned());
        let response = ReadResponse { headers, body: exchange.response_body.clone() };
        Pass { run, host: &self.host, request: &exchange.body, response: Some(&response), opening }.finish();
    }
}
