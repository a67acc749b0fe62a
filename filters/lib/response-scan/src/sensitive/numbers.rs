//! Numbers: payment cards, social security numbers, and where IBANs and e-mail addresses may begin.
//!
//! The prefilter reads 64 bytes at a time and makes bits of them. Digits with single separators form runs, and only runs of 11 bytes
//! are read: the shortest number is `123-45-6789`.

use super::checksum::luhn;
use super::emails::Emails;
use super::{Detector, DetectorSet, Finding, byte, byte_before, iban, is_inside_word, is_word};
use crate::blocks::{BLOCK, Block};

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
        runs.push(digits.here | separators);
        let four = runs.four();
        if four >> 63 == 0 {
            continue;
        }
        each(runs_of_eleven(four), |place| {
            if at + place >= done && at + place < text.len() {
                done = read_run(text, at + place, set, found);
            }
        });
        let letters = if corsica { behind_six(four) } else { 0 };
        if letters != 0 {
            each(letters & block.either(b'A', b'B'), |place| found.extend(corsican(text, at + place)));
        }
    }
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

/// The bytes of the block that follow six side by side, of the last of four.
fn behind_six(four: u128) -> u64 {
    high((four & four << 2) << 1)
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
}

/// Reads the run of digits and single separators around a place; the place behind it.
fn read_run(text: &[u8], place: usize, set: DetectorSet, found: &mut Vec<Finding>) -> usize {
    let mut at = place;
    let floor = place.saturating_sub(BACK);
    let joins = |at: usize| {
        let (this, before) = (byte(text, at), byte_before(text, at));
        this.is_ascii_digit() || (is_separator(this) && before.is_ascii_digit())
    };
    while at > floor && joins(at - 1) {
        at -= 1;
    }
    // The last groups, the oldest first; those that can still begin a number.
    let mut window: [Option<Group>; GROUPS] = [None; GROUPS];
    let mut next = at;
    loop {
        let start = next;
        while byte(text, next).is_ascii_digit() {
            next += 1;
        }
        if next == start {
            break;
        }
        window.rotate_left(1);
        if let Some(last) = window.last_mut() {
            *last = Some(Group { start, end: next });
        }
        judge(text, &mut window, set, found);
        if !is_separator(byte(text, next)) {
            break;
        }
        next += 1;
    }
    next.max(place + 1)
}

fn is_separator(byte: u8) -> bool {
    byte == b' ' || byte == b'-'
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
        let inner = byte(text, first.end);
        let mut separators = groups.iter().flatten().take(count - 1).map(|group| byte(text, group.end));
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
    let hyphen = byte_before(text, first.start) == b'-' || byte(text, last.end) == b'-';
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

/// A French number of Corsica, by the place of its letter: `1 85 05 2A 006 084 36`, or without spaces.
fn corsican(text: &[u8], letter: usize) -> Option<Finding> {
    let which = byte(text, letter);
    if !matches!(which, b'A' | b'B') || byte_before(text, letter) != b'2' {
        return None;
    }
    let spaced = byte_before(text, letter.checked_sub(1)?) == b' ';
    let (start, end) =
        if spaced { (letter.checked_sub(9)?, letter + 12) } else { (letter.checked_sub(6)?, letter + 9) };
    let whole = text.get(start..end)?;
    let shape: &[u8] = if spaced { b"d dd dd dL ddd ddd dd" } else { b"ddddddLdddddddd" };
    let fits = whole.len() == shape.len()
        && whole.iter().zip(shape).all(|(byte, kind)| match kind {
            b'd' => byte.is_ascii_digit(),
            b'L' => true,
            other => byte == other,
        });
    // The letter counts as the digit 0 here: the number is `20` minus one or two millions.
    let digits: Vec<u8> = whole
        .iter()
        .filter(|byte| **byte != b' ')
        .map(|byte| if byte.is_ascii_digit() { *byte } else { b'0' })
        .collect();
    let alone = !is_inside_word(text, start) && !is_word(byte(text, end));
    (fits && alone && is_nir(&digits, Some(which))).then_some(Finding { detector: Detector::FrNir, start, end })
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
