//! What the object guard costs a request for an object, with as many consumers as a node watches.

use proxy_host::Module;
use proxy_host::traffic::Exchange;

use super::Worker;
use super::switched::{Kind, Row};
use crate::waf::{median, nanos};

/// Objects that each consumer has read before anything is measured.
const READ_BEFORE: u64 = 5;
/// Consumers that read hundreds, and how many each.
const EAGER: u64 = 50;
const READ_BY_EAGER: u64 = 300;

/// What is measured, each without and with the guard.
#[derive(Debug, Clone, Copy)]
pub struct ObjectRows {
    /// Requests of all consumers in turns, each for a new object.
    pub ordinary: [Row; 2],
    /// Requests of a few consumers with large records.
    pub eager: [Row; 2],
    /// The bytes that the node keeps for all workers, without and with the guard.
    pub shared: [usize; 2],
}

/// Sends requests for objects through two chains in turns: so many consumers, and so many requests that are measured.
///
/// # Errors
///
/// A VM does not start, or dies; for people.
pub fn objects(
    (metered, module): (&Module, &Module),
    snapshots: [&[u8]; 2],
    (consumers, requests): (u64, u64),
) -> Result<ObjectRows, String> {
    let mut instructions = [[0.0; 2]; 2];
    for (place, snapshot) in snapshots.into_iter().enumerate() {
        let mut worker = Worker::start(metered, snapshot)?;
        filled(&mut worker, consumers)?;
        for (part, of) in [consumers, EAGER].into_iter().enumerate() {
            let spent = (0..requests / 10).map(|at| Ok(worker.run(&new_object(at, of, part), 0)?.instructions));
            let spent = spent.collect::<Result<Vec<u64>, String>>()?;
            instructions[part][place] = spent.iter().sum::<u64>() as f64 / spent.len().max(1) as f64;
        }
    }
    let mut workers = [Worker::start(module, snapshots[0])?, Worker::start(module, snapshots[1])?];
    for worker in &mut workers {
        filled(worker, consumers)?;
    }
    let mut rows = [[Row::default(); 2]; 2];
    for (part, of) in [consumers, EAGER].into_iter().enumerate() {
        let mut times = [Vec::new(), Vec::new()];
        for at in 0..requests {
            let exchange = new_object(at, of, part);
            // Each comes first as often as last.
            for place in [at % 2, 1 - at % 2].map(|place| usize::try_from(place).unwrap_or(0)) {
                times[place].push(nanos(workers[place].run(&exchange, 0)?.cpu));
            }
        }
        for place in 0..2 {
            rows[part][place] = Row { instructions: instructions[part][place], nanos: median(&times[place]) as f64 };
        }
    }
    let shared = [workers[0].shared().1, workers[1].shared().1];
    Ok(ObjectRows { ordinary: rows[0], eager: rows[1], shared })
}

/// Has each consumer read a few objects, and a few of them hundreds.
fn filled(worker: &mut Worker, consumers: u64) -> Result<(), String> {
    for round in 0..READ_BEFORE {
        for consumer in 0..consumers {
            worker.run(&request(consumer, round * consumers + consumer), 0)?;
        }
    }
    for at in 0..EAGER * READ_BY_EAGER {
        worker.run(&request(at % EAGER, 1 << 32 | at), 0)?;
    }
    Ok(())
}

fn new_object(at: u64, consumers: u64, part: usize) -> Exchange {
    request(at % consumers, (2 + part as u64) << 32 | at)
}

fn request(consumer: u64, number: u64) -> Exchange {
    let mut exchange = Kind::Page.exchange(number);
    exchange.request.peer = format!("10.{}.{}.{}:40000", consumer >> 16 & 255, consumer >> 8 & 255, consumer & 255);
    // Far from each other, so that there is no walk.
    let path =
        format!("/api/customers/{}/orders/{}", number.wrapping_mul(7919) % 100_003, number.wrapping_mul(1_000_003));
    for (name, value) in &mut exchange.request.headers {
        if name == b":path" {
            *value = path.clone().into_bytes();
        }
    }
    exchange
}
