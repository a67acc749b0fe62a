//! The bytes of a base of ranges.
//!
//! A header of 24 bytes: `PRT3`, the width of labels (u8), three zero bytes, the number of IPv4 rows, of IPv6 rows, of names, and
//! of bytes of names (u32 each). Then the rows of IPv4, each with its first address, its last address and its label, so that a lookup
//! touches one place. Those of IPv6 in two parts: of each row the upper 64 bits of both addresses and the label, then of each row the
//! lower 64 bits, which few lookups need. Then the end of each name (u32), the names. Numbers are little endian. The rows of a family
//! are sorted, do not overlap, and neighbours that touch have different labels.

use std::hint::select_unpredictable;
use std::marker::PhantomData;

use super::address::{Address, Head};
use super::index::Index;
use crate::{BaseError, MAX_BASE};

const MAGIC: &[u8; 4] = b"PRT3";
const HEADER: usize = 24;

/// Of as many rows all beginnings are compared: nothing branches on them.
const FEW: usize = 32;
/// The rows behind the place that the index says which are compared at once: there are seldom more that begin before the address.
const WINDOW: usize = 6;

/// How many bytes the label of a range takes in a table: 1 (labels to 255), 2 (to 65,535) or 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelWidth {
    /// Labels from 0 to 255.
    One = 1,
    /// Labels from 0 to 65,535.
    Two = 2,
    /// Any `u32`, such as numbers of autonomous systems.
    Four = 4,
}

impl LabelWidth {
    pub(crate) const fn bytes(self) -> usize {
        self as usize
    }

    /// The largest label.
    #[must_use]
    pub const fn largest(self) -> u32 {
        match self {
            Self::One => 0xff,
            Self::Two => 0xffff,
            Self::Four => u32::MAX,
        }
    }

    #[inline]
    pub(crate) fn read(self, bytes: &[u8]) -> Option<(u32, &[u8])> {
        let label = match self {
            Self::One => u32::from(*bytes.first()?),
            Self::Two => u32::from(u16::from_le_bytes(*bytes.first_chunk()?)),
            Self::Four => u32::from_le_bytes(*bytes.first_chunk()?),
        };
        Some((label, bytes.get(self.bytes()..)?))
    }

    pub(crate) fn write(self, label: u32, out: &mut Vec<u8>) {
        out.extend(label.to_le_bytes().into_iter().take(self.bytes()));
    }
}

/// A row of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row<A> {
    pub(crate) first: A,
    pub(crate) last: A,
    pub(crate) label: u32,
}

/// What the header says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) width: LabelWidth,
    v4: Place,
    v6: Place,
    names: usize,
    name_bytes: usize,
}

/// Where the rows of one family are.
#[derive(Debug, Clone, Copy)]
struct Place {
    count: usize,
    /// What lookups go to, and what is left of each row: where they begin, and where the latter ends.
    heads: usize,
    tails: usize,
    end: usize,
}

impl Place {
    fn new<A: Address>(at: usize, count: usize, width: LabelWidth) -> Option<Self> {
        let tails = at.checked_add(count.checked_mul(head_length::<A>(width))?)?;
        let end = tails.checked_add(count.checked_mul(2 * A::TAIL)?)?;
        Some(Self { count, heads: at, tails, end })
    }
}

/// The rows of one family, in the bytes of the base.
pub(crate) struct BaseRows<'a, A> {
    heads: &'a [u8],
    tails: &'a [u8],
    count: usize,
    width: LabelWidth,
    address: PhantomData<A>,
}

