//! How long a rule set takes to load.

use seclang::Program;
use snapshot::Message as _;

use super::rules::RuleSet;
use super::{NOW_MILLIS, Peer, SEED, median, nanos};
use proxy_host::cpu_time;
use proxy_host::{Module, Node, Vm};

/// Medians in nanoseconds.
#[derive(Debug, Clone)]
pub struct Load {
    /// The paranoia level.
    pub paranoia: u8,
    /// How many rules there are.
    pub rules: usize,
    /// The encoded program's size in bytes.
    pub bytes: usize,
    /// The program is decoded and the engine built, linked in.
    pub native: u64,
    /// The filter takes its configuration in a fresh VM; the module was compiled before.
    pub wasm: u64,
    /// The filter takes another configuration with the same rules, in a VM that runs them.
    pub again: u64,
    /// What the VM's memory has grown to, in bytes.
    pub memory: usize,
    /// libmodsecurity parses its files.
    pub peer: Option<u64>,
}

/// Loads a rule set so many times in turns.
///
/// # Errors
///
/// Somebody refuses it.
pub fn measure(
    rules: &RuleSet,
    paranoia: u8,
    module: &Module,
    peer: Option<&mut Peer>,
    times: usize,
) -> Result<Load, String> {
    let (mut native, mut wasm, mut others) = (Vec::new(), Vec::new(), Vec::new());
    let (mut memory, mut peer, mut again) = (0, peer, Vec::new());
    let changed = changed(&rules.snapshot)?;
    for _ in 0..times.max(1) {
        let began = cpu_time();
        let engine = seclang::Engine::new(Program::decode(&rules.program)?)?;
        native.push(nanos(cpu_time().saturating_sub(began)));
        drop(engine);

        let node = Node::new("bench", NOW_MILLIS, SEED);
        let mut vm = Vm::load(module, &rules.snapshot, &node).map_err(|error| error.to_string())?;
        wasm.push(nanos(vm.configured_in()));
        memory = vm.memory_size();
        again.push(nanos(vm.reconfigure(&changed).map_err(|error| error.to_string())?));

        if let Some(peer) = &mut peer {
            others.push(peer.load()?);
        }
    }
    Ok(Load {
        paranoia,
        rules: rules.rules,
        bytes: rules.program.len(),
        native: median(&native),
        wasm: median(&wasm),
        again: median(&again),
        memory,
        peer: peer.is_some().then(|| median(&others)),
    })
}

/// The same rules in another snapshot: what operators change most often is something else.
fn changed(snapshot: &[u8]) -> Result<Vec<u8>, String> {
    let (_, mut snapshot) = snapshot::open(snapshot).map_err(|error| error.to_string())?;
    let identity = snapshot.identity.get_or_insert_with(Default::default);
    identity.user_header.push('x');
    Ok(snapshot::seal(&snapshot).encode_to_vec())
}
