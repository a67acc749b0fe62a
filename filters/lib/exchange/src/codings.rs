//! Content codings of messages: which ones they have, and which a client may ask for.

use crate::{Exchange, Headers};

/// The codings that can be undone, as `seclang::body::decode` does it.
const READABLE: [&[u8]; 5] = [b"gzip", b"x-gzip", b"deflate", b"br", b"identity"];

/// The content codings of a message as one list, in the order in which they were applied (RFC 9110, section 8.4).
#[must_use]
pub fn list(headers: &Headers) -> Vec<u8> {
    headers.all("content-encoding").collect::<Vec<_>>().join(b",".as_slice())
}

/// Whether a list of content codings leaves a body as it is.
#[must_use]
pub fn is_identity(list: &[u8]) -> bool {
    items(list).all(|name| name.eq_ignore_ascii_case(b"identity"))
}

/// Lets the backend use only codings that can be undone, unless an earlier step has limited them already: a client must not be able to
/// choose one that hides the response from its inspection.
pub fn limit(exchange: &mut Exchange) {
    let accepted = || exchange.request.headers.all("accept-encoding");
    // So it is with most requests.
    if exchange.accept_encoding.is_none() && !accepted().flat_map(items).all(is_readable) {
        exchange.accept_encoding = readable(accepted());
    }
}

/// `Accept-Encoding` with the codings alone that can be undone; `None` where there is nothing to take away. Several headers are one list.
fn readable<'a>(accepted: impl Iterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let list = accepted.collect::<Vec<_>>().join(b",".as_slice());
    let kept: Vec<&[u8]> = items(&list).filter(|item| is_readable(item)).collect();
    match kept.is_empty() {
        _ if kept.len() == items(&list).count() => None,
        true => Some(b"identity".to_vec()),
        false => Some(kept.join(b", ".as_slice())),
    }
}

fn items(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|item| !item.is_empty())
}

/// Whether the coding of an item can be undone, or is one that the client does not take.
fn is_readable(item: &[u8]) -> bool {
    let mut parts = item.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let coding = parts.next().unwrap_or_default();
    let refused = |part: &[u8]| {
        let weight = part.strip_prefix(b"q=").or_else(|| part.strip_prefix(b"Q="));
        weight.is_some_and(|weight| weight.starts_with(b"0") && weight.iter().all(|byte| matches!(byte, b'0' | b'.')))
    };
    READABLE.iter().any(|known| coding.eq_ignore_ascii_case(known)) || parts.any(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codings_that_cannot_be_undone_are_taken_away() {
        let cases: [(&[&str], Option<&str>); 11] = [
            (&[], None),
            (&[""], None),
            (&["gzip, deflate, br"], None),
            (&["gzip;q=1.0, identity; q=0.5, *;q=0"], None),
            (&["gzip, deflate, br, zstd"], Some("gzip, deflate, br")),
            (&["gzip", "zstd;q=0.9"], Some("gzip")),
            (&["ZSTD"], Some("identity")),
            (&["*"], Some("identity")),
            (&["dcb,,dcz, Br ;q=0.1"], Some("Br ;q=0.1")),
            (&["zstd;q=0, compress;q=0.001"], Some("zstd;q=0")),
            (&["zstd;q=0.5"], Some("identity")),
        ];
        for (headers, expected) in cases {
            let found = readable(headers.iter().map(|header| header.as_bytes()));
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{headers:?}");
        }
    }

    #[test]
    fn what_an_earlier_step_has_limited_stays() {
        let mut exchange = Exchange::default();
        exchange.request.headers = Headers::new(&[("accept-encoding", "br, zstd")]);
        limit(&mut exchange);
        assert_eq!(exchange.accept_encoding.as_deref(), Some(&b"br"[..]));
        exchange.accept_encoding = Some(b"identity".to_vec());
        limit(&mut exchange);
        assert_eq!(exchange.accept_encoding.as_deref(), Some(&b"identity"[..]));
    }

    #[test]
    fn several_headers_are_one_list() {
        let headers = Headers::new(&[("content-encoding", "identity"), ("content-encoding", "gzip")]);
        assert_eq!(list(&headers), b"identity,gzip");
        assert!(is_identity(b"") && is_identity(b"identity, Identity,") && !is_identity(b"identity,gzip"));
    }
}
