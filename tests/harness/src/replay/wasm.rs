//! The shipped module in the VMs of one node.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::control::{ControlPlane, Counts, NODE_LINK};
use super::gateway::Gateway;
use super::run::MAX_FAULTS;
use super::script::{Kind, Script};
use proxy_host::traffic::{Exchange, Fault, Headers, events};
use proxy_host::{
    Answer, Clusters, Delivery, Finished, LoadError, Module, Node, Options, Outgoing, Vm, Word, unreachable,
};

/// How long nothing has to happen before ticks are left out, in milliseconds of the node's clock: twice as long as the
/// longest pause that the suite's filters make, the one before a lost link is tried again.
const QUIET_MILLIS: u64 = 60_000;
/// The most ticks that run between two entries, whatever happens in them: an hour of ten in a second.
const MAX_TICKS: u64 = 36_000;
/// The longest that the clock goes on behind the last entry, for what was queued to leave.
const LINGER_MILLIS: u64 = 2_000;

/// One node with one or several workers, which share its data and its clock.
pub struct Wasm {
    workers: Vec<Vm>,
    node: Node,
    world: Rc<RefCell<World>>,
    faults: Vec<Fault>,
    skipped: u64,
}

/// Everything that the filters can reach.
#[derive(Debug, Default)]
pub struct World {
    /// What clusters answer.
    pub script: Script,
    /// The other end of the node link.
    pub control: ControlPlane,
}

/// A worker's way to it.
struct Line(Rc<RefCell<World>>);

impl Wasm {
    /// Starts so many workers (at least one) on a node whose clock stands where it is to begin.
    ///
    /// # Errors
    ///
    /// As [`Vm::load`].
    pub fn start(
        module: &Module,
        configuration: &[u8],
        node: &Node,
        workers: usize,
        options: &Options,
        script: Script,
    ) -> Result<Self, LoadError> {
        let world = Rc::new(RefCell::new(World { script, control: ControlPlane::default() }));
        let worker = |_| {
            let line = Box::new(Line(Rc::clone(&world)));
            Vm::with_clusters(module, configuration, node, options.clone(), line)
        };
        let workers = (0..workers.max(1)).map(worker).collect::<Result<_, _>>()?;
        Ok(Self { workers, node: node.clone(), world, faults: Vec::new(), skipped: 0 })
    }

    /// The workers.
    #[must_use]
    pub fn workers(&self) -> &[Vm] {
        &self.workers
    }

    fn next_event(&self) -> Option<u64> {
        self.workers.iter().filter_map(Vm::next_event).min()
    }

    /// Runs what is due on every worker by now.
    fn run_due(&mut self) {
        for at in 0..self.workers.len() {
            let worker = &mut self.workers[at];
            // More than one may be due: a worker that was started anew has other times.
            if let Err(fault) = worker.run_due()
                && self.faults.len() < MAX_FAULTS
            {
                self.faults.push(fault);
            }
            self.exchange_mail();
        }
    }

    /// Workers take what others have left for them.
    fn exchange_mail(&mut self) {
        if self.workers.len() > 1 {
            self.workers.iter_mut().for_each(Vm::collect_mail);
        }
    }

    /// Leaves out the ticks until `end` if nothing can happen in them.
    ///
    /// Nothing is under way or on its way, and either nothing was to be seen of any worker for [`QUIET_MILLIS`], or the
    /// ticks of this gap are [`MAX_TICKS`] already. The last tick of the gap runs, so whatever waited for a time finds
    /// that it has come.
    fn skip(&mut self, ticks: u64, end: u64) {
        let now = self.node.now_millis();
        let quiet = self.workers.iter().map(Vm::last_effect).max().unwrap_or(0).saturating_add(QUIET_MILLIS) <= now;
        if (quiet || ticks >= MAX_TICKS) && self.workers.iter().all(Vm::is_idle) {
            self.skipped += self.workers.iter_mut().map(|worker| worker.skip_ticks(end)).sum::<u64>();
        }
    }

