//! Sets of addresses as ranges that neither overlap nor touch.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tables::canonical;

/// A set of addresses. IPv4 addresses that are written as IPv6 are those of IPv4, see [`canonical`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AddressSet {
    pub(crate) v4: Vec<(u128, u128)>,
    pub(crate) v6: Vec<(u128, u128)>,
}

/// A range of one family, as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    V4(u32, u32),
    V6(u128, u128),
}

impl Span {
    /// From an address to another one of the same family, which is not before it.
    pub(crate) fn between(first: IpAddr, last: IpAddr) -> Option<Span> {
        match (first, last) {
            (IpAddr::V4(first), IpAddr::V4(last)) if first <= last => Some(Span::V4(first.into(), last.into())),
            (IpAddr::V6(first), IpAddr::V6(last)) if first <= last => Some(Span::V6(first.into(), last.into())),
            _ => None,
        }
    }

    /// The network of an address with that many leading bits; `None` where it has fewer bits.
    pub(crate) fn network(address: IpAddr, prefix: u32) -> Option<Span> {
        match address {
            IpAddr::V4(address) => {
                let rest = u32::MAX.checked_shr(prefix).filter(|_| prefix <= 32).unwrap_or_default();
                (prefix <= 32).then(|| Span::V4(u32::from(address) & !rest, u32::from(address) | rest))
            }
            IpAddr::V6(address) => {
                let rest = u128::MAX.checked_shr(prefix).unwrap_or_default();
                (prefix <= 128).then(|| Span::V6(u128::from(address) & !rest, u128::from(address) | rest))
            }
        }
    }
}

impl AddressSet {
    pub(crate) fn of(spans: &[Span]) -> AddressSet {
        let mut set = AddressSet::default();
        for span in spans {
            match *span {
                Span::V4(first, last) => set.v4.push((first.into(), last.into())),
                Span::V6(first, last) => set.v6.push((first, last)),
            }
        }
        set.v4 = merged(set.v4);
        set.v6 = merged(set.v6);
        set
    }

    /// The ranges in order, those of IPv4 first: first and last address.
    pub fn ranges(&self) -> impl Iterator<Item = (IpAddr, IpAddr)> {
        let v4 = |number: u128| IpAddr::V4(Ipv4Addr::from(u32::try_from(number).unwrap_or(u32::MAX)));
        let v6 = |number: u128| IpAddr::V6(Ipv6Addr::from(number));
        let of_v4 = self.v4.iter().map(move |(first, last)| (v4(*first), v4(*last)));
        of_v4.chain(self.v6.iter().map(move |(first, last)| (v6(*first), v6(*last))))
    }

    /// How many ranges there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Whether no address is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether an address is in it.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = canonical(address);
        Span::between(address, address).is_some_and(|span| self.covers(span))
    }

    /// The range that has an address: its first and its last one.
    #[must_use]
    pub fn range_of(&self, address: IpAddr) -> Option<(IpAddr, IpAddr)> {
        let address = canonical(address);
        self.contains(address).then_some(())?;
        let number = |address: IpAddr| match address {
            IpAddr::V4(address) => u128::from(u32::from(address)),
            IpAddr::V6(address) => u128::from(address),
        };
        let ranges = if address.is_ipv4() { &self.v4 } else { &self.v6 };
        let behind = ranges.partition_point(|(begin, _)| *begin <= number(address));
        let (first, last) = *ranges.get(behind.checked_sub(1)?)?;
        let text = |number: u128| match address {
            IpAddr::V4(_) => IpAddr::V4(u32::try_from(number).unwrap_or(u32::MAX).into()),
            IpAddr::V6(_) => IpAddr::V6(number.into()),
        };
        Some((text(first), text(last)))
    }

    /// Whether all of a range is in it.
    pub(crate) fn covers(&self, span: Span) -> bool {
        let (ranges, first, last) = match span {
            Span::V4(first, last) => (&self.v4, first.into(), last.into()),
            Span::V6(first, last) => (&self.v6, first, last),
        };
        let behind = ranges.partition_point(|(begin, _)| *begin <= first);
        behind.checked_sub(1).and_then(|place| ranges.get(place)).is_some_and(|(_, end)| last <= *end)
    }

    /// How many addresses of IPv4 are in it.
    #[must_use]
    pub fn v4_addresses(&self) -> u64 {
        let all: u128 = self.v4.iter().map(|(first, last)| last - first + 1).sum();
        u64::try_from(all).unwrap_or(u64::MAX)
    }

    /// How many networks /32 of IPv6 are in it, as a provider is given one; parts of one are counted together and rounded down.
    #[must_use]
    pub fn v6_networks(&self) -> u64 {
        // A length is at most 2^128 - 1, so that a sum of halves fits.
        let halves: u128 = self.v6.iter().map(|(first, last)| (last - first) / 2).sum();
        u64::try_from(halves >> 95).unwrap_or(u64::MAX)
    }

    /// How many networks /64 of IPv6 are in it, as one caller is given; each range counts as one at least.
    #[must_use]
    pub fn v6_callers(&self) -> u128 {
        self.v6.iter().map(|(first, last)| ((last - first) >> 64) + 1).sum()
    }

    /// The addresses of this set that are not in `other`.
    pub(crate) fn without(&self, other: &AddressSet) -> AddressSet {
        AddressSet { v4: difference(&self.v4, &other.v4), v6: difference(&self.v6, &other.v6) }
    }
}

/// Ranges in order, those that overlap or touch made one.
fn merged(mut ranges: Vec<(u128, u128)>) -> Vec<(u128, u128)> {
    ranges.sort_unstable();
    let mut all: Vec<(u128, u128)> = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        match all.last_mut() {
            Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
            _ => all.push((first, last)),
        }
    }
    all.shrink_to_fit();
    all
}

/// What is in `all` and not in `gone`; both are in order and merged.
fn difference(all: &[(u128, u128)], gone: &[(u128, u128)]) -> Vec<(u128, u128)> {
    let mut left = Vec::with_capacity(all.len());
    let mut gone = gone.iter().copied().peekable();
    for &(first, last) in all {
        let mut from = Some(first);
        while let Some(start) = from {
            match gone.peek() {
                Some((_, end)) if *end < start => {
                    gone.next();
                }
                Some((begin, end)) if *begin <= last => {
                    if start < *begin {
                        left.push((start, begin - 1));
                    }
                    from = end.checked_add(1).filter(|next| *next <= last);
                }
                _ => {
                    left.push((start, last));
                    from = None;
                }
            }
        }
    }
    left
}
