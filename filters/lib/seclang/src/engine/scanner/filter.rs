//! Finds the positions of a value at which a literal may occur, with a few loads for each byte and no branch.
//!
//! Of literals of two to six bytes, a piece of up to five bytes is searched for, as overlapping pairs of bytes. Pieces
//! are put into [`BINS`] bins by their length. A table says for each pair for which bins it is *not* the last pair of a
//! piece, the one before, and so on; a position that no pair excludes for a bin may have a piece of it.
//!
//! Longer literals are searched for at every second position only, by a bit for the hash of six bytes: each literal has
//! two marked pieces, one of which is at an even position.
//!
//! Bytes are folded: two of their bits are dropped, in which lower and upper case letters differ, among others.

use std::collections::HashSet;

use super::table::{FOLD, MARK_BITS, hashed, mark_of, piece_of};

/// Pairs of bytes, folded.
const PAIR: u16 = 0x5f5f;

/// Six bytes of eight.
const SIX: u64 = 0xffff_ffff_ffff;

/// How many pairs of folded bytes there are, with gaps between them.
const PAIRS: usize = PAIR as usize + 1;

/// Bins of pieces; for each the length of its pieces. A byte has a bit for each.
const BINS: [usize; 8] = [2, 3, 3, 4, 4, 5, 5, 5];

/// The positions of a block, which are tested together; as many bytes after them are needed.
const BLOCK: usize = 8;

/// The pieces of two to five bytes, by their pairs.
#[derive(Clone)]
pub(super) struct Filter {
    /// For each pair, from the lowest byte on, the bins whose pieces it does not end; those whose pieces have another
    /// pair before the last one; and before that; and before that.
    pairs: Box<[u32; PAIRS]>,
}

/// Bits for hashes of six bytes.
pub(super) struct Marks(Box<[u64; 1 << (MARK_BITS - 6)]>);

/// A piece that may be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit {
    /// Where it begins.
    pub(super) at: usize,
    pub(super) length: usize,
}

/// Places of a block of a value at which something may be found.
pub(super) struct Hits {
    /// Where the block begins.
    start: usize,
    /// A byte for each place, the first lowest: the bins of which a piece ends with the pair there.
    bins: u64,
    /// A bit for each place at which a piece of six bytes begins.
    sixes: u32,
}

impl Marks {
    pub(super) fn new(sixes: &[u64]) -> Self {
        let mut marks = Self(Box::new([0; 1 << (MARK_BITS - 6)]));
        for piece in sixes {
            let mark = mark_of(*piece);
            if let Some(word) = marks.0.get_mut((mark >> 6) as usize) {
                *word |= 1 << (mark & 63);
            }
        }
        marks
    }

    /// The mark of six bytes, folded, in the lowest bit.
    #[inline(always)]
    fn at(&self, bytes: u64) -> u32 {
        let hash = hashed(bytes & SIX);
        let word = self.0.get((hash >> (64 - MARK_BITS + 6)) as usize).copied().unwrap_or(0);
        word.wrapping_shr((hash >> (64 - MARK_BITS)) as u32) as u32 & 1
    }

    /// The marks at every second place of a block.
    #[inline(always)]
    fn block(&self, bytes: u64, after: u64) -> u32 {
        self.at(bytes)
            | self.at(bytes >> 16) << 2
            | self.at(bytes >> 32 | after << 32) << 4
            | self.at(bytes >> 48 | after << 16) << 6
    }
}

impl Filter {
    /// The filter of pieces of two to five bytes.
    pub(super) fn new(pieces: [&[u64]; 4]) -> Self {
        // No pair is the last one of a piece yet. Where pieces of a bin are shorter any pair may be.
        let unknown = (0..4).map(|before| {
            let bins = BINS.iter().zip(0..).filter(|(length, _)| **length >= before as usize + 2);
            bins.fold(0, |all, (_, bin)| all | 1u32 << bin) << (8 * before)
        });
        let mut filter = Self { pairs: Box::new([unknown.sum(); PAIRS]) };
        let mut bins = Bins::new();
        for (pieces, length) in pieces.into_iter().zip(2..) {
            for piece in pieces {
                let bin = bins.choose(*piece, length);
                for (before, pair) in pairs_of(*piece, length).enumerate() {
                    filter.change(pair, |entry| *entry &= !(1 << (before * 8 + bin)));
                }
            }
        }
        filter
    }

