//! The headers of 7z (7zFormat.txt of the LZMA SDK): the streams, how they are packed, and the files in them.

use crate::bytes::{le32, place};

/// Ids of what a header has.
const END: u64 = 0;
const HEADER: u64 = 1;
const PACKED_HEADER: u64 = 0x17;
const PROPERTIES: u64 = 2;
const OTHER_STREAMS: u64 = 3;
const STREAMS: u64 = 4;
const FILES: u64 = 5;
const PACKED: u64 = 6;
const FOLDERS: u64 = 7;
const PARTS: u64 = 8;
const SIZE: u64 = 9;
const SUMS: u64 = 0x0a;
const FOLDER: u64 = 0x0b;
const FOLDER_SIZES: u64 = 0x0c;
const PART_COUNTS: u64 = 0x0d;
const EMPTY: u64 = 0x0e;
const NAMES: u64 = 0x11;
const ATTRIBUTES: u64 = 0x15;
/// The most coders of a folder, and the most streams of all of them.
const MAX_CODERS: u64 = 32;
/// The mode of a file on Unix is in the upper half of its attributes, and is that of a symbolic link.
const LINK: u32 = 0o120_000;

/// A coder of a folder, with one stream in and one out where it is `simple`.
pub(super) struct Coder<'b> {
    pub(super) method: &'b [u8],
    pub(super) properties: &'b [u8],
    pub(super) simple: bool,
}

/// Content that is packed together: files behind each other.
pub(super) struct Folder<'b> {
    pub(super) coders: Vec<Coder<'b>>,
    /// How many packed streams it is made of.
    packed: usize,
    /// Which of the streams that coders yield is its content.
    main: usize,
    /// The lengths of all of them.
    sizes: Vec<u64>,
    /// The sum of its content.
    pub(super) crc: Option<u32>,
    /// The lengths and the sums of the files in it.
    pub(super) parts: Vec<(u64, Option<u32>)>,
}

impl Folder<'_> {
    /// The length of its content.
    pub(super) fn size(&self) -> Option<u64> {
        self.sizes.get(self.main).copied()
    }
}

/// The streams of a file.
#[derive(Default)]
pub(super) struct Streams<'b> {
    /// Where the first packed stream begins, behind the header at the beginning of the file.
    pub(super) start: u64,
    packed: Vec<u64>,
    pub(super) folders: Vec<Folder<'b>>,
}

impl<'b> Streams<'b> {
    /// Each folder, and the packed bytes of its first stream in the bytes behind the header at the beginning of the file.
    pub(super) fn data<'s>(&'s self, bytes: &'b [u8]) -> impl Iterator<Item = (&'s Folder<'b>, &'b [u8])> {
        let (mut at, mut sizes) = (self.start, self.packed.iter());
        self.folders.iter().map_while(move |folder| {
            let own: Vec<u64> = sizes.by_ref().take(folder.packed).copied().collect();
            let first = bytes.get(place(at)..)?.get(..place(*own.first()?))?;
            at = own.iter().try_fold(at, |at, size| at.checked_add(*size))?;
            Some((folder, first))
        })
    }
}

/// A file.
pub(super) struct File {
    /// Its name, from UTF-16.
    pub(super) name: String,
    /// It has content, the next part of a folder.
    pub(super) filled: bool,
    pub(super) link: bool,
}

/// What a header has.
pub(super) enum Header<'b> {
    /// The streams, and the files in them.
    Plain(Streams<'b>, Files),
    /// The stream that the header itself is in.
    Packed(Streams<'b>),
}

/// The files of a header.
#[derive(Default)]
pub(super) struct Files {
    /// How many there are; `list` may have less.
    pub(super) count: usize,
    pub(super) list: Vec<File>,
}

/// Reads a header; `None` where it is damaged, or has more than `most` streams, folders or parts. Of more files, only the number is read.
pub(super) fn read(header: &[u8], most: usize) -> Option<Header<'_>> {
    let mut rest = Cursor { rest: header, most };
    match rest.number()? {
        HEADER => {}
        PACKED_HEADER => return Some(Header::Packed(streams(&mut rest)?)),
        _ => return None,
    }
    let (mut main, mut files) = (Streams::default(), Files::default());
    loop {
        match rest.number()? {
            END => return Some(Header::Plain(main, files)),
            PROPERTIES => while rest.property()?.0 != END {},
            OTHER_STREAMS => drop(streams(&mut rest)?),
            STREAMS => main = streams(&mut rest)?,
            FILES => {
                files = read_files(&mut rest)?;
                if files.count > most {
                    return Some(Header::Plain(main, files));
                }
            }
            _ => return None,
        }
    }
}

