//! Pieces of literals, and what they lead to.

use super::open_gate;
use crate::operator::frequency;

/// How many literals may be compared at one place.
const BUCKET: u8 = 12;

/// The places that literals crowd at while they are collected, and the buckets of a table, in bits.
const CROWD_BITS: u32 = 17;
const BUCKET_BITS: u32 = 12;

/// Tables by the length of their pieces. Most literals have four bytes and more.
pub(super) type Pairs = Table<{ 1 << 7 }, 19>;
pub(super) type Threes = Table<{ 1 << 9 }, 17>;
pub(super) type Fours = Table<{ 1 << 13 }, 13>;

/// Pieces of one length.
pub(super) struct Table<const WORDS: usize, const SHIFT: u32> {
    pub(super) bits: Marks<WORDS, SHIFT>,
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
pub(super) struct Pieces<'g> {
    length: usize,
    /// Each with its bucket, what precedes its end, its literal (none if the piece alone decides), and its gates.
    list: Vec<Placed<'g>>,
    /// How many literals share a hash.
    crowds: Vec<u8>,
    /// Marks of the pieces of [`USUAL`], and of a few more.
    usual: Marks<{ 1 << 13 }, 13>,
}

/// One bit for each hash of a piece, in so many words; what is shifted out of a hash leaves the number of a bit of them.
#[derive(Clone)]
pub(super) struct Marks<const WORDS: usize, const SHIFT: u32>(Box<[u64; WORDS]>);

impl<const WORDS: usize, const SHIFT: u32> Marks<WORDS, SHIFT> {
    fn new() -> Self {
        Self(Box::new([0; WORDS]))
    }

    fn set(&mut self, piece: u32) {
        let hash = hashed(piece) >> SHIFT;
        if let Some(word) = self.0.get_mut((hash >> 6) as usize) {
            *word |= 1 << (hash & 63);
        }
    }

    pub(super) fn clear(&mut self, piece: u32) {
        let hash = hashed(piece) >> SHIFT;
        if let Some(word) = self.0.get_mut((hash >> 6) as usize) {
            *word &= !(1 << (hash & 63));
        }
    }

    /// 1 if a piece is marked, else 0.
    pub(super) fn at(&self, piece: u32) -> u64 {
        let hash = (hashed(piece) >> SHIFT) as usize;
        self.0.get(hash >> 6).map_or(0, |word| word >> (hash & 63) & 1)
    }

    fn same_mark(one: u32, other: u32) -> bool {
        hashed(one) >> SHIFT == hashed(other) >> SHIFT
    }
}

/// The bytes of a piece as a number.
fn piece_of(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0u32, |piece, byte| piece << 8 | u32::from(*byte))
}

fn hashed(piece: u32) -> u32 {
    piece.wrapping_mul(0x9e37_79b1)
}

impl<const WORDS: usize, const SHIFT: u32> Table<WORDS, SHIFT> {
    pub(super) fn may_have(&self, piece: u32) -> bool {
        self.bits.at(piece) != 0
    }

    /// Opens the gates of the literals whose piece this is; whether all that share its mark were found.
    pub(super) fn find(&self, piece: u32, value: &[u8], at: usize, open: &mut [u64]) -> bool {
        let bucket = (hashed(piece) >> (32 - BUCKET_BITS)) as usize;
        let (Some(&start), Some(&end)) = (self.starts.get(bucket), self.starts.get(bucket + 1)) else { return true };
        let mut all = true;
        for entry in self.entries.get(start as usize..end as usize).unwrap_or_default() {
            if entry.piece != piece {
                all &= !Marks::<WORDS, SHIFT>::same_mark(entry.piece, piece);
                continue;
            }
            let literal = slice(&self.literals, entry.literal);
            let found = (at + 1)
                .checked_sub(entry.before as usize)
                .and_then(|start| value.get(start..)?.get(..literal.len()))
                .is_some_and(|found| found.eq_ignore_ascii_case(literal));
            all &= found;
            if found {
                slice(&self.gates, entry.gates).iter().for_each(|gate| open_gate(open, *gate));
            }
        }
        all
    }
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
    pub(super) fn new(length: usize) -> Self {
        let mut usual = Marks::new();
        for text in USUAL {
            text.windows(length).for_each(|bytes| usual.set(piece_of(bytes)));
        }
        Self { length, list: Vec::new(), crowds: vec![0; 1 << CROWD_BITS], usual }
    }

    /// Adds a literal by the piece of it that is rarest, and in the fewest literals so far.
    pub(super) fn add(&mut self, literal: &'g [u8], gates: Vec<u32>) {
        let crowd = |piece: u32| self.crowds.get((hashed(piece) >> (32 - CROWD_BITS)) as usize).copied().unwrap_or(0);
        let pieces = literal.windows(self.length).enumerate().map(|(at, bytes)| {
            let piece = piece_of(bytes);
            let rarity: f64 = bytes.iter().map(|&byte| frequency(byte)).product();
            let usual = if self.usual.at(piece) != 0 { 100.0 } else { 1.0 };
            (at + self.length, piece, rarity * usual * f64::from(1 + crowd(piece) / 4))
        });
        let Some((before, piece, _)) = pieces.min_by(|one, other| one.2.total_cmp(&other.2)) else { return };
        let bucket = hashed(piece) >> (32 - BUCKET_BITS);
        let Some(crowd) = self.crowds.get_mut((hashed(piece) >> (32 - CROWD_BITS)) as usize) else { return };
        match *crowd < BUCKET {
            true => {
                *crowd += 1;
                self.list.push((bucket, piece, before, literal, gates));
            }
            // The place is crowded: the piece alone opens the gates of all literals that follow.
            false => self.list.push((bucket, piece, 0, &[], gates)),
        }
    }

    pub(super) fn finish<const WORDS: usize, const SHIFT: u32>(mut self) -> Table<WORDS, SHIFT> {
        self.list.sort_unstable();
        let mut bits = Marks::new();
        let mut starts = vec![0u32; (1 << BUCKET_BITS) + 1];
        let (mut entries, mut literals, mut all) = (Vec::new(), Vec::new(), Vec::new());
        let same = |one: &Placed, other: &Placed| (one.1, one.3) == (other.1, other.3);
        for same in self.list.chunk_by(same) {
            let Some((bucket, piece, before, literal, _)) = same.first() else { continue };
            let mut gates: Vec<u32> = same.iter().flat_map(|(.., gates)| gates.iter().copied()).collect();
            gates.sort_unstable();
            gates.dedup();
            bits.set(*piece);
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
