//! One scan of a value that tells which operators may match it.
//!
//! Of each literal of each gate the rarest piece of four bytes (or the whole of a shorter one) is looked up at every
//! place of the value: a table of bits answers "no" most of the time, and what it lets through is compared. The scan
//! takes time linear in the value, whatever the value is: a bucket that would grow too long is not compared but passes.

use crate::operator::{ByteSet, Gate, frequency};

/// How many literals all gates together may have; the operators of later gates are always run.
pub(super) const LITERALS: usize = 65_536;

/// How many literals may be compared at one place.
const BUCKET: u8 = 12;

/// The bits of one table, and its buckets.
const TABLE_BITS: u32 = 17;
const BUCKET_BITS: u32 = 12;

/// All gates of an engine.
pub(super) struct Scanner {
    /// How many words hold one bit for each gate.
    words: usize,
    /// The gates without literals: they begin as open.
    base: Box<[u64]>,
    /// The bytes that are literals themselves, and for each the gates it opens.
    alone: ByteSet,
    openings: Openings,
    pairs: Table,
    threes: Table,
    fours: Table,
    /// For each gate what remains to be tested once a literal was found.
    rests: Vec<Rest>,
    /// The gates with such a rest.
    tested: Box<[u64]>,
}

/// For each byte the number of its row plus 1, and the rows.
struct Openings {
    numbers: Box<[u16; 256]>,
    rows: Vec<u64>,
}

impl Openings {
    fn add(&mut self, byte: u8, gate: u32, words: usize) {
        let rows = self.rows.len().checked_div(words).unwrap_or(0);
        let Some(number) = self.numbers.get_mut(usize::from(byte)) else { return };
        if *number == 0 {
            *number = u16::try_from(rows + 1).unwrap_or(0);
            self.rows.resize(self.rows.len() + words, 0);
        }
        let start = (usize::from(*number) - 1) * words;
        if let Some(row) = self.rows.get_mut(start..start + words) {
            open_gate(row, gate);
        }
    }

    fn row(&self, byte: u8, words: usize) -> Option<&[u64]> {
        let start = usize::from(*self.numbers.get(usize::from(byte))?).checked_sub(1)? * words;
        self.rows.get(start..start + words)
    }
}

struct Rest {
    min_length: usize,
    sets: Box<[ByteSet]>,
}

/// Pieces of one length.
struct Table {
    bits: Box<[u64; 1 << (TABLE_BITS - 6)]>,
    /// For each bucket where its entries begin, and the end.
    starts: Box<[u32]>,
    entries: Box<[Entry]>,
    literals: Box<[u8]>,
    gates: Box<[u32]>,
}

/// A literal and the gates it opens, as ranges of [`Table::literals`] and [`Table::gates`].
struct Entry {
    piece: u32,
    /// How many bytes of the literal precede the end of the piece.
    before: u32,
    /// Empty if the piece alone decides.
    literal: (u32, u32),
    gates: (u32, u32),
}

/// A literal by one of its pieces: bucket, piece, what precedes the end of the piece, literal, gates.
type Placed<'g> = (u32, u32, usize, &'g [u8], Vec<u32>);

/// The pieces of one length, while they are collected.
struct Pieces<'g> {
    length: usize,
    /// Each with its bucket, what precedes its end, its literal (none if the piece alone decides), and its gates.
    list: Vec<Placed<'g>>,
    /// How many literals share a hash.
    crowds: Vec<u8>,
}

