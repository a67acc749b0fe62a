//! Connections of which the worker is known, and when each of them refuses a caller.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use palisade_tests::envoy::Envoy;
use palisade_tests::http::{Connection, Request, percent};

/// Workers of each Envoy.
pub const WORKERS: usize = 2;
/// No change takes this long on any machine; it bounds a run that fails.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Enough connections that no worker stays out of it.
const MAX_TRIES: usize = 200;
/// Between two questions to one worker.
const PAUSE: Duration = Duration::from_micros(500);
const ATTACK: &str = "1' UNION SELECT password FROM users-- -";

/// An Envoy, and a connection to each of its workers.
#[derive(Debug)]
pub struct Node {
    /// First, so that it ends before what it depends on.
    pub envoy: Envoy,
    /// A connection to each worker.
    pub workers: Vec<Connection>,
    /// Where clients connect.
    pub address: SocketAddr,
}

/// A connection to every worker. Envoy counts connections by worker: one is opened at a time, and the counter that moves
/// identifies its worker.
///
/// # Errors
///
/// When a harmless request is refused, or a worker takes no connection.
pub fn each_worker(envoy: &Envoy, address: SocketAddr) -> Result<Vec<Connection>, String> {
    let mut found: Vec<(String, Connection)> = Vec::new();
    for _ in 0..MAX_TRIES {
        let before = envoy.worker_connections();
        let mut connection = Connection::open(address).map_err(|error| format!("{address}: {error}"))?;
        let status = ask(&mut connection, &harmless("nobody"))?;
        if status != 200 {
            return Err(format!("a harmless request is answered with {status}"));
        }
        let after = envoy.worker_connections();
        let mut moved = after.iter().filter(|(name, count)| before.get(*name).is_none_or(|known| known < *count));
        let (Some((worker, _)), None) = (moved.next(), moved.next()) else {
            continue;
        };
        if !found.iter().any(|(known, _)| known == worker) {
            found.push((worker.clone(), connection));
        }
        if found.len() == WORKERS {
            return Ok(found.into_iter().map(|(_, connection)| connection).collect());
        }
    }
    Err(format!("{} of {WORKERS} workers took a connection: {:?}", found.len(), envoy.worker_connections()))
}

/// A request that is refused for its caller alone.
#[must_use]
pub fn harmless(caller: &str) -> Request {
    Request::get("/").header("x-caller", caller)
}

/// A request that the policy bans for.
#[must_use]
pub fn attack(caller: &str) -> Request {
    Request::get(format!("/search?q={}", percent(ATTACK))).header("x-caller", caller)
}

/// The status of a request.
///
/// # Errors
///
/// When there is no answer.
pub fn ask(connection: &mut Connection, request: &Request) -> Result<u16, String> {
    connection.exchange(request).map(|answer| answer.status).map_err(|error| format!("no answer: {error}"))
}

/// No worker may refuse a caller that is not banned yet.
///
/// # Errors
///
/// When a worker refuses.
pub fn let_in_by_all(nodes: &mut [&mut Node], caller: &str) -> Result<(), String> {
    for connection in nodes.iter_mut().flat_map(|node| &mut node.workers) {
        let status = ask(connection, &harmless(caller))?;
        if status != 200 {
            return Err(format!("{caller}, which is not banned, is answered with {status}"));
        }
    }
    Ok(())
}

/// Asks every worker again and again, each by itself; the milliseconds until the last of them refused.
///
/// # Errors
///
/// When a worker does not answer, or does not refuse within [`PATIENCE`].
///
/// # Panics
///
/// Only with a defect of this function.
pub fn refused_by_all(since: Instant, nodes: &mut [&mut Node], caller: &str) -> Result<f64, String> {
    let until = |connection: &mut Connection| {
        let request = harmless(caller);
        loop {
            if ask(connection, &request)? == 403 {
                return Ok(since.elapsed());
            }
            if since.elapsed() > PATIENCE {
                return Err(format!("{caller} is not refused after {} s", PATIENCE.as_secs()));
            }
            std::thread::sleep(PAUSE);
        }
    };
    let times: Vec<Result<Duration, String>> = std::thread::scope(|scope| {
        let workers = nodes.iter_mut().flat_map(|node| &mut node.workers);
        let asking: Vec<_> = workers.map(|connection| scope.spawn(move || until(connection))).collect();
        asking.into_iter().map(|thread| thread.join().expect("asking does not panic")).collect()
    });
    let last = times.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().max().unwrap_or_default();
    Ok(last.as_secs_f64() * 1000.0)
}
