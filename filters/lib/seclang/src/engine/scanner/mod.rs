//! One scan of a value that tells which operators may match it.
//!
//! For each byte of a value is looked up which sets of bytes it is in, and which transformations it triggers. What may be
//! a literal of a gate passes a filter ([`filter`]) and is compared ([`table`]). The scan takes time linear in the value,
//! whatever the value is: of literals that crowd at a place no more than a few are compared, the others just pass.

mod filter;
mod table;
#[cfg(test)]
mod tests;

pub(super) use filter::number;
use filter::within;
use filter::{Filter, Hit, Marks, Search};
use table::{FOLD, Pieces, Table, slice};

use crate::operator::{ByteSet, Gate};

/// How many literals all gates together may have; the operators of later gates are always run.
pub(super) const LITERALS: usize = 65_536;

/// How many sets of bytes are looked up along with the scan; gates that ask for more of them are tested one by one.
const SETS: usize = 256;

/// One bit for each set of bytes.
type Bits = [u64; SETS / 64];

/// How long a value is that is scanned as a long one: what that takes in advance is then little.
const LONG: usize = 8 * 1024;

/// How many bytes a value has in which it is noted first which there are: looking up each of the 256 takes as long.
const MANY: usize = 256;

/// Beyond how many bytes minimal lengths are tested gate by gate.
const LENGTHS: usize = 64;

/// All gates of an engine.
pub(super) struct Scanner {
    /// How many words hold one bit for each gate.
    words: usize,
    set_count: usize,
    /// The gates that are open whatever the value holds, until their rest is tested.
    base: Box<[u64]>,
    /// What each byte stands for.
    classes: Box<[Class; 256]>,
    /// What every value triggers.
    always: u64,
    /// What a value triggers in which a space is not between two ordinary bytes.
    spacing: u64,
    /// For each set of bytes where the gates that any of its bytes opens begin in the list, and the end; without those
    /// that [`Class`] tells.
    opening_starts: Box<[u32]>,
    opening_gates: Box<[u32]>,
    /// The sets that open gates.
    opening: Bits,
    filter: Filter,
    marks: Marks,
    /// The literals by their pieces of two to six bytes.
    tables: [Table; 5],
    /// For each length below [`LENGTHS`], and for all others, the gates whose minimal length it is not below, if that
    /// is a length so short.
    long_enough: Box<[u64]>,
    /// For each gate the sets of each of which a byte has to occur, once it was opened.
    wanted: Box<[Bits]>,
    /// The gates that want any.
    wanting: Box<[u64]>,
    /// For each gate what else remains to be tested.
    rests: Vec<Rest>,
    /// The gates with such a rest.
    tested: Box<[u64]>,
}

/// What is looked up for every byte of a value: a bit for each set of bytes that holds it, one for each pipeline of
/// transformations that it triggers, whether it is a space, and a bit for each of the first gates, those it opens.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Class([u64; SETS / 64 + 2 + OPENED]);

/// Of how many words of gates [`Class`] knows which ones a byte opens.
const OPENED: usize = 2;

impl Class {
    fn new(sets: Bits, triggers: u64, space: u64, opened: [u64; OPENED]) -> Self {
        let [a, b, c, d] = sets;
        let [first, second] = opened;
        Self([a, b, c, d, triggers, space, first, second])
    }

    /// The sets, the triggers, whether there is a space, and the gates that are opened.
    fn parts(&self) -> (Bits, u64, bool, [u64; OPENED]) {
        let [a, b, c, d, triggers, space, first, second] = self.0;
        ([a, b, c, d], triggers, space != 0, [first, second])
    }

    fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(all, more)| *all |= more);
    }
}

/// The sets of bytes that gates ask for, each once.
#[derive(Default)]
struct Sets {
    list: Vec<ByteSet>,
}

