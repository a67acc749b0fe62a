//! What values at an input look like: the kinds of bytes in them and their lengths. Of the values themselves nothing is in it.

use super::callers::last_in_turn;
use super::messages::ValueShape;

/// The longest value whose shape is told, in bytes; longer ones count as one byte more.
pub(crate) const MAX_VALUE: usize = 256;

/// The kinds of bytes that occur: lower case, upper case, digits, what is not ASCII, controls, and each other character of ASCII by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Alphabet(u64);

/// The bits that stand for something.
#[cfg(any(test, feature = "control"))]
const KINDS: u32 = 38;

impl Alphabet {
    /// That of a value.
    pub(crate) fn of(value: &[u8]) -> Self {
        Self(value.iter().fold(0, |bits, byte| bits | 1 << kind(*byte)))
    }

    /// That of a report, of which bits that stand for nothing are left out.
    #[cfg(feature = "control")]
    pub(crate) fn read(bits: u64) -> Self {
        Self(bits & ((1 << KINDS) - 1))
    }

    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// Whether the kind of a byte is among them.
    #[cfg(feature = "control")]
    pub(crate) fn holds(self, byte: u8) -> bool {
        self.0 & 1 << kind(byte) != 0
    }
}

/// The bit of a byte, below 38.
fn kind(byte: u8) -> u32 {
    let from = |bit: u32, first: u8| bit + u32::from(byte.saturating_sub(first));
    match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        0x80.. => 3,
        b' '..=b'/' => from(5, b' '),
        b':'..=b'@' => from(21, b':'),
        b'['..=b'`' => from(28, b'['),
        b'{'..=b'~' => from(34, b'{'),
        _ => 4,
    }
}

impl ValueShape {
    /// That of one value of a caller.
    pub(crate) fn of(caller: u64, value: &[u8]) -> Self {
        let start = value.get(..MAX_VALUE).unwrap_or(value);
        let length = u32::try_from(value.len().min(MAX_VALUE + 1)).unwrap_or(u32::MAX);
        Self { caller, alphabet: Alphabet::of(start).bits(), shortest: length, longest: length }
    }
}

/// Adds the shape of a value to those of callers, which are in the order of their numbers and `most` at most: beyond that, networks take turns,
/// see [`last_in_turn`].
pub(crate) fn add(shapes: &mut Vec<ValueShape>, one: ValueShape, most: usize) {
    match shapes.binary_search_by_key(&one.caller, |known| known.caller) {
        Ok(place) => {
            if let Some(known) = shapes.get_mut(place) {
                known.alphabet |= one.alphabet;
                known.shortest = known.shortest.min(one.shortest);
                known.longest = known.longest.max(one.longest);
            }
        }
        Err(place) => {
            shapes.insert(place, one);
            if shapes.len() > most
                && let Some(last) = last_in_turn(shapes.iter().map(|known| known.caller))
            {
                shapes.remove(last);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_a_kind() {
        let kinds: std::collections::BTreeSet<u32> = (0..=u8::MAX).map(kind).collect();
        assert!(kinds.into_iter().eq(0..KINDS));
        let punctuation = (0..=0x7f_u8).filter(|byte| byte.is_ascii_punctuation() || *byte == b' ');
        assert!(punctuation.map(kind).eq(5..KINDS), "each has its own");
    }

    #[test]
    fn shapes_of_callers_are_merged_and_bounded() {
        let mut shapes = Vec::new();
        for (caller, value) in [(7, "abc"), (3, "A-1"), (7, "+"), (9, "y"), (1, "x")] {
            add(&mut shapes, ValueShape::of(caller, value.as_bytes()), 3);
        }
        let of = |caller: u64| shapes.iter().find(|one| one.caller == caller).copied();
        assert!(shapes.iter().map(|one| one.caller).eq([1, 3, 7]));
        let merged = of(7).unwrap();
        assert_eq!((merged.alphabet, merged.shortest, merged.longest), (Alphabet::of(b"a+").bits(), 1, 3));
        assert_eq!(ValueShape::of(1, &[b'a'; 10_000]).longest, 257);
    }
}
