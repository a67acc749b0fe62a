//! Content codings of bodies, undone up to a limit.

use std::borrow::Cow;

use exchange::Body;
use exchange::codings::is_identity;
use files::Reason;
use seclang::body::decode::{DecodeError, decode};
use seclang::body::decode_prefix;

/// A body whose codings are undone.
pub(crate) struct Decoded<'b> {
    pub(crate) bytes: Cow<'b, [u8]>,
    /// All of it is there.
    pub(crate) complete: bool,
}

/// Why codings cannot be undone.
#[derive(Debug)]
pub(crate) struct Undecodable {
    pub(crate) reason: Reason,
    pub(crate) detail: String,
}

/// Undoes the codings of a body, up to `limit` bytes and to `ratio` times its length.
pub(crate) fn decoded<'b>(coding: &[u8], body: Body<'b>, limit: usize, ratio: u32) -> Result<Decoded<'b>, Undecodable> {
    if is_identity(coding) {
        return Ok(Decoded { bytes: Cow::Borrowed(body.bytes), complete: body.complete });
    }
    match decode(coding, body.bytes, limit, ratio) {
        Ok(bytes) => Ok(Decoded { bytes: Cow::Owned(bytes), complete: body.complete }),
        Err(DecodeError::Ratio) => {
            let detail = format!("the body expands to more than {ratio} times its length");
            Err(Undecodable { reason: Reason::ArchiveBomb, detail })
        }
        Err(error) => {
            let cut = error == DecodeError::TooLarge || error == DecodeError::Truncated && !body.complete;
            let prefix = decode_prefix(coding, body.bytes, limit).filter(|_| cut);
            let whole = prefix.map(|bytes| Decoded { bytes: Cow::Owned(bytes), complete: false });
            whole.ok_or_else(|| Undecodable { reason: Reason::UndecodableBody, detail: error.to_string() })
        }
    }
}
