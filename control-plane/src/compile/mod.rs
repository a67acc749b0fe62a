//! The compiler: from entities to what gateways run.
//!
//! [`Compiler::compile`] makes of all entities at once one snapshot per filter and the description of the gateway that
//! [`crate::xds`] serves. It also is the admission of every write: a document that does not compile is refused with the
//! rule, the line and a caret, and never reaches the store, let alone a gateway.

mod chains;
mod expand;
mod file;
mod plugins;
pub mod presets;
mod rules;

use std::collections::BTreeMap;
use std::path::PathBuf;

use prost::Message as _;
use snapshot::{IdentitySource, LinkSettings, Part, RouteChain, Snapshot, Step, seal};

pub use file::discovery_response;
pub use rules::{CompiledRules, Element, RuleCompiler, compose, elements, own_elements};
pub(crate) use rules::{Composition, ElementProblem};

use crate::entities::{
    Admission, Change, Entity, EntityRef, EntitySet, FieldProblem, GlobalConfig, Item, Protocol, Refusal, Route,
    WafConfig, WafRuleset,
};
use crate::xds::bootstrap::CONTROL_PLANE_CLUSTER;
use crate::xds::resources::{
    BackendInput, BackendTls, FilterInput, Gateway, ListenerSettings, RouteInput, SYSTEM_AUTHORITIES,
};
use chains::Chains;

/// How often a worker sends what it has queued, in milliseconds.
const FLUSH_MILLIS: u32 = 200;
/// The most events that a worker keeps for a lost link.
const MAX_QUEUED: u32 = 1000;
/// What the gateway may hold beyond the largest inspected body: bodies arrive in pieces, and the piece that reaches the
/// limit must not exceed the gateway's own.
const BUFFER_SLACK: u64 = 1 << 20;

/// Compiles entities.
#[derive(Default)]
pub struct Compiler {
    rules: RuleCompiler,
    settings: Settings,
}

/// What the compiler must know of the gateways beyond the entities.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The folder of the `.wasm` modules, as the gateways see it.
    pub filters_dir: PathBuf,
    /// Gateways have a control plane: filters link to it.
    pub link: bool,
}

/// What a set of entities compiles to.
#[derive(Debug)]
pub struct Compiled {
    /// The gateway, the filters' snapshots included.
    pub gateway: Gateway,
    /// Things that are allowed and probably not meant.
    pub warnings: Vec<String>,
}

/// A fault, and the entity that it lies in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileProblem {
    /// The entity's collection.
    pub collection: &'static str,
    /// The entity's id.
    pub id: String,
    /// What is wrong, and where in the entity.
    pub problem: FieldProblem,
}

impl std::fmt::Display for CompileProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}: {}", self.collection, self.id, self.problem)
    }
}

impl Compiler {
    /// A compiler for gateways of that kind.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { rules: RuleCompiler::default(), settings }
    }

    /// Compiles everything.
    ///
    /// # Errors
    ///
    /// Every fault that was found.
    pub fn compile(&self, set: &EntitySet) -> Result<Compiled, Vec<CompileProblem>> {
        let mut problems = self.check_rules(set);
        let global = set.global();
        let chains = Chains::compile(set, &global, &self.rules, &mut problems);
        self.rules.forget_unused();
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut warnings = chains.warnings(&global.gateway.filters);
        let filters = global.gateway.filters.iter().map(|filter| self.filter(filter, &global, &chains)).collect();
        let routes = served_routes(set, &mut warnings);
        let largest = chains.largest_body.max(u64::from(global.gateway.max_body_bytes)).saturating_add(BUFFER_SLACK);
        let listener = ListenerSettings {
            name: "palisade".to_owned(),
            address: global.gateway.address.clone(),
            port: global.gateway.port,
            access_log: Some(global.gateway.access_log.clone()).filter(|path| !path.is_empty()),
            buffer_limit_bytes: u32::try_from(largest).unwrap_or(u32::MAX),
            xff_num_trusted_hops: global.identity.trusted_hops,
        };
        let control_plane_cluster = self.settings.link.then(|| CONTROL_PLANE_CLUSTER.to_owned());
        Ok(Compiled { gateway: Gateway { listener, routes, filters, control_plane_cluster }, warnings })
    }

    /// Every enabled WAF config and ruleset has to compile, whether a route uses it or not: its author is here now.
    fn check_rules(&self, set: &EntitySet) -> Vec<CompileProblem> {
        let mut problems = Vec::new();
        let mut note = |collection, id: &str, found: Vec<FieldProblem>| {
            let all = found.into_iter().map(|problem| CompileProblem { collection, id: id.to_owned(), problem });
            problems.extend(all);
        };
        for config in set.all::<WafConfig>().filter(|config| config.enabled) {
            if let Err(found) = self.rules.compile(&rules::elements(config, set), &config.crs) {
                note(WafConfig::COLLECTION, &config.head.id, found);
            }
        }
        for ruleset in set.all::<WafRuleset>().filter(|ruleset| ruleset.enabled) {
            let elements: Vec<_> = own_elements(&ruleset.rules).collect();
            if let Err(found) = self.rules.compile(&elements, &crate::entities::Crs::default()) {
                note(WafRuleset::COLLECTION, &ruleset.head.id, found);
            }
        }
        problems
    }

    fn filter(&self, filter: &str, global: &Item<GlobalConfig>, chains: &Chains) -> FilterInput {
        let routes = chains.routes.iter().map(|route| RouteChain {
            name: route.name.clone(),
            id: route.id.clone(),
            label: route.label.clone(),
            no_grpc: route.no_grpc,
            steps: for_filter(&route.steps, filter),
        });
        let mut snapshot = Snapshot {
            filter: filter.to_owned(),
            identity: Some(identity(global)),
            global: for_filter(&chains.global, filter),
            routes: routes.collect(),
            parts: Vec::new(),
            link: self.settings.link.then(|| LinkSettings {
                cluster: CONTROL_PLANE_CLUSTER.to_owned(),
                flush_millis: FLUSH_MILLIS,
                max_queued: MAX_QUEUED,
            }),
        };
        let needs_parts = snapshot.global.iter().chain(snapshot.routes.iter().flat_map(|route| &route.steps));
        if needs_parts.into_iter().any(|step| step.plugin == "waf") {
            snapshot.parts =
                chains.parts.iter().map(|(hash, data)| Part { hash: hash.clone(), data: data.clone() }).collect();
        }
        FilterInput {
            name: filter.to_owned(),
            module_path: self.settings.filters_dir.join(format!("{filter}.wasm")).display().to_string(),
            snapshot: seal(&snapshot).encode_to_vec(),
        }
    }
}

