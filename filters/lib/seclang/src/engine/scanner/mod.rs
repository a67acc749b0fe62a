//! One scan of a value that tells which operators may match it.
//!
//! Of each literal of each gate the rarest piece of four bytes (or the whole of a shorter one) is looked up at every
//! place of the value: a table of bits answers "no" most of the time, and what it lets through is compared. The scan
//! takes time linear in the value, whatever the value is: a bucket that would grow too long is not compared but passes.

mod table;

use table::{Fours, Pairs, Pieces, Threes, slice};

use crate::operator::{ByteSet, Gate};

/// How many literals all gates together may have; the operators of later gates are always run.
pub(super) const LITERALS: usize = 65_536;

/// How many sets of bytes are looked up along with the scan; gates that ask for more of them are tested one by one.
const SETS: usize = 256;

/// One bit for each set of bytes.
type Bits = [u64; SETS / 64];

/// How long a value is that is scanned as a long one: what that takes in advance is then little.
const LONG: usize = 4096;

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
    pairs: Pairs,
    threes: Threes,
    fours: Fours,
    /// For each gate what remains to be tested once it was opened.
    rests: Vec<Rest>,
    /// The gates with such a rest that literals open.
    tested: Box<[u64]>,
}

/// What is looked up for every byte of a value.
#[derive(Debug, Clone, Copy, Default)]
struct Class {
    /// One bit for each pipeline of transformations that the byte triggers.
    triggers: u64,
    /// One bit for each set of bytes that holds the byte.
    sets: Bits,
    lower: u32,
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
    /// Bits of sets of each of which a byte has to occur.
    sets: Bits,
    /// More such sets, those that have no bit.
    more: Box<[ByteSet]>,
}

impl Rest {
    fn passes(&self, value: &[u8], sets: &Bits, present: &mut Option<ByteSet>) -> bool {
        value.len() >= self.min_length
            && self.sets.iter().zip(sets).all(|(wanted, there)| wanted & !there == 0)
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
                Some((false, Some(bit))) => openings.push((bit, number)),
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
        let has_rest = |rest: &Rest| rest.min_length > 1 || rest.sets != Bits::default() || !rest.more.is_empty();
        // What sets of bytes open is tested then and there.
        let by_literal: std::collections::HashSet<u32> =
            literals.iter().map(|(_, gate)| *gate).chain(base.iter().copied()).collect();
        let rested = rests.iter().zip(0..).filter(|(rest, gate)| has_rest(rest) && by_literal.contains(gate));
        let tested = row(&mut rested.map(|(_, gate)| gate));
        let (mut pairs, mut threes, mut fours) = (Pieces::new(2), Pieces::new(3), Pieces::new(4));
        for same in literals.chunk_by(|one, other| one.0 == other.0) {
            let gates = same.iter().map(|(_, gate)| *gate);
            let Some((literal, _)) = same.first() else { continue };
            match *literal {
                [] | [_] => {}
                [_, _] => pairs.add(literal, gates.collect()),
                [_, _, _] => threes.add(literal, gates.collect()),
                _ => fours.add(literal, gates.collect()),
            }
        }
        let mut classes = Box::new([Class::default(); 256]);
        for (class, byte) in classes.iter_mut().zip(0u8..=255) {
            class.lower = u32::from(byte.to_ascii_lowercase());
            let holding = sets.list.iter().zip(0..).filter(|(set, _)| set.contains(byte));
            holding.for_each(|(_, bit)| set_bit(&mut class.sets, bit));
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
        let (pairs, threes, fours) = (pairs.finish(), threes.finish(), fours.finish());
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
            pairs,
            threes,
            fours,
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
                    classes.for_each(|(class, _)| class.triggers |= bit);
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
    pub(super) fn scan(&self, value: &[u8], open: &mut [u64]) -> u64 {
        open.copy_from_slice(&self.base);
        let (triggers, sets) = match value.len() < LONG {
            true => self.find_in_short(value, open),
            false => self.find_in_long(value, open),
        };
        let mut present = None;
        for (number, (there, opening)) in sets.iter().zip(&self.opening).enumerate() {
            let mut left = there & opening;
            while left != 0 {
                let set = number * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                let (Some(&start), Some(&end)) = (self.opening_starts.get(set), self.opening_starts.get(set + 1))
                else {
                    break;
                };
                for gate in slice(&self.opening_gates, (start, end)) {
                    let rest = self.rests.get(*gate as usize);
                    if rest.is_some_and(|rest| rest.passes(value, &sets, &mut present)) {
                        open_gate(open, *gate);
                    }
                }
            }
        }
        for (number, (word, tested)) in open.iter_mut().zip(&self.tested).enumerate() {
            let mut left = *word & tested;
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                if self
                    .rests
                    .get(number * 64 + bit as usize)
                    .is_some_and(|rest| !rest.passes(value, &sets, &mut present))
                {
                    *word &= !(1 << bit);
                }
            }
        }
        triggers
    }
}

impl Scanner {
    /// Opens the gates of the literals; what the bytes trigger, and the sets they are of.
    fn find_in_short(&self, value: &[u8], open: &mut [u64]) -> (u64, Bits) {
        let (mut triggers, mut sets) = (self.always, Bits::default());
        let mut window = 0u32;
        for (at, byte) in value.iter().enumerate() {
            let Some(class) = self.classes.get(usize::from(*byte)) else { continue };
            triggers |= class.triggers;
            sets.iter_mut().zip(&class.sets).for_each(|(all, more)| *all |= more);
            if window & 0xff == SPACE && minds_space(*byte) {
                triggers |= self.spacing;
            }
            window = window << 8 | class.lower;
            // Before the fourth byte the window holds zeros no value has; what it finds there is compared anyway.
            let marked = self.fours.bits.at(window)
                | self.threes.bits.at(window & 0xff_ffff)
                | self.pairs.bits.at(window & 0xffff);
            if marked != 0 {
                self.find(window, value, at, open);
            }
        }
        (triggers, sets)
    }

