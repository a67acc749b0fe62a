//! A recording on its way in: first a file as it comes, then read, masked and kept.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::OwnedSemaphorePermit;

use crate::child::{self, Allowance, Ended};
use crate::error::io;
use crate::folder::Temporary;
use crate::older::DATA;
use crate::recording::{Recording, Source};
use crate::settings::Limits;
use crate::{ReplayError, Replays, names};

/// Parameters of queries that are masked beside the headers that the program masks by itself: paths are shown with their query.
const SECRET_PARAMETERS: [&str; 12] = [
    "access_token",
    "api_key",
    "apikey",
    "auth",
    "client_secret",
    "id_token",
    "key",
    "password",
    "passwd",
    "refresh_token",
    "secret",
    "token",
];
/// Reasons for entries that could not be read, at most.
const REASONS: usize = 10;

/// An upload. Dropping it removes what has come so far.
pub struct Upload {
    replays: Replays,
    name: String,
    source: Source,
    folder: Temporary,
    path: PathBuf,
    file: File,
    written: u64,
    _turn: OwnedSemaphorePermit,
}

impl Upload {
    /// Makes the file. `turn` is that of the one upload that is under way.
    pub(crate) async fn begin(
        replays: Replays,
        name: String,
        source: Source,
        folder: Temporary,
        turn: OwnedSemaphorePermit,
    ) -> Result<Upload, ReplayError> {
        let path = folder.0.join(format!("upload{}", names::ending(&name)));
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o600);
        let file = options.open(&path).await.map_err(io("make the file of the upload"))?;
        Ok(Upload { replays, name, source, folder, path, file, written: 0, _turn: turn })
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// There are too many, or the disk fails.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), ReplayError> {
        let limit = self.replays.limits().upload_bytes;
        self.written += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if self.written > limit {
            return Err(ReplayError::TooLarge(limit));
        }
        self.file.write_all(bytes).await.map_err(io("write the upload"))
    }

    /// All bytes have come: reads the recording, masks the secrets in it, and keeps it.
    ///
    /// # Errors
    /// Nothing in it can be read, it takes too much, or there is no room for it.
    pub async fn finish(mut self, by: &str, now_millis: u64) -> Result<Recording, ReplayError> {
        self.file.flush().await.map_err(io("write the upload"))?;
        if self.written == 0 {
            return Err(ReplayError::Unreadable("the upload is empty; choose a recording".to_owned()));
        }
        let program = self.replays.find_program()?;
        let room = self.replays.room().await?;
        let limits = *self.replays.limits();
        let allowance = Allowance {
            memory_mib: limits.memory_mib,
            cpu_seconds: limits.read_cpu_seconds,
            file_mib: room.div_ceil(1 << 20),
            patience: Limits::patience(limits.read_cpu_seconds),
        };
        let made = self.folder.0.join(format!("recording{DATA}"));
        let mut counts = Counts::default();
        let arguments = arguments(&self.path, &made);
        let ended = child::run(&program, &arguments, &self.folder.0, allowance, |told| counts.note(told)).await?;
        counts.reasons = reasons(&ended, &self.path, &made, &self.name);
        if let Some(why) = refusal(&ended, &counts) {
            return Err(ReplayError::Unreadable(why));
        }
        let bytes = std::fs::metadata(&made).map_err(io("read the recording"))?.len();
        let recording = Recording {
            id: names::fresh_id("recording")?,
            name: self.name.clone(),
            source: self.source,
            by: by.to_owned(),
            added_millis: now_millis,
            bytes,
            requests: counts.recorded,
            unreadable: counts.bad,
            reasons: counts.reasons,
            first_millis: counts.first,
            last_millis: counts.last,
            unrouted: counts.unrouted,
        };
        // A client that goes away does not cut it off.
        let keeping = tokio::spawn(async move {
            let kept = self.replays.keep(&recording, &made).await;
            // Not before: dropping it removes the file.
            drop(self);
            kept.map(|()| recording)
        });
        let lost = |error: tokio::task::JoinError| {
            ReplayError::Io("keep the recording".to_owned(), std::io::Error::other(error))
        };
        keeping.await.unwrap_or_else(|error| Err(lost(error)))
    }
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upload").field("name", &self.name).field("written", &self.written).finish_non_exhaustive()
    }
}

/// What the program has told of a recording.
#[derive(Debug, Default)]
struct Counts {
    recorded: u64,
    bad: u64,
    first: Option<u64>,
    last: Option<u64>,
    unrouted: u64,
    reasons: Vec<String>,
}

impl Counts {
    fn note(&mut self, told: &Value) {
        let number = |name: &str| told.get(name).and_then(Value::as_u64);
        self.recorded = number("recorded").unwrap_or(self.recorded);
        self.bad = number("bad").unwrap_or(self.bad);
        self.first = number("first").or(self.first);
        self.last = number("last").or(self.last);
        self.unrouted = number("unrouted").unwrap_or(self.unrouted);
    }
}

fn arguments(from: &Path, to: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["record".into(), "--from".into(), from.into(), "--to".into(), to.into()];
    for name in SECRET_PARAMETERS {
        arguments.extend(["--mask-query".into(), name.into()]);
    }
    arguments
}

/// Why nothing is kept; `None` if something is.
fn refusal(ended: &Ended, counts: &Counts) -> Option<String> {
    if let Some(stopped) = &ended.stopped {
        return Some(format!(
            "reading the recording was stopped: {stopped}; upload a smaller one, or convert it with `palisade-replay record` first"
        ));
    }
    if counts.recorded > 0 && matches!(ended.code, Some(0 | 1)) {
        return None;
    }
    let why = match counts.reasons.join("; ") {
        why if why.is_empty() => "it has no request".to_owned(),
        why => why,
    };
    Some(format!(
        "nothing in the recording can be read: {why}. Upload a HAR file, a trace of Envoy's tap filter, an access log as \
         envoy/access-log.yaml writes it, or what `palisade-replay record` has made"
    ))
}

/// What it has said of single entries, under the recording's own name.
fn reasons(ended: &Ended, from: &Path, made: &Path, name: &str) -> Vec<String> {
    let said = ended.said(&[(from, name), (made, name)]);
    // The last line has the counts.
    let lines = said.lines().filter(|line| !line.contains(" requests, secrets are "));
    lines.take(REASONS).map(str::to_owned).collect()
}