impl Sets {
    /// The bit of a set; `None` if there is no room for one more. Gates do not tell upper from lower case.
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

#[derive(Default)]
struct Rest {
    min_length: usize,
    /// Sets of each of which a byte has to occur, those that have no bit.
    more: Box<[ByteSet]>,
}

impl Rest {
    /// Whether there is something to test besides a short minimal length and the sets that have a bit.
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
    /// The scanner of gates, and for each of them its number; `None` where there is no room for its literals.
    pub(super) fn new<'g>(gates: impl Iterator<Item = Option<&'g Gate>>) -> (Self, Vec<Option<u32>>) {
        let mut count = 0;
        let gates: Vec<Option<&Gate>> = gates
            .map(|gate| {
                let gate = gate.filter(|gate| count + gate.literals.len() <= LITERALS)?;
                count += gate.literals.len();
                Some(gate)
            })
            .collect();
        let mut numbers = vec![None; gates.len()];
        let mut ordered: Vec<(Option<ByteSet>, &Gate, &mut Option<u32>)> = Vec::new();
        for (gate, number) in gates.into_iter().zip(&mut numbers) {
            ordered.extend(gate.map(|gate| (opener(gate), gate, number)));
        }
        // What bytes open has the first numbers.
        ordered.sort_by_key(|(opener, ..)| opener.is_none());
        let mut literals: Vec<(&[u8], u32)> = Vec::new();
        let mut rests: Vec<Rest> = Vec::new();
        let mut wanted: Vec<Bits> = Vec::new();
        let mut base: Vec<u32> = Vec::new();
        let mut openings: Vec<(u32, u32)> = Vec::new();
        let mut sets = Sets::default();
        let mut classes = Box::new([Class::default(); 256]);
        for (opener, gate, slot) in ordered {
            let number = u32::try_from(rests.len()).unwrap_or(u32::MAX);
            *slot = Some(number);
            let (mut bits, mut more) = (Bits::default(), Vec::new());
            // What opens the gate need not be tested again, unless it is one of several things that do.
            let opens =
                |set: &&ByteSet| gate.literals.is_empty() && opener.is_some_and(|opener| opener == set.folded());
            for set in gate.sets.iter().filter(|set| !opens(set)) {
                match sets.bit(*set) {
                    Some(bit) => set_bit(&mut bits, bit),
                    None => more.push(set.folded()),
                }
            }
            wanted.push(bits);
            rests.push(Rest { min_length: gate.min_length as usize, more: more.into() });
            literals.extend(
                gate.literals.iter().filter(|literal| literal.len() > 1).map(|literal| (literal.as_slice(), number)),
            );
            let Some(opener) = opener else {
                if gate.literals.is_empty() {
                    base.push(number);
                }
                continue;
            };
            let mut opened = [0; OPENED];
            if open_gate(&mut opened, number) {
                let classes = classes.iter_mut().zip(0u8..=255).filter(|(_, byte)| opener.contains(*byte));
                classes.for_each(|(class, _)| class.add(&Class::new(Bits::default(), 0, 0, opened)));
                continue;
            }
            match sets.bit(opener) {
                Some(bit) => openings.push((bit, number)),
                None => base.push(number),
            }
        }
        literals.sort_unstable();
        literals.dedup();
        let words = rests.len().div_ceil(64);
        let row = |gates: &mut dyn Iterator<Item = u32>| {
            let mut row = vec![0u64; words].into_boxed_slice();
            gates.for_each(|gate| {
                open_gate(&mut row, gate);
            });
            row
        };
        let tested = row(&mut rests.iter().zip(0..).filter(|(rest, _)| rest.is_needed()).map(|(_, gate)| gate));
        let wanting =
            row(&mut wanted.iter().zip(0..).filter(|(bits, _)| **bits != Bits::default()).map(|(_, gate)| gate));
        let fits = |length| move |rest: &Rest| rest.min_length <= length || rest.min_length >= LENGTHS;
        let long_enough = (0..LENGTHS).flat_map(|length| {
            row(&mut rests.iter().zip(0..).filter(|(rest, _)| fits(length)(rest)).map(|(_, gate)| gate)).into_iter()
        });
        let long_enough = long_enough.collect();
        let [mut twos, mut threes, mut fours, mut fives, mut sixes] =
            [(2, 1), (3, 1), (4, 1), (5, 1), (6, 2)].map(|(length, run)| Pieces::new(length, run));
        for same in literals.chunk_by(|one, other| one.0 == other.0) {
            let gates = same.iter().map(|(_, gate)| *gate);
            let Some((literal, _)) = same.first() else { continue };
            match *literal {
                [] | [_] => {}
                [_, _] => twos.add(literal, gates),
                [_, _, _] => threes.add(literal, gates),
                [_, _, _, _] => fours.add(literal, gates),
                [_, _, _, _, _] | [_, _, _, _, _, _] => fives.add(literal, gates),
                _ => sixes.add(literal, gates),
            }
        }
        for (class, byte) in classes.iter_mut().zip(0u8..=255) {
            let mut bits = Bits::default();
            let holding = sets.list.iter().zip(0..).filter(|(set, _)| set.contains(byte));
            holding.for_each(|(_, bit)| set_bit(&mut bits, bit));
            class.add(&Class::new(bits, 0, u64::from(byte == b' '), Default::default()));
        }
        openings.sort_unstable();
        let mut opening_starts = vec![0u32; sets.list.len() + 1];
        for (start, bit) in opening_starts.iter_mut().zip(0..) {
            *start = u32::try_from(openings.partition_point(|(set, _)| *set < bit)).unwrap_or(0);
        }
        let opening_gates = openings.iter().map(|(_, gate)| *gate).collect();
        let mut opening = Bits::default();
        openings.iter().for_each(|(bit, _)| set_bit(&mut opening, *bit));
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
            opening_starts: opening_starts.into(),
            opening_gates,
            opening,
            filter,
            marks,
            tables: [twos, threes, fours, fives, sixes],
            long_enough,
            wanted: wanted.into(),
            wanting,
            rests,
            tested,
        };
        (scanner, numbers)
    }

    /// Says which bytes trigger which pipeline of transformations; `None` for one that every value triggers.
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

    /// How many sets of bytes gates ask for.
    pub(super) fn sets(&self) -> usize {
        self.set_count
    }

    /// How many words the answer for one value has.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// Writes to `open`, of [`Scanner::words`] words, which gates a value passes; the answer has the bits of the
    /// pipelines of transformations that may change the value ([`trigger_bit`]). With it how many places and literals were
    /// looked at besides.
    pub(super) fn scan(&self, value: &[u8], open: &mut [u64]) -> (u64, usize) {
        self.scan_within(value, open, usize::MAX)
    }

    /// The same; ends early, with too few gates open, once it has looked at more than `allowed` places and literals.
    #[inline(never)]
    pub(super) fn scan_within(&self, value: &[u8], open: &mut [u64], allowed: usize) -> (u64, usize) {
        open.copy_from_slice(&self.base);
        let long = value.len() >= LONG;
        let (class, triggers) = self.class(value);
        let (sets, _, _, opened) = class.parts();
        let mut steps = 0;
        if long {
            self.find_in_long(value, open, allowed, &mut steps);
        } else {
            let mut search = Search::new(value);
            while let Some(hits) = search.next(&self.filter, &self.marks).filter(|_| steps <= allowed) {
                for hit in hits {
                    steps += 1;
                    if let Some((table, piece)) = self.piece(hit, value) {
                        table.find(piece, value, hit.at, open, &mut steps);
                    }
                }
            }
        }
        open.iter_mut().zip(opened).for_each(|(word, opened)| *word |= opened);
        for (number, (there, opening)) in sets.iter().zip(&self.opening).enumerate() {
            let mut left = there & opening;
            while left != 0 {
                let set = number * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                let (Some(&start), Some(&end)) = (self.opening_starts.get(set), self.opening_starts.get(set + 1))
                else {
                    break;
                };
                slice(&self.opening_gates, (start, end)).iter().for_each(|gate| {
                    open_gate(open, *gate);
                });
            }
        }
        let length = value.len().min(LENGTHS - 1) * self.words;
        let long_enough = self.long_enough.get(length..).unwrap_or_default();
        open.iter_mut().zip(long_enough).for_each(|(word, long_enough)| *word &= long_enough);
        close(open, &self.wanting, |gate| {
            let wanted = self.wanted.get(gate).unwrap_or(&sets);
            wanted.iter().zip(&sets).fold(0, |missing, (wanted, there)| missing | wanted & !there) == 0
        });
        let mut present = None;
        close(open, &self.tested, |gate| self.rests.get(gate).is_none_or(|rest| rest.passes(value, &mut present)));
        (triggers, steps)
    }

    /// The pipelines of transformations that may change a value.
    pub(super) fn triggers(&self, value: &[u8]) -> u64 {
        self.class(value).1
    }

    /// What the bytes of a value stand for together, and the pipelines that may change it.
    #[inline(always)]
    fn class(&self, value: &[u8]) -> (Class, u64) {
        let class = if value.len() >= MANY { self.class_of_long(value) } else { self.class_of(value) };
        let (_, triggers, has_space, _) = class.parts();
        let spacing = if has_space && minds_spacing(value) { self.spacing } else { 0 };
        (class, self.always | triggers | spacing)
    }

    /// What the bytes of a value stand for together.
    fn class_of(&self, value: &[u8]) -> Class {
        let mut all = Class::default();
        for byte in value {
            if let Some(class) = self.classes.get(usize::from(*byte)) {
                all.add(class);
            }
        }
        all
    }

    /// The same for a value that has many bytes more than once.
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

    /// Opens the gates of literals in a value that repeats itself: what was found once is not looked for again.
    #[inline(never)]
    fn find_in_long(&self, value: &[u8], open: &mut [u64], allowed: usize, steps: &mut usize) {
        let mut filter = self.filter.clone();
        let mut search = Search::new(value);
        // Pieces by which nothing is left to be found, in no order.
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
                if *known == key || !table.find(piece, value, hit.at, open, steps) {
                    continue;
                }
                match hit.length {
                    2 => filter.clear(piece),
                    _ => *known = key,
                }
            }
        }
    }

    /// The piece at a place, and the table to find it in; `None` if the value is too short.
    #[inline(always)]
    fn piece(&self, hit: Hit, value: &[u8]) -> Option<(&Table, u64)> {
        let rest = value.get(hit.at..).filter(|rest| rest.len() >= hit.length)?;
        let piece = within(number(rest), hit.length) & FOLD;
        Some((self.tables.get(hit.length.checked_sub(2)?)?, piece))
    }
}

