//! What runs the plugins, by its word on the command line.

use std::path::PathBuf;

use clap::ValueEnum;
use harness::engine::{Engine, Envoy, Native};
use proxy_host::{LoadError, Module, Node, Options, Vm};

/// Where the clock stands: any time will do, as long as it is always the same.
const NOW_MILLIS: u64 = 1_750_000_000_000;
/// What the random numbers begin with.
const SEED: u64 = 7;
/// The node's id.
const NODE: &str = "replay";

/// Engines and their parts.
#[derive(Debug, clap::Args)]
pub(crate) struct Engines {
    /// What runs the plugins; `both` also compares
    #[arg(long, default_value = "wasm")]
    engine: Name,
    /// The module of the engines `wasm` and `envoy`
    #[arg(long, default_value = "target/filters/waf.wasm", value_name = "FILE.wasm")]
    filter: PathBuf,
    /// The gateway of the engine `envoy`
    #[arg(long, env = "PALISADE_ENVOY", default_value = ".cache/envoy/envoy", value_name = "FILE")]
    envoy: PathBuf,
    /// The pieces that bodies reach the module of the engine `wasm` in, in bytes
    #[arg(long, default_value_t = Options::default().chunk, value_name = "BYTES")]
    chunk: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    /// The plugins linked in
    Native,
    /// The shipped module in a VM
    Wasm,
    /// The shipped module in a real Envoy, over sockets
    Envoy,
    /// `native`, then `wasm`
    Both,
}

impl Engines {
    /// Runs something on each of the engines, one after the other, all with the same snapshot.
    pub(crate) fn each<T>(&self, snapshot: &[u8], mut run: impl FnMut(&mut dyn Engine) -> T) -> Result<Vec<T>, String> {
        let names: &[Name] = match self.engine {
            Name::Both => &[Name::Native, Name::Wasm],
            Name::Native => &[Name::Native],
            Name::Wasm => &[Name::Wasm],
            Name::Envoy => &[Name::Envoy],
        };
        names.iter().map(|name| self.with(*name, snapshot, &mut run)).collect()
    }

    fn with<T>(&self, name: Name, snapshot: &[u8], run: &mut dyn FnMut(&mut dyn Engine) -> T) -> Result<T, String> {
        if name == Name::Native {
            return Ok(run(&mut Native::load(snapshot, NODE, NOW_MILLIS, SEED)?));
        }
        let filter = &self.filter;
        let bytes = std::fs::read(filter).map_err(|error| {
            format!("{}: {error}; `make filters` builds the modules, --filter names another one", filter.display())
        })?;
        if name == Name::Envoy {
            return Ok(run(&mut Envoy::start(&self.envoy, filter, snapshot)?));
        }
        let failed = |error: LoadError| format!("{}: {error}", filter.display());
        let module = Module::compile(&bytes).map_err(failed)?;
        let options = Options { chunk: self.chunk, ..Options::default() };
        let node = Node::new(NODE, NOW_MILLIS, SEED);
        Ok(run(&mut Vm::with_options(&module, snapshot, &node, options).map_err(failed)?))
    }
}
