//! What APIs are asked for, as one worker counts it: calls of each operation, and paths outside of the contract.
//!
//! Counts lie in the worker's memory, whatever snapshots come and go, and are sent as what was added since the last report. Nothing
//! is shared between workers on the path of a request: the control plane adds them up. While the node is without its control plane,
//! counts go on in place, so that an outage costs no memory and loses nothing. A report is sent twice, because what is on its way when
//! a link breaks is lost; the control plane counts it once.

pub mod counts;
pub mod messages;
pub mod paths;
mod publish;
mod refusals;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use contract::Violation;
use exchange::{Exchange, Host, fold};

use counts::CallCounts;
use messages::AnswerSeen;
use paths::{MAX_PATHS, PathBook};
use refusals::Refusals;

/// How long an operation or a path without calls is remembered by a worker, in milliseconds.
const IDLE: u64 = 600_000;

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// An operation of the contract, by its number.
    Operation(u32),
    /// A path or a method that it does not have.
    Outside,
}

/// A call that is over.
pub(crate) struct Call<'c> {
    /// What was asked for.
    pub(crate) target: Target,
    /// The operation as the contract has it, where it is one.
    pub(crate) label: &'c dyn Fn() -> String,
    /// The hash of the contract.
    pub(crate) contract: &'c [u8],
    /// The first mismatch, where enforcing would have refused it.
    pub(crate) mismatch: Option<&'c Violation>,
    /// The most records of the worker.
    pub(crate) max_records: usize,
}

/// The counts of a worker.
#[derive(Debug, Default)]
pub(crate) struct Inventory(RefCell<State>);

#[derive(Debug, Default)]
struct State {
    /// The number of this worker; 0 before its first report.
    worker: u64,
    sequence: u64,
    /// When the last report was sent, and when the last one with counts, in milliseconds since the Unix epoch.
    published: u64,
    counted: u64,
    /// Something was counted since the last report.
    fresh: bool,
    routes: BTreeMap<Rc<str>, Route>,
    /// The contracts of the steps that run, with the time when each was last seen.
    contracts: BTreeMap<String, u64>,
    /// The last reports, to be sent once more.
    sent: Vec<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Route {
    /// By the first bytes of the hash of the contract and the number of the operation.
    operations: BTreeMap<([u8; 8], u32), Operation>,
    paths: PathBook<CallCounts>,
    outside: Refusals,
}

#[derive(Debug, Default)]
struct Operation {
    method: String,
    path: String,
    counts: CallCounts,
    refusals: Refusals,
}

impl Inventory {
    /// That of the worker.
    pub(crate) fn of(host: &dyn Host) -> Rc<Self> {
        host.shared().memory().beside()
    }

    /// Counts a call.
    pub(crate) fn count(&self, call: &Call<'_>, exchange: &Exchange, host: &dyn Host) {
        // Two calls are never counted at once; if they were, one would be lost.
        let Ok(mut state) = self.0.try_borrow_mut() else { return };
        let now = host.now();
        // What the backend has answered counts, also where a filter has put another answer in its place.
        let status = exchange.response.as_ref().map(|response| response.status);
        let refused = exchange.answered;
        state.fresh = true;
        let has_room = |state: &State| state.records() < call.max_records;
        let key = (call.contract.first_chunk().copied().unwrap_or_default(), call.number());
        let is_known = |state: &State| match (call.target, state.routes.get(&exchange.route.id)) {
            (Target::Operation(_), Some(route)) => route.operations.contains_key(&key),
            _ => false,
        };
        let room = is_known(&state) || has_room(&state);
        if !state.routes.contains_key(&exchange.route.id) {
            state.routes.insert(Rc::clone(&exchange.route.id), Route::default());
        }
        let Some(route) = state.routes.get_mut(&exchange.route.id) else { return };
        let refusals = match call.target {
            Target::Operation(_) if !room => {
                route.paths.other().count(status, refused, now);
                return;
            }
            Target::Operation(_) => {
                let operation = route.operations.entry(key).or_insert_with(|| Operation::labelled(&(call.label)()));
                operation.counts.count(status, refused, now);
                &mut operation.refusals
            }
            Target::Outside => {
                let exists = status.is_some_and(|status| (200..300).contains(&status));
                // A path with a secret is told nowhere.
                let path = if exchange.target_is_secret { None } else { fold::fold(exchange.request.path_only()) };
                let counts = match path {
                    Some(path) => {
                        let most = if room { MAX_PATHS } else { route.paths.len() };
                        route.paths.get(method(&exchange.request.method), &path, exists, most)
                    }
                    None => route.paths.other(),
                };
                counts.count(status, refused, now);
                if exists && exchange.request.method != b"HEAD" {
                    counts.answered_with(answer(exchange, host));
                }
                &mut route.outside
            }
        };
        if let Some(mismatch) = call.mismatch {
            refusals.count(mismatch, &exchange.caller, now);
        }
    }
}

impl Call<'_> {
    fn number(&self) -> u32 {
        match self.target {
            Target::Operation(number) => number,
            Target::Outside => 0,
        }
    }
}

impl State {
    fn records(&self) -> usize {
        self.routes.values().map(|route| route.operations.len().saturating_add(route.paths.len())).sum()
    }
}

impl Operation {
    fn labelled(label: &str) -> Self {
        let (method, path) = label.split_once(' ').unwrap_or(("", label));
        Self { method: method.to_owned(), path: path.to_owned(), ..Self::default() }
    }
}

/// A method by its name; what is no method of HTTP is one of the others, so that callers make no records of them.
fn method(method: &[u8]) -> &'static str {
    const KNOWN: [&str; 10] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "QUERY"];
    KNOWN.into_iter().find(|known| known.as_bytes() == method).unwrap_or("(other)")
}

/// What the answer of the backend looks like. The bytes that were sent are known where its length was not.
fn answer(exchange: &Exchange, host: &dyn Host) -> AnswerSeen {
    let Some(response) = &exchange.response else { return AnswerSeen::default() };
    let announced = response.headers.get("content-length");
    let announced = announced.and_then(|length| std::str::from_utf8(length).ok()?.parse().ok());
    let sent = || {
        let bytes = host.property(&["response".to_owned(), "size".to_owned()])?;
        u64::try_from(i64::from_le_bytes(*bytes.first_chunk()?)).ok().filter(|size| *size > 0)
    };
    AnswerSeen::new(response.status, announced.or_else(sent), response.headers.get("content-type"))
}

#[cfg(test)]
mod tests;
