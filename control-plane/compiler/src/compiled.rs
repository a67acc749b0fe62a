//! What entities compile to, or why they do not.

use std::collections::BTreeMap;

use entities::{DEFAULT_GROUP, FieldProblem};
use xds::resources::Gateway;

/// What a set of entities compiles to.
#[derive(Debug)]
pub struct Compiled {
    /// The gateway of the default group, the filters' snapshots included.
    pub gateway: Gateway,
    /// Those of the other groups, by name.
    pub groups: BTreeMap<String, Gateway>,
    /// Things that are allowed and probably not meant.
    pub warnings: Vec<String>,
}

impl Compiled {
    /// The gateway of a group; `None` where there is no such group.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<&Gateway> {
        if name == DEFAULT_GROUP { Some(&self.gateway) } else { self.groups.get(name) }
    }
}

/// What a set of entities compiles to, each group of gateways by itself.
#[derive(Debug)]
pub struct Groups {
    /// The gateway of every group, the default one included, or why there is none.
    pub groups: BTreeMap<String, Result<Gateway, Vec<String>>>,
    /// Faults that keep no group from its gateway.
    pub asides: Vec<CompileProblem>,
    /// Things that are allowed and probably not meant.
    pub warnings: Vec<String>,
    /// Those of them that leave requests without the protection that was configured.
    pub gaps: Vec<String>,
}

/// A fault, or something without effect, and the entity that it lies in.
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
