//! An operator who replays recordings at a real control plane.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::cli_support::{Server, run_with, text};
use crate::console_support::replay_program;
use serde_json::{Value, json};

pub(crate) const NS: &str = "/extensions/svc/extensions/waf";
pub(crate) const PASSWORD: &str = "correct horse battery";

/// An operator at a control plane.
pub(crate) struct Desk {
    pub(crate) rest: String,
    pub(crate) cookie: String,
    pub(crate) csrf: String,
}

impl Desk {
    pub(crate) fn login(server: &Server, name: &str) -> Desk {
        let mut desk = Desk { rest: server.rest.clone(), cookie: String::new(), csrf: String::new() };
        let body = json!({ "name": name, "password": PASSWORD }).to_string();
        let (status, head, body) = desk.send("POST", "/session/_login", "application/json", body.as_bytes(), true);
        assert_eq!(status, 200, "{body}");
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        desk.cookie = cookie.split(';').next().unwrap().to_owned();
        desk.csrf = body["csrf_token"].as_str().unwrap().to_owned();
        desk
    }

    /// Without `sized` the body comes in chunks.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        media_type: &str,
        body: &[u8],
        sized: bool,
    ) -> (u16, String, Value) {
        let mut stream = TcpStream::connect(&self.rest).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let framing = match sized {
            true => format!("content-length: {}", body.len()),
            false => "transfer-encoding: chunked".to_owned(),
        };
        let head = format!(
            "{method} {NS}{path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncookie: {}\r\nx-csrf-token: {}\r\n\
             content-type: {media_type}\r\n{framing}\r\n\r\n",
            self.cookie, self.csrf
        );
        // The server may answer before all has come, and close.
        let _ = stream.write_all(head.as_bytes());
        let _ = match sized {
            true => stream.write_all(body),
            false => body.chunks(1 << 16).try_for_each(|piece| {
                stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes())?;
                stream.write_all(piece)?;
                stream.write_all(b"\r\n")
            }),
        };
        if !sized {
            let _ = stream.write_all(b"0\r\n\r\n");
        }
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = text(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{method} {path}: no answer"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_owned(), serde_json::from_str(body).unwrap_or(Value::Null))
    }

    /// Posts bytes to a control plane that may end meanwhile.
    pub(crate) fn send_and_forget(&self, path: &str, body: &[u8]) {
        let Ok(mut stream) = TcpStream::connect(&self.rest) else { return };
        let head = format!(
            "POST {NS}{path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncookie: {}\r\nx-csrf-token: {}\r\n\
             content-type: application/octet-stream\r\ncontent-length: {}\r\n\r\n",
            self.cookie,
            self.csrf,
            body.len()
        );
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        let _ = stream.read_to_end(&mut Vec::new());
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let (status, _, body) = self.send("GET", path, "application/json", b"", true);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let (status, _, body) = self.send("POST", path, "application/json", body.to_string().as_bytes(), true);
        (status, body)
    }

    pub(crate) fn upload(&self, name: &str, bytes: &[u8]) -> (u16, Value) {
        let path = format!("/replay/_upload?name={name}");
        let (status, _, body) = self.send("POST", &path, "application/octet-stream", bytes, true);
        (status, body)
    }

    /// A recording that is kept, by its id.
    pub(crate) fn recording(&self, name: &str, bytes: &[u8]) -> String {
        let (status, body) = self.upload(name, bytes);
        assert_eq!(status, 200, "{body}");
        body["recording"]["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn start(&self, recording: &str, document: &Value) -> (u16, Value) {
        let change = json!({ "collection": "waf-configs", "id": "shop", "document": document });
        self.post("/replay/_start", &json!({ "recording": recording, "changes": [change] }))
    }

    /// The job in a state; how long that takes decides nothing.
    pub(crate) fn until(&self, id: &str, states: &[&str]) -> Value {
        for _ in 0..6_000 {
            let found = self.get(&format!("/replay/_job?id={id}"));
            if states.contains(&found["job"]["state"].as_str().unwrap()) {
                return found;
            }
            pause();
        }
        panic!("{id} does not get to {states:?}: {}", self.get("/replay/_jobs"));
    }
}

pub(crate) fn pause() {
    #[allow(clippy::disallowed_methods, reason = "a process is waited for, in no filter")]
    std::thread::sleep(Duration::from_millis(20));
}

/// A control plane with an admin, two analysts and a viewer, and the policy `shop`.
pub(crate) fn start(folder: &Path, options: &[&str]) -> (Server, Desk) {
    start_with(folder, options, &[])
}

/// The same on the shared store that the options name.
pub(crate) fn start_on_store(folder: &Path, options: &[&str]) -> (Server, Desk) {
    let store = options.iter().position(|option| *option == "--store").unwrap();
    start_with(folder, options, &options[store..store + 2])
}

