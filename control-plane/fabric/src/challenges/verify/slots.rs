//! Slots for verifications, shared fairly among the networks that tokens come from: a client that sends garbage fills the share of
//! its network, and not that of others. A home connection of IPv6 may have 256 or 65,536 networks, so that the block around
//! them has a share as well.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::identity::canonical;
use tokio::sync::oneshot;

/// How many verifications run and wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// That run at once, of all networks.
    pub(super) running: usize,
    /// That run at once, of one network.
    pub(super) running_of_one: usize,
    /// That wait, of all networks.
    pub(super) waiting: usize,
    /// That wait, of one network.
    pub(super) waiting_of_one: usize,
    /// That run at once, of the networks of one block: a /16 of IPv4, a /48 of IPv6.
    pub(super) running_of_block: usize,
    /// That wait, of the networks of one block.
    pub(super) waiting_of_block: usize,
    /// How long one waits, at most.
    pub(super) patience: Duration,
}

/// Where a token comes from: the /24 of an IPv4 address, the /64 of an IPv6 address, or unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Network {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
    Unknown,
}

/// What one customer of a provider may have: the /16 of an IPv4 address, the /48 of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Block {
    V4(u32),
    V6(u128),
    Unknown,
}

/// The slots. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    waiting: usize,
    /// The networks of which something runs or waits.
    networks: HashMap<Network, Share>,
    /// The blocks of these networks, with the totals of their networks.
    blocks: HashMap<Block, Total>,
    /// The networks of which something waits, the one whose turn is next first.
    turns: VecDeque<Network>,
}

/// What a network has of the slots.
#[derive(Debug, Default)]
struct Share {
    running: usize,
    /// Oldest first.
    waiting: VecDeque<oneshot::Sender<Slot>>,
}

/// What the networks of a block have of the slots together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Total {
    running: usize,
    waiting: usize,
}

/// A slot; free again when it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    shared: Arc<Shared>,
    network: Network,
}

/// There is no slot in time, because of too many others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Busy;

impl Slots {
    pub(super) fn new(limits: Limits) -> Slots {
        Slots { shared: Arc::new(Shared { limits, state: Mutex::default() }) }
    }

    /// A slot for a token from this address. Networks that wait take turns; within a network who came first is first.
    pub(super) async fn take(&self, address: &str) -> Result<Slot, Busy> {
        let network = Network::of(address);
        let turn = match self.shared.enter(network)? {
            Entered::Slot(slot) => return Ok(slot),
            Entered::Line(turn) => turn,
        };
        match tokio::time::timeout(self.shared.limits.patience, turn).await {
            Ok(Ok(slot)) => Ok(slot),
            // It gave way to another network, or nobody has finished in time.
            Ok(Err(_)) | Err(_) => Err(Busy),
        }
    }
}

/// The outcome of an arrival.
enum Entered {
    Slot(Slot),
    Line(oneshot::Receiver<Slot>),
}

impl Shared {
    fn enter(self: &Arc<Self>, network: Network) -> Result<Entered, Busy> {
        let limits = self.limits;
        let mut state = self.lock();
        state.forget_gone();
        let share = state.networks.get(&network);
        let (running, waiting) = share.map_or((0, 0), |share| (share.running, share.waiting.len()));
        let of_block = state.of_block(network.block());
        let within = running < limits.running_of_one && of_block.running < limits.running_of_block;
        // Where something of the network waits it has its share already, or all slots are taken.
        if waiting == 0 && within && state.running < limits.running {
            return Ok(Entered::Slot(self.start(&mut state, network)));
        }
        if waiting >= limits.waiting_of_one || of_block.waiting >= limits.waiting_of_block {
            return Err(Busy);
        }
        if state.waiting >= limits.waiting && !state.give_way(network.block(), of_block.waiting, waiting) {
            return Err(Busy);
        }
        let (sender, turn) = oneshot::channel();
        state.push(network, sender);
        Ok(Entered::Line(turn))
    }

