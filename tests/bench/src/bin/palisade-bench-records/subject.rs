//! The control plane under measurement, and its store.

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use palisade_tests::control_plane::ControlPlane;
use palisade_tests::figures::{Figures, Target, quantile};
use palisade_tests::redis::Redis;
use store::{SqliteOptions, SqliteStore, StoreError};
use store_redis::RedisOptions;
use tempfile::TempDir;

/// A store without a control plane, or with one.
pub(crate) struct Subject {
    folder: TempDir,
    redis: Option<Redis>,
}

impl Subject {
    pub(crate) fn new(store: &str) -> Result<Subject, String> {
        let redis = match store {
            "file" => None,
            "redis" => Some(Redis::start()),
            other => return Err(format!("--stores {other}: there are file and redis")),
        };
        let folder = tempfile::Builder::new().prefix("palisade-records-").tempdir().map_err(said)?;
        Ok(Subject { folder, redis })
    }

    /// The data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The server; `None` for a file.
    pub(crate) fn server(&self) -> Result<Option<RedisOptions>, String> {
        self.redis
            .as_ref()
            .map(|redis| RedisOptions::parse(&redis.url()).map_err(|error| error.to_string()))
            .transpose()
    }

    /// The store, opened by this process.
    pub(crate) async fn open(&self) -> Result<SqliteStore, String> {
        let opened = match self.server()? {
            Some(options) => store_redis::open(options, &self.folder.path().join("replicas"), true).await,
            None => SqliteStore::open(&self.data(), SqliteOptions::default()),
        };
        opened.map_err(said)
    }

    /// Starts a control plane on it; with the seconds that it took.
    pub(crate) fn start(&self, arguments: &[String]) -> Result<(ControlPlane, f64), String> {
        let mut all: Vec<String> = arguments.to_vec();
        all.extend(self.redis.iter().flat_map(|redis| ["--store".to_owned(), redis.url()]));
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let since = Instant::now();
        let control = ControlPlane::start_in(&self.data(), any, any, &all)?;
        Ok((control, since.elapsed().as_secs_f64()))
    }

    /// The bytes that the store takes: of files with this beginning in the data directory, or of memory of Redis.
    pub(crate) fn bytes(&self, file: &str) -> Result<f64, String> {
        match &self.redis {
            None => size(&self.data(), file),
            Some(redis) => {
                let memory = redis.info("memory");
                let line = memory.lines().find_map(|line| line.strip_prefix("used_memory:"));
                line.and_then(|bytes| bytes.trim().parse().ok())
                    .ok_or_else(|| "Redis does not report its memory".to_owned())
            }
        }
    }
}

/// The bytes of the files of a folder and those within it whose names begin so.
pub(crate) fn size(folder: &Path, beginning: &str) -> Result<f64, String> {
    let mut bytes = 0.0;
    for entry in std::fs::read_dir(folder).map_err(said)? {
        let entry = entry.map_err(said)?;
        let metadata = entry.metadata().map_err(said)?;
        if metadata.is_dir() {
            bytes += size(&entry.path(), beginning)?;
        } else if entry.file_name().to_string_lossy().starts_with(beginning) {
            bytes += metadata.len() as f64;
        }
    }
    Ok(bytes)
}

/// Times some calls, and notes the median, which is held against `goal`, and the longest, in milliseconds.
pub(crate) fn timed(
    what: &str,
    calls: u64,
    goal: Option<f64>,
    figures: &mut Figures,
    mut call: impl FnMut(u64) -> Result<(), String>,
) -> Result<(), String> {
    let mut times = Vec::new();
    for number in 0..calls.max(1) {
        let since = Instant::now();
        call(number).map_err(|why| format!("{what}: {why}"))?;
        times.push(since.elapsed().as_secs_f64() * 1000.0);
    }
    let goal = goal.map_or(Target::None, Target::AtMost);
    figures.add(&format!("{what}: median"), quantile(&mut times, 0.5), "ms", goal);
    figures.add(&format!("{what}: slowest"), quantile(&mut times, 1.0), "ms", Target::None);
    Ok(())
}

/// What some work takes, in seconds.
pub(crate) async fn seconds<T>(work: impl Future<Output = Result<T, StoreError>>) -> Result<(T, f64), String> {
    let since = Instant::now();
    let value = work.await.map_err(said)?;
    Ok((value, since.elapsed().as_secs_f64()))
}

pub(crate) fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}
