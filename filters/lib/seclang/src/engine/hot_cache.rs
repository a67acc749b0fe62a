//! The cross-request cache: scan results and failed tests of values that nearly every request repeats. These are names
//! of headers, values of headers that identify the browser and not the person, and the names that an application gives
//! to its arguments and cookies.
//!
//! No other value is cached: the time a request takes shows whether a value is in the cache, and no client may learn
//! from it which session, address or argument another client uses. An entry depends on nothing but the bytes of its
//! value, so that every transaction can use it. A value is compared byte by byte before its entry is used.

use std::sync::atomic::{AtomicU32, Ordering};

use super::scanner::{clear_passed, number};

/// The number of slots, one for each cached value. The cache is set-associative: a hash selects [`WAYS`] slots, and a
/// new value replaces the least recently used of them. A request brings some forty such values; with one slot for each
/// hash, two of them would often evict each other.
const SLOTS: usize = 1024;
const WAYS: usize = 4;

/// The longest value that is cached, in bytes.
const LENGTH: usize = 256;

/// The longest name of an argument or a cookie that is cached, in bytes, and the most digits it may have: with more it
/// may be a client's value and not a name.
const NAME_LENGTH: usize = 32;
const NAME_DIGITS: usize = 3;

/// How many pipelines of transformations are cached for a value.
const PIPELINES: usize = 16;

/// How many failed tests are cached for a value.
const FAILED_TESTS: usize = 64;

/// The headers whose values are cached.
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

/// Whether a name of an argument or a cookie is cached: one that the application chose, not the client.
pub(super) fn is_cacheable_name(name: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'[' | b']');
    name.len() <= NAME_LENGTH
        && name.iter().all(plain)
        && name.iter().filter(|byte| byte.is_ascii_digit()).count() <= NAME_DIGITS
}

/// How the engine treats a header, by its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum HeaderKind {
    #[default]
    Other,
    /// Its values are cached.
    Cacheable,
    /// Cacheable; it also sets the type of the body.
    ContentType,
    /// Cacheable; it also sets the name of the server.
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
            () if HEADERS.iter().any(|header| is(header)) || PREFIXES.iter().any(prefixed) => Self::Cacheable,
            () => Self::Other,
        }
    }

    /// Whether the values of the header are cached.
    pub(super) fn is_cacheable(self) -> bool {
        matches!(self, Self::Cacheable | Self::ContentType | Self::Host)
    }
}

/// The slot of a value. It is valid until a newer value replaces the value there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CacheSlot {
    at: u16,
    /// The generation of the value; 0 stands for no slot.
    generation: u32,
}

impl CacheSlot {
    pub(super) fn is_none(self) -> bool {
        self.generation == 0
    }
}

/// The cached values. A default cache has no slots and caches nothing.
#[derive(Default)]
pub(super) struct HotCache {
    values: Vec<CachedValue>,
    /// Incremented with every lookup.
    clock: u32,
}

/// The number of values cached so far in all caches of the process: a transaction may continue with another
/// [`HotCache`] than the one it had before.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The cache entry of one value.
#[derive(Default)]
pub(super) struct CachedValue {
    generation: u32,
    /// The clock at the last lookup.
    last_used: u32,
    /// Bits of its hash, compared before the bytes.
    hash_tag: u32,
    bytes: Vec<u8>,
    /// What a header of this name is.
    header: HeaderKind,
    /// Whether the value was scanned.
    pub(super) scanned: bool,
    /// The row of prefilters that the untransformed value passes, without those whose operators were run and did not
    /// match.
    pub(super) plain: Vec<u64>,
    /// The bits of the pipelines that may change that row.
    pub(super) triggers: u64,
    /// For up to [`PIPELINES`] pipelines, by number, the row of prefilters that the value passes after the pipeline.
    pipeline_rows: Vec<(u32, Box<[u64]>)>,
    /// The numbers of up to [`FAILED_TESTS`] tests that do not match it.
    failed_tests: Vec<u32>,
}

