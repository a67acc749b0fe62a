//! The control plane as a process, and its REST API.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tempfile::TempDir;

use crate::http::{Request, Response};
use crate::parts;
use crate::process::{Process, wait_for};

/// Where entity collections are served.
pub const ENTITIES: &str = "/apis/palisade.svc/v1";

const START: Duration = Duration::from_secs(60);

/// A running control plane on its embedded store. Dropping it kills it.
#[derive(Debug)]
pub struct ControlPlane {
    process: Process,
    program: PathBuf,
    data: PathBuf,
    rest: SocketAddr,
    xds: SocketAddr,
    authorization: String,
    arguments: Vec<String>,
    _folder: Option<TempDir>,
}

impl ControlPlane {
    /// Starts one with an empty store.
    ///
    /// # Panics
    ///
    /// When it does not come up; with its log.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// [`Self::start`] with further arguments.
    ///
    /// # Panics
    ///
    /// When it does not come up; with its log.
    #[must_use]
    pub fn start_with(arguments: &[String]) -> Self {
        let folder = tempfile::Builder::new().prefix("palisade-control-").tempdir().expect("a temporary folder");
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut control = Self::start_in(folder.path(), any, any, arguments).unwrap_or_else(|why| panic!("{why}"));
        control._folder = Some(folder);
        control
    }

    /// Starts one on a store folder and two addresses, with further arguments.
    ///
    /// # Errors
    ///
    /// When it does not come up; with its log.
    pub fn start_in(data: &Path, rest: SocketAddr, xds: SocketAddr, arguments: &[String]) -> Result<Self, String> {
        Self::start_release(&parts::palisade(), &parts::filters(), data, (rest, xds), arguments)
    }

    /// [`Self::start_in`] with another program and another folder of filters.
    ///
    /// # Errors
    ///
    /// When it does not come up; with its log.
    pub fn start_release(
        program: &Path,
        filters: &Path,
        data: &Path,
        (rest, xds): (SocketAddr, SocketAddr),
        arguments: &[String],
    ) -> Result<Self, String> {
        std::fs::create_dir_all(data).map_err(|error| format!("{}: {error}", data.display()))?;
        let ready_file = data.join("ready.json");
        // One that an earlier process left would name its ports.
        let _ = std::fs::remove_file(&ready_file);
        let mut all: Vec<String> = vec!["serve".into()];
        for (name, value) in [
            ("--data", text(data)),
            ("--listen", rest.to_string()),
            ("--xds-listen", xds.to_string()),
            ("--ready-file", text(&ready_file)),
            ("--filters-dir", text(filters)),
            ("--events-file", text(&data.join("events.jsonl"))),
        ] {
            all.extend([name.to_owned(), value]);
        }
        all.extend_from_slice(arguments);
        let log = data.join("palisade.log");
        let mut process = Process::start("palisade", program, &all, &log).map_err(|error| error.to_string())?;
        let ready: Value = wait_for("the control plane is ready", START, || {
            if process.ended().is_some() {
                return Some(None);
            }
            Some(Some(serde_json::from_slice(&std::fs::read(&ready_file).ok()?).ok()?))
        })
        .and_then(|ready| ready.ok_or_else(|| "the control plane ended at its start".to_owned()))
        .map_err(|why| format!("{why}\n{}", process.log_tail(40)))?;
        let key: Value = std::fs::read(data.join("admin-key.json"))
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .ok_or_else(|| format!("{} has no readable admin-key.json", data.display()))?;
        let credentials =
            format!("{}:{}", key["id"].as_str().unwrap_or_default(), key["secret"].as_str().unwrap_or_default());
        Ok(Self {
            process,
            program: program.to_path_buf(),
            data: data.to_path_buf(),
            rest: address(&ready["rest"])?,
            xds: address(&ready["xds"])?,
            authorization: format!("Basic {}", STANDARD.encode(&credentials)),
            arguments: arguments.to_vec(),
            _folder: None,
        })
    }

    /// Starts another one on the same shared store, with the first one's admin key.
    ///
    /// # Panics
    ///
    /// When it does not come up; with its log.
    #[must_use]
    pub fn start_beside(other: &Self) -> Self {
        Self::start_beside_on(other, &other.arguments)
    }

    /// [`Self::start_beside`] with other arguments, such as another way to the store.
    ///
    /// # Panics
    ///
    /// When it does not come up; with its log.
    #[must_use]
    pub fn start_beside_on(other: &Self, arguments: &[String]) -> Self {
        let folder = tempfile::Builder::new().prefix("palisade-control-").tempdir().expect("a temporary folder");
        let key = "admin-key.json";
        std::fs::copy(other.data.join(key), folder.path().join(key)).expect("the key is copied");
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let control = Self::start_in(folder.path(), any, any, arguments);
        let mut control = control.unwrap_or_else(|why| panic!("{why}"));
        control._folder = Some(folder);
        control
    }

