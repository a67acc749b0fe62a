//! Body processors: what turns a request's query string, cookies and body into the collections rules look at.
//!
//! Every parser works on bytes, in one pass, under limits that are part of its input; none of them fails by panicking
//! and none of them reads anything but the bytes it is given.

mod charset;
pub mod cookies;
pub mod decode;
pub mod json;
pub mod multipart;
mod names;
mod prefix;
pub mod urlencoded;
pub mod xml;

pub use charset::Charset;
pub use names::Argument;
pub(crate) use names::WHOLE;
pub use prefix::decode_prefix;
