//! Memory for the bodies of scans, shared among the networks that uploads come from. Each has a share of half of it, and waits for its
//! share before it waits with the others. A body that needs more than half takes the whole share, and more from the rest: it is the only
//! one of its network then.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use exchange::canonical;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// The most bytes of bodies that are in memory at once: 64 MiB.
const MAX_BYTES: usize = 64 << 20;
/// A unit of them: 64 KiB.
const UNIT: usize = 64 << 10;
/// The units there are, and those of one network.
const UNITS: usize = MAX_BYTES / UNIT;
const UNITS_OF_NETWORK: usize = UNITS / 2;

/// The memory of a control plane for bodies.
pub(super) struct Memory {
    /// The units that are free.
    all: Semaphore,
    /// What is free of the shares of networks that have bodies here, or wait.
    networks: Mutex<HashMap<IpAddr, Weak<Semaphore>>>,
}

/// Room for a body, until it is dropped.
pub(super) struct Room<'m> {
    /// Dropped first: those of other networks who wait have it before the next of this one.
    _all: Option<SemaphorePermit<'m>>,
    _own: Option<OwnedSemaphorePermit>,
}

impl Default for Memory {
    fn default() -> Self {
        Self { all: Semaphore::new(UNITS), networks: Mutex::default() }
    }
}

impl Memory {
    /// Waits for room for so many bytes; a body that needs more than there is gets all of it. `address` is the caller's; callers
    /// without one have no share that they wait for.
    pub(super) async fn take(&self, address: &str, bytes: u64) -> Room<'_> {
        let units = usize::try_from(bytes).unwrap_or(MAX_BYTES).div_ceil(UNIT).clamp(1, UNITS);
        let permits = |units: usize| u32::try_from(units).unwrap_or(u32::MAX);
        // Neither is ever closed.
        let own = match network(address).map(|network| self.share(network)) {
            Some(share) => share.acquire_many_owned(permits(units.min(UNITS_OF_NETWORK))).await.ok(),
            None => None,
        };
        Room { _all: self.all.acquire_many(permits(units)).await.ok(), _own: own }
    }

    fn share(&self, network: IpAddr) -> Arc<Semaphore> {
        let mut networks = self.networks.lock().unwrap_or_else(PoisonError::into_inner);
        networks.retain(|_, share| share.strong_count() > 0);
        let known = networks.get(&network).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let share = Arc::new(Semaphore::new(UNITS_OF_NETWORK));
            networks.insert(network, Arc::downgrade(&share));
            share
        })
    }
}

/// The first address of a caller's network: the /24 of an IPv4 address, the /64 of an IPv6 address.
fn network(address: &str) -> Option<IpAddr> {
    Some(match canonical(address.parse().ok()?) {
        IpAddr::V4(ip) => IpAddr::V4((ip.to_bits() & !0xff).into()),
        IpAddr::V6(ip) => IpAddr::V6((ip.to_bits() & !u128::from(u64::MAX)).into()),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MIB: u64 = 1 << 20;

    /// Whether there is room now.
    async fn now<'m>(memory: &'m Memory, address: &str, bytes: u64) -> Option<Room<'m>> {
        tokio::time::timeout(Duration::from_millis(20), memory.take(address, bytes)).await.ok()
    }

    #[tokio::test]
    async fn one_network_leaves_room_for_others() {
        let memory = Memory::default();
        let held = now(&memory, "192.0.2.1", 32 * MIB).await.unwrap();
        assert!(now(&memory, "192.0.2.77", 1).await.is_none(), "the same network");
        let other = now(&memory, "2001:db8::1", 16 * MIB).await.unwrap();
        assert!(now(&memory, "2001:db8::ffff", 17 * MIB).await.is_none());
        assert!(now(&memory, "", 16 * MIB).await.is_some(), "one that is not known");
        drop(held);
        assert!(now(&memory, "192.0.2.77", 1).await.is_some());
        drop(other);
        // Of the largest body another network waits for the end alone, however many of its network wait.
        let largest = now(&memory, "192.0.2.1", 96 * MIB).await.unwrap();
        let mut next = line(&memory);
        assert!(poll(&mut next.0).await.is_none() && poll(&mut next.1).await.is_none());
        drop(largest);
        assert!(poll(&mut next.1).await.is_some(), "the other network is next");
        assert_eq!(memory.networks.lock().unwrap().len(), 2);
    }

    type Line<'m> = std::pin::Pin<Box<dyn Future<Output = Room<'m>> + 'm>>;

    /// One more of the network that has the largest body, and one of another network behind it.
    fn line(memory: &Memory) -> (Line<'_>, Line<'_>) {
        (Box::pin(memory.take("192.0.2.2", 96 * MIB)), Box::pin(memory.take("198.51.100.1", MIB)))
    }

    async fn poll<'m>(waiting: &mut Line<'m>) -> Option<Room<'m>> {
        tokio::time::timeout(Duration::from_millis(20), waiting).await.ok()
    }
}
