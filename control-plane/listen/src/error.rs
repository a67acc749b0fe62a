//! Why a port cannot be opened as it is set up.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The longest id of a node that a token or certificate can name, in bytes.
pub(crate) const MAX_BYTES: usize = 256;

/// A name that no node can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeNameError {
    /// It is neither the id of a node nor a beginning or end of ids.
    Pattern,
    /// It is not the id of one node.
    Id,
}

/// Why a port cannot be opened as it is set up.
#[derive(Debug)]
pub enum ListenError {
    /// A file cannot be read, or does not hold what it should. The text names the file and has nothing of its secrets.
    File(String),
    /// The file of node tokens could not be made.
    Create(PathBuf, std::io::Error),
    /// Every client at this address would be taken for a gateway.
    Open(SocketAddr),
}

impl fmt::Display for NodeNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeNameError::Pattern => write!(
                f,
                "a node's id has 1 to {MAX_BYTES} printable ASCII characters without spaces, with a `*` at one end for all \
                 that fit"
            ),
            NodeNameError::Id => {
                write!(f, "a node's id (node.id) has 1 to {MAX_BYTES} printable ASCII characters without spaces")
            }
        }
    }
}

impl std::error::Error for NodeNameError {}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenError::File(what) => f.write_str(what),
            ListenError::Create(file, error) => write!(f, "{}: it could not be made: {error}", file.display()),
            ListenError::Open(address) => write!(
                f,
                "--xds-listen {address} is reachable from outside, and every client would be taken for a gateway, which can \
                 read the configuration and send events and bans: give it --node-token-file (with --node-token-create for a \
                 fresh one) or --xds-client-ca, or listen on loopback. --xds-open starts all the same, which is dangerous"
            ),
        }
    }
}

impl std::error::Error for ListenError {}
