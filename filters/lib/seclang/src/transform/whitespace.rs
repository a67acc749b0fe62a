//! `compressWhitespace`, `removeWhitespace`, `trim`, `trimLeft`, `trimRight`.

use super::bytes::{filtered, is_space, start_at};

/// Turns each run of white space into one space.
pub(super) fn compress(input: &[u8]) -> Option<Vec<u8>> {
    let first = input.iter().position(|&byte| is_space(byte))?;
    let mut inside = false;
    Some(filtered(input, first, |byte| {
        let space = is_space(byte);
        let kept = !(space && std::mem::replace(&mut inside, space));
        inside = space;
        (if space { b' ' } else { byte }, kept)
    }))
}

/// Removes white space and the no-break spaces of Latin-1 and UTF-8.
pub(super) fn remove(input: &[u8]) -> Option<Vec<u8>> {
    let first = input.iter().position(|&byte| is_space(byte) || byte == 0xa0 || byte == 0xc2)?;
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
