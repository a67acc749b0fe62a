//! The WAF: a compiled SecLang rule set over a request and its response.
//!
//! Phases 1 and 2 run while the request is held, phases 3 and 4 while the response is, phase 5 when nothing can be
//! changed any more. A rule's refusal is carried out here where the configuration blocks; either way it becomes a signal
//! for the threat response, and every exchange in which a rule spoke ends in one `SvcWafTrailEvent`.

mod body;
mod collections;
#[cfg(feature = "control")]
pub mod control;
mod lookups;
mod messages;
mod refusal;
mod rest;
pub mod samples;
mod signals;
mod trail;
mod trailers;
mod watch;

use std::rc::Rc;
use std::sync::Arc;

use body::{added_by_gateway, bytes, was_chunked};
use collections::NodeCollections;
use exchange::{
    Body, BodyNeed, Build, Exchange, Half, Headers, Host, Metric, Plugin, PluginDefinition, Role, Slot, Timer, Verdict,
    is_error, split_address,
};
use lookups::{NodeLookups, NodeTables};
use refusal::BAD_REQUEST;
use seclang::vocabulary::Variable;
use seclang::{BodyLimits, BudgetLimits, Engine, Intervention, Program, Transaction, TransactionStart};
use snapshot::Message;
use watch::Seen;

pub use messages::{WafBudget, WafStep, WafZone};
pub use watch::{Watched, watched};

/// The plugin.
pub const PLUGIN: PluginDefinition = PluginDefinition::new("waf", build).role(Role::Detector);

struct Waf {
    step: WafStep,
    engine: Arc<Engine>,
    /// Its rules use persistent collections.
    persistent: bool,
    /// Its rules look at the gateway's own address or port. Asking for them costs as much as a dozen rules.
    local: bool,
    /// What its rules look up about addresses, if they do.
    tables: Option<Rc<NodeTables>>,
    /// Where the outcome of an exchange goes, for one who watches it, such as a console.
    seen: Option<Seen>,
    /// What it has counted since its timer ran.
    counted: Rc<samples::Counted>,
}

/// One exchange in the engine.
struct State {
    transaction: Transaction,
    /// What its rules have looked up.
    lookups: Option<Rc<NodeLookups>>,
    /// The last of the phases 1 to 4 that has begun.
    phase: u8,
    /// Phase 5 has run.
    logged: bool,
    /// The trail is told.
    concluded: bool,
    /// What was refused, for the trail.
    blocked: Option<Intervention>,
    /// The refusal by a limit that was not made, because nothing is refused in this exchange.
    unenforced: Option<Intervention>,
    /// What the rules found in the request is a signal already.
    contributed: bool,
    /// The refusal that was not made was known before the threat response acted on the request.
    of_request: bool,
    /// That the engine met a limit was told.
    failed: bool,
    /// That the rules matched in the rest of a long body was told.
    rest_told: bool,
    /// How many of the limits that cut the message short were told.
    left_out: usize,
    /// The request announced a body.
    has_body: bool,
    /// The keys that this exchange was counted for, by their hashes.
    sampled: Vec<u64>,
    /// The exchange is counted.
    counted: bool,
}

impl State {
    fn new(transaction: Transaction) -> Self {
        Self {
            transaction,
            lookups: None,
            phase: 1,
            logged: false,
            concluded: false,
            blocked: None,
            unenforced: None,
            contributed: false,
            of_request: false,
            failed: false,
            rest_told: false,
            left_out: 0,
            has_body: false,
            sampled: Vec::new(),
            counted: false,
        }
    }
}

fn build(config: &[u8], build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let step = WafStep::decode(config).map_err(|error| error.to_string())?;
    let engine = build.shared(&step.program, |bytes| Engine::new(Program::decode(bytes)?).map(Arc::new))?;
    let tables = NodeTables::new(&step, build)?;
    Ok(Box::new(Waf::new(step, engine, tables, None)))
}

impl Plugin for Waf {
    fn prepare(&self) -> bool {
        self.engine.prepare()
    }