    fn change(&mut self, pair: u16, change: impl FnOnce(&mut u32)) {
        if let Some(entry) = self.pairs.get_mut(usize::from(pair & PAIR)) {
            change(entry);
        }
    }

    /// Removes a piece of two bytes.
    pub(super) fn clear(&mut self, piece: u64) {
        self.change(piece as u16, |entry| *entry |= 1);
    }

    /// The bins that are excluded at the places of a block, and at those of the next one.
    #[inline(always)]
    fn block(&self, bytes: u64, after: u64, before: u64) -> (u64, u64) {
        let (mut here, mut next) = (before, 0);
        for at in 0..BLOCK as u32 {
            let pair = if at == 7 { bytes >> 56 | after << 8 } else { bytes >> (8 * at) } as u16 & PAIR;
            let entry = self.pairs.get(usize::from(pair)).copied().map_or(0, u64::from);
            here |= entry << (8 * at);
            if at > 4 {
                next |= entry >> (64 - 8 * at);
            }
        }
        (here, next)
    }
}

/// Up to eight bytes as a number, the first lowest; what is missing is 0.
#[inline(always)]
pub(in crate::engine) fn number(bytes: &[u8]) -> u64 {
    if let Some(bytes) = bytes.first_chunk() {
        return u64::from_le_bytes(*bytes);
    }
    match (bytes.first_chunk(), bytes.last_chunk(), bytes) {
        (Some(first), Some(last), _) => {
            let last = u64::from(u32::from_le_bytes(*last)) << (8 * (bytes.len() & 3));
            u64::from(u32::from_le_bytes(*first)) | last
        }
        (_, _, [a, b, c]) => u64::from(u32::from_le_bytes([*a, *b, *c, 0])),
        (_, _, [a, b]) => u64::from(u16::from_le_bytes([*a, *b])),
        (_, _, [a]) => u64::from(*a),
        _ => 0,
    }
}

/// The first bytes of eight.
#[inline(always)]
pub(super) fn within(bytes: u64, length: usize) -> u64 {
    match length {
        0 => 0,
        1..8 => bytes & u64::MAX >> (64 - 8 * length),
        _ => bytes,
    }
}

/// The pairs of a piece, the last one first.
fn pairs_of(piece: u64, length: usize) -> impl Iterator<Item = u16> {
    (0..length.saturating_sub(1)).rev().map(move |at| (piece >> (8 * at)) as u16 & PAIR)
}

/// Iterates over the positions of a value.
pub(super) struct Search<'v> {
    rest: &'v [u8],
    at: usize,
    /// The bins that are excluded at the next places.
    excluded: u64,
}

impl<'v> Search<'v> {
    pub(super) fn new(value: &'v [u8]) -> Self {
        // Nothing longer ends at the first places.
        Self { rest: value, at: 0, excluded: 0x00e0_f8fe }
    }

    /// The next block with hits.
    #[inline(always)]
    pub(super) fn next(&mut self, filter: &Filter, marks: &Marks) -> Option<Hits> {
        while self.rest.len() > 1 {
            // Positions behind the end are found too; the comparison rejects them.
            let (bytes, after) = match self.rest.first_chunk::<{ 2 * BLOCK }>() {
                Some(both) => (number(both), number(both.get(BLOCK..).unwrap_or_default())),
                None => (number(self.rest), number(self.rest.get(BLOCK..).unwrap_or_default())),
            };
            let (bytes, after) = (bytes & FOLD, after & FOLD);
            let (excluded, next) = filter.block(bytes, after, self.excluded);
            let sixes = if self.rest.len() < 6 { 0 } else { marks.block(bytes, after) };
            let start = self.at;
            (self.at, self.excluded, self.rest) = (start + BLOCK, next, self.rest.get(BLOCK..).unwrap_or_default());
            if !excluded | u64::from(sixes) != 0 {
                return Some(Hits { start, bins: !excluded, sixes });
            }
        }
        None
    }
}

impl Iterator for Hits {
    type Item = Hit;

