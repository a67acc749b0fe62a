//! The `palisade` binary as a process, and just enough HTTP to talk to it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// A command that inherits none of the caller's settings.
pub(crate) fn palisade(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    palisade(arguments).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A running control plane; killed when dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) rest: String,
    pub(crate) xds: String,
    pub(crate) authorization: String,
    pub(crate) log: PathBuf,
    pub(crate) events: PathBuf,
}

impl Server {
    /// Starts one on `data` and waits until it listens.
    pub(crate) fn start(data: &Path) -> Server {
        Server::start_with(data, &[])
    }

    /// [`Server::start`] with further options.
    pub(crate) fn start_with(data: &Path, options: &[&str]) -> Server {
        Server::start_as(data, |mut command| {
            command.args(options);
            command
        })
    }

    /// [`Server::start`] with another command made of the one that it would run.
    pub(crate) fn start_as(data: &Path, more: impl FnOnce(Command) -> Command) -> Server {
        let ready = data.with_extension("ready");
        let log = data.with_extension("log");
        let events = data.with_extension("events");
        let _ = std::fs::remove_file(&ready);
        let out = std::fs::File::options().create(true).append(true).open(&log).unwrap();
        let mut command = palisade(&["serve", "--listen", "127.0.0.1:0", "--xds-listen", "127.0.0.1:0", "--data"]);
        command
            .args([data.as_os_str(), "--ready-file".as_ref(), ready.as_os_str()])
            .args(["--events-file".as_ref(), events.as_os_str()]);
        let mut child = more(command).stderr(out).spawn().unwrap();
        let ready = wait_for(&mut child, &ready, &log);
        assert_eq!(ready["pid"], child.id());
        let key: Value = serde_json::from_slice(&std::fs::read(data.join("admin-key.json")).unwrap()).unwrap();
        let pair = format!("{}:{}", key["id"].as_str().unwrap(), key["secret"].as_str().unwrap());
        let authorization = format!("Basic {}", STANDARD.encode(pair));
        let at = |side: &str| ready[side].as_str().unwrap().to_owned();
        Server { child, rest: at("rest"), xds: at("xds"), authorization, log, events }
    }

    /// Sends SIGTERM or SIGKILL.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_for(child: &mut Child, ready: &Path, log: &Path) -> Value {
    // The bound only keeps a hanging start from hanging the test.
    for _ in 0..3000 {
        if let Ok(text) = std::fs::read(ready) {
            return serde_json::from_slice(&text).unwrap();
        }
        if let Some(status) = child.try_wait().unwrap() {
            panic!("ended with {status}: {}", std::fs::read_to_string(log).unwrap());
        }
        #[allow(clippy::disallowed_methods, reason = "a process is waited for, in no filter")]
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("did not get ready: {}", std::fs::read_to_string(log).unwrap());
}

/// One request on a connection of its own: the status and the body, or what broke the connection.
pub(crate) fn request(
    rest: &str,
    authorization: &str,
    method: &str,
    path: &str,
    body: &str,
) -> std::io::Result<(u16, String)> {
    let (status, _, body) = exchange(rest, &[("authorization", authorization)], method, path, body)?;
    Ok((status, body))
}

/// [`request`] with these headers; answers the head as well.
pub(crate) fn exchange(
    rest: &str,
    headers: &[(&str, &str)],
    method: &str,
    path: &str,
    body: &str,
) -> std::io::Result<(u16, String, String)> {
    let mut stream = TcpStream::connect(rest)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let length = body.len();
    let json = [("content-type", "application/json")];
    let typed = headers.iter().any(|(name, _)| *name == "content-type");
    let all = headers.iter().chain(json.iter().filter(|_| !typed));
    let headers: String = all.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{headers}\
         content-length: {length}\r\n\r\n{body}"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = text(&answer);
    let broken = || std::io::Error::other("no whole answer");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(broken)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(broken)?;
    Ok((status, head.to_owned(), body.to_owned()))
}

/// Runs a command to its end that reads `input`.
pub(crate) fn run_with(arguments: &[&str], input: &str) -> Output {
    let mut child =
        palisade(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It may end without having read: what it says then is what counts.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}
