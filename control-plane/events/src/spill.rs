//! Where exporters keep events on disk.

use std::fmt;
use std::path::{Path, PathBuf};

use super::exporter::Exporter;
use super::queue::{Bounds, Disk, Queue};

/// The longest part of an exporter's name in the name of its folder, in characters.
const MAX_NAME: usize = 80;

/// Where events wait that an exporter over the network has no room for in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spill {
    /// It has a folder for each exporter, with the events in clear text, readable by this user alone.
    pub folder: PathBuf,
    /// The most bytes of each exporter.
    pub max_bytes: u64,
}

/// A folder cannot be used.
#[derive(Debug)]
pub struct SpillError {
    folder: PathBuf,
    error: std::io::Error,
}

/// A queue for each exporter, by its name; with a disk for those that may have to wait for long.
pub(super) fn queues(
    exporters: &[Exporter],
    names: Vec<String>,
    bounds: Bounds,
    spill: &Spill,
) -> Result<Vec<Queue>, SpillError> {
    let mut used = Vec::new();
    let queue = |(exporter, name): (&Exporter, String)| {
        if !exporter.is_remote() {
            return Ok(Queue::new(name, bounds));
        }
        let folder = spill.folder.join(folder_name(&name));
        let disk =
            Disk::open(&folder, spill.max_bytes).map_err(|error| SpillError { folder: folder.clone(), error })?;
        used.push(folder);
        Ok(Queue::new(name, bounds).with_disk(disk))
    };
    let queues = exporters.iter().zip(names).map(queue).collect::<Result<Vec<_>, _>>()?;
    tell_of_others(&spill.folder, &used);
    Ok(queues)
}

/// Events of an exporter that there is no more are never sent: an operator should know.
fn tell_of_others(folder: &Path, used: &[PathBuf]) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for other in entries.filter(|path| !used.contains(path)) {
        let has_events = std::fs::read_dir(&other).is_ok_and(|mut files| {
            files.any(|file| file.is_ok_and(|file| file.path().extension().is_some_and(|it| it == "jsonl")))
        });
        if has_events {
            tracing::warn!(
                folder = %other.display(),
                "events of an exporter that is not configured any more are on disk; they are not sent, and the folder can be deleted"
            );
        }
    }
}

/// The name of an exporter in letters that every file system takes.
fn folder_name(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || ".-".contains(letter) { letter } else { '_' };
    name.chars().take(MAX_NAME).map(plain).collect()
}

impl fmt::Display for SpillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "events cannot be kept in {}: {}", self.folder.display(), self.error)
    }
}

impl std::error::Error for SpillError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

#[cfg(test)]
mod tests;
