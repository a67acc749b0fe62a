//! Percent escapes (RFC 3986, section 2.1).

use std::borrow::Cow;

/// A text without its escapes; what is no escape stays.
pub(crate) fn decode(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'%', text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        let escape = match behind {
            [high, low, ..] if *byte == b'%' => digit(*high).zip(digit(*low)),
            _ => None,
        };
        match escape {
            Some((high, low)) => {
                out.push(high << 4 | low);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                out.push(*byte);
                rest = behind;
            }
        }
    }
    Cow::Owned(out)
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