impl HotCache {
    /// A cache with [`SLOTS`] empty slots.
    pub(super) fn with_slots() -> Self {
        let mut values = Vec::new();
        values.resize_with(SLOTS, CachedValue::default);
        Self { values, clock: 0 }
    }

    /// Whether the cache has slots.
    pub(super) fn is_enabled(&self) -> bool {
        !self.values.is_empty()
    }

    /// Finds the slot of a value, or assigns one to it.
    pub(super) fn slot(&mut self, bytes: &[u8]) -> CacheSlot {
        if bytes.is_empty() || bytes.len() > LENGTH {
            return CacheSlot::default();
        }
        let hash = hash(bytes);
        let (first, hash_tag) = (hash % (SLOTS / WAYS) * WAYS, (hash >> 8) as u32);
        self.clock = self.clock.wrapping_add(1);
        let clock = self.clock;
        let Some(ways) = self.values.get_mut(first..first + WAYS) else { return CacheSlot::default() };
        let found = ways.iter().position(|value| value.hash_tag == hash_tag && is_same(&value.bytes, bytes));
        let age = |value: &CachedValue| clock.wrapping_sub(value.last_used);
        let oldest = || ways.iter().zip(0..).max_by_key(|(value, _)| age(value)).map_or(0, |(_, way)| way);
        let way = found.unwrap_or_else(oldest);
        let Some(value) = ways.get_mut(way) else { return CacheSlot::default() };
        value.last_used = clock;
        if found.is_none() {
            // After a wrap-around no transaction still holds a slot of that age. 0 stands for no slot.
            value.generation = GENERATION.fetch_add(1, Ordering::Relaxed).checked_add(1).unwrap_or(1);
            value.hash_tag = hash_tag;
            value.bytes.clear();
            value.bytes.extend_from_slice(bytes);
            value.header = HeaderKind::of(bytes);
            value.scanned = false;
            value.pipeline_rows.clear();
            value.failed_tests.clear();
        }
        CacheSlot { at: u16::try_from(first + way).unwrap_or(0), generation: value.generation }
    }

    /// The entry in a slot; `None` if another value has replaced it.
    pub(super) fn get(&self, slot: CacheSlot) -> Option<&CachedValue> {
        let value = self.values.get(usize::from(slot.at))?;
        (value.generation == slot.generation && !slot.is_none()).then_some(value)
    }

    fn get_mut(&mut self, slot: CacheSlot) -> Option<&mut CachedValue> {
        let value = self.values.get_mut(usize::from(slot.at))?;
        (value.generation == slot.generation && !slot.is_none()).then_some(value)
    }

    /// Stores the result of a scan.
    pub(super) fn store_scan(&mut self, slot: CacheSlot, plain: &[u64], triggers: u64) {
        if let Some(value) = self.get_mut(slot) {
            value.scanned = true;
            value.plain.clear();
            value.plain.extend_from_slice(plain);
            value.triggers = triggers;
        }
    }

    /// Clears a prefilter in the row of a value: its operator was run on the untransformed value and did not match, and
    /// never will.
    pub(super) fn reject(&mut self, slot: CacheSlot, prefilter: u32) {
        let value = self.get_mut(slot).filter(|value| value.scanned);
        if let Some(value) = value {
            clear_passed(&mut value.plain, prefilter);
        }
    }

    /// Stores that a test, with all its transformations, did not match the value.
    pub(super) fn cache_failed_test(&mut self, slot: CacheSlot, test: u32) {
        if let Some(value) = self.get_mut(slot).filter(|value| value.failed_tests.len() < FAILED_TESTS) {
            value.failed_tests.push(test);
        }
    }

