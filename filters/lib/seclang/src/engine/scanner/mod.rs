//! The prefilter scan: one pass over a value finds the prefilters that it passes.
//!
//! For each byte of a value the scan looks up the sets of bytes that hold it, and the transformations that it triggers.
//! A position at which a literal of a prefilter may occur passes a filter ([`filter`]) and is compared ([`table`]). The
//! scan takes time linear in the value: if many literals share a position, a few are compared, and the others pass
//! without.

mod build;
mod filter;
mod table;
#[cfg(test)]
mod tests;

pub(super) use filter::number;
use filter::within;
use filter::{Filter, Hit, Marks, Search};
use table::{FOLD, Table, slice};

use crate::operator::ByteSet;

/// The most literals of all prefilters together; operators beyond are always run.
pub(super) const LITERALS: usize = 65_536;

/// The most sets of bytes that are looked up during the scan; further sets are tested one by one.
const SETS: usize = 256;

/// One bit for each set of bytes.
type Bits = [u64; SETS / 64];

/// The length from which a value is scanned as a long one, in bytes: the setup is then small in comparison.
pub(super) const LONG: usize = 8 * 1024;

/// The length from which the scan first finds the distinct bytes of a value: looking up each of the 256 takes as long.
const MANY: usize = 256;

/// The length from which minimal lengths are tested prefilter by prefilter.
const LENGTHS: usize = 64;

/// The prefilters of an engine, combined for one scan. A row has a bit for each prefilter, by its number.
pub(super) struct Scanner {
    /// The number of words of a row.
    words: usize,
    set_count: usize,
    /// The candidates that no byte or literal selects: only their conditions are tested.
    base: Box<[u64]>,
    /// The class of each byte.
    classes: Box<[Class; 256]>,
    /// The pipelines that every value triggers.
    always: u64,
    /// The pipelines that a value triggers if a space in it is not between two ordinary bytes.
    spacing: u64,
    /// For each set of bytes the start of its range in `set_prefilters`, and the end of the last one: the prefilters
    /// that become candidates if a byte of the set occurs. Prefilters in the words of [`Class`] are left out.
    set_starts: Box<[u32]>,
    set_prefilters: Box<[u32]>,
    /// The sets with such a range.
    candidate_sets: Bits,
    filter: Filter,
    marks: Marks,
    /// The literals, by pieces of two to six bytes.
    tables: [Table; 5],
    /// For each length below [`LENGTHS`], and for all others, the row of prefilters whose minimal length it reaches.
    /// Minimal lengths from [`LENGTHS`] on are conditions.
    long_enough: Box<[u64]>,
    /// For each prefilter the sets of which a byte has to occur, besides being a candidate.
    required: Box<[Bits]>,
    /// The prefilters with such sets.
    with_required: Box<[u64]>,
    /// For each prefilter the conditions that are tested one by one.
    conditions: Vec<Condition>,
    /// The prefilters with such conditions.
    conditional: Box<[u64]>,
}

/// What the scan looks up for a byte: a bit for each set of bytes that holds it, a bit for each pipeline of
/// transformations that it triggers, whether it is a space, and a bit for each of the first prefilters that becomes a
/// candidate.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Class([u64; SETS / 64 + 2 + CLASS_WORDS]);

/// The words of a row that [`Class`] has.
const CLASS_WORDS: usize = 2;

impl Class {
    fn new(sets: Bits, triggers: u64, space: u64, candidates: [u64; CLASS_WORDS]) -> Self {
        let [a, b, c, d] = sets;
        let [first, second] = candidates;
        Self([a, b, c, d, triggers, space, first, second])
    }

    /// The sets, the triggers, whether there is a space, and the candidates.
    fn parts(&self) -> (Bits, u64, bool, [u64; CLASS_WORDS]) {
        let [a, b, c, d, triggers, space, first, second] = self.0;
        ([a, b, c, d], triggers, space != 0, [first, second])
    }

    fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(all, more)| *all |= more);
    }
}

#[derive(Default)]
struct Condition {
    min_length: usize,
    /// Sets without a bit, of each of which a byte has to occur.
    more: Box<[ByteSet]>,
}

impl Condition {
    /// Whether there is a condition besides a short minimal length and sets with a bit.
    fn is_needed(&self) -> bool {
        self.min_length >= LENGTHS || !self.more.is_empty()
    }

