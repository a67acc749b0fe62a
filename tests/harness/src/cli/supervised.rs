//! What a program wants that runs this one as its child: limits, an end, and its progress.

use std::io::Read as _;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Resource, Rlimit, nice, setrlimit};
use serde_json::{Value, json};

/// Whether progress is written as lines.
static LINES: AtomicBool = AtomicBool::new(false);

/// The name of the limit of processor time.
const CPU: &str = "--max-cpu-seconds";
/// Seconds beyond that limit.
const CPU_GRACE: u64 = 5;
/// How much gentler than others a limited run is towards them.
const NICE: i32 = 19;

/// Its arguments.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "As the child of another program")]
pub(crate) struct Supervised {
    /// The most address space, in MiB
    #[arg(long, global = true, value_name = "MIB")]
    max_memory_mib: Option<u64>,
    /// The most processor time, in seconds
    #[arg(long, global = true, value_name = "SECONDS")]
    max_cpu_seconds: Option<u64>,
    /// The most bytes of a file that is written, in MiB
    #[arg(long, global = true, value_name = "MIB")]
    max_file_mib: Option<u64>,
    /// Give way to all other processes: for the processor, and where memory runs out
    #[arg(long, global = true)]
    background: bool,
    /// End as soon as standard input ends, which it does when the parent is gone
    #[arg(long, global = true)]
    end_with_input: bool,
    /// Write progress to standard error, a line of JSON each
    #[arg(long, global = true)]
    progress_lines: bool,
}

impl Supervised {
    /// Brings all of it into effect. Before anything is read.
    pub(crate) fn begin(&self) -> Result<(), String> {
        let limits = [
            (Resource::As, self.max_memory_mib.map(|mib| mib << 20), "--max-memory-mib"),
            (Resource::Cpu, self.max_cpu_seconds, CPU),
            (Resource::Fsize, self.max_file_mib.map(|mib| mib << 20), "--max-file-mib"),
            // No copy of the memory of a limited run is left on the disk.
            (Resource::Core, self.max_memory_mib.map(|_| 0), "--max-memory-mib"),
        ];
        for (resource, limit, name) in limits {
            let Some(limit) = limit else { continue };
            // Beyond the limit itself comes SIGXCPU, beyond the maximum SIGKILL, which says nothing of why.
            let beyond = if name == CPU { limit + CPU_GRACE } else { limit };
            let both = Rlimit { current: Some(limit), maximum: Some(beyond) };
            setrlimit(resource, both).map_err(|error| format!("{name}: {error}"))?;
        }
        if self.background {
            // As far as the system lets it: a service manager may keep its services from choosing.
            let _ = nice(NICE);
            let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
        }
        LINES.store(self.progress_lines, Ordering::Relaxed);
        if self.end_with_input {
            std::thread::spawn(|| {
                let mut input = std::io::stdin().lock();
                let mut ignored = [0; 64];
                while input.read(&mut ignored).is_ok_and(|read| read > 0) {}
                std::process::exit(3);
            });
        }
        Ok(())
    }
}

/// Whether progress is written as lines.
pub(super) fn tells_progress() -> bool {
    LINES.load(Ordering::Relaxed)
}

/// Writes a line of progress, where that was asked for.
pub(super) fn tell(progress: &Value) {
    if tells_progress() {
        eprintln!("{}", json!({ "progress": progress }));
    }
}
