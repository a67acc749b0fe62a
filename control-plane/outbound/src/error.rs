//! Why a call has failed.

use std::fmt;

use axum::http::StatusCode;

/// Why a call has failed, in a sentence that may be shown: of the URL it names scheme, host and port alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboundError {
    fault: OutboundFault,
    origin: String,
    what: String,
    status: Option<StatusCode>,
}

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutboundFault {
    /// The URL cannot be used.
    Url,
    /// The name has no address, or no resolver could be asked.
    Name,
    /// An address that is not for outside, and was not allowed.
    Refused,
    /// The connection is refused, or ends before there is an answer.
    Connection,
    /// The server's certificate is not trusted, or there is nothing to trust it by.
    Tls,
    /// A redirect that is not followed: one too many, to plain HTTP, without a URL, or with the body to another origin.
    Redirect,
    /// It took too long.
    Timeout,
    /// The answer is longer than the call allows.
    TooLong,
}

impl OutboundError {
    pub(super) fn new(fault: OutboundFault, origin: impl Into<String>, what: impl Into<String>) -> OutboundError {
        OutboundError { fault, origin: origin.into(), what: what.into(), status: None }
    }

    pub(super) fn with_status(self, status: StatusCode) -> OutboundError {
        OutboundError { status: Some(status), ..self }
    }

    /// The same of a connection for another protocol, which has a host and a port alone.
    pub(super) fn of_connection(self, place: &str) -> OutboundError {
        OutboundError { origin: place.to_owned(), ..self }
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn fault(&self) -> OutboundFault {
        self.fault
    }

    /// The status of an answer that was not taken because of its length.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        self.status
    }

    /// Whether the same call may succeed a while later, without anybody changing anything.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self.fault, OutboundFault::Name | OutboundFault::Connection | OutboundFault::Timeout)
    }
}

impl fmt::Display for OutboundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.origin.as_str() {
            "" => f.write_str(&self.what),
            origin => write!(f, "{origin}: {}", self.what),
        }
    }
}

impl std::error::Error for OutboundError {}
