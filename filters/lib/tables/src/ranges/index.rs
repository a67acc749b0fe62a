//! Where rows are, by the leading bits of their first addresses: a lookup searches a few rows in place of all.
//!
//! Made of the first addresses when a base is taken, in one pass; it is no part of the base. Addresses of IPv6 are dense in few places:
//! a part that holds many rows is divided again.

use super::address::Address;
use super::layout::BaseRows;

/// Tables with fewer rows are searched as they are.
const FEWEST: usize = 32;
/// A part with more rows is divided again, as often as this.
const CROWDED: usize = 64;
const LEVELS: u32 = 4;
/// Parts have up to as many bits: 4 MiB of entries.
const MAX_BITS: u32 = 20;
/// An entry with this bit is the number of a part of its own; without, the row where the part begins. A base has fewer rows.
const DIVIDED: u32 = 1 << 31;

/// The rows of one family.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index<A> {
    parts: Vec<Part<A>>,
    entries: Vec<u32>,
}

/// Rows whose first addresses are told apart by some of their bits.
#[derive(Debug, Clone, Copy)]
struct Part<A> {
    lowest: A,
    /// How many low bits are left out.
    shift: u32,
    /// The place of its entries, and how many it has.
    at: usize,
    length: usize,
    /// Its rows: from, to.
    rows: (u32, u32),
}

impl<A: Address> Index<A> {
    pub(crate) fn new(base: &BaseRows<'_, A>) -> Self {
        let mut index = Self { parts: Vec::new(), entries: Vec::new() };
        if let Ok(rows) = u32::try_from(base.len())
            && base.len() >= FEWEST
        {
            index.divide(base, (0, rows), LEVELS);
        }
        index
    }

    /// The bytes that it takes.
    pub(crate) fn size(&self) -> usize {
        size_of_val(self.entries.as_slice()) + size_of_val(self.parts.as_slice())
    }

    /// Adds a part with these rows, of which there is at least one. Its number; `None` if it has none.
    fn divide(&mut self, base: &BaseRows<'_, A>, rows: (u32, u32), levels: u32) -> Option<u32> {
        let (lowest, highest) = (base.first(rows.0 as usize)?, base.first(rows.1.checked_sub(1)? as usize)?);
        let bits = (rows.1 - rows.0).checked_ilog2()?.min(MAX_BITS);
        let shift = highest.bits_above(lowest).saturating_sub(bits);
        let length = highest.steps_above(lowest, shift).checked_add(1)?;
        let (number, at) = (self.parts.len(), self.entries.len());
        self.parts.push(Part { lowest, shift, at, length, rows });
        for row in rows.0..rows.1 {
            // A base whose rows are not in order is searched wrongly, and takes no more memory.
            let place = base.first(row as usize)?.steps_above(lowest, shift).min(length - 1);
            self.entries.resize((at + place + 1).max(self.entries.len()), row);
        }
        // Of empty parts, the entry is the row behind them.
        let mut behind = rows.1;
        let mut crowded = Vec::new();
        let own_entries = self.entries.get_mut(at..)?;
        for (place, entry) in own_entries.iter_mut().enumerate().rev() {
            if (behind - *entry) as usize > CROWDED {
                crowded.push((place, (*entry, behind)));
            }
            behind = *entry;
        }
        for (place, rows) in crowded {
            if levels > 1
                && let Some(divided) = self.divide(base, rows, levels - 1)
            {
                *self.entries.get_mut(at + place)? = DIVIDED | divided;
            }
        }
        u32::try_from(number).ok().filter(|number| number & DIVIDED == 0)
    }

