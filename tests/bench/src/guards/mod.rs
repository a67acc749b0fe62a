//! What the guards of behaviour, uploads and responses cost in the VM of a worker.
//!
//! Each chain is a preset of the control plane's own compiler. Instructions are counted in a metered VM and are the same on every
//! machine; processor time is beside them, because calls to the gateway are no instructions.

mod crowd;
mod objects;
mod switched;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use proxy_host::traffic::Exchange;
use proxy_host::{Module, Node, Vm, cpu_time};
use serde_json::{Map, Value, json};

pub use crowd::{Crowd, Reading, crowd};
pub use objects::{ObjectRows, objects};
pub use switched::{Kind, Row, switched_on};

const NOW_MILLIS: u64 = 1_750_000_000_000;
/// How long a VM runs before its first request: it prepares itself in that time.
const PREPARING_MILLIS: u64 = 30_000;
/// Where users log in.
const LOGIN: &str = "/account/login";

/// The guards, by their switches in the preset.
pub const GUARDS: [&str; 7] = ["fail2ban", "login", "traffic", "uploads", "objects", "error_leakage", "sensitive_data"];

/// Compiles a preset with these guards switched on, with or without the core rule set, by the program `palisade`.
///
/// # Errors
///
/// The program cannot be run, or refuses the entities; for people.
pub fn compile(program: &Path, guards: &[&str], rules: bool) -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
    let mut config = Map::from_iter([("threat_policy".to_owned(), json!("shop"))]);
    match rules {
        true => config.insert("waf_config".to_owned(), json!("shop")),
        false => config.insert("waf".to_owned(), json!(false)),
    };
    for guard in guards {
        config.insert((*guard).to_owned(), json!(true));
        if *guard == "login" {
            config.insert("login_paths".to_owned(), json!([LOGIN]));
        }
    }
    let tiers = json!([{"min_score": 40, "action": "deny", "status": 403}]);
    let entities = [
        json!({"kind": "route", "id": "shop", "plugins": [{"plugin": "SecuritySuitePreset", "config": config}]}),
        json!({"kind": "threat-policy", "id": "shop", "dry_run": true, "tiers": tiers}),
        json!({"kind": "waf-config", "id": "shop", "rules": ["@import_preset crs"]}),
    ];
    for (number, entity) in entities.iter().enumerate().filter(|(number, _)| rules || *number < 2) {
        write(&folder.path().join(format!("{number}.json")), entity)?;
    }
    let out = folder.path().join("snapshot");
    let mut command = Command::new(program);
    command.args(["compile", "--filter", "preset", "--link", "--entities"]).arg(folder.path()).arg("--out").arg(&out);
    let output = command.output().map_err(|error| format!("{}: {error}", program.display()))?;
    if !output.status.success() {
        return Err(format!("`palisade compile` failed\n{}", String::from_utf8_lossy(&output.stderr).trim_end()));
    }
    fs::read(&out).map_err(|error| format!("{}: {error}", out.display()))
}

fn write(file: &Path, entity: &Value) -> Result<(), String> {
    fs::write(file, entity.to_string()).map_err(|error| format!("{}: {error}", file.display()))
}

/// A VM with a chain, whose link to the control plane stands.
pub struct Worker {
    vm: Vm,
}

/// What a request has cost.
#[derive(Debug, Clone, Copy)]
pub struct Spent {
    /// WebAssembly instructions; 0 where the module is not metered.
    pub instructions: u64,
    /// How long the thread ran.
    pub cpu: Duration,
    /// The status of its answer.
    pub status: u16,
}

impl Worker {
    /// Starts a VM with a snapshot.
    ///
    /// # Errors
    ///
    /// The filter refuses the snapshot, or died; for people.
    pub fn start(module: &Module, snapshot: &[u8]) -> Result<Self, String> {
        let node = Node::new("guards", NOW_MILLIS, 7);
        let mut vm = Vm::load(module, snapshot, &node).map_err(|error| error.to_string())?;
        vm.set_fuel(u64::MAX);
        vm.advance(100).map_err(|fault| fault.message)?;
        let token = vm.grpc_streams().first().map(|stream| stream.token).ok_or("the filter opened no link")?;
        vm.deliver(token, b"").map_err(|fault| fault.message)?;
        vm.advance(PREPARING_MILLIS).map_err(|fault| fault.message)?;
        Ok(Self { vm })
    }

    /// Runs a request some time after the one before; timers that are due meanwhile count as its cost.
    ///
    /// # Errors
    ///
    /// The filter died; for people.
    pub fn run(&mut self, exchange: &Exchange, after_millis: u64) -> Result<Spent, String> {
        self.vm.set_fuel(u64::MAX);
        let began = cpu_time();
        self.vm.advance(after_millis).map_err(|fault| fault.message)?;
        let outcome = self.vm.pass(exchange);
        let cpu = cpu_time().saturating_sub(began);
        let instructions = u64::MAX - self.vm.fuel();
        if let Some(fault) = outcome.fault {
            return Err(format!("the filter died in {}: {}", fault.callback, fault.message));
        }
        // What was sent to the control plane is kept by the host until it is taken.
        self.vm.take_grpc_messages();
        Ok(Spent { instructions, cpu, status: outcome.status })
    }

    /// The size of the VM's memory in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.vm.memory_size()
    }

    /// How many values its node keeps for all workers, and their bytes with their keys.
    #[must_use]
    pub fn shared(&self) -> (usize, usize) {
        let node = self.vm.node();
        let keys = node.shared_keys();
        let size = |key: &Vec<u8>| key.len() + node.shared_data(key).map_or(0, |value| value.len());
        (keys.len(), keys.iter().map(size).sum())
    }
}
