//! The gateway of a replay, by its parts on the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use harness::engine::Envoy;
use harness::replay::{Gateway, Naming, Native, Real, Script, Summary, Wasm, run};
use proxy_host::{LoadError, Module, Node, Options};
use recording::{BadEntry, Entry};
use report::{About, Row};
use snapshot::Snapshot;

use super::default_route::DefaultRoute;

/// What the random numbers begin with.
const SEED: u64 = 7;
/// How long a filter may take for one callback: a safety net.
const PATIENCE: Duration = Duration::from_secs(10);
/// The route of `envoy/standalone.yaml`.
const STANDALONE_ROUTE: &str = "demo";

/// The parts.
#[derive(Debug, clap::Args)]
pub(super) struct Parts {
    /// The module of the engines `wasm` and `envoy`
    #[arg(long, default_value = "target/filters/preset.wasm", value_name = "FILE.wasm")]
    filter: PathBuf,
    /// What runs the filters
    #[arg(long, default_value = "wasm")]
    engine: Name,
    /// The gateway of the engine `envoy`
    #[arg(long, env = "PALISADE_ENVOY", default_value = ".cache/envoy/envoy", value_name = "FILE")]
    envoy: PathBuf,
    /// The route of requests whose recording names none; needed only where the snapshot has several
    #[arg(long, value_name = "NAME")]
    route: Option<String>,
    /// The gateway's id
    #[arg(long, default_value = "gateway-1", value_name = "ID")]
    node: String,
    /// How many VMs share the node; a connection stays with one (engine `wasm`)
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: u16,
    /// What clusters answer to the filters' calls, in YAML or JSON (engine `wasm`)
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    /// The shipped module in a VM
    Wasm,
    /// The plugins linked in
    Native,
    /// The shipped module in a real Envoy, over sockets, on the wall's clock
    Envoy,
}

/// A configuration that was looked into.
struct Loaded {
    configuration: Vec<u8>,
    version: String,
    snapshot: Snapshot,
}

/// All that a replay needs.
pub(super) struct Setup<'a> {
    parts: &'a Parts,
    configuration: Vec<u8>,
    naming: Naming,
    route: DefaultRoute,
    script: Script,
    /// The snapshot's version; empty for what is none.
    version: String,
}

impl Parts {
    /// The filter that the module is, as far as its name tells.
    pub(super) fn filter_name(&self) -> Option<String> {
        Some(self.filter.file_stem()?.to_string_lossy().into_owned())
    }

    /// Reads what a replay needs, for a configuration.
    pub(super) fn setup(&self, configuration: Vec<u8>) -> Result<Setup<'_>, String> {
        let loaded = Loaded::new(configuration);
        let route = DefaultRoute::of(&loaded.routes(), self.route.as_deref())?;
        self.with(loaded, route)
    }

    /// The same for two that are compared; `after` is the route of the second where it is not that of --route.
    pub(super) fn setup_both(
        &self,
        configurations: [Vec<u8>; 2],
        after: Option<&str>,
    ) -> Result<[Setup<'_>; 2], String> {
        let [a, b] = configurations.map(Loaded::new);
        let [of_a, of_b] = DefaultRoute::of_both([&a.routes(), &b.routes()], self.route.as_deref(), after)?;
        Ok([self.with(a, of_a)?, self.with(b, of_b)?])
    }

    fn with(&self, loaded: Loaded, route: DefaultRoute) -> Result<Setup<'_>, String> {
        if self.engine != Name::Wasm && (self.workers > 1 || self.script.is_some()) {
            return Err("--workers and --script belong to the engine wasm".to_owned());
        }
        let script = self.script.as_deref().map(Script::read).transpose()?.unwrap_or_default();
        let Loaded { configuration, version, snapshot } = loaded;
        let naming = Naming { identity: snapshot.identity.unwrap_or_default() };
        Ok(Setup { parts: self, configuration, naming, route, script, version })
    }
}

impl Loaded {
    /// A filter from elsewhere has a configuration of its own, and none of our routes.
    fn new(configuration: Vec<u8>) -> Self {
        let (version, snapshot) = snapshot::open(&configuration).unwrap_or_default();
        Self { configuration, version, snapshot }
    }

    fn routes(&self) -> Vec<&str> {
        self.snapshot.routes.iter().map(|route| route.name.as_str()).collect()
    }
}

impl Setup<'_> {
    /// What a report says of it.
    pub(super) fn facts(&self, about: &mut About) {
        about.fact("engine", self.engine());
        if self.parts.engine != Name::Native {
            about.fact("filter", self.parts.filter.display().to_string());
        }
        if !self.version.is_empty() {
            about.fact("snapshot", self.version.as_str());
        }
        if let Some(route) = self.route.fact() {
            about.fact("route", route);
        }
        if self.parts.workers > 1 {
            about.fact("workers", self.parts.workers.to_string());
        }
    }

    /// The snapshot's version; empty for what is none.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// The engine's word.
    pub(super) fn engine(&self) -> &'static str {
        match self.parts.engine {
            Name::Wasm => "wasm",
            Name::Native => "native",
            Name::Envoy => "envoy",
        }
    }

    /// Runs entries; every row goes to `emit`, and what cannot be read.
    pub(super) fn run(
        self,
        entries: &mut dyn Iterator<Item = Result<Entry, BadEntry>>,
        emit: &mut dyn FnMut(Result<Row, BadEntry>),
    ) -> Result<Summary, String> {
        run(entries, |now| self.start(now), &self.naming, &self.route.name, emit)
    }

    fn start(&self, now_millis: u64) -> Result<Box<dyn Gateway>, String> {
        let Parts { filter, node, workers, .. } = self.parts;
        match self.parts.engine {
            Name::Native => Ok(Box::new(Native::load(&self.configuration, node, now_millis, SEED)?)),
            Name::Envoy => {
                let route = if self.route.name.is_empty() { STANDALONE_ROUTE } else { &self.route.name };
                let envoy = Envoy::for_replay(&self.parts.envoy, filter, &self.configuration, route, node)?;
                Ok(Box::new(Real::new(envoy, route)))
            }
            Name::Wasm => {
                let bytes = std::fs::read(filter).map_err(|error| {
                    format!(
                        "{}: {error}; `make filters` builds the modules, --filter names another one",
                        filter.display()
                    )
                })?;
                let failed = |error: LoadError| format!("{}: {error}", filter.display());
                let module = Module::guarded(&bytes, PATIENCE).map_err(failed)?;
                let node = Node::new(node, now_millis, SEED);
                let (workers, script) = (usize::from(*workers), self.script.clone());
                let options = Options::default();
                let wasm = Wasm::start(&module, &self.configuration, &node, workers, &options, script);
                Ok(Box::new(wasm.map_err(failed)?))
            }
        }
    }
}
