//! Forms and query strings: a byte of limits, and the text. Cookies too, which are as loose.

use seclang::body::{cookies, urlencoded};

use super::{repeated, split_byte};

pub fn run(data: &[u8]) {
    let Some((choice, text)) = split_byte(data) else { return };
    let long;
    let text = match choice & 0x80 {
        0 => text,
        _ => {
            long = repeated(text);
            long.as_slice()
        }
    };
    let separator = if choice & 1 == 0 { b'&' } else { b';' };
    let limits = urlencoded::Limits { arguments: if choice & 2 == 0 { 1000 } else { 3 } };
    let (mut reported, mut total) = (0, 0);
    let outcome = urlencoded::parse(text, separator, &limits, |name, value| {
        reported += 1;
        total += name.len() + value.len();
    });
    assert_eq!(outcome.arguments, reported);
    assert!(reported <= limits.arguments, "{reported} arguments");
    assert!(total <= text.len(), "{total} bytes of {}", text.len());
    assert!(outcome.invalid_encodings <= text.len());
    let pieces = text.split(|&byte| byte == separator).filter(|piece| !piece.is_empty()).count();
    assert_eq!(outcome.limit_exceeded, pieces > limits.arguments);

    let mut total = 0;
    cookies::parse(text, |name, value| total += name.len() + value.len());
    assert!(total <= text.len(), "cookies: {total} bytes of {}", text.len());
}
