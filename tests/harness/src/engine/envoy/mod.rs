//! A real Envoy: every exchange goes over a socket, as the bytes that its client writes.
//!
//! The gateway is configured as `envoy/standalone.yaml` has it, with the filter's configuration inline. What the filter
//! found comes back as operators get it: as filter state in the access log. An exchange has a connection of its own, and
//! its line in the log is known by the client's port.

mod access_log;
mod backend;
mod bootstrap;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use palisade_tests::envoy::{Envoy as Process, Launch};
use palisade_tests::http::{Connection, Response};
use palisade_tests::process::wait_for;

use super::Engine;
use crate::traffic::{Exchange, Fault, LocalReply, Outcome, event_lines};
use access_log::{AccessLog, Entry};
use backend::Backend;

/// How long a client waits for its answer. A request that never becomes whole is never answered; the wait is also what
/// such a test costs.
const ANSWER: Duration = Duration::from_secs(2);
/// How long the access log may take. It is written every few milliseconds.
const LOGGED: Duration = Duration::from_secs(20);
/// How often Envoy writes its access log, in milliseconds.
const FLUSH_MILLIS: u32 = 2;
/// What Envoy says of a response that came from the backend; the second where the backend declines an upgrade.
const FROM_BACKEND: [&str; 2] = ["via_upstream", "websocket_handshake_unsuccessful"];

/// A filter in a real Envoy with one worker. Dropping it stops the gateway.
#[derive(Debug)]
pub struct Envoy {
    process: Process,
    log: AccessLog,
    address: SocketAddr,
    /// What the gateway forwards to. It ends with its last connection.
    _backend: Backend,
}

impl Envoy {
    /// Starts the gateway on ports that are free, and waits until it listens.
    ///
    /// `program` is Envoy's binary, `filter` a .wasm file, `configuration` a snapshot in its envelope.
    ///
    /// # Errors
    ///
    /// A file that is missing, or a gateway that does not come up; with its log.
    pub fn start(program: &Path, filter: &Path, configuration: &[u8]) -> Result<Self, String> {
        if !program.is_file() {
            let how = "`make envoy` fetches it, --envoy or PALISADE_ENVOY names another one";
            return Err(format!("{}: there is no Envoy; {how}", program.display()));
        }
        let filter: PathBuf = filter.canonicalize().map_err(|error| format!("{}: {error}", filter.display()))?;
        let backend = Backend::start().map_err(|error| format!("the backend: {error}"))?;
        let bootstrap = bootstrap::render(&filter, configuration, backend.address())?;
        let launch = Launch { program: program.to_owned(), workers: 1, cpu: None, log_flush_millis: FLUSH_MILLIS };
        let process = Process::launch(&bootstrap, &launch)?;
        let address = process.listener(bootstrap::LISTENER);
        wait_for("the gateway's port", ANSWER, || Connection::open(address).ok())
            .map_err(|why| format!("{why}\n{}", process.log_tail(40)))?;
        let log = AccessLog::open(process.access_log_path());
        Ok(Self { process, log, address, _backend: backend })
    }

    /// The exchange's answer, as far as there is one, and its line in the access log.
    fn send(&mut self, exchange: &Exchange) -> Result<(Option<Response>, Entry), String> {
        let failed = |error: std::io::Error| format!("no connection to the gateway: {error}");
        let mut connection = Connection::open(self.address).map_err(failed)?;
        let port = connection.local_address().map_err(failed)?.port();
        connection.set_patience(ANSWER).map_err(failed)?;
        // A gateway that refuses early closes before it has read everything; its answer still counts.
        let _ = connection.write(&exchange.request.on_wire());
        let answer = connection.read(exchange.request.header(":method") == Some(b"HEAD")).ok();
        drop(connection);
        let entry = wait_for("the request's line in the access log", LOGGED, || self.log.take(port))?;
        Ok((answer, entry))
    }
}

impl Engine for Envoy {
    fn name(&self) -> &'static str {
        "envoy"
    }

    fn exchange(&mut self, exchange: &Exchange) -> Outcome {
        let (answer, entry) = match self.send(exchange) {
            Ok(found) => found,
            Err(why) => {
                let message = format!("{why}\n{}", self.process.log_tail(20));
                let fault = Fault { callback: "the gateway".to_owned(), message, request: exchange.request.line() };
                return Outcome { status: 503, fault: Some(fault), ..Outcome::default() };
            }
        };
        let answer = answer.unwrap_or(Response { status: 0, headers: Vec::new(), body: Vec::new() });
        let mut outcome = Outcome {
            status: answer.status,
            reached_backend: entry.reached_backend,
            events: event_lines(&entry.events),
            response_headers: answer.headers.into_iter().map(|(name, value)| (name.into_bytes(), value)).collect(),
            body: answer.body,
            ..Outcome::default()
        };
        // Flags may follow, such as of a connection that ended early.
        if !FROM_BACKEND.iter().any(|details| entry.details.starts_with(details)) {
            outcome.local_reply = Some(LocalReply {
                status: entry.status,
                details: entry.details,
                headers: outcome.response_headers.clone(),
                body: outcome.body.clone(),
            });
        }
        outcome
    }
}
