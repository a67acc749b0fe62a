//! What was found out about values that nearly every request brings again: the names of headers, and the values of those
//! that tell the browser and not the person.
//!
//! Only such values: whether a value was seen before shows in the time a request takes, and nobody may learn from it
//! which session, address or argument somebody else uses. What is kept depends on nothing but the bytes of the value, so
//! that it can be used by every transaction; a value is compared whole before anything of it is.

use super::scanner::close_gate;

/// How many values are kept: a place each, by a hash. A newer one takes the place.
const PLACES: usize = 256;

/// How long a value may be, in bytes.
const LENGTH: usize = 256;

/// How many pipelines of transformations are kept for a value.
const PIPELINES: usize = 16;

/// How many tests that do not match are kept for a value.
const FAILED: usize = 64;

/// The headers whose values are kept.
const HEADERS: [&[u8]; 13] = [
    b"user-agent",
    b"accept",
    b"accept-language",
    b"accept-encoding",
    b"accept-charset",
    b"host",
    b"connection",
    b"content-type",
    b"cache-control",
    b"pragma",
    b"te",
    b"dnt",
    b"upgrade-insecure-requests",
];

/// Families of such headers.
const PREFIXES: [&[u8]; 2] = [b"sec-fetch-", b"sec-ch-"];

/// Whether the values of a header are kept.
pub(super) fn is_familiar_header(name: &[u8]) -> bool {
    let prefixed = |prefix: &&[u8]| name.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix));
    HEADERS.iter().any(|header| header.eq_ignore_ascii_case(name)) || PREFIXES.iter().any(prefixed)
}

/// Where a value is kept, as long as no newer one took its place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Place {
    at: u16,
    /// Counts the values there were; 0 stands for no place.
    number: u32,
}

impl Place {
    pub(super) fn is_none(self) -> bool {
        self.number == 0
    }
}

/// All values that are kept.
#[derive(Default)]
pub(super) struct Familiar {
    values: Vec<FamiliarValue>,
    /// How many values there were.
    count: u32,
}

/// One value.
#[derive(Default)]
pub(super) struct FamiliarValue {
    number: u32,
    bytes: Vec<u8>,
    /// Whether the value was scanned.
    pub(super) scanned: bool,
    /// The gates it passes as it is, less those whose operators were found not to match, and the pipelines that may change
    /// that.
    pub(super) plain: Vec<u64>,
    pub(super) triggers: u64,
    /// For some pipelines, by number, the gates it passes afterwards.
    made: Vec<(u32, Box<[u64]>)>,
    /// Tests that do not match it, by number.
    failed: Vec<u32>,
}

impl Familiar {
    /// Finds the place of a value, or makes it one.
    pub(super) fn place(&mut self, bytes: &[u8]) -> Place {
        if bytes.is_empty() || bytes.len() > LENGTH {
            return Place::default();
        }
        if self.values.is_empty() {
            self.values.resize_with(PLACES, FamiliarValue::default);
        }
        let at = hash(bytes) % PLACES;
        let Some(value) = self.values.get_mut(at) else { return Place::default() };
        if !is_same(&value.bytes, bytes) {
            // When the count begins again, nobody remembers places of that long ago.
            self.count = self.count.checked_add(1).unwrap_or(1);
            value.number = self.count;
            value.bytes.clear();
            value.bytes.extend_from_slice(bytes);
            value.scanned = false;
            value.made.clear();
            value.failed.clear();
        }
        Place { at: u16::try_from(at).unwrap_or(0), number: value.number }
    }

    /// What is kept at a place.
    pub(super) fn get(&self, place: Place) -> Option<&FamiliarValue> {
        let value = self.values.get(usize::from(place.at))?;
        (value.number == place.number && !place.is_none()).then_some(value)
    }

    fn get_mut(&mut self, place: Place) -> Option<&mut FamiliarValue> {
        let value = self.values.get_mut(usize::from(place.at))?;
        (value.number == place.number && !place.is_none()).then_some(value)
    }

    /// Keeps what a scan found.
    pub(super) fn keep(&mut self, place: Place, plain: &[u64], triggers: u64) {
        if let Some(value) = self.get_mut(place) {
            value.scanned = true;
            value.plain.clear();
            value.plain.extend_from_slice(plain);
            value.triggers = triggers;
        }
    }

    /// The operator of a gate was run on a value, as it is, and did not match: it never does.
    pub(super) fn close(&mut self, place: Place, gate: u32) {
        let value = self.get_mut(place).filter(|value| value.scanned);
        if let Some(value) = value {
            close_gate(&mut value.plain, gate);
        }
    }

    /// A test was run on a value, with all its transformations, and did not match: it never does.
    pub(super) fn keep_failed(&mut self, place: Place, test: u32) {
        if let Some(value) = self.get_mut(place).filter(|value| value.failed.len() < FAILED) {
            value.failed.push(test);
        }
    }

    /// Keeps what a value passes after a pipeline.
    pub(super) fn keep_made(&mut self, place: Place, pipeline: u32, row: &[u64]) {
        if let Some(value) = self.get_mut(place).filter(|value| value.made.len() < PIPELINES) {
            value.made.push((pipeline, row.into()));
        }
    }
}

