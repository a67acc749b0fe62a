//! The outermost layer: format, version, body, and the large parts that the body names by their hashes.

use std::collections::BTreeMap;
use std::fmt;

use prost::Message;

use crate::{Part, PartHash, Snapshot, content_hash, hex};

/// The format that this build writes. It grows when a filter of the version before could not run the result.
pub const FORMAT: u32 = 2;
/// The format before, whose body has the parts inside; this build reads it as well.
const PARTS_INSIDE: u32 = 1;

/// A snapshot as it travels: in the filter's configuration (`google.protobuf.BytesValue`) or in a file.
#[derive(Clone, PartialEq, Message)]
pub struct Envelope {
    /// [`FORMAT`] of the writer.
    #[prost(uint32, tag = "1")]
    pub format: u32,
    /// Lower-case hexadecimal SHA-256 of `body`.
    #[prost(string, tag = "2")]
    pub version: String,
    /// An encoded [`Snapshot`] whose parts have hashes and no data.
    #[prost(bytes = "vec", tag = "3")]
    pub body: Vec<u8>,
    /// The parts with their data. Those that the receiver has already may be left out: the version stays the same.
    #[prost(message, repeated, tag = "4")]
    pub parts: Vec<Part>,
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

/// Wraps a snapshot, all of its parts with it. Equal snapshots give equal bytes and equal versions.
#[must_use]
pub fn seal(snapshot: &Snapshot) -> Envelope {
    let named = snapshot.parts.iter().map(|part| Part { hash: part.hash.clone(), data: Vec::new() });
    let body = Snapshot { parts: named.collect(), ..snapshot.clone() }.encode_to_vec();
    Envelope { format: FORMAT, version: hex(&content_hash(&body)), body, parts: snapshot.parts.clone() }
}

/// Reads what [`seal`] wrote: the version and the snapshot. A part that was left out has no data.
///
/// # Errors
///
/// [`OpenError`] says which of format, hash or content is wrong. Whether a part has its hash is checked by those who use it.
pub fn open(bytes: &[u8]) -> Result<(String, Snapshot), OpenError> {
    let envelope = Envelope::decode(bytes).map_err(|error| OpenError::Malformed(error.to_string()))?;
    if envelope.format != FORMAT && envelope.format != PARTS_INSIDE {
        return Err(OpenError::Format(envelope.format));
    }
    if hex(&content_hash(&envelope.body)) != envelope.version {
        return Err(OpenError::Damaged);
    }
    let mut snapshot =
        Snapshot::decode(envelope.body.as_slice()).map_err(|error| OpenError::Malformed(error.to_string()))?;
    let mut brought: BTreeMap<Vec<u8>, Vec<u8>> =
        envelope.parts.into_iter().map(|part| (part.hash, part.data)).collect();
    for part in snapshot.parts.iter_mut().filter(|part| part.data.is_empty()) {
        part.data = brought.remove(&part.hash).unwrap_or_default();
    }
    Ok((envelope.version, snapshot))
}

// === impl Envelope ===

impl Envelope {
    /// The hashes of the parts that it brings.
    pub fn part_hashes(&self) -> impl Iterator<Item = PartHash> {
        self.parts.iter().filter_map(|part| part.hash.as_slice().try_into().ok())
    }
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

    #[test]
    fn parts_can_be_left_out_and_the_version_stays() {
        let part = |data: &str| Part { hash: content_hash(data.as_bytes()).to_vec(), data: data.into() };
        let snapshot = Snapshot { parts: vec![part("one"), part("two")], ..Snapshot::default() };
        let mut sealed = seal(&snapshot);
        assert_eq!(open(&sealed.encode_to_vec()).unwrap(), (sealed.version.clone(), snapshot.clone()));
        sealed.parts.remove(0);
        let (version, slim) = open(&sealed.encode_to_vec()).unwrap();
        let left_out = Part { data: Vec::new(), ..part("one") };
        assert_eq!((version, slim.parts), (seal(&snapshot).version, vec![left_out, part("two")]));
        // One that no step can name is of no use.
        sealed.parts[0].hash = vec![1];
        assert_eq!(open(&sealed.encode_to_vec()).unwrap().1.parts[1].data, b"");
        assert_eq!(sealed.part_hashes().count(), 0);
    }

    #[test]
    fn the_format_before_has_its_parts_inside() {
        let part = Part { hash: content_hash(b"one").to_vec(), data: b"one".to_vec() };
        let snapshot = Snapshot { parts: vec![part], ..Snapshot::default() };
        let body = snapshot.encode_to_vec();
        let version = hex(&content_hash(&body));
        let before = Envelope { format: PARTS_INSIDE, version: version.clone(), body, parts: Vec::new() };
        assert_eq!(open(&before.encode_to_vec()).unwrap(), (version, snapshot));
    }
}
