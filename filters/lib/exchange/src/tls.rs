//! Fingerprints of the client's TLS, as a gateway computes them from the first message of a connection (ClientHello).
//!
//! No attribute of the gateway has them. A listener filter (`tls_inspector`) computes them, and a filter in front of ours writes them to
//! the filter state `svc.ja4` and `svc.ja3`. They say which software a client uses, not who it is. A header never counts.

use std::fmt;

use snapshot::{JA3_BYTES, JA4_BYTES, is_ja3, is_ja4};

/// The objects in the gateway's filter state.
const JA4_STATE: &str = "svc.ja4";
const JA3_STATE: &str = "svc.ja3";

/// What a property of the gateway is, as [`Host::property`](crate::Host::property) says.
pub type Property<'a> = &'a dyn Fn(&[String]) -> Option<Vec<u8>>;

/// A JA4: [`JA4_BYTES`] printable bytes of a fixed form, see [`is_ja4`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ja4([u8; JA4_BYTES]);

/// A JA3: 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ja3([u8; JA3_BYTES]);

/// The JA4 of the client; `None` on a connection without TLS, and where the listener does not compute it.
#[must_use]
pub fn ja4(property: Property<'_>) -> Option<Ja4> {
    Ja4::read(&state(JA4_STATE, property)?)
}

/// The JA3 of the client; `None` as for [`ja4`].
#[must_use]
pub fn ja3(property: Property<'_>) -> Option<Ja3> {
    Ja3::read(&state(JA3_STATE, property)?)
}

fn state(object: &str, property: Property<'_>) -> Option<Vec<u8>> {
    property(&["filter_state".to_owned(), object.to_owned()])
}

// === impl Ja4 ===

impl Ja4 {
    /// Reads one; `None` for anything else.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().filter(|_| is_ja4(bytes)).map(Self)
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8; JA4_BYTES] {
        &self.0
    }
}

impl fmt::Display for Ja4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.0).unwrap_or_default())
    }
}

// === impl Ja3 ===

impl Ja3 {
    /// Reads one; `None` for anything else.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().filter(|_| is_ja3(bytes)).map(Self)
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8; JA3_BYTES] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_from_the_filter_state_alone_and_only_in_its_form() {
        const JA4: &str = "t13d1516h2_8daaf6152771_02713d6af862";
        const JA3: &str = "cd08e31494f9531f560d64c695473da9";
        let with = |value: &'static str| {
            move |path: &[String]| {
                (path == ["filter_state", "svc.ja4"] || path == ["filter_state", "svc.ja3"])
                    .then(|| value.as_bytes().to_vec())
            }
        };
        assert_eq!(ja4(&with(JA4)).map(|ja4| ja4.to_string()).as_deref(), Some(JA4));
        assert_eq!(ja3(&with(JA3)).map(|ja3| *ja3.bytes()).as_ref().map(|bytes| &bytes[..]), Some(JA3.as_bytes()));
        for wrong in ["", "-", "t13d1516h2_8daaf6152771_02713d6af86\u{e9}"] {
            assert_eq!((ja4(&with(wrong)), ja3(&with(wrong))), (None, None), "{wrong}");
        }
        assert_eq!((ja4(&with(JA3)), ja3(&with(JA4)), ja4(&|_| None)), (None, None, None));
    }
}