    /// Stores the row of prefilters that a value passes after a pipeline.
    pub(super) fn cache_pipeline_row(&mut self, slot: CacheSlot, pipeline: u32, row: &[u64]) {
        if let Some(value) = self.get_mut(slot).filter(|value| value.pipeline_rows.len() < PIPELINES) {
            value.pipeline_rows.push((pipeline, row.into()));
        }
    }
}

/// A hash of bytes, eight at a time.
pub(super) fn hash(bytes: &[u8]) -> usize {
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (words, last) = words(bytes);
    let turned = |hash, word: &[u8; 8]| mix(hash, u64::from_le_bytes(*word)).rotate_left(29);
    let hash = mix(words.iter().fold(bytes.len() as u64, turned), last);
    // Multiplication carries changes to higher bits only: fold them down to the bits that select the slot.
    let hash = hash ^ hash >> 32;
    let hash = hash ^ hash >> 16;
    (hash ^ hash >> 8) as usize & (usize::MAX >> 1)
}

/// Compares eight bytes at a time: the library function of the wasm target compares single bytes.
pub(super) fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let ((one_words, one_last), (other_words, other_last)) = (words(one), words(other));
    one_last == other_last
        && one_words.iter().zip(other_words).all(|(one, other)| u64::from_le_bytes(*one) == u64::from_le_bytes(*other))
}

/// The bytes in words of eight, and the last eight bytes, which overlap these, or all bytes if there are fewer than
/// eight. With the length, the result identifies the bytes.
#[inline(always)]
fn words(bytes: &[u8]) -> (&[[u8; 8]], u64) {
    match bytes.last_chunk() {
        Some(last) => (bytes.as_chunks().0, u64::from_le_bytes(*last)),
        None => (&[], number(bytes)),
    }
}

impl CachedValue {
    /// The row of prefilters that the value passes after a pipeline, if it is cached.
    pub(super) fn pipeline_row(&self, pipeline: u32) -> Option<&[u64]> {
        self.pipeline_rows.iter().find(|cached| cached.0 == pipeline).map(|cached| &*cached.1)
    }

    /// What a header of this name is.
    pub(super) fn header(&self) -> HeaderKind {
        self.header
    }