    fn request(&self, exchange: &mut Exchange, has_body: bool, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let mut transaction = self.begin(exchange, has_body, host);
        let lookups = self.tables.as_ref().map(|tables| Rc::new(NodeLookups::new(tables, host)));
        if let Some(lookups) = &lookups {
            lookups.lend(&mut transaction);
        }
        let intervention = transaction.request_headers();
        let wants_body = transaction.wants_request_body();
        if self.step.inspect_output_body && transaction.inspects_responses() {
            exchange::codings::limit(exchange);
        }
        slot.put(State { lookups, has_body, ..State::new(transaction) });
        let Some(state) = slot.get::<State>() else {
            return Verdict::Pass;
        };
        if let Some(refusal) = self.refusal(intervention, state, exchange, Half::Request, host) {
            return Verdict::Refuse(refusal);
        }
        if let Some(refusal) = self.failure(state, exchange, Half::Request, host) {
            return Verdict::Refuse(refusal);
        }
        if let Some(refusal) = self.left_out(state, exchange, Half::Request, host) {
            return Verdict::Refuse(refusal);
        }
        let inspected = has_body && wants_body && self.step.inspect_input_body;
        if inspected && exchange.request.upgrades_with_body() {
            let reason = "an upgrade with a body cannot be inspected".to_owned();
            return self.unreadable(BAD_REQUEST, reason, &[], state, exchange, host);
        }
        if inspected && !exchange.request.streaming {
            return self.need_body(state, exchange, host);
        }
        // There is no body to wait for, but the rules of phase 2 look at much more than the body.
        self.phase_2(&[], true, state, exchange, host)
    }

    fn request_piece(&self, exchange: &mut Exchange, bytes: &[u8], slot: &mut Slot, host: &dyn Host) -> Verdict {
        let Some(state) = slot.get::<State>() else {
            return Verdict::Pass;
        };
        self.take_piece(bytes, state, exchange, host)
    }

    fn request_body(&self, exchange: &mut Exchange, body: Body<'_>, slot: &mut Slot, host: &dyn Host) -> Verdict {
        match slot.get::<State>() {
            Some(state) => self.inspect_request_body(body, state, exchange, host),
            None => Verdict::Pass,
        }
    }

    /// The rules of phase 2 look at much more than the body: withholding it is no way around them. A request that was refused already
    /// is not judged: what they miss in it is on its way.
    fn without_body(&self, exchange: &mut Exchange, status: u16, slot: &mut Slot, host: &dyn Host) -> Verdict {
        if is_error(status) {
            return Verdict::Pass;
        }
        let Some(state) = slot.get::<State>() else {
            return Verdict::Pass;
        };
        state.phase = 2;
        state.transaction.set_now(host.now());
        let intervention = state.transaction.request_body_withheld();
        self.judge_phase_2(intervention, state, exchange, host)
    }

    fn reads_rest(&self, slot: &mut Slot) -> bool {
        let state = slot.get::<State>();
        state.is_some_and(|state| state.transaction.scans_rest() && !state.transaction.request_body_limits().reject)
    }

    fn request_rest(
        &self,
        exchange: &mut Exchange,
        bytes: &[u8],
        end: bool,
        slot: &mut Slot,
        host: &dyn Host,
    ) -> Verdict {
        let Some(state) = slot.get::<State>() else {
            return Verdict::Pass;
        };
        let windows = state.transaction.request_body_rest(bytes, end);
        self.judge_rest(&windows, state, exchange, host)
    }

    /// The body of a gRPC stream passes by uninspected, so it has to be one.
    fn stream_start(&self, exchange: &mut Exchange, bytes: &[u8], slot: &mut Slot, host: &dyn Host) -> Verdict {
        // The prefix of a message: whether it is compressed, and its length in four bytes.
        let framed = bytes.is_empty() || matches!(bytes, [0 | 1, _, _, _, _, ..]);
        match slot.get::<State>() {
            Some(state) if !framed && self.step.inspect_input_body => {
                let reason = "the body is announced as gRPC and is none, so it cannot be inspected".to_owned();
                self.unreadable(BAD_REQUEST, reason, &[], state, exchange, host)
            }
            _ => Verdict::Pass,
        }
    }