impl Scanner {
    /// The scanner of gates, and for each of them its number; `None` where there is no room for its literals.
    pub(super) fn new<'g>(gates: impl Iterator<Item = Option<&'g Gate>>) -> (Self, Vec<Option<u32>>) {
        let mut numbers = Vec::new();
        let mut literals: Vec<(&[u8], u32)> = Vec::new();
        let mut rests = Vec::new();
        let mut open = Vec::new();
        let mut bytes: Vec<(u8, u32)> = Vec::new();
        for gate in gates {
            let Some(gate) = gate.filter(|gate| literals.len() + gate.literals.len() <= LITERALS) else {
                numbers.push(None);
                continue;
            };
            let number = u32::try_from(rests.len()).unwrap_or(u32::MAX);
            numbers.push(Some(number));
            literals.extend(gate.literals.iter().map(|literal| (literal.as_slice(), number)));
            if gate.literals.is_empty() {
                // A gate that asks for bytes alone is opened by those of its first set.
                match gate.sets.first() {
                    Some(set) => bytes.extend(set.iter().map(|byte| (byte, number))),
                    None => open.push(number),
                }
            }
            rests.push(Rest { min_length: gate.min_length as usize, sets: gate.sets.clone().into() });
        }
        literals.sort_unstable();
        literals.dedup();
        let words = rests.len().div_ceil(64);
        let row = |gates: &mut dyn Iterator<Item = u32>| {
            let mut row = vec![0u64; words].into_boxed_slice();
            gates.for_each(|gate| open_gate(&mut row, gate));
            row
        };
        let tested = rests.iter().zip(0..).filter(|(rest, _)| rest.min_length > 1 || !rest.sets.is_empty());
        let tested = row(&mut tested.map(|(_, gate)| gate));
        let (mut pairs, mut threes, mut fours) = (Pieces::new(2), Pieces::new(3), Pieces::new(4));
        for same in literals.chunk_by(|one, other| one.0 == other.0) {
            let gates = same.iter().map(|(_, gate)| *gate);
            let Some((literal, _)) = same.first() else { continue };
            match *literal {
                [] => {}
                [byte] => {
                    // Gates give their literals in lower case, the presence of bytes is exact.
                    let cases = [*byte, byte.to_ascii_uppercase()];
                    bytes.extend(gates.flat_map(|gate| cases.map(|byte| (byte, gate))));
                }
                [_, _] => pairs.add(literal, gates.collect()),
                [_, _, _] => threes.add(literal, gates.collect()),
                _ => fours.add(literal, gates.collect()),
            }
        }
        let mut alone = ByteSet::default();
        let mut openings = Openings { numbers: Box::new([0; 256]), rows: Vec::new() };
        for (byte, gate) in bytes {
            alone.insert(byte);
            openings.add(byte, gate, words);
        }
        let base = row(&mut open.into_iter());
        let tables = (pairs.finish(), threes.finish(), fours.finish());
        let (pairs, threes, fours) = tables;
        (Self { words, base, alone, openings, pairs, threes, fours, rests, tested }, numbers)
    }

    /// How many words the answer for one value has.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// Writes to `open`, of [`Scanner::words`] words, which gates a value passes; `present` are its bytes.
    pub(super) fn scan(&self, value: &[u8], present: &ByteSet, open: &mut [u64]) {
        open.copy_from_slice(&self.base);
        for byte in present.common(&self.alone).iter() {
            if let Some(row) = self.openings.row(byte, self.words) {
                open.iter_mut().zip(row).for_each(|(word, more)| *word |= more);
            }
        }
        let mut window = 0u32;
        for (at, byte) in value.iter().enumerate() {
            window = window << 8 | u32::from(byte.to_ascii_lowercase());
            // Before the fourth byte the window holds zeros no value has; what it finds there is compared anyway.
            if self.fours.may_have(window) {
                self.fours.find(window, value, at, open);
            }
            if self.threes.may_have(window & 0xff_ffff) {
                self.threes.find(window & 0xff_ffff, value, at, open);
            }
            if self.pairs.may_have(window & 0xffff) {
                self.pairs.find(window & 0xffff, value, at, open);
            }
        }
        for (number, (word, tested)) in open.iter_mut().zip(&self.tested).enumerate() {
            let mut left = *word & tested;
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                let rest = self.rests.get(number * 64 + bit as usize);
                let passes = rest.is_none_or(|rest| {
                    value.len() >= rest.min_length && rest.sets.iter().all(|set| set.intersects(present))
                });
                if !passes {
                    *word &= !(1 << bit);
                }
            }
        }
    }
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

fn hashed(piece: u32) -> u32 {
    piece.wrapping_mul(0x9e37_79b1)
}

impl Table {
    fn may_have(&self, piece: u32) -> bool {
        let hash = (hashed(piece) >> (32 - TABLE_BITS)) as usize;
        self.bits.get(hash >> 6).is_some_and(|word| word >> (hash & 63) & 1 == 1)
    }

