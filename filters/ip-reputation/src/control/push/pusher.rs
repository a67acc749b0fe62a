//! One bouncer's alerts: when they are sent, what happens when they cannot be, and what is shown of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kit::Sources;
use metrics::{counter, gauge};
use outbound::Outbound;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::attack::{Attack, Way};
use super::queue::{Alert, Queue};
use super::service::{Failure, Machine, Plan, Token};
use super::spared::Spared;

/// The pause between two signs of life.
const BEAT: Duration = Duration::from_secs(60);
/// The longest wait after failures, unless the interval is longer; after a refused password.
const LONGEST: Duration = Duration::from_secs(60);
const LONGEST_REFUSED: Duration = Duration::from_secs(300);
/// An alert with which the service has failed so often goes alone, and so often is given up: it may be what the service fails at.
const ALONE_AFTER: u32 = 3;
const GIVE_UP_AFTER: u32 = 10;
/// The longest text of an error, in characters.
const MAX_ERROR: usize = 500;

/// The alerts of a bouncer, as its task and the console see them.
#[derive(Debug, Default)]
pub(in super::super) struct Pushed(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    queue: Queue,
    sent: u64,
    skipped_bans: u64,
    last_push: Option<u64>,
    error: Option<String>,
}

/// What is shown of a bouncer's alerts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct ShownPush {
    /// Alerts that wait, those that are being sent included.
    pub(in super::super) pending: usize,
    /// Alerts that the service has taken since the control plane started.
    pub(in super::super) sent: u64,
    /// Those of them that asked for no ban because the caller is private or on the allowlist.
    pub(in super::super) skipped_bans: u64,
    /// Alerts that were dropped since then: too many waited, or the service does not take them.
    pub(in super::super) dropped: u64,
    /// When the service last took alerts, in milliseconds since 1970.
    pub(in super::super) last_push: Option<u64>,
    /// Why the last call failed.
    pub(in super::super) last_error: Option<String>,
}

impl Pushed {
    pub(in super::super) fn shown(&self) -> ShownPush {
        let state = self.lock();
        ShownPush {
            pending: state.queue.pending(),
            sent: state.sent,
            skipped_bans: state.skipped_bans,
            dropped: state.queue.dropped,
            last_push: state.last_push,
            last_error: state.error.clone(),
        }
    }

    /// Takes an attack that this plan tells of.
    pub(super) fn add(&self, plan: &Plan, attack: &Arc<Attack>) {
        let is_told = match attack.way {
            Way::Refused => true,
            Way::Rules => plan.rules,
            Way::Monitored => plan.monitored,
        };
        if is_told {
            self.lock().queue.add(attack);
        }
    }

