//! Sorted address ranges, each with a number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::IpAddr;

/// Address ranges of both families that do not overlap, each with a label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::control) struct Spans {
    v4: Vec<Span<u32>>,
    v6: Vec<Span<u128>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span<A> {
    first: A,
    last: A,
    label: u32,
}

impl Spans {
    /// Adds a range; false unless both addresses are of one family and in order.
    pub(super) fn add(&mut self, first: IpAddr, last: IpAddr, label: u32) -> bool {
        match (first.to_canonical(), last.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(last)) if first <= last => {
                self.v4.push(Span { first: first.into(), last: last.into(), label });
                true
            }
            (IpAddr::V6(first), IpAddr::V6(last)) if first <= last => {
                self.v6.push(Span { first: first.into(), last: last.into(), label });
                true
            }
            _ => false,
        }
    }

    /// Sorts all ranges and joins those that touch and have one label. Where ranges overlap, the narrowest counts, and of equal ones the
    /// first; how many count nowhere.
    pub(super) fn finish(&mut self) -> usize {
        flatten(&mut self.v4) + flatten(&mut self.v6)
    }

    /// The number of ranges.
    pub(in crate::control) fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// The label of the range that has an address, and the range.
    pub(in crate::control) fn find(&self, address: IpAddr) -> Option<(u32, IpAddr, IpAddr)> {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let Span { first, last, label } = find(&self.v4, address.into())?;
                Some((label, IpAddr::V4(first.into()), IpAddr::V4(last.into())))
            }
            IpAddr::V6(address) => {
                let Span { first, last, label } = find(&self.v6, address.into())?;
                Some((label, IpAddr::V6(first.into()), IpAddr::V6(last.into())))
            }
        }
    }

    /// All ranges with their labels, IPv4 first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (IpAddr, IpAddr, u32)> {
        let v4 = self.v4.iter().map(|span| (IpAddr::V4(span.first.into()), IpAddr::V4(span.last.into()), span.label));
        let v6 = self.v6.iter().map(|span| (IpAddr::V6(span.first.into()), IpAddr::V6(span.last.into()), span.label));
        v4.chain(v6)
    }
}

/// An address as a number.
trait Address: Copy + Ord {
    fn next(self) -> Option<Self>;
    fn before(self) -> Self;
    /// How far it is from an address before it.
    fn from(self, first: Self) -> Self;
}

macro_rules! address {
    ($number:ty) => {
        impl Address for $number {
            fn next(self) -> Option<Self> {
                self.checked_add(1)
            }

            fn before(self) -> Self {
                self.saturating_sub(1)
            }

            fn from(self, first: Self) -> Self {
                self.saturating_sub(first)
            }
        }
    };
}

address!(u32);
address!(u128);

/// Walks over all addresses at which a range begins or ends.
fn flatten<A: Address>(spans: &mut Vec<Span<A>>) -> usize {
    spans.sort_by_key(|span| span.first);
    let mut used = vec![false; spans.len()];
    let mut kept: Vec<Span<A>> = Vec::with_capacity(spans.len());
    // The ranges that have begun, the narrowest first; one that has ended is taken off when it comes to the front.
    let mut begun = BinaryHeap::new();
    let mut rest = spans.iter().enumerate().peekable();
    let mut place = rest.peek().map(|(_, span)| span.first);
    while let Some(first) = place {
        while let Some((number, span)) = rest.next_if(|(_, span)| span.first <= first) {
            begun.push(Reverse((span.last.from(span.first), number, span.last, span.label)));
        }
        while begun.peek().is_some_and(|Reverse((_, _, last, _))| *last < first) {
            begun.pop();
        }
        let begins = rest.peek().map(|(_, span)| span.first);
        let Some(Reverse((_, number, last, label))) = begun.peek().copied() else {
            place = begins;
            continue;
        };
        used.get_mut(number).into_iter().for_each(|used| *used = true);
        // Up to its end, or to where another one begins.
        let last = begins.map_or(last, |begins| last.min(begins.before()));
        match kept.last_mut() {
            Some(before) if before.label == label && before.last.next() == Some(first) => before.last = last,
            _ => kept.push(Span { first, last, label }),
        }
        place = last.next();
    }
    kept.shrink_to_fit();
    *spans = kept;
    used.into_iter().filter(|used| !used).count()
}

