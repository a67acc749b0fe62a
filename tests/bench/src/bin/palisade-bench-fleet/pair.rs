//! Control planes under measurement: two on one Redis, or one with its own file.

use palisade_tests::control_plane::ControlPlane;
use palisade_tests::redis::Redis;

use crate::usage::{self, Scrape};

/// Commands that control planes have sent to Redis.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Commands {
    /// Scripts: they take the lease, bring a replica up to date, and make changes.
    pub(crate) scripts: f64,
    /// Reads of the version.
    pub(crate) reads: f64,
    rest: f64,
}

impl Commands {
    pub(crate) fn since(self, before: Commands) -> Commands {
        let (scripts, reads) = (self.scripts - before.scripts, self.reads - before.reads);
        Commands { scripts, reads, rest: self.rest - before.rest }
    }

    pub(crate) fn all(self) -> f64 {
        self.scripts + self.reads + self.rest
    }
}

/// Control planes that share a store.
pub(crate) struct Pair {
    pub(crate) controls: Vec<ControlPlane>,
    pub(crate) redis: Option<Redis>,
}

impl Pair {
    /// `redis` is two control planes on one server, `file` is one control plane.
    pub(crate) fn start(store: &str) -> Result<Self, String> {
        match store {
            "redis" => {
                let redis = Redis::start();
                let first = ControlPlane::start_with(&["--store".to_owned(), redis.url()]);
                let second = ControlPlane::start_beside(&first);
                Ok(Self { controls: vec![first, second], redis: Some(redis) })
            }
            "file" => Ok(Self { controls: vec![ControlPlane::start()], redis: None }),
            other => Err(format!("--stores {other}: there are redis and file")),
        }
    }

    pub(crate) fn title(&self) -> &'static str {
        if self.redis.is_some() { "two on Redis" } else { "one on a file" }
    }

    fn ids(&mut self) -> Vec<u32> {
        self.controls.iter_mut().map(|control| control.process().id()).collect()
    }

    /// The resident memory of all control planes, in MiB.
    pub(crate) fn resident(&mut self) -> Result<f64, String> {
        self.ids().into_iter().map(palisade_tests::process::resident_mib).sum()
    }

    /// For how long all control planes have run on a processor, in seconds.
    pub(crate) fn cpu(&mut self) -> Result<f64, String> {
        self.ids().into_iter().map(usage::cpu_seconds).sum()
    }

    /// The same of Redis; 0 without one.
    pub(crate) fn redis_cpu(&self) -> Result<f64, String> {
        self.redis.as_ref().map_or(Ok(0.0), |redis| usage::cpu_seconds(redis.id()))
    }

    /// Commands that control planes have sent to Redis: scripts, reads of the version, and what waits for changes. Redis counts the
    /// commands within scripts as well; each script reads the version once.
    pub(crate) fn redis_commands(&self) -> Result<Commands, String> {
        let Some(redis) = &self.redis else { return Ok(Commands::default()) };
        let text = redis.info("commandstats");
        let calls = |name| usage::calls(&text, name);
        let scripts = calls("evalsha") + calls("eval");
        let rest = calls("xread") + calls("xrevrange") + calls("hscan");
        Ok(Commands { scripts, reads: (calls("hmget") - scripts).max(0.0), rest })
    }

    /// The memory of Redis in MiB, in its own account; 0 without one.
    pub(crate) fn redis_memory(&self) -> Result<f64, String> {
        let Some(redis) = &self.redis else { return Ok(0.0) };
        let text = redis.info("memory");
        let line = text.lines().find_map(|line| line.strip_prefix("used_memory:"));
        let bytes = line.and_then(|bytes| bytes.trim().parse::<f64>().ok());
        bytes.map(|bytes| bytes / 1_048_576.0).ok_or_else(|| "Redis does not report its memory".to_owned())
    }

    /// The last lines of each log, for the message of a run that fails.
    pub(crate) fn explain(&mut self, why: String) -> String {
        let logs = self.controls.iter_mut().map(|control| control.process().log_tail(20));
        std::iter::once(why).chain(logs).collect::<Vec<_>>().join("\n")
    }

    /// The metrics of each.
    pub(crate) fn metrics(&self) -> Vec<Scrape> {
        self.controls.iter().map(Scrape::of).collect()
    }
}
