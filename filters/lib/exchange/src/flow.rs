//! The answer of a run to each callback of the gateway.

#[cfg(doc)]
use crate::Run;
use crate::{Ask, Reply};

/// What the gateway is to do now.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Flow {
    /// Go on, with the body that [`Run::take_replaced_body`] gives in place of the old one, if any.
    Continue,
    /// Hold everything until so many bytes of the body are there, or all of it.
    Buffer {
        /// In bytes.
        limit: usize,
    },
    /// Hold everything until so many bytes of the body are there, or all of it, and hand it over as it comes:
    /// [`Run::request_piece`], then [`Run::request_end`]. After a piece this means that the next one is wanted.
    Read {
        /// In bytes.
        limit: usize,
    },
    /// Hold everything so long, then call [`Run::resume`].
    Hold {
        /// In milliseconds.
        millis: u32,
    },
    /// Hold everything until the control plane has answered or the time is up, then call [`Run::answered`]. Meanwhile the body that
    /// [`Run::asked_body`] gives is sent behind the question, if any.
    Ask(Ask),
    /// Answer in the backend's place.
    Answer(Reply),
}
