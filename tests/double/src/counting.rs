//! A double of the control plane that counts what nodes count together, as the control plane does; what it decides on questions it
//! keeps in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::counts::{Asking, Counts};
use exchange::Question;
use snapshot::{
    AddToSet, AddedToSet, BudgetTaken, CountNow, CountedNow, CountsDown, CountsUp, Down, Message as _, SetMembership,
    TakeBudget, Up,
};

use super::{NODE_LINK, Script, Scripted, UNAVAILABLE, answer, question};
use proxy_host::traffic::Headers;
use proxy_host::{Answer, Clusters, Delivery, Word, unreachable};

/// The double. Each node has one link.
pub struct Counting {
    counts: Counts,
    asked: Mutex<Asked>,
}

/// What was decided on questions, by scope and key; nothing of it ends.
#[derive(Default)]
struct Asked {
    taken: BTreeMap<(String, u64), u32>,
    members: BTreeMap<(String, u64), BTreeSet<u64>>,
}

/// The number of the link of each node.
const LINK: u64 = 1;

impl Counting {
    /// A double whose clock stands; `instance` tells it from the ones before.
    #[must_use]
    pub fn at(now_millis: u64, instance: u64) -> Arc<Self> {
        let counts = Counts::new([7; 16], instance, move || now_millis);
        Arc::new(Self { counts, asked: Mutex::default() })
    }

    /// The first message on a link of a node.
    #[must_use]
    pub fn greet(&self, node: &str) -> CountsDown {
        self.counts.unlinked(node, LINK);
        let _changes = self.counts.linked(node, LINK);
        self.counts.greeting()
    }

    /// Takes what a node has counted; what it is told of that.
    #[must_use]
    pub fn take(&self, node: &str, up: &CountsUp) -> CountsDown {
        self.counts.take(node, up);
        let now_millis = self.counts.greeting().now_millis;
        CountsDown { now_millis, taken: up.number, ..CountsDown::default() }
    }

    /// What a node is to learn.
    #[must_use]
    pub fn news(&self, node: &str) -> Vec<CountsDown> {
        std::iter::from_fn(|| self.counts.news(node, LINK)).collect()
    }

    /// Answers the questions of a node.
    #[must_use]
    pub fn script(self: &Arc<Self>, node: &str) -> Script {
        let (counting, node) = (Arc::clone(self), node.to_owned());
        Arc::new(move |question| counting.answer(&node, question).map_or(Scripted::Unknown, Scripted::Data))
    }

    fn answer(&self, node: &str, question: &Question) -> Option<Vec<u8>> {
        if let Some(CountNow { group, incarnation, own }) = question.read() {
            let asking = Asking { node, incarnation, group: &group? };
            let others = Some(self.counts.count_now(asking, &own?)?);
            return Some(CountedNow { others }.encode_to_vec());
        }
        if let Some(TakeBudget { group, incarnation, own, amount, limit }) = question.read() {
            let (group, own) = (group?, own?);
            let asking = Asking { node, incarnation, group: &group };
            let unasked = self.counts.taken_unasked(asking, &own)?;
            let mut asked = self.asked();
            let used = asked.taken.entry((group.scope(), own.key)).or_default();
            let taken = u64::from(*used) + unasked + u64::from(amount) <= limit;
            *used += if taken { amount } else { 0 };
            let slice = self.counts.greeting().now_millis / group.slice_millis;
            self.counts.note_taken(&group, own.key, &[(slice, *used)]);
            let others = self.counts.count_now(asking, &own);
            return Some(BudgetTaken { taken, others }.encode_to_vec());
        }
        let AddToSet { group, incarnation, own, member, limit } = question.read()?;
        let (group, own) = (group?, own?);
        let asking = Asking { node, incarnation, group: &group };
        let (cap, mut known) = match limit {
            0 => (group.cap, self.counts.members(asking, &own)?.into_iter().collect()),
            limit => (limit.min(group.cap), BTreeSet::new()),
        };
        let mut asked = self.asked();
        let members = asked.members.entry((group.scope(), own.key)).or_default();
        known.extend(members.iter());
        let membership = match known.len() {
            _ if known.contains(&member) => SetMembership::Known,
            size if size >= cap as usize => SetMembership::Full,
            _ => SetMembership::Added,
        };
        if membership != SetMembership::Full {
            members.insert(member);
            known.insert(member);
        }
        let size = u32::try_from(known.len()).unwrap_or(u32::MAX);
        Some(AddedToSet { membership: membership.into(), size }.encode_to_vec())
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The double behind the clusters of one node of the harness. What others have counted comes with the node's next word.
pub struct CountingClusters {
    counting: Arc<Counting>,
    node: String,
}

impl CountingClusters {
    /// For a node with this id.
    #[must_use]
    pub fn new(counting: &Arc<Counting>, node: &str) -> Self {
        Self { counting: Arc::clone(counting), node: node.to_owned() }
    }
}

impl Clusters for CountingClusters {
    fn hear(&mut self, worker: u32, _now_millis: u64, word: Word) -> Vec<Answer> {
        let deliver = |token, delivery| Answer { worker, token, after_millis: 0, delivery };
        let down = |token, down: Down| deliver(token, Delivery::Message(down.encode_to_vec()));
        match word {
            Word::Open { token, path, .. } if path == NODE_LINK => {
                let greeting = Down { counts: Some(self.counting.greet(&self.node)), ..Down::default() };
                vec![deliver(token, Delivery::Metadata(Headers::new())), down(token, greeting)]
            }
            Word::Open { token, .. } | Word::Grpc { token, .. } => vec![deliver(token, unreachable(true))],
            Word::Http { token, .. } => vec![deliver(token, unreachable(false))],
            Word::Message { token, message, .. } => {
                let Ok(up) = Up::decode(message.as_slice()) else {
                    return vec![deliver(token, Delivery::Close(UNAVAILABLE, "unreadable".to_owned()))];
                };
                let taken = up.counts.as_ref().map(|counts| self.counting.take(&self.node, counts));
                let answered =
                    up.asks.iter().map(|ask| answer(ask.id, self.counting.answer(&self.node, &question(ask))));
                let learned = taken.into_iter().chain(self.counting.news(&self.node));
                let learned = learned.map(|counts| Down { counts: Some(counts), ..Down::default() });
                learned.chain(answered).map(|message| down(token, message)).collect()
            }
            Word::Close { .. } | Word::Gone => Vec::new(),
        }
    }
}