    /// What went wrong, or nothing.
    pub(super) fn note(&self, error: Option<String>) {
        self.lock().error = error.map(|why| why.chars().take(MAX_ERROR).collect());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends the alerts of a bouncer as long as its plan is sent.
pub(super) struct Pusher {
    pub(super) id: String,
    pub(super) sources: Sources,
    pub(super) pushed: Arc<Pushed>,
    pub(super) plan: watch::Receiver<Plan>,
    pub(super) session: Option<(Machine, Token)>,
    pub(super) failures: u32,
    /// It has numbers of its own, for monitoring.
    pub(super) has_metrics: bool,
    /// The numbers of sent and dropped alerts that monitoring has: those of a task before this one are in it as well.
    pub(super) counted: [u64; 2],
    /// The number of skipped bans that monitoring has.
    pub(super) counted_skipped: u64,
}

impl Pusher {
    pub(super) async fn run(mut self) {
        let first = spread(self.plan.borrow_and_update().interval);
        let (mut push_at, mut beat_at) = (Instant::now() + first, Instant::now());
        loop {
            let plan = self.plan.borrow().clone();
            let now = Instant::now();
            let outcome = match () {
                () if now >= push_at && self.pushed.lock().queue.has_waiting() => {
                    push_at = now + spread(plan.interval);
                    Some(self.push(&plan).await)
                }
                () if now >= beat_at => Some(self.beat(&plan).await),
                () => None,
            };
            match outcome {
                Some(Ok(more)) => {
                    self.works();
                    beat_at = Instant::now() + BEAT;
                    if more {
                        push_at = Instant::now();
                    }
                }
                Some(Err(failure)) => {
                    let wait = self.failed(failure, plan.interval);
                    (push_at, beat_at) = (Instant::now() + wait, Instant::now() + wait);
                }
                None => {
                    push_at = push_at.max(now);
                    let idle = !self.pushed.lock().queue.has_waiting();
                    // While nothing waits, the next look is after an interval: what has come by then is one alert for each address.
                    let look = if idle { push_at.max(now + plan.interval.min(BEAT)) } else { push_at };
                    tokio::select! {
                        () = tokio::time::sleep_until(look.min(beat_at)) => {}
                        changed = self.plan.changed() => {
                            if changed.is_err() {
                                return;
                            }
                            // Others may be right what was wrong.
                            self.failures = 0;
                            (push_at, beat_at) = (Instant::now(), Instant::now());
                        }
                    }
                }
            }
            self.show();
        }
    }

    /// Sends the oldest alerts; whether a whole push more waits.
    async fn push(&mut self, plan: &Plan) -> Result<bool, Failure> {
        let alone = self.pushed.lock().queue.failures() >= ALONE_AFTER;
        let most = if alone { 1 } else { plan.batch };
        let pushed = Arc::clone(&self.pushed);
        let batch = Taken::from(&pushed, most);
        let asks = batch.alerts.iter().any(|(_, alert)| alert.asks_for_ban(&plan.form));
        let spared = if asks { Some(Spared::now(&self.sources, plan.bans_private).await) } else { None };
        let is_spared = |alert: &Alert| spared.as_ref().is_some_and(|spared| spared.has(alert.address()));
        let documents: Vec<_> =
            batch.alerts.iter().map(|(_, alert)| alert.document(&plan.form, is_spared(alert))).collect();
        let skipped =
            batch.alerts.iter().filter(|(_, alert)| alert.asks_for_ban(&plan.form) && is_spared(alert)).count();
        let outcome = self.with_token(plan, Work::Send(&documents)).await;
        let number = batch.alerts.len();
        match &outcome {
            Ok(()) => {
                batch.settle(0);
                let mut state = self.pushed.lock();
                state.sent += u64::try_from(number).unwrap_or(u64::MAX);
                state.skipped_bans += u64::try_from(skipped).unwrap_or(u64::MAX);
                state.last_push = Some((self.sources.clock)());
                drop(state);
                let waiting = self.pushed.lock().queue.pending();
                return Ok(waiting >= plan.batch || (alone && waiting > 0));
            }
            Err(Failure::Rejected(_)) => batch.settle(number),
            Err(Failure::Broken(_)) => batch.put_back(true),
            Err(_) => batch.put_back(false),
        }
        outcome.map(|()| false)
    }

    async fn beat(&mut self, plan: &Plan) -> Result<bool, Failure> {
        self.with_token(plan, Work::Beat).await.map(|()| false)
    }

    /// Makes a call with a token that holds: the one that is there, and where it is refused, one more.
    async fn with_token(&mut self, plan: &Plan, work: Work<'_>) -> Result<(), Failure> {
        let outbound = self.sources.outbound.clone();
        let now = (self.sources.clock)();
        let kept = self.session.take().filter(|(machine, token)| *machine == plan.machine && token.holds(now));
        if let Some((machine, token)) = kept {
            match work.run(&machine, &outbound, &token).await {
                Err(Failure::LoggedOut) => {}
                outcome => {
                    self.session = Some((machine, token));
                    return outcome;
                }
            }
        }
        let token = plan.machine.login(&outbound, &plan.form.scenario, now).await?;
        let outcome = work.run(&plan.machine, &outbound, &token).await;
        self.session = Some((plan.machine.clone(), token)).filter(|_| outcome != Err(Failure::LoggedOut));
        outcome
    }

    fn works(&mut self) {
        self.failures = 0;
        self.pushed.note(None);
        self.sources.health.works(&super::subject(&self.id));
    }

    /// How long to wait after a failure.
    fn failed(&mut self, failure: Failure, interval: Duration) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let (why, is_refused) = match failure {
            Failure::Refused(why) => (why, true),
            Failure::LoggedOut => ("the service refuses a machine that has just logged in".to_owned(), true),
            Failure::Rejected(why) | Failure::Broken(why) | Failure::Unreachable(why) => (why, false),
        };
        self.sources.health.fails(&super::subject(&self.id), &why);
        self.pushed.note(Some(why));
        let longest = if is_refused { LONGEST_REFUSED } else { LONGEST }.max(interval);
        let doubled = interval.saturating_mul(1 << self.failures.saturating_sub(1).min(16));
        spread(if is_refused { longest } else { doubled.min(longest) })
    }

    fn show(&mut self) {
        if !self.has_metrics {
            return;
        }
        let ShownPush { pending, sent, skipped_bans, dropped, .. } = self.pushed.shown();
        let pending = u32::try_from(pending).unwrap_or(u32::MAX);
        gauge!("palisade_bouncers_alerts_waiting", "bouncer" => self.id.clone()).set(pending);
        counter!("palisade_bouncers_bans_skipped_total", "bouncer" => self.id.clone())
            .increment(skipped_bans.saturating_sub(self.counted_skipped));
        self.counted_skipped = skipped_bans;
        for ((outcome, count), counted) in [("sent", sent), ("dropped", dropped)].into_iter().zip(&mut self.counted) {
            counter!("palisade_bouncers_alerts_total", "bouncer" => self.id.clone(), "outcome" => outcome)
                .increment(count.saturating_sub(*counted));
            *counted = count;
        }
    }
}

/// A call of a machine that is logged in.
#[derive(Clone, Copy)]
enum Work<'a> {
    Send(&'a [Value]),
    Beat,
}

impl Work<'_> {
    async fn run(self, machine: &Machine, outbound: &Outbound, token: &Token) -> Result<(), Failure> {
        match self {
            Work::Send(alerts) => machine.send(outbound, token, alerts).await,
            Work::Beat => machine.beat(outbound, token).await,
        }
    }
}

/// Alerts on their way.
struct Taken<'a> {
    pushed: &'a Pushed,
    alerts: Vec<(u64, Alert)>,
}

impl Taken<'_> {
    fn from(pushed: &Pushed, most: usize) -> Taken<'_> {
        Taken { pushed, alerts: pushed.lock().queue.take(most) }
    }

    fn settle(self, dropped: usize) {
        self.pushed.lock().queue.settle(dropped);
    }

    fn put_back(mut self, broken: bool) {
        let mut alerts = std::mem::take(&mut self.alerts);
        let mut queue = self.pushed.lock();
        for (_, alert) in alerts.iter_mut().filter(|_| broken) {
            alert.failures += 1;
        }
        let before = alerts.len();
        alerts.retain(|(_, alert)| alert.failures < GIVE_UP_AFTER);
        let given_up = before - alerts.len();
        queue.queue.settle(given_up);
        queue.queue.put_back(alerts);
    }
}

/// Between nine and eleven tenths of a time, so that control planes do not all come at once.
fn spread(time: Duration) -> Duration {
    let chance = getrandom::u32().map_or(0.5, |number| f64::from(number) / f64::from(u32::MAX));
    time.mul_f64(0.9 + 0.2 * chance)
}
