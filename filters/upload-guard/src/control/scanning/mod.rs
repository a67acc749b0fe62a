//! Scans of uploaded files: the control plane calls the scanners that gateways ask for.

mod answer;
mod cache;
mod clamd;
mod connection;
mod extract;
mod gather;
mod icap;
mod memory;
mod operations;
mod runtime;
mod scanner;

use std::fmt;

use tokio::io::{AsyncRead, AsyncWrite};

pub(super) use gather::gather;
pub(super) use operations::OPERATIONS;
pub(super) use runtime::Scanners;

/// The longest text of a scanner that is shown, in bytes.
const MAX_SHOWN: usize = 200;

/// What a scanner says of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Clean,
    /// The name of what was found.
    Infected(String),
}

/// A connection of either kind.
pub(super) trait IoStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> IoStream for T {}

impl fmt::Debug for dyn IoStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IoStream")
    }
}

/// A text of a scanner as it may be shown: its first line, without control characters.
fn shown(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut shown: String = line.chars().filter(|letter| !letter.is_control()).collect();
    let cut = (0..=MAX_SHOWN.min(shown.len())).rev().find(|at| shown.is_char_boundary(*at)).unwrap_or(0);
    shown.truncate(cut);
    shown
}

#[cfg(test)]
mod tests;
