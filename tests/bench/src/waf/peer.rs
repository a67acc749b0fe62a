//! libmodsecurity, in a process of its own: a small program (`tests/bench-waf/peer.cpp`) that times itself.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use super::{Engine, Verdict, rule_headers, word};
use crate::waf::cases::Case;

/// The process; it ends with this value.
pub struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// What it calls itself.
    pub version: String,
    /// How long it took to load its rules first, in nanoseconds.
    pub loaded_ns: u64,
}

impl Peer {
    /// Starts the program on configuration files and hands the cases over.
    ///
    /// # Errors
    ///
    /// It cannot be started or refuses the rules; what it says itself is on standard error.
    pub fn start(program: &Path, files: &[PathBuf], cases: &[Case]) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", program.display());
        let mut command = Command::new(program);
        let mut child = command.args(files).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("{}: it has no standard streams", program.display()));
        };
        let output = BufReader::new(output);
        let mut peer = Self { child, input: Some(input), output, version: String::new(), loaded_ns: 0 };
        let ready = peer.answer()?;
        let mut words = ready.splitn(3, ' ');
        let (_, loaded, version) = (words.next(), words.next(), words.next());
        peer.loaded_ns = loaded.and_then(|word| word.parse().ok()).unwrap_or(0);
        peer.version = version.unwrap_or_default().to_owned();
        for case in cases {
            peer.send(&encode(case))?;
        }
        Ok(peer)
    }

    /// Loads the rules once more; how long that took, in nanoseconds.
    ///
    /// # Errors
    ///
    /// The process ended.
    pub fn load(&mut self) -> Result<u64, String> {
        self.send(b"load\n")?;
        let answer = self.answer()?;
        answer.parse().map_err(|_| format!("libmodsecurity's program answered `{answer}`"))
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        let Some(input) = &mut self.input else { return Err("libmodsecurity's program has ended".to_owned()) };
        let sent = input.write_all(bytes).and_then(|()| input.flush());
        sent.map_err(|error| format!("libmodsecurity's program has ended: {error}"))
    }

    fn answer(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(0) => Err("libmodsecurity's program has ended; what it said is above".to_owned()),
            Ok(_) => Ok(line.trim().to_owned()),
            Err(error) => Err(format!("libmodsecurity's program: {error}")),
        }
    }

    fn numbers(&mut self) -> Result<Vec<u64>, String> {
        let answer = self.answer()?;
        let numbers = answer.split(' ').map(str::parse).collect::<Result<Vec<u64>, _>>();
        numbers.map_err(|_| format!("libmodsecurity's program answered `{answer}`"))
    }
}

impl Engine for Peer {
    fn name(&self) -> &'static str {
        "libmodsecurity"
    }

    fn judge(&mut self, case: usize) -> Result<Verdict, String> {
        self.send(format!("matched {case}\n").as_bytes())?;
        let mut numbers = self.numbers()?;
        let status = if numbers.is_empty() { 0 } else { numbers.remove(0) };
        Ok(Verdict::new(u16::try_from(status).ok().filter(|status| *status != 0), numbers))
    }

    fn measure(&mut self, case: usize, count: usize, budget: Duration) -> Result<Vec<u64>, String> {
        self.send(format!("measure {case} {count} {}\n", super::nanos(budget)).as_bytes())?;
        self.numbers()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The program ends where its input does.
        self.input = None;
        let _ = self.child.wait();
    }
}

/// A case as the program takes it: the number of fields, then each with its length.
fn encode(case: &Case) -> Vec<u8> {
    let (request, response) = (&case.exchange.request, &case.exchange.response);
    let (address, port) = request.peer.rsplit_once(':').unwrap_or_default();
    let headers: Vec<_> = rule_headers(&case.exchange).collect();
    let version = request.protocol.strip_prefix(b"HTTP/").unwrap_or(&request.protocol);
    let (status, count) = (response.status.to_string(), headers.len().to_string());
    let mut fields: Vec<&[u8]> = vec![
        address.as_bytes(),
        port.as_bytes(),
        word(&case.exchange, ":method"),
        word(&case.exchange, ":path"),
        version,
        &request.body,
        status.as_bytes(),
        &response.body,
        count.as_bytes(),
    ];
    fields.extend(headers.into_iter().flat_map(|(name, value)| [name, value]));
    fields.extend(response.headers.iter().flat_map(|(name, value)| [name.as_slice(), value]));
    let mut bytes = format!("case {}\n", fields.len()).into_bytes();
    for field in fields {
        bytes.extend_from_slice(format!("{}\n", field.len()).as_bytes());
        bytes.extend_from_slice(field);
    }
    bytes
}
