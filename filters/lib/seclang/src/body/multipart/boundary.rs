//! The boundary: as a parameter of `Content-Type`, and where it occurs in a body.

use memchr::{memchr, memmem};

use super::{Failure, Flags};

const TYPE: &[u8] = b"multipart/form-data";
const PARAMETER: &[u8] = b"boundary";

/// How long a boundary may be, in bytes: RFC 2046, section 5.1.1.
const MAX_BOUNDARY: usize = 70;

/// How long a `Content-Type` may be, in bytes.
const MAX_CONTENT_TYPE: usize = 1024;

/// The boundary a `Content-Type` names. Anything that another parser may read differently is refused.
pub(super) fn of<'a>(content_type: &'a [u8], flags: &mut Flags) -> Result<&'a [u8], Failure> {
    let malformed = |message| Err(Failure::Malformed(message));
    if content_type.is_empty() {
        return malformed("Multipart: Content-Type header not available.");
    }
    if content_type.len() > MAX_CONTENT_TYPE {
        return malformed("Multipart: Invalid boundary in C-T (length).");
    }
    let is_multipart = content_type.get(..TYPE.len()).is_some_and(|start| start.eq_ignore_ascii_case(TYPE));
    let Some(parameters) = content_type.get(TYPE.len()..).filter(|_| is_multipart) else {
        return malformed("Multipart: Invalid MIME type.");
    };
    if count_parameters(content_type) > 1 {
        return malformed("Multipart: Multiple boundary parameters in C-T.");
    }
    let Some(name) = memmem::find(parameters, PARAMETER) else {
        return if count_parameters(content_type) > 0 {
            malformed("Multipart: Invalid boundary in C-T (case sensitivity).")
        } else {
            malformed("Multipart: Boundary not found in C-T.")
        };
    };
    let before = parameters.get(..name).unwrap_or_default();
    match before.trim_ascii() {
        b";" => {}
        b"" => flags.missing_semicolon = true,
        _ => return malformed("Multipart: Invalid boundary in C-T (malformed)."),
    }
    let after = parameters.get(name + PARAMETER.len()..).unwrap_or_default();
    let Some(equals) = memchr(b'=', after) else {
        return malformed("Multipart: Invalid boundary in C-T (malformed).");
    };
    let gap = after.get(..equals).unwrap_or_default();
    if !gap.trim_ascii().is_empty() {
        return malformed("Multipart: Invalid boundary in C-T (parameter name).");
    }
    let value = after.get(equals + 1..).unwrap_or_default();
    flags.boundary_whitespace = !gap.is_empty() || value.first().is_some_and(u8::is_ascii_whitespace);
    // Other parameters may follow.
    let value = value.get(..memchr(b';', value).unwrap_or(value.len())).unwrap_or(value);
    let boundary = match value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")) {
        Some(quoted) => {
            flags.boundary_quoted = true;
            quoted
        }
        None if value.starts_with(b"\"") || value.ends_with(b"\"") => {
            return malformed("Multipart: Invalid boundary in C-T (quote).");
        }
        None => value,
    };
    if boundary.is_empty() {
        return malformed("Multipart: Invalid boundary in C-T (empty).");
    }
    if boundary.len() > MAX_BOUNDARY {
        return malformed("Multipart: Invalid boundary in C-T (length).");
    }
    if count_parameters(boundary) > 0 {
        return malformed("Multipart: Invalid boundary in C-T (content).");
    }
    let allowed = if flags.boundary_quoted { is_boundary_byte } else { is_unquoted_byte };
    if boundary.last() == Some(&b' ') || !boundary.iter().all(|&byte| allowed(byte)) {
        return malformed("Multipart: Invalid boundary in C-T (characters).");
    }
    Ok(boundary)
}

/// How often the word "boundary" occurs, in any case of letters, with a `=` somewhere after it.
fn count_parameters(text: &[u8]) -> usize {
    let lower = text.to_ascii_lowercase();
    let last_equals = memchr::memrchr(b'=', text).unwrap_or(0);
    memmem::find_iter(&lower, PARAMETER).filter(|at| at + PARAMETER.len() <= last_equals).count()
}

/// The characters of RFC 2046, section 5.1.1.
fn is_boundary_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b' ' | b'\'' | b'(' | b')' | b'+' | b'_' | b',' | b'-' | b'.' | b'/' | b':' | b'=' | b'?')
}

/// The characters of a boundary without quotes: those of a token (RFC 2045, section 5.1), and `=`, which common clients do
/// not quote. Parsers end such a value at one or the other of the rest: PHP at a comma, others at what is no token.
fn is_unquoted_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'\'' | b'+' | b'_' | b'-' | b'.' | b'=')
}

/// `--` and the boundary, wherever in a line. Made once for a body: it takes longer than to search a line, in linear time.
pub(super) fn delimiter(boundary: &[u8]) -> memmem::Finder<'static> {
    memmem::Finder::new(&[b"--", boundary].concat()).into_owned()
}