fn find<A: Copy + Ord>(spans: &[Span<A>], address: A) -> Option<Span<A>> {
    let behind = spans.partition_point(|span| span.first <= address);
    let span = *spans.get(behind.checked_sub(1)?)?;
    (address <= span.last).then_some(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ranges: &[(&str, &str, u32)]) -> (Spans, usize) {
        let mut spans = Spans::default();
        for (first, last, label) in ranges {
            assert!(spans.add(first.parse().unwrap(), last.parse().unwrap(), *label));
        }
        let left_out = spans.finish();
        (spans, left_out)
    }

    #[test]
    fn ranges_are_sorted_joined_and_found() {
        let (spans, left_out) = of(&[
            ("192.0.2.128", "192.0.2.255", 1),
            ("192.0.2.0", "192.0.2.127", 1),
            ("192.0.3.0", "192.0.3.9", 2),
            ("192.0.3.5", "192.0.3.20", 3),
            ("2001:db8::", "2001:db8::ffff", 4),
        ]);
        assert_eq!((spans.len(), left_out), (4, 0));
        let label = |address: &str| spans.find(address.parse().unwrap()).map(|(label, ..)| label);
        assert_eq!((label("192.0.2.0"), label("192.0.2.255"), label("192.0.3.9")), (Some(1), Some(1), Some(2)));
        assert_eq!((label("192.0.3.10"), label("192.0.1.255"), label("::ffff:192.0.2.7")), (Some(3), None, Some(1)));
        assert_eq!((label("2001:db8::1"), label("2001:db8::1:0")), (Some(4), None));
        let joined = spans.find("192.0.2.1".parse().unwrap()).unwrap();
        assert_eq!((joined.1.to_string(), joined.2.to_string()), ("192.0.2.0".into(), "192.0.2.255".into()));
    }

    #[test]
    fn of_ranges_that_overlap_the_narrowest_counts() {
        let (spans, left_out) = of(&[
            ("10.0.0.0", "10.255.255.255", 1),
            ("10.1.0.0", "10.1.255.255", 2),
            ("10.1.2.0", "10.1.2.255", 3),
            ("10.1.2.0", "10.1.2.255", 4),
            ("10.255.0.0", "11.0.0.255", 5),
            ("255.255.255.0", "255.255.255.255", 6),
        ]);
        let label = |address: &str| spans.find(address.parse().unwrap()).map(|(label, ..)| label);
        let expected = [
            ("10.0.0.0", Some(1)),
            ("10.0.255.255", Some(1)),
            ("10.1.0.0", Some(2)),
            ("10.1.2.0", Some(3)),
            ("10.1.2.255", Some(3)),
            ("10.1.3.0", Some(2)),
            ("10.2.0.0", Some(1)),
            ("10.254.255.255", Some(1)),
            ("10.255.0.0", Some(5)),
            ("11.0.0.255", Some(5)),
            ("11.0.1.0", None),
            ("255.255.255.255", Some(6)),
        ];
        for (address, wanted) in expected {
            assert_eq!(label(address), wanted, "{address}");
        }
        assert_eq!(left_out, 1, "of two equal ranges the second");
    }

    #[test]
    fn random_ranges_are_found_as_a_search_through_all_of_them_finds_them() {
        let mut state = 7_u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        for round in 0..200 {
            let ranges: Vec<(u32, u32, u32)> = (0..round % 20 + 1)
                .map(|label| {
                    let first = random(200);
                    (first, first + random(60), label)
                })
                .collect();
            let mut spans = Spans::default();
            for (first, last, label) in &ranges {
                assert!(spans.add(IpAddr::V4((*first).into()), IpAddr::V4((*last).into()), *label));
            }
            spans.finish();
            for address in 0..300_u32 {
                let covering = ranges.iter().filter(|(first, last, _)| (*first..=*last).contains(&address));
                let narrowest =
                    covering.min_by_key(|(first, last, _)| (last - first, *first)).map(|(_, _, label)| *label);
                let found = spans.find(IpAddr::V4(address.into())).map(|(label, ..)| label);
                assert_eq!(found, narrowest, "{address} in {ranges:?}");
            }
        }
    }

    #[test]
    fn a_range_has_one_family_and_an_order() {
        let mut spans = Spans::default();
        assert!(!spans.add("192.0.2.2".parse().unwrap(), "192.0.2.1".parse().unwrap(), 1));
        assert!(!spans.add("192.0.2.2".parse().unwrap(), "2001:db8::".parse().unwrap(), 1));
        let (all, _) = of(&[("0.0.0.0", "255.255.255.255", 1), ("::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 2)]);
        assert_eq!(all.iter().count(), 2);
    }
}