    /// The arguments that name its shared store; none where it has a store of its own.
    #[must_use]
    pub fn shared_store(&self) -> Vec<String> {
        let named = self.arguments.iter().position(|argument| argument == "--store");
        named.map(|at| self.arguments.iter().skip(at).take(2).cloned().collect()).unwrap_or_default()
    }

    /// Kills it (SIGKILL). Its store stays.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Its process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Starts it again on its store and its addresses, after [`Self::kill`].
    ///
    /// # Panics
    ///
    /// When it does not come up; with its log.
    pub fn restart(&mut self) {
        self.process.kill();
        let mut fresh =
            Self::start_in(&self.data, self.rest, self.xds, &self.arguments).unwrap_or_else(|why| panic!("{why}"));
        fresh._folder = self._folder.take();
        *self = fresh;
    }

    /// Where REST is served.
    #[must_use]
    pub fn rest(&self) -> SocketAddr {
        self.rest
    }

    /// Where xDS and the node link are served.
    #[must_use]
    pub fn xds(&self) -> SocketAddr {
        self.xds
    }

    /// The program that it runs.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The folder of its store.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The value of the Authorization header of its admin key.
    #[must_use]
    pub fn authorization(&self) -> &str {
        &self.authorization
    }

    /// Its log so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// One call with the admin key.
    ///
    /// # Panics
    ///
    /// When there is no answer; with the log.
    #[must_use]
    pub fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Response {
        let mut request = Request::new(method, path).header("authorization", &self.authorization);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        request
            .send(self.rest)
            .unwrap_or_else(|error| panic!("{method} {path}: {error}\n{}", self.process.log_tail(40)))
    }

    /// The path of an entity, or of a collection for an empty id.
    #[must_use]
    pub fn path(collection: &str, id: &str) -> String {
        if id.is_empty() { format!("{ENTITIES}/{collection}") } else { format!("{ENTITIES}/{collection}/{id}") }
    }

    /// Creates an entity and returns it as stored.
    ///
    /// # Panics
    ///
    /// When the answer is not 201; with the answer.
    pub fn create(&self, collection: &str, entity: &Value) -> Value {
        let answer = self.call("POST", &Self::path(collection, ""), Some(entity));
        assert_eq!(answer.status, 201, "POST {collection} {entity}: {}", answer.text());
        answer.json()
    }

    /// Changes some fields of an entity (JSON merge patch) and returns it as stored.
    ///
    /// # Panics
    ///
    /// When the answer is not 200; with the answer.
    pub fn patch(&self, collection: &str, id: &str, change: &Value) -> Value {
        let answer = self.call("PATCH", &Self::path(collection, id), Some(change));
        assert_eq!(answer.status, 200, "PATCH {collection}/{id} {change}: {}", answer.text());
        answer.json()
    }

    /// Changes some fields of the global configuration.
    ///
    /// # Panics
    ///
    /// When the answer is not 200; with the answer.
    pub fn configure(&self, change: &Value) -> Value {
        self.patch("global-config", "global-config", change)
    }

    /// The events that have arrived, oldest first.
    ///
    /// # Panics
    ///
    /// When a line of the events file is no JSON; the last one may still be under way.
    #[must_use]
    pub fn events(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.data.join("events.jsonl")).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("no event ({error}): {line}")))
            .collect()
    }

    /// Waits for an event.
    ///
    /// # Panics
    ///
    /// When none comes in 15 s; with those that did.
    #[must_use]
    pub fn event(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        wait_for(&format!("an event: {what}"), Duration::from_secs(15), || {
            self.events().into_iter().find(|event| wanted(event))
        })
        .unwrap_or_else(|why| {
            let events = self.events();
            let last: Vec<String> = events.iter().rev().take(5).map(Value::to_string).collect();
            panic!("{why}; {} came, the last:\n{}\n{}", events.len(), last.join("\n"), self.process.log_tail(40))
        })
    }
}

/// `127.0.0.1:8900` or `http://127.0.0.1:8900`.
fn address(value: &Value) -> Result<SocketAddr, String> {
    let text = value.as_str().unwrap_or_default();
    text.trim_start_matches("http://")
        .trim_end_matches('/')
        .parse()
        .map_err(|_| format!("the ready file names no address: {value}"))
}

fn text(path: &Path) -> String {
    path.to_str().expect("test paths are text").to_owned()
}
