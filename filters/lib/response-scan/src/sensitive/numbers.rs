//! Numbers: payment cards, social security numbers, and where IBANs and e-mail addresses may begin.
//!
//! The prefilter reads 64 bytes at a time and makes bits of them. Digits with single separators form runs, and only runs of 11 bytes
//! are read (the shortest number is `123-45-6789`), and those with a separator of several bytes (`&nbsp;`).

use super::checksum::luhn;
use super::emails::Emails;
use super::separators::{Separator, begins_long, separator_at, separator_before};
use super::{Detector, DetectorSet, Finding, byte, byte_before, iban, is_inside_word, is_word};
use crate::blocks::{BLOCK, Block};
use crate::escapes::rest_of_escape;

/// The fewest and the most digits of a number.
const SHORTEST: usize = 9;
const LONGEST: usize = 19;
/// The most groups of one number: a French one has seven.
const GROUPS: usize = 7;
/// How far the beginning of a run is looked for, in bytes: further than the longest number.
const BACK: usize = 128;

pub(super) fn scan(text: &[u8], set: DetectorSet, mut emails: Option<&mut Emails>, found: &mut Vec<Finding>) {
    let numbers = set.has(Detector::Card) || set.has(Detector::FrNir) || set.has(Detector::UsSsn);
    let (ibans, corsica) = (set.has(Detector::Iban), set.has(Detector::FrNir));
    let (mut digits, mut capitals, mut runs, mut done) = (Bits::default(), Bits::default(), Runs(0), 0);
    for at in (0..text.len()).step_by(BLOCK) {
        let block = Block::of(text, at);
        if let Some(emails) = &mut emails {
            each(block.equal(b'@'), |place| emails.take(text, at + place));
        }
        digits.push(block.range(b'0', 10));
        if ibans {
            capitals.push(block.range(b'A', 26));
            // The second of two digits behind two capitals.
            let ends = digits.here & digits.earlier(1) & capitals.earlier(2) & capitals.earlier(3);
            each(ends, |place| found.extend(account(text, at + place)));
        }
        if !numbers {
            continue;
        }
        let behind = digits.earlier(1);
        let separators = if behind == 0 { 0 } else { block.either(b' ', b'-') & behind };
        let long = if behind == 0 { 0 } else { long_separators(&block) & behind };
        runs.push(digits.here | separators);
        let four = runs.four();
        let eleven = if four >> 63 == 0 { 0 } else { runs_of_eleven(four) };
        each(eleven | long, |place| {
            let is_run = eleven & 1 << place != 0 || begins_long(text, at + place);
            if is_run && at + place >= done && at + place < text.len() {
                done = read_run(text, at + place, set, found);
            }
        });
        if corsica && behind != 0 {
            each(block.either(b'A', b'B') & behind, |place| found.extend(corsican(text, at + place)));
        }
    }
}

/// Which bytes may begin a separator of several bytes: a reference, an escape, a character of UTF-8.
#[inline]
fn long_separators(block: &Block) -> u64 {
    block.either(b'&', b'\\') | block.either(0xc2, 0xe2) | block.equal(b'%')
}

/// The bits of a block, and of the one before it.
#[derive(Debug, Clone, Copy, Default)]
struct Bits {
    before: u64,
    here: u64,
}

impl Bits {
    #[inline]
    fn push(&mut self, bits: u64) {
        (self.before, self.here) = (self.here, bits);
    }

    /// The bits so many places earlier: 1 to 63.
    #[inline]
    fn earlier(self, places: u32) -> u64 {
        self.here << places | self.before >> (64 - places)
    }
}

/// Digits and single separators behind them, as bits: a block, and the one before it in the lower half.
struct Runs(u128);

impl Runs {
    #[inline]
    fn push(&mut self, bits: u64) {
        self.0 = u128::from(bits) << 64 | self.0 >> 64;
    }

    /// The last of four side by side.
    #[inline]
    fn four(&self) -> u128 {
        let two = self.0 & self.0 << 1;
        two & two << 2
    }
}

/// The last of eleven side by side in the block, of the last of four.
fn runs_of_eleven(four: u128) -> u64 {
    let eight = four & four << 4;
    high(eight & eight << 3)
}

/// The account number whose first two digits end here.
fn account(text: &[u8], second: usize) -> Option<Finding> {
    let start = second.checked_sub(3)?;
    iban::at(text, start).map(|end| Finding { detector: Detector::Iban, start, end })
}

/// Calls `visit` with the place of each bit.
#[inline]
fn each(mut mask: u64, mut visit: impl FnMut(usize)) {
    while mask != 0 {
        visit(mask.trailing_zeros() as usize);
        mask &= mask.wrapping_sub(1);
    }
}

fn high(mask: u128) -> u64 {
    (mask >> 64) as u64
}

