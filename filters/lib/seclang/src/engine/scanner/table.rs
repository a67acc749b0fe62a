//! Tables of literals by one of their pieces.

use super::filter::{number, within};
use crate::operator::frequency;

/// The most literals that are compared at one position.
pub(super) const BUCKET: u8 = 12;

/// The number of counters for literals that share a piece, in bits of the hash.
const CROWD_BITS: u32 = 17;

/// The number of marks, one bit for the hash of a piece, in bits of the hash.
pub(super) const MARK_BITS: u32 = 19;

/// The bits of bytes that are compared: without those in which lower and upper case letters, or characters of ASCII and
/// others, differ.
pub(super) const FOLD: u64 = 0x5f5f_5f5f_5f5f_5f5f;

/// Pieces of one length.
pub(super) struct Table {
    /// The shift that turns a hash into the number of a bucket.
    shift: u32,
    /// For each bucket the start of its entries, and the end of the last one.
    starts: Box<[u32]>,
    entries: Box<[Entry]>,
    /// The bytes of literals after the first eight.
    tails: Box<[u8]>,
    /// Words of rows: the number of the word, and its bits.
    prefilters: Box<[(u32, u64)]>,
}

/// A literal, and the prefilters for which it is a candidate, as ranges of [`Table::tails`] and [`Table::prefilters`].
struct Entry {
    piece: u64,
    /// How many bytes of the literal precede the piece.
    before: u32,
    /// How many bytes the literal has; 0 if the piece alone decides.
    length: u32,
    /// The first eight bytes of the literal, or fewer.
    head: u64,
    tail: (u32, u32),
    prefilters: (u32, u32),
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
    /// A range of the prefilters of all literals.
    prefilters: (u32, u32),
}

/// The pieces of one length, while they are collected.
pub(super) struct Pieces<'g> {
    length: usize,
    /// How many pieces of a literal that follow each other are collected.
    run: usize,
    list: Vec<Placed<'g>>,
    prefilters: Vec<u32>,
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

/// The number of the mark of a piece.
pub(super) fn mark_of(piece: u64) -> u64 {
    hashed(piece) >> (64 - MARK_BITS)
}

fn crowd_of(piece: u64) -> usize {
    (hashed(piece) >> (64 - CROWD_BITS)) as usize
}

impl Table {
    /// Sets the prefilters of the literals that have this piece at a position. Returns whether all literals with its
    /// mark are found. Adds the number of entries looked at to `steps`.
    pub(super) fn find(&self, piece: u64, value: &[u8], at: usize, row: &mut [u64], steps: &mut usize) -> bool {
        let bucket = (hashed(piece) >> self.shift) as usize;
        let (Some(&start), Some(&end)) = (self.starts.get(bucket), self.starts.get(bucket + 1)) else { return true };
        let mut all = true;
        *steps += end.saturating_sub(start) as usize;
        for entry in slice(&self.entries, (start, end)) {
            if entry.piece != piece {
                all &= mark_of(entry.piece) != mark_of(piece);
                continue;
            }
            let prefilters = slice(&self.prefilters, entry.prefilters);
            let is_passed = |(word, bits): &(u32, u64)| row.get(*word as usize).is_none_or(|word| word & bits == *bits);
            if prefilters.iter().all(is_passed) {
                continue;
            }
            #[cfg(test)]
            super::tests::COMPARED.with(|compared| compared.set(compared.get() + 1));
            match self.is_at(entry, value, at) {
                false => all = false,
                true => prefilters.iter().for_each(|(word, bits)| {
                    if let Some(word) = row.get_mut(*word as usize) {
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

/// Appends to a list; returns the range of the items.
fn append<T: Copy>(list: &mut Vec<T>, more: &[T]) -> (u32, u32) {
    let start = list.len();
    list.extend_from_slice(more);
    (u32::try_from(start).unwrap_or(0), u32::try_from(list.len()).unwrap_or(0))
}

impl<'g> Pieces<'g> {
    /// Pieces of a length; each literal adds `run` consecutive ones.
    pub(super) fn new(length: usize, run: usize) -> Self {
        let mut usual = vec![false; 1 << CROWD_BITS];
        for bytes in USUAL.iter().flat_map(|text| text.windows(length)) {
            if let Some(usual) = usual.get_mut(crowd_of(piece_of(bytes))) {
                *usual = true;
            }
        }
        let rarities = (0..=255).map(frequency).collect();
        Self {
            length,
            run,
            list: Vec::new(),
            prefilters: Vec::new(),
            rarities,
            crowds: vec![0; 1 << CROWD_BITS],
            usual,
        }
    }

    /// Adds a literal by its rarest pieces that the fewest literals have so far.
    pub(super) fn add(&mut self, literal: &'g [u8], prefilters: impl Iterator<Item = u32>) {
        let start = self.prefilters.len();
        self.prefilters.extend(prefilters);
        let prefilters = (u32::try_from(start).unwrap_or(0), u32::try_from(self.prefilters.len()).unwrap_or(0));
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
            // If too many literals share a piece, the piece alone sets the prefilters of all further ones.
            let compared = *crowd < BUCKET;
            *crowd += u8::from(compared);
            let (before, literal): (usize, &[u8]) = if compared { (before, literal) } else { (0, &[]) };
            self.list.push(Placed { hash: hashed(piece), piece, before, literal, prefilters });
        }
    }

    /// The table, and its pieces, each once.
    pub(super) fn finish(mut self) -> (Table, Vec<u64>) {
        // A mark has at least as many bits as a bucket.
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
        let mut prefilters: Vec<u32> = Vec::new();
        for same in self.list.chunk_by(same) {
            let Some(Placed { hash, piece, before, literal, .. }) = same.first() else { continue };
            prefilters.clear();
            same.iter().for_each(|placed| prefilters.extend_from_slice(slice(&self.prefilters, placed.prefilters)));
            prefilters.sort_unstable();
            prefilters.dedup();
            let start = all.len();
            all.extend(prefilters.chunk_by(|one, other| one / 64 == other / 64).map(|prefilters| {
                let word = prefilters.first().map_or(0, |prefilter| prefilter / 64);
                (word, prefilters.iter().fold(0, |bits, prefilter| bits | 1u64 << (prefilter % 64)))
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
                prefilters: (u32::try_from(start).unwrap_or(0), u32::try_from(all.len()).unwrap_or(0)),
            });
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut pieces: Vec<u64> = entries.iter().map(|entry| entry.piece).collect();
        pieces.dedup();
        let table = Table {
            shift,
            starts: starts.into(),
            entries: entries.into(),
            tails: tails.into(),
            prefilters: all.into(),
        };
        (table, pieces)
    }
}

/// Text of nearly every request: pieces of it would be found, and compared, all the time.
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