    fn passes(&self, value: &[u8], present: &mut Option<ByteSet>) -> bool {
        value.len() >= self.min_length
            && (self.more.is_empty() || {
                let present = present.get_or_insert_with(|| ByteSet::of_bytes(value));
                self.more.iter().all(|set| set.intersects(present))
            })
    }
}

impl Scanner {
    /// Sets the bytes that trigger each pipeline of transformations; `None` for one that every value triggers.
    pub(super) fn set_triggers<'p>(&mut self, pipelines: impl Iterator<Item = (&'p Option<ByteSet>, bool)>) {
        for ((triggers, minds_spacing), at) in pipelines.zip(0..) {
            let bit = trigger_bit(at);
            self.spacing |= if minds_spacing { bit } else { 0 };
            match triggers {
                None => self.always |= bit,
                Some(triggers) => {
                    let classes = self.classes.iter_mut().zip(0u8..=255).filter(|(_, byte)| triggers.contains(*byte));
                    classes.for_each(|(class, _)| class.add(&Class::new(Bits::default(), bit, 0, Default::default())));
                }
            }
        }
    }

    /// The number of sets of bytes in all prefilters.
    pub(super) fn sets(&self) -> usize {
        self.set_count
    }

    /// The number of words of a row.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// Writes the prefilters that a value passes to `row`, of [`Scanner::words`] words. Returns the bits of the
    /// pipelines of transformations that may change the value ([`trigger_bit`]), and the number of positions and
    /// literals that were looked at.
    pub(super) fn scan(&self, value: &[u8], row: &mut [u64]) -> (u64, usize) {
        self.scan_within(value, row, usize::MAX)
    }

    /// The same; of a value of [`LONG`] bytes and more it ends early, with too few bits, after more than `allowed` positions
    /// and literals.
    #[inline(never)]
    pub(super) fn scan_within(&self, value: &[u8], row: &mut [u64], allowed: usize) -> (u64, usize) {
        row.copy_from_slice(&self.base);
        let long = value.len() >= LONG;
        let (class, triggers) = self.class(value);
        let (sets, _, _, candidates) = class.parts();
        let mut steps = 0;
        if long {
            self.find_in_long(value, row, allowed, &mut steps);
        } else {
            let mut search = Search::new(value);
            while let Some(hits) = search.next(&self.filter, &self.marks) {
                for hit in hits {
                    steps += 1;
                    if let Some((table, piece)) = self.piece(hit, value) {
                        table.find(piece, value, hit.at, row, &mut steps);
                    }
                }
            }
        }
        row.iter_mut().zip(candidates).for_each(|(word, candidates)| *word |= candidates);
        for (number, (there, candidate_sets)) in sets.iter().zip(&self.candidate_sets).enumerate() {
            let mut left = there & candidate_sets;
            while left != 0 {
                let set = number * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                let (Some(&start), Some(&end)) = (self.set_starts.get(set), self.set_starts.get(set + 1)) else {
                    break;
                };
                slice(&self.set_prefilters, (start, end)).iter().for_each(|prefilter| {
                    set_passed(row, *prefilter);
                });
            }
        }
        let length = value.len().min(LENGTHS - 1) * self.words;
        let long_enough = self.long_enough.get(length..).unwrap_or_default();
        row.iter_mut().zip(long_enough).for_each(|(word, long_enough)| *word &= long_enough);
        retain_passed(row, &self.with_required, |prefilter| {
            let required = self.required.get(prefilter).unwrap_or(&sets);
            required.iter().zip(&sets).fold(0, |missing, (required, there)| missing | required & !there) == 0
        });
        let mut present = None;
        retain_passed(row, &self.conditional, |prefilter| {
            self.conditions.get(prefilter).is_none_or(|condition| condition.passes(value, &mut present))
        });
        (triggers, steps)
    }

    /// The bits of the pipelines of transformations that may change a value.
    pub(super) fn triggers(&self, value: &[u8]) -> u64 {
        self.class(value).1
    }

    /// The united class of the bytes of a value, and the pipelines that may change it.
    #[inline(always)]
    fn class(&self, value: &[u8]) -> (Class, u64) {
        let class = if value.len() >= MANY { self.class_of_long(value) } else { self.class_of(value) };
        let (_, triggers, has_space, _) = class.parts();
        let spacing = if has_space && minds_spacing(value) { self.spacing } else { 0 };
        (class, self.always | triggers | spacing)
    }

    /// The united class of the bytes of a value.
    fn class_of(&self, value: &[u8]) -> Class {
        let mut all = Class::default();
        for byte in value {
            if let Some(class) = self.classes.get(usize::from(*byte)) {
                all.add(class);
            }
        }
        all
    }

    /// The same for a long value, in which bytes repeat.
    #[inline(never)]
    fn class_of_long(&self, value: &[u8]) -> Class {
        let mut seen = [false; 256];
        for byte in value {
            if let Some(seen) = seen.get_mut(usize::from(*byte)) {
                *seen = true;
            }
        }
        let mut all = Class::default();
        self.classes.iter().zip(seen).filter(|(_, seen)| *seen).for_each(|(class, _)| all.add(class));
        all
    }

    /// Finds the literals in a long value, which repeats itself: a literal that was found is not searched again.
    #[inline(never)]
    fn find_in_long(&self, value: &[u8], row: &mut [u64], allowed: usize, steps: &mut usize) {
        let mut filter = self.filter.clone();
        let mut search = Search::new(value);
        // The pieces whose literals were all found, in no order.
        let mut done = [u64::MAX; 256];
        while let Some(hits) = search.next(&filter, &self.marks).filter(|_| *steps <= allowed) {
            for hit in hits {
                *steps += 1;
                let Some((table, piece)) = self.piece(hit, value) else { continue };
                // No piece fills the highest byte.
                let key = piece | (hit.length as u64) << 56;
                let Some(known) = done.get_mut((key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize) else {
                    continue;
                };
                if *known == key || !table.find(piece, value, hit.at, row, steps) {
                    continue;
                }
                match hit.length {
                    2 => filter.clear(piece),
                    _ => *known = key,
                }
            }
        }
    }

    /// The piece at a position, and its table; `None` if the value is too short.
    #[inline(always)]
    fn piece(&self, hit: Hit, value: &[u8]) -> Option<(&Table, u64)> {
        let rest = value.get(hit.at..).filter(|rest| rest.len() >= hit.length)?;
        let piece = within(number(rest), hit.length) & FOLD;
        Some((self.tables.get(hit.length.checked_sub(2)?)?, piece))
    }
}