/// A number for bytes, eight of them at a time.
pub(super) fn hash(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let hash = words.iter().fold(bytes.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let hash = rest.iter().fold(hash, |hash, byte| mix(hash, u64::from(*byte)));
    // What was mixed last is in the upper half and, turned, in the lower.
    (hash ^ (hash >> 32)) as usize & (usize::MAX >> 1)
}

/// Whether two values are the same, eight bytes at a time: the comparison of the target's library takes them one by one.
pub(super) fn is_same(one: &[u8], other: &[u8]) -> bool {
    let ((words, rest), (other_words, other_rest)) = (one.as_chunks::<8>(), other.as_chunks::<8>());
    one.len() == other.len()
        && words.iter().zip(other_words).all(|(one, other)| u64::from_le_bytes(*one) == u64::from_le_bytes(*other))
        && rest.iter().zip(other_rest).all(|(one, other)| one == other)
}

impl FamiliarValue {
    /// What the value passes after a pipeline, if that is kept.
    pub(super) fn made(&self, pipeline: u32) -> Option<&[u64]> {
        self.made.iter().find(|made| made.0 == pipeline).map(|made| &*made.1)
    }

    /// Whether a test is known not to match the value.
    pub(super) fn fails(&self, test: u32) -> bool {
        self.failed.contains(&test)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_os = "unknown")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    #[test]
    fn keeps_what_belongs_to_the_same_bytes() {
        let mut familiar = Familiar::default();
        let place = familiar.place(b"Mozilla/5.0");
        assert!(familiar.get(place).is_some_and(|value| !value.scanned));
        familiar.keep(place, &[1, 2], 4);
        familiar.keep_made(place, 7, &[3, 2]);
        assert_eq!(familiar.place(b"Mozilla/5.0"), place);
        let value = familiar.get(place).unwrap();
        assert_eq!((&*value.plain, value.triggers, value.scanned), (&[1, 2][..], 4, true));
        assert_eq!((value.made(7), value.made(8)), (Some(&[3, 2][..]), None));
        assert!(!value.fails(5));
        familiar.keep_failed(place, 5);
        assert!(familiar.get(place).is_some_and(|value| value.fails(5) && !value.fails(6)));
    }

    #[test]
    fn a_newer_value_takes_the_place_and_nothing_else() {
        let mut familiar = Familiar::default();
        let old = familiar.place(b"Mozilla/5.0");
        familiar.keep(old, &[0b11], 4);
        familiar.keep_made(old, 7, &[3]);
        let taken = (0u32..).map(|number| familiar.place(&number.to_le_bytes())).find(|new| new.at == old.at).unwrap();
        assert!(familiar.get(old).is_none());
        // What is still found out about the old one goes nowhere.
        familiar.keep(old, &[0b10], 1);
        familiar.keep_made(old, 8, &[3]);
        familiar.close(old, 0);
        let value = familiar.get(taken).unwrap();
        assert_eq!((value.scanned, value.made(7), value.made(8)), (false, None, None));
    }

    #[test]
    fn closes_gates() {
        let mut familiar = Familiar::default();
        let place = familiar.place(b"gzip");
        familiar.close(place, 1);
        familiar.keep(place, &[0b110, 0b1], 0);
        [2, 64, 1000].into_iter().for_each(|gate| familiar.close(place, gate));
        assert_eq!(&*familiar.get(place).unwrap().plain, &[0b10, 0]);
    }

    #[test]
    fn compares_and_spreads_values_of_every_length() {
        let values: Vec<Vec<u8>> = (0..40).map(|length| vec![b'x'; length]).collect();
        for (one, at) in values.iter().zip(0..) {
            for (other, other_at) in values.iter().zip(0..) {
                assert_eq!(is_same(one, other), at == other_at);
            }
            if let Some((last, _)) = one.split_last() {
                let mut changed = one.clone();
                *changed.last_mut().unwrap() = last + 1;
                assert!(!is_same(one, &changed));
            }
        }
        let places: std::collections::HashSet<_> =
            (0u32..1000).map(|number| hash(format!("header-{number}").as_bytes()) % PLACES).collect();
        assert!(places.len() > 200, "{}", places.len());
    }

    #[test]
    fn has_no_place_for_what_is_long_or_empty() {
        let mut familiar = Familiar::default();
        assert!(familiar.place(b"").is_none());
        assert!(familiar.place(&[b'x'; LENGTH + 1]).is_none());
        assert!((1..=LENGTH).all(|length| !familiar.place(&vec![b'x'; length]).is_none()));
        assert!(familiar.get(Place::default()).is_none());
    }

    #[test]
    fn is_for_headers_that_tell_no_secret() {
        assert!(is_familiar_header(b"User-Agent") && is_familiar_header(b"Sec-CH-UA-Platform"));
        for name in ["Cookie", "Authorization", "Referer", "X-Api-Key", "X-Forwarded-For", "Sec-WebSocket-Key", ""] {
            assert!(!is_familiar_header(name.as_bytes()), "{name}");
        }
    }
}