    #[inline(always)]
    fn next(&mut self) -> Option<Hit> {
        if self.bins != 0 {
            let bit = self.bins.trailing_zeros() as usize;
            self.bins &= self.bins - 1;
            let length = BINS.get(bit % 8).copied()?;
            return Some(Hit { at: (self.start + bit / 8 + 2).checked_sub(length)?, length });
        }
        if self.sixes != 0 {
            let at = self.sixes.trailing_zeros() as usize;
            self.sixes &= self.sixes - 1;
            return Some(Hit { at: self.start + at, length: 6 });
        }
        None
    }
}

/// Puts pieces into bins, so that few places have pairs of different pieces of one bin.
struct Bins {
    /// How often folded bytes occur.
    frequencies: [f64; 256],
    /// For each bin and each of the pairs of its pieces, the last one first, those that occur, and how often they do.
    pairs: [[(HashSet<u16>, f64); 4]; BINS.len()],
}

impl Bins {
    fn new() -> Self {
        let mut frequencies = [0.0; 256];
        for byte in 0u8..=255 {
            if let Some(sum) = frequencies.get_mut(piece_of(&[byte]) as usize) {
                *sum += crate::operator::frequency(byte);
            }
        }
        Self { frequencies, pairs: Default::default() }
    }

    fn frequency(&self, pair: u16) -> f64 {
        pair.to_le_bytes().iter().map(|byte| self.frequencies.get(usize::from(*byte)).copied().unwrap_or(0.0)).product()
    }

    /// The bin in which a piece adds the fewest places.
    fn choose(&mut self, piece: u64, length: usize) -> usize {
        let added = |bin: &[(HashSet<u16>, f64); 4]| {
            let (mut before, mut after) = (1.0, 1.0);
            for ((known, sum), pair) in bin.iter().zip(pairs_of(piece, length)) {
                before *= sum;
                after *= sum + if known.contains(&pair) { 0.0 } else { self.frequency(pair) };
            }
            after - before
        };
        let bins = self.pairs.iter().enumerate().filter(|(bin, _)| BINS.get(*bin) == Some(&length));
        let best = bins.map(|(bin, pairs)| (bin, added(pairs))).min_by(|one, other| one.1.total_cmp(&other.1));
        let best = best.map_or(0, |(bin, _)| bin);
        for (at, pair) in pairs_of(piece, length).enumerate() {
            let share = self.frequency(pair);
            if let Some((known, sum)) = self.pairs.get_mut(best).and_then(|bin| bin.get_mut(at))
                && known.insert(pair)
            {
                *sum += share;
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(pieces: [&[u8]; 5]) -> (Filter, Marks) {
        let [two, three, four, five, six] = pieces.map(|piece| vec![piece_of(piece)]);
        (Filter::new([&two, &three, &four, &five]), Marks::new(&six))
    }

    fn hits((filter, marks): &(Filter, Marks), value: &[u8]) -> Vec<Hit> {
        let mut search = Search::new(value);
        std::iter::from_fn(|| search.next(filter, marks)).flatten().collect()
    }

    #[test]
    fn finds_pieces_at_every_place() {
        let filter = filter([b"or", b"and", b"#!/x", b"\0user", b"select"]);
        for before in 0..40 {
            for piece in [&b"OR"[..], b"AnD", b"#!/X", b"\0uSer", b"Select"] {
                let value = [&vec![b'.'; before], piece, &vec![b'.'; before / 3]].concat();
                let expected = piece.len() < 6 || before % 2 == 0;
                let expected = Some(Hit { at: before, length: piece.len() }).filter(|_| expected);
                assert_eq!(hits(&filter, &value), Vec::from_iter(expected), "{}", value.escape_ascii());
            }
        }
        assert_eq!(hits(&filter, b"an"), []);
        assert_eq!(hits(&filter, b"o"), []);
        assert_eq!(hits(&filter, b""), []);
    }

    #[test]
    fn forgets_pairs() {
        let mut filter = filter([b"or", b"xor", b"orac", b"oracl", b"oracle"]);
        filter.0.clear(piece_of(b"OR"));
        assert_eq!(hits(&filter, b"or"), []);
        assert_eq!(hits(&filter, b" xor"), [Hit { at: 1, length: 3 }]);
    }
}
