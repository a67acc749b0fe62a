//! Published schemas and messages, for tests: scripts that check events with them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a script in tests/scripts makes of `input`. It ends well or the test fails with what it has written.
pub(crate) fn run(script: &str, input: &[u8]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let given = std::env::var_os("PALISADE_EVENT_SCHEMAS").map(PathBuf::from);
    let python = given.unwrap_or_else(|| root.join(".cache/event-schemas")).join("bin/python");
    assert!(python.exists(), "the published schemas are not at {}: run `make event-schemas`", python.display());
    let mut command = Command::new(python);
    command.arg(root.join("tests/scripts").join(script)).env("PYTHONDONTWRITEBYTECODE", "1");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The scripts read everything before they write.
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}