impl Layout {
    pub(crate) fn read(base: &[u8]) -> Result<Self, BaseError> {
        if base.len() > MAX_BASE {
            return Err(BaseError::TooLarge);
        }
        let (magic, rest) = base.split_first_chunk::<4>().ok_or(BaseError::Kind)?;
        if magic != MAGIC {
            return Err(BaseError::Kind);
        }
        let (width, rest) = rest.split_first_chunk::<4>().ok_or(BaseError::Length)?;
        let width = match width {
            [1, 0, 0, 0] => LabelWidth::One,
            [2, 0, 0, 0] => LabelWidth::Two,
            [4, 0, 0, 0] => LabelWidth::Four,
            _ => return Err(BaseError::Kind),
        };
        let numbers = rest.first_chunk::<16>().ok_or(BaseError::Length)?;
        let [v4, v6, names, name_bytes] = numbers.as_chunks::<4>().0 else { return Err(BaseError::Length) };
        let number = |bytes: &[u8; 4]| usize::try_from(u32::from_le_bytes(*bytes)).map_err(|_| BaseError::TooLarge);
        let v4 = Place::new::<u32>(HEADER, number(v4)?, width).ok_or(BaseError::Length)?;
        let v6 = Place::new::<u128>(v4.end, number(v6)?, width).ok_or(BaseError::Length)?;
        let layout = Self { width, v4, v6, names: number(names)?, name_bytes: number(name_bytes)? };
        if layout.length() == Some(base.len()) { Ok(layout) } else { Err(BaseError::Length) }
    }

    fn length(&self) -> Option<usize> {
        let names = self.names.checked_mul(4)?.checked_add(self.name_bytes)?;
        self.v6.end.checked_add(names)
    }

    #[inline]
    pub(crate) fn v4<'a>(&self, base: &'a [u8]) -> BaseRows<'a, u32> {
        self.rows(base, self.v4)
    }

    #[inline]
    pub(crate) fn v6<'a>(&self, base: &'a [u8]) -> BaseRows<'a, u128> {
        self.rows(base, self.v6)
    }

    #[inline]
    fn rows<'a, A: Address>(&self, base: &'a [u8], place: Place) -> BaseRows<'a, A> {
        let heads = base.get(place.heads..place.tails).unwrap_or_default();
        let tails = base.get(place.tails..place.end).unwrap_or_default();
        BaseRows { heads, tails, count: place.count, width: self.width, address: PhantomData }
    }

    /// The names of labels: a label is the place of its name.
    pub(crate) fn names<'a>(&self, base: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let (ends, bytes) = self.name_parts(base);
        let ends = ends.iter().map(|end| u32::from_le_bytes(*end) as usize);
        ends.scan(0, move |from, end| Some(bytes.get(std::mem::replace(from, end)..end).unwrap_or_default()))
    }

    /// The name of a label; empty or `None` if it has none.
    pub(crate) fn name<'a>(&self, base: &'a [u8], label: u32) -> Option<&'a [u8]> {
        let (ends, bytes) = self.name_parts(base);
        let label = usize::try_from(label).ok()?;
        let end = |at: usize| ends.get(at).map(|end| u32::from_le_bytes(*end) as usize);
        let from = label.checked_sub(1).map_or(Some(0), end)?;
        bytes.get(from..end(label)?)
    }

    fn name_parts<'a>(&self, base: &'a [u8]) -> (&'a [[u8; 4]], &'a [u8]) {
        let at = base.len().saturating_sub(self.names * 4 + self.name_bytes);
        let (ends, bytes) = base.split_at_checked(at + self.names * 4).unwrap_or_default();
        (ends.get(at..).unwrap_or_default().as_chunks::<4>().0, bytes)
    }
}

/// How many bytes of a row lookups go to.
const fn head_length<A: Address>(width: LabelWidth) -> usize {
    2 * A::Head::LENGTH + width.bytes()
}

