//! Who is calling: api key, else user, else address.
//!
//! A caller can write anything into a header. So an api key or a user is an identity only where something has verified it
//! ([`Verified`]); anything else that a caller says of itself is a label, which events show and nothing is charged to.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};

use serde_json::{Value, json};
use snapshot::{ApiKeyDigest, IdentitySource, content_hash, hex};
use tables::canonical;

use crate::Headers;
use crate::spelling::escaped;
use crate::tls;

/// The longest identity that is kept, in bytes; a longer one is replaced by its fingerprint.
const MAX_IDENTITY: usize = 128;

/// The IPv6 network that a caller is judged by where nothing else is said, in bits: what a customer of a provider has at
/// least, and can choose addresses from.
const IPV6_PREFIX: u8 = 64;

/// The most values of one request that are looked up as api keys, from each end of the list of all: backends take the first
/// or the last one.
const MAX_KEYS_FROM_EACH_END: usize = 16;

/// Everything that is known about a caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The client's address as text; empty where the gateway gave none.
    pub ip: String,
    /// The client's port; 0 where unknown.
    pub port: u16,
    /// The id of its api key, never the key itself; verified.
    pub apikey: Option<String>,
    /// The ids of further known api keys that came with the request: a backend may read any of them, so their bans hold too.
    pub other_apikeys: Vec<String>,
    /// Its user; verified.
    pub user: Option<String>,
    /// What it says of itself.
    pub labels: Labels,
    /// The bits of the network that an address of IPv6 is judged by; 0 for 64.
    pub ipv6_prefix: u8,
    /// The JA4 of its TLS, where bans hold on that. It is shared by all who use the same software, so nothing is ever charged to it: an
    /// operator alone bans it.
    pub ja4: Option<String>,
}

/// What a caller claims to be, unverified: for readers of events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels {
    /// The fingerprint of what it gives as its api key, or the id where ids are what callers give.
    pub apikey: Option<String>,
    /// What it gives as its user.
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

impl Labels {
    /// As events have them; `None` where there is nothing to show.
    #[must_use]
    pub fn event(&self) -> Option<Value> {
        let fields = [("apikey", &self.apikey), ("user", &self.user)].into_iter();
        let fields: serde_json::Map<String, Value> =
            fields.filter_map(|(name, value)| Some((name.to_owned(), value.as_deref()?.into()))).collect();
        (!fields.is_empty()).then_some(Value::Object(fields))
    }
}

impl Caller {
    /// Reads who is calling from a request.
    ///
    /// `peer` is the client's address as the gateway tells it, with or without a port: behind proxies that the gateway
    /// trusts it is what they say. Only the gateway knows whether it has appended to `x-forwarded-for` itself, so
    /// that header is not read here. Headers count only where `source` names them. `property` knows what others in the
    /// gateway have verified, as [`Host::property`](crate::Host::property) does.
    #[must_use]
    pub fn read(
        source: &IdentitySource,
        peer: &[u8],
        headers: &Headers,
        query: &[u8],
        property: &dyn Fn(&[String]) -> Option<Vec<u8>>,
    ) -> Self {
        let (ip, port) = split_address(peer);
        let keys = given_keys(source, headers, query);
        let mut known = known_keys(&source.api_keys, &keys);
        let verified = |api_key: bool| {
            let verifiers = source.verifiers.iter().filter(|verifier| verifier.api_key == api_key);
            verifiers.filter_map(|verifier| verified(verifier, headers, property)).next()
        };
        let first = if known.is_empty() { None } else { Some(known.remove(0)) };
        let (apikey, user) = (first.or_else(|| verified(true)), verified(false));
        let label = |identity: &Option<String>, said: Option<String>| said.filter(|_| identity.is_none());
        let said_user = named(&source.user_header).and_then(|name| headers.get(name)).filter(|user| !user.is_empty());
        let labels = Labels {
            apikey: label(&apikey, keys.first().map(|key| api_key_label(key, source.api_key_is_id))),
            user: label(&user, said_user.map(bounded)),
        };
        let ipv6_prefix = u8::try_from(source.ipv6_prefix).unwrap_or(0);
        let ja4 = if source.tls_fingerprint { tls::ja4(property).map(|ja4| ja4.to_string()) } else { None };
        Self { ip, port, apikey, other_apikeys: known, user, labels, ipv6_prefix, ja4 }
    }

