//! What all nodes count together: [`Window`], [`Budget`] and [`CappedSet`].
//!
//! Each has two forms. The one that does not wait acts on the shared data of the node: what this node has counted, and what it has
//! learned of all others. A change goes up with the next batch of the node link, and the others learn of it if they have counted
//! the same key ([`Window::everywhere_from`]: all others, from a total on). The one that asks
//! ([`Window::ask`], [`Budget::ask`], [`CappedSet::ask`]) is exact: the control plane decides for all nodes, and the message waits
//! for the answer ([`Verdict::Ask`](crate::Verdict::Ask)). An [`AskedSet`] has that form alone. Without an answer the plugin decides what follows, usually by the form
//! that does not wait.
//!
//! While the control plane is gone, a node goes on alone with what it knows, and what it has counted adds up again afterwards. Keys
//! leave the node as hashes under a secret of all nodes. Until the control plane has sent it, on the first link since the gateway
//! started, a node counts under a key of its own; a worker counts again under the secret what it has counted until then, 8192
//! changes at most. A question that is asked until then has no answer.

mod asked_set;
mod budget;
mod groups;
mod link;
mod node;
mod set;
#[cfg(test)]
mod tests;
mod window;

use std::rc::Rc;

use node_state::{ClusterSets, ClusterWindows, SharedData, Slices};
use snapshot::{CountBatch, CountGroup, CountKind, KeyCount, KeyMembers, MAX_COUNT_NAME, MAX_COUNT_SLICES};

pub use asked_set::AskedSet;
pub use budget::{Budget, BudgetTaken};
pub use link::{learn, lost, news, put_back, wait};
pub use node_state::{ClusterCount, Membership};
pub use set::{CappedSet, SetJoined};
pub use window::Window;

/// For how many keys a node has room where a plugin does not say.
const MAX_KEYS: u32 = 50_000;
/// The most that one node contributes to a key in one slice where a plugin does not say.
const CAP: u32 = 1_000_000;

/// What is counted, with its table in shared data.
#[derive(Debug)]
struct Shared {
    described: CountGroup,
    /// Its name for hashes: what is counted in other slices has other hashes.
    scope: String,
    table: Table,
}

#[derive(Debug)]
enum Table {
    Counts(ClusterWindows),
    Members(ClusterSets),
}

impl Shared {
    fn new(described: CountGroup) -> Rc<Self> {
        let scope = described.scope();
        let name = format!("counts.{scope}");
        let slices = u8::try_from(described.slices).unwrap_or(u8::MAX);
        let table = if described.kind() == CountKind::Set {
            let cap = u16::try_from(described.cap).unwrap_or(u16::MAX);
            Table::Members(ClusterSets::new(name, cap, described.slice_millis, slices, described.max_keys))
        } else {
            Table::Counts(ClusterWindows::new(name, described.slice_millis, slices, described.max_keys))
        };
        Rc::new(Self { described, scope, table })
    }

    /// Takes over what all other nodes have counted. `now` is the time of all nodes.
    fn learn(&self, data: &dyn SharedData, batch: &CountBatch, now: u64) {
        match &self.table {
            Table::Counts(windows) => {
                for KeyCount { key, newest, counts } in &batch.counts {
                    let others = Slices { newest: *newest, counts: counts.clone() };
                    windows.learn(data, *key, &others, now);
                }
            }
            Table::Members(sets) => {
                for KeyMembers { key, members, slices } in &batch.members {
                    let members: Vec<(u64, u64)> = members.iter().copied().zip(slices.iter().copied()).collect();
                    sets.learn(data, *key, &members, now);
                }
            }
        }
    }

    /// Adds what this node has of a key to a batch; of a set the member, or all for 0. What it takes in bytes, at most.
    fn tell(&self, data: &dyn SharedData, (key, member): (u64, u64), now: u64, batch: &mut CountBatch) -> usize {
        match &self.table {
            Table::Counts(windows) => {
                let Some(Slices { newest, counts }) = windows.own(data, key, now) else { return 0 };
                let bytes = 24 + counts.len() * 5;
                batch.counts.push(KeyCount { key, newest, counts });
                bytes
            }
            Table::Members(sets) => {
                let mut own = sets.own(data, key, now);
                own.retain(|(known, _)| member == 0 || *known == member);
                let bytes = 16 + own.len() * 18;
                let (members, slices) = own.into_iter().unzip();
                match batch.members.last_mut() {
                    Some(last) if last.key == key => {
                        last.members.extend::<Vec<u64>>(members);
                        last.slices.extend::<Vec<u64>>(slices);
                    }
                    _ => batch.members.push(KeyMembers { key, members, slices }),
                }
                bytes
            }
        }
    }

    fn batch(&self) -> CountBatch {
        CountBatch { group: Some(self.described.clone()), ..CountBatch::default() }
    }

    fn own_count(&self, data: &dyn SharedData, key: u64, now: u64) -> KeyCount {
        let mut batch = self.batch();
        self.tell(data, (key, 0), now, &mut batch);
        batch.counts.pop().unwrap_or(KeyCount { key, ..KeyCount::default() })
    }

    fn windows(&self) -> Option<&ClusterWindows> {
        match &self.table {
            Table::Counts(windows) => Some(windows),
            Table::Members(_) => None,
        }
    }

    fn sets(&self) -> Option<&ClusterSets> {
        match &self.table {
            Table::Members(sets) => Some(sets),
            Table::Counts(_) => None,
        }
    }
}

/// The description of a group of `kind`.
fn describe(name: &str, kind: CountKind, span_millis: u64, slices: u8, cap: u32) -> Result<CountGroup, String> {
    let slice_millis = span_millis.div_ceil(u64::from(slices.max(1)));
    let kind = kind.into();
    let group = CountGroup {
        name: name.to_owned(),
        kind,
        slice_millis,
        slices: u32::from(slices),
        cap,
        everywhere_from: 0,
        max_keys: MAX_KEYS,
    };
    if group.is_valid() {
        return Ok(group);
    }
    Err(format!(
        "`{name}` cannot be counted together: a name has 1 to {MAX_COUNT_NAME} bytes, a window some milliseconds in 1 to \
         {MAX_COUNT_SLICES} slices, a set a cap of 1 to {}",
        snapshot::MAX_COUNT_MEMBERS
    ))
}
