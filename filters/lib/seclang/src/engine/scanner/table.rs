//! Pieces of literals, and what they lead to.

use super::filter::{number, within};
use crate::operator::frequency;

/// How many literals may be compared at one place.
pub(super) const BUCKET: u8 = 12;

/// The places that literals crowd at while they are collected, in bits.
const CROWD_BITS: u32 = 17;

/// The hashes of pieces that are told apart by one bit each, in bits.
pub(super) const MARK_BITS: u32 = 19;

/// The bits of bytes that are looked at: all but those in which lower and upper case letters, or characters of ASCII and
/// others, differ.
pub(super) const FOLD: u64 = 0x5f5f_5f5f_5f5f_5f5f;

/// Pieces of one length.
pub(super) struct Table {
    /// How far hashes are shifted to number the buckets.
    shift: u32,
    /// For each bucket where its entries begin, and the end.
    starts: Box<[u32]>,
    entries: Box<[Entry]>,
    /// What follows the first eight bytes of literals.
    tails: Box<[u8]>,
    /// Numbers of words with bits of gates in them.
    gates: Box<[(u32, u64)]>,
}

/// A literal and the gates it opens, as ranges of [`Table::tails`] and [`Table::gates`].
struct Entry {
    piece: u64,
    /// How many bytes of the literal precede the piece.
    before: u32,
    /// How many bytes the literal has; 0 if the piece alone decides.
    length: u32,
    /// The first eight bytes of the literal, or fewer.
    head: u64,
    tail: (u32, u32),
    gates: (u32, u32),
}

/// A literal by one of its pieces.
struct Placed<'g> {
    /// The hash of the piece: no two pieces share it.
    hash: u64,
    piece: u64,
    /// How many bytes of the literal precede the piece.
    before: usize,
    /// Empty if the piece alone decides.
    literal: &'g [u8],
    /// A range of the gates of all literals.
    gates: (u32, u32),
}

/// The pieces of one length, while they are collected.
pub(super) struct Pieces<'g> {
    length: usize,
    /// How many pieces of a literal that follow each other are collected.
    run: usize,
    list: Vec<Placed<'g>>,
    gates: Vec<u32>,
    /// How rare each byte is, see [`frequency`].
    rarities: Vec<f64>,
    /// How many literals share a hash.
    crowds: Vec<u8>,
    /// The hashes of pieces of [`USUAL`].
    usual: Vec<bool>,
}

/// The bytes of a piece as a number, the first lowest, folded.
pub(super) fn piece_of(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0u64, |piece, byte| piece << 8 | u64::from(*byte)) & FOLD
}

