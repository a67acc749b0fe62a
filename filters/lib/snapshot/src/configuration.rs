//! What a filter is configured with: an envelope as it is, or, where a gateway's own configuration can only carry JSON,
//! a JSON object around one.

use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde::Deserialize;

use crate::{OpenError, Snapshot, open};

/// The longest JSON configuration, in bytes.
const MAX_JSON: usize = 16 << 20;
/// The longest envelope that compressed bytes may become, in bytes.
const MAX_ENVELOPE: usize = 64 << 20;
/// What gzip begins with; an envelope begins with another byte.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A filter's configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    /// The snapshot's version, see [`crate::Envelope::version`].
    pub version: String,
    /// What the filter runs.
    pub snapshot: Snapshot,
    /// Whether the gateway can hold headers until a filter has seen the body: its filter configuration has
    /// `allow_on_headers_stop_iteration: true`. True for an envelope as it is, since whoever can pass one can set that;
    /// for JSON what its `hold_headers` says, else false.
    pub hold_headers: bool,
}

/// The JSON form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    /// An envelope in base64, compressed with gzip or not.
    snapshot: String,
    #[serde(default)]
    hold_headers: bool,
}

/// Reads a filter's configuration: what [`crate::seal`] wrote, or `{"snapshot": "<base64>", "hold_headers": false}` with
/// the same in it, compressed with gzip or not.
///
/// # Errors
///
/// [`OpenError`] says what is wrong with the JSON or with the envelope. JSON of more than 16 MiB, and what becomes more
/// than 64 MiB when it is decompressed, is refused.
pub fn read_configuration(bytes: &[u8]) -> Result<Configuration, OpenError> {
    // No envelope begins with a brace or a blank: its first byte names a field of its own.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        let (version, snapshot) = open(bytes)?;
        return Ok(Configuration { version, snapshot, hold_headers: true });
    }
    if bytes.len() > MAX_JSON {
        return Err(OpenError::Json(format!("it has {} bytes, {MAX_JSON} are the most", bytes.len())));
    }
    let form: Form = serde_json::from_slice(bytes).map_err(|error| OpenError::Json(error.to_string()))?;
    let packed = STANDARD
        .decode(form.snapshot.trim_ascii())
        .map_err(|error| OpenError::Json(format!("`snapshot` is no base64: {error}")))?;
    let (version, snapshot) = if packed.starts_with(&GZIP) { open(&inflate(&packed)?)? } else { open(&packed)? };
    Ok(Configuration { version, snapshot, hold_headers: form.hold_headers })
}

fn inflate(packed: &[u8]) -> Result<Vec<u8>, OpenError> {
    let mut envelope = Vec::new();
    let most = u64::try_from(MAX_ENVELOPE).unwrap_or(u64::MAX).saturating_add(1);
    GzDecoder::new(packed)
        .take(most)
        .read_to_end(&mut envelope)
        .map_err(|error| OpenError::Json(format!("`snapshot` cannot be decompressed: {error}")))?;
    if envelope.len() > MAX_ENVELOPE {
        return Err(OpenError::Json(format!("`snapshot` decompresses to more than {MAX_ENVELOPE} bytes")));
    }
    Ok(envelope)
}

/// The JSON form of an encoded envelope, as compact as it gets. Equal envelopes give equal JSON.
///
/// `hold_headers` is left out, and so is false.
#[must_use]
pub fn configuration_json(envelope: &[u8]) -> serde_json::Value {
    serde_json::json!({ "snapshot": STANDARD.encode(pack(envelope)) })
}

/// An envelope compressed with gzip, without a time in it.
fn pack(envelope: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut encoder = flate2::bufread::GzEncoder::new(envelope, flate2::Compression::best());
    match encoder.read_to_end(&mut packed) {
        Ok(_) => packed,
        // Memory is read and written, which does not fail; uncompressed is right as well.
        Err(_) => envelope.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::seal;

    fn envelope() -> Vec<u8> {
        seal(&Snapshot { filter: "preset".into(), ..Snapshot::default() }).encode_to_vec()
    }

    fn json(snapshot: &[u8]) -> Vec<u8> {
        serde_json::json!({ "snapshot": STANDARD.encode(snapshot) }).to_string().into_bytes()
    }

    #[test]
    fn every_form_is_the_same_snapshot() {
        let raw = read_configuration(&envelope()).unwrap();
        assert!(raw.hold_headers);
        let packed = configuration_json(&envelope()).to_string();
        assert_eq!(packed, configuration_json(&envelope()).to_string());
        for text in [json(&envelope()), packed.clone().into_bytes(), format!("\n {packed}\n").into_bytes()] {
            let read = read_configuration(&text).unwrap();
            assert_eq!((&read.version, &read.snapshot), (&raw.version, &raw.snapshot));
            assert!(!read.hold_headers, "a gateway that only carries JSON does not hold headers by itself");
        }
        let held = format!(r#"{{"snapshot": {}, "hold_headers": true}}"#, configuration_json(&envelope())["snapshot"]);
        assert!(read_configuration(held.as_bytes()).unwrap().hold_headers);
    }

    #[test]
    fn whatever_is_wrong_is_named() {
        let why = |bytes: &[u8]| read_configuration(bytes).unwrap_err().to_string();
        assert!(why(b"{").contains("EOF"), "{}", why(b"{"));
        assert!(why(b"{}").contains("missing field `snapshot`"), "{}", why(b"{}"));
        assert!(why(br#"{"snapshot": 1}"#).contains("line 1 column"), "a place is named");
        assert!(why(br#"{"snapshot": "", "hold-headers": true}"#).contains("hold-headers"));
        assert!(why(br#"{"snapshot": "%"}"#).contains("no base64"));
        // The placeholder of the examples, left as it is.
        assert!(why(br#"{"snapshot": "SNAPSHOT"}"#).contains("palisade compile"));
        assert_eq!(read_configuration(&json(b"")), Err(OpenError::Format(0)));
        let mut cut = STANDARD.decode(configuration_json(&envelope())["snapshot"].as_str().unwrap()).unwrap();
        cut.truncate(cut.len() - 9);
        assert!(why(&json(&cut)).contains("cannot be decompressed"));
        let mut damaged = envelope();
        *damaged.last_mut().unwrap() ^= 1;
        assert_eq!(read_configuration(&json(&damaged)), Err(OpenError::Damaged));
        assert_eq!(read_configuration(b""), Err(OpenError::Format(0)));
    }

    #[test]
    fn sizes_have_an_end() {
        let long = format!(r#"{{"snapshot": "{}"}}"#, "A".repeat(MAX_JSON));
        assert!(read_configuration(long.as_bytes()).unwrap_err().to_string().contains("are the most"));
        let bomb = json(&pack(&vec![0; MAX_ENVELOPE + 1]));
        assert!(bomb.len() < 1 << 20);
        assert!(read_configuration(&bomb).unwrap_err().to_string().contains("decompresses to more"));
    }
}
