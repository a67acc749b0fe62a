//! One scan of a value that tells which operators may match it.
//!
//! For each byte of a value is looked up which sets of bytes it is in, and which transformations it triggers. What may be
//! a literal of a gate passes a filter ([`filter`]) and is compared ([`table`]). The scan takes time linear in the value,
//! whatever the value is: of literals that crowd at a place no more than a few are compared, the others just pass.

mod filter;
mod table;

use filter::{Filter, Hit, Marks, Search};
use table::{Pieces, Table, piece_of, slice};

use crate::operator::{ByteSet, Gate};

/// How many literals all gates together may have; the operators of later gates are always run.
pub(super) const LITERALS: usize = 65_536;

/// How many sets of bytes are looked up along with the scan; gates that ask for more of them are tested one by one.
const SETS: usize = 256;

/// One bit for each set of bytes.
type Bits = [u64; SETS / 64];

/// How long a value is that is scanned as a long one: what that takes in advance is then little.
const LONG: usize = 16 * 1024;

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
    /// For each set of bytes where the gates that any of its bytes opens begin in the list, and the end.
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
    /// For each gate what else remains to be tested once it was opened.
    rests: Vec<Rest>,
    /// The gates with such a rest.
    tested: Box<[u64]>,
}

/// What is looked up for every byte of a value: a bit for each set of bytes that holds it, one for each pipeline of
/// transformations that it triggers, and whether it is a space.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Class([u64; SETS / 64 + 2]);

impl Class {
    fn new(sets: Bits, triggers: u64, space: u64) -> Self {
        let [a, b, c, d] = sets;
        Self([a, b, c, d, triggers, space])
    }

    /// The sets, the triggers, and whether there is a space.
    fn parts(&self) -> (Bits, u64, bool) {
        let [a, b, c, d, triggers, space] = self.0;
        ([a, b, c, d], triggers, space != 0)
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
    /// Bits of sets of each of which a byte has to occur.
    sets: Bits,
    min_length: usize,
    /// More such sets, those that have no bit.
    more: Box<[ByteSet]>,
}

impl Rest {
    /// Whether there is something to test besides a short minimal length.
    fn is_needed(&self) -> bool {
        self.min_length >= LENGTHS || self.sets != Bits::default() || !self.more.is_empty()
    }

