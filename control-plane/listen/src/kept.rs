//! A value made of files, which is made anew when they change and kept as it is while they cannot be used.

use std::fmt;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::error::ListenError;

/// How often files are looked at.
const EVERY: Duration = Duration::from_secs(2);
/// The bytes of a file, at most.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// What files were read: their bytes, in the order of their paths.
pub type Contents = Vec<Vec<u8>>;
/// Makes the value of what was read, or says what is wrong with which file.
type Make<T> = Box<dyn Fn(&Contents) -> Result<T, String> + Send + Sync>;

/// A value made of files. What needs it takes the newest that could be made.
pub struct Kept<T> {
    name: &'static str,
    files: Vec<PathBuf>,
    make: Make<T>,
    current: watch::Sender<Arc<T>>,
    state: Mutex<State>,
}

/// How far the files were followed.
struct State {
    /// The files as they were when they were last read.
    read: Vec<Option<Stamp>>,
    /// The files as they were at the last look.
    seen: Vec<Option<Stamp>>,
    digest: [u8; 32],
    /// What is wrong with the files, where they cannot be used.
    problem: Option<String>,
}

/// What tells one state of a file from another. A file that was swapped for another by a symbolic link has another inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The outcome of a check of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing is new, or not yet settled.
    Same,
    /// The value was made anew.
    Renewed,
    /// The files cannot be used and the old value stays; what is wrong.
    Failed(String),
}

/// Something that follows its files.
pub trait Followed: Send + Sync + 'static {
    /// Looks at the files and takes over what is new. A change is taken over when the next look still finds it the same, so
    /// that files which are written one after the other are read together; with `now` at once. Blocks for file access.
    fn look(&self, now: bool) -> Look;
}

/// Looks at the files of all `kept` every 2 s, and at once on SIGHUP. Does not end.
pub async fn follow(kept: Vec<Arc<dyn Followed>>) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut hangups = match signal(SignalKind::hangup()) {
        Ok(hangups) => Some(hangups),
        Err(error) => {
            tracing::warn!(%error, "SIGHUP cannot be handled; files are checked every {} s", EVERY.as_secs());
            None
        }
    };
    loop {
        let hangup = async {
            match &mut hangups {
                Some(hangups) => hangups.recv().await.is_some(),
                None => std::future::pending().await,
            }
        };
        let now = tokio::select! {
            _ = ticks.tick() => false,
            told = hangup => told,
        };
        let kept = kept.clone();
        let looked = tokio::task::spawn_blocking(move || {
            kept.iter().for_each(|kept| {
                kept.look(now);
            });
        });
        if looked.await.is_err() {
            tracing::error!("checking the files failed; retrying");
        }
    }
}

// === impl Kept ===

impl<T: Send + Sync + 'static> Kept<T> {
    /// The value that `make` makes of `files`. `name` tells logs and metrics what it is.
    ///
    /// # Errors
    ///
    /// What is wrong with which file.
    pub fn open(
        name: &'static str,
        files: Vec<PathBuf>,
        make: impl Fn(&Contents) -> Result<T, String> + Send + Sync + 'static,
    ) -> Result<Kept<T>, ListenError> {
        let read = stamps(&files);
        let contents = contents(&files).map_err(ListenError::File)?;
        let value = make(&contents).map_err(ListenError::File)?;
        failing(name, false);
        let state = State { seen: read.clone(), read, digest: digest(&contents), problem: None };
        let current = watch::Sender::new(Arc::new(value));
        Ok(Kept { name, files, make: Box::new(make), current, state: Mutex::new(state) })
    }

    /// The newest value that could be made.
    pub fn current(&self) -> Arc<T> {
        Arc::clone(&self.current.borrow())
    }

    /// The value, and how to learn of the next.
    pub fn subscribe(&self) -> watch::Receiver<Arc<T>> {
        self.current.subscribe()
    }
}

