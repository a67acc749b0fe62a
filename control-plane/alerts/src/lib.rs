//! Alert rules at work: who is told of incidents, bans and bursts, and how.
//!
//! [`EventHub`] shows what happens (`judge` decides which rules it concerns, and keeps cooldowns and windows), a
//! `Message` is made of it, `channels` writes it in the words of each channel, `delivery` brings it there beside
//! everything else. `docs/alerts.md` is the reference.

mod channels;
mod cooldown;
mod delivery;
mod judge;
mod keep;
mod lanes;
mod message;
mod text;
mod window;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use entities::{AlertRule, EntityService, Item};
use events::{EventHub, Seen};
use outbound::Outbound;

use delivery::{Accepted, Delivery};
use judge::Judge;
use keep::Keeper;
use message::Message;
use store::Store;

pub use delivery::{Delivered, Undelivered};

/// Events and bans that wait to be looked at, at most.
const QUEUE: usize = 4096;
/// So many are looked at with the same rules.
const BATCH: usize = 256;
/// How often control planes tell each other of events that rules wait for a burst of.
const SHARE_EVERY: Duration = Duration::from_secs(1);

/// Alert rules at work. Cheap to clone.
#[derive(Clone)]
pub struct Alerts {
    inner: Arc<Inner>,
}

struct Inner {
    entities: EntityService,
    events: EventHub,
    clock: Arc<dyn Fn() -> u64 + Send + Sync>,
    keeper: Keeper,
    delivery: Arc<Delivery>,
}

impl Alerts {
    /// The rules of `entities`, about what `events` shows, over `outbound`. What was told and what waits is kept in `store`.
    /// `clock` tells the time in milliseconds since 1970.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        entities: EntityService,
        events: EventHub,
        outbound: Outbound,
        clock: Arc<dyn Fn() -> u64 + Send + Sync>,
    ) -> Alerts {
        let keeper = Keeper::new(store);
        let delivery = Delivery::new(keeper.clone(), entities.clone(), events.clone(), outbound, Arc::clone(&clock));
        Alerts { inner: Arc::new(Inner { entities, events, clock, keeper, delivery: Arc::new(delivery) }) }
    }

    /// Sends what an earlier process has left, then acts on what happens, for as long as the events last. They are watched
    /// from the call on; the answer is for a task of its own.
    pub fn run(self) -> impl Future<Output = ()> + Send {
        let (sender, mut seen) = mpsc::channel(QUEUE);
        self.inner.events.watch(sender);
        async move {
            let mut judge = Judge::default();
            judge.restore(self.inner.keeper.told(self.now()).await);
            let is_shared = self.inner.keeper.is_shared();
            // Those of a shared store may be under way at another control plane.
            if !is_shared {
                self.take_over().await;
            }
            let mut batch = Vec::with_capacity(BATCH);
            let mut shares = tokio::time::interval(SHARE_EVERY);
            shares.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut keeps = tokio::time::interval(keep::KEEP_EVERY);
            keeps.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    count = seen.recv_many(&mut batch, BATCH) => {
                        if count == 0 {
                            return;
                        }
                        let messages = self.judge(&mut judge, &mut batch);
                        self.send(&mut judge, messages).await;
                    }
                    _ = shares.tick(), if is_shared => self.share(&mut judge).await,
                    _ = keeps.tick(), if is_shared => {
                        self.inner.keeper.settle_again().await;
                        self.inner.keeper.keep(self.inner.delivery.pending(self.now()).iter()).await;
                        if self.inner.keeper.leads() {
                            self.take_over().await;
                        }
                    }
                }
            }
        }
    }

    fn now(&self) -> u64 {
        (self.inner.clock)()
    }

    /// Sends what another process has left.
    async fn take_over(&self) {
        for message in self.inner.keeper.waiting(self.now()).await {
            if let Some(accepted) = Delivery::accept(&self.inner.delivery, message) {
                accepted.send();
            }
        }
    }

    fn judge(&self, judge: &mut Judge, batch: &mut Vec<Seen>) -> Vec<Message> {
        let entities = self.inner.entities.current();
        let rules: Vec<&Item<AlertRule>> = entities.all::<AlertRule>().filter(|rule| rule.enabled).collect();
        judge.follow(&rules);
        batch.drain(..).flat_map(|seen| judge.see(&seen, &rules, self.now())).collect()
    }

    /// Tells other control planes of events that rules wait for a burst of, and is told of theirs.
    async fn share(&self, judge: &mut Judge) {
        let mut messages = Vec::new();
        for burst in judge.unshared(self.now()) {
            let Some(parts) = self.inner.keeper.burst(burst.clone()).await else {
                judge.put_back(burst);
                continue;
            };
            let entities = self.inner.entities.current();
            if let Some(rule) = entities.get::<AlertRule>(&burst.rule).filter(|rule| rule.enabled) {
                messages.extend(judge.counted(rule, parts, self.now()));
            }
        }
        if !messages.is_empty() {
            self.send(judge, messages).await;
        }
    }

    /// Sends messages, each unless another control plane has told of the same.
    async fn send(&self, judge: &mut Judge, messages: Vec<Message>) {
        let mut accepted: Vec<Accepted> = Vec::new();
        for message in messages {
            let (rule, cools) = (message.rule_id.clone(), message.cools.clone());
            match Delivery::accept(&self.inner.delivery, message) {
                Some(taken) => accepted.push(taken),
                None => judge.dropped(&rule, &cools),
            }
        }
        let outcomes = self.inner.keeper.note(judge.unkept(), accepted.iter().map(Accepted::message)).await;
        for (accepted, outcome) in accepted.into_iter().zip(outcomes) {
            match outcome {
                Some(at) => judge.told_elsewhere(accepted.message(), at),
                None => accepted.send(),
            }
        }
    }

    /// Sends a test message to the channel of a rule, once, be the rule enabled or not. Nothing of it counts for the rule.
    pub async fn test(&self, rule: &Item<AlertRule>) -> Result<Delivered, Undelivered> {
        let message = Message::test(rule, (self.inner.clock)());
        self.inner.delivery.once(rule, &message).await
    }

    /// The hub that alerts listen to.
    pub fn events(&self) -> &EventHub {
        &self.inner.events
    }

    /// The entities, alert rules among them.
    pub fn entities(&self) -> &EntityService {
        &self.inner.entities
    }

    /// Waits until every message so far is delivered or given up.
    pub async fn flush(&self) {
        self.inner.delivery.drained().await;
    }
}

impl fmt::Debug for Alerts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alerts").finish_non_exhaustive()
    }
}