impl<A: Address> BaseRows<'_, A> {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn row(&self, at: usize) -> Option<Row<A>> {
        let (first, rest) = A::Head::read(self.heads.get(at * head_length::<A>(self.width)..)?)?;
        let (last, rest) = A::Head::read(rest)?;
        let (label, _) = self.width.read(rest)?;
        let (first, rest) = A::with_tail(first, self.tails.get(at * 2 * A::TAIL..)?)?;
        let (last, _) = A::with_tail(last, rest)?;
        Some(Row { first, last, label })
    }

    /// The head of the first address of a row.
    pub(crate) fn head(&self, at: usize) -> Option<A::Head> {
        Some(A::Head::read(self.heads.get(at * head_length::<A>(self.width)..)?)?.0)
    }

    /// The rows that begin or end among the addresses of one head, in their order.
    pub(crate) fn ragged(&self) -> impl Iterator<Item = usize> {
        let rows = self.tails.chunks_exact((2 * A::TAIL).max(1)).enumerate();
        rows.filter_map(|(at, tails)| {
            let (first, last) = tails.split_at_checked(A::TAIL)?;
            (first.iter().any(|byte| *byte != 0) || last.iter().any(|byte| *byte != u8::MAX)).then_some(at)
        })
    }

    /// The index of these rows.
    pub(crate) fn index(&self) -> Index<A> {
        if self.count > FEW { Index::new(self) } else { Index::of_few(self) }
    }

    /// The label of the row that contains an address, by the index of these rows.
    #[inline]
    pub(crate) fn find(&self, address: A, index: &Index<A>) -> Option<u32> {
        // Rows of a length that is known when this is compiled are read without a check for each part of them.
        match (A::Head::LENGTH, self.width) {
            (4, LabelWidth::One) => self.find_in::<9>(address, index),
            (4, LabelWidth::Two) => self.find_in::<10>(address, index),
            (4, LabelWidth::Four) => self.find_in::<12>(address, index),
            (_, LabelWidth::One) => self.find_in::<17>(address, index),
            (_, LabelWidth::Two) => self.find_in::<18>(address, index),
            (_, LabelWidth::Four) => self.find_in::<20>(address, index),
        }
    }

    /// [`Self::find`] where a row has so many bytes that lookups go to.
    ///
    /// Which rows begin before the address cannot be foreseen, so nothing branches on it: a processor goes on to what comes after the
    /// lookup while it waits for the rows.
    #[inline]
    fn find_in<const ROW: usize>(&self, address: A, index: &Index<A>) -> Option<u32> {
        let head = address.head();
        let begun = |row: &[u8; ROW]| usize::from(A::Head::read(row).is_some_and(|(first, _)| first <= head));
        if self.count <= FEW {
            let at = index.few_begun(head).checked_sub(1)?;
            return self.label(address, at, self.heads.as_chunks::<ROW>().0.get(at)?, index);
        }
        // One row before those that are compared: it is the one if none of them has begun.
        let before = index.rows_before(head).clamp(1, self.count - WINDOW) - 1;
        let rows = self.heads.get(before * ROW..)?.as_chunks::<ROW>().0.first_chunk::<{ WINDOW + 1 }>()?;
        let [_, window @ ..] = rows;
        let found = window.iter().map(begun).sum::<usize>();
        // Behind the last row of all there is none that could have begun.
        if (found < WINDOW) | (before + WINDOW + 1 == self.count) {
            return self.label(address, before + found, rows.get(found)?, index);
        }
        let rows = self.heads.as_chunks::<ROW>().0;
        let at = begun_of(rows, before + found, |row| begun(row) == 1).checked_sub(1)?;
        self.label(address, at, rows.get(at)?, index)
    }

    /// The label of an address where row `at`, with these bytes, is the last one whose first address has its head or a lower one.
    #[inline]
    fn label<const ROW: usize>(&self, address: A, at: usize, row: &[u8; ROW], index: &Index<A>) -> Option<u32> {
        if index.is_ragged(at) {
            return self.find_ragged(address, at);
        }
        let head = address.head();
        let (first, rest) = A::Head::read(row)?;
        let (last, rest) = A::Head::read(rest)?;
        // The width is not read again: it follows from the length.
        let width = match ROW - 2 * A::Head::LENGTH {
            1 => LabelWidth::One,
            2 => LabelWidth::Two,
            _ => LabelWidth::Four,
        };
        let (label, _) = width.read(rest)?;
        select_unpredictable((first <= head) & (head <= last), Some(label), None)
    }

    /// The label of an address where row `at` is the last one whose first address has its head or a lower one.
    #[cold]
    #[inline(never)]
    fn find_ragged(&self, address: A, at: usize) -> Option<u32> {
        let contains = |row: &Row<A>| row.first <= address && address <= row.last;
        let row = self.row(at)?;
        if row.first <= address {
            return Some(row).filter(contains).map(|row| row.label);
        }
        // Rows before it begin with the same head: the first one behind the address is between `from` and `behind`.
        let (mut from, mut behind) = (0, at);
        while from < behind {
            let middle = from.midpoint(behind);
            match self.row(middle)?.first > address {
                true => behind = middle,
                false => from = middle + 1,
            }
        }
        self.row(behind.checked_sub(1)?).filter(contains).map(|row| row.label)
    }
}

