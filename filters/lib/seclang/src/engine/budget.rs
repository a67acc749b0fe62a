//! The budget of a transaction.
//!
//! Work is counted in units of two to five instructions of a wasm VM, about one of a processor. Each transformation,
//! scan, run of an operator on a long value and long list is charged once; rules, tests, values and short lists, which cost
//! little, many at a time.
//! Memory is charged for what a transaction keeps. Both have a ceiling that grows with the bytes of the request (or of
//! its response). At the ceiling the phase ends; see [`super::ExceededLimit`].

use crate::transform::Transform;

/// The ceilings of the budget of a transaction: of its request, and of its response, which has as much work and a quarter
/// of the memory besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetLimits {
    /// The units of work that every transaction may take.
    pub work: u64,
    /// How many more for each byte of the request line, the headers and the body (decompressed).
    pub work_per_byte: u64,
    /// The bytes of memory that every transaction may keep.
    pub memory: u64,
    /// How many more for each of these bytes.
    pub memory_per_byte: u64,
}

impl BudgetLimits {
    /// No ceilings: for programs that compare engines.
    pub const NONE: Self = Self { work: u64::MAX, work_per_byte: 0, memory: u64::MAX, memory_per_byte: 0 };
}

impl Default for BudgetLimits {
    /// Several times what honest requests take: see `RATIONALE.md`.
    fn default() -> Self {
        Self { work: 150_000_000, work_per_byte: 760, memory: 24 << 20, memory_per_byte: 3 }
    }
}

/// The work and memory of a transaction when it reached a ceiling, and the ceilings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// Units of work.
    pub work: u64,
    /// The ceiling of these.
    pub work_ceiling: u64,
    /// Bytes of memory.
    pub memory: u64,
    /// The ceiling of these.
    pub memory_ceiling: u64,
}

/// Units for each byte that a transformation reads. Those that it changes cost [`Transform::units`] besides.
const TRANSFORMED: u64 = 2;
/// Units for each transformation.
const TRANSFORMATION: u64 = 400;
/// Units for each byte that the prefilter scans, and for each scan.
const SCANNED: u64 = 3;
const SCAN: u64 = 800;
/// Units for each position and literal that a scan looks at.
const SCAN_STEP: u64 = 52;
/// Units for each byte that is copied or compared.
const COPIED: u64 = 2;
/// Units for each byte that is searched for others.
const FOUND: u64 = 3;
/// Units for each byte of a body that is decoded, before and after.
const DECODED: u64 = 10;
/// Units for each byte of a body that a parser takes apart.
const PARSED: u64 = 16;
/// Units for each name of an argument.
const ARGUMENT: u64 = 500;
/// Units for each value, for each of its bytes, and the bytes of memory that it takes besides its own.
const VALUE: u64 = 250;
const KEPT: u64 = 4;
pub(super) const VALUE_SIZE: usize = 160;
/// Units for each value of a list that a rule looks through.
const LISTED: u64 = 50;
/// Units for each rule that is begun.
const RULE: u64 = 400;
/// Units for each test of a value, whether its operator is run or not.
const TEST: u64 = 110;
/// Units for each value that matches, and for each assignment.
const MATCH: u64 = 1_500;
const ASSIGNMENT: u64 = 800;

/// The share of the ceiling that the last phase has of its own: it writes the log of a transaction that reached the
/// ceiling, too.
const LAST_PHASE: u64 = 16;

/// The most units or bytes of one charge, and the highest ceiling: no sum of them overflows.
const CHARGE: u64 = 1 << 48;
const CEILING: u64 = 1 << 60;

/// What is subtracted from the work that is left while no memory is.
const SHORT: i64 = 1 << 61;

/// What is left of the budget of a transaction, and its ceilings. Charges are many and small: each is one subtraction, and the sign of
/// one number tells whether anything is left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    limits: BudgetLimits,
    /// Units of work; below 0 over the ceiling. Less [`SHORT`] where memory is over its ceiling.
    left: i64,
    work_ceiling: i64,
    /// Bytes of memory; below 0 over the ceiling.
    memory_left: i64,
    memory_ceiling: i64,
    /// Whether memory is over its ceiling.
    short_of_memory: bool,
    /// For [`super::Work`].
    pub(super) transformed: u64,
    pub(super) scanned: u64,
    pub(super) searched: u64,
    pub(super) values: u64,
    pub(super) name_bytes: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(BudgetLimits::default())
    }
}

impl Budget {
    /// An unspent budget.
    pub(super) fn new(limits: BudgetLimits) -> Self {
        Self {
            limits,
            left: ceiling(limits.work),
            work_ceiling: ceiling(limits.work),
            memory_left: ceiling(limits.memory),
            memory_ceiling: ceiling(limits.memory),
            short_of_memory: false,
            transformed: 0,
            scanned: 0,
            searched: 0,
            values: 0,
            name_bytes: 0,
        }
    }