/// Whether there is a space before a byte for which a transformation may drop it, or it another one.
#[inline(never)]
fn minds_spacing(value: &[u8]) -> bool {
    let after = value.get(1..).unwrap_or_default();
    // Without a branch for each byte.
    value.chunks(64).zip(after.chunks(64)).any(|(bytes, next)| {
        let both = bytes.iter().zip(next);
        both.fold(false, |any, (byte, next)| {
            any | (*byte == b' ') & ((*next == b' ') | (*next == b'/') | (*next == b'('))
        })
    })
}

/// Closes those of the gates that do not pass.
#[inline(always)]
fn close(open: &mut [u64], gates: &[u64], mut passes: impl FnMut(usize) -> bool) {
    for ((word, gates), first) in open.iter_mut().zip(gates).zip((0..).step_by(64)) {
        let mut left = *word & gates;
        while left != 0 {
            let lowest = left & left.wrapping_neg();
            if !passes(first + left.trailing_zeros() as usize) {
                *word &= !lowest;
            }
            left &= !lowest;
        }
    }
}

/// The bytes any of which opens a gate, alone or besides longer literals; `None` if no byte does.
fn opener(gate: &Gate) -> Option<ByteSet> {
    let alone: Vec<u8> = gate.literals.iter().filter(|literal| literal.len() == 1).flatten().copied().collect();
    let mut set = ByteSet::default();
    alone.iter().for_each(|byte| set.insert(*byte));
    if gate.literals.is_empty() {
        set = *gate.sets.first()?;
    }
    Some(set.folded()).filter(|set| *set != ByteSet::default())
}

fn set_bit(bits: &mut Bits, bit: u32) {
    if let Some(word) = bits.get_mut((bit / 64) as usize) {
        *word |= 1 << (bit % 64);
    }
}

/// The bit of a pipeline of transformations, by its number; the last bit is that of all further ones.
pub(super) fn trigger_bit(pipeline: usize) -> u64 {
    1 << pipeline.min(63)
}

/// Opens a gate, if the row has one of this number.
fn open_gate(row: &mut [u64], gate: u32) -> bool {
    let word = row.get_mut((gate / 64) as usize);
    word.map(|word| *word |= 1 << (gate % 64)).is_some()
}

/// Closes a gate of a row.
pub(super) fn close_gate(row: &mut [u64], gate: u32) {
    if let Some(word) = row.get_mut((gate / 64) as usize) {
        *word &= !(1 << (gate % 64));
    }
}

/// Whether a gate is open in a row.
pub(super) fn is_open(row: &[u64], gate: u32) -> bool {
    row.get((gate / 64) as usize).is_some_and(|word| word >> (gate % 64) & 1 == 1)
}
