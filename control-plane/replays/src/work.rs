//! How jobs are worked on, one after the other, and how others learn of it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use base::clock::{self, Stopwatch};
use serde_json::Value;
use store::StoreError;

use crate::child::{self, Allowance};
use crate::job::{Job, JobState, Progress, RouteNames};
use crate::older::DATA;
use crate::queue::Begun;
use crate::replays::{MAX_RESULT, json};
use crate::settings::Limits;
use crate::{Replays, contents};

/// The file of a result in the folder of its job.
const RESULT: &str = "diff.json";
/// The files of the snapshots.
pub(crate) const BEFORE: &str = "before";
pub(crate) const AFTER: &str = "after";
/// The requests of each kind that a result lists; the page says so as well.
const LISTED: &str = "500";
/// The bytes of a file that the program may write, in MiB, at least: more than [`MAX_RESULT`], so that a result that is too long is refused
/// with that reason.
const FILE_MIB: u64 = 256;
/// How often others are told what has changed of the jobs.
const BEAT: Duration = Duration::from_secs(2);
/// How often others are told of a job that has not changed that it is there. Well below the time after which it counts as gone
/// ([`watch`](crate::watch)).
const ALIVE: Duration = Duration::from_secs(10);
/// How long nothing is tried after the store has failed at the end of a job.
const AGAIN: Duration = Duration::from_secs(5);

impl Replays {
    pub(crate) async fn work(self) {
        loop {
            let begun = self.queue().begin_next(clock::now_millis());
            let Some(Begun { job, folder, cancel }) = begun else {
                self.added().notified().await;
                continue;
            };
            let id = job.id.clone();
            tokio::select! {
                () = self.run(job, &folder) => {}
                () = cancel.notified() => {}
            }
            let done = self.queue().take(&id);
            drop(done);
        }
    }

