//! `palisade-soak`: hostile load beside clean clients, for a time.

mod beside;
mod clean;
mod mixed;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;

/// Starts a gateway with the demo policy and attacks it while clean clients ask.
#[derive(Debug, Parser)]
enum Command {
    /// Every attack in turn on two workers; the control plane is killed and started again in the middle.
    Mixed(mixed::Options),
    /// The costliest requests of 64 KiB, four at a time, beside 100 clean requests a second on one worker.
    Beside(beside::Options),
}

/// Tells the attackers of a scope to stop when it goes: a panic of the thread that attends to them must not leave it waiting.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn main() -> ExitCode {
    let outcome = match Command::parse() {
        Command::Mixed(options) => mixed::run(&options),
        Command::Beside(options) => beside::run(&options),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("palisade-soak: {why}");
            ExitCode::from(2)
        }
    }
}