    /// The worker of a connection: the same for all of its requests.
    fn worker(&self, peer: &str) -> usize {
        // FNV-1a, which is the same on every machine.
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let hashed = peer.bytes().fold(0xcbf2_9ce4_8422_2325, hash);
        let count = u64::try_from(self.workers.len()).unwrap_or(1).max(1);
        usize::try_from(hashed % count).unwrap_or(0)
    }
}

impl Gateway for Wasm {
    fn name(&self) -> &'static str {
        "wasm"
    }

    fn now_millis(&self) -> u64 {
        self.node.now_millis()
    }

    fn run_until(&mut self, millis: u64) {
        let mut ticks = 0;
        while let Some(due) = self.next_event().filter(|due| *due <= millis) {
            self.node.set_now_millis(self.node.now_millis().max(due));
            self.run_due();
            ticks += 1;
            self.skip(ticks, millis);
        }
        self.node.set_now_millis(self.node.now_millis().max(millis));
        // What is logged outside of exchanges is nobody's.
        self.workers.iter_mut().for_each(|worker| drop(worker.take_logs()));
    }

    fn begin(&mut self, ticket: u64, exchange: &Exchange) {
        let worker = self.worker(&exchange.request.peer);
        self.workers[worker].begin(ticket, exchange);
        self.exchange_mail();
    }

    fn take_finished(&mut self) -> Vec<Finished> {
        let mut finished: Vec<Finished> = self.workers.iter_mut().flat_map(Vm::take_finished).collect();
        for one in &mut finished {
            one.outcome.events = events(&one.outcome.filter_state);
        }
        finished
    }

    fn drain(&mut self) {
        while self.workers.iter().any(|worker| worker.under_way() > 0) {
            // What is under way has a deadline at least.
            let Some(next) = self.next_event() else { break };
            self.node.set_now_millis(self.node.now_millis().max(next));
            self.run_due();
        }
        self.run_until(self.node.now_millis().saturating_add(LINGER_MILLIS));
    }

    fn take_faults(&mut self) -> Vec<Fault> {
        std::mem::take(&mut self.faults)
    }

    fn skipped_ticks(&self) -> u64 {
        self.skipped
    }

    fn control(&self) -> Counts {
        self.world.borrow().control.counts()
    }

    fn metrics(&self) -> BTreeMap<String, i64> {
        self.node.metrics().into_iter().map(|(name, metric)| (name, metric.value)).collect()
    }
}

impl Clusters for Line {
    fn hear(&mut self, worker: u32, now_millis: u64, word: Word) -> Vec<Answer> {
        let World { script, control } = &mut *self.0.borrow_mut();
        match word {
            Word::Http { token, call } => vec![script.call(worker, token, Kind::Http, &call)],
            Word::Grpc { token, call } => vec![script.call(worker, token, Kind::Grpc, &call)],
            Word::Open { token, cluster, path } => {
                let is_link = path == NODE_LINK;
                let call = Outgoing { cluster, path, ..Outgoing::default() };
                let answer = |delivery| Answer { worker, token, after_millis: 0, delivery };
                match script.stream(worker, token, &call) {
                    Some(answers) => answers,
                    None if is_link => {
                        let standing = control.open(worker, token, now_millis);
                        std::iter::once(answer(Delivery::Metadata(Headers::new()))).chain(standing).collect()
                    }
                    None => vec![answer(unreachable(true))],
                }
            }
            Word::Message { token, message, end } => {
                let mut answers = control.hear(worker, token, &message);
                if end {
                    control.close(worker, token);
                    answers.push(Answer {
                        worker,
                        token,
                        after_millis: 0,
                        delivery: Delivery::Close(0, String::new()),
                    });
                }
                answers
            }
            Word::Close { token } => {
                control.close(worker, token);
                Vec::new()
            }
            Word::Gone => {
                control.gone(worker);
                Vec::new()
            }
        }
    }
}
