//! Body processors: what turns a request's query string, cookies and body into the collections rules look at.
//!
//! Every parser works on bytes, in one pass, under limits that are part of its input; none of them fails by panicking
//! and none of them reads anything but the bytes it is given.

mod charset;
pub mod cookies;
pub mod decode;
mod escapes;
pub mod json;
pub mod multipart;
mod names;
mod prefix;
pub mod urlencoded;
pub mod xml;

pub use charset::Charset;
pub(crate) use escapes::unescaped;
pub use names::Argument;
pub(crate) use names::WHOLE;
pub use prefix::{Beginning, decode_beginning, decode_prefix};

/// The state of the rest of a body: what was scanned, and what the caller records of the transactions that evaluate it
/// ([`crate::Transaction::evaluate_suspicious`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RestOfBody {
    /// The scanned bytes.
    pub bytes: u64,
    /// The units of work that the evaluation has taken.
    pub work: u64,
    /// The body was compressed: all of it is evaluated in one call.
    pub compressed: bool,
    /// The budget is spent: the remaining windows are not evaluated.
    pub over: bool,
    /// An exceeded limit was signalled.
    pub limit_signalled: bool,
    /// An exceeded limit was reported.
    pub limit_reported: bool,
}
