//! How far a run is, on a terminal.

use std::io::IsTerminal as _;
use std::time::Instant;

use recording::Meter;
use serde_json::json;

use super::supervised;

/// How often a line is written for another program, in tenths of a second.
const LINE_EVERY: u128 = 3;
/// The characters of a bar.
const BAR: usize = 24;

/// A line on standard error, where that is a terminal.
pub(super) struct Progress {
    name: &'static str,
    began: Instant,
    terminal: bool,
    done: u64,
    /// The tenth of a second that was shown last.
    shown: u128,
    meter: Meter,
    /// Which of how many runs over the recording.
    part: (u8, u8),
}

impl Progress {
    /// Starts the clock of something with a name, whose recording is read.
    pub(super) fn start(name: &'static str, meter: Meter, part: (u8, u8)) -> Self {
        let terminal = std::io::stderr().is_terminal() && !supervised::tells_progress();
        let progress = Self { name, began: Instant::now(), terminal, done: 0, shown: 0, meter, part };
        progress.line();
        progress
    }

    /// One more is done.
    pub(super) fn count(&mut self) {
        self.done += 1;
        let tenths = self.began.elapsed().as_millis() / 100;
        if self.terminal && tenths > self.shown {
            self.shown = tenths;
            let rate = self.done as f64 / self.began.elapsed().as_secs_f64();
            eprint!("\r\x1b[K{} {}: {} requests, {rate:.0} per second", self.bar(), self.name, self.done);
        } else if tenths >= self.shown + LINE_EVERY {
            self.shown = tenths;
            self.line();
        }
    }

    /// For a program that runs this one.
    fn line(&self) {
        let (part, parts) = self.part;
        let read = self.meter.progress();
        supervised::tell(&json!({
            "part": part, "parts": parts, "requests": self.done, "bytes_read": read.bytes_read, "bytes": read.bytes_total,
        }));
    }

    /// How much of the recording is read, as a bar.
    fn bar(&self) -> String {
        let progress = self.meter.progress();
        let share = progress.bytes_read.min(progress.bytes_total) as f64 / progress.bytes_total.max(1) as f64;
        let full = (share * BAR as f64) as usize;
        format!("[{}{}] {:3.0} %", "#".repeat(full), " ".repeat(BAR - full), share * 100.0)
    }

    /// How long it has run.
    pub(super) fn elapsed(&self) -> std::time::Duration {
        self.began.elapsed()
    }

    /// All are done: the line goes away.
    pub(super) fn end(&self) {
        self.line();
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }
}
