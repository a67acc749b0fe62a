//! As much of CBOR (RFC 8949) as keys of COSE need: one map from integers to integers and byte strings.

/// The entries of a map, at most. Keys have up to five.
const MAX_ENTRIES: u64 = 16;

/// A value of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Integer(i64),
    Bytes(&'a [u8]),
}

/// The entries of a map.
pub(super) type Entries<'a> = Vec<(i64, Value<'a>)>;

/// Reads a map of definite length at the beginning of `bytes`, and returns what follows it. `None` for anything else, and for a map with a
/// key twice.
pub(super) fn read_map(bytes: &[u8]) -> Option<(Entries<'_>, &[u8])> {
    let (major, count, mut rest) = head(bytes)?;
    if major != 5 || count > MAX_ENTRIES {
        return None;
    }
    let mut entries = Entries::new();
    for _ in 0..count {
        let (key, after) = value(rest)?;
        let Value::Integer(key) = key else { return None };
        let (value, after) = value(after)?;
        if entries.iter().any(|(known, _)| *known == key) {
            return None;
        }
        entries.push((key, value));
        rest = after;
    }
    Some((entries, rest))
}

fn value(bytes: &[u8]) -> Option<(Value<'_>, &[u8])> {
    let (major, number, rest) = head(bytes)?;
    match major {
        0 => Some((Value::Integer(i64::try_from(number).ok()?), rest)),
        1 => Some((Value::Integer(-1 - i64::try_from(number).ok()?), rest)),
        2 => {
            let (bytes, rest) = rest.split_at_checked(usize::try_from(number).ok()?)?;
            Some((Value::Bytes(bytes), rest))
        }
        _ => None,
    }
}

/// The major type and the number at the beginning of an item.
fn head(bytes: &[u8]) -> Option<(u8, u64, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let (major, short) = (first >> 5, first & 0x1f);
    let length = match short {
        0..=23 => return Some((major, u64::from(short), rest)),
        24 => 1,
        25 => 2,
        26 => 4,
        27 => 8,
        _ => return None,
    };
    let (number, rest) = rest.split_at_checked(length)?;
    Some((major, number.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_read_to_its_end_and_nothing_else_is() {
        let bytes = [0xa3, 0x01, 0x02, 0x03, 0x39, 0x01, 0x00, 0x20, 0x42, 0xaa, 0xbb, 0xff];
        let entries = vec![(1, Value::Integer(2)), (3, Value::Integer(-257)), (-1, Value::Bytes(&[0xaa, 0xbb]))];
        assert_eq!(read_map(&bytes), Some((entries, [0xff].as_slice())));
        for cut in 0..bytes.len() - 1 {
            assert_eq!(read_map(&bytes[..cut]), None, "{cut}");
        }
        for bad in [
            [0x80].as_slice(),
            &[0xbf, 0xff],
            &[0xb1],
            &[0xa1, 0x41, 0x01, 0x01],
            &[0xa1, 0x01, 0x61, 0x61],
            &[0xa2, 0x01, 0x01, 0x01, 0x02],
            &[0xa1, 0x01, 0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0xa1, 0x01, 0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        ] {
            assert_eq!(read_map(bad), None, "{bad:?}");
        }
    }
}