    /// The identities of this caller, most specific first. An address of IPv6 stands for its network.
    pub fn identities(&self) -> impl Iterator<Item = IdentityRef> {
        let one = |kind, value: Option<String>| value.map(|value| IdentityRef { kind, value });
        [
            one(IdentityKind::ApiKey, self.apikey.clone()),
            one(IdentityKind::User, self.user.clone()),
            one(IdentityKind::Ip, self.network()),
        ]
        .into_iter()
        .flatten()
    }

    /// The most specific identity, which alone is charged; `None` where nothing at all is known.
    #[must_use]
    pub fn identity(&self) -> Option<IdentityRef> {
        self.identities().next()
    }

    /// The keys by which bans and entries of the allowlist are found that this caller is subject to, most specific first:
    /// the address is whole in them, and so is within every range around it.
    pub fn keys(&self) -> impl Iterator<Item = String> {
        let whole = Some(&self.ip).filter(|ip| !ip.is_empty()).map(|ip| format!("ip:{ip}"));
        let further = |value: &String| IdentityRef { kind: IdentityKind::ApiKey, value: value.clone() };
        let others = self.other_apikeys.iter().map(further);
        let others = self.identities().filter(|identity| identity.kind != IdentityKind::Ip).chain(others);
        let ja4 = self.ja4.as_ref().map(|ja4| format!("ja4:{ja4}"));
        others.map(|identity| identity.key()).chain(whole).chain(ja4)
    }

    /// The caller as events name it. The network is told of an address of IPv6: it is what the address is judged by.
    #[must_use]
    pub fn source(&self) -> Value {
        let mut source = json!({
            "ip": Some(&self.ip).filter(|ip| !ip.is_empty()), "apikey": self.apikey, "user": self.user,
        });
        if self.ip.parse::<Ipv6Addr>().is_ok()
            && let (Some(network), Some(fields)) = (self.network(), source.as_object_mut())
        {
            let network = if network == self.ip { format!("{network}/128") } else { network };
            fields.insert("network".to_owned(), network.into());
        }
        source
    }

    /// What the address is judged by: itself, or its network where it is one of IPv6; `None` where the gateway gave none.
    #[must_use]
    pub fn network(&self) -> Option<String> {
        let ip = Some(&self.ip).filter(|ip| !ip.is_empty())?;
        let prefix = if self.ipv6_prefix == 0 { IPV6_PREFIX } else { self.ipv6_prefix };
        match ip.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) if prefix < 128 => {
                let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
                Some(format!("{}/{prefix}", Ipv6Addr::from(u128::from(address) & mask)))
            }
            _ => Some(ip.clone()),
        }
    }
}

fn named(name: &str) -> Option<&str> {
    Some(name).filter(|name| !name.is_empty())
}

/// All that a request gives as its api key, in headers and in the query, as it stands there and decoded; none of them empty.
fn given_keys<'a>(source: &'a IdentitySource, headers: &'a Headers, query: &'a [u8]) -> Vec<Cow<'a, [u8]>> {
    let in_headers = named(&source.api_key_header).into_iter().flat_map(|name| headers.all(name)).map(Cow::Borrowed);
    let mut keys: Vec<Cow<'a, [u8]>> = in_headers.collect();
    if let Some(name) = named(&source.api_key_query) {
        for value in query_values(query, name.as_bytes()) {
            let decoded = percent_decoded(value);
            if decoded != value {
                keys.push(Cow::Owned(decoded.into_owned()));
            }
            keys.push(Cow::Borrowed(value));
        }
    }
    keys.retain(|key| !key.is_empty());
    if keys.len() > 2 * MAX_KEYS_FROM_EACH_END {
        let last = keys.split_off(keys.len() - MAX_KEYS_FROM_EACH_END);
        keys.truncate(MAX_KEYS_FROM_EACH_END);
        keys.extend(last);
    }
    keys
}

