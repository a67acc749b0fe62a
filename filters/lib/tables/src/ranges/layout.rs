//! The bytes of a base of ranges.
//!
//! A header of 24 bytes: `PRT1`, the width of labels (u8), three zero bytes, the number of IPv4 rows, of IPv6 rows, of names, and
//! of bytes of names (u32 each). Then the columns: first addresses, last addresses, labels of IPv4; the same of IPv6; the end of
//! each name (u32), the names. Numbers are little endian. The rows of a family are sorted, do not overlap, and neighbours
//! that touch have different labels.

use super::address::Address;
use crate::{BaseError, MAX_BASE};

const MAGIC: &[u8; 4] = b"PRT1";
const HEADER: usize = 24;

/// How many bytes the label of a range takes in a table: 1 (labels to 255), 2 (to 65,535) or 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelWidth {
    /// Labels from 0 to 255.
    One,
    /// Labels from 0 to 65,535.
    Two,
    /// Any `u32`, such as numbers of autonomous systems.
    Four,
}

impl LabelWidth {
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
        }
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
        let (label, rest) = bytes.split_at_checked(self.bytes())?;
        Some((label.iter().rev().fold(0, |label, byte| label << 8 | u32::from(*byte)), rest))
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
pub(crate) struct Columns<'a, A: Address> {
    firsts: &'a [A::Bytes],
    lasts: &'a [A::Bytes],
    labels: &'a [u8],
    width: LabelWidth,
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
        let v4 = self.v4.checked_mul(8 + self.width.bytes())?;
        let v6 = self.v6.checked_mul(32 + self.width.bytes())?;
        let names = self.names.checked_mul(4)?.checked_add(self.name_bytes)?;
        HEADER.checked_add(v4)?.checked_add(v6)?.checked_add(names)
    }

    pub(crate) fn v4<'a>(&self, base: &'a [u8]) -> Columns<'a, u32> {
        self.columns(base, HEADER, self.v4)
    }

    pub(crate) fn v6<'a>(&self, base: &'a [u8]) -> Columns<'a, u128> {
        self.columns(base, HEADER + self.v4 * (8 + self.width.bytes()), self.v6)
    }

    fn columns<'a, A: Address>(&self, base: &'a [u8], at: usize, rows: usize) -> Columns<'a, A> {
        let column = rows * A::LENGTH;
        let part = |from: usize, length: usize| base.get(from..from + length).unwrap_or_default();
        Columns {
            firsts: A::column(part(at, column)),
            lasts: A::column(part(at + column, column)),
            labels: part(at + 2 * column, rows * self.width.bytes()),
            width: self.width,
        }
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

impl<A: Address> Columns<'_, A> {
    pub(crate) fn len(&self) -> usize {
        self.firsts.len()
    }

    pub(crate) fn row(&self, at: usize) -> Option<Row<A>> {
        let labels = self.labels.get(at * self.width.bytes()..)?;
        let (label, _) = self.width.read(labels)?;
        Some(Row { first: A::of(*self.firsts.get(at)?), last: A::of(*self.lasts.get(at)?), label })
    }

    /// The label of the row that contains an address.
    pub(crate) fn find(&self, address: A) -> Option<u32> {
        let at = self.firsts.partition_point(|first| A::of(*first) <= address).checked_sub(1)?;
        let row = self.row(at)?;
        (row.last >= address).then_some(row.label)
    }
}

/// The columns of one family of a base that is being made.
#[derive(Debug, Clone)]
pub(crate) struct Rows<A> {
    firsts: Vec<u8>,
    lasts: Vec<u8>,
    labels: Vec<u8>,
    width: LabelWidth,
    count: usize,
    /// The row that the next one may continue.
    open: Option<Row<A>>,
}

impl<A: Address> Rows<A> {
    pub(crate) fn new(width: LabelWidth, rows: usize) -> Self {
        let column = || Vec::with_capacity(rows * A::LENGTH);
        let labels = Vec::with_capacity(rows * width.bytes());
        Self { firsts: column(), lasts: column(), labels, width, count: 0, open: None }
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
            row.first.write(&mut self.firsts);
            row.last.write(&mut self.lasts);
            self.width.write(row.label, &mut self.labels);
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
    [header.as_flattened(), &v4.firsts, &v4.lasts, &v4.labels, &v6.firsts, &v6.lasts, &v6.labels, &ends, &bytes]
        .concat()
}

/// A number of things in a base: all of them are far fewer than 2^32.
fn number(count: usize) -> [u8; 4] {
    u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes()
}
