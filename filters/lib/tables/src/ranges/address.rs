//! Addresses of both families as numbers.

use std::net::IpAddr;

use crate::OpError;

/// An IPv4 address (`u32`) or an IPv6 address (`u128`).
pub(crate) trait Address: Copy + Ord + std::fmt::Debug {
    /// The bytes of one address, little endian.
    type Bytes: Copy;
    /// Their number.
    const LENGTH: usize;
    /// The lowest address.
    const LOWEST: Self;

    /// A column of a base as addresses, where it lies.
    fn column(bytes: &[u8]) -> &[Self::Bytes];
    fn of(bytes: Self::Bytes) -> Self;
    fn read(bytes: &[u8]) -> Option<(Self, &[u8])>;
    fn write(self, out: &mut Vec<u8>);
    fn next(self) -> Option<Self>;
    fn before(self) -> Option<Self>;
}

macro_rules! address {
    ($number:ty, $length:literal) => {
        impl Address for $number {
            type Bytes = [u8; $length];
            const LENGTH: usize = $length;
            const LOWEST: Self = 0;

            fn column(bytes: &[u8]) -> &[Self::Bytes] {
                bytes.as_chunks::<$length>().0
            }

            fn of(bytes: Self::Bytes) -> Self {
                Self::from_le_bytes(bytes)
            }

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
