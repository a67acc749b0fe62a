//! What nodes decide together through the store: budgets and sets with a cap.

use super::Pending;

/// The most rows of budgets that are kept, and the same of sets: an amount that was taken within one slice of time, a member. A
/// further one is refused, because whatever gives way would be forgotten before its time. Of these, one node has a quarter at most, so that
/// no node takes all of the room.
pub const MAX_COUNT_ROWS: u32 = 200_000;
/// The most rows that one node has made.
pub const MAX_COUNT_ROWS_OF_NODE: u32 = MAX_COUNT_ROWS / 4;

/// The part of a [`Store`](super::Store) that shared counts need. What was answered with `Ok` is durable, and each call is one
/// transaction: of calls at once, each sees what those before it have made. Slices of time are numbered from 1970 on.
pub trait CountStore: Send + Sync + 'static {
    /// Takes an amount of a budget, unless the sum of the slices within its window would be above its limit.
    fn budget_take(&self, take: BudgetTake) -> Pending<'_, BudgetTaken>;

    /// Adds a member to a set, unless it is full. The slice of a member that is in the set is the later one from then on.
    fn set_add(&self, add: SetAdd) -> Pending<'_, SetAdded>;

    /// Forgets what has left its window at or before a moment, in milliseconds since 1970; how many rows.
    fn counts_sweep(&self, until_millis: u64) -> Pending<'_, u64>;
}

/// Which budget or set, and where its window is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// What is counted; the same name with other slices is another scope.
    pub scope: String,
    /// The hash of the key.
    pub key: u64,
    /// The current slice.
    pub slice: u64,
    /// The oldest slice that is within the window.
    pub first: u64,
    /// When the current slice leaves the window, in milliseconds since 1970.
    pub until_millis: u64,
    /// The node that asks.
    pub node: String,
}

/// What is to be taken of a budget.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetTake {
    /// Which budget.
    pub of: Counted,
    /// How much.
    pub amount: u32,
    /// How much may be taken within the window in all; more than [`u32::MAX`] equals that.
    pub limit: u64,
}

/// The outcome of a take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetTaken {
    /// What was decided.
    pub outcome: TakeOutcome,
    /// The slices within the window, each with what was taken, this take included; newest first.
    pub sums: Vec<(u64, u32)>,
}

/// What was decided on a take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TakeOutcome {
    /// The amount was taken.
    Taken,
    /// It would be above the limit.
    Over,
    /// Nothing was decided: the store has no room for another row.
    #[default]
    Full,
}

/// What is to be added to a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetAdd {
    /// Which set.
    pub of: Counted,
    /// The hash of the member.
    pub member: u64,
    /// The most members of the set.
    pub cap: u32,
    /// Members that nodes have added without asking.
    pub known: Vec<u64>,
}

/// The outcome of an addition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetAdded {
    /// What was decided.
    pub outcome: AddOutcome,
    /// How many members the set has, with those that nodes have added without asking.
    pub size: u32,
    /// The members within the window that were added by asking, each with its slice.
    pub members: Vec<(u64, u64)>,
}

/// What was decided on an addition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddOutcome {
    /// The member is new.
    Added,
    /// It was in the set.
    Known,
    /// The set is full.
    Over,
    /// Nothing was decided: the store has no room for another row.
    #[default]
    Full,
}
