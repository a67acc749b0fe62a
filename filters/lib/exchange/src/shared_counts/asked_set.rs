//! Sets that the control plane alone keeps.

use std::rc::Rc;

use snapshot::{AddToSet, CountKind, KeyMembers, MAX_COUNT_MEMBERS, SetMembership};

use super::node::Worker;
use super::set::SetJoined;
use super::{Shared, describe};
use crate::{Answer, Ask, Host};
use node_state::Membership;

/// Which different things came up with a key within the last minutes or hours on all nodes, each set with a limit of its own. Members
/// are added by asking alone, so a node keeps nothing of the sets, and no limit is ever exceeded. What was added survives a restart of
/// the control plane.
#[derive(Debug, Clone)]
pub struct AskedSet(Rc<Shared>);

impl AskedSet {
    /// The most members of a set.
    #[allow(clippy::cast_possible_truncation, reason = "1024")]
    pub const MAX_MEMBERS: u16 = MAX_COUNT_MEMBERS as u16;

    /// Sets whose members stay for `span_millis` milliseconds after they were added or asked for last, in `slices` slices (1 to
    /// [`snapshot::MAX_COUNT_SLICES`]), and for up to one slice more.
    ///
    /// # Errors
    ///
    /// What is out of its bounds.
    pub fn new(name: &str, span_millis: u64, slices: u8) -> Result<Self, String> {
        Ok(Self(Shared::new(describe(name, CountKind::Set, span_millis, slices, MAX_COUNT_MEMBERS)?)))
    }

    /// The time that all nodes have in common, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn now(&self, host: &dyn Host) -> u64 {
        Worker::of(host.shared()).cluster(host.shared(), host.now()).time(host.now())
    }

    /// Asks the control plane to add a member to the set of a key, unless it has `limit` members (1 to [`AskedSet::MAX_MEMBERS`]) already.
    /// The message waits at most `millis` milliseconds. Before the node has the secret of all nodes there is no answer.
    #[must_use]
    pub fn ask(&self, host: &dyn Host, key: &[u8], member: &[u8], limit: u16, millis: u32) -> Ask {
        let data = host.shared();
        let cluster = Worker::of(data).cluster(data, host.now());
        let key = cluster.hashes().key(&self.0.scope, key);
        let question = AddToSet {
            group: Some(self.0.described.clone()),
            incarnation: cluster.incarnation,
            own: Some(KeyMembers { key, ..KeyMembers::default() }),
            member: cluster.member(&self.0, key, member),
            limit: limit.clamp(1, Self::MAX_MEMBERS).into(),
        };
        cluster.ask(&question, millis)
    }

    /// The outcome of [`AskedSet::ask`]; `None` without an answer.
    #[must_use]
    pub fn answered(answer: &Answer) -> Option<SetJoined> {
        let answered = answer.read::<AddToSet>()?;
        let membership = match answered.membership() {
            SetMembership::Full => Membership::Full,
            SetMembership::Added => Membership::Added,
            SetMembership::Known => Membership::Known,
        };
        Some(SetJoined { membership, size: u16::try_from(answered.size).unwrap_or(u16::MAX) })
    }
}

#[cfg(test)]
mod tests {
    use snapshot::{AddedToSet, CountsDown, Message as _};

    use super::*;
    use crate::fake::FakeHost;
    use crate::shared_counts::{learn, news};

    #[test]
    fn a_question_has_the_limit_and_the_node_keeps_nothing() {
        let set = AskedSet::new("objects", 3_600_000, 16).unwrap();
        let host = FakeHost::at(1_700_000_000_000);
        assert_eq!(set.ask(&host, b"k", b"m", 5, 100).question.topic, "", "no node has the secret yet");
        let down =
            CountsDown { now_millis: host.now() + 90_000, key: vec![9; 16], instance: 1, ..CountsDown::default() };
        learn(host.shared(), &down, host.now());
        assert_eq!(set.now(&host), host.now() + 90_000, "the clock of the control plane");
        let asked = |key: &[u8], member: &[u8], limit| -> AddToSet {
            set.ask(&host, key, member, limit, 100).question.read().unwrap()
        };
        let one = asked(b"k", b"m", 5);
        assert_eq!((one.limit, one.own.as_ref().unwrap().members.len()), (5, 0));
        assert_eq!((asked(b"k", b"m", 0).limit, asked(b"k", b"m", u16::MAX).limit), (1, 1024));
        assert_eq!(asked(b"k", b"m", 9).member, one.member);
        assert_ne!(asked(b"k", b"n", 5).member, one.member);
        assert_ne!(asked(b"l", b"m", 5).own, one.own);
        let data = AddedToSet { membership: SetMembership::Full.into(), size: 5 }.encode_to_vec();
        let full = SetJoined { membership: Membership::Full, size: 5 };
        assert_eq!(AskedSet::answered(&Answer::Data(data)), Some(full));
        assert_eq!(AskedSet::answered(&Answer::Unavailable), None);
        // The control plane hears of it by questions alone.
        assert!(news(host.shared(), host.now()).is_none_or(|up| up.batches.is_empty()));
    }
}
