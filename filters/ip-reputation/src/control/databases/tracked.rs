//! A database that is kept up to date, and when it is fetched next.

use lists::{Failure, Validators};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::super::runtime::Refused;
use super::Waiting;
use super::download::{Download, Plan};
use super::state::DatabaseState;

/// A database.
#[derive(Default)]
pub(super) struct Tracked {
    /// What is known of it.
    pub(super) state: DatabaseState,
    /// It is consulted.
    pub(super) used: bool,
    /// How it is fetched; `None` where that cannot be.
    pub(super) plan: Option<Plan>,
    interval_millis: u64,
    /// When it is fetched next, in milliseconds since 1970.
    due: u64,
    /// The longest time until then, in milliseconds: the clock may be set back.
    wait: u64,
    running: Option<Running>,
    /// Those who wait for the fetch that is under way, or for the next one.
    waiting: Waiting,
    /// The next fetch takes whatever it gets.
    force: bool,
}

/// A fetch that is under way.
struct Running {
    /// Its number. A database that was deleted and created again has other ones.
    number: u64,
    task: Option<AbortHandle>,
}

/// A fetch that begins.
pub(super) struct Start {
    pub(super) plan: Plan,
    pub(super) validators: Validators,
    /// The ranges of the database in force, where both are of the same source.
    pub(super) before: Option<usize>,
}

/// What the end of a fetch means.
pub(super) enum Ended {
    /// Nothing: the database is not used any more, or is another one or fetched in another way by now.
    Ignored,
    /// It is still the one in force.
    Unchanged,
    /// There is another one, with this file.
    Changed(axum::body::Bytes),
    /// The fetch failed, for people.
    Fails(String),
}

impl Tracked {
    /// With what was known of it before the control plane started.
    pub(super) fn restored(state: DatabaseState) -> Tracked {
        Tracked { state, ..Tracked::default() }
    }

    /// Says how it is fetched from now on. It is due at once where that is another way than before.
    pub(super) fn plan(&mut self, plan: Plan, interval_seconds: u64, now: u64) {
        let interval = interval_seconds.saturating_mul(1000);
        let moved = self.state.source != plan.source;
        if moved {
            // Those who wait, wait for the next fetch.
            self.stop();
        }
        if moved || self.plan.is_none() || self.interval_millis != interval {
            let (due, longest) = match &self.state.current {
                _ if moved => (now, 0),
                _ if self.state.failures > 0 => (self.state.retry_at, lists::longest(interval)),
                Some(_) => (self.state.fetched_at.saturating_add(interval), interval),
                None => (now, 0),
            };
            self.is_due(due, longest, now);
        }
        self.interval_millis = interval;
        self.state.moves_to(&plan.source);
        self.state.idle = None;
        (self.used, self.plan) = (true, Some(plan));
    }

    /// Notes that it is not fetched, and why where its owner has not switched it off. Those who wait for it are told.
    pub(super) fn rest(&mut self, used: bool, why: Option<String>) {
        self.stop();
        (self.used, self.plan, self.force) = (used, None, false);
        (self.state.error, self.state.failures) = (None, 0);
        for done in self.waiting.drain(..) {
            let why = why.as_deref().unwrap_or("it is not used");
            let _ = done.send(Err(Refused::Because(format!("the database was not fetched: {why}"))));
        }
        self.state.idle = why;
    }

    /// Has it fetched now. A fetch that is under way will do, unless this one is to take whatever it gets.
    pub(super) fn want(&mut self, force: bool, done: oneshot::Sender<Result<(), Refused>>) {
        if force {
            self.stop();
            self.force = true;
        }
        self.waiting.push(done);
        self.due = 0;
    }

    /// When it is fetched next; `None` where it is being fetched, or is not.
    pub(super) fn due(&mut self, now: u64) -> Option<u64> {
        // Where the clock was set back, nothing is waited for twice.
        self.due = self.due.min(now.saturating_add(self.wait));
        (self.used && self.running.is_none() && self.plan.is_some()).then_some(self.due)
    }

    /// It is due then, and within `longest` milliseconds from now.
    fn is_due(&mut self, due: u64, longest: u64, now: u64) {
        self.due = due.min(now.saturating_add(longest));
        self.wait = self.due.saturating_sub(now);
    }

    /// Breaks off the fetch that is under way.
    pub(super) fn stop(&mut self) {
        if let Some(task) = self.running.take().and_then(|running| running.task) {
            task.abort();
        }
    }

    /// Begins a fetch with this number.
    pub(super) fn start(&mut self, number: u64) -> Option<Start> {
        let plan = self.plan.clone()?;
        self.running = Some(Running { number, task: None });
        let force = std::mem::take(&mut self.force);
        let current = self.state.current.as_ref().filter(|current| !force && current.source == self.state.source);
        // Without the database, or by force, the publisher must send it.
        let validators = current.map(|_| self.state.validators.clone()).unwrap_or_default();
        Some(Start { plan, validators, before: current.map(|current| current.content.ranges()) })
    }

    /// The task that the fetch runs in.
    pub(super) fn runs_in(&mut self, task: AbortHandle) {
        if let Some(running) = &mut self.running {
            running.task = Some(task);
        }
    }

    /// Ends the fetch with this number. Those who wait for it are given back.
    pub(super) fn ended(
        &mut self,
        number: u64,
        outcome: Result<Option<Download>, Failure>,
        now: u64,
        random: u32,
    ) -> (Ended, Waiting) {
        if self.running.take_if(|running| running.number == number).is_none() {
            return (Ended::Ignored, Vec::new());
        }
        let mut wish = 0;
        let ended = match outcome {
            Ok(None) => {
                self.state.take(None, now);
                Ended::Unchanged
            }
            Ok(Some(Download { fetched, validators, file })) => {
                let same = self.state.current.as_ref().is_some_and(|current| current.hash == fetched.hash);
                self.state.take(Some((fetched, validators)), now);
                if same { Ended::Unchanged } else { Ended::Changed(file) }
            }
            Err(Failure { why, wait_millis }) => {
                self.state.failed(&why);
                wish = wait_millis.unwrap_or(0);
                Ended::Fails(why)
            }
        };
        let wait = lists::wait(self.interval_millis, self.state.failures, random).max(wish);
        self.state.retry_at = now.saturating_add(wait);
        self.is_due(self.state.retry_at, wait, now);
        (ended, std::mem::take(&mut self.waiting))
    }
}
