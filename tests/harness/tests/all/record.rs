//! `palisade-replay record`, run as users run it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use recording::{Entry, Options};

fn traffic(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../traffic").join(name)
}

fn palisade_replay() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_palisade-replay"));
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    command
}

fn entries(path: &Path) -> Vec<Entry> {
    recording::open(&[path.to_owned()], &Options::default()).unwrap().map(Result::unwrap).collect()
}

/// All headers and bodies of a recording, as text.
fn text(entries: &[Entry]) -> String {
    let parts = entries.iter().flat_map(|entry| {
        let (request, response) = (&entry.exchange.request, &entry.exchange.response);
        let headers = request.headers.iter().chain(&response.headers).flat_map(|(name, value)| [name, value]);
        headers.chain([&request.body, &response.body])
    });
    parts.map(|bytes| String::from_utf8_lossy(bytes) + "\n").collect()
}

const SECRETS: [&str; 3] = ["4b1d0e2f", "eyJhbGciOiJub25lIn0", "correct+horse+battery+staple"];

#[test]
fn traces_become_a_recording_without_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("shop.jsonl.gz");
    let record = |more: &[&str]| {
        let mut command = palisade_replay();
        command.arg("record").arg("--from").arg(traffic("tap-proto")).arg("--to").arg(&to).args(more);
        command.output().unwrap()
    };
    let output = record(&["--mask-form", "password"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("17 requests, secrets are masked; 0 could not be read"), "{said}");
    let masked = entries(&to);
    let times: Vec<_> = masked.iter().map(|entry| entry.at_millis.unwrap()).collect();
    assert!(times.is_sorted());
    let masked = text(&masked);
    assert!(masked.contains("user=ada%40example.org&password=") && masked.contains("stars=5"));
    assert!(SECRETS.iter().all(|secret| !masked.contains(secret)), "{masked}");

    // What is there is not lost.
    let output = record(&[]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains("--force replaces it"), "{said}");
    assert_eq!(entries(&to).len(), 17);
    let output = record(&["--force", "--keep-secrets"]);
    assert!(output.status.success());
    let open = text(&entries(&to));
    assert!(SECRETS.iter().all(|secret| open.contains(secret)), "{open}");
}

#[test]
fn a_recording_is_converted_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.jsonl");
    let line = |path: &str, cookie: &str| {
        format!("{{\"request\": {{\"path\": \"{path}\", \"headers\": [[\"cookie\", \"sid={cookie}\"]]}}}}\n")
    };
    std::fs::write(&file, (0..50).map(|n| line(&format!("/{n}"), "4b1d0e2f-secret")).collect::<String>()).unwrap();
    let link = folder.path().join("link.jsonl");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    // The folder as the source, and a link as the name: both are the file.
    for (from, to) in [(&file, &file), (&folder.path().to_owned(), &link)] {
        let mut command = palisade_replay();
        let output = command.args(["record", "--force", "--from"]).arg(from).arg("--to").arg(to).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let found = entries(&file);
        assert!(found.len() >= 50 && !text(&found).contains("4b1d0e2f-secret"), "{}", found.len());
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    }
    // It is for its owner alone, and nothing lies beside it.
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    // What ends before its end leaves the file that was there, and so does what cannot be read.
    let before = std::fs::read(&file).unwrap();
    let mut command = palisade_replay();
    command.args(["record", "--force", "--format", "har", "--from"]).arg(&file).arg("--to").arg(&file);
    assert!(!command.output().unwrap().status.success());
    assert_eq!(std::fs::read(&file).unwrap(), before);
    let long = folder.path().join("long.jsonl");
    std::fs::write(&long, (0..9_000).map(|n| line(&format!("/{n:x<200}"), "x")).collect::<String>()).unwrap();
    let mut command = palisade_replay();
    command.args(["record", "--force", "--max-file-mib", "1", "--from"]).arg(&long).arg("--to").arg(&file);
    assert!(!command.output().unwrap().status.success());
    assert_eq!(std::fs::read(&file).unwrap(), before);
    // What is no file is written as it is.
    let output =
        palisade_replay().args(["record", "--force", "--to", "/dev/null", "--from"]).arg(&file).output().unwrap();
    assert!(output.status.success() && !std::fs::metadata("/dev/null").unwrap().is_file(), "{output:?}");
}

#[test]
fn a_source_that_is_not_there_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("shop.jsonl");
    let output = palisade_replay().args(["record", "--from", "nowhere", "--to"]).arg(&to).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains("nowhere: cannot be read"), "{said}");
    assert!(!to.exists());
}

/// A recorder that listens; dropping it ends it.
struct Listening(Child, std::net::SocketAddr);

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn streams_are_recorded_until_it_is_told_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("live.jsonl");
    let mut child = palisade_replay().args(["record", "--listen", "127.0.0.1:0", "--to"]).arg(&to).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let address = line.strip_prefix("listening on ").and_then(|rest| rest.split(';').next()).unwrap().parse().unwrap();
    let mut listening = Listening(child, address);

    let mut tap = TcpStream::connect(listening.1).unwrap();
    for number in 1..=3 {
        tap.write_all(&std::fs::read(traffic(&format!("tap-json/request_{number:02}.json"))).unwrap()).unwrap();
    }
    let mut log = TcpStream::connect(listening.1).unwrap();
    log.write_all(b"{\"request\": {\"path\": \"/from-a-log\", \"headers\": [[\"cookie\", null]]}}\nno json\n").unwrap();
    // A stream that ends has been written; one that goes on is, every second.
    drop(log);
    let lines = |wanted: usize| {
        palisade_tests::process::wait_for("lines in the file", std::time::Duration::from_secs(20), || {
            std::fs::read_to_string(&to).ok().filter(|text| text.lines().count() >= wanted)
        })
        .unwrap()
    };
    assert!(lines(4).contains("/from-a-log"));
    assert_eq!(std::fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o600);
    let pid = rustix::process::Pid::from_child(&listening.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let status = listening.0.wait().unwrap();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut said, &mut rest).unwrap();
    assert!(rest.contains("4 requests, secrets are masked; 1 could not be read"), "{rest}");
    assert_eq!(status.code(), Some(1));
    assert_eq!(entries(&to).len(), 4);
    drop(tap);
}
