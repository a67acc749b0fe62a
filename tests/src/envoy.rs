//! A real Envoy.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::http::{Request, Response};
use crate::parts;
use crate::process::{Process, pinned, wait_for};

/// Compiling a module takes seconds, and much longer where several tests share two cores.
const START: Duration = Duration::from_secs(90);

/// How an Envoy is started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The binary.
    pub program: PathBuf,
    /// How many workers it has.
    pub workers: usize,
    /// The processor that it is bound to.
    pub cpu: Option<usize>,
    /// How often it writes its access log, in milliseconds.
    pub log_flush_millis: u32,
}

/// A running Envoy with a base id and a folder of its own. Dropping it stops it.
#[derive(Debug)]
pub struct Envoy {
    process: Process,
    admin: SocketAddr,
    workers: usize,
    folder: TempDir,
}

impl Envoy {
    /// Starts one with two workers and waits until it is live.
    ///
    /// The bootstrap is YAML or JSON; `ACCESS_LOG` in it becomes the path of [`Self::access_log`]. Its admin address
    /// may have port 0.
    ///
    /// # Panics
    ///
    /// When it does not come up; with its log.
    #[must_use]
    pub fn start(bootstrap: &str) -> Self {
        Self::start_with(bootstrap, 2, None).unwrap_or_else(|why| panic!("{why}"))
    }

    /// Starts one with a number of workers, bound to one processor or free.
    ///
    /// # Errors
    ///
    /// When it does not come up; with its log.
    pub fn start_with(bootstrap: &str, workers: usize, cpu: Option<usize>) -> Result<Self, String> {
        Self::launch(bootstrap, &Launch { program: parts::envoy(), workers, cpu, log_flush_millis: 100 })
    }

    /// Starts one as told.
    ///
    /// # Errors
    ///
    /// When it does not come up; with its log.
    pub fn launch(bootstrap: &str, how: &Launch) -> Result<Self, String> {
        let workers = how.workers;
        let folder = tempfile::Builder::new()
            .prefix("palisade-envoy-")
            .tempdir()
            .map_err(|error| format!("no temporary folder: {error}"))?;
        let config = write_config(folder.path(), bootstrap)?;
        let admin_file = folder.path().join("admin");
        let arguments = vec![
            "-c".to_owned(),
            text(&config),
            "--use-dynamic-base-id".to_owned(),
            "--admin-address-path".to_owned(),
            text(&admin_file),
            "--concurrency".to_owned(),
            workers.to_string(),
            "--log-level".to_owned(),
            "info".to_owned(),
            "--component-log-level".to_owned(),
            "main:warning,upstream:warning,config:warning".to_owned(),
            "--file-flush-interval-msec".to_owned(),
            how.log_flush_millis.to_string(),
            "--drain-time-s".to_owned(),
            "2".to_owned(),
            "--parent-shutdown-time-s".to_owned(),
            "3".to_owned(),
        ];
        let (program, arguments) = match how.cpu {
            Some(cpu) => pinned(cpu, &how.program, arguments),
            None => (how.program.clone(), arguments),
        };
        let log = folder.path().join("log");
        let mut process = Process::start("envoy", &program, &arguments, &log).map_err(|error| error.to_string())?;
        let admin = wait_for("Envoy's admin address", START, || {
            if process.ended().is_some() {
                return Some(None);
            }
            let written = std::fs::read_to_string(&admin_file).ok()?;
            Some(Some(written.trim().parse().ok()?))
        })
        .and_then(|admin| admin.ok_or_else(|| "Envoy ended at its start".to_owned()))
        .map_err(|why| format!("{why}\n{}", process.log_tail(60)))?;
        let mut envoy = Self { process, admin, workers, folder };
        wait_for("Envoy is live", START, || {
            if envoy.process.ended().is_some() {
                return Some(Err("Envoy ended before it was live".to_owned()));
            }
            let ready = envoy.admin_get("/ready").ok()?;
            (ready.status == 200).then_some(Ok(()))
        })
        .and_then(|outcome| outcome)
        .map_err(|why| format!("{why}\n{}", envoy.process.log_tail(60)))?;
        Ok(envoy)
    }

    /// Where its admin interface listens.
    #[must_use]
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Its process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// For how long its workers have run on a processor.
    #[must_use]
    pub fn worker_cpu_time(&self) -> Duration {
        self.process.cpu_time("wrk:")
    }

    /// Whether it still runs.
    pub fn lives(&mut self) -> bool {
        self.process.ended().is_none()
    }

    /// Asks the admin interface.
    ///
    /// # Errors
    ///
    /// When it does not answer.
    pub fn admin_get(&self, path: &str) -> std::io::Result<Response> {
        Request::new("GET", path).send(self.admin)
    }

