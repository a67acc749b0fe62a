//! The two sides on which the entities are served by the same handlers.

use crate::names::NAMESPACE;
use crate::openapi::Group;

/// A side on which the entities are served.
#[derive(Clone, Copy, Debug)]
pub(super) enum Surface<'a> {
    /// For admin keys, under `/apis/{group}/v1`.
    Keys {
        /// The API group.
        group: &'a str,
    },
    /// For sessions of operators, under `entities` of the console.
    Sessions,
}

impl Surface<'_> {
    /// The path of a request as axum matches it; `below` begins with a slash. The group is a parameter, so that another
    /// one has an error of its own.
    pub(super) fn pattern(self, below: &str) -> String {
        match self {
            Surface::Keys { .. } => Surface::Keys { group: "{group}" }.path(below),
            Surface::Sessions => self.path(below),
        }
    }

    /// The same path as the API's description shows it.
    pub(super) fn path(self, below: &str) -> String {
        match self {
            Surface::Keys { group } => format!("/apis/{group}/v1{below}"),
            Surface::Sessions => format!("{NAMESPACE}/entities{below}"),
        }
    }

    /// The id of an operation.
    pub(super) fn id(self, own: &str) -> String {
        match self {
            Surface::Keys { .. } => own.to_owned(),
            Surface::Sessions => format!("console.{own}"),
        }
    }

    /// A group of operations.
    pub(super) fn group(self, name: &str, about: &str) -> Group {
        let name = match self {
            Surface::Keys { .. } => name.to_owned(),
            Surface::Sessions => format!("console: {name}"),
        };
        Group { name, about: about.to_owned() }
    }
}
