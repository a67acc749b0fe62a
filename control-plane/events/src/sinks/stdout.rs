//! Standard output.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd;

use super::lines;
use super::{Failure, Sink, Then};
use crate::queue::{Bounds, Line};

/// Standard output, or whatever else is written to from its beginning to its end.
#[derive(Debug)]
pub(crate) struct Stdout {
    open: fn() -> io::Result<File>,
    /// The last line has no end.
    torn: bool,
}

impl Stdout {
    pub(crate) fn new() -> Stdout {
        // Unlike the library's own handle a file keeps nothing back, so that it is known what is written.
        Stdout { open: || Ok(File::from(rustix::stdio::stdout().as_fd().try_clone_to_owned()?)), torn: false }
    }
}

impl Sink for Stdout {
    const BATCH: Bounds = Bounds { lines: 1000, bytes: 1 << 20 };

    async fn write(&mut self, batch: &[Line]) -> Result<(), Failure> {
        let (open, torn, batch) = (self.open, self.torn, batch.to_vec());
        // A reader that does not read holds up this thread and nothing else.
        let writing = tokio::task::spawn_blocking(move || {
            let mut out = match open() {
                Ok(out) => out,
                Err(error) => return (0, torn, Err(error)),
            };
            if torn && let Err(error) = out.write_all(b"\n") {
                return (0, torn, Err(error));
            }
            let outcome = lines::write(&mut out, &batch);
            (outcome.lines, outcome.torn > 0, outcome.result)
        });
        let (written, torn, result) =
            writing.await.unwrap_or_else(|error| (0, self.torn, Err(io::Error::other(error))));
        self.torn = torn;
        result.map_err(|error| Failure { written, refused: 0, reason: error.to_string(), then: Then::Retry(None) })
    }
}
