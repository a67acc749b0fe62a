//! Tasks of plugins on a timer.

use std::cell::RefCell;
use std::rc::Rc;

use node_state::{Holder, Lease};

use crate::Host;
use crate::chain::Step;

/// The shortest lease, in milliseconds: a worker that is busy for a while keeps it.
const MIN_LEASE: u64 = 5_000;

/// When a plugin's task runs, and on which workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timer {
    /// How much time is between two runs, in milliseconds; the host's ticks are 50 to 1,000 ms apart, and a run comes with one.
    pub millis: u32,
    /// Which workers run it.
    pub on: Workers,
}

/// Which workers of a node run a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workers {
    /// Every worker.
    All,
    /// One worker for the node; another takes over when it has died or is stuck, after three times the timer's length but no
    /// sooner than after 5 s. Two may overlap for the length of one run.
    One {
        /// The key of the lease in shared data, unique on the node; tasks with one key run on the same worker.
        lease: &'static str,
    },
}

/// The tasks of a chain.
#[derive(Default)]
pub(crate) struct Timers {
    tasks: RefCell<Vec<Task>>,
}

struct Task {
    step: Rc<Step>,
    timer: Timer,
    /// Not before this time, in milliseconds since the Unix epoch.
    due: u64,
}

impl Timers {
    /// The tasks of these steps, each once; the first run of each comes with the first tick.
    pub(crate) fn new<'a>(steps: impl Iterator<Item = &'a Rc<Step>>) -> Self {
        let mut tasks: Vec<Task> = Vec::new();
        for step in steps {
            let Some(timer) = step.plugin.timer() else { continue };
            if !tasks.iter().any(|task| Rc::ptr_eq(&task.step, step)) {
                tasks.push(Task { step: Rc::clone(step), timer, due: 0 });
            }
        }
        Self { tasks: RefCell::new(tasks) }
    }

    /// Runs what is due. `worker` is a number that no other worker of the node has.
    pub(crate) fn run(&self, worker: u64, host: &dyn Host) {
        let Ok(mut tasks) = self.tasks.try_borrow_mut() else { return };
        let now = host.now();
        for Task { step, timer, due } in tasks.iter_mut() {
            // A clock that was put back does not stop a task.
            if now < *due && *due - now <= u64::from(timer.millis) {
                continue;
            }
            *due = now.saturating_add(u64::from(timer.millis));
            let this = match timer.on {
                Workers::All => true,
                Workers::One { lease } => {
                    let millis = u64::from(timer.millis).saturating_mul(3).max(MIN_LEASE);
                    let lease = Lease { name: lease, millis };
                    matches!(lease.hold(host.shared(), worker, now), Holder::This { .. })
                }
            };
            if this {
                step.plugin.on_timer(host);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use snapshot::{RouteChain, Snapshot};

    use super::*;
    use crate::fake::FakeHost;
    use crate::{Build, Chain, Level, Plugin, PluginDefinition};

    /// Logs its configuration in each run.
    struct Task(String);

    thread_local! {
        static RUNS: Cell<u32> = const { Cell::new(0) };
    }

    impl Plugin for Task {
        fn timer(&self) -> Option<Timer> {
            let on = if self.0.starts_with("one") { Workers::One { lease: "svc.test" } } else { Workers::All };
            Some(Timer { millis: 2_000, on })
        }

        fn on_timer(&self, host: &dyn Host) {
            RUNS.set(RUNS.get() + 1);
            host.log(Level::Info, &self.0);
        }
    }

    fn build(config: &[u8], _: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
        Ok(Box::new(Task(String::from_utf8_lossy(config).into_owned())))
    }

    const REGISTRY: &[PluginDefinition] = &[PluginDefinition::new("task", build)];

    /// A chain with the task in its global steps, and one more in each of two routes.
    fn chain(global: &str) -> Chain {
        let step = |config: &str| snapshot::Step { plugin: "task".into(), config: config.into(), ..Default::default() };
        let route = |name: &str| RouteChain { name: name.into(), steps: vec![step(name)], ..RouteChain::default() };
        let routes = vec![route("one-a"), route("all-b")];
        Chain::load(&Snapshot { global: vec![step(global)], routes, ..Snapshot::default() }, REGISTRY).unwrap()
    }

    fn logged(host: &FakeHost) -> Vec<String> {
        let mut logged = std::mem::take(&mut *host.logged.borrow_mut());
        logged.sort();
        logged
    }

    #[test]
    fn each_step_runs_once_a_period_whatever_routes_it_is_in() {
        let (host, chain) = (FakeHost::at(1_000_000), chain("all"));
        chain.run_timers(1, &host);
        assert_eq!(logged(&host), ["all", "all-b", "one-a"]);
        for _ in 0..9 {
            host.advance(200);
            chain.run_timers(1, &host);
        }
        assert!(logged(&host).is_empty());
        host.advance(200);
        chain.run_timers(1, &host);
        assert_eq!(logged(&host).len(), 3);
        host.clock.set(5_000);
        chain.run_timers(1, &host);
        assert_eq!(logged(&host).len(), 3, "the clock was put back");
    }

    #[test]
    fn one_worker_runs_the_task_of_a_node_and_another_takes_over() {
        let (host, one, two) = (FakeHost::at(1_000_000), chain("one"), chain("one"));
        one.run_timers(1, &host);
        two.run_timers(2, &host);
        assert_eq!(logged(&host), ["all-b", "all-b", "one", "one-a"]);
        // The first is stuck: the second one takes over once the lease is over.
        let mut waited = 0;
        while !logged(&host).contains(&"one".to_owned()) {
            host.advance(1_000);
            waited += 1;
            two.run_timers(2, &host);
            assert!(waited < 10);
        }
        assert_eq!(waited, 6);
        host.advance(2_000);
        one.run_timers(1, &host);
        assert_eq!(logged(&host), ["all-b"], "the first one is back");
    }
}
