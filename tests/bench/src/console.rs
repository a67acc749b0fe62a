//! An operator on a connection that is kept.

use std::time::{Duration, Instant};

use palisade_tests::console;
use palisade_tests::control_plane::ControlPlane;
use palisade_tests::http::{Connection, Request, Response};
use serde_json::Value;

/// Lifting 100,000 bans takes a while.
const PATIENCE: Duration = Duration::from_secs(120);

/// An operator who is logged in.
pub struct Console {
    session: console::Console,
    connection: Connection,
}

impl Console {
    /// Makes the operator and logs in.
    pub fn login(control: &ControlPlane) -> Result<Console, String> {
        Ok(Console { session: console::Console::login(control), connection: open(control)? })
    }

    /// Goes on over a new connection, with the same control plane or one that was started anew: sessions outlive it.
    pub fn reconnect(&mut self, control: &ControlPlane) -> Result<(), String> {
        self.connection = open(control)?;
        Ok(())
    }

    /// Asks for something; when the answer was there.
    pub fn post(&mut self, path: &str, body: &Value) -> Result<Instant, String> {
        let (answer, at) = self.send(path, &self.session.change(path, body))?;
        if answer.json()["done"] != true {
            return Err(format!("{path} {body}: {}", answer.text()));
        }
        Ok(at)
    }

    /// Reads something.
    pub fn get(&mut self, path: &str) -> Result<Response, String> {
        self.send(path, &self.session.read(path)).map(|(answer, _)| answer)
    }

    /// Reads something of another part, such as `events/_search`.
    pub fn show(&mut self, path: &str) -> Result<Response, String> {
        self.send(path, &self.session.request(path)).map(|(answer, _)| answer)
    }

    fn send(&mut self, path: &str, request: &Request) -> Result<(Response, Instant), String> {
        let answer = self.connection.exchange(request);
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
