//! Headers and cookies.

use super::super::Target;
use crate::samples::messages::{SampledHeader, SampledRequest};

/// The headers that get the payload where a target names none: text of the client, of which nothing else depends.
const FREE: [&[u8]; 2] = [b"user-agent", b"referer"];
/// What the message is read by.
const FRAMING: [&[u8]; 2] = [b"content-length", b"transfer-encoding"];
/// The cookie that gets the payload where a request has none.
const COOKIE: &[u8] = b"id";

/// Puts the payload into a header, which is added if need be. `None` for bytes that no header holds, and for headers that frame the body.
pub(super) fn put(request: &mut SampledRequest, target: &Target, payload: &[u8]) -> Option<()> {
    let value = payload.trim_ascii();
    if value.is_empty() || value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return None;
    }
    match target.member.as_deref() {
        None => FREE.iter().for_each(|name| set(request, name, value)),
        Some(name) => {
            let name = name.to_ascii_lowercase();
            if !name.iter().all(|byte| is_token(*byte)) || FRAMING.contains(&name.as_slice()) {
                return None;
            }
            set(request, &name, value);
        }
    }
    Some(())
}

/// Puts a value into a header, which is added if need be.
pub(super) fn set(request: &mut SampledRequest, name: &[u8], value: &[u8]) {
    let mut found = false;
    for header in request.headers.iter_mut().filter(|header| header.name.eq_ignore_ascii_case(name)) {
        header.value = value.to_vec();
        found = true;
    }
    if !found {
        request.headers.push(SampledHeader { name: name.to_vec(), value: value.to_vec() });
    }
}

/// A byte of a header's name.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Puts the payload into the cookies that the target covers; one is added if need be.
pub(super) fn put_cookie(request: &mut SampledRequest, target: &Target, payload: &[u8]) {
    let value = cookie_value(payload);
    let mut found = false;
    for header in cookies(request) {
        let changed: Vec<Vec<u8>> = header
            .value
            .split(|byte| *byte == b';')
            .map(|cookie| {
                let name = cookie.split(|byte| *byte == b'=').next().unwrap_or_default();
                if cookie.trim_ascii().is_empty() || !target.covers(name.trim_ascii_start()) {
                    return cookie.to_vec();
                }
                found = true;
                [name, &value].join(b"=".as_slice())
            })
            .collect();
        header.value = changed.join(b";".as_slice());
    }
    if !found {
        add_cookie(request, &[target.member.as_deref().unwrap_or(COOKIE), &value].join(b"=".as_slice()));
    }
}

/// Adds a cookie whose name is the payload. `None` for what cannot be a name.
pub(super) fn add_cookie_name(request: &mut SampledRequest, payload: &[u8]) -> Option<()> {
    let name = payload.trim_ascii_start();
    if name.is_empty() || name.iter().any(|byte| byte.is_ascii_control() || matches!(byte, b';' | b'=')) {
        return None;
    }
    add_cookie(request, &[name, b"1"].join(b"=".as_slice()));
    Some(())
}

fn cookies(request: &mut SampledRequest) -> impl Iterator<Item = &mut SampledHeader> {
    request.headers.iter_mut().filter(|header| header.name.eq_ignore_ascii_case(b"cookie"))
}

fn add_cookie(request: &mut SampledRequest, pair: &[u8]) {
    let first = request.headers.iter_mut().find(|header| header.name.eq_ignore_ascii_case(b"cookie"));
    match first {
        Some(header) if !header.value.trim_ascii().is_empty() => {
            header.value = [header.value.as_slice(), pair].join(b"; ".as_slice());
        }
        Some(header) => header.value = pair.to_vec(),
        None => request.headers.push(SampledHeader { name: b"cookie".to_vec(), value: pair.to_vec() }),
    }
}

/// As it is if it can be. Otherwise what cannot be in a cookie is percent-encoded, which most applications undo.
fn cookie_value(payload: &[u8]) -> Vec<u8> {
    let foreign = |byte: &u8| *byte == b';' || byte.is_ascii_control();
    if payload.trim_ascii().len() == payload.len() && !payload.iter().any(foreign) {
        return payload.to_vec();
    }
    let mut value = Vec::with_capacity(payload.len());
    for byte in payload {
        match byte {
            b'%' | b'+' | b' ' => value.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            _ if foreign(byte) => value.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            _ => value.push(*byte),
        }
    }
    value
}
