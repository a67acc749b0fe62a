//! The plugins linked in: as fast as they get, and open to a debugger.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use exchange::{
    Answer, Ask, BanOrder, Body, Chain, Flow, HeaderChange, Headers, Host, Level, MemorySharedData, Metric, Opening,
    PluginDefinition, Reply, Request, Response, Run, SharedData, Start, shared_counts,
};

use super::Engine;
use double::{Counting, Script, Scripted, read_body};
use proxy_host::traffic::{self, Exchange, LocalReply, LogLine, Outcome, events};

/// The bytes in front of every gRPC message.
const GRPC_PREFIX: usize = 5;
/// How much of a body is handed over at once where it is read as it comes, as the filters do.
const PIECE: usize = 64 * 1024;

/// The plugins of the preset, run on a snapshot without a VM.
pub struct Native {
    chain: Chain,
    host: MemoryHost,
    node: Rc<str>,
    /// Who answers questions; `None` for a node without a control plane.
    script: Option<Script>,
    /// Whom the node counts together with others over.
    counting: Option<Arc<Counting>>,
}

/// The plugins' world in memory.
#[derive(Default)]
struct MemoryHost {
    now: Cell<u64>,
    random: Cell<u64>,
    state: RefCell<BTreeMap<String, Vec<u8>>>,
    /// The address that the connection came to.
    local: RefCell<String>,
    shared: Rc<MemorySharedData>,
    logs: RefCell<Vec<LogLine>>,
    metrics: RefCell<BTreeMap<&'static str, i64>>,
    events: Cell<u64>,
    bans: Cell<u64>,
    reports: Cell<u64>,
}

/// An exchange on its way through the plugins.
pub(crate) struct Journey {
    run: Run,
    opening: Opening,
    half: Half,
    outcome: Outcome,
    /// Its filter state and its log lines, while it is held and others run.
    kept: (BTreeMap<String, Vec<u8>>, Vec<LogLine>),
}

/// How far an exchange came.
pub(crate) enum Stage {
    /// To its end.
    Over(Box<Outcome>),
    /// A plugin holds it for so many milliseconds.
    Held(Box<Journey>, u32),
}

/// One direction of an exchange.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Request,
    Response,
}

impl Native {
    /// Makes the chains of a snapshot in its envelope, on a node with this id and its clock at the given time, in
    /// milliseconds since the Unix epoch.
    ///
    /// # Errors
    ///
    /// What is wrong with the snapshot.
    pub fn load(configuration: &[u8], node: &str, now_millis: u64, seed: u64) -> Result<Self, String> {
        Self::load_of(preset::REGISTRY, configuration, node, now_millis, seed)
    }

    /// [`Native::load`] with other plugins than the preset's.
    ///
    /// # Errors
    ///
    /// What is wrong with the snapshot.
    pub fn load_of(
        plugins: &[PluginDefinition],
        configuration: &[u8],
        node: &str,
        now_millis: u64,
        seed: u64,
    ) -> Result<Self, String> {
        let (_, snapshot) = snapshot::open(configuration).map_err(|error| error.to_string())?;
        let chain = Chain::load(&snapshot, plugins).map_err(|error| error.to_string())?;
        let host = MemoryHost { now: Cell::new(now_millis), random: Cell::new(seed), ..MemoryHost::default() };
        Ok(Self { chain, host, node: node.into(), script: None, counting: None })
    }

    /// Has questions answered by a script. The clock moves on by what an answer takes.
    #[must_use]
    pub fn with_control_plane(mut self, script: Script) -> Self {
        self.script = Some(script);
        self
    }

    /// Has the node count together with the others of this double, which answers its questions as well. What nodes have to say goes
    /// up after each exchange, and what others have said comes down before the next.
    #[must_use]
    pub fn counting_with(mut self, counting: &Arc<Counting>) -> Self {
        self.script = Some(counting.script(&self.node));
        self.counting = Some(Arc::clone(counting));
        self.link_counts();
        self
    }

    /// The control plane is gone, until [`Native::link_counts`].
    pub fn lose_counts(&mut self) {
        shared_counts::lost(self.host.shared());
        self.script = Some(Arc::new(|_| Scripted::Unknown));
    }

