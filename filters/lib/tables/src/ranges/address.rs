//! Addresses of both families as numbers.

use std::net::IpAddr;

use crate::OpError;

/// An IPv4 address (`u32`) or an IPv6 address (`u128`).
pub(crate) trait Address: Copy + Ord + std::fmt::Debug {
    /// How many bytes it takes.
    const LENGTH: usize;
    /// The lowest address.
    const LOWEST: Self;

    fn read(bytes: &[u8]) -> Option<(Self, &[u8])>;
    fn write(self, out: &mut Vec<u8>);
    fn next(self) -> Option<Self>;
    fn before(self) -> Option<Self>;
    /// How many bits the distance from `lowest`, which is no higher, takes.
    fn bits_above(self, lowest: Self) -> u32;
    /// That distance without so many of its low bits; `usize::MAX` if it does not fit.
    fn steps_above(self, lowest: Self, shift: u32) -> usize;
}

macro_rules! address {
    ($number:ty, $length:literal) => {
        impl Address for $number {
            const LENGTH: usize = $length;
            const LOWEST: Self = 0;

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

            fn bits_above(self, lowest: Self) -> u32 {
                Self::BITS - self.wrapping_sub(lowest).leading_zeros()
            }

            fn steps_above(self, lowest: Self, shift: u32) -> usize {
                let steps = self.wrapping_sub(lowest).checked_shr(shift).unwrap_or(0);
                usize::try_from(steps).unwrap_or(usize::MAX)
            }
        }
    };
}

address!(u32, 4);
address!(u128, 16);

/// A range of addresses, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    V4(u32, u32),
    V6(u128, u128),
}

impl Span {
    /// The addresses from `first` to `last`. IPv4 addresses in IPv6 form (`::ffff:192.0.2.1`) are those of IPv4.
    pub(crate) fn new(first: IpAddr, last: IpAddr) -> Result<Self, OpError> {
        match (first.to_canonical(), last.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(last)) if first <= last => Ok(Self::V4(first.into(), last.into())),
            (IpAddr::V6(first), IpAddr::V6(last)) if first <= last => Ok(Self::V6(first.into(), last.into())),
            _ => Err(OpError::Range),
        }
    }
}
