//! Multipart bodies: a byte of limits, the `Content-Type` up to the first line feed, the body.

use seclang::body::multipart::{Limits, parse};

use super::{repeated, split_at, split_byte};

pub fn run(data: &[u8]) {
    let Some((choice, rest)) = split_byte(data) else { return };
    let (content_type, body) = split_at(rest, b'\n');
    let long;
    let body = match choice & 0x80 {
        0 => body,
        _ => {
            long = repeated(body);
            long.as_slice()
        }
    };
    let limits = match choice % 2 {
        0 => Limits::default(),
        _ => Limits { files: 1, parts: 3, headers: 2, header_length: 40 },
    };
    let found = parse(content_type, body, &limits);
    assert!(found.parts.len() <= limits.parts, "{} parts", found.parts.len());
    let files = found.parts.iter().filter(|part| part.is_file()).count();
    // More files than the limit are kept, and inspected, but the flag tells.
    assert!(files <= limits.files || found.flags.file_limit_exceeded, "{files} files");
    let mut total = 0;
    for part in &found.parts {
        assert!(part.headers.len() <= limits.headers, "{} headers", part.headers.len());
        total += part.value.len() + part.headers.iter().map(Vec::len).sum::<usize>();
        // Names come out of headers: each byte of a header appears at most once in each of them.
        let names = [Some(&part.name), part.filename.as_ref(), part.extended_filename.as_ref()];
        total += names.into_iter().flatten().map(Vec::len).sum::<usize>();
    }
    assert!(total <= 4 * body.len(), "{total} bytes of {}", body.len());
    let _ = (found.strict_error(), found.unmatched_boundary());
}
