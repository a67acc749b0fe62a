//! The compiler: from entities to what gateways run.
//!
//! [`Compiler::compile`] makes of all entities at once one snapshot per filter and the description of the gateway that
//! [`xds`] serves. It also is the admission of every write: a document that does not compile is refused with the
//! rule, the line and a caret, and never reaches the store, let alone a gateway.

mod chains;
mod compiled;
mod examine;
mod expand;
mod file;
mod gateway;
mod protection;
pub mod publish;
mod reach;
mod respelt;
mod settings;
mod steps;

use std::sync::{Arc, Mutex, PoisonError};

pub use compiled::{CompileProblem, Compiled, Groups};
pub use file::{TemplateError, discovery_response, fill};
pub use gateway::identity;
pub use reach::{Unenforced, enforces};
pub use settings::Settings;

use serde_json::{Map, Value};

use base::clock::Stopwatch;
use entities::plugins::{PRESET_CLASSES, by_name};
use entities::{
    Admission, Change, DEFAULT_GROUP, Entity, EntityRef, EntitySet, FieldProblem, GlobalConfig, Refusal, Route,
    Warning, missing_group,
};
use examine::{Remarked, check_entities, unchained};
use kit::{Acts, Checked, Memory, Tools};
use material::{GatheredSet, Material};
use steps::{Chains, Steps};
use tokio::sync::watch;
use xds::resources;

/// Compiles entities.
#[derive(Default)]
pub struct Compiler {
    tools: Tools,
    settings: Settings,
    material: Material,
    memories: Mutex<Memories>,
}

/// What was compiled before: a change leaves nearly everything as it was.
#[derive(Default)]
struct Memories {
    /// The chains of routes and the global chain.
    steps: Memory<Steps>,
    /// Entities that are right by what they lead to.
    checked: Memory<Checked>,
}

/// What was found in all entities together.
struct Examined {
    chains: Chains,
    /// Faults in chains: a group that has the chain has no gateway.
    broken: Vec<CompileProblem>,
    /// Faults elsewhere.
    asides: Vec<CompileProblem>,
    /// What has no effect in entities.
    remarks: Vec<Remarked>,
}

/// What is said of a candidate that can be served.
struct Admitted {
    /// What has no effect in entities.
    remarks: Vec<Remarked>,
    /// What is said of all entities together.
    warnings: Vec<String>,
}

impl Compiler {
    /// A compiler for gateways of that kind.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// The same, which is given what gatherers put into `material` beside the entities.
    #[must_use]
    pub fn with_material(self, material: Material) -> Self {
        Self { material, ..self }
    }

    /// Tells when what it is given beside the entities changes.
    pub(crate) fn gathered(&self) -> watch::Receiver<Arc<GatheredSet>> {
        self.material.gathered()
    }

    /// Compiles everything. The warnings include those of entities that this release does not use, and of rules without
    /// effect.
    ///
    /// # Errors
    ///
    /// Every fault that was found.
    pub fn compile(&self, set: &EntitySet) -> Result<Compiled, Vec<CompileProblem>> {
        let (chains, remarks) = self.check(set)?;
        let mut compiled = gateway::compile(set, set.global(), &chains, &self.settings, true);
        let unused = set.unused().into_iter();
        let unused = unused.map(|(collection, id, problem)| CompileProblem { collection, id, problem });
        let remarks = remarks.into_iter().map(|remarked| remarked.found);
        compiled.warnings.splice(0..0, unused.chain(remarks).map(|found| found.to_string()));
        Ok(compiled)
    }

    /// Compiles each group of gateways by itself: a fault in what one group has leaves the others as they are. For the
    /// publication; [`Compiler::compile`] and the admission of writes take no fault at all.
    #[must_use]
    pub fn compile_groups(&self, set: &EntitySet) -> Groups {
        let Examined { chains, broken, asides, .. } = self.examine(set);
        let (groups, warnings) = gateway::compile_each(set, set.global(), &chains, &broken, &self.settings);
        Groups { groups, asides, warnings: warnings.all, gaps: warnings.gaps }
    }

    /// Whether everything compiles and can be served, and what is probably not meant: all but the snapshots, which take
    /// much longer.
    fn admit_set(&self, set: &EntitySet) -> Result<Admitted, Vec<CompileProblem>> {
        let watch = Stopwatch::start();
        let Examined { chains, broken, asides: mut problems, remarks } = self.examine(set);
        problems.extend(broken);
        let compiled = gateway::compile(set, set.global(), &chains, &self.settings, false);
        // Of the rest as well: a fault that stands already is not to hide another one.
        let known = |found: &CompileProblem, problems: &[CompileProblem]| {
            problems.iter().any(|known| (known.collection, &known.id) == (found.collection, &found.id))
        };
        let further: Vec<_> = unservable(&compiled).into_iter().filter(|found| !known(found, &problems)).collect();
        problems.extend(further);
        let admitted = Admitted { remarks, warnings: compiled.warnings };
        let admitted = if problems.is_empty() { Ok(admitted) } else { Err(problems) };
        metrics::histogram!("palisade_compile_seconds", "purpose" => "check").record(watch.seconds());
        admitted
    }

