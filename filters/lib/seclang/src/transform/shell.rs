//! `cmdLine`: undoes the quoting tricks of command shells.

/// The bytes `cmdLine` acts on, besides upper case letters.
pub(super) const CMD_LINE_TRIGGERS: &[u8] = b"\"'\\^ ,;\t\r\n";

/// Removes `"`, `'`, `\` and `^`; turns runs of white space, `,` and `;` into one space; removes a space before `/` and
/// `(`; lowers letters.
pub(super) fn cmd_line(input: &[u8]) -> Option<Vec<u8>> {
    let first = input.iter().position(|&byte| {
        matches!(byte, b'"' | b'\'' | b'\\' | b'^' | b' ' | b',' | b';' | b'\t' | b'\r' | b'\n' | b'A'..=b'Z')
    })?;
    if memchr::memchr2(b'/', b'(', input).is_none() {
        let mut inside = false;
        return Some(super::bytes::filtered(input, first, |byte| {
            let quote = matches!(byte, b'"' | b'\'' | b'\\' | b'^');
            let space = matches!(byte, b' ' | b',' | b';' | b'\t' | b'\r' | b'\n');
            let kept = !(quote || space && inside);
            inside = space || (quote && inside);
            (if space { b' ' } else { byte.to_ascii_lowercase() }, kept)
        }));
    }
    let mut output = super::bytes::start_at(input, first);
    let mut space = false;
    for &byte in input.get(first..)? {
        match byte {
            b'"' | b'\'' | b'\\' | b'^' => {}
            b' ' | b',' | b';' | b'\t' | b'\r' | b'\n' => {
                if !space {
                    output.push(b' ');
                }
                space = true;
            }
            b'/' | b'(' => {
                if space {
                    output.pop();
                }
                space = false;
                output.push(byte);
            }
            _ => {
                space = false;
                output.push(byte.to_ascii_lowercase());
            }
        }
    }
    Some(output)
}