    /// The node has a link again, perhaps to another process.
    pub fn link_counts(&mut self) {
        let Some(counting) = &self.counting else { return };
        self.script = Some(counting.script(&self.node));
        shared_counts::learn(self.host.shared(), &counting.greet(&self.node), self.host.now());
        self.carry_counts();
    }

    /// Takes a link to another double.
    pub fn link_counts_to(&mut self, counting: &Arc<Counting>) {
        self.counting = Some(Arc::clone(counting));
        self.link_counts();
    }

    fn carry_counts(&self) {
        let Some(counting) = &self.counting else { return };
        while let Some(up) = shared_counts::news(self.host.shared(), self.host.now()) {
            let taken = counting.take(&self.node, &up);
            shared_counts::learn(self.host.shared(), &taken, self.host.now());
        }
        for down in counting.news(&self.node) {
            shared_counts::learn(self.host.shared(), &down, self.host.now());
        }
    }

    /// Moves the clock on.
    pub fn advance(&mut self, millis: u64) {
        self.set_now_millis(self.now_millis().saturating_add(millis));
    }

    /// The clock, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn now_millis(&self) -> u64 {
        self.host.now.get()
    }

    /// The plugins' metrics by name; those that were never counted are missing.
    #[must_use]
    pub fn metrics(&self) -> BTreeMap<String, i64> {
        self.host.metrics.borrow().iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    /// How many events and how many bans a control plane would have heard of.
    #[must_use]
    pub fn sent(&self) -> (u64, u64) {
        (self.host.events.get(), self.host.bans.get())
    }

    pub(crate) fn set_now_millis(&self, millis: u64) {
        self.host.now.set(millis);
    }

    /// Starts an exchange.
    pub(crate) fn begin(&self, exchange: &Exchange) -> Stage {
        let script = &exchange.request;
        let headers = Headers::new(&script.headers);
        let may_be_grpc = self.chain.may_be_grpc(script.route.as_bytes());
        let (request, opening) = Request::read(headers, script.protocol.clone(), may_be_grpc);
        let start = Start { request, route: script.route.as_bytes(), peer: script.peer.as_bytes(), node: &self.node };
        self.host.local.borrow_mut().clone_from(&script.local);
        let mut run = Run::new(&self.chain, start, &self.host);
        let has_body = !script.body.is_empty() || !script.trailers.is_empty();
        let mut flow = run.request_headers(has_body, &self.host);
        if opening.grpc && has_body && flow == Flow::Continue {
            flow = run.stream_start(script.body.get(..GRPC_PREFIX).unwrap_or(&script.body), &self.host);
        }
        let (outcome, kept) = (Outcome::default(), (BTreeMap::new(), Vec::new()));
        let journey = Journey { run, opening, half: Half::Request, outcome, kept };
        self.follow(journey, flow, exchange)
    }

    /// Goes on with an exchange that was held for so many milliseconds.
    pub(crate) fn resume(&self, mut journey: Box<Journey>, held_millis: u64, exchange: &Exchange) -> Stage {
        let (state, logs) = std::mem::take(&mut journey.kept);
        (*self.host.state.borrow_mut(), *self.host.logs.borrow_mut()) = (state, logs);
        self.host.local.borrow_mut().clone_from(&exchange.request.local);
        journey.outcome.held_millis += held_millis;
        let flow = journey.run.resume(&self.host);
        self.follow(*journey, flow, exchange)
    }

    /// Ends an exchange that was held for too long.
    pub(crate) fn give_up(&self, mut journey: Journey, held_millis: u64, status: u16) -> Outcome {
        let (state, logs) = std::mem::take(&mut journey.kept);
        (*self.host.state.borrow_mut(), *self.host.logs.borrow_mut()) = (state, logs);
        let outcome = &mut journey.outcome;
        (outcome.stalled, outcome.status) = (true, status);
        outcome.held_millis += held_millis;
        self.end(journey)
    }

    /// Follows what the plugins want until the exchange is through or held.
    fn follow(&self, mut journey: Journey, mut flow: Flow, exchange: &Exchange) -> Stage {
        loop {
            flow = match (flow, journey.half) {
                (Flow::Hold { millis }, _) => {
                    journey.kept = (self.host.state.take(), self.host.logs.take());
                    return Stage::Held(Box::new(journey), millis);
                }
                (Flow::Ask(ask), half) => {
                    let body = if half == Half::Request { &exchange.request.body } else { &exchange.response.body };
                    let asked = journey.run.asked_body();
                    let body =
                        asked.map(|asked| asked.replaced.unwrap_or(body).get(..asked.length).unwrap_or_default());
                    let answer = self.answer(&ask, body.unwrap_or_default());
                    journey.run.answered(answer, &self.host)
                }
                (Flow::Answer(reply), _) => {
                    answer(reply, &mut journey.outcome);
                    if exchange.request.header(":method") == Some(b"HEAD") {
                        journey.outcome.body.clear();
                    }
                    return Stage::Over(Box::new(self.end(journey)));
                }
                (Flow::Buffer { limit }, half) => {
                    let body = if half == Half::Request { &exchange.request.body } else { &exchange.response.body };
                    let body = Body { bytes: body.get(..limit).unwrap_or(body), complete: body.len() <= limit };
                    match half {
                        Half::Request => journey.run.request_body(body, &self.host),
                        Half::Response => journey.run.response_body(body, &self.host),
                    }
                }
                (Flow::Read { limit }, _) => {
                    let body = &exchange.request.body;
                    let mut pieces = body.get(..limit).unwrap_or(body).chunks(PIECE);
                    let mut flow = Flow::Read { limit };
                    while let (Flow::Read { .. }, Some(piece)) = (&flow, pieces.next()) {
                        flow = journey.run.request_piece(piece, &self.host);
                    }
                    if matches!(flow, Flow::Read { .. }) {
                        flow = journey.run.request_end(body.len() <= limit, &self.host);
                    }
                    flow
                }
                (Flow::Continue, Half::Request) => {
                    let refused = self.pass_rest(&mut journey.run, &exchange.request.body);
                    if refused != Flow::Continue {
                        flow = refused;
                        continue;
                    }
                    let outcome = &mut journey.outcome;
                    outcome.reached_backend = true;
                    let script = &exchange.request;
                    outcome.request_headers = script.headers.clone();
                    change(&mut outcome.request_headers, journey.run.take_changes(exchange::Half::Request));
                    let replaced = journey.run.take_replaced_body();
                    outcome.request_body = replaced.unwrap_or_else(|| script.body.clone());
                    journey.half = Half::Response;
                    let script = &exchange.response;
                    let response = Response::read(Headers::new(&response_headers(script)), journey.opening);
                    let has_body = !script.body.is_empty() || !script.trailers.is_empty();
                    journey.run.response_headers(response, has_body, &self.host)
                }
                (Flow::Continue, Half::Response) => {
                    let (outcome, script) = (&mut journey.outcome, &exchange.response);
                    outcome.response_headers = response_headers(script);
                    change(&mut outcome.response_headers, journey.run.take_changes(exchange::Half::Response));
                    outcome.status = status_of(&outcome.response_headers).unwrap_or(script.status);
                    let replaced = journey.run.take_replaced_body();
                    outcome.body = replaced.unwrap_or_else(|| script.body.clone());
                    if !script.trailers.is_empty() && journey.run.wants_response_trailers() {
                        journey.run.response_trailers(&Headers::new(&script.trailers), &self.host);
                    }
                    return Stage::Over(Box::new(self.end(journey)));
                }
            };
        }
    }

    /// The answer to a question. Without a control plane, what was spent on this node is known already, and there is no other
    /// node.
    fn answer(&self, ask: &Ask, body: &[u8]) -> Answer {
        let Some(script) = &self.script else { return Answer::NoControlPlane };
        let (millis, answer) = match script(&ask.question) {
            Scripted::Data(data) => (0, Answer::Data(data)),
            Scripted::Read { most, answer } => (0, Answer::Data(read_body(body, most, answer))),
            Scripted::After(millis, data) if millis < u64::from(ask.millis) => (millis, Answer::Data(data)),
            Scripted::After(..) | Scripted::Never | Scripted::Held(_) | Scripted::Stall { .. } => {
                (u64::from(ask.millis), Answer::Unavailable)
            }
            Scripted::Unknown | Scripted::Lose => (0, Answer::Unavailable),
        };
        self.set_now_millis(self.now_millis().saturating_add(millis));
        answer
    }

    /// Shows what follows the inspected part of a body, piece by piece; anything but `Continue` refuses the request.
    fn pass_rest(&self, run: &mut Run, body: &[u8]) -> Flow {
        let Some(mut rest) = run.rest_from().map(|from| body.get(from..).unwrap_or_default()) else {
            return Flow::Continue;
        };
        loop {
            let (piece, after) = rest.split_at(rest.len().min(PIECE));
            let flow = run.request_rest(piece, after.is_empty(), &self.host);
            if flow != Flow::Continue || after.is_empty() {
                return flow;
            }
            rest = after;
        }
    }

    fn end(&self, mut journey: Journey) -> Outcome {
        journey.run.finish(&self.host);
        let mut outcome = journey.outcome;
        outcome.filter_state = self.host.state.take();
        outcome.events = events(&outcome.filter_state);
        outcome.logs = self.host.logs.take();
        outcome
    }
}