    /// Runs a job to its end, and says so in the store.
    async fn run(&self, job: Job, folder: &Path) {
        let outcome = self.replay(&job, folder).await;
        // Before anyone can see that it has ended.
        let files = self.queue().take_folder(&job.id);
        drop(files);
        let (state, error, bytes) = match outcome {
            Ok(bytes) => (JobState::Done, None, bytes),
            Err(why) => {
                tracing::warn!(job = %job.id, "a replay has failed: {why}");
                (JobState::Failed, Some(why), 0)
            }
        };
        let job = self.queue().get(&job.id).cloned().unwrap_or(job);
        loop {
            // It may have been ended by another at its very end: then that counts.
            match self.end(job.clone(), state, error.clone(), None, bytes).await {
                Ok(_) => return,
                Err(error) => tracing::warn!(%error, job = %job.id, "the end of a replay cannot be stored yet"),
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// The bytes of the result in the store.
    async fn replay(&self, job: &Job, folder: &Path) -> Result<u64, String> {
        let program = self.find_program().map_err(|error| error.to_string())?;
        let recording = folder.join(format!("recording{DATA}"));
        let kept = self.recording(&job.recording).await.map_err(|error| error.to_string())?;
        contents::read_file(self.store(), &job.recording, kept.bytes, &recording).await?;
        let (before, after, result) = (folder.join(BEFORE), folder.join(AFTER), folder.join(RESULT));
        let mut arguments: Vec<OsString> = vec!["diff".into(), before.clone().into(), after.clone().into()];
        arguments.extend(["--traffic".into(), recording.clone().into()]);
        arguments.extend(["--engine", "native", "--listed", LISTED, "--format", "json", "--out"].map(OsString::from));
        arguments.push(result.clone().into());
        if let Some(RouteNames { before, after }) = &job.route_names {
            if !before.is_empty() {
                arguments.extend(["--route".into(), before.into()]);
            }
            if before != after {
                arguments.extend(["--route-b".into(), after.into()]);
            }
        }
        let limits = self.limits();
        let allowance = Allowance {
            memory_mib: limits.memory_mib,
            cpu_seconds: limits.cpu_seconds,
            // The rows of both runs are temporary files.
            file_mib: FILE_MIB.max(limits.total_bytes >> 20),
            patience: Limits::patience(limits.cpu_seconds),
        };
        let tell = |told: &Value| self.queue().progress(&job.id, progress(told));
        let ended =
            child::run(&program, &arguments, folder, allowance, tell).await.map_err(|error| error.to_string())?;
        let said = ended.said(&[
            (&recording, &job.recording_name),
            (&before, "the policy in force"),
            (&after, "the changed policy"),
        ]);
        match (ended.stopped, ended.code) {
            (Some(stopped), _) => Err(format!("the replay was stopped: {stopped}\n{said}").trim_end().to_owned()),
            // 1: they differ.
            (None, Some(0 | 1)) if result.is_file() => self.keep_result(&job.id, &result).await,
            (None, _) => Err(format!("the replay has failed: {said}")),
        }
    }

    async fn keep_result(&self, id: &str, file: &Path) -> Result<u64, String> {
        let failed = |error: std::io::Error| format!("the result cannot be read: {error}");
        if tokio::fs::metadata(file).await.map_err(failed)?.len() > MAX_RESULT {
            return Err(format!("the result has more than {} MiB; replay a shorter recording", MAX_RESULT >> 20));
        }
        let text = tokio::fs::read(file).await.map_err(failed)?;
        let written = contents::write_text(self.store(), id, text).await;
        written.map_err(|error| format!("the result could not be stored: {error}"))
    }

    /// Tells others how the jobs of this control plane are, and learns which of them another has ended.
    pub(crate) async fn beat(self) {
        // What was told last of each job, and since when it is so.
        let mut told: HashMap<String, (String, Stopwatch)> = HashMap::new();
        loop {
            tokio::time::sleep(BEAT).await;
            let jobs: Vec<Job> = self.queue().jobs().cloned().collect();
            let notes = jobs.iter().filter_map(|job| Some((job.id.clone(), json(job).ok()?)));
            let notes: Vec<(String, String)> = notes.collect();
            told.retain(|id, _| notes.iter().any(|(of, _)| of == id));
            if notes.is_empty() {
                continue;
            }
            let is_due = |(id, json): &(String, String)| {
                told.get(id).is_none_or(|(last, since)| last != json || since.seconds() >= ALIVE.as_secs_f64())
            };
            let (due, same): (Vec<_>, Vec<_>) = notes.into_iter().partition(is_due);
            let same: Vec<String> = same.into_iter().map(|(id, _)| id).collect();
            match self.tell(&due, &same).await {
                Ok(ended) => {
                    for id in &ended {
                        let stopped = self.queue().stop(id);
                        drop(stopped);
                    }
                    told.extend(due.into_iter().map(|(id, json)| (id, (json, Stopwatch::start()))));
                }
                Err(error) => tracing::debug!(%error, "the progress of replays cannot be written to the store"),
            }
        }
    }

    /// Says of some jobs how they are. Those of them, and of the others, that another has ended.
    async fn tell(&self, due: &[(String, String)], same: &[String]) -> Result<Vec<String>, StoreError> {
        let mut ended = Vec::new();
        if !due.is_empty() {
            let alive = self.store().replays_beat(self.runner(), due.to_vec()).await?;
            ended.extend(due.iter().map(|(id, _)| id).filter(|id| !alive.contains(id)).cloned());
        }
        if !same.is_empty() {
            let rows = self.store().replays().await?;
            let gone = same.iter().filter(|id| !rows.iter().any(|row| row.id == **id && !row.has_ended));
            ended.extend(gone.cloned());
        }
        Ok(ended)
    }
}

fn progress(told: &Value) -> Progress {
    let number = |name: &str| told.get(name).and_then(Value::as_u64).unwrap_or(0);
    Progress {
        part: number("part"),
        parts: number("parts"),
        requests: number("requests"),
        bytes_read: number("bytes_read"),
        bytes: number("bytes"),
    }
}