    /// Other ceilings for a transaction that has just begun.
    pub(super) fn set_limits(&mut self, limits: BudgetLimits) {
        self.limits = limits;
        self.raise_work(ceiling(limits.work) - self.work_ceiling);
        self.raise_memory(ceiling(limits.memory) - self.memory_ceiling);
    }

    /// The transaction brings more bytes, so its ceilings grow.
    pub(super) fn bring(&mut self, bytes: usize) {
        let bytes = number(bytes);
        let BudgetLimits { work_per_byte, memory_per_byte, .. } = self.limits;
        self.raise_work(amount(bytes.saturating_mul(work_per_byte)));
        self.raise_memory(amount(bytes.saturating_mul(memory_per_byte)));
    }

    /// Work in proportion to what comes, which leaves as much of the budget as there was: the ceiling grows by what it is
    /// charged with.
    pub(super) fn add_paid(&mut self, charge: impl FnOnce(&mut Self)) {
        let before = self.work_left();
        charge(self);
        self.raise_work(before.saturating_sub(self.work_left()));
    }

    /// What another transaction of the same request has spent, and may, counts here as well.
    pub(super) fn go_on_from(&mut self, other: &Self) {
        let (work, memory) = (other.work_ceiling - other.work_left(), other.memory_ceiling - other.memory_left);
        self.raise_work((other.work_ceiling - self.work_ceiling).max(0));
        self.raise_memory((other.memory_ceiling - self.memory_ceiling).max(0));
        self.left -= work;
        self.memory_left -= memory;
        self.note_memory();
    }

    /// The response begins, which has a budget of its own whatever the request took.
    pub(super) fn renew(&mut self) {
        self.allow(self.limits.work, self.limits.memory / 4);
    }

    /// The last phase begins.
    pub(super) fn renew_for_last_phase(&mut self) {
        self.allow(self.limits.work / LAST_PHASE, self.limits.memory / LAST_PHASE);
    }

    fn allow(&mut self, work: u64, memory: u64) {
        self.raise_work((ceiling(work) - self.work_left()).max(0));
        self.raise_memory((ceiling(memory) - self.memory_left).max(0));
    }

    fn raise_work(&mut self, by: i64) {
        self.work_ceiling = self.work_ceiling.saturating_add(by);
        self.left = self.left.saturating_add(by);
    }

    fn raise_memory(&mut self, by: i64) {
        self.memory_ceiling = self.memory_ceiling.saturating_add(by);
        self.memory_left = self.memory_left.saturating_add(by);
        self.note_memory();
    }

    /// Memory was taken or returned.
    #[inline]
    fn note_memory(&mut self) {
        if (self.memory_left < 0) != self.short_of_memory {
            self.short_of_memory = !self.short_of_memory;
            self.left += if self.short_of_memory { -SHORT } else { SHORT };
        }
    }

    /// The units of work that are left, whatever memory is; below 0 over the ceiling.
    fn work_left(&self) -> i64 {
        self.left + if self.short_of_memory { SHORT } else { 0 }
    }

    /// Whether a ceiling was exceeded.
    #[inline]
    pub(super) fn is_spent(&self) -> bool {
        self.left < 0
    }

    /// The units that are left: none without memory.
    #[inline]
    pub(super) fn left(&self) -> u64 {
        self.left.max(0).unsigned_abs()
    }

    pub(super) fn spent(&self) -> Spent {
        let taken =
            |ceiling: i64, left: i64| (ceiling.saturating_sub(left).max(0).unsigned_abs(), ceiling.unsigned_abs());
        let (work, work_ceiling) = taken(self.work_ceiling, self.work_left());
        let (memory, memory_ceiling) = taken(self.memory_ceiling, self.memory_left);
        Spent { work, work_ceiling, memory, memory_ceiling }
    }

    /// Units that an operator has counted itself.
    #[inline]
    pub(super) fn charge(&mut self, units: u64) {
        self.left = self.left.wrapping_sub(amount(units));
    }

    #[inline]
    fn charge_each(&mut self, count: usize, units: u64, each: u64) {
        self.charge(number(count).min(CHARGE >> 12) * each + units);
    }

    /// A transformation of an input of `bytes` bytes; named if it has changed it.
    pub(super) fn charge_transformation(&mut self, bytes: usize, changed: Option<Transform>) {
        self.transformed += number(bytes);
        self.charge_each(bytes, TRANSFORMATION, TRANSFORMED + changed.map_or(0, Transform::units));
    }

    /// A scan of `bytes` bytes, and the positions and literals that it looked at besides.
    pub(super) fn charge_scan(&mut self, bytes: usize, steps: usize) {
        self.scanned += number(bytes);
        let steps = number(steps).min(CHARGE >> 12) * SCAN_STEP;
        self.charge_each(bytes, SCAN + steps, SCANNED);
    }

    /// How many scan steps the remaining units suffice for.
    pub(super) fn scan_steps_left(&self) -> usize {
        usize::try_from(self.left() / SCAN_STEP).unwrap_or(usize::MAX)
    }

