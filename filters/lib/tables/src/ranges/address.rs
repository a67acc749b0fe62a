//! Addresses of both families as numbers.

use std::net::{IpAddr, Ipv4Addr};

use crate::{OpError, canonical};

/// An IPv4 address (`u32`) or an IPv6 address (`u128`).
pub(crate) trait Address: Copy + Ord + std::fmt::Debug {
    /// The bits that rows are searched by: all of an IPv4 address, the upper half of an IPv6 address.
    type Head: Head;

    /// How many bytes it takes.
    const LENGTH: usize;
    /// How many of them are behind the head.
    const TAIL: usize = Self::LENGTH - Self::Head::LENGTH;
    /// The lowest address.
    const LOWEST: Self;

    fn read(bytes: &[u8]) -> Option<(Self, &[u8])>;
    fn write(self, out: &mut Vec<u8>);
    fn next(self) -> Option<Self>;
    fn before(self) -> Option<Self>;
    fn head(self) -> Self::Head;
    /// The address with this head, and the tail that the bytes begin with; and the bytes behind it.
    fn with_tail(head: Self::Head, bytes: &[u8]) -> Option<(Self, &[u8])>;
    fn write_tail(self, out: &mut Vec<u8>);
}

/// The leading bits of an address.
pub(crate) trait Head: Copy + Ord + std::fmt::Debug {
    /// How many bytes it takes.
    const LENGTH: usize;
    /// Of how many rows an index has one part in its first level.
    const ROWS_OF_A_PART: usize;
    /// Whether an index has a level between its parts and the last one: upper halves of IPv6 addresses are dense in few places.
    const HAS_PIECES: bool;
    /// The lowest head.
    const LOWEST: Self;

    fn read(bytes: &[u8]) -> Option<(Self, &[u8])>;
    fn write(self, out: &mut Vec<u8>);
    /// The distance from `lowest` of the nearest head that is between `lowest` and `highest`.
    fn above(self, lowest: Self, highest: Self) -> u64;
}

macro_rules! head {
    ($number:ty, $length:literal, $rows:literal, $pieces:literal) => {
        impl Head for $number {
            const LENGTH: usize = $length;
            const ROWS_OF_A_PART: usize = $rows;
            const HAS_PIECES: bool = $pieces;
            const LOWEST: Self = 0;

            #[inline]
            fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
                let (head, rest) = bytes.split_first_chunk::<$length>()?;
                Some((Self::from_le_bytes(*head), rest))
            }

            fn write(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn above(self, lowest: Self, highest: Self) -> u64 {
                u64::from(self.max(lowest).min(highest).wrapping_sub(lowest))
            }
        }
    };
}

head!(u32, 4, 3, false);
head!(u64, 8, 8, true);

macro_rules! address {
    ($number:ty, $length:literal, $head:ty) => {
        impl Address for $number {
            type Head = $head;

            const LENGTH: usize = $length;
            const LOWEST: Self = 0;

            #[inline]
            fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
                let (address, rest) = bytes.split_first_chunk::<$length>()?;
                Some((Self::from_le_bytes(*address), rest))
            }

            fn write(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn next(self) -> Option<Self> {
                self.checked_add(1)
            }

            fn before(self) -> Option<Self> {
                self.checked_sub(1)
            }

            #[inline]
            #[allow(clippy::cast_possible_truncation, reason = "the upper bits are what is left")]
            fn head(self) -> $head {
                (self >> (Self::BITS - <$head>::BITS)) as $head
            }

            #[inline]
            fn with_tail(head: $head, bytes: &[u8]) -> Option<(Self, &[u8])> {
                let (tail, rest) = bytes.split_first_chunk::<{ Self::TAIL }>()?;
                let mut all = [0; <Self as Address>::LENGTH];
                let (low, high) = all.split_first_chunk_mut::<{ Self::TAIL }>()?;
                *low = *tail;
                *high.first_chunk_mut()? = head.to_le_bytes();
                Some((Self::from_le_bytes(all), rest))
            }

            fn write_tail(self, out: &mut Vec<u8>) {
                out.extend(self.to_le_bytes().into_iter().take(Self::TAIL));
            }
        }
    };
}

address!(u32, 4, u32);
address!(u128, 16, u64);

/// A range of addresses, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    V4(u32, u32),
    V6(u128, u128),
}

impl Span {
    /// The addresses from `first` to `last`. IPv4 addresses in IPv6 form (`::ffff:192.0.2.1`, `64:ff9b::192.0.2.1`) are those
    /// of IPv4.
    pub(crate) fn new(first: IpAddr, last: IpAddr) -> Result<Self, OpError> {
        // Who lists the prefix of translators as a whole means the prefix, and not all of IPv4.
        let ends = match (first.to_canonical(), last.to_canonical()) {
            (IpAddr::V6(_), IpAddr::V6(_)) => match (canonical(first), canonical(last)) {
                (IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::BROADCAST)) => (first, last),
                (IpAddr::V4(first), IpAddr::V4(last)) => (first.into(), last.into()),
                _ => (first, last),
            },
            ends => ends,
        };
        match ends {
            (IpAddr::V4(first), IpAddr::V4(last)) if first <= last => Ok(Self::V4(first.into(), last.into())),
            (IpAddr::V6(first), IpAddr::V6(last)) if first <= last => Ok(Self::V6(first.into(), last.into())),
            _ => Err(OpError::Range),
        }
    }
}
