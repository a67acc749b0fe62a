//! What one request costs.

use std::time::Duration;

use proxy_host::cpu_time;
use proxy_host::traffic::Exchange;
use proxy_host::{Module, Node, Vm};

const NOW_MILLIS: u64 = 1_750_000_000_000;
const SEED: u64 = 7;
/// How long a VM runs before its first request: it prepares itself in that time.
const PREPARING_MILLIS: u64 = 30_000;

/// What a request has cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// WebAssembly instructions; 0 where the module is not metered.
    pub instructions: u64,
    /// By how many bytes the VM's memory grew over its size before any request.
    pub memory: usize,
    /// How long the thread ran.
    pub cpu: Duration,
    /// The status of the answer in the backend's place; 0 if the request passed.
    pub status: u16,
    /// The VM died: out of memory, out of instructions or by a trap.
    pub died: bool,
}

/// Runs requests on one module and one snapshot.
pub struct Meter {
    module: Module,
    snapshot: Vec<u8>,
    vm: Vm,
    /// The size of the VM's memory before any request.
    idle: usize,
    /// The most instructions of a request.
    limit: u64,
}

impl Meter {
    /// Starts a VM. A request that needs more than `limit` instructions dies of it, if the module is metered.
    ///
    /// # Errors
    ///
    /// The filter refuses the snapshot.
    pub fn new(module: &Module, snapshot: &[u8], limit: u64) -> Result<Self, String> {
        let vm = start(module, snapshot)?;
        let idle = vm.memory_size();
        Ok(Self { module: module.clone(), snapshot: snapshot.to_vec(), vm, idle, limit })
    }

    /// Runs a request in a VM that has seen others: its memory is what all of them needed.
    pub fn run(&mut self, exchange: &Exchange) -> Cost {
        self.vm.set_fuel(self.limit);
        let began = cpu_time();
        let outcome = self.vm.pass(exchange);
        let cpu = cpu_time().saturating_sub(began);
        // A VM that died is a new one.
        let died = outcome.fault.is_some();
        let instructions = if died { self.limit } else { self.limit.saturating_sub(self.vm.fuel()) };
        let status = outcome.local_reply.map_or(0, |reply| reply.status);
        Cost { instructions, memory: self.vm.memory_size().saturating_sub(self.idle), cpu, status, died }
    }

    /// Runs a request in a VM of its own, so that its memory is what this request needs.
    ///
    /// # Errors
    ///
    /// The filter refuses the snapshot.
    pub fn run_alone(&mut self, exchange: &Exchange) -> Result<Cost, String> {
        self.vm = start(&self.module, &self.snapshot)?;
        Ok(self.run(exchange))
    }
}

fn start(module: &Module, snapshot: &[u8]) -> Result<Vm, String> {
    let vm = Vm::load(module, snapshot, &Node::new("cost", NOW_MILLIS, SEED));
    let mut vm = vm.map_err(|error| error.to_string())?;
    vm.set_fuel(u64::MAX);
    vm.advance(PREPARING_MILLIS).map_err(|fault| format!("{}: {}", fault.callback, fault.message))?;
    Ok(vm)
}
