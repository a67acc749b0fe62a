//! The state of a node that its workers share: whether it is offline (without its control plane), and its incarnation.

use node_state::{SharedData, Table, Update};

use crate::Host;

const OFFLINE: Table = Table { name: "svc.offline", shards: 1, entries_per_shard: 1 };
const INCARNATION: Table = Table { name: "svc.incarnation", shards: 1, entries_per_shard: 1 };
const KEY: &[u8] = b"node";

/// Marks the node as offline until `until`, in milliseconds since the Unix epoch: the control plane cannot be reached, or does
/// not answer.
pub fn mark(shared: &dyn SharedData, until: u64, now: u64) {
    // If it cannot be noted, the next question to the control plane finds out again.
    let _ = OFFLINE.update(shared, KEY, now, |known| match known {
        Some(known) if known.expires_at >= until => Update::Keep,
        _ => Update::Put(Vec::new(), until),
    });
}

/// Marks the node as online: the control plane has answered.
pub fn clear(shared: &dyn SharedData, now: u64) {
    if is(shared, now) {
        let _ = OFFLINE.update(shared, KEY, now, |_| Update::Remove);
    }
}

/// Whether this node is offline, as far as its workers know.
#[must_use]
pub fn is(shared: &dyn SharedData, now: u64) -> bool {
    OFFLINE.get(shared, KEY, now).is_some()
}

/// A random name of this run of this node, 32 hex digits: other nodes have others, and so has this one after a restart, when its
/// shared data is lost. `None` if it cannot be stored.
#[must_use]
pub fn incarnation(host: &dyn Host) -> Option<String> {
    let known =
        || INCARNATION.get(host.shared(), KEY, host.now()).and_then(|entry| String::from_utf8(entry.value).ok());
    known().or_else(|| {
        let fresh = format!("{:016x}{:016x}", host.random(), host.random());
        let put = INCARNATION.update(host.shared(), KEY, host.now(), |known| match known {
            Some(_) => Update::Keep,
            None => Update::Put(fresh.clone().into_bytes(), u64::MAX),
        });
        put.ok().and_then(|()| known())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeHost;

    #[test]
    fn a_node_is_offline_until_the_time_or_an_answer() {
        let host = FakeHost::at(1000);
        assert!(!is(host.shared(), 1000));
        mark(host.shared(), 3000, 1000);
        mark(host.shared(), 2000, 1000);
        assert!(is(host.shared(), 2999) && !is(host.shared(), 3000));
        clear(host.shared(), 1500);
        assert!(!is(host.shared(), 1500));
    }

    #[test]
    fn an_incarnation_has_one_name_and_the_next_has_another() {
        let (host, other) = (FakeHost::at(1000), FakeHost::at(2000));
        let name = incarnation(&host).unwrap();
        assert_eq!((name.len(), incarnation(&host).unwrap() == name), (32, true));
        other.random();
        assert_ne!(incarnation(&other).unwrap(), name);
    }
}
