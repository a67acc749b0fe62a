//! What no rule has seen, because a limit of a collection left it out.

use std::fmt;

use super::transaction::Transaction;

/// A collection that lacks something of the message, because a limit left it out: no rule has seen it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uninspected {
    /// The collection, by its name in rules: `REQUEST_COOKIES`.
    pub collection: &'static str,
    /// What the limit is of, or the directive that sets it: `cookies`, `SecArgumentsLimit`.
    pub limit: &'static str,
    /// The limit.
    pub most: u64,
    /// The limits are set so that such a message is not refused for it: `SecRequestBodyLimitAction ProcessPartial`.
    pub tolerated: bool,
}

impl fmt::Display for Uninspected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not inspected beyond {} {}", self.collection, self.limit, self.most)
    }
}

impl Transaction {
    /// What was left out at a limit so far, each limit of each collection once. A caller that denies anything has to deny
    /// such a message: what is in the rest is not known.
    pub fn uninspected(&self) -> &[Uninspected] {
        &self.uninspected
    }

    /// Notes that a collection ends at a limit.
    pub(super) fn left_out(&mut self, collection: &'static str, limit: &'static str, most: usize) {
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        let found = Uninspected { collection, limit, most, tolerated: false };
        if !self.uninspected.contains(&found) {
            self.uninspected.push(found);
        }
    }
}
