//! The signature base (RFC 9421, section 2.5): what is signed.

use exchange::Request;

use super::claim::joined;
use super::fields::{Bare, Dictionary, InnerList, Item, write_bytes};
use super::why::Why;

/// The bytes of a signature base, and of all headers together that are read for it, at most.
const MAX_BASE: usize = 8192;

/// The signature base of an input.
///
/// # Errors
/// A component that is there twice, is not there, or is not supported; a base that is too long.
pub(super) fn signature_base(request: &Request, input: &InnerList<'_>) -> Result<Vec<u8>, Why> {
    let mut base = Vec::new();
    let mut identifiers: Vec<Vec<u8>> = Vec::new();
    let mut room = MAX_BASE;
    for item in &input.items {
        let mut identifier = Vec::new();
        item.write(&mut identifier);
        if identifiers.contains(&identifier) {
            return Err(Why::Component);
        }
        base.extend_from_slice(&identifier);
        base.extend_from_slice(b": ");
        write_component(request, item, &mut room, &mut base)?;
        base.push(b'\n');
        if base.len() > MAX_BASE {
            return Err(Why::TooLong);
        }
        identifiers.push(identifier);
    }
    base.extend_from_slice(b"\"@signature-params\": ");
    input.write(&mut base);
    if base.len() > MAX_BASE { Err(Why::TooLong) } else { Ok(base) }
}

fn write_component(request: &Request, item: &Item<'_>, room: &mut usize, to: &mut Vec<u8>) -> Result<(), Why> {
    let Bare::Text(name) = &item.value else { return Err(Why::Component) };
    if name.first() != Some(&b'@') {
        return write_header(request, name, item, room, to);
    }
    // Of derived components, only `@query-param` of requests has a parameter; it is not supported.
    if item.parameters.iter().next().is_some() {
        return Err(Why::Component);
    }
    match name.as_ref() {
        b"@method" => to.extend_from_slice(&request.method),
        b"@authority" => to.extend_from_slice(&authority(request)?),
        b"@scheme" => to.extend_from_slice(&scheme(request)?),
        b"@target-uri" => {
            to.extend_from_slice(&scheme(request)?);
            to.extend_from_slice(b"://");
            to.extend_from_slice(&authority(request)?);
            to.extend_from_slice(&request.path);
        }
        b"@request-target" => to.extend_from_slice(&request.path),
        b"@path" if request.path_only().is_empty() => to.push(b'/'),
        b"@path" => to.extend_from_slice(request.path_only()),
        b"@query" => {
            to.push(b'?');
            to.extend_from_slice(request.query());
        }
        _ => return Err(Why::Component),
    }
    Ok(())
}

/// A header as it is, each of its values as bytes (`bs`), or the member of a dictionary (`key`). What is read goes from `room`: of a field
/// that is read for each of its members, little may come into the base.
fn write_header(
    request: &Request,
    name: &[u8],
    item: &Item<'_>,
    room: &mut usize,
    to: &mut Vec<u8>,
) -> Result<(), Why> {
    let name = std::str::from_utf8(name).map_err(|_| Why::Component)?;
    if name.is_empty() || name.starts_with(':') || name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err(Why::Component);
    }
    let mut parameters = item.parameters.iter();
    let parameter = parameters.next();
    if parameters.next().is_some() {
        return Err(Why::Component);
    }
    // The gateway shows it as the authority.
    if name == "host" && parameter.is_none() {
        to.extend_from_slice(&request.authority);
        return Ok(());
    }
    request.headers.get(name).ok_or(Why::Component)?;
    let field = joined(request, name, *room).ok_or(Why::TooLong)?;
    *room = room.saturating_sub(field.len());
    match parameter {
        None => to.extend_from_slice(&field),
        Some((b"bs", Bare::Boolean(true))) => {
            for (place, value) in request.headers.all(name).enumerate() {
                if place > 0 {
                    to.extend_from_slice(b", ");
                }
                write_bytes(value.trim_ascii(), to);
            }
        }
        Some((b"key", Bare::Text(key))) => {
            let dictionary = Dictionary::read(&field).ok_or(Why::Component)?;
            dictionary.get(key).ok_or(Why::Component)?.write(to);
        }
        Some(_) => return Err(Why::Component),
    }
    Ok(())
}

fn scheme(request: &Request) -> Result<Vec<u8>, Why> {
    request.headers.get(":scheme").map(<[u8]>::to_ascii_lowercase).ok_or(Why::Component)
}

/// The host in lower case, without the port that the scheme has anyway (section 2.2.3).
fn authority(request: &Request) -> Result<Vec<u8>, Why> {
    let mut authority = request.authority.to_ascii_lowercase();
    let default_port: &[u8] = match request.headers.get(":scheme") {
        Some(b"http") => b":80",
        _ => b":443",
    };
    if authority.ends_with(default_port) {
        authority.truncate(authority.len().saturating_sub(default_port.len()));
    }
    if authority.is_empty() { Err(Why::Component) } else { Ok(authority) }
}
