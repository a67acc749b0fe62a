//! Which events have arrived in the files of control planes.

use std::collections::HashSet;
use std::io::BufRead as _;
use std::path::Path;

/// The lines of a file of events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    /// Events of the senders.
    pub(crate) ours: u64,
    /// Events that were written twice.
    pub(crate) twice: u64,
    /// Events of the control plane itself.
    pub(crate) others: u64,
}

impl std::ops::Add for Found {
    type Output = Found;

    fn add(self, more: Found) -> Found {
        Found { ours: self.ours + more.ours, twice: self.twice + more.twice, others: self.others + more.others }
    }
}

/// Counts the events of a run and empties the file: the control plane goes on with it.
pub(crate) fn take(file: &Path, run: u64) -> Result<Found, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    let opened = match std::fs::OpenOptions::new().read(true).write(true).open(file) {
        // It is made with the first event.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Found::default()),
        opened => opened.map_err(failed)?,
    };
    let (mut found, mut seen) = (Found::default(), HashSet::new());
    let mark = format!("\"message\":\"bench {run} ");
    for line in std::io::BufReader::new(&opened).lines() {
        let line = line.map_err(failed)?;
        let Some((_, rest)) = line.split_once(&mark) else {
            found.others += 1;
            continue;
        };
        let mut numbers = rest.split(['"', ' ']).map_while(|number| number.parse::<u64>().ok());
        let name = numbers.next().zip(numbers.next()).ok_or_else(|| format!("a damaged event: {line}"))?;
        if seen.insert(name) {
            found.ours += 1;
        } else {
            found.twice += 1;
        }
    }
    opened.set_len(0).map_err(failed)?;
    Ok(found)
}
