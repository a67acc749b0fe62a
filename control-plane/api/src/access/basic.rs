//! HTTP basic authentication (RFC 7617), read from the header.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Clients are divided over the padding, so both ways are read.
const STANDARD: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The user name and the password that a request carries.
pub(super) struct Credentials {
    pub(super) id: String,
    pub(super) secret: Vec<u8>,
}

/// Reads the credentials; `None` when there are none, or none that can be read.
pub(super) fn credentials(headers: &HeaderMap) -> Option<Credentials> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next()?.as_bytes();
    if values.next().is_some() {
        // Two of them: which one a proxy in front has checked cannot be known.
        return None;
    }
    let (scheme, rest) = value.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let decoded = STANDARD.decode(rest.trim_ascii()).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let (id, secret) = decoded.split_at_checked(colon)?;
    Some(Credentials { id: String::from_utf8(id.to_vec()).ok()?, secret: secret.get(1..)?.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_clients_send_and_nothing_else() {
        let read = |value: &'static str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
            credentials(&headers).map(|found| (found.id, String::from_utf8(found.secret).unwrap()))
        };
        let expected = Some(("a".to_owned(), "b:c".to_owned()));
        assert_eq!(read("Basic YTpiOmM="), expected);
        assert_eq!(read("basic  YTpiOmM"), expected);
        for bad in ["Bearer YTpiOmM=", "Basic", "Basic YQ==", "Basic !!", ""] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
