//! What was found out about values that nearly every request brings again: the names of headers, the values of those
//! that tell the browser and not the person, and the names that an application gives to its arguments and cookies.
//!
//! Only such values: whether a value was seen before shows in the time a request takes, and nobody may learn from it
//! which session, address or argument somebody else uses. What is kept depends on nothing but the bytes of the value, so
//! that it can be used by every transaction; a value is compared whole before anything of it is.

use std::sync::atomic::{AtomicU32, Ordering};

use super::scanner::{close_gate, number};

/// How many values are kept: a place each, one of several that go by a hash. A newer one takes the place of the one of
/// them that was asked for least recently. A request brings some forty such values: were there one place for a hash, two
/// of them would often share it and be found out anew each time.
const PLACES: usize = 1024;
const WAYS: usize = 4;

/// How long a value may be, in bytes.
const LENGTH: usize = 256;

/// How long a name of an argument or a cookie may be that is kept, in bytes, and how many digits it may have: with more
/// it may be no name but somebody's value.
const NAME_LENGTH: usize = 32;
const NAME_DIGITS: usize = 3;

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

/// Whether a name of an argument or a cookie is kept: one that an application chose.
pub(super) fn is_familiar_name(name: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'[' | b']');
    name.len() <= NAME_LENGTH
        && name.iter().all(plain)
        && name.iter().filter(|byte| byte.is_ascii_digit()).count() <= NAME_DIGITS
}

/// What a header is to the engine, by its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum HeaderKind {
    #[default]
    Other,
    /// One whose values are kept.
    Familiar,
    /// The same, and the type of the body.
    ContentType,
    /// The same, and the name of the server.
    Host,
    Cookie,
    Authorization,
}

impl HeaderKind {
    pub(super) fn of(name: &[u8]) -> Self {
        let is = |other: &[u8]| other.eq_ignore_ascii_case(name);
        let prefixed = |prefix: &&[u8]| name.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix));
        match () {
            () if is(b"cookie") => Self::Cookie,
            () if is(b"authorization") => Self::Authorization,
            () if is(b"host") => Self::Host,
            () if is(b"content-type") => Self::ContentType,
            () if HEADERS.iter().any(|header| is(header)) || PREFIXES.iter().any(prefixed) => Self::Familiar,
            () => Self::Other,
        }
    }

    /// Whether the values of the header are kept.
    pub(super) fn is_familiar(self) -> bool {
        matches!(self, Self::Familiar | Self::ContentType | Self::Host)
    }
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

/// All values that are kept; without any places, none is.
#[derive(Default)]
pub(super) struct Familiar {
    values: Vec<FamiliarValue>,
    /// Counts how often a value was asked for.
    clock: u32,
}

/// Counts the values there were, wherever they are kept: a transaction that was lent one [`Familiar`] may go on with
/// another one.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// One value.
#[derive(Default)]
pub(super) struct FamiliarValue {
    number: u32,
    /// When it was last asked for.
    asked: u32,
    /// Part of its hash.
    mark: u32,
    bytes: Vec<u8>,
    /// What a header of this name is.
    header: HeaderKind,
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
    /// With a place for each of [`PLACES`] values.
    pub(super) fn with_places() -> Self {
        let mut values = Vec::new();
        values.resize_with(PLACES, FamiliarValue::default);
        Self { values, clock: 0 }
    }

    /// Whether values are kept here.
    pub(super) fn keeps(&self) -> bool {
        !self.values.is_empty()
    }

    /// Finds the place of a value, or makes it one.
    pub(super) fn place(&mut self, bytes: &[u8]) -> Place {
        if bytes.is_empty() || bytes.len() > LENGTH {
            return Place::default();
        }
        let hash = hash(bytes);
        let (first, mark) = (hash % (PLACES / WAYS) * WAYS, (hash >> 8) as u32);
        self.clock = self.clock.wrapping_add(1);
        let clock = self.clock;
        let Some(ways) = self.values.get_mut(first..first + WAYS) else { return Place::default() };
        let found = ways.iter().position(|value| value.mark == mark && is_same(&value.bytes, bytes));
        let age = |value: &FamiliarValue| clock.wrapping_sub(value.asked);
        let oldest = || ways.iter().zip(0..).max_by_key(|(value, _)| age(value)).map_or(0, |(_, way)| way);
        let way = found.unwrap_or_else(oldest);
        let Some(value) = ways.get_mut(way) else { return Place::default() };
        value.asked = clock;
        if found.is_none() {
            // When the count begins again, nobody remembers places of that long ago. 0 stands for no place.
            value.number = NUMBER.fetch_add(1, Ordering::Relaxed).checked_add(1).unwrap_or(1);
            value.mark = mark;
            value.bytes.clear();
            value.bytes.extend_from_slice(bytes);
            value.header = HeaderKind::of(bytes);
            value.scanned = false;
            value.made.clear();
            value.failed.clear();
        }
        Place { at: u16::try_from(first + way).unwrap_or(0), number: value.number }
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
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (words, last) = words(bytes);
    let turned = |hash, word: &[u8; 8]| mix(hash, u64::from_le_bytes(*word)).rotate_left(29);
    let hash = mix(words.iter().fold(bytes.len() as u64, turned), last);
    // A bit changes those above it: what the last bytes change is brought down to where places are told apart.
    let hash = hash ^ hash >> 32;
    let hash = hash ^ hash >> 16;
    (hash ^ hash >> 8) as usize & (usize::MAX >> 1)
}

/// Whether two values are the same, eight bytes at a time: the comparison of the target's library takes them one by one.
pub(super) fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let ((one_words, one_last), (other_words, other_last)) = (words(one), words(other));
    one_last == other_last
        && one_words.iter().zip(other_words).all(|(one, other)| u64::from_le_bytes(*one) == u64::from_le_bytes(*other))
}

