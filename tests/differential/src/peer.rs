//! The answers of libmodsecurity, from a program that speaks JSON lines.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;

use super::case::Case;
use super::ours::Answer;

/// A running peer. It ends when this is dropped.
#[derive(Debug)]
pub struct Peer {
    /// What it calls itself.
    pub engine: String,
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

#[derive(Deserialize)]
struct Hello {
    engine: String,
}

#[derive(Deserialize)]
struct Line {
    ids: Vec<u64>,
    scores: String,
    refused: bool,
}

impl Peer {
    /// Starts the program with a Python interpreter that has the `libmodsecurity` package.
    ///
    /// # Errors
    ///
    /// It cannot be started, or refuses the configuration (it says why on standard error).
    pub fn start(python: &Path, program: &Path, configuration: &Path) -> Result<Self, String> {
        let mut command = Command::new(python);
        command.arg(program).arg(configuration).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{}: {error}", python.display()))?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().ok_or("the peer has no standard output")?).lines();
        let mut peer = Self { engine: String::new(), child, input, output };
        peer.engine = peer.read::<Hello>()?.engine;
        Ok(peer)
    }

    /// Asks for one exchange.
    ///
    /// # Errors
    ///
    /// The peer ended, or said something else than an answer.
    pub fn answer(&mut self, case: &Case) -> Result<Answer, String> {
        let Line { ids, scores, .. } = self.line(case)?;
        Ok(Answer { ids: ids.into_iter().collect(), scores })
    }

    /// Whether the engine asks for the request of an exchange to be refused: its configuration has to let it block.
    ///
    /// # Errors
    ///
    /// The peer ended, or said something else than an answer.
    pub fn refuses(&mut self, case: &Case) -> Result<bool, String> {
        self.line(case).map(|line| line.refused)
    }

    fn line(&mut self, case: &Case) -> Result<Line, String> {
        let input = self.input.as_mut().ok_or("the peer has no standard input")?;
        writeln!(input, "{}", case.json()).map_err(|error| format!("the peer does not listen: {error}"))?;
        self.read().map_err(|error| format!("{}: {error}", case.name))
    }

    fn read<T: for<'de> Deserialize<'de>>(&mut self) -> Result<T, String> {
        let line = self.output.next().ok_or("the peer ended; see what it printed above")?;
        let line = line.map_err(|error| format!("the peer's answer: {error}"))?;
        serde_json::from_str(&line).map_err(|error| format!("the peer's answer is {line:?}: {error}"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}