fn start_with(folder: &Path, options: &[&str], store: &[&str]) -> (Server, Desk) {
    assert!(replay_program().is_file(), "{} is missing: cargo build -p harness", replay_program().display());
    let data = folder.join("data");
    let server = Server::start_with(&data, options);
    for (name, role) in [("alice", "admin"), ("anna", "analyst"), ("adam", "analyst"), ("victor", "viewer")] {
        let data = data.to_str().unwrap();
        let arguments = ["operator", "add", name, "--email", "someone@example.com", "--role", role, "--data", data];
        let added = run_with(&[&arguments[..], store].concat(), &format!("{PASSWORD}\n"));
        assert!(added.status.success(), "{added:?}");
    }
    let alice = Desk::login(&server, "alice");
    let policy = json!({ "id": "shop", "name": "Shop", "dry_run": false,
        "tiers": [{ "min_score": 40, "action": "deny", "status": 403 }] });
    let plugin =
        json!({ "plugin": "SecuritySuitePreset", "config": { "threat_policy": "shop", "waf_config": "shop" } });
    let route = json!({ "id": "shop", "name": "Shop", "plugins": [plugin] });
    for (collection, document) in [("threat-policies", policy), ("waf-configs", config("nothing")), ("routes", route)] {
        let (status, body) = alice.post(&format!("/entities/{collection}"), &document);
        assert_eq!(status, 201, "{body}");
    }
    (server, alice)
}

/// A config that refuses `q` with a value.
pub(crate) fn config(value: &str) -> Value {
    let rule = format!(r#"SecRule ARGS:q "@streq {value}" "id:7,phase:2,deny,status:403,log,msg:'{value}'""#);
    json!({ "id": "shop", "name": "Shop", "rules": ["SecRuleEngine On", rule] })
}

pub(crate) fn line(at: u64, path: &str) -> String {
    let headers = json!([["authorization", "Bearer sesame-open-1"], ["cookie", "sid=sesame-cookie-2"]]);
    let request = json!({ "path": path, "host": "shop.test", "headers": headers });
    json!({ "at": at, "peer": "192.0.2.1:1", "request": request, "status": 200 }).to_string() + "\n"
}

pub(crate) fn traffic() -> String {
    line(1_000, "/") + &line(2_000, "/?q=evil&token=sesame-token-3") + &line(3_000, "/?q=good")
}

pub(crate) fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(|entry| text_of(&entry.unwrap().path())).collect();
    names.sort();
    names
}

pub(crate) fn text_of(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

/// The files of a folder and below, as one text without compression.
pub(crate) fn all_text(folder: &Path) -> String {
    let mut all = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all += &all_text(&path);
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let bytes = if bytes.starts_with(&[0x1f, 0x8b]) { gzip("-dc", &bytes) } else { bytes };
        all += &String::from_utf8_lossy(&bytes);
        all.push('\n');
    }
    all
}

pub(crate) fn gzipped(bytes: &[u8]) -> Vec<u8> {
    gzip("-c", bytes)
}

fn gzip(option: &str, bytes: &[u8]) -> Vec<u8> {
    let mut child = Command::new("gzip").arg(option).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let writing = std::thread::spawn(move || input.write_all(&bytes));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap().unwrap();
    output.stdout
}

/// A program that runs the real one, but holds replays while there is a file `hold`; it writes its process to `pid`.
pub(crate) fn holding(folder: &Path) -> PathBuf {
    let program = folder.join("program");
    let place = folder.display();
    let real = replay_program();
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = diff ]; then\n echo $$ > {place}/pid.new && mv {place}/pid.new {place}/pid\n \
         while [ -e {place}/hold ]; do sleep 0.05; done\nfi\nexec {} \"$@\"\n",
        real.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.join("hold"), "").unwrap();
    program
}

/// The process that replays, which begins now.
pub(crate) fn pid(folder: &Path) -> String {
    for _ in 0..6_000 {
        if let Ok(pid) = fs::read_to_string(folder.join("pid")) {
            fs::remove_file(folder.join("pid")).unwrap();
            return pid.trim().to_owned();
        }
        pause();
    }
    panic!("no replay begins");
}

pub(crate) fn kill(pid: &str) {
    assert!(Command::new("kill").args(["-9", pid]).status().unwrap().success());
}

/// Waits until a process is over.
pub(crate) fn gone(pid: &str) {
    for _ in 0..6_000 {
        // A zombie is over, and waits for its parent to see it.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if stat.is_empty() || stat.contains(") Z ") {
            return;
        }
        pause();
    }
    panic!("the process {pid} goes on");
}

/// Waits for an event with all these words.
pub(crate) fn told(server: &Server, words: &[&str]) {
    for _ in 0..1_000 {
        let events = fs::read_to_string(&server.events).unwrap_or_default();
        if events.lines().any(|line| words.iter().all(|word| line.contains(word))) {
            return;
        }
        pause();
    }
    panic!("no event has {words:?}");
}
