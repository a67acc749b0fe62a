//! What a node knows of itself that its workers share: whether it is without its control plane, and which life it is in.

use node_state::{SharedData, Table, Update};

use crate::Host;

const ALONE: Table = Table { name: "svc.alone", shards: 1, entries_per_shard: 1 };
const LIFE: Table = Table { name: "svc.life", shards: 1, entries_per_shard: 1 };
const KEY: &[u8] = b"node";

/// Notes that the control plane cannot be reached or is silent, and is taken to be so until `until`, in milliseconds since
/// the Unix epoch.
pub fn note(shared: &dyn SharedData, until: u64, now: u64) {
    // Where it cannot be noted, whoever asks the control plane next finds out again.
    let _ = ALONE.update(shared, KEY, now, |known| match known {
        Some(known) if known.expires_at >= until => Update::Keep,
        _ => Update::Put(Vec::new(), until),
    });
}

/// Notes that the control plane has answered.
pub fn over(shared: &dyn SharedData, now: u64) {
    if is(shared, now) {
        let _ = ALONE.update(shared, KEY, now, |_| Update::Remove);
    }
}

/// Whether this node is without its control plane, as far as its workers know.
#[must_use]
pub fn is(shared: &dyn SharedData, now: u64) -> bool {
    ALONE.get(shared, KEY, now).is_some()
}

/// A name of this node that no other has, nor the same node after a restart: whatever it remembers is gone then. `None`
/// where it cannot be kept.
#[must_use]
pub fn life(host: &dyn Host) -> Option<String> {
    let known = || LIFE.get(host.shared(), KEY, host.now()).and_then(|entry| String::from_utf8(entry.value).ok());
    known().or_else(|| {
        let fresh = format!("{:016x}{:016x}", host.random(), host.random());
        let put = LIFE.update(host.shared(), KEY, host.now(), |known| match known {
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
    fn a_node_is_alone_until_the_time_or_an_answer() {
        let host = FakeHost::at(1000);
        assert!(!is(host.shared(), 1000));
        note(host.shared(), 3000, 1000);
        note(host.shared(), 2000, 1000);
        assert!(is(host.shared(), 2999) && !is(host.shared(), 3000));
        over(host.shared(), 1500);
        assert!(!is(host.shared(), 1500));
    }

    #[test]
    fn a_life_has_one_name_and_the_next_has_another() {
        let (host, other) = (FakeHost::at(1000), FakeHost::at(2000));
        let name = life(&host).unwrap();
        assert_eq!((name.len(), life(&host).unwrap() == name), (32, true));
        other.random();
        assert_ne!(life(&other).unwrap(), name);
    }
}
