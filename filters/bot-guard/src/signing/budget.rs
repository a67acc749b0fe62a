//! How much a worker verifies, and for whom.
//!
//! A verification takes as long as hundreds of other checks, and anyone can send a signature that only it shows to be wrong. So a worker
//! makes a bounded number of them in a second. A caller pays with its failures, and half of the number is kept for callers that have sent a
//! right signature: a flood of wrong ones from everywhere takes the other half at most.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::capped::Capped;
use super::why::Why;

/// How long failures are counted, in milliseconds.
const FAILURES_WINDOW: u64 = 60_000;
/// Failures of a caller and of its network in that time, at most.
const CALLER_FAILURES: u32 = 4;
const NETWORK_FAILURES: u32 = 32;
/// How long a caller counts as one that signs rightly, in milliseconds.
const PROVEN: u64 = 3_600_000;
/// Callers and networks that are remembered: twice as many at most.
const MOST: usize = 2048;

/// The budget of one policy on one worker.
#[derive(Default)]
pub(super) struct Budget {
    second: Cell<Second>,
    /// Failures of callers and networks in the window of this number.
    failures: Capped<Account, (u64, u32), MOST>,
    /// Until when callers are proven, in milliseconds since the Unix epoch.
    proven: Capped<IpAddr, u64, MOST>,
}

/// What was verified in a second.
#[derive(Clone, Copy, Default)]
struct Second {
    number: u64,
    all: u32,
    /// Of callers that are not proven.
    unproven: u32,
}

/// Who has failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Account {
    Caller(IpAddr),
    Network(IpAddr),
}

/// A caller, for the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Payer {
    /// The address, of IPv6 the first 64 bits.
    caller: IpAddr,
    /// The first 24 bits of IPv4 and 48 of IPv6.
    network: IpAddr,
}

// === impl Payer ===

impl Payer {
    pub(super) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let network = Ipv4Addr::from_bits(address.to_bits() & 0xffff_ff00);
                Self { caller: address.into(), network: network.into() }
            }
            IpAddr::V6(address) => {
                let first = |bits: u32| Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (128 - bits)));
                Self { caller: first(64).into(), network: first(48).into() }
            }
        }
    }
}

// === impl Budget ===

impl Budget {
    /// Takes a verification out of the budget; `per_second` is all of it.
    ///
    /// # Errors
    /// Why there is none left for this caller.
    pub(super) fn take(&self, payer: Payer, per_second: u32, now: u64) -> Result<(), Why> {
        let proven = self.proven.get(&payer.caller).is_some_and(|until| until > now);
        let spent = self.failures_of(Account::Caller(payer.caller), now) >= CALLER_FAILURES
            || !proven && self.failures_of(Account::Network(payer.network), now) >= NETWORK_FAILURES;
        if spent {
            return Err(Why::Caller);
        }
        let number = now / 1000;
        let mut second = Some(self.second.get()).filter(|second| second.number == number).unwrap_or_default();
        second.number = number;
        if second.all >= per_second || !proven && second.unproven >= per_second.div_ceil(2) {
            return Err(Why::Worker);
        }
        second.all = second.all.saturating_add(1);
        if !proven {
            second.unproven = second.unproven.saturating_add(1);
        }
        self.second.set(second);
        Ok(())
    }

    /// A verification has ended.
    pub(super) fn ended(&self, payer: Payer, right: bool, now: u64) {
        if right {
            self.proven.put(payer.caller, now.saturating_add(PROVEN));
            return;
        }
        for key in [Account::Caller(payer.caller), Account::Network(payer.network)] {
            let failures = self.failures_of(key, now).saturating_add(1);
            self.failures.put(key, (now / FAILURES_WINDOW, failures));
        }
    }

    fn failures_of(&self, key: Account, now: u64) -> u32 {
        let counted = self.failures.get(&key).filter(|(window, _)| *window == now / FAILURES_WINDOW);
        counted.map_or(0, |(_, failures)| failures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000_000;

    fn payer(address: &str) -> Payer {
        Payer::of(address.parse().unwrap())
    }

    #[test]
    fn a_caller_pays_with_its_failures_and_others_do_not() {
        let budget = Budget::default();
        let wrong = |address: &str, now| {
            let taken = budget.take(payer(address), 1000, now);
            if taken.is_ok() {
                budget.ended(payer(address), false, now);
            }
            taken
        };
        let outcomes: Vec<_> = (0..6).map(|_| wrong("192.0.2.1", NOW)).collect();
        assert_eq!(outcomes, [Ok(()), Ok(()), Ok(()), Ok(()), Err(Why::Caller), Err(Why::Caller)]);
        assert_eq!(wrong("::ffff:192.0.2.1", NOW), Err(Why::Caller), "the same caller");
        assert_eq!(wrong("192.0.2.2", NOW), Ok(()));
        assert_eq!(wrong("192.0.2.1", NOW + FAILURES_WINDOW), Ok(()), "a new window");
        (0..4).for_each(|low| assert_eq!(wrong(&format!("2001:db8::{low}"), NOW), Ok(())));
        assert_eq!(wrong("2001:db8::5", NOW), Err(Why::Caller), "a /64 is one caller");
        assert_eq!(wrong("2001:db8:0:1::5", NOW), Ok(()));
    }

    #[test]
    fn a_network_pays_for_its_callers_but_for_those_that_are_proven() {
        for (known, network) in [("192.0.2.255", "192.0.2."), ("2001:db8:1:ffff::1", "2001:db8:1:")] {
            let budget = Budget::default();
            budget.ended(payer(known), true, NOW);
            let ended = if network.contains(':') { "::1" } else { "" };
            let taken = (0..100).filter(|low| {
                let caller = payer(&format!("{network}{low}{ended}"));
                let taken = budget.take(caller, 1000, NOW).is_ok();
                if taken {
                    budget.ended(caller, false, NOW);
                }
                taken
            });
            assert_eq!(taken.count(), 32, "{network}");
            assert_eq!(budget.take(payer(known), 1000, NOW), Ok(()));
            assert_eq!(budget.take(payer(known), 1000, NOW + PROVEN), Ok(()), "another window");
            assert_eq!(budget.take(payer("198.51.100.1"), 1000, NOW), Ok(()));
        }
    }

    #[test]
    fn half_of_a_second_is_for_callers_that_are_proven() {
        let budget = Budget::default();
        budget.ended(payer("203.0.113.1"), true, NOW);
        let flood = |now, from: u32| {
            (0..1000)
                .filter(|number| {
                    budget.take(Payer::of(Ipv4Addr::from_bits(from + number * 256).into()), 21, now).is_ok()
                })
                .count()
        };
        assert_eq!(flood(NOW, 0x0a00_0000), 11);
        let proven = (0..100).filter(|_| budget.take(payer("203.0.113.1"), 21, NOW).is_ok()).count();
        assert_eq!(proven, 10);
        assert_eq!(flood(NOW + 1000, 0x0a00_0000), 11);
        assert_eq!(budget.take(payer("203.0.113.1"), 0, NOW + 2000), Err(Why::Worker), "nothing at all");
    }

    #[test]
    fn a_flood_of_callers_takes_a_bounded_memory() {
        let budget = Budget::default();
        for number in 0..100_000_u32 {
            let payer = Payer::of(Ipv4Addr::from_bits(number * 256).into());
            budget.ended(payer, false, NOW);
            budget.ended(payer, true, NOW);
        }
        assert!(budget.failures.len() <= 2 * MOST && budget.proven.len() <= 2 * MOST);
    }
}
