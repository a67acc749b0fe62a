//! Where rows are, by the leading bits of their first addresses: a lookup compares a few rows in place of searching all.
//!
//! Made of the first addresses when a base is taken; it is no part of the base. The heads of addresses from that of the first row to that
//! of the last one are divided into parts of one size, and each part into about twice as many pieces as it has rows; for IPv6, whose
//! addresses are dense in few places, into as many as it has rows, and those again. Every lookup takes the same way, whatever it finds,
//! and reads one number at each level.

use std::hint::select_unpredictable;

use super::address::{Address, Head};
use super::layout::BaseRows;

/// The bits of an entry that say into how many pieces a part is divided, as a power of two; those above are the row where it begins.
const BITS: u32 = 0b1_1111;
/// As many rows have no place in an entry. Bases have fewer: they are bounded in bytes.
const MAX_ROWS: usize = 1 << BITS.leading_zeros();
/// The last level has so many bytes for each row, as a power of two.
const FINE: u32 = 1;

/// The rows of one family.
#[derive(Debug, Clone)]
pub(crate) struct Index<A: Address> {
    scale: Scale<A::Head>,
    /// The number of parts, as a power of two.
    bits: u32,
    /// The heads of few rows, which are all compared; empty where there are more.
    few: Vec<A::Head>,
    /// An entry for each part.
    parts: Vec<u32>,
    /// An entry for each piece of a part: from the place of the part's first row on. Empty without such a level.
    pieces: Vec<u32>,
    /// The rows of a part before each of its last pieces: from twice the place of the part's first row on. Low bits are left out where
    /// there are many.
    before: Vec<u8>,
    /// A bit for each row that begins or ends among the addresses of one head; empty if there is none.
    ragged: Vec<u64>,
}

/// Heads as distances from the lowest one, in the leading bits of a number.
#[derive(Debug, Clone, Copy)]
struct Scale<H> {
    lowest: H,
    highest: H,
    /// Leading bits that all distances share.
    shift: u32,
}

impl<H: Head> Scale<H> {
    fn new(lowest: H, highest: H) -> Self {
        let shift = highest.above(lowest, highest).leading_zeros().min(u64::BITS - 1);
        Self { lowest, highest, shift }
    }

    #[inline]
    fn distance(&self, head: H) -> u64 {
        head.above(self.lowest, self.highest) << (self.shift & 63)
    }
}

impl<A: Address> Index<A> {
    /// The index of few rows, which are all compared.
    pub(crate) fn of_few(base: &BaseRows<'_, A>) -> Self {
        let few = (0..base.len()).filter_map(|row| base.head(row)).collect();
        Self { few, ..Self::empty(base) }
    }

    fn empty(base: &BaseRows<'_, A>) -> Self {
        let scale = Scale::new(A::Head::LOWEST, A::Head::LOWEST);
        Self {
            scale,
            bits: 0,
            few: Vec::new(),
            parts: Vec::new(),
            pieces: Vec::new(),
            before: Vec::new(),
            ragged: ragged(base),
        }
    }

    /// The index of rows. That of rows that are not in order takes no more memory, and leads to some of them.
    pub(crate) fn new(base: &BaseRows<'_, A>) -> Self {
        let mut index = Self::empty(base);
        let rows = base.len();
        let ends = base.head(0).zip(rows.checked_sub(1).and_then(|last| base.head(last)));
        if let Some(((lowest, highest), bits)) = ends.zip((rows / A::Head::ROWS_OF_A_PART).checked_ilog2())
            && lowest <= highest
            && rows < MAX_ROWS
        {
            (index.scale, index.bits) = (Scale::new(lowest, highest), bits);
            index.divide(base);
        }
        index
    }

    /// The bytes that it takes.
    pub(crate) fn size(&self) -> usize {
        let entries = size_of_val(self.parts.as_slice()) + size_of_val(self.pieces.as_slice());
        entries + size_of_val(self.few.as_slice()) + self.before.len() + size_of_val(self.ragged.as_slice())
    }

