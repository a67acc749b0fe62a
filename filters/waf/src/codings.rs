//! The codings in which a response may come.

/// `Accept-Encoding` with the codings alone that can be undone: a client must not be able to choose an encoding that is not inspected.
/// `None` where there is nothing to take away. Several headers are one list.
pub(crate) fn readable<'a>(accepted: impl Iterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let list = accepted.collect::<Vec<_>>().join(b",".as_slice());
    let items = || list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|item| !item.is_empty());
    let kept: Vec<&[u8]> = items().filter(|item| is_readable(item)).collect();
    match kept.is_empty() {
        _ if kept.len() == items().count() => None,
        true => Some(b"identity".to_vec()),
        false => Some(kept.join(b", ".as_slice())),
    }
}

/// Whether the coding of an item is known, or is one that the client does not take.
fn is_readable(item: &[u8]) -> bool {
    let mut parts = item.split(|byte| *byte == b';').map(|part| part.trim_ascii().to_ascii_lowercase());
    let coding = parts.next().unwrap_or_default();
    let known = matches!(coding.as_slice(), b"gzip" | b"x-gzip" | b"deflate" | b"br" | b"identity");
    known || parts.any(|part| matches!(part.as_slice(), b"q=0" | b"q=0." | b"q=0.0" | b"q=0.00" | b"q=0.000"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codings_that_cannot_be_undone_are_taken_away() {
        let cases: [(&[&str], Option<&str>); 10] = [
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
        ];
        for (headers, expected) in cases {
            let found = readable(headers.iter().map(|header| header.as_bytes()));
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{headers:?}");
        }
    }
}