    /// Whether a cached result says that the test does not match the value.
    pub(super) fn fails(&self, test: u32) -> bool {
        self.failed_tests.contains(&test)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_what_was_stored_for_the_same_bytes() {
        let mut hot_cache = HotCache::with_slots();
        let slot = hot_cache.slot(b"Mozilla/5.0");
        assert!(hot_cache.get(slot).is_some_and(|value| !value.scanned));
        hot_cache.store_scan(slot, &[1, 2], 4);
        hot_cache.cache_pipeline_row(slot, 7, &[3, 2]);
        assert_eq!(hot_cache.slot(b"Mozilla/5.0"), slot);
        let value = hot_cache.get(slot).unwrap();
        assert_eq!((&*value.plain, value.triggers, value.scanned), (&[1, 2][..], 4, true));
        assert_eq!((value.pipeline_row(7), value.pipeline_row(8)), (Some(&[3, 2][..]), None));
        assert!(!value.fails(5));
        hot_cache.cache_failed_test(slot, 5);
        assert!(hot_cache.get(slot).is_some_and(|value| value.fails(5) && !value.fails(6)));
    }

    #[test]
    fn a_newer_value_replaces_the_older_one() {
        let mut hot_cache = HotCache::with_slots();
        let old = hot_cache.slot(b"Mozilla/5.0");
        hot_cache.store_scan(old, &[0b11], 4);
        hot_cache.cache_pipeline_row(old, 7, &[3]);
        let taken = (0u32..).map(|number| hot_cache.slot(&number.to_le_bytes())).find(|new| new.at == old.at).unwrap();
        assert!(hot_cache.get(old).is_none());
        // Results for the old value are dropped.
        hot_cache.store_scan(old, &[0b10], 1);
        hot_cache.cache_pipeline_row(old, 8, &[3]);
        hot_cache.reject(old, 0);
        let value = hot_cache.get(taken).unwrap();
        assert_eq!((value.scanned, value.pipeline_row(7), value.pipeline_row(8)), (false, None, None));
    }

    #[test]
    fn a_slot_of_one_cache_is_not_valid_in_another() {
        let (mut one, mut other) = (HotCache::with_slots(), HotCache::with_slots());
        let slot = one.slot(b"gzip");
        one.store_scan(slot, &[1], 0);
        for number in 0u32..1000 {
            other.slot(&number.to_le_bytes());
        }
        assert!(other.get(slot).is_none());
        // A cache without slots assigns none and finds nothing.
        let mut none = HotCache::default();
        assert!(none.slot(b"gzip").is_none() && none.get(slot).is_none() && !none.is_enabled());
    }

    #[test]
    fn clears_rejected_prefilters() {
        let mut hot_cache = HotCache::with_slots();
        let slot = hot_cache.slot(b"gzip");
        hot_cache.reject(slot, 1);
        hot_cache.store_scan(slot, &[0b110, 0b1], 0);
        [2, 64, 1000].into_iter().for_each(|prefilter| hot_cache.reject(slot, prefilter));
        assert_eq!(&*hot_cache.get(slot).unwrap().plain, &[0b10, 0]);
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
        let slots: std::collections::HashSet<_> =
            (0u32..1000).map(|number| hash(format!("header-{number}").as_bytes()) % 256).collect();
        assert!(slots.len() > 200, "{}", slots.len());
    }

    #[test]
    fn recently_used_values_stay() {
        let mut hot_cache = HotCache::with_slots();
        let usual: Vec<String> = (0..60).map(|number| format!("accept-{number}")).collect();
        let slots: Vec<CacheSlot> = usual.iter().map(|value| hot_cache.slot(value.as_bytes())).collect();
        // A value that occurs once does not replace those that occur in every request.
        for number in 0u32..1000 {
            hot_cache.slot(&number.to_le_bytes());
            let again: Vec<CacheSlot> = usual.iter().map(|value| hot_cache.slot(value.as_bytes())).collect();
            assert_eq!(again, slots);
        }
    }

    #[test]
    fn long_and_empty_values_get_no_slot() {
        let mut hot_cache = HotCache::with_slots();
        assert!(hot_cache.slot(b"").is_none());
        assert!(hot_cache.slot(&[b'x'; LENGTH + 1]).is_none());
        assert!((1..=LENGTH).all(|length| !hot_cache.slot(&vec![b'x'; length]).is_none()));
        assert!(hot_cache.get(CacheSlot::default()).is_none());
    }

    #[test]
    fn headers_with_secrets_are_not_cacheable() {
        for name in ["User-Agent", "Sec-CH-UA-Platform", "sec-fetch-mode", "Host", "content-type"] {
            assert!(HeaderKind::of(name.as_bytes()).is_cacheable(), "{name}");
        }
        for name in ["Cookie", "Authorization", "Referer", "X-Api-Key", "X-Forwarded-For", "Sec-WebSocket-Key", ""] {
            assert!(!HeaderKind::of(name.as_bytes()).is_cacheable(), "{name}");
        }
        let mut hot_cache = HotCache::with_slots();
        let slot = hot_cache.slot(b"COOKIE");
        assert_eq!(hot_cache.get(slot).unwrap().header(), HeaderKind::Cookie);
    }

    #[test]
    fn only_names_of_applications_are_cacheable() {
        for name in ["page", "items[12].id", "utf8", "_session-id", "A.b"] {
            assert!(is_cacheable_name(name.as_bytes()), "{name}");
        }
        for name in ["jane@example.com", "a b", "5f2d8a90c4e14b7f", "q'", "n\u{e9}", &"x".repeat(NAME_LENGTH + 1)] {
            assert!(!is_cacheable_name(name.as_bytes()), "{name}");
        }
    }
}