    /// How many of few rows begin before an address with this head or at it.
    #[inline]
    pub(crate) fn few_begun(&self, head: A::Head) -> usize {
        // They fit a narrow number, so that several are compared and counted at once.
        self.few.iter().map(|first| u32::from(*first <= head)).sum::<u32>() as usize
    }

    /// How many rows begin before an address with this head, less the few of its last piece.
    #[inline]
    pub(crate) fn rows_before(&self, head: A::Head) -> usize {
        let distance = self.scale.distance(head);
        let mut entry = self.parts.get(leading(distance, self.bits)).copied().unwrap_or_default();
        let mut distance = distance << (self.bits & 63);
        if A::Head::HAS_PIECES {
            let bits = bits_of(entry);
            entry = self.pieces.get(row_of(entry) + leading(distance, bits)).copied().unwrap_or(entry & !BITS);
            // A part without rows leads to the first piece of the next one, whatever the address.
            distance = select_unpredictable(bits == 0, 0, distance << bits);
        }
        let (row, bits) = (row_of(entry), bits_of(entry));
        let before = self.before.get((row << FINE) + leading(distance, bits)).copied().unwrap_or_default();
        row + (usize::from(before) << left_out(bits))
    }

    /// Whether a row begins or ends among the addresses of one head.
    #[inline]
    pub(crate) fn is_ragged(&self, row: usize) -> bool {
        A::TAIL > 0 && self.ragged.get(row / 64).is_some_and(|bits| bits >> (row % 64) & 1 == 1)
    }

    /// Makes the levels, with this scale and this number of parts.
    fn divide(&mut self, base: &BaseRows<'_, A>) {
        let Self { scale, bits, parts, pieces, before, .. } = self;
        *before = vec![0; (base.len() + 1) << FINE];
        *pieces = vec![0; if A::Head::HAS_PIECES { base.len() } else { 0 }];
        parts.reserve_exact(1 << *bits);
        let distance = |row: usize| base.head(row).map_or(u64::MAX, |head| scale.distance(head));
        let mut last = |from: usize, to: usize, used: u32| {
            let bits = fine_bits(to - from);
            split(&distance, (from, to), used, bits, |piece, row, _| {
                if let Some(slot) = before.get_mut((from << FINE) + piece) {
                    *slot = u8::try_from((row - from) >> left_out(bits)).unwrap_or(u8::MAX);
                }
            });
        };
        split(&distance, (0, base.len()), 0, *bits, |_, from, to| {
            if A::Head::HAS_PIECES {
                let more = (to - from).checked_ilog2().unwrap_or(0);
                parts.push(entry(from, more));
                split(&distance, (from, to), *bits, more, |piece, begin, end| {
                    if let Some(slot) = pieces.get_mut(from + piece).filter(|_| from < to) {
                        *slot = entry(begin, fine_bits(end - begin));
                        last(begin, end, *bits + more);
                    }
                });
            } else {
                parts.push(entry(from, fine_bits(to - from)));
                last(from, to, *bits);
            }
        });
    }
}

/// Calls `found` with each of the pieces that rows are divided into by the bits of their distances behind those that are used: its place,
/// its first row, and the one behind its last. Rows that are not in order are part of some piece.
fn split(
    distance: &impl Fn(usize) -> u64,
    (from, to): (usize, usize),
    used: u32,
    bits: u32,
    mut found: impl FnMut(usize, usize, usize),
) {
    let mut row = from;
    for piece in 0..1 << bits {
        let begin = row;
        while row < to && leading(distance(row).checked_shl(used).unwrap_or(0), bits) <= piece {
            row += 1;
        }
        found(piece, begin, row);
    }
}

