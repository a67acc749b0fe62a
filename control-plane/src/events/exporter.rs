//! Where events go.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::queue::Queue;

/// A place that events are written to, one line of JSON each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exporter {
    /// Standard output.
    Stdout,
    /// A file that is appended to; it is opened again when it was moved away.
    File(PathBuf),
}

impl Exporter {
    /// Its name in metrics and status.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Stdout => "stdout".into(),
            Self::File(path) => format!("file:{}", path.display()),
        }
    }

    /// Writes what comes through `queue`, for as long as the task lives.
    pub(super) async fn run(self, queue: Arc<Queue>) {
        let name = self.name();
        let mut file = None;
        loop {
            let mut text = Vec::new();
            for line in queue.take().await {
                text.extend_from_slice(&line);
                text.push(b'\n');
            }
            let result = match &self {
                Self::Stdout => write(&mut tokio::io::stdout(), &text).await,
                Self::File(path) => append(&mut file, path, &text).await,
            };
            let error = result.err().map(|error| error.to_string());
            if let Some(reason) = &error {
                tracing::warn!(exporter = name, reason, "events could not be written and are lost");
            }
            queue.done(error);
        }
    }
}

async fn write(target: &mut (impl AsyncWrite + Unpin), text: &[u8]) -> io::Result<()> {
    target.write_all(text).await?;
    target.flush().await
}

async fn append(open: &mut Option<tokio::fs::File>, path: &PathBuf, text: &[u8]) -> io::Result<()> {
    let file = match open {
        Some(file) if same_file(file, path).await => file,
        _ => open.insert(tokio::fs::OpenOptions::new().create(true).append(true).open(path).await?),
    };
    let result = write(file, text).await;
    if result.is_err() {
        *open = None;
    }
    result
}

/// The path still leads to the open file: log rotation moves a file away and expects a new one.
#[cfg(unix)]
async fn same_file(file: &tokio::fs::File, path: &PathBuf) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(opened), Ok(there)) = (file.metadata().await, tokio::fs::metadata(path).await) else { return false };
    (opened.dev(), opened.ino()) == (there.dev(), there.ino())
}

#[cfg(not(unix))]
async fn same_file(_file: &tokio::fs::File, path: &PathBuf) -> bool {
    tokio::fs::try_exists(path).await.unwrap_or(false)
}
