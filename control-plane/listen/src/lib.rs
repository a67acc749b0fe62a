//! How the ports of the control plane are reached: TLS, files that are followed while they change, limits for slow clients; which
//! nodes may open streams, and how the streams end.
//!
//! [`Kept`] is a value made of files, kept while they cannot be used; [`TlsConfig`] is one, the tokens of nodes another.
//! [`Door`] accepts connections, with TLS or without. [`admin`] serves the admin API behind one, `nodes` hands the
//! connections of another to the gRPC server.

pub mod admin;
mod certificate;
mod closing;
mod connection;
mod door;
mod error;
mod gate;
mod kept;
mod node_names;
mod node_tokens;
mod nodes;
mod options;
mod slow_body;
mod throttle;
mod tls;
mod token_lines;

pub use certificate::authorities;
pub use closing::Closing;
pub use door::Door;
pub use error::{ListenError, NodeNameError};
pub use gate::{Admission, Gate, admission, withdrawn};
pub use kept::{Contents, Followed, Kept, Look, follow};
pub use node_names::NodeNames;
pub use node_tokens::{NodeToken, NodeTokens};
pub use nodes::{NodeConnections, Peer};
pub use options::{ListenOptions, Opened};
pub use slow_body::{TooSlow, is_too_slow};
pub use throttle::{MAX_FAILURES, MAX_SOURCES, Throttle, WINDOW_MILLIS, Wait};
pub use tls::{Alpn, TlsConfig, TlsFiles};
pub use token_lines::DERIVE;

use std::time::Duration;

/// How long clients may take, and how much they may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The TLS handshake, from the connection on. Default 10 s.
    pub handshake: Duration,
    /// The first stream of a gateway's connection, from the handshake on; where nodes need a token, the first that brings
    /// one. Default 30 s.
    pub opening: Duration,
    /// A connection to the admin API on which no request is under way and no answer moves; the head of a request counts as
    /// nothing before it is complete. Default 30 s.
    pub idle: Duration,
    /// The body of a request to the admin API, from its head on. Default 60 s.
    pub body: Duration,
    /// Connections to the admin API at the same time; more wait to be accepted. Default 1024.
    pub connections: u32,
}

/// The bytes of the head of a request to the admin API, at most.
pub const MAX_HEAD_BYTES: u32 = 64 * 1024;
/// The headers of a request to the admin API, at most.
pub const MAX_HEADERS: usize = 100;

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            handshake: Duration::from_secs(10),
            opening: Duration::from_secs(30),
            idle: Duration::from_secs(30),
            body: Duration::from_secs(60),
            connections: 1024,
        }
    }
}
