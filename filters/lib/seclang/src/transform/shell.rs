//! `cmdLine`: undoes the quoting tricks of command shells.

use super::bytes::{CHUNK, any, any_of, any_pair, chunk, first, start_at};

/// The bytes `cmdLine` acts on, besides upper case letters.
pub(super) const CMD_LINE_TRIGGERS: &[u8] = b"\"'\\^ ,;\t\r\n";

/// Removes `"`, `'`, `\` and `^`; turns runs of white space, `,` and `;` into one space; removes a space before `/` and
/// `(`; lowers letters.
pub(super) fn cmd_line(input: &[u8]) -> Option<Vec<u8>> {
    let upper = |byte: u8| byte.is_ascii_uppercase();
    let changed = |byte| is_quote(byte) || is_space(byte) || upper(byte);
    let changes = |chunk: &[u8]| any_of(chunk, QUOTES) | any_of(chunk, SPACES) | any(chunk, upper);
    let first = first(input, changes, changed)?;
    let mut output = start_at(input, first);
    let mut rest = input.get(first..)?;
    // Whether the last byte kept is a space that stands for a run.
    let mut space = false;
    while !rest.is_empty() {
        // Single spaces stay, unless something follows that takes them away.
        let [_, others @ ..] = SPACES;
        let drops = |bytes| any_pair(bytes, *b"  ") | any_pair(bytes, *b" /") | any_pair(bytes, *b" (");
        if let Some((bytes, with_next, after)) = chunk(rest)
            && !(space | drops(with_next) | any_of(bytes, QUOTES) | any_of(bytes, others))
        {
            output.extend_from_slice(&bytes.map(|byte| byte.to_ascii_lowercase()));
            space = bytes.last() == Some(&b' ');
            rest = after;
            continue;
        }
        let (bytes, after) = rest.split_at_checked(CHUNK).unwrap_or((rest, &[]));
        rest = after;
        for &byte in bytes {
            if is_quote(byte) {
                continue;
            }
            if is_space(byte) {
                if !space {
                    output.push(b' ');
                }
                space = true;
                continue;
            }
            if space && matches!(byte, b'/' | b'(') {
                output.pop();
            }
            space = false;
            output.push(byte.to_ascii_lowercase());
        }
    }
    Some(output)
}

/// What is dropped.
const QUOTES: [u8; 4] = *b"\"'\\^";

/// The bytes that become a space; a space is the first.
const SPACES: [u8; 6] = *b" ,;\t\r\n";

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'\\' | b'^')
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b',' | b';' | b'\t' | b'\r' | b'\n')
}
