//! Entities by what they lead to, whether a chain uses them or not, so that the writer gets the error.

use std::collections::HashSet;

use super::compiled::CompileProblem;
use super::steps::Chains;
use entities::registry::KINDS;
use entities::{EntityRef, EntitySet};
use kit::{Checked, Inputs, Kind, Memory, Tools};
use material::GatheredSet;

/// Something in an entity that has no effect, and the other entities that it is about.
#[derive(Debug)]
pub(super) struct Remarked {
    pub(super) found: CompileProblem,
    also: Option<(&'static str, Vec<String>)>,
}

impl Remarked {
    /// Whether the writer of this entity gets the warning.
    pub(super) fn is_about(&self, changed: &EntityRef) -> bool {
        let also = || {
            self.also
                .as_ref()
                .is_some_and(|(collection, ids)| *collection == changed.collection && ids.contains(&changed.id))
        };
        (self.found.collection, &self.found.id) == (changed.collection, &changed.id) || also()
    }
}

/// What is wrong with enabled entities, see [`kit::Entity::EXAMINE`].
pub(super) fn check_entities(
    set: &EntitySet,
    gathered: &GatheredSet,
    tools: &Tools,
    memory: &mut Memory<Checked>,
    remarks: &mut Vec<Remarked>,
) -> Vec<CompileProblem> {
    let mut problems = Vec::new();
    for kind in examined() {
        let collection = kind.collection;
        for entity in set.slots(collection).map(|slot| &slot.entity).filter(|entity| entity.is_enabled()) {
            let id = &entity.head().id;
            let of = |problem| CompileProblem { collection, id: id.clone(), problem };
            match memory.get(collection, id, Inputs { entities: set, gathered }, |view| kind.examine(id, view, tools)) {
                Ok(checked) => remarks.extend(
                    checked
                        .remarks
                        .iter()
                        .cloned()
                        .map(|remark| Remarked { found: of(remark.problem), also: remark.also }),
                ),
                Err(found) => problems.extend(found.into_iter().map(of)),
            }
        }
    }
    problems
}

/// What entities that no chain has would leave unprotected.
pub(super) fn unchained(set: &EntitySet, chains: &Chains, memory: &Memory<Checked>) -> Vec<Remarked> {
    let mut open = Vec::new();
    for kind in examined() {
        let collection = kind.collection;
        for entity in set.slots(collection).map(|slot| &slot.entity).filter(|entity| entity.is_enabled()) {
            let id = &entity.head().id;
            let checked = memory.known(collection, id).filter(|checked| !checked.unprotected.is_empty());
            open.extend(checked.map(|checked| (collection, id, checked)));
        }
    }
    if open.is_empty() {
        return Vec::new();
    }
    let steps = chains.routes.iter().map(|chain| &chain.steps).chain([&chains.global]);
    let chained: HashSet<(&str, &str)> =
        steps.flat_map(|steps| &steps.guards).filter_map(|guard| guard.entity()).collect();
    let unchained = open.into_iter().filter(|(collection, id, _)| !chained.contains(&(*collection, id.as_str())));
    let remarked = unchained.flat_map(|(collection, id, checked)| {
        let of = |problem| Remarked { found: CompileProblem { collection, id: id.clone(), problem }, also: None };
        checked.unprotected.iter().cloned().map(of)
    });
    remarked.collect()
}

fn examined() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().filter(|kind| kind.is_examined())
}
