//! A program's part in a challenge: the work, and handing it in.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Barrier;
use std::thread;

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::http::{Request, Response};

/// The header of a submission that solves the challenge in a program's answer.
///
/// # Errors
///
/// When the answer asks for nothing; with the answer.
pub fn solve(answer: &Response) -> Result<String, String> {
    let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let (Some(challenge), Some(bits)) = (body["challenge"].as_str(), body["difficulty"].as_u64()) else {
        return Err(format!("status {} asks for no work: {}", answer.status, answer.text()));
    };
    let solves = |nonce: &u64| {
        let hash = Sha256::digest(format!("{challenge}:{nonce}"));
        u64::from(u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]).leading_zeros()) >= bits
    };
    let nonce = (0_u64..).find(solves).ok_or("no number solves it")?;
    Ok(json!({"challenge": challenge, "nonce": nonce}).to_string())
}

/// Sends a request so many times at once, each on a connection of its own, and counts the statuses; 0 stands for no
/// answer.
///
/// # Panics
///
/// When the system has no thread left.
#[must_use]
pub fn at_once(request: &Request, to: SocketAddr, times: usize) -> BTreeMap<u16, usize> {
    let barrier = Barrier::new(times);
    let statuses: Vec<u16> = thread::scope(|scope| {
        let send = || {
            barrier.wait();
            request.send(to).map_or(0, |answer| answer.status)
        };
        let threads: Vec<_> = (0..times).map(|_| scope.spawn(send)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
    });
    let mut counts = BTreeMap::new();
    for status in statuses {
        *counts.entry(status).or_default() += 1;
    }
    counts
}
