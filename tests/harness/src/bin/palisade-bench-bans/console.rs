//! An operator's session on the admin API.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use palisade_tests::control_plane::ControlPlane;
use palisade_tests::http::{Connection, Request, Response};
use palisade_tests::parts;
use serde_json::{Value, json};

const NS: &str = "/extensions/svc/extensions/waf";
const PASSWORD: &str = "correct horse battery";
/// Lifting 100,000 bans takes a while.
const PATIENCE: Duration = Duration::from_secs(120);

/// An operator who is logged in, on a connection that is kept.
pub(crate) struct Console {
    connection: Connection,
    cookie: String,
    csrf: String,
}

impl Console {
    /// Makes the operator and logs in.
    pub(crate) fn login(control: &ControlPlane) -> Result<Console, String> {
        let mut add = Command::new(parts::palisade())
            .args(["operator", "add", "bench", "--email", "bench@example.com", "--data"])
            .arg(control.data())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("palisade operator add: {error}"))?;
        let written = add.stdin.take().map(|mut stdin| stdin.write_all(PASSWORD.as_bytes()));
        let ended = add.wait().map_err(|error| error.to_string())?;
        if !ended.success() || !matches!(written, Some(Ok(()))) {
            return Err(format!("palisade operator add ended with {ended}"));
        }
        let login = Request::json(format!("{NS}/session/_login"), &json!({"name": "bench", "password": PASSWORD}));
        let mut connection = open(control)?;
        let answer = connection.exchange(&login).map_err(|error| format!("login: {error}"))?;
        let cookie = answer.header("set-cookie").filter(|_| answer.status == 200);
        let cookie = cookie.ok_or_else(|| format!("login: {} {}", answer.status, answer.text()))?;
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        let csrf = answer.json()["csrf_token"].as_str().unwrap_or_default().to_owned();
        Ok(Console { connection, cookie, csrf })
    }

    /// Goes on over a new connection, with the same control plane or one that was started anew: sessions outlive it.
    pub(crate) fn reconnect(&mut self, control: &ControlPlane) -> Result<(), String> {
        self.connection = open(control)?;
        Ok(())
    }

    /// Asks for something; when the answer was there.
    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Result<Instant, String> {
        let request = Request::json(format!("{NS}/security/{path}"), body).header("x-csrf-token", &self.csrf);
        let (answer, at) = self.send(path, request)?;
        if answer.json()["done"] != true {
            return Err(format!("{path} {body}: {}", answer.text()));
        }
        Ok(at)
    }

    /// Reads something.
    pub(crate) fn get(&mut self, path: &str) -> Result<Response, String> {
        self.send(path, Request::get(format!("{NS}/security/{path}"))).map(|(answer, _)| answer)
    }

    fn send(&mut self, path: &str, request: Request) -> Result<(Response, Instant), String> {
        let answer = self.connection.exchange(&request.header("cookie", &self.cookie));
        let at = Instant::now();
        match answer {
            Ok(answer) if answer.status == 200 => Ok((answer, at)),
            Ok(answer) => Err(format!("{path}: {} {}", answer.status, answer.text())),
            Err(error) => Err(format!("{path}: {error}")),
        }
    }
}

fn open(control: &ControlPlane) -> Result<Connection, String> {
    let connect = || {
        let mut connection = Connection::open(control.rest())?;
        connection.set_patience(PATIENCE)?;
        Ok(connection)
    };
    connect().map_err(|error: std::io::Error| format!("{}: {error}", control.rest()))
}