    #[cold]
    fn find(&self, piece: u32, value: &[u8], at: usize, open: &mut [u64]) {
        let bucket = (hashed(piece) >> (32 - BUCKET_BITS)) as usize;
        let (Some(&start), Some(&end)) = (self.starts.get(bucket), self.starts.get(bucket + 1)) else { return };
        for entry in self.entries.get(start as usize..end as usize).unwrap_or_default() {
            if entry.piece != piece {
                continue;
            }
            let literal = slice(&self.literals, entry.literal);
            let found = (at + 1)
                .checked_sub(entry.before as usize)
                .and_then(|start| value.get(start..)?.get(..literal.len()))
                .is_some_and(|found| found.eq_ignore_ascii_case(literal));
            if found {
                slice(&self.gates, entry.gates).iter().for_each(|gate| open_gate(open, *gate));
            }
        }
    }
}

fn slice<T>(list: &[T], (start, end): (u32, u32)) -> &[T] {
    list.get(start as usize..end as usize).unwrap_or_default()
}

/// Adds to a list; the range of what was added.
fn append<T: Copy>(list: &mut Vec<T>, more: &[T]) -> (u32, u32) {
    let start = list.len();
    list.extend_from_slice(more);
    (u32::try_from(start).unwrap_or(0), u32::try_from(list.len()).unwrap_or(0))
}

impl<'g> Pieces<'g> {
    fn new(length: usize) -> Self {
        Self { length, list: Vec::new(), crowds: vec![0; 1 << TABLE_BITS] }
    }

    /// Adds a literal by the piece of it that is rarest, and in the fewest literals so far.
    fn add(&mut self, literal: &'g [u8], gates: Vec<u32>) {
        let crowd = |piece: u32| self.crowds.get((hashed(piece) >> (32 - TABLE_BITS)) as usize).copied().unwrap_or(0);
        let pieces = literal.windows(self.length).enumerate().map(|(at, bytes)| {
            let piece = bytes.iter().fold(0u32, |piece, byte| piece << 8 | u32::from(*byte));
            let rarity: f64 = bytes.iter().map(|&byte| frequency(byte)).product();
            (at + self.length, piece, rarity * f64::from(1 + crowd(piece) / 4))
        });
        let Some((before, piece, _)) = pieces.min_by(|one, other| one.2.total_cmp(&other.2)) else { return };
        let bucket = hashed(piece) >> (32 - BUCKET_BITS);
        let Some(crowd) = self.crowds.get_mut((hashed(piece) >> (32 - TABLE_BITS)) as usize) else { return };
        match *crowd < BUCKET {
            true => {
                *crowd += 1;
                self.list.push((bucket, piece, before, literal, gates));
            }
            // The place is crowded: the piece alone opens the gates of all literals that follow.
            false => self.list.push((bucket, piece, 0, &[], gates)),
        }
    }

    fn finish(mut self) -> Table {
        self.list.sort_unstable();
        let mut bits = Box::new([0u64; 1 << (TABLE_BITS - 6)]);
        let mut starts = vec![0u32; (1 << BUCKET_BITS) + 1];
        let (mut entries, mut literals, mut all) = (Vec::new(), Vec::new(), Vec::new());
        let same = |one: &Placed, other: &Placed| (one.1, one.3) == (other.1, other.3);
        for same in self.list.chunk_by(same) {
            let Some((bucket, piece, before, literal, _)) = same.first() else { continue };
            let mut gates: Vec<u32> = same.iter().flat_map(|(.., gates)| gates.iter().copied()).collect();
            gates.sort_unstable();
            gates.dedup();
            let hash = hashed(*piece) >> (32 - TABLE_BITS);
            if let Some(word) = bits.get_mut((hash >> 6) as usize) {
                *word |= 1 << (hash & 63);
            }
            if let Some(count) = starts.get_mut(*bucket as usize + 1) {
                *count += 1;
            }
            entries.push(Entry {
                piece: *piece,
                before: u32::try_from(*before).unwrap_or(0),
                literal: append(&mut literals, literal),
                gates: append(&mut all, &gates),
            });
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        Table { bits, starts: starts.into(), entries: entries.into(), literals: literals.into(), gates: all.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(gates: &[Gate], value: &[u8]) -> Vec<bool> {
        let (scanner, numbers) = Scanner::new(gates.iter().map(Some));
        let mut row = vec![0; scanner.words()];
        scanner.scan(value, &ByteSet::of_bytes(value), &mut row);
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
