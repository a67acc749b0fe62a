//! The bouncers that are kept up to date, what is known of each, and when it is asked next.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::super::runtime::Refused;
use super::decisions::{Decisions, MAX_DECISIONS};
use super::keep::Kept;
use super::pull::{Failure, Plan};
use super::stream::Answer;

/// All decisions are asked for after this time, in milliseconds: changes are not told whole where several decisions were on one value.
const RESYNC: u64 = 900_000;
/// The longest wait after failures, in milliseconds, unless the interval is longer; after a refused key.
const LONGEST: (u64, u64) = (60_000, 300_000);
/// The longest text of an error, in characters.
const MAX_ERROR: usize = 500;

/// A bouncer.
#[derive(Default)]
pub(super) struct Tracked {
    pub(super) used: bool,
    pub(super) plan: Option<Plan>,
    pub(super) decisions: Arc<Decisions>,
    /// The plan that the decisions are by.
    pub(super) source: String,
    /// A whole list was taken, be it before a restart.
    pub(super) initialized: bool,
    /// When the service was last heard, in milliseconds since 1970.
    pub(super) last_sync: u64,
    pub(super) error: Option<String>,
    /// Why it is not asked.
    pub(super) idle: Option<String>,
    /// Why its decisions are not in the table.
    pub(super) left_out: Option<String>,
    /// Decisions of the last whole list that cannot be used.
    pub(super) rejected: usize,
    /// Gateways do not have it yet.
    pub(super) changed: bool,
    /// The store does not have it yet.
    pub(super) dirty: bool,
    /// When the store was given it.
    pub(super) kept_at: u64,
    interval: u64,
    due: u64,
    wait: u64,
    failures: u32,
    running: Option<Running>,
    /// When all decisions were asked for.
    whole_at: u64,
    /// The next call asks for all.
    wants_all: bool,
    /// Whole lists in a row that were much shorter than what is in force.
    short: u32,
    waiting: Vec<oneshot::Sender<Result<(), Refused>>>,
    /// Those who wait for the next call for all.
    next: Vec<oneshot::Sender<Result<(), Refused>>>,
}

struct Running {
    number: u64,
    all: bool,
    task: Option<AbortHandle>,
}

/// What the end of a call means.
pub(super) enum Ended {
    Ignored,
    Works,
    Fails(String),
}

impl Tracked {
    /// With what was kept of it.
    pub(super) fn restored(kept: Kept) -> Tracked {
        let Kept { source, last_sync, decisions } = kept;
        Tracked {
            source,
            last_sync,
            decisions: Arc::new(decisions),
            initialized: true,
            changed: true,
            wants_all: true,
            ..Tracked::default()
        }
    }

    /// What another control plane has been told. The service tells a key each change once: this one asks for everything next.
    pub(super) fn follow(&mut self, kept: Kept, now: u64) {
        let Kept { source, last_sync, decisions } = kept;
        self.changed |= !self.initialized || !decisions.same_keys(&self.decisions);
        (self.decisions, self.source, self.last_sync) = (Arc::new(decisions), source, last_sync);
        (self.initialized, self.dirty, self.kept_at, self.wants_all) = (true, false, now, true);
        (self.short, self.failures, self.error) = (0, 0, None);
        if self.running.is_none() && self.next.is_empty() {
            self.is_due(now, 0, now);
        }
    }

    /// How it is asked from now on.
    pub(super) fn plan(&mut self, plan: Plan, interval_seconds: u64, now: u64) {
        let interval = interval_seconds.saturating_mul(1000);
        let moved = self.plan.as_ref().is_none_or(|before| before.source != plan.source);
        if moved {
            self.stop();
            // What the service has told the key before is not known to be what is here.
            self.wants_all = true;
            (self.failures, self.error) = (0, None);
        }
        if moved || self.interval != interval {
            self.is_due(now, 0, now);
        }
        self.changed |= !self.used;
        (self.used, self.interval, self.idle, self.plan) = (true, interval, None, Some(plan));
    }

    /// It is not asked, and its decisions do not count; why where its owner has not switched it off.
    pub(super) fn rest(&mut self, id: &str, why: Option<String>) {
        self.stop();
        self.changed |= self.used;
        (self.used, self.plan, self.error, self.failures) = (false, None, None, 0);
        for done in self.waiting.drain(..).chain(self.next.drain(..)) {
            let why = why.as_deref().unwrap_or("it is not used");
            let _ = done.send(Err(Refused::Because(format!("the bouncer `{id}` was not synced: {why}"))));
        }
        self.idle = why;
    }

    /// Has all decisions asked for now.
    pub(super) fn want(&mut self, done: oneshot::Sender<Result<(), Refused>>) {
        self.next.push(done);
        self.wants_all = true;
        self.due = 0;
    }

    fn is_due(&mut self, due: u64, longest: u64, now: u64) {
        self.due = due.min(now.saturating_add(longest));
        self.wait = self.due.saturating_sub(now);
    }

    pub(super) fn stop(&mut self) {
        if let Some(task) = self.running.take().and_then(|running| running.task) {
            task.abort();
            // It may have told of changes that were not seen.
            self.wants_all = true;
        }
    }

