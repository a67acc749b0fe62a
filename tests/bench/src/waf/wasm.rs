//! The shipped module in a VM.

use std::time::Duration;

use super::{Engine, NOW_MILLIS, SEED, Verdict, timed};
use crate::waf::cases::Case;
use proxy_host::{Module, Node, Vm};

/// One worker's VM: everything between the gateway's callbacks and the rules is part of what it takes.
pub struct Wasm<'a> {
    name: &'static str,
    vm: Vm,
    cases: &'a [Case],
}

impl<'a> Wasm<'a> {
    /// Starts a module with a snapshot in its envelope.
    ///
    /// # Errors
    ///
    /// What the filter has against it.
    pub fn load(module: &Module, snapshot: &[u8], cases: &'a [Case]) -> Result<Self, String> {
        let node = Node::new("bench", NOW_MILLIS, SEED);
        let vm = Vm::load(module, snapshot, &node).map_err(|error| error.to_string())?;
        Ok(Self { name: "wasm", vm, cases })
    }

    /// The same under another name in reports.
    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }
}

impl Engine for Wasm<'_> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn judge(&mut self, case: usize) -> Result<Verdict, String> {
        let outcome = self.vm.exchange(&self.cases[case].exchange);
        if let Some(fault) = outcome.fault {
            return Err(format!("the filter died in {}: {}", fault.callback, fault.message));
        }
        let trails = outcome.events.iter().filter(|event| event["@type"] == "SvcWafTrailEvent");
        let rules = trails.filter_map(|trail| trail["rule_ids"].as_array()).flatten().filter_map(|id| id.as_u64());
        Ok(Verdict::new(outcome.local_reply.map(|reply| reply.status), rules.collect()))
    }

    fn measure(&mut self, case: usize, count: usize, budget: Duration) -> Result<Vec<u64>, String> {
        let exchange = &self.cases[case].exchange;
        let mut fault = None;
        let times = timed(count, budget, || {
            let outcome = self.vm.pass(exchange);
            fault = fault.take().or(outcome.fault);
        });
        match fault {
            Some(fault) => Err(format!("the filter died in {}: {}", fault.callback, fault.message)),
            None => Ok(times),
        }
    }
}
