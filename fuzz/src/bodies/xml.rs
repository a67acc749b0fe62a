//! XML bodies: a byte of limits, and the document.

use seclang::body::xml::{Limits, parse};

use super::{repeated, split_byte};

pub fn run(data: &[u8]) {
    let Some((choice, body)) = split_byte(data) else { return };
    let long;
    let body = match choice & 0x80 {
        0 => body,
        _ => {
            long = [b"<a>", repeated(body).as_slice(), b"</a>"].concat();
            long.as_slice()
        }
    };
    let limits = match choice % 3 {
        0 => Limits { depth: 3, elements: 10, attributes: 5, attributes_per_element: 2, doctype: true },
        _ => Limits::default(),
    };
    let (found, error) = parse(body, &limits);
    let total = found.text.len() + found.attributes.iter().map(Vec::len).sum::<usize>();
    // What declared entities stand for is bounded on its own.
    assert!(total <= body.len() * 2 + 256 * 1024, "{total} bytes of {}", body.len());
    assert!(found.attributes.len() <= limits.attributes, "{} attributes", found.attributes.len());
    if let Some(error) = error {
        assert!(error.offset <= body.len(), "{error} in {} bytes", body.len());
    }
}