    /// The rows of which the last one that does not begin behind an address is: `from..to`, or the one before them.
    pub(crate) fn rows(&self, address: A, all: usize) -> (usize, usize) {
        let Some(mut part) = self.parts.first() else { return (0, all) };
        loop {
            let (from, to) = part.rows;
            if address < part.lowest {
                return (from as usize, from as usize);
            }
            let place = address.steps_above(part.lowest, part.shift);
            if place >= part.length {
                return (to as usize, to as usize);
            }
            let entries = self.entries.get(part.at + place..part.at + part.length).unwrap_or_default();
            let (entry, end) = match entries {
                [entry, next, ..] => (*entry, self.start(*next)),
                [entry] => (*entry, to),
                [] => return (from as usize, to as usize),
            };
            if entry & DIVIDED == 0 {
                return (entry as usize, end as usize);
            }
            let Some(divided) = self.parts.get((entry & !DIVIDED) as usize) else {
                return (from as usize, to as usize);
            };
            part = divided;
        }
    }

    /// The row where the part of an entry begins.
    fn start(&self, entry: u32) -> u32 {
        if entry & DIVIDED == 0 {
            return entry;
        }
        self.parts.get((entry & !DIVIDED) as usize).map_or(0, |part| part.rows.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LabelWidth;
    use crate::testing::Random;

    /// Rows of one address each.
    fn rows(firsts: &[u128]) -> Vec<u8> {
        let row = |first: &u128| [first.to_le_bytes(), first.to_le_bytes()].concat().into_iter().chain([7]);
        firsts.iter().flat_map(row).collect()
    }

    /// The number of rows that begin at an address or before it, as [`Index::rows`] and a search in them find it, and how many are
    /// left to search.
    fn begun(index: &Index<u128>, firsts: &[u128], address: u128) -> (usize, usize) {
        let (from, to) = index.rows(address, firsts.len());
        (from + firsts[from..to].partition_point(|first| *first <= address), to - from)
    }

    #[test]
    fn finds_what_a_search_in_all_rows_finds() {
        let mut random = Random(7);
        for count in [0, 1, 2, 31, 32, 33, 100, 1_000, 20_000] {
            for skew in [1, 16, 40, 100, 127] {
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
                let bytes = rows(&firsts);
                let index = Index::new(&BaseRows::<u128>::of_bytes(&bytes, LabelWidth::One));
                let near = firsts.iter().flat_map(|first| [first.wrapping_sub(1), *first, first.wrapping_add(1)]);
                let anywhere: Vec<u128> = (0..200).map(|_| u128::from(random.next()) << 64 >> skew).collect();
                for address in near.chain(anywhere) {
                    let expected = firsts.partition_point(|first| *first <= address);
                    let (found, _) = begun(&index, &firsts, address);
                    assert_eq!(found, expected, "{count} rows, skew {skew}, {address:x}");
                }
            }
        }
    }

    #[test]
    fn few_rows_are_left_where_addresses_are_dense() {
        // 16,384 networks of 48 bits beside each other, and 100 far apart.
        let dense = (0..16_384_u128).map(|at| 0x2001_0678 << 96 | at << 80);
        let mut firsts: Vec<u128> = dense.chain((1..=100).map(|at| at << 120)).collect();
        firsts.sort_unstable();
        let bytes = rows(&firsts);
        let index = Index::new(&BaseRows::<u128>::of_bytes(&bytes, LabelWidth::One));
        for first in &firsts {
            let (_, left) = begun(&index, &firsts, *first);
            assert!(left <= CROWDED, "{left} rows are searched for {first:x}");
        }
        assert!(index.size() <= 16 * firsts.len(), "{}", index.size());
    }

    #[test]
    fn rows_that_are_not_in_order_take_no_more_memory() {
        let firsts: Vec<u128> = (0..1_000_u128).map(|at| at.wrapping_mul(0x9e37_79b9 << 96 | 0x7f4a_7c15)).collect();
        let bytes = rows(&firsts);
        let base = BaseRows::<u128>::of_bytes(&bytes, LabelWidth::One);
        let index = Index::new(&base);
        assert!(index.size() <= 64 * firsts.len(), "{}", index.size());
        for address in firsts.iter().flat_map(|first| [*first, first.wrapping_add(1), !first]) {
            let _ = base.find(address, &index);
        }
    }
}
