//! One scanner: its connections, its version, its verdicts.

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use outbound::Outbound;
use tokio::io::BufReader;
use tokio::sync::Semaphore;

use super::cache::{Cache, Digest};
use super::icap::{Connection, Options};
use super::{Verdict, clamd, connection, icap};
use crate::control::{MalwareScanner, ScannerKind};

/// Scans of one scanner at a time.
const MAX_RUNNING: usize = 16;
/// Connections of ICAP that are kept for the next scan.
const MAX_IDLE: usize = 4;

/// A scanner.
pub(super) struct Scanner {
    pub(super) definition: MalwareScanner,
    outbound: Outbound,
    running: Semaphore,
    idle: Mutex<Vec<Connection>>,
    /// What the ICAP service says of itself, once it was asked.
    options: Mutex<Option<Options>>,
    /// The version of its database; empty if it is not known.
    version: Mutex<String>,
    cache: Mutex<Cache>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Scanner {
    pub(super) fn new(definition: MalwareScanner, outbound: Outbound) -> Self {
        Self {
            definition,
            outbound,
            running: Semaphore::new(MAX_RUNNING),
            idle: Mutex::default(),
            options: Mutex::default(),
            version: Mutex::default(),
            cache: Mutex::default(),
        }
    }

    /// The verdict on a file, the one that is known if it was scanned with the same database; within `patience`.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn verdict(
        &self,
        content: &[u8],
        digest: Digest,
        now: u64,
        patience: Duration,
    ) -> Result<Verdict, String> {
        let version = lock(&self.version).clone();
        if let Some(known) = lock(&self.cache).get(&version, &digest, now) {
            return Ok(known);
        }
        let verdict = self.scan(content, patience).await?;
        lock(&self.cache).put(&version, digest, verdict.clone(), now);
        Ok(verdict)
    }

    /// Has a file scanned, whatever is known of it.
    ///
    /// # Errors
    /// Why there is no verdict.
    pub(super) async fn scan(&self, content: &[u8], patience: Duration) -> Result<Verdict, String> {
        if let Some(why) = self.too_long(content) {
            return Err(why);
        }
        let timeout = patience.min(Duration::from_millis(self.definition.timeout_millis));
        self.within(timeout, async {
            let _running = self.running.acquire().await.map_err(|error| error.to_string())?;
            match self.definition.kind {
                ScannerKind::Clamd => clamd::scan(self.open(timeout).await?, content).await,
                ScannerKind::Icap => self.scan_by_icap(content, timeout).await,
            }
        })
        .await
    }

    /// That a file is longer than the scanner is sent.
    pub(super) fn too_long(&self, content: &[u8]) -> Option<String> {
        let (length, most) = (u64::try_from(content.len()).unwrap_or(u64::MAX), self.definition.max_file_size);
        (length > most)
            .then(|| format!("a file has {length} bytes, more than the {most} of the scanner's `max_file_size`"))
    }

    /// Asks for the version of its database, and has a few bytes scanned: whether it works.
    ///
    /// # Errors
    /// Why it does not.
    pub(super) async fn check(&self) -> Result<(), String> {
        let timeout = Duration::from_millis(self.definition.timeout_millis).min(Duration::from_secs(10));
        self.ask_version(timeout).await?;
        match self.scan(b"-", timeout).await? {
            Verdict::Clean => Ok(()),
            Verdict::Infected(threat) => Err(format!("it finds {threat} in a file of one character")),
        }
    }

    async fn ask_version(&self, timeout: Duration) -> Result<(), String> {
        self.within(timeout, async {
            match self.definition.kind {
                ScannerKind::Clamd => {
                    let version = clamd::version(self.open(timeout).await?).await?;
                    *lock(&self.version) = version;
                }
                ScannerKind::Icap => {
                    let mut connection = BufReader::new(self.open(timeout).await?);
                    self.ask_options(&mut connection).await?;
                }
            }
            Ok(())
        })
        .await
    }

    async fn within<T>(&self, timeout: Duration, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        match tokio::time::timeout(timeout, work).await {
            Ok(outcome) => outcome,
            Err(_) => Err(format!("the scanner has not answered within {} ms", timeout.as_millis())),
        }
    }

    async fn open(&self, timeout: Duration) -> Result<Box<dyn super::IoStream>, String> {
        connection::open(&self.definition, &self.outbound, timeout).await
    }

    async fn scan_by_icap(&self, content: &[u8], timeout: Duration) -> Result<Verdict, String> {
        let known = lock(&self.options).clone();
        let idle = lock(&self.idle).pop();
        let (options, used) = match known {
            Some(options) => (options, idle),
            None => {
                let mut connection = BufReader::new(self.open(timeout).await?);
                let (options, keeps) = self.ask_options(&mut connection).await?;
                (options, keeps.then_some(connection))
            }
        };
        // A connection that has served a request may have been closed since.
        if let Some(mut connection) = used
            && let Ok((verdict, keeps)) = icap::scan(&mut connection, &self.definition, &options, content).await
        {
            self.keep(connection, keeps);
            return Ok(verdict);
        }
        let mut connection = BufReader::new(self.open(timeout).await?);
        let (verdict, keeps) = icap::scan(&mut connection, &self.definition, &options, content).await?;
        self.keep(connection, keeps);
        Ok(verdict)
    }

    async fn ask_options(&self, connection: &mut Connection) -> Result<(Options, bool), String> {
        let (options, keeps) = icap::options(connection, &self.definition).await?;
        options.tag.clone_into(&mut lock(&self.version));
        *lock(&self.options) = Some(options.clone());
        Ok((options, keeps))
    }

    fn keep(&self, connection: Connection, keeps: bool) {
        let mut idle = lock(&self.idle);
        if keeps && idle.len() < MAX_IDLE {
            idle.push(connection);
        }
    }
}