impl Engine for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn exchange(&mut self, exchange: &Exchange) -> Outcome {
        self.carry_counts();
        let mut stage = self.begin(exchange);
        loop {
            stage = match stage {
                Stage::Over(outcome) => {
                    self.carry_counts();
                    return *outcome;
                }
                Stage::Held(journey, millis) => {
                    self.advance(u64::from(millis));
                    self.resume(journey, u64::from(millis), exchange)
                }
            };
        }
    }
}

fn response_headers(script: &traffic::Response) -> traffic::Headers {
    let status = (b":status".to_vec(), script.status.to_string().into_bytes());
    std::iter::once(status).chain(script.headers.iter().cloned()).collect()
}

/// Headers as they go on.
fn change(headers: &mut traffic::Headers, changes: Vec<HeaderChange>) {
    for change in changes {
        match change {
            HeaderChange::Set { name, value } => proxy_host::headers::replace(headers, name.as_bytes(), value),
            HeaderChange::Add { name, value } => proxy_host::headers::add(headers, name.as_bytes(), value),
            HeaderChange::Remove { name } => proxy_host::headers::remove(headers, name.as_bytes()),
        }
    }
}

fn status_of(headers: &traffic::Headers) -> Option<u16> {
    std::str::from_utf8(proxy_host::headers::get(headers, b":status")?).ok()?.parse().ok()
}

