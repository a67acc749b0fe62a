//! Figures of benchmarks, as they are printed and kept.

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

/// What was measured so far.
#[derive(Debug, Default)]
pub struct Figures {
    rows: Vec<Value>,
}

/// What a figure is held against.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// The most that it may be.
    AtMost(f64),
    /// The least that it may be.
    AtLeast(f64),
    /// Nothing: it is for people.
    None,
}

impl Figures {
    /// Prints a figure and keeps it.
    pub fn add(&mut self, what: &str, value: f64, unit: &str, target: Target) {
        let (wanted, met) = match target {
            Target::AtMost(most) => (format!("at most {most} {unit}"), Some(value <= most)),
            Target::AtLeast(least) => (format!("at least {least} {unit}"), Some(value >= least)),
            Target::None => (String::new(), None),
        };
        let verdict = if met == Some(false) { "  MISSED" } else { "" };
        println!("{what:<58} {:>10} {unit:<10} {wanted}{verdict}", rounded(value));
        self.rows.push(json!({"what": what, "value": value, "unit": unit, "wanted": wanted, "met": met}));
    }

    /// Writes them all into a file, as JSON, and says so; the file's folder is made where there is none.
    ///
    /// # Errors
    ///
    /// When the folder or the file cannot be written.
    pub fn write(&self, file: &Path) -> Result<(), String> {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let text = format!("{:#}\n", json!({"processors": cores, "figures": self.rows}));
        std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        println!("\nwritten to {}", file.display());
        Ok(())
    }
}

/// How a benchmark ends: what went wrong is told, under the program's name.
#[must_use]
pub fn ended(program: &str, result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{program}: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Whether a part of a benchmark was asked for: all are where none was.
#[must_use]
pub fn wanted(only: &[String], part: &str) -> bool {
    only.is_empty() || only.iter().any(|one| one == part)
}

fn rounded(value: f64) -> String {
    if value.abs() < 10.0 { format!("{value:.2}") } else { format!("{value:.0}") }
}

/// The value that a share of the others does not exceed; 0.5 is the median. 0 of no values.
#[must_use]
pub fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
    let rank = (share * values.len() as f64).ceil() as usize;
    values.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}
