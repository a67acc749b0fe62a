//! Sets with a cap that all nodes share.

use std::rc::Rc;

use node_state::Membership;
use snapshot::{AddToSet, CountGroup, CountKind, KeyMembers, SetMembership};

use super::{Shared, describe};
use crate::{Answer, Ask, Host};

/// Which different things came up with a key within the last minutes or hours on all nodes, up to a cap: the objects that a consumer
/// read, the accounts that an address tried. A member stays for the length of the window after it was last inserted, and for up to
/// one slice more.
///
/// [`CappedSet::insert`] keeps to what this node knows: nodes that insert at the same time can exceed the cap by what has not been
/// shared yet. [`CappedSet::ask`] never exceeds it, and what was added by asking survives a restart of the control plane.
#[derive(Debug, Clone)]
pub struct CappedSet(Rc<Shared>);

/// A set after an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetJoined {
    /// Whether the member is in the set, and since when.
    pub membership: Membership,
    /// How many members the set has, of all nodes.
    pub size: u16,
}

impl CappedSet {
    /// Sets of at most `cap` members (1 to [`snapshot::MAX_COUNT_MEMBERS`]) that stay for `span_millis` milliseconds in `slices` slices
    /// (1 to [`snapshot::MAX_COUNT_SLICES`]). Nodes share what has the same name, cap, span and slices.
    ///
    /// # Errors
    ///
    /// What is out of its bounds.
    pub fn new(name: &str, cap: u16, span_millis: u64, slices: u8) -> Result<Self, String> {
        Ok(Self(Shared::new(describe(name, CountKind::Set, span_millis, slices, u32::from(cap))?)))
    }

    /// As [`Window::max_keys`](super::Window::max_keys); the largest sets stay.
    #[must_use]
    pub fn max_keys(self, max_keys: u32) -> Self {
        Self(Shared::new(CountGroup { max_keys, ..self.0.described.clone() }))
    }

    /// The same where a set is sent to every node once it has so many members; see
    /// [`Window::everywhere_from`](super::Window::everywhere_from).
    #[must_use]
    pub fn everywhere_from(self, members: u32) -> Self {
        Self(Shared::new(CountGroup { everywhere_from: members, ..self.0.described.clone() }))
    }

    /// Adds a member to the set of a key, unless it is full as far as this node knows.
    pub fn insert(&self, host: &dyn Host, key: &[u8], member: &[u8]) -> SetJoined {
        let on = self.0.on(host);
        let Some(sets) = self.0.sets() else { return SetJoined { membership: Membership::Full, size: 0 } };
        let hash = on.key(key);
        let hashed = on.member(hash, member);
        let (joined, _lost) = sets.insert(on.data, hash, hashed, on.now);
        if joined.news {
            on.changed(host, (hash, hashed), (key, member, 0));
        }
        SetJoined { membership: joined.membership, size: joined.size }
    }

    /// Whether the set of a key has a member, and how many it has, as far as this node knows.
    #[must_use]
    pub fn contains(&self, host: &dyn Host, key: &[u8], member: &[u8]) -> (bool, u16) {
        let on = self.0.on(host);
        let key = on.key(key);
        self.0.sets().map_or((false, 0), |sets| sets.contains(on.data, key, on.member(key, member), on.now))
    }

    /// Asks the control plane to add a member to the set of a key, unless it is full. The message waits at most `millis` milliseconds.
    #[must_use]
    pub fn ask(&self, host: &dyn Host, key: &[u8], member: &[u8], millis: u32) -> Ask {
        let on = self.0.on(host);
        let key = on.key(key);
        let own = self.0.sets().map(|sets| sets.own(on.data, key, on.now)).unwrap_or_default();
        let (members, slices) = own.into_iter().unzip();
        let own = Some(KeyMembers { key, members, slices });
        let (group, member) = (Some(self.0.described.clone()), on.member(key, member));
        on.ask(&AddToSet { group, incarnation: on.cluster.incarnation, own, member, limit: 0 }, millis)
    }

    /// The outcome of [`CappedSet::ask`]; `None` without an answer, when [`CappedSet::insert`] decides by what this node knows.
    pub fn answered(&self, host: &dyn Host, key: &[u8], member: &[u8], answer: &Answer) -> Option<SetJoined> {
        let answered = answer.read::<AddToSet>()?;
        let membership = match answered.membership() {
            SetMembership::Full => Membership::Full,
            SetMembership::Added => Membership::Added,
            SetMembership::Known => Membership::Known,
        };
        let on = self.0.on(host);
        let key = on.key(key);
        if membership != Membership::Full
            && let Some(sets) = self.0.sets()
        {
            let slice = on.now / self.0.described.slice_millis.max(1);
            sets.learn(on.data, key, &[(on.member(key, member), slice)], on.now);
        }
        Some(SetJoined { membership, size: u16::try_from(answered.size).unwrap_or(u16::MAX) })
    }
}
