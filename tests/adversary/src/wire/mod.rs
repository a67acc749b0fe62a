//! What goes over the wire, and what comes back.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

pub mod h2;
pub mod hpack;
pub mod http1;

/// What is sent on one connection.
#[derive(Debug, Clone)]
pub enum Sending {
    /// Bytes as they are; HTTP/1 or not.
    Http1 {
        /// All of them.
        bytes: Vec<u8>,
        /// Sent in pieces, with pauses.
        slow: Option<Slow>,
    },
    /// HTTP/2 with prior knowledge.
    H2(h2::Plan),
}

/// A client that takes its time.
#[derive(Debug, Clone, Copy)]
pub struct Slow {
    /// Bytes sent at once.
    pub piece: usize,
    /// The pause after each piece.
    pub pause: Duration,
    /// When the client gives up, however much there is left to send.
    pub most: Duration,
}

/// What came back on a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    /// The statuses, in order.
    pub statuses: Vec<u16>,
    /// The bodies of the answers, one after the other.
    pub text: String,
    /// How it ended, if not with an answer: a reset, a closed connection, silence.
    pub ended: Option<Ended>,
}

/// How a connection ended without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The gateway closed or reset the connection or the stream.
    Closed,
    /// Nothing came in time; the gateway still waits for more.
    Silent,
    /// What came is no HTTP.
    NoHttp,
    /// There was no connection to be had.
    Refused,
}

/// How long to wait.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For the first answer.
    pub first: Duration,
    /// For another one behind it; zero: one answer is enough.
    pub more: Duration,
}

/// Sends and reads.
#[must_use]
pub fn exchange(to: SocketAddr, sending: &Sending, patience: Patience) -> Answers {
    match sending {
        Sending::Http1 { bytes, slow } => http1::exchange(to, bytes, *slow, patience),
        Sending::H2(plan) => h2::exchange(to, plan, patience),
    }
}

/// What an error of a socket says about the connection.
fn ended(error: &io::Error) -> Ended {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Ended::Silent,
        io::ErrorKind::InvalidData => Ended::NoHttp,
        io::ErrorKind::ConnectionRefused => Ended::Refused,
        _ => Ended::Closed,
    }
}
