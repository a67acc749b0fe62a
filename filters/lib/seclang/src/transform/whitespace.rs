//! `compressWhitespace`, `removeWhitespace`, `trim`, `trimLeft`, `trimRight`.

use super::bytes::{CHUNK, any_control_space, any_of, any_pair, chunk, filtered, first, is_space, start_at};

/// Turns each run of white space into one space.
pub(super) fn compress(input: &[u8]) -> Option<Vec<u8>> {
    let mut output = start_at(input, 0);
    let mut rest = input;
    let mut inside = false;
    while !rest.is_empty() {
        // Single spaces stay.
        if let Some((bytes, with_next, after)) = chunk(rest)
            && !(inside | any_pair(with_next, *b"  ") | any_control_space(bytes))
        {
            output.extend_from_slice(bytes);
            inside = bytes.last() == Some(&b' ');
            rest = after;
            continue;
        }
        let (bytes, after) = rest.split_at_checked(CHUNK).unwrap_or((rest, &[]));
        for &byte in bytes {
            let space = is_space(byte);
            if !(space && inside) {
                output.push(if space { b' ' } else { byte });
            }
            inside = space;
        }
        rest = after;
    }
    Some(output)
}

/// Removes white space and the no-break spaces of Latin-1 and UTF-8.
pub(super) fn remove(input: &[u8]) -> Option<Vec<u8>> {
    let removed = |byte| is_space(byte) || byte == 0xa0 || byte == 0xc2;
    let first = first(input, |chunk| any_control_space(chunk) | any_of(chunk, *b" \xa0\xc2"), removed)?;
    if memchr::memchr(0xc2, input).is_none() {
        return Some(filtered(input, first, |byte| (byte, !is_space(byte) && byte != 0xa0)));
    }
    let mut output = start_at(input, first);
    let mut rest = input.get(first..)?;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if let (0xc2, Some(after)) = (byte, after.strip_prefix(b"\xa0")) {
            rest = after;
        } else if !is_space(byte) && byte != 0xa0 {
            output.push(byte);
        }
    }
    Some(output)
}

/// Removes white space at either end.
pub(super) fn trim(input: &[u8], left: bool, right: bool) -> Option<Vec<u8>> {
    let mut kept = input;
    while let Some((_, rest)) = kept.split_first().filter(|&(&byte, _)| left && is_space(byte)) {
        kept = rest;
    }
    while let Some((_, rest)) = kept.split_last().filter(|&(&byte, _)| right && is_space(byte)) {
        kept = rest;
    }
    (kept.len() != input.len()).then(|| kept.to_vec())
}