/// A group of digits of a run.
#[derive(Clone, Copy)]
struct Group {
    start: usize,
    end: usize,
    /// The separator behind it; NUL for none.
    separator: u8,
}

/// Reads the run of digits and single separators around a place; the place behind it.
fn read_run(text: &[u8], place: usize, set: DetectorSet, found: &mut Vec<Finding>) -> usize {
    let mut at = place;
    let floor = place.saturating_sub(BACK);
    while at > floor {
        let separator = || separator_before(text, at).filter(|one| byte_before(text, at - one.length).is_ascii_digit());
        match byte_before(text, at) {
            b'0'..=b'9' => at -= 1,
            _ => match separator() {
                Some(separator) => at -= separator.length,
                None => break,
            },
        }
    }
    // Digits of an escape (`\u0022`) are none of a number. What follows a percent sign may be either.
    let escape = rest_of_escape(text, at);
    let mut next = place;
    if escape > 0 {
        next = next.max(read_groups(text, at + escape, set, found));
    }
    if escape == 0 || byte_before(text, at) == b'%' {
        next = next.max(read_groups(text, at, set, found));
    }
    next.max(place + 1)
}

/// Reads the groups of a run from its beginning on; the place behind it.
fn read_groups(text: &[u8], at: usize, set: DetectorSet, found: &mut Vec<Finding>) -> usize {
    // The last groups, the oldest first; those that can still begin a number.
    let mut window: [Option<Group>; GROUPS] = [None; GROUPS];
    let mut next = at;
    loop {
        let start = next;
        while byte(text, next).is_ascii_digit() {
            next += 1;
        }
        if next == start {
            return next;
        }
        let separator = separator_at(text, next);
        window.rotate_left(1);
        if let Some(last) = window.last_mut() {
            *last = Some(Group { start, end: next, separator: separator.map_or(0, |separator| separator.kind) });
        }
        judge(text, &mut window, set, found);
        let Some(separator) = separator else { return next };
        next += separator.length;
    }
}

/// Finds the numbers that end with the last group. The groups of a number are taken out.
fn judge(text: &[u8], window: &mut [Option<Group>; GROUPS], set: DetectorSet, found: &mut Vec<Finding>) {
    let Some(Some(last)) = window.last().copied() else { return };
    let behind = byte(text, last.end);
    let fraction = behind == b'.' && byte(text, last.end + 1).is_ascii_digit();
    if is_word(behind) || fraction {
        return;
    }
    for count in 1..=GROUPS {
        let Some(groups) = window.get(GROUPS - count..) else { return };
        let Some(Some(first)) = groups.first().copied() else { return };
        if is_inside_word(text, first.start) || byte_before(text, first.start) == b'.' {
            continue;
        }
        // One more separator of the same kind: a part of a longer number.
        let inner = first.separator;
        let mut separators = groups.iter().flatten().take(count - 1).map(|group| group.separator);
        if count > 1 && !separators.all(|separator| separator == inner) {
            return;
        }
        let total: usize = groups.iter().flatten().map(|group| group.end - group.start).sum();
        if total > LONGEST {
            return;
        }
        if total < SHORTEST {
            continue;
        }
        let lengths: Vec<usize> = groups.iter().flatten().map(|group| group.end - group.start).collect();
        let value: Vec<u8> = groups
            .iter()
            .flatten()
            .flat_map(|group| text.get(group.start..group.end).unwrap_or_default())
            .copied()
            .collect();
        let detector = match lengths.as_slice() {
            [3, 2, 4] if inner == b'-' && set.has(Detector::UsSsn) && is_ssn(text, first, last, &value) => {
                Detector::UsSsn
            }
            lengths if set.has(Detector::FrNir) && is_nir_shape(lengths) && is_nir(&value, None) => Detector::FrNir,
            lengths if set.has(Detector::Card) && is_card_shape(lengths) && is_card(&value) => Detector::Card,
            _ => continue,
        };
        found.push(Finding { detector, start: first.start, end: last.end });
        *window = [None; GROUPS];
        return;
    }
}

/// Area, group and serial number as the Social Security Administration assigns them, and no further hyphen beside.
fn is_ssn(text: &[u8], first: Group, last: Group, digits: &[u8]) -> bool {
    let hyphen = byte_before(text, first.start) == b'-' || last.separator == b'-';
    let (Some(area), Some(group), Some(serial)) = (digits.get(..3), digits.get(3..5), digits.get(5..)) else {
        return false;
    };
    !hyphen && area != b"000" && area != b"666" && area.first() != Some(&b'9') && group != b"00" && serial != b"0000"
}

fn is_nir_shape(lengths: &[usize]) -> bool {
    matches!(lengths, [15] | [13, 2] | [1, 2, 2, 2, 3, 3, 2])
}

