//! Questions that only the control plane can answer.

/// A question that a request waits for the answer of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// What is asked.
    pub question: Question,
    /// How long the request waits at most, in milliseconds.
    pub millis: u32,
}

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Question {
    /// Whether this is the first time that a puzzle is spent, on whichever node. It is spent from then on.
    SpendPuzzle {
        /// Its id, unique among all puzzles; at most 64 bytes.
        id: String,
        /// When nobody takes it any more in any case, in milliseconds since the Unix epoch.
        until: u64,
    },
    /// Whether the vendor of a widget vouches for a token, and it is the first time that the token is used, on whichever
    /// node. It is used from then on.
    VerifyToken {
        /// The id of the challenge provider whose widget gave it.
        provider: String,
        /// The token as the caller sent it: printable ASCII, at most 4096 bytes.
        token: String,
        /// The caller's address, as text.
        ip: String,
        /// The host name that the request is for, without its port; empty where it names none.
        host: String,
    },
}

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Yes.
    Yes,
    /// No.
    No,
    /// This gateway has no control plane.
    NoControlPlane,
    /// The control plane did not answer in time, could not find out, or cannot be reached.
    Unavailable,
}
