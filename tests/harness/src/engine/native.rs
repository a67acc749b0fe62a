//! The plugins linked in: as fast as they get, and open to a debugger.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use exchange::{
    BanOrder, Body, Chain, Flow, Headers, Host, Level, MemorySharedData, Metric, Reply, Request, Response, Run,
    SharedData, Start,
};

use super::Engine;
use crate::traffic::{self, Exchange, LocalReply, LogLine, Outcome, events};

/// The bytes in front of every gRPC message.
const GRPC_PREFIX: usize = 5;

/// The plugins of the preset, run on a snapshot without a VM.
pub struct Native {
    chain: Chain,
    host: MemoryHost,
    node: Rc<str>,
}

/// The plugins' world in memory.
#[derive(Default)]
struct MemoryHost {
    now: Cell<u64>,
    random: Cell<u64>,
    state: RefCell<BTreeMap<String, Vec<u8>>>,
    shared: Rc<MemorySharedData>,
    logs: RefCell<Vec<LogLine>>,
}

/// One direction of an exchange.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Request,
    Response,
}

/// What became of one direction.
enum Passage {
    /// It goes on, with another body or the one it had.
    Open(Option<Vec<u8>>),
    Answered(Reply),
}

impl Native {
    /// Makes the chains of a snapshot in its envelope, on a node with this id and its clock at the given time, in
    /// milliseconds since the Unix epoch.
    ///
    /// # Errors
    ///
    /// What is wrong with the snapshot.
    pub fn load(configuration: &[u8], node: &str, now_millis: u64, seed: u64) -> Result<Self, String> {
        let (_, snapshot) = snapshot::open(configuration).map_err(|error| error.to_string())?;
        let chain = Chain::load(&snapshot, preset::REGISTRY).map_err(|error| error.to_string())?;
        let host = MemoryHost { now: Cell::new(now_millis), random: Cell::new(seed), ..MemoryHost::default() };
        Ok(Self { chain, host, node: node.into() })
    }

    /// Moves the clock on.
    pub fn advance(&mut self, millis: u64) {
        self.host.now.set(self.host.now.get().saturating_add(millis));
    }

    /// Follows what a plugin wants until one direction is through.
    fn drive(&self, run: &mut Run, mut flow: Flow, half: Half, body: &[u8], outcome: &mut Outcome) -> Passage {
        let mut replaced = None;
        loop {
            match flow {
                Flow::Continue => return Passage::Open(replaced),
                Flow::Answer(reply) => return Passage::Answered(reply),
                Flow::Hold { millis } => {
                    self.host.now.set(self.host.now.get().saturating_add(u64::from(millis)));
                    outcome.held_millis += u64::from(millis);
                    flow = run.resume(&self.host);
                }
                Flow::Buffer { limit } => {
                    let body = Body { bytes: body.get(..limit).unwrap_or(body), complete: body.len() <= limit };
                    flow = match half {
                        Half::Request => run.request_body(body, &self.host),
                        Half::Response => run.response_body(body, &self.host),
                    };
                    if flow == Flow::Continue {
                        replaced = run.take_replaced_body();
                    }
                }
            }
        }
    }
}

impl Engine for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn exchange(&mut self, exchange: &Exchange) -> Outcome {
        let mut outcome = Outcome::default();
        let script = &exchange.request;
        let headers = Headers::new(&script.headers);
        let may_be_grpc = self.chain.may_be_grpc(script.route.as_bytes());
        let (request, opening) = Request::read(headers, script.protocol.clone(), may_be_grpc);
        let start = Start { request, route: script.route.as_bytes(), peer: script.peer.as_bytes(), node: &self.node };
        let mut run = Run::new(&self.chain, start, &self.host);
        let has_body = !script.body.is_empty() || !script.trailers.is_empty();
        let mut flow = run.request_headers(has_body, &self.host);
        if opening.grpc && has_body && flow == Flow::Continue {
            flow = run.stream_start(script.body.get(..GRPC_PREFIX).unwrap_or(&script.body), &self.host);
        }
        match self.drive(&mut run, flow, Half::Request, &script.body, &mut outcome) {
            Passage::Answered(reply) => answer(reply, &mut outcome),
            Passage::Open(replaced) => {
                outcome.reached_backend = true;
                (outcome.request_headers, outcome.request_body) = carry(&script.headers, &script.body, replaced);
                let script = &exchange.response;
                let mut headers = vec![(b":status".to_vec(), script.status.to_string().into_bytes())];
                headers.extend(script.headers.iter().cloned());
                let response = Response::read(Headers::new(&headers), opening);
                let has_body = !script.body.is_empty() || !script.trailers.is_empty();
                let flow = run.response_headers(response, has_body, &self.host);
                match self.drive(&mut run, flow, Half::Response, &script.body, &mut outcome) {
                    Passage::Answered(reply) => answer(reply, &mut outcome),
                    Passage::Open(replaced) => {
                        outcome.status = script.status;
                        (outcome.response_headers, outcome.body) = carry(&headers, &script.body, replaced);
                    }
                }
            }
        }
        run.finish(&self.host);
        outcome.filter_state = self.host.state.take();
        outcome.events = events(&outcome.filter_state);
        outcome.logs = self.host.logs.take();
        outcome
    }
}

/// Headers and body as they go on; another body brings its length along.
fn carry(headers: &traffic::Headers, body: &[u8], replaced: Option<Vec<u8>>) -> (traffic::Headers, Vec<u8>) {
    let mut headers = headers.clone();
    let Some(body) = replaced else { return (headers, body.to_vec()) };
    if let Some((_, length)) = headers.iter_mut().find(|(name, _)| name == b"content-length") {
        *length = body.len().to_string().into_bytes();
    }
    (headers, body)
}

fn answer(reply: Reply, outcome: &mut Outcome) {
    let headers: traffic::Headers = reply.headers.into_iter().map(|(name, value)| (name.into_bytes(), value)).collect();
    let reply = LocalReply { status: reply.status, details: "palisade".to_owned(), headers, body: reply.body };
    outcome.response_headers = crate::host::local_reply_headers(&reply);
    (outcome.status, outcome.body) = (reply.status, reply.body.clone());
    outcome.local_reply = Some(reply);
}

/// The request as the filters' gateway side reads it, and whether it is an upgrade.
impl Host for MemoryHost {
    fn now(&self) -> u64 {
        self.now.get()
    }

    fn random(&self) -> u64 {
        let state = self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random.set(state);
        (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    fn filter_state(&self, token: &str) -> Option<Vec<u8>> {
        self.state.borrow().get(token).cloned()
    }

    fn set_filter_state(&self, token: &str, value: &[u8]) {
        self.state.borrow_mut().insert(token.to_owned(), value.to_vec());
    }

    fn shared(&self) -> &dyn SharedData {
        &self.shared
    }

    fn shared_handle(&self) -> Rc<dyn SharedData> {
        Rc::clone(&self.shared) as Rc<dyn SharedData>
    }

    fn count(&self, _metric: Metric) {}

    fn log(&self, level: Level, message: &str) {
        let level = match level {
            Level::Debug => 1,
            Level::Info => 2,
            Level::Warn => 3,
            Level::Error => 4,
        };
        self.logs.borrow_mut().push(LogLine { level, text: message.to_owned() });
    }

    // Events are read from filter state, where the gateway's access log finds them as well.
    fn send_event(&self, _event: &[u8]) {}

    // A ban is in force on this node before it is ordered for all; there are no others here.
    fn send_ban(&self, _ban: BanOrder) {}
}