/// The leading bits of a number, fewer than all.
#[inline]
fn leading(number: u64, bits: u32) -> usize {
    #[allow(clippy::cast_possible_truncation, reason = "there are fewer bits than those of a place")]
    let leading = (number >> 1 >> (63_u32.wrapping_sub(bits) & 63)) as usize;
    leading
}

/// Into how many pieces of the last level so many rows are divided, as a power of two.
fn fine_bits(rows: usize) -> u32 {
    if rows > 1 { rows.ilog2() + FINE } else { 0 }
}

/// The low bits that are left out of numbers of rows of a part that is divided into so many pieces, as a power of two.
#[inline]
fn left_out(bits: u32) -> u32 {
    bits.saturating_sub(u8::BITS)
}

fn entry(row: usize, bits: u32) -> u32 {
    u32::try_from(row).map_or(0, |row| row << BITS.count_ones() | bits & BITS)
}

#[inline]
fn row_of(entry: u32) -> usize {
    (entry >> BITS.count_ones()) as usize
}

#[inline]
fn bits_of(entry: u32) -> u32 {
    entry & BITS
}

/// The rows that begin or end among the addresses of one head.
fn ragged<A: Address>(base: &BaseRows<'_, A>) -> Vec<u64> {
    let mut bits = Vec::new();
    for row in base.ragged() {
        bits.resize((row / 64 + 1).max(bits.len()), 0);
        if let Some(bits) = bits.get_mut(row / 64) {
            *bits |= 1 << (row % 64);
        }
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::super::layout::{Row, Rows};
    use super::*;
    use crate::LabelWidth;
    use crate::testing::Random;

    /// Rows of one address each.
    fn rows<A: Address>(firsts: &[A]) -> Rows<A> {
        let mut rows = Rows::new(LabelWidth::Two, firsts.len());
        for (first, label) in firsts.iter().zip((0..7).cycle()) {
            rows.push(Row { first: *first, last: *first, label });
        }
        rows.close();
        rows
    }

    fn assert_finds<A: Address>(firsts: &[A], addresses: impl Iterator<Item = A>, what: &str) {
        let rows = rows(firsts);
        let base = rows.base();
        let index = base.index();
        for address in addresses {
            let place = firsts.partition_point(|first| *first <= address).checked_sub(1);
            let expected = place.filter(|place| firsts[*place] == address).map(|place| place as u32 % 7);
            assert_eq!(base.find(address, &index), expected, "{what}: {} rows, {address:?}", firsts.len());
        }
    }

    #[test]
    fn finds_what_a_search_in_all_rows_finds() {
        let mut random = Random(7);
        for count in [0, 1, 2, 15, 16, 17, 18, 33, 100, 1_000, 20_000] {
            for skew in [1, 16, 40, 63, 64, 100, 127] {
                // Dense at the low end of one half of the space, or in a corner of it, and at both of its ends.
                let mut firsts: Vec<u128> = (0..count)
                    .map(|row| match row % 4 {
                        0 => u128::from(random.next()) << 64,
                        1 => (1 << 127) + (u128::from(random.next()) >> (skew % 60)),
                        _ => u128::from(random.next()) << 64 >> skew,
                    })
                    .chain([0, u128::MAX].into_iter().take(count))
                    .collect();
                firsts.sort_unstable();
                firsts.dedup();
                let near = firsts.iter().flat_map(|first| [first.wrapping_sub(1), *first, first.wrapping_add(1)]);
                let anywhere: Vec<u128> = (0..200).map(|_| u128::from(random.next()) << 64 >> skew).collect();
                assert_finds(&firsts, near.chain(anywhere), &format!("skew {skew}"));
                let mut firsts: Vec<u32> =
                    firsts.iter().map(|first| (first >> 96) as u32 | *first as u32 & 0xff).collect();
                firsts.sort_unstable();
                firsts.dedup();
                let near = firsts.iter().flat_map(|first| [first.wrapping_sub(1), *first, first.wrapping_add(1)]);
                let anywhere: Vec<u32> = (0..200).map(|_| random.next() as u32).collect();
                assert_finds(&firsts, near.chain(anywhere), &format!("skew {skew}"));
            }
        }
    }

    #[test]
    fn finds_among_very_many_rows_of_one_part() {
        // All but two are in one part of the first level.
        let dense = (0..60_000_u32).map(|at| 0x0a00_0000 + at * 3);
        let firsts: Vec<u32> = [0].into_iter().chain(dense.clone()).chain([u32::MAX]).collect();
        assert_finds(&firsts, dense.flat_map(|first| [first, first + 1, first + 2]), "dense");
        // All have one head.
        let firsts: Vec<u128> = (0..5_000_u128).map(|at| (0x2001_0db8 << 96) + at * 5).collect();
        let addresses =
            (0..25_010_u128).map(|at| (0x2001_0db8 << 96) + at).chain([0, (0x2001_0db8 << 96) - 1, u128::MAX]);
        assert_finds(&firsts, addresses, "one network");
    }

    #[test]
    fn finds_rows_at_both_ends_of_the_space() {
        let ends = (0..500_u32).flat_map(|at| [at, u32::MAX - at]);
        let mut firsts: Vec<u32> = ends.clone().filter(|first| first % 3 != 1).collect();
        firsts.sort_unstable();
        assert_finds(&firsts, ends, "both ends");
        // The last row begins at the last address, whatever the number of rows.
        for count in 30..60 {
            let firsts: Vec<u32> = (0..count).rev().map(|at| u32::MAX - at).collect();
            assert_finds(&firsts, (0..=100).map(|at| u32::MAX - at), "up to the end");
            let firsts: Vec<u128> = (0..count).rev().map(|at| u128::MAX - (u128::from(at) << 64)).collect();
            assert_finds(&firsts, (0..=100).map(|at| u128::MAX - (at << 64)), "up to the end");
        }
    }

    /// How many rows at most are left behind the place that the index says, for the first address of each row.
    fn left<A: Address>(firsts: &[A]) -> (usize, usize) {
        let rows = rows(firsts);
        let index = Index::new(&rows.base());
        let left = |(row, first): (usize, &A)| row + 1 - index.rows_before(first.head());
        (firsts.iter().enumerate().map(left).max().unwrap_or_default(), index.size())
    }

    #[test]
    fn few_rows_are_left_where_addresses_are_dense() {
        // 16,384 networks of 48 bits beside each other, and 100 far apart.
        let dense = (0..16_384_u128).map(|at| 0x2001_0678 << 96 | at << 80);
        let mut firsts: Vec<u128> = dense.chain((1..=100).map(|at| at << 120)).collect();
        firsts.sort_unstable();
        let (most, size) = left(&firsts);
        // All of them are one piece of a part, of whose numbers of rows 7 bits are left out.
        assert!(most <= 129 && size <= 8 * firsts.len(), "{most} rows are left, the index has {size} bytes");
        // Networks of 24 bits beside each other in a few larger ones: the index and the row take 16 bytes at most.
        let firsts: Vec<u32> = (0..100_000_u32).map(|at| (at / 200) << 22 | (at % 200) << 8).collect();
        let (most, size) = left(&firsts);
        assert!(most <= 2 && size <= 4 * firsts.len(), "{most} rows are left, the index has {size} bytes");
    }

    #[test]
    fn rows_that_are_not_in_order_take_no_more_memory() {
        let firsts: Vec<u128> = (0..1_000_u128).map(|at| at.wrapping_mul(0x9e37_79b9 << 96 | 0x7f4a_7c15)).collect();
        let rows = rows(&firsts);
        let base = rows.base();
        let index = base.index();
        assert!(index.size() <= 8 * firsts.len(), "{}", index.size());
        for address in firsts.iter().flat_map(|first| [*first, first.wrapping_add(1), !first]) {
            let _ = base.find(address, &index);
        }
    }
}
