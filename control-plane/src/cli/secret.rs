//! Passwords from the terminal, without showing them, or from standard input.

use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::error::CliError;
use accounts::MAX_PASSWORD_BYTES;

/// Reads a password. On a terminal it asks twice with `prompt`; otherwise it is the first line of standard input.
pub(super) fn read_password(prompt: &str) -> Result<String, CliError> {
    if !std::io::stdin().is_terminal() {
        return line();
    }
    let password = ask(prompt)?;
    if ask("Once more: ")? != password {
        return Err(CliError::Other("the two passwords differ; nothing was changed".to_owned()));
    }
    Ok(password)
}

fn ask(prompt: &str) -> Result<String, CliError> {
    let failed = |error| CliError::Io("write to the terminal".to_owned(), error);
    let mut out = std::io::stderr().lock();
    write!(out, "{prompt}").and_then(|()| out.flush()).map_err(failed)?;
    let silence = Silence::begin()?;
    let password = line();
    drop(silence);
    // The line's own end was not shown either.
    writeln!(out).map_err(failed)?;
    password
}

/// The first line of standard input, without its end.
fn line() -> Result<String, CliError> {
    let mut text = Vec::new();
    // One byte more than a password may have, and the end of the line: what is too long is seen to be.
    let limit = u64::try_from(MAX_PASSWORD_BYTES).unwrap_or(u64::MAX).saturating_add(3);
    let read = std::io::stdin().lock().take(limit).read_until(b'\n', &mut text);
    read.map_err(|error| CliError::Io("read the password from standard input".to_owned(), error))?;
    let text = String::from_utf8(text).map_err(|_| CliError::Other("the password is not UTF-8".to_owned()))?;
    Ok(text.strip_suffix('\n').map_or(text.as_str(), |line| line.strip_suffix('\r').unwrap_or(line)).to_owned())
}

/// A terminal that does not show what is typed, until this is dropped.
struct Silence(Termios);

impl Silence {
    fn begin() -> Result<Silence, CliError> {
        let failed = |error: rustix::io::Errno| CliError::Io("silence the terminal".to_owned(), error.into());
        let before = tcgetattr(std::io::stdin()).map_err(failed)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &silent).map_err(failed)?;
        Ok(Silence(before))
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // A terminal that is gone has nothing to restore.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.0);
    }
}