    fn inspects_trailers(&self) -> bool {
        true
    }

    fn request_trailers(
        &self,
        exchange: &mut Exchange,
        trailers: &Headers,
        slot: &mut Slot,
        host: &dyn Host,
    ) -> Verdict {
        self.judge_trailers(exchange, trailers, slot, host)
    }

    fn response(&self, exchange: &mut Exchange, has_body: bool, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let Some(state) = slot.get::<State>() else {
            return Verdict::Pass;
        };
        let Some(response) = &exchange.response else {
            return Verdict::Pass;
        };
        let streaming = response.streaming;
        state.phase = 3;
        state.transaction.set_now(host.now());
        state.transaction.response_line(response.status, &exchange.request.protocol);
        for (name, value) in response.headers.regular() {
            state.transaction.response_header(name, value);
        }
        let intervention = state.transaction.response_headers();
        let wants_body = state.transaction.wants_response_body();
        if let Some(refusal) = self.refusal(intervention, state, exchange, Half::Response, host) {
            return Verdict::Refuse(refusal);
        }
        if let Some(refusal) = self.failure(state, exchange, Half::Response, host) {
            return Verdict::Refuse(refusal);
        }
        if let Some(refusal) = self.left_out(state, exchange, Half::Response, host) {
            return Verdict::Refuse(refusal);
        }
        if has_body && wants_body && self.step.inspect_output_body && !streaming {
            return Verdict::NeedBody(BodyNeed { limit: bytes(self.step.output_body_limit) });
        }
        self.phase_4(&[], true, state, exchange, host)
    }

    fn response_body(&self, exchange: &mut Exchange, body: Body<'_>, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let Some(state) = slot.get::<State>() else {
            return Verdict::Pass;
        };
        let (decoded, complete) = self.decoded_response(body, state, exchange);
        self.phase_4(&decoded, complete, state, exchange, host)
    }

    fn finish(&self, exchange: &mut Exchange, slot: &mut Slot, host: &dyn Host) {
        if let Some(state) = slot.get::<State>() {
            self.conclude(state, exchange, host);
            // Another plugin may have found the caller bad by the response.
            self.suspect(exchange, host);
        }
        if let Some(seen) = &self.seen {
            watch::hand_over(seen, slot);
        }
    }

    fn timer(&self) -> Option<Timer> {
        self.sampling_timer()
    }

    fn on_timer(&self, host: &dyn Host) {
        self.report_samples(host);
    }
}

impl Waf {
    fn new(step: WafStep, engine: Arc<Engine>, tables: Option<Rc<NodeTables>>, seen: Option<Seen>) -> Self {
        let persistent = engine.uses_collections();
        let local = engine.uses(Variable::ServerAddr) || engine.uses(Variable::ServerPort);
        Self { step, engine, persistent, local, tables, seen, counted: Rc::default() }
    }

    /// A transaction that knows the connection, the request line and the headers.
    fn begin(&self, exchange: &Exchange, has_body: bool, host: &dyn Host) -> Transaction {
        let mut transaction = self.begin_uncounted(exchange, has_body, host);
        if self.persistent {
            transaction.set_collections(Box::new(NodeCollections(host.shared_handle())));
        }
        transaction
    }

