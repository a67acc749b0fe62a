//! The bytes of a base of ranges.
//!
//! A header of 24 bytes: `PRT2`, the width of labels (u8), three zero bytes, the number of IPv4 rows, of IPv6 rows, of names, and
//! of bytes of names (u32 each). Then the rows of IPv4, each with its first address, its last address and its label, so that a lookup
//! touches one place; those of IPv6; the end of each name (u32), the names. Numbers are little endian. The rows of a family are sorted,
//! do not overlap, and neighbours that touch have different labels.

use std::hint::select_unpredictable;
use std::marker::PhantomData;

use super::address::Address;
use super::index::Index;
use crate::{BaseError, MAX_BASE};

const MAGIC: &[u8; 4] = b"PRT2";
const HEADER: usize = 24;

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
    v4: usize,
    v6: usize,
    names: usize,
    name_bytes: usize,
}

/// The rows of one family, in the bytes of the base.
pub(crate) struct BaseRows<'a, A> {
    bytes: &'a [u8],
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
        let layout =
            Self { width, v4: number(v4)?, v6: number(v6)?, names: number(names)?, name_bytes: number(name_bytes)? };
        if layout.length() == Some(base.len()) { Ok(layout) } else { Err(BaseError::Length) }
    }

    fn length(&self) -> Option<usize> {
        let v4 = self.v4.checked_mul(row_length::<u32>(self.width))?;
        let v6 = self.v6.checked_mul(row_length::<u128>(self.width))?;
        let names = self.names.checked_mul(4)?.checked_add(self.name_bytes)?;
        HEADER.checked_add(v4)?.checked_add(v6)?.checked_add(names)
    }

    pub(crate) fn v4<'a>(&self, base: &'a [u8]) -> BaseRows<'a, u32> {
        self.rows(base, HEADER, self.v4)
    }

    pub(crate) fn v6<'a>(&self, base: &'a [u8]) -> BaseRows<'a, u128> {
        self.rows(base, HEADER + self.v4 * row_length::<u32>(self.width), self.v6)
    }

    fn rows<'a, A: Address>(&self, base: &'a [u8], at: usize, count: usize) -> BaseRows<'a, A> {
        let bytes = base.get(at..at + count * row_length::<A>(self.width)).unwrap_or_default();
        BaseRows { bytes, count, width: self.width, address: PhantomData }
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

/// How many bytes a row takes.
const fn row_length<A: Address>(width: LabelWidth) -> usize {
    2 * A::LENGTH + width.bytes()
}

impl<'a, A: Address> BaseRows<'a, A> {
    /// Rows outside of a base.
    #[cfg(test)]
    pub(crate) fn of_bytes(bytes: &'a [u8], width: LabelWidth) -> Self {
        Self { bytes, count: bytes.len() / row_length::<A>(width), width, address: PhantomData }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn row(&self, at: usize) -> Option<Row<A>> {
        let (first, rest) = A::read(self.bytes_of(at)?)?;
        let (last, rest) = A::read(rest)?;
        let (label, _) = self.width.read(rest)?;
        Some(Row { first, last, label })
    }

    pub(crate) fn index(&self) -> Index<A> {
        Index::new(self)
    }

    /// The label of the row that contains an address, by the index of these rows.
    pub(crate) fn find(&self, address: A, index: &Index<A>) -> Option<u32> {
        let (from, to) = index.rows(address, self.count);
        // The row that begins last at the address or before it is `at` or one of the `left` ones behind. Which half it is in cannot be
        // foreseen, so nothing branches on it.
        let (mut at, mut left) = (from.saturating_sub(1), to.saturating_sub(from.saturating_sub(1)));
        while left > 1 {
            let half = left / 2;
            let begun = self.first(at + half)? <= address;
            at = select_unpredictable(begun, at + half, at);
            left -= half;
        }
        let row = self.row(at)?;
        (row.first <= address && address <= row.last).then_some(row.label)
    }

    /// The first address of a row.
    pub(crate) fn first(&self, at: usize) -> Option<A> {
        Some(A::read(self.bytes_of(at)?)?.0)
    }

    /// A row, and all behind it.
    fn bytes_of(&self, at: usize) -> Option<&[u8]> {
        self.bytes.get(at * row_length::<A>(self.width)..)
    }
}

/// The rows of one family of a base that is being made.
#[derive(Debug, Clone)]
pub(crate) struct Rows<A> {
    bytes: Vec<u8>,
    width: LabelWidth,
    count: usize,
    /// The row that the next one may continue.
    open: Option<Row<A>>,
}

impl<A: Address> Rows<A> {
    pub(crate) fn new(width: LabelWidth, rows: usize) -> Self {
        Self { bytes: Vec::with_capacity(rows * row_length::<A>(width)), width, count: 0, open: None }
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

    fn close(&mut self) {
        if let Some(row) = self.open.take() {
            row.first.write(&mut self.bytes);
            row.last.write(&mut self.bytes);
            self.width.write(row.label, &mut self.bytes);
            self.count += 1;
        }
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
    [header.as_flattened(), &v4.bytes, &v6.bytes, &ends, &bytes].concat()
}

/// A number of things in a base: all of them are far fewer than 2^32.
fn number(count: usize) -> [u8; 4] {
    u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes()
}