impl<T: Send + Sync + 'static> Followed for Kept<T> {
    fn look(&self, now: bool) -> Look {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let found = stamps(&self.files);
        let settled = found == state.seen;
        state.seen.clone_from(&found);
        // What failed is tried at every look: a disk may have been full or a server away, which no stamp tells.
        let due = found != state.read || state.problem.is_some();
        let take = now || (due && settled);
        if !take {
            return Look::Same;
        }
        state.read = found;
        let made = contents(&self.files).and_then(|contents| {
            let digest = digest(&contents);
            if digest == state.digest { Ok(None) } else { (self.make)(&contents).map(|value| Some((value, digest))) }
        });
        match made {
            Ok(made) => {
                let recovered = state.problem.take().is_some();
                failing(self.name, false);
                let Some((value, digest)) = made else {
                    if recovered {
                        tracing::info!("{}: the files are the ones in use again", self.name);
                    }
                    return Look::Same;
                };
                state.digest = digest;
                self.current.send_replace(Arc::new(value));
                metrics::counter!("palisade_reloads_total", "what" => self.name, "outcome" => "done").increment(1);
                tracing::info!("{}: the changed files are in use", self.name);
                Look::Renewed
            }
            Err(problem) => {
                failing(self.name, true);
                if now || state.problem.as_ref() != Some(&problem) {
                    metrics::counter!("palisade_reloads_total", "what" => self.name, "outcome" => "failed")
                        .increment(1);
                    tracing::warn!(
                        "{}: the changed files cannot be used, the old ones remain in use: {problem}",
                        self.name
                    );
                }
                state.problem = Some(problem.clone());
                Look::Failed(problem)
            }
        }
    }
}

impl<T> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the value: it may be a secret.
        f.debug_struct("Kept").field("name", &self.name).field("files", &self.files).finish_non_exhaustive()
    }
}

fn failing(name: &'static str, failing: bool) {
    metrics::gauge!("palisade_reload_failing", "what" => name).set(f64::from(u8::from(failing)));
}

fn stamps(files: &[PathBuf]) -> Vec<Option<Stamp>> {
    let stamp = |file: &PathBuf| {
        let found = std::fs::metadata(file).ok()?;
        Some(Stamp {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    };
    files.iter().map(stamp).collect()
}

fn contents(files: &[PathBuf]) -> Result<Contents, String> {
    files.iter().map(|file| read(file).map_err(|problem| format!("{}: {problem}", file.display()))).collect()
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(file).map_err(|error| error.to_string())?;
    opened.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("the file is larger than {MAX_BYTES} bytes"));
    }
    Ok(bytes)
}

fn digest(contents: &Contents) -> [u8; 32] {
    let mut hash = Sha256::new();
    for bytes in contents {
        // With their lengths, so that a byte which moves from one file to the next is a change.
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(contents: &Contents) -> Result<u32, String> {
        let text = String::from_utf8_lossy(&contents[0]);
        text.trim().parse().map_err(|error| format!("`{text}`: {error}"))
    }

    #[test]
    fn a_change_is_taken_over_once_it_has_settled_and_rubbish_never() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("n");
        std::fs::write(&file, "1").unwrap();
        let kept = Kept::open("test", vec![file.clone()], number).unwrap();
        assert_eq!((kept.look(false), *kept.current()), (Look::Same, 1));

        std::fs::write(&file, "22").unwrap();
        assert_eq!((kept.look(false), *kept.current()), (Look::Same, 1), "it may still be being written");
        assert_eq!((kept.look(false), *kept.current()), (Look::Renewed, 22));
        assert_eq!(kept.look(false), Look::Same);

        std::fs::write(&file, "").unwrap();
        assert_eq!(kept.look(false), Look::Same);
        assert!(matches!(kept.look(false), Look::Failed(why) if why.contains("empty string")));
        assert_eq!(*kept.current(), 22);
        std::fs::remove_file(&file).unwrap();
        assert!(matches!(kept.look(true), Look::Failed(why) if why.contains("/n: ")), "the error names the file");
        assert_eq!(*kept.current(), 22);

        std::fs::write(&file, "333").unwrap();
        assert_eq!((kept.look(true), *kept.current()), (Look::Renewed, 333), "at once when asked to");
    }

    #[test]
    fn a_file_that_a_link_leads_to_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        // As a cluster's scheduler swaps the files of a secret: file -> data/file, data -> a folder of each version.
        for (version, text) in [("v1", "1"), ("v2", "2")] {
            std::fs::create_dir(path(version)).unwrap();
            std::fs::write(path(version).join("n"), text).unwrap();
        }
        std::os::unix::fs::symlink("v1", path("data")).unwrap();
        std::os::unix::fs::symlink("data/n", path("n")).unwrap();
        let kept = Kept::open("test", vec![path("n")], number).unwrap();
        std::os::unix::fs::symlink("v2", path("data.new")).unwrap();
        std::fs::rename(path("data.new"), path("data")).unwrap();
        assert_eq!((kept.look(false), kept.look(false), *kept.current()), (Look::Same, Look::Renewed, 2));
    }
}
