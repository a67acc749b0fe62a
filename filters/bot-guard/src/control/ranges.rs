//! The addresses that owners of bots publish: fetched when they are due, kept in the store, and published to gateways as one table.

mod gather;
mod keep;
mod list;
mod table;
#[cfg(test)]
mod tests;

use kit::{EntitySource, View};

use super::BotPolicy;

pub(super) use gather::gather;
pub(super) use list::ListShown;

/// The lists that are fetched, at most: the row with the labels of all of them has room for so many.
pub(super) const MAX_LISTS: usize = 64;
/// The bytes of a hash that labels call a list by.
const LABEL_BYTES: usize = 6;

/// What the table calls a list by.
pub(super) fn label(url: &str) -> String {
    let hash = snapshot::content_hash(url.as_bytes());
    hash.iter().take(LABEL_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// A list that a policy wants.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WantedList {
    url: String,
    /// The first bot that names it.
    bot: String,
}

/// The lists of all enabled policies, each once, in their order; [`MAX_LISTS`] of them.
fn wanted(entities: &dyn EntitySource) -> Vec<WantedList> {
    let mut wanted: Vec<WantedList> = Vec::new();
    let view = View::new(entities);
    for policy in view.all::<BotPolicy>().filter(|policy| policy.enabled && policy.uses_ranges()) {
        for signature in &policy.signatures {
            for url in &signature.ip_ranges {
                if wanted.len() < MAX_LISTS && !wanted.iter().any(|known| known.url == *url) {
                    wanted.push(WantedList { url: url.clone(), bot: signature.name.clone() });
                }
            }
        }
    }
    wanted
}