    fn start(self: &Arc<Self>, state: &mut State, network: Network) -> Slot {
        state.running += 1;
        state.networks.entry(network).or_default().running += 1;
        state.blocks.entry(network.block()).or_default().running += 1;
        Slot { shared: Arc::clone(self), network }
    }

    /// A slot is free: those whose turn it is take it.
    fn finish(self: &Arc<Self>, network: Network) {
        let mut handed = Vec::new();
        let mut state = self.lock();
        state.running = state.running.saturating_sub(1);
        if let Some(share) = state.networks.get_mut(&network) {
            share.running = share.running.saturating_sub(1);
        }
        if let Some(total) = state.blocks.get_mut(&network.block()) {
            total.running = total.running.saturating_sub(1);
        }
        state.forget_idle(network);
        state.forget_gone();
        while state.running < self.limits.running
            && let Some((network, sender)) = state.next(self.limits)
        {
            let slot = self.start(&mut state, network);
            handed.push((sender, slot));
        }
        drop(state);
        // Without the lock: a slot that nobody takes any more comes back here.
        for (sender, slot) in handed {
            let _gone = sender.send(slot);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, network: Network, sender: oneshot::Sender<Slot>) {
        let share = self.networks.entry(network).or_default();
        if share.waiting.is_empty() {
            self.turns.push_back(network);
        }
        share.waiting.push_back(sender);
        self.blocks.entry(network.block()).or_default().waiting += 1;
        self.waiting += 1;
    }

    /// The next of those that wait: the networks take turns, those of which nothing runs before the others, and one that has its
    /// share is passed over, as one of a block that has.
    fn next(&mut self, limits: Limits) -> Option<(Network, oneshot::Sender<Slot>)> {
        let ready = |(place, network): (usize, &Network)| {
            let running = self.networks.get(network)?.running;
            let of_block = self.of_block(network.block()).running;
            let within = running < limits.running_of_one && of_block < limits.running_of_block;
            within.then_some(((of_block > 0, running > 0), place))
        };
        // Among equals the first, whose turn it is.
        let (_, place) = self.turns.iter().enumerate().filter_map(ready).min()?;
        let network = self.turns.remove(place)?;
        let share = self.networks.get_mut(&network)?;
        let sender = share.waiting.pop_front()?;
        if !share.waiting.is_empty() {
            self.turns.push_back(network);
        }
        self.no_longer_waiting(network.block(), 1);
        Some((network, sender))
    }

    /// The totals of the networks of a block.
    fn of_block(&self, block: Block) -> Total {
        self.blocks.get(&block).copied().unwrap_or_default()
    }

    fn no_longer_waiting(&mut self, block: Block, count: usize) {
        self.waiting = self.waiting.saturating_sub(count);
        if let Some(total) = self.blocks.get_mut(&block) {
            total.waiting = total.waiting.saturating_sub(count);
        }
    }

    /// Makes room in the line for a network of which `waiting` wait, of its block `block_waiting`: the last one of the network of
    /// which most wait goes, of the block of which most wait. False where that would be no fairer.
    fn give_way(&mut self, block: Block, block_waiting: usize, waiting: usize) -> bool {
        let of_block = |network: &Network| self.of_block(network.block()).waiting;
        let fairer = |network: &Network| match network.block() == block {
            true => self.waiting_of(network) > waiting + 1,
            false => of_block(network) > block_waiting + 1 || self.waiting_of(network) > waiting + 1,
        };
        let candidates = self.turns.iter().copied().filter(fairer);
        let Some(most) = candidates.max_by_key(|network| (of_block(network), self.waiting_of(network))) else {
            return false;
        };
        if let Some(share) = self.networks.get_mut(&most) {
            // Dropped: the one that waits is told.
            drop(share.waiting.pop_back());
            self.no_longer_waiting(most.block(), 1);
        }
        true
    }

    fn waiting_of(&self, network: &Network) -> usize {
        self.networks.get(network).map_or(0, |share| share.waiting.len())
    }

    /// Those that wait no more leave the line.
    fn forget_gone(&mut self) {
        for network in std::mem::take(&mut self.turns) {
            let Some(share) = self.networks.get_mut(&network) else { continue };
            let before = share.waiting.len();
            share.waiting.retain(|sender| !sender.is_closed());
            let left = share.waiting.len();
            self.no_longer_waiting(network.block(), before - left);
            match left {
                0 => self.forget_idle(network),
                _ => self.turns.push_back(network),
            }
        }
    }

    fn forget_idle(&mut self, network: Network) {
        if self.networks.get(&network).is_some_and(|share| share.running == 0 && share.waiting.is_empty()) {
            self.networks.remove(&network);
        }
        if self.of_block(network.block()) == Total::default() {
            self.blocks.remove(&network.block());
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let shared = Arc::clone(&self.shared);
        shared.finish(self.network);
    }
}

impl Network {
    fn of(address: &str) -> Network {
        match address.parse::<IpAddr>().map(canonical) {
            Ok(IpAddr::V4(address)) => Network::V4(Ipv4Addr::from_bits(address.to_bits() & !0xff)),
            Ok(IpAddr::V6(address)) => Network::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
            Err(_) => Network::Unknown,
        }
    }

    fn block(self) -> Block {
        match self {
            Network::V4(address) => Block::V4(address.to_bits() >> 16),
            Network::V6(address) => Block::V6(address.to_bits() >> 80),
            Network::Unknown => Block::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        running: 4,
        running_of_one: 2,
        waiting: 4,
        waiting_of_one: 3,
        running_of_block: 9,
        waiting_of_block: 9,
        patience: Duration::from_secs(3600),
    };

    type Waiting = tokio::task::JoinHandle<Result<Slot, Busy>>;

    /// One that waits for its turn, once it stands in the line.
    async fn line_up(slots: &Slots, address: &'static str) -> Waiting {
        let before = {
            let mut state = slots.shared.lock();
            state.forget_gone();
            state.waiting
        };
        let task = tokio::spawn({
            let slots = slots.clone();
            async move { slots.take(address).await }
        });
        while slots.shared.lock().waiting == before {
            tokio::task::yield_now().await;
        }
        task
    }

    #[test]
    fn neighbours_are_of_one_network() {
        assert_eq!(Network::of("192.0.2.1"), Network::of("192.0.2.255"));
        assert_eq!(Network::of("192.0.2.1"), Network::of("::ffff:192.0.2.7"));
        assert_ne!(Network::of("192.0.2.1"), Network::of("192.0.3.1"));
        assert_eq!(Network::of("2001:db8::1"), Network::of("2001:db8::ffff:0:0:1"));
        assert_ne!(Network::of("2001:db8::1"), Network::of("2001:db8:0:1::1"));
        assert_eq!(Network::of(""), Network::of("nowhere"));
    }

    #[tokio::test]
    async fn a_network_has_its_share_and_leaves_the_rest() {
        let slots = Slots::new(LIMITS);
        let mut held = vec![slots.take("192.0.2.1").await.unwrap(), slots.take("192.0.2.2").await.unwrap()];
        let third = line_up(&slots, "192.0.2.3").await;
        // There are slots left, for others.
        held.push(slots.take("198.51.100.1").await.unwrap());
        held.push(slots.take("198.51.100.2").await.unwrap());
        assert!(!third.is_finished());
        held.truncate(3);
        tokio::task::yield_now().await;
        assert!(!third.is_finished(), "what another network frees is not for one that has its share");
        held.remove(0);
        drop(third.await.unwrap().unwrap());
        held.clear();
        let state = slots.shared.lock();
        assert_eq!((state.running, state.waiting, state.networks.len()), (0, 0, 0), "nothing is kept of who is gone");
    }

    #[tokio::test]
    async fn networks_that_wait_take_turns() {
        let slots = Slots::new(LIMITS);
        let mut held = Vec::new();
        for address in ["10.0.0.1", "10.0.0.1", "10.0.1.1", "10.0.2.1"] {
            held.push(slots.take(address).await.unwrap());
        }
        let first = line_up(&slots, "10.0.1.2").await;
        let second = line_up(&slots, "10.0.1.3").await;
        let other = line_up(&slots, "10.0.3.1").await;
        held.pop();
        let other = other.await.unwrap().unwrap();
        assert!(!first.is_finished() && !second.is_finished(), "a network of which nothing runs comes first");
        drop(held.remove(0));
        let first = first.await.unwrap().unwrap();
        tokio::task::yield_now().await;
        assert!(!second.is_finished(), "its network has its share");
        drop(first);
        drop(second.await.unwrap().unwrap());
        drop(other);
    }

    #[tokio::test]
    async fn the_line_is_bounded_and_the_longest_gives_way() {
        let slots = Slots::new(LIMITS);
        let mut held = Vec::new();
        for address in ["10.0.0.1", "10.0.0.1", "10.0.1.1", "10.0.2.1"] {
            held.push(slots.take(address).await.unwrap());
        }
        let mut flood = Vec::new();
        for _ in 0..3 {
            flood.push(line_up(&slots, "10.0.0.9").await);
        }
        assert_eq!(slots.take("10.0.0.9").await.unwrap_err(), Busy, "at once");
        let one = line_up(&slots, "10.0.5.1").await;
        let two = tokio::spawn({
            let slots = slots.clone();
            async move { slots.take("10.0.6.1").await }
        });
        assert_eq!(flood.pop().unwrap().await.unwrap().unwrap_err(), Busy, "the last of the longest gives way");
        assert_eq!(slots.shared.lock().waiting, 4);
        // Two each and one each: nobody has so many more that giving way would be fairer.
        let three = slots.clone();
        assert_eq!(three.take("10.0.5.2").await.unwrap_err(), Busy);
        held.clear();
        for waiting in flood.into_iter().chain([one, two]) {
            drop(waiting.await.unwrap().unwrap());
        }
        assert_eq!(slots.shared.lock().networks.len(), 0);
    }

    #[tokio::test]
    async fn one_home_connection_of_ipv6_leaves_room_for_the_others() {
        let slots = Slots::new(Limits { running_of_block: 3, waiting_of_block: 3, ..LIMITS });
        // Each from a /64 of its own.
        let mut held = Vec::new();
        for address in ["2001:db8:1:1::1", "2001:db8:1:2::1", "2001:db8:1:3::1"] {
            held.push(slots.take(address).await.unwrap());
        }
        let mut flood = Vec::new();
        for address in ["2001:db8:1:4::1", "2001:db8:1:5::1", "2001:db8:1:6::1"] {
            flood.push(line_up(&slots, address).await);
        }
        assert_eq!(
            slots.take("2001:db8:1:7::1").await.unwrap_err(),
            Busy,
            "its block has its share of the line as well"
        );
        let other = slots.take("2001:db8:2:1::1").await.unwrap();
        let late = line_up(&slots, "192.0.2.1").await;
        held.pop();
        let late = late.await.unwrap().unwrap();
        tokio::task::yield_now().await;
        assert!(flood.iter().all(|one| !one.is_finished()), "who has nothing comes before a block that has a share");
        // The line is full of one block: others push it back.
        let one = line_up(&slots, "198.51.100.1").await;
        let two = tokio::spawn({
            let slots = slots.clone();
            async move { slots.take("198.51.200.1").await }
        });
        assert_eq!(flood.pop().unwrap().await.unwrap().unwrap_err(), Busy);
        drop((held, other, late));
        for waiting in flood.into_iter().chain([one, two]) {
            drop(waiting.await.unwrap().unwrap());
        }
        assert_eq!(slots.shared.lock().networks.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever_and_who_is_gone_takes_no_slot() {
        let slots = Slots::new(LIMITS);
        let held = [slots.take("10.0.0.1").await.unwrap(), slots.take("10.0.0.1").await.unwrap()];
        assert_eq!(slots.take("10.0.0.1").await.unwrap_err(), Busy);
        let gone = line_up(&slots, "10.0.0.2").await;
        gone.abort();
        assert!(gone.await.is_err());
        let next = line_up(&slots, "10.0.0.3").await;
        drop(held);
        drop(next.await.unwrap().unwrap());
        let state = slots.shared.lock();
        assert_eq!((state.running, state.waiting), (0, 0));
    }
}
