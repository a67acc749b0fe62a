//! Header maps: one call for each thing a filter may do to one.

use super::abi::{Answer, Status};
use crate::traffic::Headers;

/// The first value of a name.
pub fn get<'a>(headers: &'a Headers, name: &[u8]) -> Option<&'a [u8]> {
    headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_slice())
}

/// Puts a value in the place of the first one of that name, and removes the others; a new name goes to the end.
pub fn replace(headers: &mut Headers, name: &[u8], value: Vec<u8>) {
    let name = name.to_ascii_lowercase();
    match headers.iter().position(|(known, _)| *known == name) {
        Some(at) => {
            headers[at].1 = value;
            let mut index = 0;
            headers.retain(|(known, _)| {
                index += 1;
                index - 1 <= at || *known != name
            });
        }
        None => headers.push((name, value)),
    }
}

/// Puts a value at the end.
pub fn add(headers: &mut Headers, name: &[u8], value: Vec<u8>) {
    headers.push((name.to_ascii_lowercase(), value));
}

/// Removes every value of a name.
pub fn remove(headers: &mut Headers, name: &[u8]) {
    headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
}

/// Writes a part of a buffer: all of it, in front of it or behind it. The gateway knows no other place.
pub(crate) fn splice(buffer: &mut Vec<u8>, start: usize, size: usize, bytes: Vec<u8>) -> Answer {
    if start == 0 && size == 0 {
        buffer.splice(..0, bytes);
    } else if start == 0 && size >= buffer.len() {
        *buffer = bytes;
    } else if start >= buffer.len() {
        buffer.extend(bytes);
    } else {
        return Err(Status::BadArgument.into());
    }
    Ok(())
}
