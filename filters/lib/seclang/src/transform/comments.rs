//! `removeComments`, `removeCommentsChar`, `replaceComments`.

use memchr::{memchr, memchr_iter, memchr3};

use super::bytes::{any_of, first, start_at};
use crate::short_mark::find;

/// Removes `/* */` and `<!-- -->` comments, and everything from `--` or `#` on. A comment that is not closed becomes
/// a space.
pub(super) fn remove(input: &[u8]) -> Option<Vec<u8>> {
    let first = [memchr3(b'/', b'<', b'-', input), memchr(b'#', input)].into_iter().flatten().min()?;
    let mut output = start_at(input, first);
    let mut at = first;
    while let Some(rest) = input.get(at..).filter(|rest| !rest.is_empty()) {
        let skipped = if rest.starts_with(b"/*") {
            2
        } else if rest.starts_with(b"<!--") {
            4
        } else if rest.starts_with(b"--") || rest.starts_with(b"#") {
            break;
        } else {
            output.extend(rest.first());
            at += 1;
            continue;
        };
        at += skipped;
        // Either end closes either comment, and the byte after it is never looked at: what opened a comment there
        // would not be seen by the engine this follows either.
        match comment_end(input, at) {
            Some(end) => {
                // At the very end that engine writes the terminator of its buffer.
                output.push(input.get(end).copied().unwrap_or(0));
                at = end + 1;
            }
            None => {
                output.push(b' ');
                break;
            }
        }
    }
    Some(output)
}

/// Where the comment that is open at `at` has ended: the byte after `*/` or `-->`.
fn comment_end(input: &[u8], at: usize) -> Option<usize> {
    let rest = input.get(at..)?;
    for index in memchr::memchr2_iter(b'*', b'-', rest) {
        let tail = rest.get(index..)?;
        if tail.starts_with(b"*/") {
            return Some(at + index + 2);
        }
        if tail.starts_with(b"-->") {
            return Some(at + index + 3);
        }
    }
    None
}

/// Removes the markers of comments and keeps what is between them.
pub(super) fn remove_markers(input: &[u8]) -> Option<Vec<u8>> {
    let mut at = [memchr3(b'/', b'*', b'<', input), memchr::memchr2(b'-', b'#', input)].into_iter().flatten().min()?;
    let mut output = start_at(input, at);
    while let Some(rest) = input.get(at..).filter(|rest| !rest.is_empty()) {
        at += match rest {
            [b'/', b'*', ..] | [b'*', b'/', ..] => 2,
            [b'<', b'!', b'-', b'-', ..] => 4,
            [b'-', b'-', b'>', ..] => 3,
            [b'-', b'-', ..] => 2,
            [b'#', ..] => 1,
            // One that begins no marker: others may follow it at once.
            [byte @ (b'/' | b'*' | b'<' | b'-'), ..] => {
                output.push(*byte);
                1
            }
            _ => {
                let begins = |byte| matches!(byte, b'/' | b'*' | b'<' | b'-' | b'#');
                let end = first(rest, |chunk| any_of(chunk, *b"/*<-#"), begins).unwrap_or(rest.len());
                output.extend_from_slice(rest.get(..end)?);
                end
            }
        };
    }
    Some(output)
}

/// Replaces each `/* */` comment by a space, also one that is not closed.
pub(super) fn replace(input: &[u8]) -> Option<Vec<u8>> {
    let first = memchr_iter(b'/', input).find(|&at| input.get(at + 1) == Some(&b'*'))?;
    let mut output = start_at(input, first);
    let mut rest = input.get(first..)?;
    while let Some(open) = find(rest, b"/*") {
        output.extend_from_slice(rest.get(..open)?);
        output.push(b' ');
        let inside = rest.get(open + 2..)?;
        rest = match find(inside, b"*/") {
            Some(close) => inside.get(close + 2..)?,
            None => b"",
        };
    }
    output.extend_from_slice(rest);
    Some(output)
}
