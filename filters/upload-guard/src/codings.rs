//! Content codings of bodies, undone up to a limit.

use std::borrow::Cow;

use exchange::Body;
use exchange::codings::is_identity;
use files::Reason;
use seclang::body::decode::DecodeError;
use seclang::body::{Beginning, decode_beginning};

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

/// Undoes the codings of a body, up to `limit` bytes and to `ratio` times its length. Of a body that is longer, or whose end is missing,
/// the beginning is there.
pub(crate) fn decoded<'b>(coding: &[u8], body: Body<'b>, limit: usize, ratio: u32) -> Result<Decoded<'b>, Undecodable> {
    if is_identity(coding) {
        return Ok(Decoded { bytes: Cow::Borrowed(body.bytes), complete: body.complete });
    }
    match decode_beginning(coding, body.bytes, body.complete, limit, ratio) {
        Ok(Beginning { bytes, complete }) => Ok(Decoded { bytes: Cow::Owned(bytes), complete }),
        Err(DecodeError::Ratio) => {
            let detail = format!("the body expands to more than {ratio} times its length");
            Err(Undecodable { reason: Reason::ArchiveBomb, detail })
        }
        Err(DecodeError::Unknown) => {
            let coding = coding.get(..64).unwrap_or(coding).escape_ascii();
            let detail =
                format!("the content coding `{coding}` of the body is not known, or has more than three steps");
            Err(Undecodable { reason: Reason::UndecodableBody, detail })
        }
        Err(error) => Err(Undecodable { reason: Reason::UndecodableBody, detail: error.to_string() }),
    }
}
