//! Content that no rule inspects, because a limit of a collection left it out.

use std::fmt;

use super::transaction::Transaction;

/// A collection from which a limit left out content of the message: no rule has inspected it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uninspected {
    /// The collection, by its name in rules: `REQUEST_COOKIES`.
    pub collection: &'static str,
    /// The limited quantity, or the directive that sets the limit: `cookies`, `SecArgumentsLimit`.
    pub limit: &'static str,
    /// The limit.
    pub most: u64,
    /// The limits are configured not to refuse the message: `SecRequestBodyLimitAction ProcessPartial`.
    pub tolerated: bool,
}

impl fmt::Display for Uninspected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not inspected beyond {} {}", self.collection, self.limit, self.most)
    }
}

impl Transaction {
    /// The content left out so far, each limit of each collection once. A caller that denies requests has to deny this
    /// message: the rest is not inspected.
    pub fn uninspected(&self) -> &[Uninspected] {
        &self.uninspected
    }

    /// Records that a limit cut a collection.
    pub(super) fn left_out(&mut self, collection: &'static str, limit: &'static str, most: usize) {
        self.left_out_beyond(collection, limit, u64::try_from(most).unwrap_or(u64::MAX));
    }

    pub(super) fn left_out_beyond(&mut self, collection: &'static str, limit: &'static str, most: u64) {
        let found = Uninspected { collection, limit, most, tolerated: false };
        if !self.uninspected.contains(&found) {
            self.uninspected.push(found);
        }
    }
}
