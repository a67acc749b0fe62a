//! The outermost layer: format, version, body.

use std::fmt;

use prost::Message;

use crate::{Snapshot, content_hash, hex};

/// The format that this build writes and reads. It grows when a filter of the version before could not run the result.
pub const FORMAT: u32 = 1;

/// A snapshot as it travels: in the filter's configuration (`google.protobuf.BytesValue`) or in a file.
#[derive(Clone, PartialEq, Message)]
pub struct Envelope {
    /// [`FORMAT`] of the writer.
    #[prost(uint32, tag = "1")]
    pub format: u32,
    /// Lower-case hexadecimal SHA-256 of `body`.
    #[prost(string, tag = "2")]
    pub version: String,
    /// An encoded [`Snapshot`].
    #[prost(bytes = "vec", tag = "3")]
    pub body: Vec<u8>,
}

/// Why an envelope cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// The bytes are no envelope, or its body is no snapshot; with the decoder's own words.
    Malformed(String),
    /// Another format than [`FORMAT`]: filters and control plane are of different releases.
    Format(u32),
    /// The body does not have the hash that its version names.
    Damaged,
    /// A configuration in JSON that is not of the form that a filter reads; with what is wrong and where.
    Json(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(why) => {
                write!(f, "this is no snapshot ({why}); give the filter what `palisade compile` wrote")
            }
            Self::Format(format) => write!(
                f,
                "the snapshot has format {format}, this filter reads format {FORMAT}; use filters and control plane of one release"
            ),
            Self::Json(why) => {
                write!(
                    f,
                    "the JSON configuration cannot be read ({why}); give the filter what `palisade compile --format json` wrote"
                )
            }
            Self::Damaged => {
                f.write_str("the snapshot was damaged on its way: its content does not have the hash it names")
            }
        }
    }
}

impl std::error::Error for OpenError {}

/// Wraps a snapshot. Equal snapshots give equal bytes and equal versions.
#[must_use]
pub fn seal(snapshot: &Snapshot) -> Envelope {
    let body = snapshot.encode_to_vec();
    Envelope { format: FORMAT, version: hex(&content_hash(&body)), body }
}

/// Reads what [`seal`] wrote: the version and the snapshot.
///
/// # Errors
///
/// [`OpenError`] says which of format, hash or content is wrong.
pub fn open(bytes: &[u8]) -> Result<(String, Snapshot), OpenError> {
    let envelope = Envelope::decode(bytes).map_err(|error| OpenError::Malformed(error.to_string()))?;
    if envelope.format != FORMAT {
        return Err(OpenError::Format(envelope.format));
    }
    if hex(&content_hash(&envelope.body)) != envelope.version {
        return Err(OpenError::Damaged);
    }
    let snapshot =
        Snapshot::decode(envelope.body.as_slice()).map_err(|error| OpenError::Malformed(error.to_string()))?;
    Ok((envelope.version, snapshot))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_survives_the_way_and_its_version_is_its_content() {
        let snapshot = Snapshot { filter: "preset".into(), ..Snapshot::default() };
        let sealed = seal(&snapshot);
        assert_eq!(sealed, seal(&snapshot));
        assert_eq!(open(&sealed.encode_to_vec()).unwrap(), (sealed.version, snapshot));
    }

    #[test]
    fn whatever_is_wrong_is_named() {
        let mut sealed = seal(&Snapshot { filter: "waf".into(), ..Snapshot::default() });
        assert!(matches!(open(b"\xff\xff"), Err(OpenError::Malformed(_))));
        sealed.body.push(0);
        assert_eq!(open(&sealed.encode_to_vec()), Err(OpenError::Damaged));
        sealed.format = 99;
        assert_eq!(open(&sealed.encode_to_vec()), Err(OpenError::Format(99)));
        // An empty configuration is what a gateway sends when somebody forgot to name one.
        assert_eq!(open(b""), Err(OpenError::Format(0)));
    }
}
