//! How far a run is, on a terminal.

use std::io::IsTerminal as _;
use std::time::Instant;

/// A line on standard error, where that is a terminal.
pub(super) struct Progress {
    name: &'static str,
    began: Instant,
    terminal: bool,
    done: u64,
    /// The tenth of a second that was shown last.
    shown: u128,
}

impl Progress {
    /// Starts the clock of something with a name.
    pub(super) fn start(name: &'static str) -> Self {
        Self { name, began: Instant::now(), terminal: std::io::stderr().is_terminal(), done: 0, shown: 0 }
    }

    /// One more is done.
    pub(super) fn count(&mut self) {
        self.done += 1;
        let tenths = self.began.elapsed().as_millis() / 100;
        if self.terminal && tenths > self.shown {
            self.shown = tenths;
            let rate = self.done as f64 / self.began.elapsed().as_secs_f64();
            eprint!("\r{}: {} requests, {rate:.0} per second ", self.name, self.done);
        }
    }

    /// All are done: the line goes away.
    pub(super) fn end(&self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }
}
