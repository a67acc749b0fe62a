//! A botnet: requests of many identities within a minute.

use std::time::Duration;

use proxy_host::Module;
use proxy_host::traffic::Exchange;

use super::Worker;
use super::switched::Kind;

/// What is sent.
#[derive(Debug, Clone, Copy)]
pub struct Crowd {
    /// How many callers there are; each request comes from the next one.
    pub identities: u64,
    /// How many requests.
    pub requests: u64,
    /// Within how many milliseconds.
    pub millis: u64,
}

/// What is read at one time.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// The requests so far.
    pub requests: u64,
    /// The mean processor time of a request since the reading before.
    pub cpu: Duration,
    /// The VM's memory in bytes.
    pub memory: usize,
    /// The values that the node keeps for all workers.
    pub shared: usize,
    /// Their bytes.
    pub shared_bytes: usize,
}

/// Sends the requests of a crowd through one VM. Of four, two are GETs of pages, one fails with 404 and one is a login that fails, each
/// of a user of the caller's own. What is read comes ten times.
///
/// # Errors
///
/// The VM does not start, or dies; for people.
pub fn crowd(module: &Module, snapshot: &[u8], crowd: Crowd) -> Result<Vec<Reading>, String> {
    let mut worker = Worker::start(module, snapshot)?;
    let mut readings = vec![reading(&worker, 0, Duration::ZERO)];
    let every = (crowd.requests / 10).max(1);
    let (mut spent, mut now) = (Duration::ZERO, 0);
    for number in 0..crowd.requests {
        let then = number * crowd.millis / crowd.requests.max(1);
        let exchange = exchange(number, number % crowd.identities.max(1));
        spent += worker.run(&exchange, then - now)?.cpu;
        now = then;
        if (number + 1) % every == 0 {
            readings.push(reading(&worker, number + 1, spent.div_f64(every as f64)));
            spent = Duration::ZERO;
        }
    }
    Ok(readings)
}

fn reading(worker: &Worker, requests: u64, cpu: Duration) -> Reading {
    let (shared, shared_bytes) = worker.shared();
    Reading { requests, cpu, memory: worker.memory(), shared, shared_bytes }
}

fn exchange(number: u64, identity: u64) -> Exchange {
    let kind = if number % 4 == 3 { Kind::FailedLogin } else { Kind::Page };
    let mut exchange = kind.exchange(number);
    exchange.request.peer = format!("10.{}.{}.{}:40000", identity >> 16 & 255, identity >> 8 & 255, identity & 255);
    if number % 4 == 2 {
        exchange.response.status = 404;
    }
    if kind == Kind::FailedLogin {
        exchange.request.body = format!("username=user{identity}&password=pass-{identity:x}").into_bytes();
        let length = exchange.request.body.len().to_string();
        let lengths = exchange.request.headers.iter_mut().filter(|(name, _)| name == b"content-length");
        lengths.for_each(|(_, value)| *value = length.clone().into());
    }
    exchange
}