/// How many of the first rows have begun, where those before `from` have, and none behind one that has not.
#[cold]
#[inline(never)]
fn begun_of<R>(rows: &[R], from: usize, begun: impl Fn(&R) -> bool) -> usize {
    // Those that are left are searched in steps that grow, then by halves.
    let (mut at, mut step) = (from, WINDOW);
    let end = loop {
        match rows.get(at.saturating_add(step)) {
            Some(row) if begun(row) => at += step,
            Some(_) => break at + step,
            None => break rows.len(),
        }
        step *= 2;
    };
    let mut left = end.saturating_sub(at);
    while left > 0 {
        let half = left / 2;
        let has = rows.get(at + half).is_some_and(&begun);
        at = select_unpredictable(has, at + half + 1, at);
        left = select_unpredictable(has, left - half - 1, half);
    }
    at
}

/// The rows of one family of a base that is being made.
#[derive(Debug, Clone)]
pub(crate) struct Rows<A> {
    heads: Vec<u8>,
    tails: Vec<u8>,
    width: LabelWidth,
    count: usize,
    /// The row that the next one may continue.
    open: Option<Row<A>>,
}

impl<A: Address> Rows<A> {
    pub(crate) fn new(width: LabelWidth, rows: usize) -> Self {
        let heads = Vec::with_capacity(rows * head_length::<A>(width));
        let tails = Vec::with_capacity(rows * 2 * A::TAIL);
        Self { heads, tails, width, count: 0, open: None }
    }

    /// Adds a row behind all others; one that touches the last one and has its label becomes part of it.
    pub(crate) fn push(&mut self, row: Row<A>) {
        match &mut self.open {
            Some(open) if open.label == row.label && open.last.next() == Some(row.first) => open.last = row.last,
            _ => {
                self.close();
                self.open = Some(row);
            }
        }
    }

    /// The number of rows.
    pub(crate) fn count(&self) -> usize {
        self.count + usize::from(self.open.is_some())
    }

    pub(crate) fn close(&mut self) {
        if let Some(row) = self.open.take() {
            row.first.head().write(&mut self.heads);
            row.last.head().write(&mut self.heads);
            self.width.write(row.label, &mut self.heads);
            row.first.write_tail(&mut self.tails);
            row.last.write_tail(&mut self.tails);
            self.count += 1;
        }
    }

    /// Gives each row the number at the place of its label. Different labels get different numbers, which fit the width.
    pub(crate) fn relabel(&mut self, numbers: &[u32]) {
        self.close();
        let (length, at) = (head_length::<A>(self.width), 2 * A::Head::LENGTH);
        for head in self.heads.chunks_exact_mut(length) {
            let Some(label) = head.get_mut(at..) else { continue };
            let place = self.width.read(label).map_or(usize::MAX, |(label, _)| label as usize);
            if let Some(number) = numbers.get(place) {
                label.iter_mut().zip(number.to_le_bytes()).for_each(|(byte, new)| *byte = new);
            }
        }
    }

    /// The rows, for tests of what looks them up.
    #[cfg(test)]
    pub(crate) fn base(&self) -> BaseRows<'_, A> {
        let (heads, tails) = (&self.heads, &self.tails);
        BaseRows { heads, tails, count: self.count, width: self.width, address: PhantomData }
    }
}

/// The bytes of a base.
pub(crate) fn encode<'a>(mut v4: Rows<u32>, mut v6: Rows<u128>, names: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    v4.close();
    v6.close();
    let (mut ends, mut bytes) = (Vec::new(), Vec::new());
    let mut named = 0;
    for name in names {
        bytes.extend_from_slice(name);
        ends.extend_from_slice(&number(bytes.len()));
        if !name.is_empty() {
            named = ends.len();
        }
    }
    // Labels without a name behind the last name: one content, one base.
    ends.truncate(named);
    let width = number(v4.width.bytes());
    let header = [*MAGIC, width, number(v4.count), number(v6.count), number(ends.len() / 4), number(bytes.len())];
    [header.as_flattened(), &v4.heads, &v4.tails, &v6.heads, &v6.tails, &ends, &bytes].concat()
}

/// A number of things in a base: all of them are far fewer than 2^32.
fn number(count: usize) -> [u8; 4] {
    u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes()
}
