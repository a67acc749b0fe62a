//! One run of the program `palisade-replay`, with limits.
//!
//! The program sets the limits itself before it reads anything, and ends as soon as its standard input does: so it ends with this process,
//! however that ends. It gets no variable of the environment of this process, which may have secrets.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use crate::ReplayError;

/// The bytes of messages that are kept: the first ones.
const MAX_MESSAGES: usize = 8 * 1024;
/// The bytes of a line.
const MAX_LINE: usize = 4 * 1024;
/// Signals that limits end in (Linux and the BSDs agree).
const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;
/// What the allocator says before it gives up.
const OUT_OF_MEMORY: &str = "memory allocation of";

/// How a run may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    pub(crate) memory_mib: u64,
    pub(crate) cpu_seconds: u64,
    pub(crate) file_mib: u64,
    pub(crate) patience: Duration,
}

/// How a run has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code; `None` if a signal has ended it.
    pub(crate) code: Option<i32>,
    /// What it has written to standard error, but for progress.
    pub(crate) messages: String,
    /// Why it did not come to its end; `None` if it did.
    pub(crate) stopped: Option<String>,
}

/// Runs the program in a folder, which its temporary files are in as well. Dropping the future kills it.
pub(crate) async fn run(
    program: &Path,
    arguments: &[OsString],
    folder: &Path,
    allowance: Allowance,
    mut progress: impl FnMut(&Value),
) -> Result<Ended, ReplayError> {
    let Allowance { memory_mib, cpu_seconds, file_mib, patience } = allowance;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .args(["--max-memory-mib", &memory_mib.to_string(), "--max-cpu-seconds", &cpu_seconds.to_string()])
        .args(["--max-file-mib", &file_mib.to_string(), "--background", "--end-with-input", "--progress-lines"])
        .env_clear()
        .env("TMPDIR", folder)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let failed = |error| ReplayError::Io(format!("run {}", program.display()), error);
    let mut child = command.spawn().map_err(failed)?;
    // It lives as long as this is open.
    let _input = child.stdin.take();
    let mut messages = Messages::default();
    let output = child.stderr.take();
    let work = async {
        if let Some(mut output) = output {
            messages.read(&mut output, &mut progress).await.map_err(failed)?;
        }
        child.wait().await.map_err(failed)
    };
    let Ok(status) = tokio::time::timeout(patience, work).await else {
        let stopped = format!("it took longer than {} s", patience.as_secs());
        return Ok(Ended { code: None, messages: messages.text, stopped: Some(stopped) });
    };
    let status = status?;
    let stopped = match status.signal() {
        Some(SIGXCPU) => Some(format!("it took more than {cpu_seconds} s of processor time")),
        Some(SIGXFSZ) => Some(format!("it wrote a file of more than {file_mib} MiB")),
        Some(_) if messages.text.contains(OUT_OF_MEMORY) => {
            Some(format!("it needs more than {memory_mib} MiB of memory"))
        }
        Some(SIGKILL) => Some("it was killed: the system has run out of memory, or someone has killed it".to_owned()),
        Some(signal) => Some(format!("it was ended by the signal {signal}")),
        None => None,
    };
    Ok(Ended { code: status.code(), messages: messages.text, stopped })
}

/// Standard error of a run: lines of progress, and text.
#[derive(Default)]
struct Messages {
    text: String,
    line: Vec<u8>,
}

impl Messages {
    async fn read(
        &mut self,
        output: &mut (impl AsyncRead + Unpin),
        progress: &mut impl FnMut(&Value),
    ) -> std::io::Result<()> {
        let mut buffer = [0; 4096];
        loop {
            let read = output.read(&mut buffer).await?;
            for &byte in buffer.get(..read).unwrap_or_default() {
                match byte {
                    b'\n' => self.end_line(progress),
                    byte if self.line.len() < MAX_LINE => self.line.push(byte),
                    _ => {}
                }
            }
            if read == 0 {
                self.end_line(progress);
                return Ok(());
            }
        }
    }

    fn end_line(&mut self, progress: &mut impl FnMut(&Value)) {
        let line = std::mem::take(&mut self.line);
        if line.starts_with(b"{\"progress\"")
            && let Ok(told) = serde_json::from_slice::<Value>(&line)
            && let Some(told) = told.get("progress")
        {
            return progress(told);
        }
        let line = String::from_utf8_lossy(&line);
        if !line.trim().is_empty() && self.text.len() + line.len() < MAX_MESSAGES {
            self.text.push_str(&line);
            self.text.push('\n');
        }
    }
}

impl Ended {
    /// What it said, without paths of this machine: each of `hidden` is replaced by what people know it as.
    pub(crate) fn said(&self, hidden: &[(&Path, &str)]) -> String {
        let all = self.messages.trim_end();
        let text = hidden.iter().fold(all.to_owned(), |text, (path, name)| {
            let path = path.display().to_string();
            if path.is_empty() { text } else { text.replace(&path, name) }
        });
        text.replace("palisade-replay: ", "")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[tokio::test]
    async fn a_run_that_takes_too_long_is_stopped_and_killed() {
        let folder = tempfile::tempdir().unwrap();
        let (program, pid) = (folder.path().join("program"), folder.path().join("pid"));
        let script = format!("#!/bin/sh\necho $$ > {}\nexec sleep 1000\n", pid.display());
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let allowance =
            Allowance { memory_mib: 64, cpu_seconds: 1, file_mib: 1, patience: Duration::from_millis(1_500) };
        let running = run(&program, &[], folder.path(), allowance, |_| {});
        let ended = tokio::time::timeout(Duration::from_secs(120), running).await.expect("it is stopped").unwrap();
        assert_eq!((ended.code, ended.stopped.as_deref()), (None, Some("it took longer than 1 s")));
        // On a slow machine it may be killed before it has written anything.
        let Ok(pid) = std::fs::read_to_string(pid) else { return };
        let stat = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        let mut looks = 0;
        while !stat().is_empty() && !stat().contains(") Z ") {
            tokio::time::sleep(Duration::from_millis(10)).await;
            looks += 1;
            assert!(looks < 6_000, "the process goes on");
        }
    }

    #[tokio::test]
    async fn lines_are_progress_or_text_and_bounded() {
        let mut all = b"{\"progress\": {\"requests\": 3}}\n\nhello\n{\"progress\": broken\n".to_vec();
        all.extend([b'x'; 100_000]);
        let (mut messages, mut seen) = (Messages::default(), Vec::new());
        messages.read(&mut all.as_slice(), &mut |told: &Value| seen.push(told.clone())).await.unwrap();
        assert_eq!(seen, [serde_json::json!({ "requests": 3 })]);
        assert!(messages.text.starts_with("hello\n{\"progress\": broken\nxxx"), "{}", messages.text);
        assert!(messages.text.len() < MAX_MESSAGES);
        let ended = Ended { code: None, messages: "palisade-replay: /a/b#1: bad".to_owned(), stopped: None };
        assert_eq!(ended.said(&[(Path::new("/a/b"), "shop.har")]), "shop.har#1: bad");
    }
}
