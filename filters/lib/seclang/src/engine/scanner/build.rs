//! Builds the scanner of an engine from its prefilters.

use super::table::Pieces;
use super::{Bits, CLASS_WORDS, Class, Condition, Filter, LENGTHS, LITERALS, Marks, SETS, Scanner, set_passed};
use crate::operator::{ByteSet, Prefilter};

/// The sets of bytes of all prefilters, without duplicates.
#[derive(Default)]
struct Sets {
    list: Vec<ByteSet>,
}

impl Sets {
    /// The bit of a set; `None` if all bits are taken. Prefilters ignore case.
    fn bit(&mut self, set: ByteSet) -> Option<u32> {
        let set = set.folded();
        let known = self.list.iter().position(|known| *known == set);
        let at = known.or_else(|| {
            (self.list.len() < SETS).then(|| {
                self.list.push(set);
                self.list.len() - 1
            })
        })?;
        u32::try_from(at).ok()
    }
}

impl Scanner {
    /// Builds the scanner. Returns the number of each prefilter, `None` if its literals exceed the limit.
    pub(in crate::engine) fn new<'g>(
        prefilters: impl Iterator<Item = Option<&'g Prefilter>>,
    ) -> (Self, Vec<Option<u32>>) {
        let mut count = 0;
        let prefilters: Vec<Option<&Prefilter>> = prefilters
            .map(|prefilter| {
                let prefilter = prefilter.filter(|prefilter| count + prefilter.literals.len() <= LITERALS)?;
                count += prefilter.literals.len();
                Some(prefilter)
            })
            .collect();
        let mut numbers = vec![None; prefilters.len()];
        let mut ordered: Vec<(Option<ByteSet>, &Prefilter, &mut Option<u32>)> = Vec::new();
        for (prefilter, number) in prefilters.into_iter().zip(&mut numbers) {
            ordered.extend(prefilter.map(|prefilter| (candidate_bytes(prefilter), prefilter, number)));
        }
        // Prefilters that single bytes select get the first numbers.
        ordered.sort_by_key(|(candidate_bytes, ..)| candidate_bytes.is_none());
        let mut literals: Vec<(&[u8], u32)> = Vec::new();
        let mut conditions: Vec<Condition> = Vec::new();
        let mut required: Vec<Bits> = Vec::new();
        let mut base: Vec<u32> = Vec::new();
        let mut by_set: Vec<(u32, u32)> = Vec::new();
        let mut sets = Sets::default();
        let mut classes = Box::new([Class::default(); 256]);
        for (candidate_bytes, prefilter, slot) in ordered {
            let number = u32::try_from(conditions.len()).unwrap_or(u32::MAX);
            *slot = Some(number);
            let (mut bits, mut more) = (Bits::default(), Vec::new());
            // The set that selects a candidate need not be tested again, unless a literal may select it too.
            let is_candidate_set = |set: &&ByteSet| {
                prefilter.literals.is_empty()
                    && candidate_bytes.is_some_and(|candidate_bytes| candidate_bytes == set.folded())
            };
            for set in prefilter.sets.iter().filter(|set| !is_candidate_set(set)) {
                match sets.bit(*set) {
                    Some(bit) => set_bit(&mut bits, bit),
                    None => more.push(set.folded()),
                }
            }
            required.push(bits);
            conditions.push(Condition { min_length: prefilter.min_length as usize, more: more.into() });
            literals.extend(
                prefilter
                    .literals
                    .iter()
                    .filter(|literal| literal.len() > 1)
                    .map(|literal| (literal.as_slice(), number)),
            );
            let Some(candidate_bytes) = candidate_bytes else {
                if prefilter.literals.is_empty() {
                    base.push(number);
                }
                continue;
            };
            let mut candidates = [0; CLASS_WORDS];
            if set_passed(&mut candidates, number) {
                let classes = classes.iter_mut().zip(0u8..=255).filter(|(_, byte)| candidate_bytes.contains(*byte));
                classes.for_each(|(class, _)| class.add(&Class::new(Bits::default(), 0, 0, candidates)));
                continue;
            }
            match sets.bit(candidate_bytes) {
                Some(bit) => by_set.push((bit, number)),
                None => base.push(number),
            }
        }
        literals.sort_unstable();
        literals.dedup();
        let words = conditions.len().div_ceil(64);
        let row = |prefilters: &mut dyn Iterator<Item = u32>| {
            let mut row = vec![0u64; words].into_boxed_slice();
            prefilters.for_each(|prefilter| {
                set_passed(&mut row, prefilter);
            });
            row
        };
        let conditional = row(&mut conditions
            .iter()
            .zip(0..)
            .filter(|(condition, _)| condition.is_needed())
            .map(|(_, prefilter)| prefilter));
        let with_required = row(&mut required
            .iter()
            .zip(0..)
            .filter(|(bits, _)| **bits != Bits::default())
            .map(|(_, prefilter)| prefilter));
        let fits =
            |length| move |condition: &Condition| condition.min_length <= length || condition.min_length >= LENGTHS;
        let long_enough = (0..LENGTHS).flat_map(|length| {
            row(&mut conditions
                .iter()
                .zip(0..)
                .filter(|(condition, _)| fits(length)(condition))
                .map(|(_, prefilter)| prefilter))
            .into_iter()
        });
        let long_enough = long_enough.collect();
        let [mut twos, mut threes, mut fours, mut fives, mut sixes] =
            [(2, 1), (3, 1), (4, 1), (5, 1), (6, 2)].map(|(length, run)| Pieces::new(length, run));
        for same in literals.chunk_by(|one, other| one.0 == other.0) {
            let prefilters = same.iter().map(|(_, prefilter)| *prefilter);
            let Some((literal, _)) = same.first() else { continue };
            match *literal {
                [] | [_] => {}
                [_, _] => twos.add(literal, prefilters),
                [_, _, _] => threes.add(literal, prefilters),
                [_, _, _, _] => fours.add(literal, prefilters),
                [_, _, _, _, _] | [_, _, _, _, _, _] => fives.add(literal, prefilters),
                _ => sixes.add(literal, prefilters),
            }
        }
        for (class, byte) in classes.iter_mut().zip(0u8..=255) {
            let mut bits = Bits::default();
            let holding = sets.list.iter().zip(0..).filter(|(set, _)| set.contains(byte));
            holding.for_each(|(_, bit)| set_bit(&mut bits, bit));
            class.add(&Class::new(bits, 0, u64::from(byte == b' '), Default::default()));
        }
        by_set.sort_unstable();
        let mut set_starts = vec![0u32; sets.list.len() + 1];
        for (start, bit) in set_starts.iter_mut().zip(0..) {
            *start = u32::try_from(by_set.partition_point(|(set, _)| *set < bit)).unwrap_or(0);
        }
        let set_prefilters = by_set.iter().map(|(_, prefilter)| *prefilter).collect();
        let mut candidate_sets = Bits::default();
        by_set.iter().for_each(|(bit, _)| set_bit(&mut candidate_sets, *bit));
        let base = row(&mut base.into_iter());
        let [(twos, pairs), (threes, triples), (fours, quadruples), (fives, quintuples), (sixes, sextuples)] =
            [twos, threes, fours, fives, sixes].map(Pieces::finish);
        let filter = Filter::new([&pairs, &triples, &quadruples, &quintuples]);
        let marks = Marks::new(&sextuples);
        let scanner = Self {
            words,
            set_count: sets.list.len(),
            base,
            classes,
            always: 0,
            spacing: 0,
            set_starts: set_starts.into(),
            set_prefilters,
            candidate_sets,
            filter,
            marks,
            tables: [twos, threes, fours, fives, sixes],
            long_enough,
            required: required.into(),
            with_required,
            conditions,
            conditional,
        };
        (scanner, numbers)
    }
}

/// The bytes of which one makes a prefilter a candidate, alone or beside longer literals; `None` if no byte does.
fn candidate_bytes(prefilter: &Prefilter) -> Option<ByteSet> {
    let alone: Vec<u8> = prefilter.literals.iter().filter(|literal| literal.len() == 1).flatten().copied().collect();
    let mut set = ByteSet::default();
    alone.iter().for_each(|byte| set.insert(*byte));
    if prefilter.literals.is_empty() {
        set = *prefilter.sets.first()?;
    }
    Some(set.folded()).filter(|set| *set != ByteSet::default())
}

fn set_bit(bits: &mut Bits, bit: u32) {
    if let Some(word) = bits.get_mut((bit / 64) as usize) {
        *word |= 1 << (bit % 64);
    }
}