    fn passes(&self, value: &[u8], sets: &Bits, present: &mut Option<ByteSet>) -> bool {
        self.sets.iter().zip(sets).fold(0, |missing, (wanted, there)| missing | wanted & !there) == 0
            && value.len() >= self.min_length
            && (self.more.is_empty() || {
                let present = present.get_or_insert_with(|| ByteSet::of_bytes(value));
                self.more.iter().all(|set| set.intersects(present))
            })
    }
}

impl Scanner {
    /// The scanner of gates, and for each of them its number; `None` where there is no room for its literals.
    pub(super) fn new<'g>(gates: impl Iterator<Item = Option<&'g Gate>>) -> (Self, Vec<Option<u32>>) {
        let mut numbers = Vec::new();
        let mut literals: Vec<(&[u8], u32)> = Vec::new();
        let mut rests: Vec<Rest> = Vec::new();
        let mut base: Vec<u32> = Vec::new();
        let mut openings: Vec<(u32, u32)> = Vec::new();
        let mut sets = Sets::default();
        for gate in gates {
            let Some(gate) = gate.filter(|gate| literals.len() + gate.literals.len() <= LITERALS) else {
                numbers.push(None);
                continue;
            };
            let number = u32::try_from(rests.len()).unwrap_or(u32::MAX);
            numbers.push(Some(number));
            let mut rest = Rest { min_length: gate.min_length as usize, ..Rest::default() };
            let mut more = Vec::new();
            for set in &gate.sets {
                match sets.bit(*set) {
                    Some(bit) => set_bit(&mut rest.sets, bit),
                    None => more.push(set.folded()),
                }
            }
            rest.more = more.into();
            // A literal of one byte opens as a set of bytes does.
            let (short, long): (Vec<_>, Vec<_>) = gate.literals.iter().partition(|literal| literal.len() == 1);
            let mut alone = ByteSet::default();
            short.iter().flat_map(|literal| literal.iter()).for_each(|byte| alone.insert(*byte));
            let opener = match (short.is_empty(), long.is_empty(), gate.sets.first()) {
                (false, ..) => Some(alone),
                (true, true, Some(set)) => Some(*set),
                (true, false, _) => None,
                (true, true, None) => Some(ByteSet::default()),
            };
            match opener.map(|set| (set == ByteSet::default(), sets.bit(set))) {
                Some((false, Some(bit))) => {
                    openings.push((bit, number));
                    // What opens the gate need not be tested again, unless it is one of several things that do.
                    if gate.literals.is_empty() {
                        unset_bit(&mut rest.sets, bit);
                    }
                }
                Some(_) => base.push(number),
                None => {}
            }
            literals.extend(long.into_iter().map(|literal| (literal.as_slice(), number)));
            rests.push(rest);
        }
        literals.sort_unstable();
        literals.dedup();
        let words = rests.len().div_ceil(64);
        let row = |gates: &mut dyn Iterator<Item = u32>| {
            let mut row = vec![0u64; words].into_boxed_slice();
            gates.for_each(|gate| open_gate(&mut row, gate));
            row
        };
        let tested = row(&mut rests.iter().zip(0..).filter(|(rest, _)| rest.is_needed()).map(|(_, gate)| gate));
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
                [_, _] => twos.add(literal, gates.collect()),
                [_, _, _] => threes.add(literal, gates.collect()),
                [_, _, _, _] => fours.add(literal, gates.collect()),
                [_, _, _, _, _] | [_, _, _, _, _, _] => fives.add(literal, gates.collect()),
                _ => sixes.add(literal, gates.collect()),
            }
        }
        let mut classes = Box::new([Class::default(); 256]);
        for (class, byte) in classes.iter_mut().zip(0u8..=255) {
            let mut bits = Bits::default();
            let holding = sets.list.iter().zip(0..).filter(|(set, _)| set.contains(byte));
            holding.for_each(|(_, bit)| set_bit(&mut bits, bit));
            *class = Class::new(bits, 0, u64::from(byte == b' '));
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
                    classes.for_each(|(class, _)| class.add(&Class::new(Bits::default(), bit, 0)));
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
    /// pipelines of transformations that may change the value ([`trigger_bit`]).
    #[inline(never)]
    pub(super) fn scan(&self, value: &[u8], open: &mut [u64]) -> u64 {
        open.copy_from_slice(&self.base);
        let long = value.len() >= LONG;
        let (sets, triggers, has_space) = if long { self.class_of_long(value) } else { self.class_of(value) }.parts();
        let triggers = self.always | triggers | if has_space && minds_spacing(value) { self.spacing } else { 0 };
        if long {
            self.find_in_long(value, open);
        } else {
            let mut search = Search::new(value);
            while let Some(hits) = search.next(&self.filter, &self.marks) {
                for hit in hits {
                    if let Some((table, piece)) = self.piece(hit, value) {
                        table.find(piece, value, hit.at, open);
                    }
                }
            }
        }
        for (number, (there, opening)) in sets.iter().zip(&self.opening).enumerate() {
            let mut left = there & opening;
            while left != 0 {
                let set = number * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                let (Some(&start), Some(&end)) = (self.opening_starts.get(set), self.opening_starts.get(set + 1))
                else {
                    break;
                };
                slice(&self.opening_gates, (start, end)).iter().for_each(|gate| open_gate(open, *gate));
            }
        }
        let length = value.len().min(LENGTHS - 1) * self.words;
        let long_enough = self.long_enough.get(length..).unwrap_or_default();
        open.iter_mut().zip(long_enough).for_each(|(word, long_enough)| *word &= long_enough);
        let mut present = None;
        for (number, (word, tested)) in open.iter_mut().zip(&self.tested).enumerate() {
            let mut left = *word & tested;
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                let rest = self.rests.get(number * 64 + bit as usize);
                if rest.is_some_and(|rest| !rest.passes(value, &sets, &mut present)) {
                    *word &= !(1 << bit);
                }
            }
        }
        triggers
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
    fn find_in_long(&self, value: &[u8], open: &mut [u64]) {
        let mut filter = self.filter.clone();
        let mut search = Search::new(value);
        // Pieces by which nothing is left to be found, in no order.
        let mut done = [u64::MAX; 256];
        while let Some(hits) = search.next(&filter, &self.marks) {
            for hit in hits {
                let Some((table, piece)) = self.piece(hit, value) else { continue };
                // No piece fills the highest byte.
                let key = piece | (hit.length as u64) << 56;
                let Some(known) = done.get_mut((key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize) else {
                    continue;
                };
                if *known == key || !table.find(piece, value, hit.at, open) {
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
        let piece = piece_of(value.get(hit.at..)?.get(..hit.length)?);
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

fn unset_bit(bits: &mut Bits, bit: u32) {
    if let Some(word) = bits.get_mut((bit / 64) as usize) {
        *word &= !(1 << (bit % 64));
    }
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

fn open_gate(row: &mut [u64], gate: u32) {
    if let Some(word) = row.get_mut((gate / 64) as usize) {
        *word |= 1 << (gate % 64);
    }
}

/// Whether a gate is open in a row.
pub(super) fn is_open(row: &[u64], gate: u32) -> bool {
    row.get((gate / 64) as usize).is_some_and(|word| word >> (gate % 64) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_os = "unknown")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    std::thread_local! {
        /// How many literals were compared.
        pub(super) static COMPARED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    fn open(gates: &[Gate], value: &[u8]) -> Vec<bool> {
        let (scanner, numbers) = Scanner::new(gates.iter().map(Some));
        let mut row = vec![0; scanner.words()];
        scanner.scan(value, &mut row);
        numbers.into_iter().map(|number| is_open(&row, number.unwrap())).collect()
    }

    fn of(literals: &[&str]) -> Gate {
        Gate { literals: literals.iter().map(|literal| literal.as_bytes().to_vec()).collect(), ..Gate::default() }
    }

    #[test]
    fn finds_literals_of_every_length() {
        let gates = [of(&["select", "union"]), of(&["or"]), of(&["eval", "exe"]), of(&["<", "q"]), of(&["\0\0\0x"])];
        assert_eq!(open(&gates, b"x UNION y"), [true, false, false, false, false]);
        assert_eq!(open(&gates, b"for"), [false, true, false, false, false]);
        assert_eq!(open(&gates, b"Exe"), [false, false, true, false, false]);
        assert_eq!(open(&gates, b"Q"), [false, false, false, true, false]);
        assert_eq!(open(&gates, b"x"), [false; 5]);
        assert_eq!(open(&gates, b"\0\0\0X"), [false, false, false, false, true]);
        assert_eq!(open(&gates, b""), [false; 5]);
    }

    #[test]
    fn tests_what_remains() {
        let rest = Gate { min_length: 5, sets: vec![ByteSet::of_bytes(b"({")], literals: vec![b"ab".to_vec()] };
        let long = Gate { min_length: 3, ..Gate::default() };
        assert_eq!(open(&[rest.clone(), long.clone()], b"ab"), [false, false]);
        assert_eq!(open(&[rest.clone(), long.clone()], b"abcde"), [false, true]);
        assert_eq!(open(&[rest, long], b"abcd{"), [true, true]);
    }

    #[test]
    fn a_full_bucket_passes() {
        let gates: Vec<Gate> = (0..40).map(|at| of(&[&format!("z{at:02}qqqq")])).collect();
        for (at, _) in gates.iter().enumerate() {
            assert!(open(&gates, format!("--Z{at:02}QQQQ").as_bytes())[at], "{at}");
        }
        let many: Vec<Gate> = (0..200).map(|at| of(&[&format!("\u{1}\u{1}{}", char::from(at as u8 / 2))])).collect();
        assert!(open(&many, &[1, 1, 50])[100]);
    }
}
