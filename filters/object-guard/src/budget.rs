//! Budgets: how many distinct objects of a kind a consumer may read in a window, on all nodes together.
//!
//! The control plane keeps the set of what each consumer has read in a window, which is never larger than the budget. Windows begin at fixed
//! times, so that all nodes agree on them, and nothing leaves a set before its window ends: an object that was let in or refused once is
//! so until then, and a worker remembers that.

mod memory;

use exchange::shared_counts::{AskedSet, Membership};
use exchange::{Answer, Ask, Host};
use node_state::keyed_hash;

use memory::Memory;

/// How long a request waits for the control plane, in milliseconds.
const WAIT: u32 = 1_000;
/// The slices of a window: a set is kept for up to one of them longer than needed.
const SLICES: u8 = 16;
/// The sets that a budget may have: a further one is asked when the one before is full.
const MAX_SETS: u32 = 5;
/// The largest budget.
pub(crate) const MAX_BUDGET: u32 = MAX_SETS * AskedSet::MAX_MEMBERS as u32;

/// The budgets of a step.
pub(crate) struct Budgets {
    sets: AskedSet,
    window_millis: u64,
    memory: Memory,
}

/// A request for an object that a budget limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spending {
    /// The consumer and the kind.
    key: Vec<u8>,
    member: Vec<u8>,
    /// The budget.
    pub(crate) limit: u32,
    /// The number of the window.
    window: u64,
    /// The set that was asked last.
    set: u32,
}

impl Spending {
    /// The consumer and the kind.
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }
}

/// Whether an object is within a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Within,
    /// It is one more than the budget.
    Beyond,
    /// The control plane has to say.
    Ask(Ask),
    /// The control plane has not answered.
    Unanswered(Uncounted),
    /// It was not waited for, because of what callers send.
    Overrun,
}

/// Why an object is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Uncounted {
    NoControlPlane,
    NoAnswer,
    Overrun,
}

impl Budgets {
    pub(crate) fn new(window_seconds: u32) -> Result<Self, String> {
        let window_millis = u64::from(window_seconds.max(1)) * 1000;
        let sets = AskedSet::new("objects.budget", window_millis, SLICES)?;
        Ok(Self { sets, window_millis, memory: Memory::default() })
    }

    /// A request of a consumer for an object of a kind, by their keys, and whether it is known to be within the budget.
    pub(crate) fn spend(
        &self,
        (consumer, kind): (&str, &[u8]),
        member: Vec<u8>,
        limit: u32,
        host: &dyn Host,
    ) -> (Spending, Outcome) {
        let key = [consumer.as_bytes(), b"\0", kind].concat();
        let window = self.sets.now(host) / self.window_millis;
        let spending = Spending { key, member, limit: limit.min(MAX_BUDGET), window, set: 0 };
        let outcome = self.known(&spending, host);
        (spending, outcome)
    }

    /// The outcome of a question.
    pub(crate) fn answered(&self, spending: &mut Spending, answer: &Answer, host: &dyn Host) -> Outcome {
        let Some(joined) = AskedSet::answered(answer) else {
            return match answer {
                Answer::Overrun => Outcome::Overrun,
                Answer::NoControlPlane => Outcome::Unanswered(Uncounted::NoControlPlane),
                Answer::Unavailable | Answer::Data(_) => Outcome::Unanswered(Uncounted::NoAnswer),
            };
        };
        if joined.membership != Membership::Full {
            self.memory.note(self.print(spending, host), true);
            return Outcome::Within;
        }
        let next = spending.set.saturating_add(1);
        if next < MAX_SETS && size_of_set(spending.limit, next) > 0 {
            spending.set = next;
            return self.ask(spending, host);
        }
        self.memory.note(self.print(spending, host), false);
        Outcome::Beyond
    }

    /// What is known of a request. One whose question was given up asks the same again, and counts once.
    pub(crate) fn known(&self, spending: &Spending, host: &dyn Host) -> Outcome {
        match self.memory.known(self.print(spending, host)) {
            Some(true) => Outcome::Within,
            Some(false) => Outcome::Beyond,
            None => self.ask(spending, host),
        }
    }

    /// In how many seconds the window of a request ends; at least 1.
    pub(crate) fn ends_in(&self, spending: &Spending, host: &dyn Host) -> u64 {
        let end = spending.window.saturating_add(1).saturating_mul(self.window_millis);
        end.saturating_sub(self.sets.now(host)).div_ceil(1000).max(1)
    }

    fn ask(&self, spending: &Spending, host: &dyn Host) -> Outcome {
        let Spending { key, member, limit, window, set } = spending;
        let key = [window.to_le_bytes().as_slice(), &set.to_le_bytes(), key].concat();
        Outcome::Ask(self.sets.ask(host, &key, member, size_of_set(*limit, *set), WAIT))
    }

    /// A hash of all that decides, that no client can foresee.
    fn print(&self, spending: &Spending, host: &dyn Host) -> u64 {
        let Spending { key, member, limit, window, .. } = spending;
        let length = u64::try_from(key.len()).unwrap_or(u64::MAX);
        let numbers = [*window, self.window_millis, u64::from(*limit), length].map(u64::to_le_bytes).concat();
        keyed_hash(host.shared(), "objects.budget", &[numbers.as_slice(), key, member].concat())
    }
}

/// The most members of one of the sets of a budget.
fn size_of_set(limit: u32, set: u32) -> u16 {
    let full = u32::from(AskedSet::MAX_MEMBERS);
    u16::try_from(limit.saturating_sub(set.saturating_mul(full)).min(full)).unwrap_or(AskedSet::MAX_MEMBERS)
}