    fn check(&self, set: &EntitySet) -> Result<(Chains, Vec<Remarked>), Vec<CompileProblem>> {
        let Examined { chains, broken, asides: mut problems, remarks } = self.examine(set);
        problems.extend(broken);
        if problems.is_empty() { Ok((chains, remarks)) } else { Err(problems) }
    }

    fn examine(&self, set: &EntitySet) -> Examined {
        let mut memories = self.memories.lock().unwrap_or_else(PoisonError::into_inner);
        let Memories { steps, checked } = &mut *memories;
        let mut remarks = Vec::new();
        let gathered = self.material.gathered().borrow().clone();
        let mut asides = check_entities(set, &gathered, &self.tools, checked, &mut remarks);
        let global = set.global();
        check_groups(set, global, &mut asides);
        let mut broken = Vec::new();
        let chains = Chains::compile(set, &gathered, &self.tools, &self.settings, steps, &mut broken);
        remarks.extend(unchained(set, &chains, checked));
        checked.end_pass();
        steps.end_pass();
        self.tools.end_pass();
        Examined { chains, broken, asides, remarks }
    }
}

impl Admission for Compiler {
    fn admit(&self, candidate: &EntitySet, changed: &EntityRef) -> Result<Vec<String>, Vec<FieldProblem>> {
        match self.admit_all(candidate, std::slice::from_ref(changed)) {
            Ok(warnings) => Ok(warnings.into_iter().map(|(_, warning)| warning).collect()),
            Err(refusals) => Err(refusals.into_iter().map(|(_, problem)| problem).collect()),
        }
    }

    fn admit_all(&self, candidate: &EntitySet, changed: &[EntityRef]) -> Result<Vec<Warning>, Vec<Refusal>> {
        let problems = match self.admit_set(candidate) {
            Ok(admitted) => return Ok(admitted.warnings_of(changed)),
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

impl Admitted {
    /// What is said of an entity goes to the writes of it, and of those that it is about as well; all else goes to every write.
    fn warnings_of(self, changed: &[EntityRef]) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for remarked in &self.remarks {
            let about = changed.iter().position(|changed| remarked.is_about(changed));
            warnings.extend(about.map(|index| (Some(index), remarked.found.to_string())));
        }
        warnings.into_iter().chain(self.warnings.into_iter().map(|warning| (None, warning))).collect()
    }
}

/// What would keep the gateway of some group from being published.
fn unservable(compiled: &Compiled) -> Vec<CompileProblem> {
    let groups = compiled.groups.iter().map(|(name, gateway)| (name.as_str(), gateway));
    let mut problems = Vec::new();
    for (group, gateway) in groups.chain([(DEFAULT_GROUP, &compiled.gateway)]) {
        for found in resources::check(gateway) {
            let (collection, id) = match found.route {
                Some(id) => (Route::COLLECTION, id),
                None => (GlobalConfig::COLLECTION, GlobalConfig::ID.to_owned()),
            };
            let problem = FieldProblem::new("", format!("the group `{group}` could not be served: {}", found.message));
            // One route is in several groups: its fault is told once.
            if !problems.iter().any(|known: &CompileProblem| (known.collection, &known.id) == (collection, &id)) {
                problems.push(CompileProblem { collection, id, problem });
            }
        }
    }
    problems
}

/// Whether any enabled chain has a plugin that refuses banned callers or acts on the score.
pub fn acts(set: &EntitySet) -> bool {
    let acts = |class: &str, config: &Map<String, Value>| {
        let is = |name: &str| by_name(name).is_some_and(|plugin| plugin.acts != Acts::No);
        match PRESET_CLASSES.contains(&class) {
            true => expand::expand(config).is_ok_and(|expanded| expanded.uses.iter().any(|used| is(&used.plugin))),
            false => is(class),
        }
    };
    let global = set.global();
    let validators = global.incoming_request_validators.iter().filter(|validator| validator.enabled);
    validators.into_iter().any(|validator| acts(&validator.plugin, &validator.config))
        || set
            .all::<Route>()
            .filter(|route| route.enabled)
            .flat_map(|route| route.plugins.iter().filter(|plugin| plugin.enabled))
            .any(|plugin| acts(&plugin.plugin, &plugin.config))
}

fn is_own(found: &CompileProblem, changed: &EntityRef) -> bool {
    found.collection == changed.collection && found.id == changed.id && changed.change != Change::Deleted
}

fn elsewhere(found: CompileProblem) -> FieldProblem {
    FieldProblem::new("", format!("{}/{} would not work any more: {}", found.collection, found.id, found.problem))
}

/// Routes of groups that are gone. A route that is written is found at fault before it gets here; this is for the global
/// configuration that takes a group away.
fn check_groups(set: &EntitySet, global: &GlobalConfig, problems: &mut Vec<CompileProblem>) {
    for route in set.all::<Route>() {
        for (index, name) in route.groups.iter().enumerate() {
            let problem = missing_group(index, name, global.groups.keys().map(String::as_str));
            let (collection, id) = (Route::COLLECTION, route.head.id.clone());
            problems.extend(problem.map(|problem| CompileProblem { collection, id, problem }));
        }
    }
}

#[cfg(test)]
mod memory_tests;
#[cfg(test)]
mod tests;