/// The ids of the known keys among those given, in their order, each once.
fn known_keys(keys: &[ApiKeyDigest], given: &[Cow<'_, [u8]>]) -> Vec<String> {
    let mut ids = Vec::new();
    for id in given.iter().filter_map(|key| known_key(keys, key)) {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

/// The id of an api key, where there is such a key. The keys are by ascending digest: those that begin as this one's are
/// found by halves, which tells at most how a digest begins, and are compared in constant time.
fn known_key(keys: &[ApiKeyDigest], key: &[u8]) -> Option<String> {
    if keys.is_empty() {
        return None;
    }
    let digest = content_hash(key);
    let start = |digest: &[u8]| digest.first_chunk::<4>().copied().unwrap_or_default();
    let from = keys.partition_point(|known| start(&known.sha256) < start(&digest));
    let candidates = keys.iter().skip(from).take_while(|known| start(&known.sha256) == start(&digest));
    let same = |known: &&ApiKeyDigest| {
        let differs = known.sha256.iter().zip(&digest).fold(0, |differs, (one, other)| differs | (one ^ other));
        differs == 0 && known.sha256.len() == digest.len()
    };
    candidates.filter(same).map(|known| known.id.clone()).next()
}

/// What a verifier has found.
fn verified(
    verifier: &snapshot::Verifier,
    headers: &Headers,
    property: &dyn Fn(&[String]) -> Option<Vec<u8>>,
) -> Option<String> {
    let value = match named(&verifier.header) {
        // Of several values, the client may have added one.
        Some(name) => {
            let mut values = headers.all(name);
            values.next().filter(|_| values.next().is_none()).map(<[u8]>::to_vec)
        }
        None => property(&verifier.property),
    };
    value.filter(|value| !value.is_empty()).map(|value| bounded(&value))
}

/// The label of an unknown api key: the key itself may open doors, so by default only a fingerprint of it is
/// ever shown.
fn api_key_label(key: &[u8], is_id: bool) -> String {
    if is_id { bounded(key) } else { fingerprint(key) }
}

/// Text that can be shown and compared; what is too long, or is no text, is replaced by its fingerprint.
fn bounded(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.len() <= MAX_IDENTITY && !text.chars().any(char::is_control) => text.to_owned(),
        _ => fingerprint(bytes),
    }
}

fn fingerprint(bytes: &[u8]) -> String {
    let mut text = hex(&content_hash(bytes));
    text.truncate(32);
    text
}

/// The values of a query parameter, as they stand in the query. Its name may be encoded; pairs end at `&` or `;`.
fn query_values<'a>(query: &'a [u8], name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    query.split(|byte| matches!(byte, b'&' | b';')).filter_map(move |pair| {
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        let (key, value) = (halves.next()?, halves.next()?);
        (key == name || *percent_decoded(key) == *name).then_some(value)
    })
}

/// Text of a query without its percent encoding; `+` stands for a space.
fn percent_decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return Cow::Borrowed(text);
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        decoded.push(match (byte, escaped(behind)) {
            (b'%', Some((value, behind))) => {
                rest = behind;
                value
            }
            (b'+', _) => b' ',
            _ => byte,
        });
    }
    Cow::Owned(decoded)
}

