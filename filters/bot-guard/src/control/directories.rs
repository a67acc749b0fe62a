//! The key directories that bots name: fetched when they are due, kept in the store, and published to gateways as one table.

mod directory;
mod fetch;
mod gather;
mod jwks;
mod keep;
#[cfg(test)]
mod tests;

use kit::{EntitySource, View};

use super::BotPolicy;
use crate::{DirectoryKind, directory_label};

pub(super) use directory::DirectoryShown;
pub(super) use gather::gather;

/// The directories that are fetched, at most.
pub(super) const MAX_DIRECTORIES: usize = 64;
/// Where the directory of an origin is (draft-ietf-webbotauth-httpsig-protocol).
pub(super) const WELL_KNOWN: &str = "/.well-known/http-message-signatures-directory";

/// A directory that a policy wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WantedDirectory {
    /// See [`crate::identifier`].
    pub(super) identifier: String,
    pub(super) kind: DirectoryKind,
    /// What is fetched.
    pub(super) url: String,
    /// The first bot that names it.
    pub(super) bot: String,
}

// === impl WantedDirectory ===

impl WantedDirectory {
    /// What stands for it in names of documents and for people.
    fn label(&self) -> String {
        snapshot::hex(&directory_label(self.identifier.as_bytes()))
    }
}

/// The directories of all enabled policies, each once, in their order; [`MAX_DIRECTORIES`] of them.
fn wanted(entities: &dyn EntitySource) -> Vec<WantedDirectory> {
    let mut wanted: Vec<WantedDirectory> = Vec::new();
    let view = View::new(entities);
    for policy in view.all::<BotPolicy>().filter(|policy| policy.enabled && policy.uses_signatures()) {
        for directory in policy.signatures.iter().filter_map(super::BotSignature::directory) {
            if wanted.len() < MAX_DIRECTORIES && !wanted.iter().any(|known| known.identifier == directory.identifier) {
                wanted.push(directory);
            }
        }
    }
    wanted
}