/// Whether there is a space that a transformation may drop, or next to which it may drop one.
#[inline(never)]
pub(super) fn minds_spacing(value: &[u8]) -> bool {
    let after = value.get(1..).unwrap_or_default();
    // Without a branch for each byte.
    value.chunks(64).zip(after.chunks(64)).any(|(bytes, next)| {
        let both = bytes.iter().zip(next);
        both.fold(false, |any, (byte, next)| {
            any | (*byte == b' ') & ((*next == b' ') | (*next == b'/') | (*next == b'('))
        })
    })
}

/// Clears those of the `prefilters` for which `passes` is false.
#[inline(always)]
fn retain_passed(row: &mut [u64], prefilters: &[u64], mut passes: impl FnMut(usize) -> bool) {
    for ((word, prefilters), first) in row.iter_mut().zip(prefilters).zip((0..).step_by(64)) {
        let mut left = *word & prefilters;
        while left != 0 {
            let lowest = left & left.wrapping_neg();
            if !passes(first + left.trailing_zeros() as usize) {
                *word &= !lowest;
            }
            left &= !lowest;
        }
    }
}

/// The bit of a pipeline of transformations, by its number; the last bit is that of all further ones.
pub(super) fn trigger_bit(pipeline: usize) -> u64 {
    1 << pipeline.min(63)
}

/// Sets the bit of a prefilter; `false` if the row is too short.
fn set_passed(row: &mut [u64], prefilter: u32) -> bool {
    let word = row.get_mut((prefilter / 64) as usize);
    word.map(|word| *word |= 1 << (prefilter % 64)).is_some()
}

/// Clears the bit of a prefilter.
pub(super) fn clear_passed(row: &mut [u64], prefilter: u32) {
    if let Some(word) = row.get_mut((prefilter / 64) as usize) {
        *word &= !(1 << (prefilter % 64));
    }
}

/// Whether the bit of a prefilter is set.
pub(super) fn is_passed(row: &[u64], prefilter: u32) -> bool {
    row.get((prefilter / 64) as usize).is_some_and(|word| word >> (prefilter % 64) & 1 == 1)
}