    /// The address of a listener by its name, once it is open.
    ///
    /// # Panics
    ///
    /// When it does not open in time; with the log.
    #[must_use]
    pub fn listener(&self, name: &str) -> SocketAddr {
        wait_for(&format!("the listener {name}"), START, || {
            let listeners = self.admin_get("/listeners?format=json").ok()?.json();
            let listener =
                listeners["listener_statuses"].as_array()?.iter().find(|listener| listener["name"] == name)?;
            let address = &listener["local_address"]["socket_address"];
            let ip = address["address"].as_str()?.parse().ok()?;
            Some(SocketAddr::new(ip, u16::try_from(address["port_value"].as_u64()?).ok()?))
        })
        .unwrap_or_else(|why| panic!("{why}\n{}", self.process.log_tail(60)))
    }

    /// The counters and gauges whose names match a regular expression of Envoy's.
    ///
    /// # Panics
    ///
    /// When the admin interface does not answer; with the log.
    #[must_use]
    pub fn stats(&self, filter: &str) -> BTreeMap<String, u64> {
        let path = format!("/stats?format=json&filter={}", crate::http::percent(filter));
        let answer = self
            .admin_get(&path)
            .unwrap_or_else(|error| panic!("no statistics: {error}\n{}", self.process.log_tail(60)));
        answer.json()["stats"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|stat| Some((stat["name"].as_str()?.to_owned(), stat["value"].as_u64()?)))
            .collect()
    }

    /// How many connections each worker has taken, by the counter's name.
    #[must_use]
    pub fn worker_connections(&self) -> BTreeMap<String, u64> {
        self.stats(r"^listener\..*\.worker_\d+\.downstream_cx_total$")
    }

    /// Does something that opens one connection to a listener, again and again until every worker has taken two of them,
    /// and returns what came of each.
    ///
    /// # Errors
    ///
    /// When the deed fails, or a worker stays out of it; with the counts.
    pub fn every_worker<T>(&self, mut deed: impl FnMut() -> std::io::Result<T>) -> Result<Vec<T>, String> {
        let before = self.worker_connections();
        let mut outcomes = Vec::new();
        for _ in 0..50 {
            for _ in 0..8 {
                outcomes.push(deed().map_err(|error| error.to_string())?);
            }
            let now = self.worker_connections();
            let taken = |(name, count): (&String, &u64)| count - before.get(name).copied().unwrap_or(0);
            // A listener that takes nothing is another one.
            let busy = now.iter().map(taken).filter(|taken| *taken >= 2).count();
            if busy >= self.workers {
                return Ok(outcomes);
            }
        }
        Err(format!("a worker stayed out of it: {before:?}, then {:?}", self.worker_connections()))
    }

    /// Everything that says a filter's VM has failed: the statistics that count it, and lines of the log.
    #[must_use]
    pub fn vm_failures(&self) -> Vec<String> {
        let mut failures: Vec<String> = self
            .stats(r"wasm.*(failed|error|reload|failure)")
            .into_iter()
            .filter(|(_, value)| *value > 0)
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        failures.extend(
            self.log()
                .lines()
                .filter(|line| {
                    ["panicked", "Function: proxy_", "vm failed", "Proxy-Wasm plugin in-VM backtrace"]
                        .iter()
                        .any(|sign| line.contains(sign))
                })
                .map(str::to_owned),
        );
        failures
    }

    /// Its log so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// The last lines of its log.
    #[must_use]
    pub fn log_tail(&self, lines: usize) -> String {
        self.process.log_tail(lines)
    }

    /// Where its access log is.
    #[must_use]
    pub fn access_log_path(&self) -> PathBuf {
        self.folder.path().join("access.log")
    }

    /// Its access log so far; it is flushed every [`Launch::log_flush_millis`].
    #[must_use]
    pub fn access_log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.access_log_path()).unwrap_or_default()).into_owned()
    }

    /// The configuration that it runs.
    ///
    /// # Errors
    ///
    /// When the admin interface does not answer.
    pub fn config_dump(&self) -> std::io::Result<Value> {
        Ok(self.admin_get("/config_dump?include_eds")?.json())
    }
}

fn write_config(folder: &Path, bootstrap: &str) -> Result<PathBuf, String> {
    // Envoy reads by the extension; JSON would also pass as YAML, only slower.
    let name = if bootstrap.trim_start().starts_with('{') { "envoy.json" } else { "envoy.yaml" };
    let path = folder.join(name);
    let bootstrap = bootstrap.replace("ACCESS_LOG", &text(&folder.join("access.log")));
    std::fs::write(&path, bootstrap).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

fn text(path: &Path) -> String {
    path.to_str().expect("temporary paths are text").to_owned()
}

/// Has Envoy check a configuration without running it, in a working directory.
///
/// # Errors
///
/// What Envoy says against it.
pub fn validate(bootstrap: &str, directory: &Path) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
    let config = write_config(folder.path(), bootstrap)?;
    let output = Command::new(parts::envoy())
        .args(["--mode", "validate", "--use-dynamic-base-id", "--log-level", "warning", "-c"])
        .arg(&config)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{} cannot be started: {error}", parts::envoy().display()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout))
}
