//! What nodes count together: messages of the node link, and the questions that are answered from the counts of all nodes.
//!
//! A node sends its own counts as they are, not what was added, and the sums of all others come back in the same form. So a
//! message that comes twice, late or in another order changes nothing.

use prost::Message;

use crate::Topic;

/// The length of the key of the hashes that nodes have in common, in bytes.
pub const COUNT_KEY: usize = 16;
/// The most slices of a window.
pub const MAX_COUNT_SLICES: u32 = 16;
/// The longest name of what is counted, in bytes.
pub const MAX_COUNT_NAME: usize = 64;
/// The longest slice, in milliseconds: a week.
pub const MAX_COUNT_SLICE_MILLIS: u64 = 7 * 86_400_000;
/// The most members of a set.
pub const MAX_COUNT_MEMBERS: u32 = 1024;

/// What is counted: nodes count together what has an equal description.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Message)]
pub struct CountGroup {
    /// The name (`login.failures`), at most [`MAX_COUNT_NAME`] bytes.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its kind ([`CountKind`]).
    #[prost(enumeration = "CountKind", tag = "2")]
    pub kind: i32,
    /// The length of a slice of time in milliseconds; slices are numbered from the Unix epoch on.
    #[prost(uint64, tag = "3")]
    pub slice_millis: u64,
    /// How many slices the window has, 1 to [`MAX_COUNT_SLICES`]. A count stays for as many, and for the rest of its own.
    #[prost(uint32, tag = "4")]
    pub slices: u32,
    /// Of a set the most members, 1 to [`MAX_COUNT_MEMBERS`]; otherwise the most that one node may contribute to a key in a slice.
    #[prost(uint32, tag = "5")]
    pub cap: u32,
    /// From this total of all nodes on, or so many members, a key is sent to every node, also to one that has not counted it; 0 for
    /// never.
    #[prost(uint32, tag = "6")]
    pub everywhere_from: u32,
    /// How many keys a node has room for.
    #[prost(uint32, tag = "7")]
    pub max_keys: u32,
}

/// What a group counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, prost::Enumeration)]
#[repr(i32)]
pub enum CountKind {
    /// How often something happened.
    Window = 0,
    /// How much of a budget was taken.
    Budget = 1,
    /// Which different members came up.
    Set = 2,
}

/// The count of a key.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct KeyCount {
    /// The hash of the key, under a secret of all nodes.
    #[prost(fixed64, tag = "1")]
    pub key: u64,
    /// The number of the newest slice.
    #[prost(uint64, tag = "2")]
    pub newest: u64,
    /// The counts, from the newest slice back; what is missing is 0.
    #[prost(uint32, repeated, tag = "3")]
    pub counts: Vec<u32>,
}

/// Members of a set, some or all.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct KeyMembers {
    /// The hash of the key, under a secret of all nodes.
    #[prost(fixed64, tag = "1")]
    pub key: u64,
    /// The hashes of the members: 56 bits each.
    #[prost(fixed64, repeated, tag = "2")]
    pub members: Vec<u64>,
    /// The slice in which each was inserted last.
    #[prost(uint64, repeated, tag = "3")]
    pub slices: Vec<u64>,
}

/// Keys of one group.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct CountBatch {
    /// The group.
    #[prost(message, optional, tag = "1")]
    pub group: Option<CountGroup>,
    /// Keys of windows and budgets.
    #[prost(message, repeated, tag = "2")]
    pub counts: Vec<KeyCount>,
    /// Keys of sets.
    #[prost(message, repeated, tag = "3")]
    pub members: Vec<KeyMembers>,
}

/// What a node has counted.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct CountsUp {
    /// A number that the node has drawn when its gateway started: what it counted before is lost to it, and not to others.
    #[prost(fixed64, tag = "1")]
    pub incarnation: u64,
    /// The counts. A batch without keys says that the node counts the group.
    #[prost(message, repeated, tag = "2")]
    pub batches: Vec<CountBatch>,
    /// How many changes the worker did not send since the last message, because too many keys changed at once.
    #[prost(uint64, tag = "3")]
    pub dropped: u64,
    /// Numbers the messages of one worker, from 1 on.
    #[prost(uint64, tag = "4")]
    pub number: u64,
}