/// The hash of a piece.
pub(super) fn hashed(piece: u64) -> u64 {
    piece.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The number of the bit that stands for a piece.
pub(super) fn mark_of(piece: u64) -> u64 {
    hashed(piece) >> (64 - MARK_BITS)
}

fn crowd_of(piece: u64) -> usize {
    (hashed(piece) >> (64 - CROWD_BITS)) as usize
}

impl Table {
    /// Opens the gates of the literals with this piece at a place; whether nothing is left to be found by pieces that
    /// share its mark. How many entries are looked at is added to `steps`.
    pub(super) fn find(&self, piece: u64, value: &[u8], at: usize, open: &mut [u64], steps: &mut usize) -> bool {
        let bucket = (hashed(piece) >> self.shift) as usize;
        let (Some(&start), Some(&end)) = (self.starts.get(bucket), self.starts.get(bucket + 1)) else { return true };
        let mut all = true;
        *steps += end.saturating_sub(start) as usize;
        for entry in slice(&self.entries, (start, end)) {
            if entry.piece != piece {
                all &= mark_of(entry.piece) != mark_of(piece);
                continue;
            }
            let gates = slice(&self.gates, entry.gates);
            let is_open = |(word, bits): &(u32, u64)| open.get(*word as usize).is_none_or(|word| word & bits == *bits);
            if gates.iter().all(is_open) {
                continue;
            }
            #[cfg(test)]
            super::tests::COMPARED.with(|compared| compared.set(compared.get() + 1));
            match self.is_at(entry, value, at) {
                false => all = false,
                true => gates.iter().for_each(|(word, bits)| {
                    if let Some(word) = open.get_mut(*word as usize) {
                        *word |= bits;
                    }
                }),
            }
        }
        all
    }

    /// Whether a value has the literal of an entry, given where it has its piece.
    fn is_at(&self, entry: &Entry, value: &[u8], at: usize) -> bool {
        let Some(rest) = at.checked_sub(entry.before as usize).and_then(|start| value.get(start..)) else {
            return false;
        };
        let length = entry.length as usize;
        if rest.len() < length || within(lowered(number(rest)), length) != entry.head {
            return false;
        }
        let tail = slice(&self.tails, entry.tail);
        tail.is_empty() || rest.get(8..length).is_some_and(|rest| rest.eq_ignore_ascii_case(tail))
    }
}

/// Eight bytes with their upper case letters of ASCII lowered.
fn lowered(bytes: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // The highest bit of each byte, once what has it already is left out: whether it is at least `A`, and above `Z`.
    let low = bytes & (0x7f * EACH);
    let from_a = low + (0x80 - b'A' as u64) * EACH;
    let after_z = low + (0x7f - b'Z' as u64) * EACH;
    bytes | (from_a & !after_z & !bytes & (0x80 * EACH)) >> 2
}

pub(super) fn slice<T>(list: &[T], (start, end): (u32, u32)) -> &[T] {
    list.get(start as usize..end as usize).unwrap_or_default()
}

/// Adds to a list; the range of what was added.
fn append<T: Copy>(list: &mut Vec<T>, more: &[T]) -> (u32, u32) {
    let start = list.len();
    list.extend_from_slice(more);
    (u32::try_from(start).unwrap_or(0), u32::try_from(list.len()).unwrap_or(0))
}

impl<'g> Pieces<'g> {
    /// Pieces of a length, of which each literal gives so many, one after the other.
    pub(super) fn new(length: usize, run: usize) -> Self {
        let mut usual = vec![false; 1 << CROWD_BITS];
        for bytes in USUAL.iter().flat_map(|text| text.windows(length)) {
            if let Some(usual) = usual.get_mut(crowd_of(piece_of(bytes))) {
                *usual = true;
            }
        }
        let rarities = (0..=255).map(frequency).collect();
        Self { length, run, list: Vec::new(), gates: Vec::new(), rarities, crowds: vec![0; 1 << CROWD_BITS], usual }
    }

    /// Adds a literal by the pieces of it that are rarest, and in the fewest literals so far.
    pub(super) fn add(&mut self, literal: &'g [u8], gates: impl Iterator<Item = u32>) {
        let start = self.gates.len();
        self.gates.extend(gates);
        let gates = (u32::try_from(start).unwrap_or(0), u32::try_from(self.gates.len()).unwrap_or(0));
        let cost = |bytes: &[u8]| {
            let place = crowd_of(piece_of(bytes));
            let crowd = self.crowds.get(place).copied().unwrap_or(0);
            let rarity = |byte: &u8| self.rarities.get(usize::from(*byte)).copied().unwrap_or(1.0);
            let usual = if self.usual.get(place).copied().unwrap_or(false) { 100.0 } else { 1.0 };
            bytes.iter().map(rarity).product::<f64>() * usual * f64::from(1 + crowd / 4)
        };
        // No run is longer than two.
        let (mut best, mut least, mut last) = (0, f64::INFINITY, 0.0);
        for (end, bytes) in (1..).zip(literal.windows(self.length)) {
            let one = cost(bytes);
            let both = if self.run > 1 { one + last } else { one };
            if end >= self.run && both < least {
                (best, least) = (end - self.run, both);
            }
            last = one;
        }
        for (before, bytes) in literal.windows(self.length).enumerate().skip(best).take(self.run) {
            let piece = piece_of(bytes);
            let Some(crowd) = self.crowds.get_mut(crowd_of(piece)) else { continue };
            // Where a place is crowded the piece alone opens the gates of all literals that follow.
            let compared = *crowd < BUCKET;
            *crowd += u8::from(compared);
            let (before, literal): (usize, &[u8]) = if compared { (before, literal) } else { (0, &[]) };
            self.list.push(Placed { hash: hashed(piece), piece, before, literal, gates });
        }
    }

    /// The table, and its pieces, each once.
    pub(super) fn finish(mut self) -> (Table, Vec<u64>) {
        // Marks are told apart by at least as many bits as buckets.
        let bits = self.list.len().next_power_of_two().trailing_zeros().clamp(1, MARK_BITS);
        let shift = 64 - bits;
        self.list.sort_unstable_by(|one, other| {
            let rest = |placed: &Placed<'g>| (placed.before, placed.literal);
            one.hash.cmp(&other.hash).then_with(|| rest(one).cmp(&rest(other)))
        });
        let mut starts = vec![0u32; (1 << bits) + 1];
        let (mut entries, mut tails, mut all) = (Vec::new(), Vec::new(), Vec::new());
        let same = |one: &Placed, other: &Placed| {
            (one.hash, one.before, one.literal) == (other.hash, other.before, other.literal)
        };
        let mut gates: Vec<u32> = Vec::new();
        for same in self.list.chunk_by(same) {
            let Some(Placed { hash, piece, before, literal, .. }) = same.first() else { continue };
            gates.clear();
            same.iter().for_each(|placed| gates.extend_from_slice(slice(&self.gates, placed.gates)));
            gates.sort_unstable();
            gates.dedup();
            let start = all.len();
            all.extend(gates.chunk_by(|one, other| one / 64 == other / 64).map(|gates| {
                let word = gates.first().map_or(0, |gate| gate / 64);
                (word, gates.iter().fold(0, |bits, gate| bits | 1u64 << (gate % 64)))
            }));
            if let Some(count) = starts.get_mut((hash >> shift) as usize + 1) {
                *count += 1;
            }
            entries.push(Entry {
                piece: *piece,
                before: u32::try_from(*before).unwrap_or(0),
                length: u32::try_from(literal.len()).unwrap_or(u32::MAX),
                head: lowered(number(literal)),
                tail: append(&mut tails, literal.get(8..).unwrap_or_default()),
                gates: (u32::try_from(start).unwrap_or(0), u32::try_from(all.len()).unwrap_or(0)),
            });
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut pieces: Vec<u64> = entries.iter().map(|entry| entry.piece).collect();
        pieces.dedup();
        let table =
            Table { shift, starts: starts.into(), entries: entries.into(), tails: tails.into(), gates: all.into() };
        (table, pieces)
    }
}

/// What nearly every request holds: pieces of it would be found, and compared, all the time.
const USUAL: [&[u8]; 8] = [
    b"mozilla/5.0 (windows nt 10.0; win64; x64) applewebkit/537.36 (khtml, like gecko) chrome/120.0.0.0 safari/537.36",
    b"mozilla/5.0 (macintosh; intel mac os x 10_15_7) (x11; linux x86_64; rv:120.0) gecko/20100101 firefox/120.0 mobile",
    b"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8 keep-alive",
    b"application/x-www-form-urlencoded; charset=utf-8 application/json, text/javascript, text/plain multipart/form-data",
    b"gzip, deflate, br, zstd en-us,en;q=0.5 max-age=0 no-cache session= token= https://www.example.com/index.html",
    b"accept-language accept-encoding user-agent referer cookie connection content-type content-length cache-control",
    b"sec-fetch-dest sec-fetch-mode sec-fetch-site sec-ch-ua-platform upgrade-insecure-requests navigate document",
    b"get post http/1.1 http/2.0 host same-origin origin authorization bearer x-requested-with x-forwarded-for",
];