/// The rest of a header.
struct Cursor<'b> {
    rest: &'b [u8],
    /// The most things of a kind: each takes some bytes of memory more than it has in a header.
    most: usize,
}

impl<'b> Cursor<'b> {
    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    /// A number: as many bits of its first byte are set as bytes follow, the lowest first. The other bits are the highest ones.
    fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        let more = first.leading_ones();
        let low = self.take(usize::try_from(more).ok()?)?;
        let value = low.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        let high = 0x7f_u8.checked_shr(more).map_or(0, |mask| u64::from(first & mask));
        Some(value | high.checked_shl(8 * more).unwrap_or(0))
    }

    /// A number of things that follow.
    fn count(&mut self) -> Option<usize> {
        self.number().map(place).filter(|count| *count <= self.most)
    }

    /// A property: its id and its content. The end of all has no content.
    fn property(&mut self) -> Option<(u64, &'b [u8])> {
        let id = self.number()?;
        let length = if id == END { 0 } else { self.number().map(place)? };
        Some((id, self.take(length)?))
    }

    /// So many bits, the highest of a byte first.
    fn bits(&mut self, count: usize) -> Option<Vec<bool>> {
        let bytes = self.take(count.div_ceil(8))?;
        Some(bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1)).take(count).collect())
    }

    /// Bits that may all be set, which a byte says.
    fn optional_bits(&mut self, count: usize) -> Option<Vec<bool>> {
        if self.byte()? == 0 { self.bits(count) } else { Some(vec![true; count]) }
    }

    /// The sums of so many streams.
    fn sums(&mut self, count: usize) -> Option<Vec<Option<u32>>> {
        let known = self.optional_bits(count)?;
        known.into_iter().map(|known| if known { self.word().map(Some) } else { Some(None) }).collect()
    }

    fn word(&mut self) -> Option<u32> {
        le32(self.take(4)?, 0)
    }

    fn numbers(&mut self, count: usize) -> Option<Vec<u64>> {
        (0..count).map(|_| self.number()).collect()
    }
}

fn streams<'b>(rest: &mut Cursor<'b>) -> Option<Streams<'b>> {
    let mut streams = Streams::default();
    let mut counted = false;
    loop {
        match rest.number()? {
            END => break,
            PACKED => {
                streams.start = rest.number()?;
                let count = rest.count()?;
                let mut id = rest.number()?;
                if id == SIZE {
                    streams.packed = rest.numbers(count)?;
                    id = rest.number()?;
                }
                if id == SUMS {
                    rest.sums(count)?;
                    id = rest.number()?;
                }
                if id != END {
                    return None;
                }
            }
            FOLDERS => streams.folders = folders(rest)?,
            // Twice would cost as much as the folders each time.
            PARTS if !counted => {
                parts(rest, &mut streams.folders)?;
                counted = true;
            }
            _ => return None,
        }
    }
    if !counted {
        for folder in &mut streams.folders {
            folder.parts = vec![(folder.size()?, folder.crc)];
        }
    }
    Some(streams)
}

fn folders<'b>(rest: &mut Cursor<'b>) -> Option<Vec<Folder<'b>>> {
    if rest.number()? != FOLDER {
        return None;
    }
    let count = rest.count()?;
    // They may be elsewhere, which no program writes.
    if rest.byte()? != 0 {
        return None;
    }
    let mut list = (0..count).map(|_| folder(rest)).collect::<Option<Vec<_>>>()?;
    if rest.number()? != FOLDER_SIZES {
        return None;
    }
    for folder in &mut list {
        let count = folder.sizes.len();
        folder.sizes = rest.numbers(count)?;
    }
    let mut id = rest.number()?;
    if id == SUMS {
        let sums = rest.sums(count)?;
        list.iter_mut().zip(sums).for_each(|(folder, sum)| folder.crc = sum);
        id = rest.number()?;
    }
    (id == END).then_some(list)
}

