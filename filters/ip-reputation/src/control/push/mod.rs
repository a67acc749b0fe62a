//! Alerts to decision services: attacks that gateways tell of, sent to the services of the bouncers that want them.
//!
//! Each bouncer has a bounded queue and a task of its own, so that a service that is slow or gone holds up no other. What waits is in
//! memory alone. What a service itself has told of is not told to it.

mod attack;
mod pusher;
mod queue;
mod service;
mod spared;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use kit::{EventStream, Item, Sources, View};
use metrics::gauge;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::runtime::Reputation;
use super::{MAX_BOUNCERS, SvcBouncer};
use attack::Attack;
use pusher::Pusher;
pub(super) use pusher::{Pushed, ShownPush};
use service::Plan;

/// Sends alerts of all bouncers until the entities end.
pub(super) async fn gather(sources: Sources) {
    let Some(runtime) = sources.runtime::<Reputation>() else { return };
    let mut gatherer = Gatherer { sources, runtime, bouncers: BTreeMap::new(), events: None };
    gatherer.follow_entities();
    loop {
        let events = async {
            match &mut gatherer.events {
                Some(events) => events.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // An event is for the bouncers as they are by then.
            biased;
            changed = gatherer.sources.entities.changed() => match changed {
                Ok(()) => gatherer.follow_entities(),
                Err(_) => return,
            },
            lines = events => gatherer.take(&lines),
        }
    }
}

struct Gatherer {
    sources: Sources,
    runtime: Arc<Reputation>,
    bouncers: BTreeMap<String, Bouncer>,
    /// Open while a bouncer wants alerts.
    events: Option<Box<dyn EventStream>>,
}

/// A bouncer that wants alerts.
struct Bouncer {
    plan: watch::Sender<Plan>,
    pushed: Arc<Pushed>,
    task: AbortHandle,
    /// The bouncers of the same service, this one among them.
    siblings: Vec<String>,
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Gatherer {
    fn follow_entities(&mut self) {
        let entities = Arc::clone(&self.sources.entities.borrow_and_update());
        let view = View::new(&*entities);
        let enabled: Vec<&Item<SvcBouncer>> =
            view.all::<SvcBouncer>().filter(|bouncer| bouncer.enabled).take(MAX_BOUNCERS).collect();
        let wanted: Vec<&Item<SvcBouncer>> = enabled.iter().copied().filter(|bouncer| bouncer.push_enabled).collect();
        let gone = self.bouncers.keys().filter(|id| wanted.iter().all(|bouncer| bouncer.head.id != **id));
        for id in gone.cloned().collect::<Vec<_>>() {
            self.forget(&id);
        }
        for bouncer in wanted {
            let id = &bouncer.head.id;
            // Its pull says what is wrong with the address.
            let Ok(plan) = Plan::of(bouncer) else {
                self.forget(id);
                continue;
            };
            let own = bouncer.lapi_url.trim_end_matches('/');
            let same = enabled.iter().filter(|other| other.lapi_url.trim_end_matches('/') == own);
            let siblings = same.map(|other| other.head.id.clone()).collect();
            match self.bouncers.get_mut(id) {
                Some(known) => {
                    known.siblings = siblings;
                    known.plan.send_if_modified(|before| {
                        let differs = *before != plan;
                        *before = plan;
                        differs
                    });
                }
                None => self.begin(id, plan, siblings),
            }
        }
        match (self.bouncers.is_empty(), &self.events) {
            (true, _) => self.events = None,
            (false, None) => self.events = Some(self.sources.events()),
            (false, Some(_)) => {}
        }
    }

    fn begin(&mut self, id: &str, plan: Plan, siblings: Vec<String>) {
        let pushed = Arc::<Pushed>::default();
        let (plan, seen) = watch::channel(plan);
        let pusher = Pusher {
            id: id.to_owned(),
            sources: self.sources.clone(),
            pushed: Arc::clone(&pushed),
            plan: seen,
            session: None,
            failures: 0,
            has_metrics: self.runtime.has_metrics(id),
            counted: [0; 2],
            counted_skipped: 0,
        };
        self.runtime.show_push(id, Some(Arc::clone(&pushed)));
        let task = tokio::spawn(pusher.run()).abort_handle();
        self.bouncers.insert(id.to_owned(), Bouncer { plan, pushed, task, siblings });
    }

    fn forget(&mut self, id: &str) {
        if self.bouncers.remove(id).is_some() {
            self.runtime.show_push(id, None);
            self.sources.health.ends(&subject(id));
            if self.runtime.has_metrics(id) {
                gauge!("palisade_bouncers_alerts_waiting", "bouncer" => id.to_owned()).set(0);
            }
        }
    }

    fn take(&self, lines: &[Arc<[u8]>]) {
        let now = (self.sources.clock)();
        for line in lines {
            let Some(attack) = Attack::read(line, |module| self.sources.has_trail(module), now) else { continue };
            let attack = Arc::new(attack);
            for bouncer in self.bouncers.values().filter(|bouncer| !attack.is_known_to(&bouncer.siblings)) {
                bouncer.pushed.add(&bouncer.plan.borrow(), &attack);
            }
        }
    }
}

/// Alerts to a bouncer as operators are told of them.
fn subject(id: &str) -> String {
    format!("alerts to the bouncer `{id}`")
}
