//! Child processes that never outlive their test.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

type Job = Box<dyn FnOnce() + Send>;

/// Processes are started from one thread that lives as long as this process: the kernel's notice of a parent's death
/// follows the parent THREAD, and Envoy dies by it.
fn keeper() -> &'static Mutex<Sender<Job>> {
    static KEEPER: OnceLock<Mutex<Sender<Job>>> = OnceLock::new();
    KEEPER.get_or_init(|| {
        let (sender, jobs) = channel::<Job>();
        thread::Builder::new()
            .name("process-keeper".into())
            .spawn(move || jobs.into_iter().for_each(|job| job()))
            .expect("a thread starts");
        Mutex::new(sender)
    })
}

/// A running child with its output in a file. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: String,
    log: PathBuf,
}

impl Process {
    /// Starts `program`; its output goes to `log`.
    ///
    /// # Errors
    ///
    /// When the program cannot be started, with its path.
    pub fn start(name: &str, program: &Path, arguments: &[String], log: &Path) -> io::Result<Self> {
        let output = File::create(log)?;
        let mut command = dying_with_parent(program);
        command.args(arguments).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let (answer, answered) = channel();
        keeper()
            .lock()
            .expect("the keeper is never poisoned")
            .send(Box::new(move || {
                // The receiver is gone only when the test is.
                let _ = answer.send(command.spawn());
            }))
            .expect("the keeper lives as long as the process");
        let child = answered.recv().expect("the keeper answers").map_err(|error| {
            io::Error::new(error.kind(), format!("{} cannot be started: {error}", program.display()))
        })?;
        Ok(Self { child, name: name.to_owned(), log: log.to_path_buf() })
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// For how long its threads of this name have run on a processor; zero where the system does not tell.
    #[must_use]
    pub fn cpu_time(&self, thread: &str) -> Duration {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.id())).into_iter().flatten().flatten();
        let named = tasks.filter(|task| {
            std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim_end().starts_with(thread))
        });
        let nanos = named.filter_map(|task| {
            let schedstat = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            schedstat.split(' ').next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    }

    /// Its output so far.
    #[must_use]
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// The last lines of its output, for the message of a failed test.
    #[must_use]
    pub fn log_tail(&self, lines: usize) -> String {
        let log = self.log();
        let all: Vec<&str> = log.lines().collect();
        format!(
            "--- last lines of {} ({})\n{}\n---",
            self.name,
            self.log.display(),
            all[all.len().saturating_sub(lines)..].join("\n")
        )
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Sends SIGTERM and waits for the end.
    ///
    /// # Errors
    ///
    /// When it still runs after `patience`.
    pub fn terminate(&mut self, patience: Duration) -> Result<ExitStatus, String> {
        if let Some(pid) = i32::try_from(self.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself: then there is nobody to signal.
            let _ = kill_process(pid, Signal::TERM);
        }
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.ended() {
                return Ok(status);
            }
            if Instant::now() > deadline {
                return Err(format!("{} still runs {patience:?} after SIGTERM\n{}", self.name, self.log_tail(20)));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends SIGKILL and waits for the end.
    pub fn kill(&mut self) {
        // Both fail only for a process that has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            eprintln!("{}", self.log_tail(60));
        }
    }
}

/// Where `setpriv` exists the child is killed when this process is, however that happens.
fn dying_with_parent(program: &Path) -> Command {
    let setpriv = Path::new("/usr/bin/setpriv");
    if !setpriv.exists() {
        return Command::new(program);
    }
    let mut command = Command::new(setpriv);
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// Program and arguments that run a program bound to one processor, where the system can do that.
#[must_use]
pub fn pinned(cpu: usize, program: &Path, arguments: Vec<String>) -> (PathBuf, Vec<String>) {
    let taskset = Path::new("/usr/bin/taskset");
    if !taskset.exists() {
        return (program.to_path_buf(), arguments);
    }
    let mut all = vec!["-c".to_owned(), cpu.to_string(), program.display().to_string()];
    all.extend(arguments);
    (taskset.to_path_buf(), all)
}

/// The resident memory of a process, in KiB.
///
/// # Errors
/// There is no such process, or the system does not say.
pub fn resident_kib(pid: u32) -> Result<u64, String> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok())
        .ok_or_else(|| format!("{path} does not say how much memory is resident"))
}

/// The same in MiB.
///
/// # Errors
/// As [`resident_kib`].
pub fn resident_mib(pid: u32) -> Result<f64, String> {
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let mib = resident_kib(pid)? as f64 / 1024.0;
    Ok(mib)
}

/// Asks until there is an answer.
///
/// # Errors
///
/// What was waited for, when `patience` is over.
pub fn wait_for<T>(what: &str, patience: Duration, mut ask: impl FnMut() -> Option<T>) -> Result<T, String> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(answer) = ask() {
            return Ok(answer);
        }
        if Instant::now() > deadline {
            return Err(format!("waited {patience:?} in vain: {what}"));
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_stops_when_told_and_when_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let arguments = ["-c".to_owned(), "echo up; exec sleep 60".to_owned()];
        let mut told = Process::start("sleep", Path::new("/bin/sh"), &arguments, &log).unwrap();
        wait_for("its output", Duration::from_secs(10), || told.log().contains("up").then_some(())).unwrap();
        assert!(!told.terminate(Duration::from_secs(10)).unwrap().success());
        let dropped = Process::start("sleep", Path::new("/bin/sh"), &arguments, &log).unwrap();
        let entry = PathBuf::from(format!("/proc/{}", dropped.id()));
        assert!(entry.exists());
        drop(dropped);
        assert!(!entry.exists());
    }
}