    /// As [`Scanner::find_in_short`], for values that repeat themselves: what was found once is not looked for again.
    fn find_in_long(&self, value: &[u8], open: &mut [u64]) -> (u64, Bits) {
        let (mut triggers, mut sets) = (self.always, Bits::default());
        let mut seen = [false; 256];
        for byte in value {
            if let Some(seen) = seen.get_mut(usize::from(*byte)) {
                *seen = true;
            }
        }
        for (class, _) in self.classes.iter().zip(seen).filter(|(_, seen)| *seen) {
            triggers |= class.triggers;
            sets.iter_mut().zip(&class.sets).for_each(|(all, more)| *all |= more);
        }
        let after = value.get(1..).unwrap_or_default();
        if value.iter().zip(after).any(|(byte, next)| *byte == b' ' && minds_space(*next)) {
            triggers |= self.spacing;
        }
        let (mut pairs, mut threes, mut fours) =
            (self.pairs.bits.clone(), self.threes.bits.clone(), self.fours.bits.clone());
        let mut window = 0u32;
        for (at, byte) in value.iter().enumerate() {
            window = window << 8 | u32::from(byte.to_ascii_lowercase());
            let marked = fours.at(window) | threes.at(window & 0xff_ffff) | pairs.at(window & 0xffff);
            if marked != 0 {
                let [four_done, three_done, two_done] = self.find(window, value, at, open);
                if four_done {
                    fours.clear(window);
                }
                if three_done {
                    threes.clear(window & 0xff_ffff);
                }
                if two_done {
                    pairs.clear(window & 0xffff);
                }
            }
        }
        (triggers, sets)
    }

    /// Opens the gates of the literals whose piece ends at a byte. For the three lengths of pieces, the longest first,
    /// whether there is nothing more to be found by the piece.
    #[cold]
    fn find(&self, window: u32, value: &[u8], at: usize, open: &mut [u64]) -> [bool; 3] {
        let (three, two) = (window & 0xff_ffff, window & 0xffff);
        [
            self.fours.may_have(window) && self.fours.find(window, value, at, open),
            self.threes.may_have(three) && self.threes.find(three, value, at, open),
            self.pairs.may_have(two) && self.pairs.find(two, value, at, open),
        ]
    }
}

const SPACE: u32 = b' ' as u32;

/// Whether a transformation looks at a space before this byte.
fn minds_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'/' | b'(')
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
