//! Properties, as the gateway gives them: strings as bytes, numbers as eight bytes, little-endian.

use super::headers;
use super::state::{Phase, State, Stream};

/// The value of a property; `None` where there is none. A path that the gateway does not know is filter state.
pub(crate) fn get(state: &State, path: &[u8]) -> Option<Vec<u8>> {
    let words: Vec<&str> = path.split(|&byte| byte == 0).map(|word| std::str::from_utf8(word).unwrap_or("")).collect();
    match words.as_slice() {
        ["xds", "node", "id"] => return Some(state.node.id().into()),
        ["plugin_root_id"] => return Some(Vec::new()),
        ["plugin_name"] => return Some(b"replay".to_vec()),
        ["xds", "listener_direction"] => return Some(1_i64.to_le_bytes().to_vec()),
        _ => {}
    }
    let stream = state.streams.get(&state.effective)?;
    match words.as_slice() {
        ["xds", "route_name"] => some(stream.route.as_bytes()),
        ["xds", "virtual_host_name"] => Some(b"replay".to_vec()),
        ["xds", "cluster_name"] if !stream.route.is_empty() => Some(b"backend".to_vec()),
        ["source", "address"] => some(stream.peer.as_bytes()),
        ["source", "port"] => port(&stream.peer),
        ["destination", "address"] => some(stream.destination.as_bytes()),
        ["destination", "port"] => port(&stream.destination),
        ["connection", "id"] => Some(i64::from(stream.id).to_le_bytes().to_vec()),
        ["request", field @ ..] => request(stream, field),
        ["response", "code"] if stream.phase != Phase::Request => {
            let status = headers::get(&stream.response.headers, b":status")?;
            Some(std::str::from_utf8(status).ok()?.parse::<i64>().ok()?.to_le_bytes().to_vec())
        }
        ["response", "headers", name] => headers::get(&stream.response.headers, name.as_bytes()).map(<[u8]>::to_vec),
        ["filter_state", object] => state.node.filter_state(object),
        // The gateway sets a path of several words and never finds it again.
        [_] => stream.filter_state.get(path).cloned(),
        _ => None,
    }
}

/// The request's words are gone while the response is on its way, and come back for the log.
fn request(stream: &Stream, field: &[&str]) -> Option<Vec<u8>> {
    let size = i64::try_from(stream.request.body.len()).ok();
    match field {
        ["time"] => return Some(stream.started_nanos.to_le_bytes().to_vec()),
        ["size"] => return size.map(|size| size.to_le_bytes().to_vec()),
        ["protocol"] => return some(&stream.protocol),
        _ if stream.phase == Phase::Response => return None,
        _ => {}
    }
    let header = |name: &str| headers::get(&stream.request.headers, name.as_bytes()).map(<[u8]>::to_vec);
    let path = || header(":path");
    match field {
        ["path"] => path(),
        ["url_path"] => Some(path()?.split(|&byte| byte == b'?').next()?.to_vec()),
        ["query"] => {
            let path = path()?;
            let at = path.iter().position(|&byte| byte == b'?')?;
            Some(path[at + 1..].to_vec())
        }
        ["host"] => header(":authority"),
        ["method"] => header(":method"),
        ["scheme"] => header(":scheme"),
        ["id"] => header("x-request-id"),
        ["referer"] => header("referer"),
        ["useragent"] => header("user-agent"),
        ["headers", name] => header(name),
        _ => None,
    }
}

fn port(address: &str) -> Option<Vec<u8>> {
    let port: i64 = address.rsplit_once(':')?.1.parse().ok()?;
    Some(port.to_le_bytes().to_vec())
}

fn some(bytes: &[u8]) -> Option<Vec<u8>> {
    (!bytes.is_empty()).then(|| bytes.to_vec())
}
