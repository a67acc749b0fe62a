//! Sorted address ranges, each with a number.

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

    /// Sorts all ranges and joins those that touch and have one label. A range that overlaps one before it is left out; how many are.
    pub(super) fn finish(&mut self) -> usize {
        let left_out = flatten(&mut self.v4, |address| address.checked_add(1));
        left_out + flatten(&mut self.v6, |address| address.checked_add(1))
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

fn flatten<A: Copy + Ord>(spans: &mut Vec<Span<A>>, next: fn(A) -> Option<A>) -> usize {
    spans.sort_by_key(|span| span.first);
    let mut left_out = 0;
    let mut kept: Vec<Span<A>> = Vec::with_capacity(spans.len());
    for span in spans.drain(..) {
        match kept.last_mut() {
            Some(before) if span.first <= before.last => left_out += 1,
            Some(before) if before.label == span.label && next(before.last) == Some(span.first) => {
                before.last = span.last;
            }
            _ => kept.push(span),
        }
    }
    kept.shrink_to_fit();
    *spans = kept;
    left_out
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
        assert_eq!((spans.len(), left_out), (3, 1), "the one that overlaps is left out");
        let label = |address: &str| spans.find(address.parse().unwrap()).map(|(label, ..)| label);
        assert_eq!((label("192.0.2.0"), label("192.0.2.255"), label("192.0.3.9")), (Some(1), Some(1), Some(2)));
        assert_eq!((label("192.0.3.10"), label("192.0.1.255"), label("::ffff:192.0.2.7")), (None, None, Some(1)));
        assert_eq!((label("2001:db8::1"), label("2001:db8::1:0")), (Some(4), None));
        let joined = spans.find("192.0.2.1".parse().unwrap()).unwrap();
        assert_eq!((joined.1.to_string(), joined.2.to_string()), ("192.0.2.0".into(), "192.0.2.255".into()));
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
