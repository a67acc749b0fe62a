//! What processes have used, and metrics of control planes.

use palisade_tests::control_plane::ControlPlane;

/// Ticks of `/proc/PID/stat` in a second: the same on every Linux that programs see.
const TICKS: f64 = 100.0;

/// For how long all threads of a process have run on a processor, in seconds, those that have ended included.
pub(crate) fn cpu_seconds(pid: u32) -> Result<f64, String> {
    let path = format!("/proc/{pid}/stat");
    let stat = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    // The name in parentheses may have spaces; user and system time are the 12th and 13th field after it.
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields.split_whitespace().collect::<Vec<_>>());
    let fields = fields.unwrap_or_default();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
    match (ticks(11), ticks(12)) {
        (Some(user), Some(system)) => Ok((user + system) / TICKS),
        _ => Err(format!("{path} has no times")),
    }
}

/// How often a command was called, in the section `commandstats` of Redis.
pub(crate) fn calls(commandstats: &str, command: &str) -> f64 {
    let start = format!("cmdstat_{command}:calls=");
    let line = commandstats.lines().find_map(|line| line.strip_prefix(&start));
    line.and_then(|line| line.split(',').next()?.parse().ok()).unwrap_or_default()
}

/// The metrics of a control plane at one time.
pub(crate) struct Scrape {
    text: String,
}

impl Scrape {
    pub(crate) fn of(control: &ControlPlane) -> Self {
        Self { text: control.call("GET", "/metrics", None).text() }
    }

    /// The sum of the samples of a metric that have this label.
    pub(crate) fn sum(&self, name: &str, label: &str) -> u64 {
        let samples = self.text.lines().filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']) && rest.contains(label))
        });
        let values = samples.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        values.sum::<f64>() as u64
    }
}