fn folder<'b>(rest: &mut Cursor<'b>) -> Option<Folder<'b>> {
    let few = |number: u64| Some(number).filter(|number| (1..=MAX_CODERS).contains(number));
    let count = few(rest.number()?)?;
    let (mut coders, mut inputs, mut outputs) = (Vec::new(), 0_u64, 0_u64);
    for _ in 0..count {
        let flags = rest.byte()?;
        // The highest bit is for other methods of the same coder, which no program writes.
        if flags & 0x80 != 0 {
            return None;
        }
        let method = rest.take(usize::from(flags & 0x0f))?;
        let (ins, outs) = if flags & 0x10 != 0 { (few(rest.number()?)?, few(rest.number()?)?) } else { (1, 1) };
        let length = if flags & 0x20 != 0 { rest.number().map(place)? } else { 0 };
        coders.push(Coder { method, properties: rest.take(length)?, simple: ins == 1 && outs == 1 });
        (inputs, outputs) = (inputs.saturating_add(ins), outputs.saturating_add(outs));
    }
    let (inputs, outputs) = (few(inputs)?, few(outputs)?);
    let bound = outputs.checked_sub(1)?;
    let mut used = vec![false; place(outputs)];
    for _ in 0..bound {
        let (_, output) = (rest.number()?, rest.number()?);
        *used.get_mut(place(output))? = true;
    }
    let packed = inputs.checked_sub(bound).filter(|packed| *packed > 0)?;
    if packed > 1 {
        rest.numbers(place(packed))?;
    }
    let main = used.iter().position(|used| !used)?;
    Some(Folder { coders, packed: place(packed), main, sizes: vec![0; place(outputs)], crc: None, parts: Vec::new() })
}

/// The files in folders: how many, their lengths but for the last one of each, their sums.
fn parts(rest: &mut Cursor<'_>, folders: &mut [Folder<'_>]) -> Option<()> {
    let mut id = rest.number()?;
    let mut counts = vec![1; folders.len()];
    if id == PART_COUNTS {
        let mut total = 0_usize;
        for count in &mut counts {
            *count = rest.count()?;
            total = total.saturating_add(*count);
        }
        if total > rest.most {
            return None;
        }
        id = rest.number()?;
    }
    for (folder, count) in folders.iter_mut().zip(&counts) {
        let mut left = folder.size()?;
        folder.parts.clear();
        for _ in 1..*count {
            let size = if id == SIZE { rest.number()? } else { return None };
            left = left.checked_sub(size)?;
            folder.parts.push((size, None));
        }
        if *count > 0 {
            let crc = folder.crc.filter(|_| *count == 1);
            folder.parts.push((left, crc));
        }
    }
    if id == SIZE {
        id = rest.number()?;
    }
    if id == SUMS {
        // The sum of a folder is that of its only file.
        let open = folders.iter_mut().filter(|folder| folder.parts.len() != 1 || folder.crc.is_none());
        let parts: Vec<_> = open.flat_map(|folder| folder.parts.iter_mut()).collect();
        let sums = rest.sums(parts.len())?;
        parts.into_iter().zip(sums).for_each(|((_, crc), sum)| *crc = sum);
        id = rest.number()?;
    }
    (id == END).then_some(())
}

fn read_files(rest: &mut Cursor<'_>) -> Option<Files> {
    let count = rest.number().map(place)?;
    if count > rest.most {
        return Some(Files { count, list: Vec::new() });
    }
    let (mut names, mut empty, mut attributes) = (Vec::new(), Vec::new(), Vec::<u32>::new());
    loop {
        let (id, content) = rest.property()?;
        let mut content = Cursor { rest: content, most: rest.most };
        match id {
            END => break,
            EMPTY => empty = content.bits(count)?,
            NAMES => {
                if content.byte()? != 0 {
                    return None;
                }
                let units: Vec<u16> =
                    content.rest.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
                let (last, whole) = units.split_last()?;
                if *last != 0 {
                    return None;
                }
                let text = |units: &[u16]| String::from_utf16_lossy(units);
                names = whole.split(|unit| *unit == 0).take(count.saturating_add(1)).map(text).collect();
            }
            ATTRIBUTES => {
                let known = content.optional_bits(count)?;
                if content.byte()? != 0 {
                    return None;
                }
                let word = |known| if known { content.word() } else { Some(0) };
                attributes = known.into_iter().map(word).collect::<Option<Vec<_>>>()?;
            }
            _ => {}
        }
    }
    let file = |(at, name)| File {
        name,
        filled: !empty.get(at).copied().unwrap_or(false),
        link: attributes.get(at).is_some_and(|attributes| (*attributes >> 16) & 0o170_000_u32 == LINK),
    };
    Some(Files { count, list: names.into_iter().enumerate().map(file).collect() })
}
