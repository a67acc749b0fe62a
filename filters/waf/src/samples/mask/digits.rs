//! Numbers of cards: 13 to 19 digits with the check digit of Luhn, in one run or in groups.

use super::{Edited, MASK, Mask, QUOTED_MASK};

const LENGTHS: std::ops::RangeInclusive<usize> = 13..=19;
/// The most groups of a number.
const GROUPS: usize = 5;

impl Mask<'_> {
    /// Masks numbers of cards, except those in the value that matched. In a JSON `document`, a number becomes a string.
    pub(super) fn digits(&self, text: &[u8], document: bool) -> Option<Vec<u8>> {
        let (mut edited, mut at, mut in_string) = (Edited::new(text), 0_usize, false);
        while let Some(byte) = text.get(at) {
            match byte {
                b'"' => in_string = !in_string,
                b'\\' if in_string => at = at.saturating_add(1),
                // The digits of an escape are no part of a number.
                b'%' if is_escape(text, at) => at = at.saturating_add(2),
                b'0'..=b'9' => {
                    let (card, end) = number(text, at);
                    if let Some(card) = card.filter(|card| !self.matched_cards.contains(card)) {
                        let length = length_in(text.get(at..).unwrap_or_default(), &card);
                        mask_number(&mut edited, at, at.saturating_add(length), document && !in_string);
                    }
                    at = end;
                    continue;
                }
                _ => {}
            }
            at = at.saturating_add(1);
        }
        edited.finish()
    }
}

/// Masks a number of a card. A `bare` one is a number of a document, with its sign and its fraction.
fn mask_number(edited: &mut Edited<'_>, start: usize, end: usize, bare: bool) {
    if !bare {
        edited.replace(start, end, MASK);
        return;
    }
    let is_signed = start.checked_sub(1).and_then(|before| edited.text.get(before)) == Some(&b'-');
    let rest = edited.text.get(end..).unwrap_or_default();
    let more = rest.iter().take_while(|byte| b".eE+-0123456789".contains(byte)).count();
    edited.replace(start.saturating_sub(usize::from(is_signed)), end.saturating_add(more), QUOTED_MASK);
}

fn is_escape(text: &[u8], at: usize) -> bool {
    matches!(text.get(at..), Some([_, high, low, ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

/// The numbers of cards in a text, without what separates their groups.
pub(in crate::samples) fn cards(text: &[u8]) -> Vec<Vec<u8>> {
    let (mut cards, mut at) = (Vec::new(), 0_usize);
    while let Some(byte) = text.get(at) {
        if !byte.is_ascii_digit() {
            at = at.saturating_add(1);
            continue;
        }
        let (card, end) = number(text, at);
        cards.extend(card);
        at = end;
    }
    cards
}

/// The number of a card that begins at a place, and where to go on.
fn number(text: &[u8], at: usize) -> (Option<Vec<u8>>, usize) {
    let rest = text.get(at..).unwrap_or_default();
    let run = digits(rest);
    let end = at.saturating_add(run.len());
    if is_card(run) {
        return (Some(run.to_vec()), end);
    }
    let Some(separator) = rest.get(run.len()).filter(|byte| b" -+".contains(byte)) else { return (None, end) };
    let (mut card, mut place) = (Vec::new(), at);
    for group in rest.split(|byte| byte == separator).take(GROUPS) {
        let run = digits(group);
        if !(3..=6).contains(&run.len()) {
            break;
        }
        card.extend_from_slice(run);
        place = place.saturating_add(run.len()).saturating_add(1);
        if is_card(&card) {
            return (Some(card), place.saturating_sub(1));
        }
        if run.len() < group.len() {
            break;
        }
    }
    (None, end)
}

/// How many bytes a card has in the text that begins with it, with what separates its groups.
fn length_in(text: &[u8], card: &[u8]) -> usize {
    let (mut left, mut length) = (card.len(), 0_usize);
    for byte in text {
        if left == 0 {
            break;
        }
        left = left.saturating_sub(usize::from(byte.is_ascii_digit()));
        length = length.saturating_add(1);
    }
    length
}

/// The digits that a text begins with.
fn digits(text: &[u8]) -> &[u8] {
    text.get(..text.iter().take_while(|byte| byte.is_ascii_digit()).count()).unwrap_or_default()
}

fn is_card(digits: &[u8]) -> bool {
    let sum = digits.iter().rev().enumerate().fold(0_u32, |sum, (place, digit)| {
        let digit = u32::from(digit.saturating_sub(b'0'));
        let doubled = digit.saturating_mul(2);
        sum.saturating_add(match place % 2 {
            0 => digit,
            _ => doubled.saturating_sub(if doubled > 9 { 9 } else { 0 }),
        })
    });
    LENGTHS.contains(&digits.len()) && sum % 10 == 0 && digits.iter().any(|digit| *digit != b'0')
}
