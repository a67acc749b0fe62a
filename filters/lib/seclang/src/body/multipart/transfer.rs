//! `Content-Transfer-Encoding` (RFC 2045, section 6): abolished for forms, and still undone by some applications.

use crate::transform::Transform;

/// The bytes that a value stands for; `None` where the encoding leaves it as it is.
pub(super) fn decoded(encoding: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    let encoding = encoding.trim_ascii().to_ascii_lowercase();
    match encoding.as_slice() {
        b"base64" => {
            let packed: Vec<u8> = value.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
            Some(Transform::Base64DecodeExt.apply(&packed).into_owned())
        }
        b"quoted-printable" => Some(quoted_printable(value)),
        _ => None,
    }
}

/// `=XX` is a byte, `=` at the end of a line joins it with the next one; everything else stays.
fn quoted_printable(value: &[u8]) -> Vec<u8> {
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut decoded = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'=' {
            decoded.push(byte);
        } else if let (Some(high), Some(low)) = (digit(after.first()), digit(after.get(1))) {
            decoded.push(high << 4 | low);
            rest = after.get(2..).unwrap_or_default();
        } else if let Some(joined) = after.strip_prefix(b"\r\n").or_else(|| after.strip_prefix(b"\n")) {
            rest = joined;
        } else {
            decoded.push(byte);
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undoes_what_changes_bytes() {
        assert_eq!(decoded(b" Base64 ", b"PHNj\r\ncmlwdD4=").as_deref(), Some(&b"<script>"[..]));
        let quoted = decoded(b"quoted-printable", b"=3Cscr=\r\nipt=3e =zz =");
        assert_eq!(quoted.as_deref(), Some(&b"<script> =zz ="[..]));
        assert_eq!(decoded(b"8bit", b"PHNj"), None);
    }
}
