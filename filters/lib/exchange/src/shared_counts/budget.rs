//! Budgets that all nodes share.

use std::rc::Rc;

use node_state::{ClusterCount, Slices};
use snapshot::{CountGroup, CountKind, TakeBudget};

use super::{CAP, Shared, describe};
use crate::{Answer, Ask, Host};

/// An amount that all nodes together may take within the last minutes or hours, for each key.
///
/// [`Budget::take`] keeps to what this node knows: nodes that take at the same time can overdraw it by what has not been shared yet,
/// and each can take all of it while the control plane is gone. [`Budget::ask`] never overdraws it, and what was taken by asking
/// survives a restart of the control plane. Both may be used for one key: each takes into account what the other has taken.
#[derive(Debug, Clone)]
pub struct Budget(Rc<Shared>);

/// The outcome of a take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetTaken {
    /// Whether the amount was taken; if not, the budget is as it was.
    pub taken: bool,
    /// What was taken within the window: `own` by this node without asking, `others` by asking and by all other nodes.
    pub used: ClusterCount,
}

impl Budget {
    /// A budget for `span_millis` milliseconds, in which amounts come free again in `slices` slices (1 to
    /// [`snapshot::MAX_COUNT_SLICES`]). Nodes share what has the same name, span and slices.
    ///
    /// # Errors
    ///
    /// What is out of its bounds.
    pub fn new(name: &str, span_millis: u64, slices: u8) -> Result<Self, String> {
        Ok(Self(Shared::new(describe(name, CountKind::Budget, span_millis, slices, CAP)?)))
    }

    /// As [`Window::max_keys`](super::Window::max_keys).
    #[must_use]
    pub fn max_keys(self, max_keys: u32) -> Self {
        Self(Shared::new(CountGroup { max_keys, ..self.0.described.clone() }))
    }

    /// Takes an amount if the total of all nodes, as far as this one knows, stays within `limit`.
    pub fn take(&self, host: &dyn Host, key: &[u8], amount: u32, limit: u64) -> BudgetTaken {
        let on = self.0.on(host);
        let Some(windows) = self.0.windows() else {
            return BudgetTaken { taken: false, used: ClusterCount::default() };
        };
        let hash = on.key(key);
        let (taken, used) = windows.take(on.data, hash, amount, limit, on.now);
        if taken {
            on.changed(host, (hash, 0), (key, b"", amount));
        }
        BudgetTaken { taken, used }
    }

    /// What was taken, as far as this node knows.
    #[must_use]
    pub fn used(&self, host: &dyn Host, key: &[u8]) -> ClusterCount {
        let on = self.0.on(host);
        self.0.windows().map_or(ClusterCount::default(), |windows| windows.get(on.data, on.key(key), on.now))
    }

    /// Asks the control plane to take an amount if the total of all nodes stays within `limit`, which is at most
    /// [`u32::MAX`]. The message waits at most `millis` milliseconds; an amount that is taken after that is lost.
    #[must_use]
    pub fn ask(&self, host: &dyn Host, key: &[u8], amount: u32, limit: u64, millis: u32) -> Ask {
        let on = self.0.on(host);
        let own = Some(self.0.own_count(on.data, on.key(key), on.now));
        let group = Some(self.0.described.clone());
        on.ask(&TakeBudget { group, incarnation: on.cluster.incarnation, own, amount, limit }, millis)
    }

    /// The outcome of [`Budget::ask`]; `None` without an answer, when [`Budget::take`] decides by what this node knows.
    pub fn answered(&self, host: &dyn Host, key: &[u8], answer: &Answer) -> Option<BudgetTaken> {
        let answered = answer.read::<TakeBudget>()?;
        let (on, windows) = (self.0.on(host), self.0.windows()?);
        let key = on.key(key);
        if let Some(others) = answered.others.filter(|others| others.key == key) {
            windows.learn(on.data, key, &Slices { newest: others.newest, counts: others.counts }, on.now);
        }
        Some(BudgetTaken { taken: answered.taken, used: windows.get(on.data, key, on.now) })
    }
}