    /// The same without the collections in which rules count.
    fn begin_uncounted(&self, exchange: &Exchange, has_body: bool, host: &dyn Host) -> Transaction {
        let request = &exchange.request;
        let local = self.local.then(|| host.local_address()).flatten().unwrap_or_default();
        let (server_addr, server_port) = split_address(&local);
        let mut transaction = Transaction::new(
            Arc::clone(&self.engine),
            TransactionStart {
                unique_id: request.id.clone(),
                now_millis: host.now(),
                random: host.random(),
                client_addr: exchange.caller.ip.clone().into_bytes(),
                client_port: exchange.caller.port,
                server_addr: server_addr.into_bytes(),
                server_port,
            },
        );
        if let Some(budget) = &self.step.budget {
            let WafBudget { work, work_per_byte, memory, memory_per_byte } = *budget;
            transaction.set_budget(BudgetLimits { work, work_per_byte, memory, memory_per_byte });
        }
        if self.step.fail_open {
            transaction.fail_open();
        }
        transaction.allow_xml_doctype(self.step.allow_xml_doctype);
        transaction.limit_request_body(BodyLimits {
            total: self.step.input_files_limit.max(self.step.input_body_limit),
            without_files: self.step.input_body_limit,
            reject: self.step.reject_oversize,
        });
        let protocol: &[u8] = if request.protocol.is_empty() { b"HTTP/1.1" } else { &request.protocol };
        // The target of CONNECT is the authority alone (RFC 9112, section 3.2.3), and the gateway gives it no path.
        let connect = request.method == b"CONNECT" && request.path.is_empty();
        let target = if connect { &request.authority } else { &request.path };
        transaction.request_line(&request.method, target, protocol);
        // The gateway keeps the host apart from the headers; rules look for it among them.
        if request.headers.get("host").is_none() && !request.authority.is_empty() {
            transaction.request_header(b"host", &request.authority);
        }
        for (name, value) in request.headers.regular().filter(|(name, value)| !added_by_gateway(name, value)) {
            transaction.request_header(name, value);
        }
        if has_body && was_chunked(request, protocol) {
            transaction.request_header(b"transfer-encoding", b"chunked");
        }
        transaction
    }

    fn phase_2(
        &self,
        body: &[u8],
        complete: bool,
        state: &mut State,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Verdict {
        state.phase = 2;
        state.transaction.set_now(host.now());
        let intervention = state.transaction.request_body(body, complete);
        self.judge_phase_2(intervention, state, exchange, host)
    }

    /// What follows from phase 2, which has run.
    fn judge_phase_2(
        &self,
        intervention: Option<Intervention>,
        state: &mut State,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Verdict {
        if let Some(refusal) = self.refusal(intervention, state, exchange, Half::Request, host) {
            return Verdict::Refuse(refusal);
        }
        if let Some(refusal) = self.failure(state, exchange, Half::Request, host) {
            return Verdict::Refuse(refusal);
        }
        if let Some(refusal) = self.left_out(state, exchange, Half::Request, host) {
            return Verdict::Refuse(refusal);
        }
        if let Some(lookups) = &state.lookups {
            lookups.ask(host);
        }
        self.contribute(state, exchange, host);
        Verdict::Pass
    }

    fn phase_4(
        &self,
        body: &[u8],
        complete: bool,
        state: &mut State,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Verdict {
        state.phase = 4;
        state.transaction.set_now(host.now());
        let intervention = state.transaction.response_body(body, complete);
        if let Some(refusal) = self.refusal(intervention, state, exchange, Half::Response, host) {
            return Verdict::Refuse(refusal);
        }
        if let Some(refusal) = self.failure(state, exchange, Half::Response, host) {
            return Verdict::Refuse(refusal);
        }
        if let Some(refusal) = self.left_out(state, exchange, Half::Response, host) {
            return Verdict::Refuse(refusal);
        }
        self.conclude(state, exchange, host);
        Verdict::Pass
    }

    /// Runs phase 5 and tells the trail, once.
    fn conclude(&self, state: &mut State, exchange: &mut Exchange, host: &dyn Host) {
        if std::mem::replace(&mut state.concluded, true) {
            return;
        }
        self.log(state, host);
        if let Some(lookups) = &state.lookups {
            lookups.ask(host);
        }
        let event = trail::event(&self.step, state, exchange, host);
        let line = event.and_then(trail::TrailEvent::line);
        if let Some(line) = line {
            exchange.emit_line(line, host);
        }
        self.observe(state, exchange, host);
        self.sample(state, exchange, host);
    }

    /// Runs phase 5, once.
    fn log(&self, state: &mut State, host: &dyn Host) {
        if std::mem::replace(&mut state.logged, true) {
            return;
        }
        state.transaction.set_now(host.now());
        state.transaction.logging();
        for _ in 0..state.transaction.lost_writes() {
            host.count(Metric::CollectionWritesLost);
        }
    }
}

#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod tests;
