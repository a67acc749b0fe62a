//! A real Envoy: every exchange goes over a socket, as the bytes that its client writes.
//!
//! The gateway is configured as `envoy/standalone.yaml` has it, with the filter's configuration inline. What the filter
//! found comes back as operators get it: as filter state in the access log. An exchange has a connection of its own, and
//! its line in the log is known by the client's port.

mod access_log;
mod backend;
mod bootstrap;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use palisade_tests::envoy::{Envoy as Process, Launch};
use palisade_tests::http::{Connection, Response};
use palisade_tests::process::wait_for;

use super::Engine;
use access_log::{AccessLog, Entry};
use backend::Backend;
use bootstrap::Replay;
use proxy_host::traffic::{Exchange, Fault, LocalReply, Outcome, Request, event_lines};

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
    backend: Backend,
    /// Peers and responses are the recorded ones.
    replays: bool,
    /// How long a client waits for its answer.
    patience: Duration,
}

/// The longest that a filter may hold a recorded request.
const REPLAY_ANSWER: Duration = Duration::from_secs(60);

impl Envoy {
    /// The cluster of the control plane, for the link settings of a snapshot.
    pub const CONTROL: &str = bootstrap::CONTROL;

    /// Starts the gateway on ports that are free, and waits until it listens.
    ///
    /// `program` is Envoy's binary, `filter` a .wasm file, `configuration` a snapshot in its envelope.
    ///
    /// # Errors
    ///
    /// A file that is missing, or a gateway that does not come up; with its log.
    pub fn start(program: &Path, filter: &Path, configuration: &[u8]) -> Result<Self, String> {
        Self::launch(program, filter, &[configuration], None)
    }

    /// [`Envoy::start`] for recorded traffic: connections come from the recorded peers (by the PROXY protocol), the backend
    /// gives the recorded answers, every path has one route of this name, and clients wait for a minute. An empty name
    /// leaves the route that `envoy/standalone.yaml` has.
    ///
    /// # Errors
    ///
    /// As [`Envoy::start`].
    pub fn for_replay(
        program: &Path,
        filter: &Path,
        configuration: &[u8],
        route: &str,
        node: &str,
    ) -> Result<Self, String> {
        let replay = Replay { route: route.to_owned(), node: node.to_owned(), control: None };
        Self::launch(program, filter, &[configuration], Some(&replay))
    }

    /// [`Envoy::for_replay`] with the route that `envoy/standalone.yaml` has, and with one filter for each configuration, in this
    /// order, each in a VM of its own. `control` is where the cluster [`Envoy::CONTROL`] leads.
    ///
    /// # Errors
    ///
    /// As [`Envoy::start`].
    pub fn of_filters(
        program: &Path,
        filter: &Path,
        configurations: &[&[u8]],
        control: Option<SocketAddr>,
    ) -> Result<Self, String> {
        Self::launch(program, filter, configurations, Some(&Replay { control, ..Replay::default() }))
    }

    /// Where clients reach the gateway. A connection begins with a line of the PROXY protocol unless it was made by
    /// [`Envoy::start`].
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The gateway itself.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    fn launch(
        program: &Path,
        filter: &Path,
        configurations: &[&[u8]],
        replay: Option<&Replay>,
    ) -> Result<Self, String> {
        if !program.is_file() {
            let how = "`make envoy` fetches it, --envoy or PALISADE_ENVOY names another one";
            return Err(format!("{}: there is no Envoy; {how}", program.display()));
        }
        let filter: PathBuf = filter.canonicalize().map_err(|error| format!("{}: {error}", filter.display()))?;
        let backend = Backend::start().map_err(|error| format!("the backend: {error}"))?;
        let bootstrap = bootstrap::render(&filter, configurations, backend.address(), replay)?;
        let launch = Launch { program: program.to_owned(), workers: 1, cpu: None, log_flush_millis: FLUSH_MILLIS };
        let process = Process::launch(&bootstrap, &launch)?;
        let address = process.listener(bootstrap::LISTENER);
        wait_for("the gateway's port", ANSWER, || Connection::open(address).ok())
            .map_err(|why| format!("{why}\n{}", process.log_tail(40)))?;
        let log = AccessLog::open(process.access_log_path());
        let patience = if replay.is_some() { REPLAY_ANSWER } else { ANSWER };
        Ok(Self { process, log, address, backend, replays: replay.is_some(), patience })
    }

    /// The exchange's answer, as far as there is one, and its line in the access log.
    fn send(&mut self, exchange: &Exchange) -> Result<(Option<Response>, Entry), String> {
        let failed = |error: std::io::Error| format!("no connection to the gateway: {error}");
        let mut connection = Connection::open(self.address).map_err(failed)?;
        let port = connection.local_address().map_err(failed)?.port();
        connection.set_patience(self.patience).map_err(failed)?;
        if self.replays {
            self.backend.prepare(exchange.response.clone());
            let _ = connection.write(proxy_line(&exchange.request, self.address).as_bytes());
        }
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
        let last = self.backend.take_last().filter(|_| entry.reached_backend);
        let (request_headers, request_body) = last.unwrap_or_default();
        let mut outcome = Outcome {
            status: answer.status,
            reached_backend: entry.reached_backend,
            request_headers,
            request_body,
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

/// The first line of a connection in the PROXY protocol: where it came from and where to, as recorded. An address that is
/// none, or of the other family than the client's, becomes the gateway's.
fn proxy_line(request: &Request, gateway: SocketAddr) -> String {
    let Some(peer) = socket(&request.peer) else { return "PROXY UNKNOWN\r\n".to_owned() };
    let (family, own) = match peer {
        SocketAddr::V4(_) => ("TCP4", IpAddr::V4(Ipv4Addr::LOCALHOST)),
        SocketAddr::V6(_) => ("TCP6", IpAddr::V6(Ipv6Addr::LOCALHOST)),
    };
    let local = socket(&request.local).filter(|local| local.is_ipv4() == peer.is_ipv4());
    let local = local.unwrap_or(SocketAddr::new(own, gateway.port()));
    format!("PROXY {family} {} {} {} {}\r\n", peer.ip(), local.ip(), peer.port(), local.port())
}

/// An address and a port; a bare address has port 1.
fn socket(text: &str) -> Option<SocketAddr> {
    text.parse().ok().or_else(|| Some(SocketAddr::new(text.parse().ok()?, 1)))
}
