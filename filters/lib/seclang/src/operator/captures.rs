//! What an operator captured: the values of `TX.0` to `TX.9`; and what evaluating may still cost.

use super::rx::{BACKTRACK_BUDGET, Effort};

/// How many captures are kept: the whole match and nine groups.
pub const MAX_CAPTURES: usize = 10;

/// How many bytes of one capture are kept. Longer captures are cut: what is captured is copied per matched value, and
/// ten groups over a whole body must not multiply it.
pub const MAX_CAPTURE_LENGTH: usize = 64 * 1024;

/// How many units of work a step back costs.
const STEP: u64 = 60;
/// The most units of one charge: no sum of them overflows.
const CHARGE: u64 = 1 << 48;
/// What all steps back cost that there can be.
const ALL_STEPS: u64 = STEP * BACKTRACK_BUDGET as u64;

/// The captures of one evaluation, copied into one buffer that is reused from value to value.
#[derive(Debug)]
pub struct Captures {
    wanted: bool,
    limit_exceeded: bool,
    /// What all evaluations with these captures may still cost.
    backtracks_left: usize,
    /// What evaluations have cost since this was last asked, and what they may cost, in units of work.
    cost: u64,
    allowance: u64,
    len: usize,
    ranges: [Option<(usize, usize)>; MAX_CAPTURES],
    buffer: Vec<u8>,
}

impl Default for Captures {
    fn default() -> Self {
        Self {
            wanted: false,
            limit_exceeded: false,
            backtracks_left: BACKTRACK_BUDGET,
            cost: 0,
            allowance: u64::MAX,
            len: 0,
            ranges: [None; MAX_CAPTURES],
            buffer: Vec::new(),
        }
    }
}

impl Captures {
    /// No captures, and none wanted. The evaluations with them share one [`BACKTRACK_BUDGET`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Says whether the rule has the `capture` action: without it an operator need not look for groups.
    pub fn wanted(&mut self, wanted: bool) {
        self.wanted = wanted;
    }

    /// Whether captures are wanted.
    pub fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Forgets the captures and the flag of an exceeded limit; whether captures are wanted stays, and so does what was
    /// spent.
    pub fn clear(&mut self) {
        self.limit_exceeded = false;
        if std::mem::take(&mut self.len) > 0 {
            self.ranges = [None; MAX_CAPTURES];
            self.buffer.clear();
        }
    }

    /// The bytes of capture `index`; `None` if there is no such group, or if it took no part in the match.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let &(start, end) = self.ranges.get(index)?.as_ref()?;
        self.buffer.get(start..end)
    }

    /// One more than the highest capture set, at most [`MAX_CAPTURES`].
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was captured.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether an evaluation since the last [`Captures::clear`] gave up at a limit (backtracking, memory) and
    /// answered "no match": what `MSC_PCRE_LIMITS_EXCEEDED` reports.
    pub fn limit_exceeded(&self) -> bool {
        self.limit_exceeded
    }

    /// Records that a limit ended an evaluation.
    pub(super) fn set_limit_exceeded(&mut self) {
        self.limit_exceeded = true;
    }

    /// How many steps back of a backtracking engine are left: of [`BACKTRACK_BUDGET`], what evaluations have not spent.
    pub fn backtracks_left(&self) -> usize {
        self.backtracks_left
    }

    /// Says how many units of work evaluations may cost from now on: searches that step back stop there.
    pub fn allow(&mut self, units: u64) {
        self.allowance = units;
    }

    /// How many units of work evaluations may still cost.
    pub(super) fn left(&self) -> u64 {
        self.allowance.saturating_sub(self.cost)
    }

    /// What [`Captures::take_cost`] would return.
    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// How many units of work evaluations have cost since this was last asked. A unit is two to five instructions of a wasm VM.
    pub fn take_cost(&mut self) -> u64 {
        std::mem::take(&mut self.cost)
    }

    /// Charges what an operator is about to cost, or has cost, in units of work.
    pub(crate) fn charge(&mut self, units: u64) {
        self.cost = self.cost.wrapping_add(units.min(CHARGE));
    }

    /// What an evaluation may cost.
    pub(super) fn effort(&self) -> Effort {
        let allowance = self.left();
        let left = match allowance < ALL_STEPS {
            true => self.backtracks_left.min(usize::try_from(allowance / STEP).unwrap_or(usize::MAX)),
            false => self.backtracks_left,
        };
        Effort { left, spent: 0, cost: 0, allowance, limited: false }
    }

    /// Takes note of what an evaluation has cost.
    pub(super) fn spend(&mut self, effort: Effort) {
        self.charge(effort.cost);
        if effort.spent > 0 {
            self.backtracks_left = self.backtracks_left.saturating_sub(effort.spent);
            self.charge(u64::try_from(effort.spent).unwrap_or(u64::MAX).saturating_mul(STEP));
        }
        self.limit_exceeded |= effort.limited;
    }

    /// Stores a capture if captures are wanted, replacing what the index held.
    pub(crate) fn set(&mut self, index: usize, bytes: &[u8]) {
        if !self.wanted {
            return;
        }
        let Some(slot) = self.ranges.get_mut(index) else { return };
        let start = self.buffer.len();
        let kept = bytes.get(..MAX_CAPTURE_LENGTH).unwrap_or(bytes);
        self.cost = self.cost.wrapping_add(u64::try_from(kept.len()).unwrap_or(0));
        self.buffer.extend_from_slice(kept);
        *slot = Some((start, start + kept.len()));
        self.len = self.len.max(index + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_are_kept_only_when_wanted() {
        let mut captures = Captures::new();
        captures.set(0, b"a");
        assert_eq!((captures.len(), captures.get(0)), (0, None));
        captures.wanted(true);
        captures.set(0, b"ab");
        captures.set(2, b"");
        assert_eq!(captures.get(0), Some(&b"ab"[..]));
        assert_eq!(captures.get(1), None, "a group that took no part");
        assert_eq!(captures.get(2), Some(&b""[..]), "a group that matched nothing");
        assert_eq!(captures.get(10), None);
        assert_eq!(captures.len(), 3);
        captures.clear();
        assert!(captures.is_empty() && captures.is_wanted());
    }

    #[test]
    fn long_captures_are_cut_and_high_indexes_dropped() {
        let mut captures = Captures::new();
        captures.wanted(true);
        captures.set(9, &vec![b'x'; MAX_CAPTURE_LENGTH + 1]);
        captures.set(10, b"dropped");
        assert_eq!(captures.get(9).map(<[u8]>::len), Some(MAX_CAPTURE_LENGTH));
        assert_eq!(captures.len(), MAX_CAPTURES);
    }
}