/// Bytes in words of eight, and the last eight of them, which overlap these, or all where there are fewer: with the
/// length they tell what the bytes are.
#[inline(always)]
fn words(bytes: &[u8]) -> (&[[u8; 8]], u64) {
    match bytes.last_chunk() {
        Some(last) => (bytes.as_chunks().0, u64::from_le_bytes(*last)),
        None => (&[], number(bytes)),
    }
}

impl FamiliarValue {
    /// What the value passes after a pipeline, if that is kept.
    pub(super) fn made(&self, pipeline: u32) -> Option<&[u64]> {
        self.made.iter().find(|made| made.0 == pipeline).map(|made| &*made.1)
    }

    /// What a header of this name is.
    pub(super) fn header(&self) -> HeaderKind {
        self.header
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
        let mut familiar = Familiar::with_places();
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
        let mut familiar = Familiar::with_places();
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
    fn what_another_one_keeps_is_not_taken_for_ones_own() {
        let (mut one, mut other) = (Familiar::with_places(), Familiar::with_places());
        let place = one.place(b"gzip");
        one.keep(place, &[1], 0);
        for number in 0u32..1000 {
            other.place(&number.to_le_bytes());
        }
        assert!(other.get(place).is_none());
        // Without any there is no place, and nothing is found.
        let mut none = Familiar::default();
        assert!(none.place(b"gzip").is_none() && none.get(place).is_none() && !none.keeps());
    }

    #[test]
    fn closes_gates() {
        let mut familiar = Familiar::with_places();
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
            (0u32..1000).map(|number| hash(format!("header-{number}").as_bytes()) % 256).collect();
        assert!(places.len() > 200, "{}", places.len());
    }

    #[test]
    fn values_that_are_asked_for_stay() {
        let mut familiar = Familiar::with_places();
        let usual: Vec<String> = (0..60).map(|number| format!("accept-{number}")).collect();
        let places: Vec<Place> = usual.iter().map(|value| familiar.place(value.as_bytes())).collect();
        // What comes once does not take the place of what comes with every request.
        for number in 0u32..1000 {
            familiar.place(&number.to_le_bytes());
            let again: Vec<Place> = usual.iter().map(|value| familiar.place(value.as_bytes())).collect();
            assert_eq!(again, places);
        }
    }

    #[test]
    fn has_no_place_for_what_is_long_or_empty() {
        let mut familiar = Familiar::with_places();
        assert!(familiar.place(b"").is_none());
        assert!(familiar.place(&[b'x'; LENGTH + 1]).is_none());
        assert!((1..=LENGTH).all(|length| !familiar.place(&vec![b'x'; length]).is_none()));
        assert!(familiar.get(Place::default()).is_none());
    }

    #[test]
    fn is_for_headers_that_tell_no_secret() {
        for name in ["User-Agent", "Sec-CH-UA-Platform", "sec-fetch-mode", "Host", "content-type"] {
            assert!(HeaderKind::of(name.as_bytes()).is_familiar(), "{name}");
        }
        for name in ["Cookie", "Authorization", "Referer", "X-Api-Key", "X-Forwarded-For", "Sec-WebSocket-Key", ""] {
            assert!(!HeaderKind::of(name.as_bytes()).is_familiar(), "{name}");
        }
        let mut familiar = Familiar::with_places();
        let place = familiar.place(b"COOKIE");
        assert_eq!(familiar.get(place).unwrap().header(), HeaderKind::Cookie);
    }

    #[test]
    fn is_for_names_of_applications() {
        for name in ["page", "items[12].id", "utf8", "_session-id", "A.b"] {
            assert!(is_familiar_name(name.as_bytes()), "{name}");
        }
        for name in ["jane@example.com", "a b", "5f2d8a90c4e14b7f", "q'", "n\u{e9}", &"x".repeat(NAME_LENGTH + 1)] {
            assert!(!is_familiar_name(name.as_bytes()), "{name}");
        }
    }
}
