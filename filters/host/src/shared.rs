//! Shared data of the node behind the trait that node state stands on.

use std::rc::Rc;

use exchange::{Conflict, Host as _, SharedData, WorkerMemory};

use crate::calls;
use crate::proxy_host::ProxyHost;

/// What all VMs of this node share: the gateway keys it by the VM id, which is one for all filters of the suite.
pub(crate) struct NodeSharedData;

thread_local! {
    static MEMORY: Rc<WorkerMemory> = Rc::default();
    static WORKER: u64 = ProxyHost::default().random();
}

/// A number that no other worker of the node has.
pub(crate) fn worker_id() -> u64 {
    WORKER.with(|id| *id)
}

impl SharedData for NodeSharedData {
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        calls::shared_data(key)
    }

    fn set(&self, key: &str, value: &[u8], token: Option<u32>) -> Result<(), Conflict> {
        calls::set_shared_data(key, value, token.unwrap_or(0)).map_err(|_| Conflict)
    }

    fn memory(&self) -> Rc<WorkerMemory> {
        MEMORY.with(Rc::clone)
    }

    fn random(&self) -> u64 {
        ProxyHost::default().random()
    }
}