    /// An operator was run on so many bytes; it counts its units itself.
    pub(super) fn note_searched(&mut self, bytes: usize) {
        self.searched += number(bytes);
    }

    pub(super) fn charge_copy(&mut self, bytes: usize) {
        self.charge_each(bytes, 0, COPIED);
    }

    /// Bytes that are searched for others.
    pub(super) fn charge_search(&mut self, bytes: usize) {
        self.charge_each(bytes, 0, FOUND);
    }

    /// A body of `sent` bytes that was decoded to `decoded` bytes.
    pub(super) fn charge_decoding(&mut self, sent: usize, decoded: usize) {
        self.charge_each(sent.saturating_add(decoded), 0, DECODED);
    }

    pub(super) fn charge_parsing(&mut self, bytes: usize) {
        self.charge_each(bytes, 0, PARSED);
    }

    /// A name of an argument, and the bytes that its place in a list takes.
    pub(super) fn charge_argument(&mut self, name: usize, place: usize) {
        self.name_bytes += number(name);
        self.charge_each(name, ARGUMENT, COPIED);
        self.keep(place);
    }

    /// A list of values that a rule is about to read.
    pub(super) fn charge_list(&mut self, length: usize) {
        self.charge_each(length, 0, LISTED);
    }

    /// The rules of a phase that were begun. They are few however large a request is, so that they are charged at once.
    pub(super) fn charge_rules(&mut self, rules: u64) {
        self.charge(rules.saturating_mul(RULE));
    }

    pub(super) fn charge_tests(&mut self, tests: usize) {
        self.charge_each(tests, 0, TEST);
    }

    pub(super) fn charge_match(&mut self) {
        self.charge(MATCH);
    }

    pub(super) fn charge_assignment(&mut self) {
        self.charge(ASSIGNMENT);
    }

    /// Values that are kept, and the bytes that they take: their own, and [`VALUE_SIZE`] for each.
    pub(super) fn charge_values(&mut self, values: usize, bytes: usize) {
        self.values += number(values);
        self.charge_each(values, 0, VALUE);
        self.charge_each(bytes.saturating_sub(values.saturating_mul(VALUE_SIZE)), 0, KEPT);
        self.keep(bytes);
    }

    /// Bytes of memory that are kept.
    pub(super) fn keep(&mut self, bytes: usize) {
        self.memory_left = self.memory_left.wrapping_sub(amount(number(bytes)));
        self.note_memory();
    }

    /// Bytes of memory that are released.
    pub(super) fn release(&mut self, bytes: usize) {
        self.memory_left = self.memory_left.wrapping_add(amount(number(bytes)));
        self.note_memory();
    }
}

/// A charge as it is subtracted. In a VM of 32 bits the bound costs nothing where a length is charged.
fn amount(units: u64) -> i64 {
    units.min(CHARGE).cast_signed()
}

fn ceiling(limit: u64) -> i64 {
    limit.min(CEILING).cast_signed()
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: BudgetLimits = BudgetLimits { work: 1000, work_per_byte: 10, memory: 500, memory_per_byte: 2 };

    #[test]
    fn ceilings_grow_with_what_a_request_brings() {
        let mut budget = Budget::new(LIMITS);
        budget.charge(1000);
        assert!(!budget.is_spent());
        budget.charge(1);
        assert!(budget.is_spent() && budget.left() == 0);
        budget.bring(5);
        assert_eq!((budget.is_spent(), budget.left()), (false, 49));
        budget.keep(510);
        assert!(!budget.is_spent());
        budget.keep(1);
        assert!(budget.is_spent());
        budget.release(1);
        assert!(!budget.is_spent());
        assert_eq!(budget.spent(), Spent { work: 1001, work_ceiling: 1050, memory: 510, memory_ceiling: 510 });
    }

    #[test]
    fn the_response_and_the_last_phase_have_their_own() {
        let mut budget = Budget::new(LIMITS);
        budget.charge(5000);
        budget.keep(5000);
        budget.renew();
        assert_eq!((budget.is_spent(), budget.left()), (false, 1000));
        budget.charge(1001);
        budget.renew_for_last_phase();
        assert_eq!((budget.is_spent(), budget.left()), (false, 1000 / LAST_PHASE));
        // What is left of more stays.
        let mut budget = Budget::new(LIMITS);
        budget.renew_for_last_phase();
        assert_eq!(budget.left(), 1000);
    }

    #[test]
    fn what_pays_for_itself_leaves_what_there_was() {
        let mut budget = Budget::new(LIMITS);
        budget.charge(400);
        budget.add_paid(|budget| budget.charge_decoding(1_000_000, 0));
        assert_eq!((budget.is_spent(), budget.left()), (false, 600));
    }

    #[test]
    fn nothing_overflows() {
        let mut budget = Budget::new(BudgetLimits::NONE);
        budget.charge(u64::MAX);
        budget.charge_transformation(usize::MAX, None);
        budget.bring(usize::MAX);
        budget.keep(usize::MAX);
        assert!(!budget.is_spent());
    }
}