    /// When it is asked next; `None` where it is being asked, or is not. Unless `scheduled`, it is asked where an operator wants it.
    pub(super) fn due(&mut self, now: u64, scheduled: bool) -> Option<u64> {
        self.due = self.due.min(now.saturating_add(self.wait));
        let is_wanted = scheduled || !self.next.is_empty();
        (self.used && self.plan.is_some() && self.running.is_none() && is_wanted).then_some(self.due)
    }

    /// Begins a call with this number; whether it asks for all.
    pub(super) fn start(&mut self, number: u64, now: u64) -> Option<(Plan, bool)> {
        let plan = self.plan.clone()?;
        let aged = now.saturating_sub(self.whole_at) >= RESYNC || now < self.whole_at;
        let all = self.wants_all || !self.next.is_empty() || !self.initialized || aged;
        if all {
            self.waiting.append(&mut self.next);
        }
        self.running = Some(Running { number, all, task: None });
        Some((plan, all))
    }

    pub(super) fn runs_in(&mut self, task: AbortHandle) {
        if let Some(running) = &mut self.running {
            running.task = Some(task);
        }
    }

    /// Ends the call with this number. Those who wait for it are given back.
    pub(super) fn ended(
        &mut self,
        number: u64,
        outcome: Result<Answer, Failure>,
        now: u64,
    ) -> (Ended, Vec<oneshot::Sender<Result<(), Refused>>>) {
        let Some(running) = self.running.take_if(|running| running.number == number) else {
            return (Ended::Ignored, Vec::new());
        };
        let told = if running.all { std::mem::take(&mut self.waiting) } else { Vec::new() };
        let ended = match outcome {
            Ok(answer) => {
                (self.failures, self.last_sync, self.dirty) = (0, now, self.dirty || !answer.is_empty());
                self.error = if running.all { self.whole(answer, now) } else { self.changes(answer, now) };
                self.is_due(now.saturating_add(self.interval), self.interval, now);
                self.error.clone().map_or(Ended::Works, Ended::Fails)
            }
            Err(Failure { why, refused }) => {
                self.failures = self.failures.saturating_add(1);
                // What was in the answer is lost.
                self.wants_all = true;
                let longest = if refused { LONGEST.1 } else { LONGEST.0 }.max(self.interval);
                let doublings = self.failures.saturating_sub(1).min(16);
                let wait = if refused { longest } else { (self.interval << doublings).min(longest) };
                self.is_due(now.saturating_add(wait), wait, now);
                self.error = Some(why.chars().take(MAX_ERROR).collect());
                Ended::Fails(why)
            }
        };
        if !self.next.is_empty() {
            self.due = 0;
        }
        (ended, told)
    }

    /// Takes a list of all decisions. One that is much shorter than what is in force may be a failure that looks like an answer: it takes
    /// nothing away until another one is as short.
    fn whole(&mut self, answer: Answer, now: u64) -> Option<String> {
        let plan = self.plan.as_ref().map(|plan| plan.source.clone()).unwrap_or_default();
        let Answer { new, rejected, .. } = answer;
        self.rejected = rejected;
        let all = Decisions::of_list(new, now);
        let before = self.decisions.len();
        let comparable = self.initialized && self.source == plan;
        if comparable && all.len() * 2 < before && self.short == 0 {
            self.short = 1;
            let more = all.iter().map(|(key, id, until)| (key.clone(), id, until)).collect::<Vec<_>>();
            let mut decisions = self.decisions.as_ref().clone();
            for (key, id, until) in more {
                self.changed |= decisions.insert_listed(key, id, until);
            }
            self.decisions = Arc::new(decisions);
            self.wants_all = true;
            return Some(format!(
                "the service lists {} decisions, and {before} are in force: they stay until the next list says the same",
                all.len()
            ));
        }
        let differs = !self.initialized || !all.same_keys(&self.decisions);
        self.changed |= differs;
        // A list without any decision is kept as well: what it takes away must not come back after a restart.
        self.dirty |= differs || self.source != plan;
        self.decisions = Arc::new(all);
        (self.short, self.wants_all, self.whole_at) = (0, false, now);
        (self.initialized, self.source) = (true, plan);
        None
    }

    /// Takes what has changed. Deletions first: what was deleted and decided again is in force.
    fn changes(&mut self, answer: Answer, now: u64) -> Option<String> {
        if answer.is_empty() {
            return None;
        }
        let decisions = Arc::make_mut(&mut self.decisions);
        let deleted = decisions.delete(&answer.deleted);
        let added = decisions.add(answer.new, now);
        self.changed |= deleted || added;
        let is_full = self.decisions.len() >= MAX_DECISIONS;
        is_full.then(|| format!("the service has {MAX_DECISIONS} decisions or more: further ones are not used"))
    }

    /// Gives up decisions that have ended.
    pub(super) fn expire(&mut self, now: u64) {
        if self.decisions.next_end().is_some_and(|end| end <= now) {
            let gone = Arc::make_mut(&mut self.decisions).expire(now);
            self.changed |= gone && self.used;
        }
    }

    /// Why it does not protect as it should.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.idle.as_deref().or(self.left_out.as_deref()).or(self.error.as_deref())
    }
}

impl Answer {
    fn is_empty(&self) -> bool {
        self.new.is_empty() && self.deleted.is_empty()
    }
}
