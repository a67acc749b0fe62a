//! Sets of addresses as bytes, to be kept: a range takes two numbers, its distance from the one before and its length.
//!
//! Numbers are in groups of seven bits, the lowest first; all groups but the last have their top bit set. A list of a million
//! single addresses takes about three megabytes.

use std::fmt;

use super::addresses::AddressSet;

/// Bytes that are no set of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotASet;

impl fmt::Display for NotASet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes are no set of addresses")
    }
}

impl std::error::Error for NotASet {}

impl AddressSet {
    /// The set as bytes. Equal sets give equal bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for ranges in [&self.v4, &self.v6] {
            put(&mut bytes, ranges.len() as u128);
            let mut from = 0;
            for (first, last) in ranges {
                put(&mut bytes, first - from);
                put(&mut bytes, last - first);
                from = *last;
            }
        }
        bytes
    }

    /// The set of [`AddressSet::to_bytes`].
    ///
    /// # Errors
    ///
    /// [`NotASet`] for bytes that no set gives.
    pub fn from_bytes(mut bytes: &[u8]) -> Result<AddressSet, NotASet> {
        let v4 = family(&mut bytes, u32::MAX.into())?;
        let v6 = family(&mut bytes, u128::MAX)?;
        if bytes.is_empty() { Ok(AddressSet { v4, v6 }) } else { Err(NotASet) }
    }
}

/// The ranges of one family, whose largest address is given.
fn family(bytes: &mut &[u8], largest: u128) -> Result<Vec<(u128, u128)>, NotASet> {
    let count = usize::try_from(take(bytes)?).map_err(|_| NotASet)?;
    // Each takes two bytes at least, so that a wrong count reserves no memory.
    if count > bytes.len() / 2 {
        return Err(NotASet);
    }
    let mut ranges: Vec<(u128, u128)> = Vec::with_capacity(count);
    for _ in 0..count {
        let (distance, length) = (take(bytes)?, take(bytes)?);
        let first = match ranges.last() {
            // Ranges neither overlap nor touch.
            Some((_, end)) => end.checked_add(distance).filter(|_| distance > 1),
            None => Some(distance),
        };
        let range = first.and_then(|first| Some((first, first.checked_add(length)?)));
        ranges.push(range.filter(|(_, last)| *last <= largest).ok_or(NotASet)?);
    }
    Ok(ranges)
}

fn put(bytes: &mut Vec<u8>, mut number: u128) {
    loop {
        let group = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            bytes.push(group);
            return;
        }
        bytes.push(group | 0x80);
    }
}

fn take(bytes: &mut &[u8]) -> Result<u128, NotASet> {
    let mut number = 0_u128;
    for shift in (0..128).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(NotASet)?;
        *bytes = rest;
        let group = u128::from(byte & 0x7f);
        let shifted = group << shift;
        if shifted >> shift != group {
            return Err(NotASet);
        }
        number |= shifted;
        if byte & 0x80 == 0 {
            // One number has one form.
            return if *byte == 0 && shift > 0 { Err(NotASet) } else { Ok(number) };
        }
    }
    Err(NotASet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, parse};

    fn set(list: &str) -> AddressSet {
        parse(&Format::CidrLines, list.as_bytes(), 1000).unwrap().addresses
    }

    #[test]
    fn a_set_comes_back_from_its_bytes() {
        let lists = [
            "1.2.3.4",
            "1.2.3.4\n1.2.3.6-1.2.4.9\n223.255.255.255",
            "2001:db8::/32",
            "1.0.0.0/8\n2001:db8::1\n2001:db8::3\n3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        ];
        for list in lists {
            let set = set(list);
            assert_eq!(AddressSet::from_bytes(&set.to_bytes()), Ok(set), "{list}");
        }
        let widest = AddressSet { v4: vec![(0, u32::MAX.into())], v6: vec![(0, u128::MAX)] };
        assert_eq!(AddressSet::from_bytes(&widest.to_bytes()), Ok(widest));
        assert_eq!(AddressSet::from_bytes(&AddressSet::default().to_bytes()), Ok(AddressSet::default()));
        assert_eq!(set("1.2.3.4\n1.2.3.6").to_bytes().len(), 9);
    }

    #[test]
    fn other_bytes_are_refused() {
        let bytes = set("1.2.3.4\n1.2.3.6-1.2.4.9\n2001:db8::/32").to_bytes();
        for end in 0..bytes.len() {
            assert!(AddressSet::from_bytes(&bytes[..end]).is_err(), "cut at {end}");
        }
        assert!(AddressSet::from_bytes(&[&bytes[..], &[0]].concat()).is_err(), "one byte more");
        // A range that touches the one before, one beyond IPv4, a count that is too large, a number in a longer form.
        for wrong in
            [&[2, 1, 0, 1, 0, 0][..], &[1, 0x80, 0x80, 0x80, 0x80, 0x10, 0, 0], &[0xff, 0xff, 3], &[0x80, 0, 0]]
        {
            assert!(AddressSet::from_bytes(wrong).is_err(), "{wrong:?}");
        }
        let mut seed = 7_u32;
        for _ in 0..20_000 {
            let noise: Vec<u8> = (0..12)
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (seed >> 24) as u8 & 0x8f
                })
                .collect();
            if let Ok(set) = AddressSet::from_bytes(&noise) {
                assert_eq!(set.to_bytes(), noise);
            }
        }
    }
}
