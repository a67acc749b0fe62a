//! The operations of a delta of ranges.
//!
//! A tag (u8): 1 sets an IPv4 range to a label (first, last, label), 2 takes one out (first, last), 3 and 4 do so for IPv6, 5 names
//! a label (u32, the length of the name as u16, the name). Little endian; labels have the width of the table's.

use std::net::IpAddr;

use super::address::{Address, Span};
use super::layout::LabelWidth;
use super::overlay::Assigned;
use super::{MAX_LABEL, MAX_LABELS};
use crate::OpError;

const SET_V4: u8 = 1;
const CLEAR_V4: u8 = 2;
const SET_V6: u8 = 3;
const CLEAR_V6: u8 = 4;
const NAME: u8 = 5;

/// An operation in the bytes of its delta.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Op<'a> {
    V4(Assigned<u32>),
    V6(Assigned<u128>),
    Name(u32, &'a [u8]),
}

/// The first operation, and what is left.
pub(crate) fn read(bytes: &[u8], width: LabelWidth) -> Result<(Op<'_>, &[u8]), OpError> {
    let (tag, rest) = bytes.split_first().ok_or(OpError::Truncated)?;
    match *tag {
        SET_V4 | CLEAR_V4 => {
            assigned(rest, (*tag == SET_V4).then_some(width)).map(|(entry, rest)| (Op::V4(entry), rest))
        }
        SET_V6 | CLEAR_V6 => {
            assigned(rest, (*tag == SET_V6).then_some(width)).map(|(entry, rest)| (Op::V6(entry), rest))
        }
        NAME => {
            let (label, rest) = rest.split_first_chunk::<4>().ok_or(OpError::Truncated)?;
            let (length, rest) = rest.split_first_chunk::<2>().ok_or(OpError::Truncated)?;
            let (label, length) = (u32::from_le_bytes(*label), usize::from(u16::from_le_bytes(*length)));
            if label >= MAX_LABELS || label > width.largest() || length > MAX_LABEL {
                return Err(OpError::Label);
            }
            let (name, rest) = rest.split_at_checked(length).ok_or(OpError::Truncated)?;
            Ok((Op::Name(label, name), rest))
        }
        unknown => Err(OpError::Unknown(unknown)),
    }
}

fn assigned<A: Address>(bytes: &[u8], label: Option<LabelWidth>) -> Result<(Assigned<A>, &[u8]), OpError> {
    let (first, rest) = A::read(bytes).ok_or(OpError::Truncated)?;
    let (last, rest) = A::read(rest).ok_or(OpError::Truncated)?;
    let (label, rest) = match label {
        Some(width) => width.read(rest).map(|(label, rest)| (Some(label), rest)).ok_or(OpError::Truncated)?,
        None => (None, rest),
    };
    if first > last { Err(OpError::Range) } else { Ok((Assigned { first, last, label }, rest)) }
}

/// Writes the operations of a delta of [`Ranges`](super::Ranges), in the order in which they apply.
#[derive(Debug, Clone)]
pub struct RangeOps {
    width: LabelWidth,
    count: usize,
    bytes: Vec<u8>,
}

impl RangeOps {
    /// Operations on a table whose labels have this width.
    #[must_use]
    pub fn new(width: LabelWidth) -> Self {
        Self { width, count: 0, bytes: Vec::new() }
    }

    /// Gives every address from `first` to `last` this label, whatever it had.
    ///
    /// # Errors
    ///
    /// [`OpError::Range`] unless both are of one family and in order, [`OpError::Label`] for a label that is too large.
    pub fn set(&mut self, first: IpAddr, last: IpAddr, label: u32) -> Result<(), OpError> {
        if label > self.width.largest() {
            return Err(OpError::Label);
        }
        self.put(Span::new(first, last)?, Some(label));
        Ok(())
    }

    /// Takes every address from `first` to `last` out of the table.
    ///
    /// # Errors
    ///
    /// [`OpError::Range`] unless both are of one family and in order.
    pub fn clear(&mut self, first: IpAddr, last: IpAddr) -> Result<(), OpError> {
        self.put(Span::new(first, last)?, None);
        Ok(())
    }

    /// Names a label: at most [`MAX_LABEL`] bytes, for a label below [`MAX_LABELS`]. No bytes take the name away.
    ///
    /// # Errors
    ///
    /// [`OpError::Label`] beyond these limits.
    pub fn name(&mut self, label: u32, name: &[u8]) -> Result<(), OpError> {
        let length = u16::try_from(name.len()).map_err(|_| OpError::Label)?;
        if label >= MAX_LABELS || label > self.width.largest() || name.len() > MAX_LABEL {
            return Err(OpError::Label);
        }
        self.bytes.push(NAME);
        self.bytes.extend_from_slice(&label.to_le_bytes());
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(name);
        self.count += 1;
        Ok(())
    }

    pub(crate) fn put(&mut self, span: Span, label: Option<u32>) {
        let set = label.is_some();
        match span {
            Span::V4(first, last) => self.assign(if set { SET_V4 } else { CLEAR_V4 }, first, last),
            Span::V6(first, last) => self.assign(if set { SET_V6 } else { CLEAR_V6 }, first, last),
        }
        if let Some(label) = label {
            self.width.write(label, &mut self.bytes);
        }
        self.count += 1;
    }

    fn assign<A: Address>(&mut self, tag: u8, first: A, last: A) {
        self.bytes.push(tag);
        first.write(&mut self.bytes);
        last.write(&mut self.bytes);
    }

    /// How many operations there are; a delta holds at most [`MAX_OPS`](crate::MAX_OPS).
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The number of bytes so far; a delta has at most [`MAX_DELTA`](crate::MAX_DELTA).
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn width(&self) -> LabelWidth {
        self.width
    }

    /// The bytes.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}
