//! Objects whose numbers are close to each other.

use std::borrow::Cow;

use super::bytes::{Reader, Writer};
use crate::messages::WalkLimits;
use crate::shape::Identifier;

/// The most numbers that are kept.
pub(crate) const MAX_NUMBERS: u32 = 64;
/// How many identifiers of an object are compared with those of the one before.
const PARTS: usize = 4;
/// The bytes of a number: itself, when it came in seconds since the Unix epoch, and whether it came close to another one.
const BYTES: usize = 13;
/// The most bytes that it is written in.
pub(crate) const MAX_BYTES: usize = 2 + PARTS * 4 + 2 + MAX_NUMBERS as usize * BYTES + 4;

/// The numbers of the objects that a consumer has read, none of them twice within a while.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Walk<'r> {
    /// Prints of the identifiers of the last object, four bytes each.
    last: Cow<'r, [u8]>,
    /// The numbers, the oldest first.
    numbers: Cow<'r, [u8]>,
    /// Until when the numbers are a walk; 0 for never.
    until: u32,
}

/// A number of the list.
#[derive(Debug, Clone, Copy)]
struct Step {
    number: u64,
    at: u32,
    is_close: bool,
}

/// A walk that is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Steps {
    /// How many numbers.
    pub(crate) count: usize,
    /// The lowest and the highest of them.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// The median of the gaps between them.
    pub(crate) gap: u64,
}

impl<'r> Walk<'r> {
    /// Takes the number of an object that was not read lately.
    ///
    /// Of several identifiers the first that differs from the last object's counts: `/users/1/orders/9`, `/users/2/orders/9` is a walk
    /// over users, and one who looks at the orders 1 to 5 of many users walks over none.
    pub(crate) fn read(&mut self, identifiers: &[Identifier<'_>], now: u32, limits: &WalkLimits) {
        let parts = identifiers.get(identifiers.len().saturating_sub(PARTS)..).unwrap_or_default();
        let mut prints = Vec::with_capacity(PARTS * 4);
        parts.iter().for_each(|part| prints.extend_from_slice(&print(&part.bytes).to_le_bytes()));
        let pairs = || prints.as_chunks::<4>().0.iter().zip(self.last.as_chunks::<4>().0);
        let counts = match self.last.len() == prints.len() {
            true => pairs().position(|(one, other)| one != other).and_then(|place| parts.get(place)),
            false => parts.last(),
        };
        self.last = prints.into();
        let Some(number) = counts.and_then(|part| part.number) else { return };
        let min = usize::try_from(limits.min.clamp(2, MAX_NUMBERS)).unwrap_or(2);
        let more = (self.numbers.len() / BYTES + 1).saturating_sub(min) * BYTES;
        let kept = self.numbers.get(more..).unwrap_or_default();
        let is_close = list(kept).any(|known| known.number.abs_diff(number) <= limits.max_gap);
        let mut numbers = Vec::with_capacity(kept.len() + BYTES);
        numbers.extend_from_slice(kept);
        numbers.extend_from_slice(&number.to_le_bytes());
        numbers.extend_from_slice(&now.to_le_bytes());
        numbers.push(u8::from(is_close));
        self.numbers = numbers.into();
        self.until = self.judge(min, now, limits);
    }

    /// Until when the numbers are a walk.
    fn judge(&self, min: usize, now: u32, limits: &WalkLimits) -> u32 {
        if self.numbers.len() < min * BYTES {
            return 0;
        }
        // Of two neighbours with a small gap the later one came close to the other, and each number has two neighbours: so many are needed
        // for half of the gaps to be small. Numbers far from each other are not sorted for nothing.
        if self.list().filter(|step| step.is_close).count() < (min / 2).div_ceil(2) {
            return 0;
        }
        let ends = self.list().next().map_or(0, |oldest| oldest.at).saturating_add(limits.window_seconds);
        // Numbers of the time to come were written by a clock that has since been put back.
        let in_time = now <= ends && self.list().all(|step| step.at.saturating_sub(now) <= limits.window_seconds);
        let is_walk = in_time && self.steps().is_some_and(|steps| steps.gap <= limits.max_gap);
        if is_walk { ends } else { 0 }
    }

    /// The walk that is on.
    pub(crate) fn found(&self, now: u32, limits: &WalkLimits) -> Option<Steps> {
        let is_on = now <= self.until && self.until - now <= limits.window_seconds;
        if is_on { self.steps() } else { None }
    }

    fn list(&self) -> impl Iterator<Item = Step> {
        list(&self.numbers)
    }

    fn steps(&self) -> Option<Steps> {
        let mut sorted: Vec<u64> = self.list().map(|step| step.number).collect();
        sorted.sort_unstable();
        let mut gaps: Vec<u64> = sorted.iter().zip(sorted.iter().skip(1)).map(|(one, next)| next - one).collect();
        let middle = gaps.len().checked_sub(1)? / 2;
        let gap = *gaps.select_nth_unstable(middle).1;
        Some(Steps { count: sorted.len(), from: *sorted.first()?, to: *sorted.last()?, gap })
    }

    /// The bytes that it is written in.
    pub(crate) fn bytes(&self) -> usize {
        8 + self.last.len() + self.numbers.len()
    }

    pub(crate) fn write(&self, to: &mut Writer) {
        to.bytes(&self.last);
        to.bytes(&self.numbers);
        to.u32(self.until);
    }

    pub(crate) fn read_from(from: &mut Reader<'r>) -> Option<Self> {
        let (last, numbers) = (from.bytes()?, from.bytes()?);
        let fits = last.len() <= PARTS * 4 && numbers.len() <= MAX_NUMBERS as usize * BYTES;
        let whole = last.len().is_multiple_of(4) && numbers.len().is_multiple_of(BYTES);
        (fits && whole).then_some(Self { last: last.into(), numbers: numbers.into(), until: from.u32()? })
    }
}

fn list(numbers: &[u8]) -> impl Iterator<Item = Step> {
    numbers.as_chunks::<BYTES>().0.iter().filter_map(|step| {
        let (number, rest) = step.split_first_chunk()?;
        let (at, rest) = rest.split_first_chunk()?;
        let is_close = rest.first().is_some_and(|is_close| *is_close != 0);
        Some(Step { number: u64::from_le_bytes(*number), at: u32::from_le_bytes(*at), is_close })
    })
}

/// Tells identifiers of two objects in a row apart (FNV-1a). That two are taken for one has no consequence for long.
fn print(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
