//! What one worker keeps in its own memory beside the shared data of its node.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::secret::HashSecret;
use crate::{RangeCache, SharedData};

/// The memory of one worker: its copies of what rarely changes in shared data, and a count of its losses.
#[derive(Debug, Default)]
pub struct WorkerMemory {
    pub(crate) ranges: RangeCache,
    secret: Cell<Option<HashSecret>>,
    losses: RefCell<Vec<(&'static str, Losses)>>,
    /// What users of shared data keep beside it, one value of a type.
    beside: RefCell<Vec<Rc<dyn Any>>>,
}

/// The losses of one table, as one worker counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// Updates given up because other workers wrote first at each of sixteen tries.
    pub lost_updates: u64,
    /// Live entries that were removed to make room for others.
    pub evicted: u64,
}

impl WorkerMemory {
    /// The losses of each table since the last call, by table name; tables without losses are left out. For the metrics of
    /// the gateway.
    #[must_use]
    pub fn take_losses(&self) -> Vec<(&'static str, Losses)> {
        self.losses.take()
    }

    /// What this worker keeps of a type beside the shared data: the same value on every call.
    #[must_use]
    pub fn beside<T: Any + Default>(&self) -> Rc<T> {
        let known = self.beside.borrow().iter().find_map(|value| Rc::clone(value).downcast().ok());
        known.unwrap_or_else(|| {
            let value = Rc::<T>::default();
            self.beside.borrow_mut().push(Rc::clone(&value) as Rc<dyn Any>);
            value
        })
    }

    /// The key of this node's keyed hashes.
    pub(crate) fn secret(&self, data: &dyn SharedData) -> HashSecret {
        self.secret.get().unwrap_or_else(|| {
            let secret = HashSecret::of_node(data);
            self.secret.set(Some(secret));
            secret
        })
    }

    pub(crate) fn note(&self, table: &'static str, losses: Losses) {
        if losses == Losses::default() {
            return;
        }
        let mut all = self.losses.borrow_mut();
        match all.iter_mut().find(|(name, _)| *name == table) {
            Some((_, sum)) => {
                sum.lost_updates = sum.lost_updates.saturating_add(losses.lost_updates);
                sum.evicted = sum.evicted.saturating_add(losses.evicted);
            }
            None => all.push((table, losses)),
        }
    }
}
