//! The key that failures are counted by.

use exchange::Exchange;
use snapshot::content_hash;

use crate::{KeyPart, KeyPlace};

/// The longest value of a place that is taken as it is, in bytes; a longer one is replaced by its hash.
const MAX_VALUE: usize = 256;

/// The key of a configuration, as it is made of an exchange.
pub(crate) struct CounterKey(Vec<(KeyPlace, String)>);

impl CounterKey {
    pub(crate) fn new(parts: Vec<KeyPart>) -> Result<Self, String> {
        let read = |part: KeyPart| {
            let place = KeyPlace::try_from(part.place).map_err(|_| "a key of fail2ban has an unknown place")?;
            Ok((place, part.text))
        };
        parts.into_iter().map(read).collect::<Result<_, String>>().map(Self)
    }

    /// The key of an exchange under a rule: 32 bytes, however long the values are. Each value stands with its length, so that a caller
    /// cannot choose values that add up to the key of another caller.
    pub(crate) fn of(&self, exchange: &Exchange, rule: &str) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(128);
        push(&mut bytes, rule.as_bytes());
        for (place, text) in &self.0 {
            match value(*place, text, exchange).filter(|value| !value.is_empty()) {
                Some(value) => push(&mut bytes, &value),
                // Without a value all such callers would count together, and each could be banned for what others did.
                None => {
                    let network = exchange.caller.network().unwrap_or_default();
                    push(&mut bytes, &[b"\0address ", network.as_bytes()].concat());
                }
            }
        }
        content_hash(&bytes).to_vec()
    }

    /// What the failures of an address are counted by as well, where the key has a place that a client varies at will: it writes headers,
    /// paths, hosts and methods, and makes accounts. `None` for other keys, and without an address.
    pub(crate) fn of_address(&self, exchange: &Exchange, rule: &str) -> Option<Vec<u8>> {
        use KeyPlace::{Ip, Literal, RouteId, RouteName};
        let varies = self.0.iter().any(|(place, _)| !matches!(place, Literal | RouteId | RouteName | Ip));
        let network = exchange.caller.network().filter(|_| varies)?;
        let mut bytes = Vec::with_capacity(64);
        push(&mut bytes, rule.as_bytes());
        push(&mut bytes, &[b"\0all of address ", network.as_bytes()].concat());
        Some(content_hash(&bytes).to_vec())
    }
}

fn value(place: KeyPlace, text: &str, exchange: &Exchange) -> Option<Vec<u8>> {
    let bytes = |text: String| text.into_bytes();
    let Exchange { request, route, caller, .. } = exchange;
    match place {
        KeyPlace::Literal => Some(text.as_bytes().to_vec()),
        // All routes without an id, and requests without a route, count together: that is no caller's choice.
        KeyPlace::RouteId => Some([b"route:", route.id.as_bytes()].concat()),
        KeyPlace::RouteName => Some([b"route:", route.label.as_bytes()].concat()),
        KeyPlace::Ip => caller.network().map(bytes),
        KeyPlace::Method => Some(request.method.clone()),
        KeyPlace::Path => Some(request.path_only().to_vec()),
        KeyPlace::Host => Some(request.authority.to_ascii_lowercase()),
        KeyPlace::User => caller.user.clone().map(bytes),
        KeyPlace::ApiKey => caller.apikey.clone().map(bytes),
        KeyPlace::Identity => caller.identity().map(|identity| identity.key().into_bytes()),
        KeyPlace::Header => request.headers.get(text).map(<[u8]>::to_vec),
    }
}

fn push(bytes: &mut Vec<u8>, value: &[u8]) {
    let hash;
    let kept = if value.len() > MAX_VALUE {
        hash = content_hash(value);
        hash.as_slice()
    } else {
        value
    };
    // A length that was replaced is over the bound, so that a value equal to a hash has another key.
    bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
    bytes.extend_from_slice(kept);
}
