//! A control plane in this process: the other end of the node link.

use std::collections::{BTreeMap, BTreeSet};

use snapshot::{Answered, BanChange, Down, Message as _, SpendPuzzle, Topic as _, Up, YesNo};

use proxy_host::{Answer, Delivery};

/// The path of the node link.
pub(super) const NODE_LINK: &str = "/palisade.v1.NodeLink/Stream";
/// The most bans that are kept for workers that come later. Past that, the one that ends first goes.
const MAX_BANS: usize = 100_000;
/// The most spent puzzles that are kept. Past that, the one that expires first goes.
const MAX_SPENT: usize = 100_000;

/// Takes the workers' events and bans, and orders every ban on all of them. Of events it keeps the number alone.
#[derive(Debug, Default)]
pub struct ControlPlane {
    /// The link of each worker.
    links: BTreeMap<u32, u32>,
    bans: BTreeMap<String, BanChange>,
    /// Puzzles that were spent, by their end and their id.
    spent: BTreeSet<(u64, String)>,
    counts: Counts,
}

/// What a control plane has heard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events that came.
    pub events: u64,
    /// Events that workers dropped because too many waited.
    pub dropped: u64,
    /// Bans that workers asked for.
    pub bans: u64,
    /// Snapshots that workers have taken.
    pub loads: u64,
    /// Messages that cannot be read.
    pub unreadable: u64,
}

impl ControlPlane {
    /// What was heard so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How many bans are kept.
    #[must_use]
    pub fn bans(&self) -> usize {
        self.bans.len()
    }

    /// A worker opens its link: it gets a greeting and the bans that stand.
    pub fn open(&mut self, worker: u32, token: u32, now_millis: u64) -> Vec<Answer> {
        self.links.insert(worker, token);
        self.bans.retain(|_, ban| ban.until_millis > now_millis);
        let bans: Vec<BanChange> = self.bans.values().cloned().collect();
        vec![down(worker, token, bans)]
    }

    /// A worker's message; what goes to whom because of it.
    pub fn hear(&mut self, worker: u32, token: u32, message: &[u8]) -> Vec<Answer> {
        if !self.is_link(worker, token) {
            return Vec::new();
        }
        let Ok(up) = Up::decode(message) else {
            self.counts.unreadable += 1;
            return Vec::new();
        };
        let count = |items: usize| u64::try_from(items).unwrap_or(u64::MAX);
        self.counts.events += count(up.events.len());
        self.counts.dropped += up.dropped;
        self.counts.bans += count(up.bans.len());
        self.counts.loads += count(up.loads.iter().filter(|load| load.error.is_empty()).count());
        let change = |ban: snapshot::BanRequest| BanChange {
            key: ban.key,
            until_millis: ban.until_millis,
            reason: ban.reason,
            ..BanChange::default()
        };
        let bans: Vec<BanChange> = up.bans.into_iter().map(change).collect();
        let answers: Vec<Answered> = up.asks.into_iter().map(|ask| self.answer(ask)).collect();
        let mut all = Vec::new();
        if !answers.is_empty() {
            let message = Down { answers, ..Down::default() }.encode_to_vec();
            all.push(Answer { worker, token, after_millis: 0, delivery: Delivery::Message(message) });
        }
        if bans.is_empty() {
            return all;
        }
        bans.iter().for_each(|ban| self.keep(ban));
        all.extend(self.links.iter().map(|(worker, token)| down(*worker, *token, bans.clone())));
        all
    }

    fn answer(&mut self, ask: snapshot::Ask) -> Answered {
        // No vendor is asked in here: what a token is worth stays unknown, as it does without a control plane.
        let (topic, data) = ask.question();
        let puzzle = (topic == SpendPuzzle::TOPIC).then(|| SpendPuzzle::decode(&*data).ok()).flatten();
        let yes = puzzle.map(|puzzle| self.spent.insert((puzzle.until_millis, puzzle.id)));
        if self.spent.len() > MAX_SPENT {
            self.spent.pop_first();
        }
        ask.answered(yes.map(|yes| YesNo { yes }.encode_to_vec()))
    }

    /// A worker's link ends.
    pub fn close(&mut self, worker: u32, token: u32) {
        if self.is_link(worker, token) {
            self.links.remove(&worker);
        }
    }

    /// A worker's VM ends.
    pub fn gone(&mut self, worker: u32) {
        self.links.remove(&worker);
    }

    fn is_link(&self, worker: u32, token: u32) -> bool {
        self.links.get(&worker) == Some(&token)
    }

    fn keep(&mut self, ban: &BanChange) {
        if self.bans.len() >= MAX_BANS && !self.bans.contains_key(&ban.key) {
            let first = self.bans.iter().min_by_key(|(_, ban)| ban.until_millis).map(|(key, _)| key.clone());
            first.map(|key| self.bans.remove(&key));
        }
        self.bans.insert(ban.key.clone(), ban.clone());
    }
}

fn down(worker: u32, token: u32, bans: Vec<BanChange>) -> Answer {
    let delivery = Delivery::Message(Down { bans, ..Down::default() }.encode_to_vec());
    Answer { worker, token, after_millis: 0, delivery }
}