/// What all nodes but the one that it is sent to have counted.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct CountsDown {
    /// The control plane's clock, in milliseconds since the Unix epoch: slices are numbered by it.
    #[prost(uint64, tag = "1")]
    pub now_millis: u64,
    /// The secret of the hashes that nodes have in common, [`COUNT_KEY`] bytes; in the first message of a stream.
    #[prost(bytes = "vec", tag = "2")]
    pub key: Vec<u8>,
    /// A number that the control plane has drawn when it started: it knows no counts from before. In the first message of a stream.
    #[prost(fixed64, tag = "3")]
    pub instance: u64,
    /// The counts.
    #[prost(message, repeated, tag = "4")]
    pub batches: Vec<CountBatch>,
    /// The number of the last message that was taken on this stream; 0 if none was. A worker sends again what was not taken when its
    /// stream ends.
    #[prost(uint64, tag = "5")]
    pub taken: u64,
}

/// How often something happened on all nodes, counted with what this node has counted up to now.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct CountNow {
    /// The window.
    #[prost(message, optional, tag = "1")]
    pub group: Option<CountGroup>,
    /// See [`CountsUp::incarnation`].
    #[prost(fixed64, tag = "2")]
    pub incarnation: u64,
    /// The node's own count.
    #[prost(message, optional, tag = "3")]
    pub own: Option<KeyCount>,
}

/// The answer to [`CountNow`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct CountedNow {
    /// What all other nodes have counted.
    #[prost(message, optional, tag = "1")]
    pub others: Option<KeyCount>,
}

/// To take an amount of a budget that all nodes share.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct TakeBudget {
    /// The budget.
    #[prost(message, optional, tag = "1")]
    pub group: Option<CountGroup>,
    /// See [`CountsUp::incarnation`].
    #[prost(fixed64, tag = "2")]
    pub incarnation: u64,
    /// What the node has taken without asking.
    #[prost(message, optional, tag = "3")]
    pub own: Option<KeyCount>,
    /// How much is taken.
    #[prost(uint32, tag = "4")]
    pub amount: u32,
    /// How much all nodes may take within the window; more than 4,294,967,295 equals that.
    #[prost(uint64, tag = "5")]
    pub limit: u64,
}

/// The answer to [`TakeBudget`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct BudgetTaken {
    /// Whether the amount was taken; if not, the budget is as it was.
    #[prost(bool, tag = "1")]
    pub taken: bool,
    /// What was taken by asking, and what all other nodes have taken without.
    #[prost(message, optional, tag = "2")]
    pub others: Option<KeyCount>,
}

/// To add a member to a set of all nodes.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct AddToSet {
    /// The set; its `cap` is the most members.
    #[prost(message, optional, tag = "1")]
    pub group: Option<CountGroup>,
    /// See [`CountsUp::incarnation`].
    #[prost(fixed64, tag = "2")]
    pub incarnation: u64,
    /// The node's own members of the set.
    #[prost(message, optional, tag = "3")]
    pub own: Option<KeyMembers>,
    /// The hash of the member.
    #[prost(fixed64, tag = "4")]
    pub member: u64,
    /// The most members, where nodes add to the set by asking alone: 1 to the `cap` of the group, so that sets of one group have limits of
    /// their own. 0 where nodes add without asking as well: the limit is the `cap`.
    #[prost(uint32, tag = "5")]
    pub limit: u32,
}

/// The answer to [`AddToSet`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct AddedToSet {
    /// Whether the member is in the set ([`SetMembership`]).
    #[prost(enumeration = "SetMembership", tag = "1")]
    pub membership: i32,
    /// How many members the set has.
    #[prost(uint32, tag = "2")]
    pub size: u32,
}

/// Whether a member is in a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, prost::Enumeration)]
#[repr(i32)]
pub enum SetMembership {
    /// It is new, and the set was full: it was not added.
    Full = 0,
    /// It was added.
    Added = 1,
    /// It was in the set.
    Known = 2,
}

impl Topic for CountNow {
    const TOPIC: &'static str = "counts.count-now";
    type Answer = CountedNow;
}

impl Topic for TakeBudget {
    const TOPIC: &'static str = "counts.take-budget";
    type Answer = BudgetTaken;
}

impl Topic for AddToSet {
    const TOPIC: &'static str = "counts.add-to-set";
    type Answer = AddedToSet;
}

impl CountGroup {
    /// Whether every number is within its bounds and the name within its length.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let most = if self.kind() == CountKind::Set { MAX_COUNT_MEMBERS } else { u32::MAX };
        (1..=MAX_COUNT_NAME).contains(&self.name.len())
            && CountKind::try_from(self.kind).is_ok()
            && (1..=MAX_COUNT_SLICE_MILLIS).contains(&self.slice_millis)
            && (1..=MAX_COUNT_SLICES).contains(&self.slices)
            && (1..=most).contains(&self.cap)
    }

    /// The name of the group among all that are counted in other slices or are of another kind.
    #[must_use]
    pub fn scope(&self) -> String {
        format!("{}.{}.{}x{}", self.name, self.kind, self.slice_millis, self.slices)
    }
}
