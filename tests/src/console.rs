//! An operator at the console.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::control_plane::ControlPlane;
use crate::http::{Request, Response};

/// Where the console is served.
pub const NS: &str = "/extensions/svc/extensions/waf";
const PASSWORD: &str = "correct horse battery";

/// An operator's session. It outlives a restart of the control plane.
#[derive(Debug, Clone)]
pub struct Console {
    rest: SocketAddr,
    cookie: String,
    csrf: String,
}

impl Console {
    /// Adds the operator `alice` and logs her in.
    ///
    /// # Panics
    ///
    /// When one of them fails; with the answer.
    #[must_use]
    pub fn login(control: &ControlPlane) -> Self {
        let mut add = Command::new(control.program())
            .args(["operator", "add", "alice", "--email", "alice@example.com", "--data"])
            .arg(control.data())
            .args(control.shared_store())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the program starts");
        add.stdin.take().expect("it has an input").write_all(PASSWORD.as_bytes()).expect("it reads the password");
        assert!(add.wait().expect("it ends").success(), "no operator was added");
        let rest = control.rest();
        let login = Request::json(format!("{NS}/session/_login"), &json!({"name": "alice", "password": PASSWORD}));
        let answer = login.send(rest).expect("an answer to the login");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let cookie = answer.header("set-cookie").expect("a cookie");
        let csrf = answer.json()["csrf_token"].as_str().expect("a token").to_owned();
        Self { rest, cookie: cookie.split(';').next().unwrap_or_default().to_owned(), csrf }
    }

    /// The same session at another control plane, which shares the store.
    #[must_use]
    pub fn at(&self, control: &ControlPlane) -> Self {
        Self { rest: control.rest(), cookie: self.cookie.clone(), csrf: self.csrf.clone() }
    }

    /// What a call of `security/PATH` that changes something is answered with.
    ///
    /// # Panics
    ///
    /// When it is not answered with 200.
    #[must_use]
    pub fn post(&self, path: &str, body: &Value) -> Value {
        self.try_post(path, body).unwrap_or_else(|error| panic!("no answer to {path}: {error}"))
    }

    /// The same, where nobody may be there.
    ///
    /// # Errors
    ///
    /// When there is no whole answer.
    ///
    /// # Panics
    ///
    /// When the answer is not one of 200.
    pub fn try_post(&self, path: &str, body: &Value) -> io::Result<Value> {
        self.send(&self.change(path, body))
    }

    /// What `security/PATH` shows.
    ///
    /// # Panics
    ///
    /// When it is not answered with 200.
    #[must_use]
    pub fn get(&self, path: &str) -> Value {
        self.try_get(path).unwrap_or_else(|error| panic!("no answer to {path}: {error}"))
    }

    /// The same, where nobody may be there.
    ///
    /// # Errors
    ///
    /// When there is no whole answer.
    ///
    /// # Panics
    ///
    /// When the answer is not one of 200.
    pub fn try_get(&self, path: &str) -> io::Result<Value> {
        self.send(&self.read(path))
    }

    /// What a read of `security/PATH` is answered with, whatever the status.
    ///
    /// # Errors
    ///
    /// When there is no answer.
    pub fn try_read(&self, path: &str) -> io::Result<Response> {
        self.read(path).send(self.rest)
    }

    /// The request that has `security/PATH` change something.
    #[must_use]
    pub fn change(&self, path: &str, body: &Value) -> Request {
        let request = Request::json(format!("{NS}/security/{path}"), body);
        request.header("x-csrf-token", &self.csrf).header("cookie", &self.cookie)
    }

    /// The request that reads `security/PATH`.
    #[must_use]
    pub fn read(&self, path: &str) -> Request {
        Request::get(format!("{NS}/security/{path}")).header("cookie", &self.cookie)
    }

    /// What a call of another part of the console is answered with, such as `reputation/_refresh`.
    ///
    /// # Panics
    ///
    /// When it is not answered with 200.
    #[must_use]
    pub fn call(&self, path: &str, body: &Value) -> Value {
        let answer = self.answer(path, body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    /// The same with whatever status it has.
    ///
    /// # Panics
    ///
    /// When there is no answer.
    #[must_use]
    pub fn answer(&self, path: &str, body: &Value) -> Response {
        self.try_answer(path, body).unwrap_or_else(|error| panic!("no answer to {path}: {error}"))
    }

    /// The same, where the control plane may be gone.
    ///
    /// # Errors
    ///
    /// When there is no whole answer.
    pub fn try_answer(&self, path: &str, body: &Value) -> io::Result<Response> {
        let request = Request::json(format!("{NS}/{path}"), body);
        let request = request.header("x-csrf-token", &self.csrf).header("cookie", &self.cookie);
        request.send(self.rest)
    }

    /// Uploads a recording.
    ///
    /// # Panics
    ///
    /// When it is not answered with 200.
    pub fn upload(&self, name: &str, recording: &str) {
        let request = Request::post(format!("{NS}/replay/_upload?name={name}"), "application/octet-stream", recording);
        let request = request.header("x-csrf-token", &self.csrf).header("cookie", &self.cookie);
        let answer = request.send(self.rest).unwrap_or_else(|error| panic!("no answer to an upload: {error}"));
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    /// What another part of the console shows, such as `reputation/_status`.
    ///
    /// # Panics
    ///
    /// When it is not answered with 200.
    #[must_use]
    pub fn show(&self, path: &str) -> Value {
        self.send(&self.request(path)).unwrap_or_else(|error| panic!("no answer to {path}: {error}"))
    }

    /// The request that reads another part of the console, such as `events/_search`.
    #[must_use]
    pub fn request(&self, path: &str) -> Request {
        Request::get(format!("{NS}/{path}")).header("cookie", &self.cookie)
    }

    fn send(&self, request: &Request) -> io::Result<Value> {
        let answer = request.send(self.rest)?;
        assert_eq!(answer.status, 200, "{}", answer.text());
        // The headers may be all that came before the end.
        serde_json::from_slice(&answer.body).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}