/// Splits `192.0.2.1:443`, `[2001:db8::1]:443` or a bare address, whose port is 0; an address of IPv4 that is written as IPv6
/// becomes IPv4, see [`canonical`]. What is no address at all comes back as it is, a long one as its fingerprint.
#[must_use]
pub fn split_address(address: &[u8]) -> (String, u16) {
    let text = String::from_utf8_lossy(address);
    match text.parse::<std::net::SocketAddr>() {
        // There is one way to write an IPv4 address: what was read is what would be written.
        Ok(std::net::SocketAddr::V4(socket)) => {
            let ip = text.rsplit_once(':').map_or(text.as_ref(), |(ip, _)| ip);
            return (ip.to_owned(), socket.port());
        }
        Ok(std::net::SocketAddr::V6(socket)) => return (canonical((*socket.ip()).into()).to_string(), socket.port()),
        Err(_) => {}
    }
    match text.parse::<IpAddr>() {
        Ok(ip) => (canonical(ip).to_string(), 0),
        Err(_) if text.len() <= MAX_IDENTITY => (text.into_owned(), 0),
        Err(_) => (fingerprint(address), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Host as _;
    use crate::fake::FakeHost;

    fn source() -> IdentitySource {
        IdentitySource { api_key_header: "x-api-key".into(), user_header: "x-user".into(), ..IdentitySource::default() }
    }

    fn read(source: &IdentitySource, peer: &[u8], headers: &Headers) -> Caller {
        Caller::read(source, peer, headers, b"", &|_| None)
    }

    fn keys(caller: &Caller) -> Vec<String> {
        caller.identities().map(|identity| identity.key()).collect()
    }

    #[test]
    fn what_nobody_has_verified_is_a_label_and_no_identity() {
        let headers = Headers::from([("x-api-key", "secret"), ("x-user", "victim")]);
        let caller = read(&source(), b"192.0.2.7:5000", &headers);
        assert_eq!((keys(&caller), caller.port), (vec!["ip:192.0.2.7".to_owned()], 5000));
        assert_eq!(caller.keys().collect::<Vec<_>>(), ["ip:192.0.2.7"]);
        let Labels { apikey: Some(apikey), user: Some(user) } = &caller.labels else { panic!("{caller:?}") };
        assert!(!apikey.contains("secret") && user == "victim");
        let shown = IdentitySource { api_key_is_id: true, ..source() };
        assert_eq!(read(&shown, b"192.0.2.7:1", &headers).labels.apikey.as_deref(), Some("secret"));
    }

    #[test]
    fn an_api_key_that_is_known_is_the_most_specific_identity() {
        let digest = |id: &str, key: &[u8]| ApiKeyDigest { id: id.into(), sha256: content_hash(key).to_vec() };
        let mut api_keys: Vec<_> =
            (0..500).map(|one| digest(&format!("k{one}"), format!("key-{one}").as_bytes())).collect();
        api_keys.sort_by(|one, other| one.sha256.cmp(&other.sha256));
        let source = IdentitySource { api_keys, api_key_query: "key".into(), ..source() };
        for one in [0, 250, 499] {
            let caller = read(&source, b"192.0.2.7:1", &Headers::from([("x-api-key", format!("key-{one}").as_str())]));
            assert_eq!(keys(&caller), [format!("apikey:k{one}"), "ip:192.0.2.7".to_owned()]);
            assert_eq!(caller.labels, Labels::default());
        }
        for made_up in ["key-500", "key-", "KEY-0", "key-0 "] {
            let caller = read(&source, b"192.0.2.7:1", &Headers::from([("x-api-key", made_up)]));
            assert_eq!(keys(&caller), ["ip:192.0.2.7"], "{made_up}");
        }
        let caller = Caller::read(&source, b"192.0.2.7:1", &Headers::default(), b"key=key-3", &|_| None);
        assert_eq!(keys(&caller), ["apikey:k3", "ip:192.0.2.7"]);
    }

    #[test]
    fn what_the_gateway_has_verified_is_an_identity() {
        let words = ["metadata", "filter_metadata", "envoy.filters.http.jwt_authn", "payload", "sub"];
        let property: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let user = snapshot::Verifier { property: property.clone(), ..Default::default() };
        let source = IdentitySource { verifiers: vec![user], ..source() };
        let host = FakeHost::default();
        let headers = Headers::from([("x-user", "victim")]);
        let caller = || Caller::read(&source, b"192.0.2.7:1", &headers, b"", &|path| host.property(path));
        assert_eq!(keys(&caller()), ["ip:192.0.2.7"], "there is no token");
        host.properties.borrow_mut().insert(property.clone(), b"ada".to_vec());
        assert_eq!(
            (keys(&caller()), caller().labels),
            (vec!["user:ada".to_owned(), "ip:192.0.2.7".into()], Labels::default())
        );
        // A number comes as its bytes, and a name may be of any length and kind.
        for odd in [42_f64.to_le_bytes().to_vec(), vec![b'x'; 129], b"a\nb".to_vec(), b"\xff".to_vec()] {
            host.properties.borrow_mut().insert(property.clone(), odd);
            let key = keys(&caller()).remove(0);
            assert!(key.len() == 37 && key.is_ascii(), "{key}");
        }
    }

    #[test]
    fn a_header_that_only_a_verifier_sets_counts_once() {
        let verifiers = vec![snapshot::Verifier { header: "x-auth-user".into(), ..Default::default() }];
        let source = IdentitySource { verifiers, ..IdentitySource::default() };
        let of = |headers: &Headers| keys(&read(&source, b"192.0.2.7:1", headers)).remove(0);
        assert_eq!(of(&Headers::from([("x-auth-user", "ada")])), "user:ada");
        assert_eq!(of(&Headers::from([("x-auth-user", "ada"), ("x-auth-user", "eve")])), "ip:192.0.2.7");
        assert_eq!(of(&Headers::from([("x-auth-user", "")])), "ip:192.0.2.7");
    }

    #[test]
    fn an_address_of_ipv6_is_judged_by_its_network_and_found_as_it_is() {
        let caller = |peer: &[u8], ipv6_prefix| {
            read(&IdentitySource { ipv6_prefix, ..IdentitySource::default() }, peer, &Headers::default())
        };
        let one = caller(b"[2001:db8:1:2:3:4:5:6]:443", 0);
        assert_eq!((keys(&one), one.ip.as_str()), (vec!["ip:2001:db8:1:2::/64".to_owned()], "2001:db8:1:2:3:4:5:6"));
        assert_eq!(one.keys().collect::<Vec<_>>(), ["ip:2001:db8:1:2:3:4:5:6"]);
        assert_eq!(keys(&caller(b"[2001:db8:1:2ff::6]:443", 56)), ["ip:2001:db8:1:200::/56"]);
        assert_eq!(keys(&caller(b"[2001:db8:1:2ff::6]:443", 128)), ["ip:2001:db8:1:2ff::6"]);
        assert_eq!(keys(&caller(b"[::ffff:192.0.2.1]:443", 0)), ["ip:192.0.2.1"]);
        assert_eq!(keys(&caller(b"/run/socket", 0)), ["ip:/run/socket"]);
        assert_eq!(one.source()["network"], "2001:db8:1:2::/64");
        assert_eq!(caller(b"[2001:db8::6]:443", 128).source()["network"], "2001:db8::6/128");
        assert_eq!(caller(b"192.0.2.1:443", 0).source().get("network"), None);
    }

    #[test]
    fn clients_behind_a_translator_of_ipv4_are_callers_of_their_own() {
        let of = |peer: &[u8]| read(&IdentitySource::default(), peer, &Headers::default());
        let (one, other) = (of(b"[64:ff9b::c000:201]:443"), of(b"64:ff9b::192.0.2.2"));
        assert_eq!((keys(&one), keys(&other)), (vec!["ip:192.0.2.1".to_owned()], vec!["ip:192.0.2.2".to_owned()]));
        assert_eq!((one.ip.as_str(), one.source().get("network")), ("192.0.2.1", None));
        assert_eq!(one, of(b"192.0.2.1:443"), "as without the translator");
        let host = FakeHost::at(1_000);
        let exchange = |caller: &Caller| crate::Exchange { caller: caller.clone(), ..crate::Exchange::default() };
        let ban =
            crate::bans::NewBan { scope: crate::bans::BanScope::Auto, millis: 10_000, reason: "score 95", score: 95.0 };
        let banned = crate::bans::ban(&exchange(&one), &ban, &host);
        assert_eq!(banned, crate::bans::Banned::InForce("ip:192.0.2.1".into()));
        assert!(crate::bans::standing(&exchange(&one), &host).is_some());
        assert_eq!(crate::bans::standing(&exchange(&other), &host), None);
    }

    #[test]
    fn headers_that_are_not_named_do_not_count() {
        let headers = Headers::from([("x-api-key", "a"), ("x-user", "b"), ("x-forwarded-for", "203.0.113.1")]);
        let caller = read(&IdentitySource::default(), b"192.0.2.7:1", &headers);
        assert_eq!(caller, Caller { ip: "192.0.2.7".into(), port: 1, ..Caller::default() });
    }

    #[test]
    fn what_a_caller_writes_of_where_it_comes_from_is_not_believed() {
        let headers = Headers::from([("x-forwarded-for", "6.6.6.6"), ("forwarded", "for=6.6.6.6")]);
        assert_eq!(read(&source(), b"10.0.0.1:1", &headers).ip, "10.0.0.1");
    }

    #[test]
    fn addresses_are_read_in_every_form() {
        assert_eq!(split_address(b"[2001:db8::1]:443"), ("2001:db8::1".into(), 443));
        assert_eq!(split_address(b"[::ffff:192.0.2.1]:80"), ("192.0.2.1".into(), 80));
        assert_eq!(split_address(b"[64:ff9b::c000:201]:80"), ("192.0.2.1".into(), 80));
        assert_eq!(split_address(b"64:ff9b::192.0.2.1"), ("192.0.2.1".into(), 0));
        assert_eq!(split_address(b"192.0.2.1"), ("192.0.2.1".into(), 0));
        assert_eq!(split_address(b"\xff"), ("\u{fffd}".into(), 0));
    }

    #[test]
    fn a_key_in_the_query_is_found_by_its_whole_name() {
        let values = |query: &'static [u8]| query_values(query, b"key").collect::<Vec<_>>();
        assert_eq!(values(b"my_key=1&key=2;k%65y=3&KEY=4"), [b"2", b"3"]);
        assert!(values(b"key").is_empty());
        assert_eq!(*percent_decoded(b"a%20b+c%2%zz%"), *b"a b c%2%zz%");
    }

    #[test]
    fn a_known_key_is_found_wherever_a_backend_may_read_it() {
        let digest = |id: &str, key: &[u8]| ApiKeyDigest { id: id.into(), sha256: content_hash(key).to_vec() };
        let mut api_keys = vec![digest("shop", b"REAL key"), digest("other", b"second")];
        api_keys.sort_by(|one, other| one.sha256.cmp(&other.sha256));
        let source = IdentitySource { api_keys, api_key_query: "key".into(), ..source() };
        let of = |headers: Headers, query: &[u8]| Caller::read(&source, b"192.0.2.7:1", &headers, query, &|_| None);
        let none = Headers::default;
        let shop = ["apikey:shop", "ip:192.0.2.7"];
        assert_eq!(keys(&of(Headers::from([("x-api-key", "junk"), ("x-api-key", "REAL key")]), b"")), shop);
        assert_eq!(keys(&of(Headers::from([("x-api-key", "")]), b"key=REAL%20key")), shop);
        assert_eq!(keys(&of(Headers::from([("x-api-key", "junk")]), b"key=x&key=REAL+key")), shop);
        assert_eq!(keys(&of(none(), b"%6bey=%52EAL%20key")), shop);
        let both = of(Headers::from([("x-api-key", "REAL key")]), b"key=second&key=second");
        assert_eq!(both.identity().unwrap().key(), "apikey:shop");
        assert_eq!(both.keys().collect::<Vec<_>>(), ["apikey:shop", "apikey:other", "ip:192.0.2.7"]);
        // Behind thousands of values, what a backend takes is at one of the ends.
        let junk = "key=x&".repeat(5000);
        assert_eq!(keys(&of(none(), format!("{junk}key=second").as_bytes()))[0], "apikey:other");
        assert_eq!(keys(&of(none(), format!("key=second&{junk}key=y").as_bytes()))[0], "apikey:other");
    }
}