fn answer(reply: Reply, outcome: &mut Outcome) {
    let headers: traffic::Headers = reply.headers.into_iter().map(|(name, value)| (name.into_bytes(), value)).collect();
    let reply = LocalReply { status: reply.status, details: "palisade".to_owned(), headers, body: reply.body };
    outcome.response_headers = proxy_host::local_reply_headers(&reply);
    (outcome.status, outcome.body) = (reply.status, reply.body.clone());
    outcome.local_reply = Some(reply);
}

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

    fn local_address(&self) -> Option<Vec<u8>> {
        let local = self.local.borrow();
        (!local.is_empty()).then(|| local.as_bytes().to_vec())
    }

    // Nothing stands in front of the filters here that could have verified a caller.
    fn property(&self, _path: &[String]) -> Option<Vec<u8>> {
        None
    }

    fn shared(&self) -> &dyn SharedData {
        &self.shared
    }

    fn shared_handle(&self) -> Rc<dyn SharedData> {
        Rc::clone(&self.shared) as Rc<dyn SharedData>
    }

    fn count(&self, metric: Metric) {
        *self.metrics.borrow_mut().entry(metric.name()).or_default() += 1;
    }

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
    fn send_event(&self, _event: &[u8]) {
        self.events.set(self.events.get() + 1);
    }

    // A ban is in force on this node before it is ordered for all; there are no others here.
    fn send_ban(&self, _ban: BanOrder) {
        self.bans.set(self.bans.get() + 1);
    }

    fn send_report(&self, _kind: &'static str, _data: Vec<u8>) {
        self.reports.set(self.reports.get() + 1);
    }
}
