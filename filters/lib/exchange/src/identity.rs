//! Who is calling: api key, else user, else address.

use snapshot::{IdentitySource, content_hash, hex};

use crate::Headers;

/// The longest identity that is kept, in bytes; a longer one is replaced by its fingerprint.
const MAX_IDENTITY: usize = 128;

/// Everything that is known about a caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The client's address as text; empty where the gateway gave none.
    pub ip: String,
    /// The client's port; 0 where unknown.
    pub port: u16,
    /// The id of its api key, never the key itself.
    pub apikey: Option<String>,
    /// Its user.
    pub user: Option<String>,
}

/// A kind of identity, most specific first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdentityKind {
    /// An api key's id.
    ApiKey,
    /// A user.
    User,
    /// An address.
    Ip,
}

/// One identity of a caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdentityRef {
    /// Its kind.
    pub kind: IdentityKind,
    /// Its value.
    pub value: String,
}

impl IdentityRef {
    /// The identity as it is written in references, bans and events: `ip:192.0.2.1`, `apikey:<id>`, `user:<name>`.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}:{}", self.kind.word(), self.value)
    }
}

impl IdentityKind {
    /// The word in front of the colon.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::ApiKey => "apikey",
            Self::User => "user",
            Self::Ip => "ip",
        }
    }
}

impl Caller {
    /// Reads who is calling from a request.
    ///
    /// `peer` is the client's address as the gateway tells it, with or without a port: behind proxies that the gateway
    /// trusts it is what they say. Nobody but the gateway knows whether it has appended to `x-forwarded-for` itself, so
    /// that header is not read here. Headers count only where `source` names them.
    #[must_use]
    pub fn read(source: &IdentitySource, peer: &[u8], headers: &Headers, query: &[u8]) -> Self {
        let (ip, port) = split_address(peer);
        let key = named(&source.api_key_header)
            .and_then(|name| headers.get(name))
            .or_else(|| named(&source.api_key_query).and_then(|name| query_value(query, name.as_bytes())));
        Self {
            ip,
            port,
            apikey: key.filter(|key| !key.is_empty()).map(|key| api_key_id(key, source.api_key_is_id)),
            user: named(&source.user_header)
                .and_then(|name| headers.get(name))
                .filter(|user| !user.is_empty())
                .map(|user| bounded(String::from_utf8_lossy(user).into_owned())),
        }
    }

    /// The identities of this caller, most specific first.
    pub fn identities(&self) -> impl Iterator<Item = IdentityRef> {
        let one = |kind, value: Option<&String>| value.map(|value| IdentityRef { kind, value: value.clone() });
        let ip = Some(&self.ip).filter(|ip| !ip.is_empty());
        [
            one(IdentityKind::ApiKey, self.apikey.as_ref()),
            one(IdentityKind::User, self.user.as_ref()),
            one(IdentityKind::Ip, ip),
        ]
        .into_iter()
        .flatten()
    }

    /// The most specific identity; `None` where nothing at all is known.
    #[must_use]
    pub fn identity(&self) -> Option<IdentityRef> {
        self.identities().next()
    }
}

fn named(name: &str) -> Option<&str> {
    Some(name).filter(|name| !name.is_empty())
}

/// What stands for an api key: the key itself may open doors, so by default only a fingerprint of it is ever shown.
fn api_key_id(key: &[u8], is_id: bool) -> String {
    if is_id {
        return bounded(String::from_utf8_lossy(key).into_owned());
    }
    fingerprint(key)
}

fn bounded(text: String) -> String {
    if text.len() <= MAX_IDENTITY { text } else { fingerprint(text.as_bytes()) }
}

fn fingerprint(bytes: &[u8]) -> String {
    let mut text = hex(&content_hash(bytes));
    text.truncate(32);
    text
}

/// The first value of a query parameter, as it stands in the query.
fn query_value<'a>(query: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    query.split(|byte| *byte == b'&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix(b"="))
}

/// Splits `192.0.2.1:443`, `[2001:db8::1]:443` or a bare address, whose port is 0; an IPv4-mapped address becomes IPv4. What
/// is no address at all comes back as it is, a long one as its fingerprint.
#[must_use]
pub fn split_address(address: &[u8]) -> (String, u16) {
    let text = String::from_utf8_lossy(address);
    match text.parse::<std::net::SocketAddr>() {
        // There is one way to write an IPv4 address: what was read is what would be written.
        Ok(std::net::SocketAddr::V4(socket)) => {
            let ip = text.rsplit_once(':').map_or(text.as_ref(), |(ip, _)| ip);
            return (ip.to_owned(), socket.port());
        }
        Ok(std::net::SocketAddr::V6(socket)) => return (socket.ip().to_canonical().to_string(), socket.port()),
        Err(_) => {}
    }
    match text.parse::<std::net::IpAddr>() {
        Ok(ip) => (ip.to_canonical().to_string(), 0),
        Err(_) => (bounded(text.into_owned()), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_os = "unknown")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    fn source() -> IdentitySource {
        IdentitySource { api_key_header: "x-api-key".into(), user_header: "x-user".into(), ..IdentitySource::default() }
    }

    #[test]
    fn the_most_specific_identity_comes_first_and_a_key_is_never_shown() {
        let headers = Headers::from([("x-api-key", "secret"), ("x-user", "ada")]);
        let caller = Caller::read(&source(), b"192.0.2.7:5000", &headers, b"");
        let keys: Vec<String> = caller.identities().map(|identity| identity.key()).collect();
        assert_eq!(keys.len(), 3);
        assert!(keys[0].starts_with("apikey:") && !keys[0].contains("secret"), "{keys:?}");
        assert_eq!(keys[1..], ["user:ada", "ip:192.0.2.7"]);
        assert_eq!(caller.port, 5000);
    }

    #[test]
    fn headers_that_are_not_named_do_not_count() {
        let headers = Headers::from([("x-api-key", "a"), ("x-user", "b"), ("x-forwarded-for", "203.0.113.1")]);
        let caller = Caller::read(&IdentitySource::default(), b"192.0.2.7:1", &headers, b"");
        assert_eq!(caller, Caller { ip: "192.0.2.7".into(), port: 1, ..Caller::default() });
    }

    #[test]
    fn what_a_caller_writes_of_where_it_comes_from_is_not_believed() {
        let headers = Headers::from([("x-forwarded-for", "6.6.6.6"), ("forwarded", "for=6.6.6.6")]);
        assert_eq!(Caller::read(&source(), b"10.0.0.1:1", &headers, b"").ip, "10.0.0.1");
    }

    #[test]
    fn addresses_are_read_in_every_form() {
        assert_eq!(split_address(b"[2001:db8::1]:443"), ("2001:db8::1".into(), 443));
        assert_eq!(split_address(b"[::ffff:192.0.2.1]:80"), ("192.0.2.1".into(), 80));
        assert_eq!(split_address(b"192.0.2.1"), ("192.0.2.1".into(), 0));
        assert_eq!(split_address(b"\xff"), ("\u{fffd}".into(), 0));
    }

    #[test]
    fn a_key_in_the_query_is_found_by_its_whole_name() {
        assert_eq!(query_value(b"my_key=1&key=2", b"key"), Some(b"2".as_slice()));
        assert_eq!(query_value(b"key", b"key"), None);
    }
}