/// A French number: sex, year, month, department, commune, order, and the key `97 - number mod 97`. For Corsica `2A` counts as 19 and
/// `2B` as 18 in the number; `corsica` is that letter, at the seventh place of the digits.
fn is_nir(digits: &[u8], corsica: Option<u8>) -> bool {
    let Some((number, key)) = digits.split_at_checked(13) else { return false };
    let value = |digits: &[u8]| digits.iter().fold(0u64, |sum, digit| sum * 10 + u64::from(digit.wrapping_sub(b'0')));
    let month = value(number.get(3..5).unwrap_or_default());
    let sex = number.first().is_some_and(|sex| matches!(sex, b'1' | b'2' | b'7' | b'8'));
    let shape = sex && matches!(month, 1..=12 | 20..=42 | 50..=99) && key.len() == 2;
    let number = match corsica {
        None => value(number),
        Some(letter) => value(number).saturating_sub(if letter == b'A' { 1_000_000 } else { 2_000_000 }),
    };
    shape && 97 - number % 97 == value(key)
}

/// The groups of a French number of Corsica around its letter: the digits in front of it, from the letter back, and those behind it.
const CORSICAN: ([usize; 4], [usize; 3]) = ([1, 2, 2, 1], [3, 3, 2]);

/// A French number of Corsica, by the place of its letter: `1 85 05 2A 006 084 36`, or without spaces.
fn corsican(text: &[u8], letter: usize) -> Option<Finding> {
    let which = byte(text, letter);
    if !matches!(which, b'A' | b'B') || byte_before(text, letter) != b'2' {
        return None;
    }
    let blank = |separator: &Separator| separator.kind == b' ';
    let spaced = separator_before(text, letter - 1).filter(blank).is_some();
    if !spaced && !byte_before(text, letter - 1).is_ascii_digit() {
        return None;
    }
    let (front, rest) = CORSICAN;
    let (mut start, mut end) = (letter, letter + 1);
    // The letter counts as the digit 0 here: the number is `20` minus one or two millions.
    let mut digits = std::collections::VecDeque::from([b'0']);
    for (place, count) in front.into_iter().enumerate() {
        if spaced && place > 0 {
            start -= separator_before(text, start).filter(blank)?.length;
        }
        for _ in 0..count {
            start = start.checked_sub(1)?;
            digits.push_front(byte(text, start));
        }
    }
    for count in rest {
        if spaced {
            end += separator_at(text, end).filter(blank)?.length;
        }
        for _ in 0..count {
            digits.push_back(byte(text, end));
            end += 1;
        }
    }
    let fits = digits.iter().all(u8::is_ascii_digit);
    let alone = !is_inside_word(text, start) && !is_word(byte(text, end));
    (fits && alone && is_nir(digits.make_contiguous(), Some(which))).then_some(Finding {
        detector: Detector::FrNir,
        start,
        end,
    })
}

/// The groups in which cards are printed.
fn is_card_shape(lengths: &[usize]) -> bool {
    matches!(lengths, [14..=19] | [4, 4, 4, 4] | [4, 4, 4, 4, 1..=3] | [4, 6, 4..=5] | [6, 13])
}

/// The beginnings of issuers, as first and last number of `digits` digits, and the lengths of their numbers.
const ISSUERS: &[(u32, u32, usize, &[usize])] = &[
    (4, 4, 1, &[16, 19]),
    (51, 55, 2, &[16]),
    (2221, 2720, 4, &[16]),
    (34, 34, 2, &[15]),
    (37, 37, 2, &[15]),
    (6011, 6011, 4, &[16, 19]),
    (644, 659, 3, &[16, 19]),
    (300, 305, 3, &[14]),
    (36, 36, 2, &[14]),
    (38, 39, 2, &[14]),
    (3528, 3589, 4, &[16]),
    (62, 62, 2, &[16, 17, 18, 19]),
    (2200, 2204, 4, &[16]),
    (5018, 5018, 4, &[16]),
    (6759, 6763, 4, &[16]),
];

fn is_card(digits: &[u8]) -> bool {
    let issued = ISSUERS.iter().any(|(first, last, count, lengths)| {
        let beginning = digits.iter().take(*count).fold(0, |sum, digit| sum * 10 + u32::from(digit.wrapping_sub(b'0')));
        (first..=last).contains(&&beginning) && lengths.contains(&digits.len())
    });
    // Numbers of one or two digits that repeat are fillers, not cards.
    let mut known = [false; 10];
    digits.iter().for_each(|digit| {
        known.iter_mut().skip(usize::from(digit.wrapping_sub(b'0'))).take(1).for_each(|known| *known = true);
    });
    let varied = known.iter().filter(|known| **known).count() > 1;
    issued && varied && luhn(digits.iter().copied())
}