impl Admission for Compiler {
    fn admit(&self, candidate: &EntitySet, changed: &EntityRef) -> Result<Vec<String>, Vec<FieldProblem>> {
        match self.compile(candidate) {
            Ok(compiled) => Ok(compiled.warnings),
            Err(problems) => Err(blame(problems, changed)),
        }
    }

    fn admit_all(&self, candidate: &EntitySet, changed: &[EntityRef]) -> Result<Vec<String>, Vec<Refusal>> {
        let problems = match self.compile(candidate) {
            Ok(compiled) => return Ok(compiled.warnings),
            Err(problems) => problems,
        };
        let own = changed.iter().enumerate().flat_map(|(index, changed)| {
            problems
                .iter()
                .filter(|found| is_own(found, changed))
                .map(move |found| (Some(index), found.problem.clone()))
        });
        let own: Vec<Refusal> = own.collect();
        if !own.is_empty() {
            return Err(own);
        }
        Err(problems.into_iter().map(|found| (None, elsewhere(found))).collect())
    }
}

/// Faults of the changed entity as they are; faults that it causes elsewhere by the name of where they are.
fn blame(problems: Vec<CompileProblem>, changed: &EntityRef) -> Vec<FieldProblem> {
    let own: Vec<FieldProblem> =
        problems.iter().filter(|found| is_own(found, changed)).map(|found| found.problem.clone()).collect();
    if !own.is_empty() {
        return own;
    }
    problems.into_iter().map(elsewhere).collect()
}

fn is_own(found: &CompileProblem, changed: &EntityRef) -> bool {
    found.collection == changed.collection && found.id == changed.id && changed.change != Change::Deleted
}

fn elsewhere(found: CompileProblem) -> FieldProblem {
    FieldProblem::new("", format!("{}/{} would not work any more: {}", found.collection, found.id, found.problem))
}

/// The steps of a chain that one filter runs. A filter that runs only some of them gets the threat response as well, to
/// answer what it refuses.
fn for_filter(steps: &[Step], filter: &str) -> Vec<Step> {
    if filter == "preset" {
        return steps.to_vec();
    }
    let own = steps.iter().any(|step| step.plugin == filter);
    let steps = steps.iter().filter_map(|step| {
        let on_refusal_only = step.plugin != filter;
        let wanted = !on_refusal_only || (own && step.plugin == "threat-response");
        wanted.then(|| Step { on_refusal_only, ..step.clone() })
    });
    steps.collect()
}

fn identity(global: &GlobalConfig) -> IdentitySource {
    let identity = &global.identity;
    IdentitySource {
        api_key_header: identity.api_key_header.clone().unwrap_or_default().to_ascii_lowercase(),
        api_key_query: identity.api_key_query.clone().unwrap_or_default(),
        user_header: identity.user_header.clone().unwrap_or_default().to_ascii_lowercase(),
        trusted_hops: identity.trusted_hops,
        api_key_is_id: identity.api_key_is_id,
    }
}

/// The routes that the gateway itself serves: those with a backend.
fn served_routes(set: &EntitySet, warnings: &mut Vec<String>) -> Vec<RouteInput> {
    let mut routes = Vec::new();
    for route in set.all::<Route>().filter(|route| route.enabled) {
        let Some(backend) = &route.backend else { continue };
        let metadata: BTreeMap<String, String> = route
            .head
            .metadata
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "created_at" | "updated_at"))
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect();
        if route.plugins.iter().all(|plugin| !plugin.enabled) {
            warnings.push(format!("route `{}` has no plugins: only the global chain protects it", route.head.id));
        }
        routes.push(RouteInput {
            id: route.head.id.clone(),
            envoy_route: route.envoy_route_name(&route.head).to_owned(),
            hosts: route.hosts.clone(),
            paths: route.paths.clone(),
            backend: Some(BackendInput {
                address: backend.address.clone(),
                port: backend.port,
                tls: backend
                    .tls
                    .then(|| BackendTls { server_name: String::new(), authorities: SYSTEM_AUTHORITIES.to_owned() }),
                http2: backend.protocol == Protocol::Http2,
                timeout_millis: backend.timeout_millis,
            }),
            metadata,
        });
    }
    routes
}

#[cfg(test)]
mod tests;
