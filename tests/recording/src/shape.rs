//! Requests and responses as filters see them, from what a client or a recorder had.

use crate::traffic::Headers;

/// What a gateway takes away from HTTP/1 before filters see a message.
const HOP_BY_HOP: [&[u8]; 4] = [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding"];

/// What a URL says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Url<'a> {
    /// As it is written.
    pub(crate) scheme: &'a str,
    /// Host and port, without a user.
    pub(crate) authority: &'a str,
    /// Path and query as they are written, `/` at the least.
    pub(crate) path: String,
}

/// The pseudo headers of a request, as far as they are known.
#[derive(Debug, Default)]
pub(crate) struct Line {
    pub(crate) method: Vec<u8>,
    /// None for CONNECT.
    pub(crate) path: Option<Vec<u8>>,
    /// The host that the target names; the header `host` is looked at where it names none.
    pub(crate) authority: Option<Vec<u8>>,
    pub(crate) scheme: Option<Vec<u8>>,
}

/// The parts of an absolute URL; nothing of it is decoded or normalized.
pub(crate) fn url(url: &str) -> Option<Url<'_>> {
    let (scheme, rest) = url.split_once("://")?;
    let rest = rest.split('#').next().unwrap_or_default();
    let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let path = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
    Some(Url { scheme, authority, path })
}

/// The headers of a request as a gateway hands them to filters: pseudo headers first, names in lower case, the host among
/// the pseudo headers, nothing that holds for one connection only.
///
/// A request with several hosts, or an empty one, keeps them among its headers: rules look for them there.
pub(crate) fn request(line: Line, headers: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) -> Headers {
    let headers = lower(headers);
    let hosts: Vec<&Vec<u8>> = headers.iter().filter(|(name, _)| name == b"host").map(|(_, value)| value).collect();
    let only_one = hosts.len() == 1 && !hosts[0].is_empty();
    let drop_host = only_one || line.authority.is_some();
    let authority = line.authority.or_else(|| hosts.first().filter(|host| !host.is_empty()).map(|host| host.to_vec()));
    let mut shaped: Headers = vec![(b":method".to_vec(), line.method)];
    let pseudo = [(":path", line.path), (":authority", authority), (":scheme", line.scheme)];
    shaped.extend(pseudo.into_iter().filter_map(|(name, value)| Some((name.into(), value?))));
    shaped.extend(end_to_end(headers).into_iter().filter(|(name, _)| !(drop_host && name == b"host")));
    shaped
}

/// The headers of a response as the backend's are handed to filters.
pub(crate) fn response(headers: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) -> Headers {
    end_to_end(lower(headers))
}

/// Names in lower case; pseudo headers and empty names are left out.
pub(crate) fn lower(headers: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) -> Headers {
    let named = headers.into_iter().filter(|(name, _)| !name.is_empty() && !name.starts_with(b":"));
    named.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect()
}

/// Without what holds for a connection only. An upgrade keeps `connection` and `upgrade`, as it does in a gateway.
fn end_to_end(mut headers: Headers) -> Headers {
    let upgrades = headers.iter().any(|(name, value)| {
        name == b"connection" && value.split(|&byte| byte == b',').any(|word| is(word.trim_ascii(), "upgrade"))
    });
    headers.retain(|(name, _)| match name.as_slice() {
        b"connection" | b"upgrade" => upgrades,
        name => !HOP_BY_HOP.contains(&name),
    });
    headers
}

fn is(word: &[u8], other: &str) -> bool {
    word.eq_ignore_ascii_case(other.as_bytes())
}

/// The first value of a header.
pub(crate) fn value<'a>(headers: &'a Headers, name: &str) -> Option<&'a [u8]> {
    headers.iter().find(|(known, _)| known == name.as_bytes()).map(|(_, value)| value.as_slice())
}

/// Sets `content-length` to what the body has, where it says another number; then says what it was.
pub(crate) fn fit_length(headers: &mut Headers, body: &[u8]) -> Option<u64> {
    let real = body.len().to_string().into_bytes();
    let (_, announced) = headers.iter_mut().find(|(name, value)| name == b"content-length" && *value != real)?;
    let number = std::str::from_utf8(announced).ok()?.trim().parse().ok()?;
    *announced = real;
    Some(number)
}

/// A protocol as filters see it.
pub(crate) fn protocol(recorded: &str) -> Option<&'static str> {
    match recorded.trim().to_ascii_lowercase().as_str() {
        "http/1.0" => Some("HTTP/1.0"),
        "http/1.1" => Some("HTTP/1.1"),
        "h2" | "h2c" | "http/2" | "http/2.0" => Some("HTTP/2"),
        "h3" | "http/3" | "http/3.0" => Some("HTTP/3"),
        other if other.starts_with("h3-") || other.starts_with("http/2+quic") => Some("HTTP/3"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Headers {
        list.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    #[test]
    fn a_url_is_taken_apart_as_it_is_written() {
        let parts = |text| url(text).map(|url| (url.scheme, url.authority, url.path));
        assert_eq!(parts("https://u:p@a.b:8443/x/../y?q=%41#f"), Some(("https", "a.b:8443", "/x/../y?q=%41".into())));
        assert_eq!(parts("http://a?q=1"), Some(("http", "a", "/?q=1".into())));
        assert_eq!(parts("http://a"), Some(("http", "a", "/".into())));
        assert_eq!(parts("data:text/plain,x"), None);
    }

    #[test]
    fn a_request_is_as_a_gateway_hands_it_on() {
        let line = || Line { method: b"GET".to_vec(), path: Some(b"/".to_vec()), ..Line::default() };
        let one = request(line(), pairs(&[("Host", "a"), ("Connection", "close"), ("Upgrade", "h2c"), ("X-A", "B")]));
        assert_eq!(one, pairs(&[(":method", "GET"), (":path", "/"), (":authority", "a"), ("x-a", "B")]));
        let two = request(line(), pairs(&[("Host", "a"), ("HOST", "b")]));
        let expected = [(":method", "GET"), (":path", "/"), (":authority", "a"), ("host", "a"), ("host", "b")];
        assert_eq!(two, pairs(&expected));
        let socket = request(line(), pairs(&[("Connection", "keep-alive, Upgrade"), ("Upgrade", "websocket")]));
        assert_eq!(socket[2..], pairs(&[("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")]));
        let named = Line { authority: Some(b"b".to_vec()), ..line() };
        assert_eq!(request(named, pairs(&[("Host", "a")])).last().unwrap().1, b"b");
    }

    #[test]
    fn a_length_is_made_to_fit() {
        let mut headers = pairs(&[("content-length", "9")]);
        assert_eq!(fit_length(&mut headers, b"abc"), Some(9));
        assert_eq!(headers, pairs(&[("content-length", "3")]));
        assert_eq!(fit_length(&mut headers, b"abc"), None);
        // What is no number stays: it may be an attack.
        let mut odd = pairs(&[("content-length", "+9x")]);
        assert_eq!(fit_length(&mut odd, b"abc"), None);
        assert_eq!(odd, pairs(&[("content-length", "+9x")]));
    }
}
