//! The clearance: what a solved puzzle or a token earns.

use exchange::Exchange;
use serde::{Deserialize, Serialize};

use crate::Challenges;
use crate::binding::Binding;
use crate::keys::Purpose;
use crate::puzzle::{Puzzle, whole};

/// How far a score may rise above the one that a clearance was earned at. Beyond it the caller has done worse since than
/// what it worked for, and works again.
const SCORE_MARGIN: u32 = 20;
/// The most cookies of that name that are tried: an application's own of another path may come first.
const MAX_COOKIES: usize = 4;

/// A clearance as it is signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Clearance {
    /// When it ends, in milliseconds since the Unix epoch.
    exp: u64,
    ip: String,
    ua: String,
    /// The score that it was earned at.
    score: u32,
}

impl Challenges {
    /// Whether a caller has a clearance that is good for this score.
    #[must_use]
    pub fn cleared(&self, exchange: &Exchange, score: f64, now: u64) -> bool {
        let name = self.settings.cookie_name.as_bytes();
        let caller = Binding::of(&self.settings, exchange);
        let good = |value: &[u8]| {
            self.keys.open::<Clearance>(Purpose::Clearance, value).is_some_and(|clearance| {
                clearance.exp > now
                    && caller.admits(&clearance.ip, &clearance.ua)
                    && whole(score) <= clearance.score.saturating_add(SCORE_MARGIN)
            })
        };
        let lines = exchange.request.headers.all("cookie");
        let pairs = lines.flat_map(|line| line.split(|byte| *byte == b';')).map(<[u8]>::trim_ascii);
        let values = pairs.filter_map(|pair| pair.strip_prefix(name)?.strip_prefix(b"="));
        values.take(MAX_COOKIES).any(good)
    }

    /// The `set-cookie` header of a clearance for a solved puzzle.
    pub(crate) fn cookie(&self, puzzle: &Puzzle, exchange: &Exchange, now: u64) -> Vec<u8> {
        let binding = Binding { ip: puzzle.ip.clone(), ua: puzzle.ua.clone() };
        self.cookie_of(binding, puzzle.score, exchange, now)
    }

    /// The `set-cookie` header of a clearance that was earned at this score.
    pub(crate) fn cookie_of(&self, binding: Binding, score: u32, exchange: &Exchange, now: u64) -> Vec<u8> {
        let seconds = self.settings.clearance_ttl_seconds;
        let Binding { ip, ua } = binding;
        let clearance = Clearance { exp: now.saturating_add(seconds.saturating_mul(1000)), ip, ua, score };
        let value = self.keys.sign(Purpose::Clearance, &clearance);
        let secure = if is_https(exchange) { "; Secure" } else { "" };
        let name = &self.settings.cookie_name;
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}").into_bytes()
    }
}

/// Whether the caller speaks HTTPS, to the gateway or to a proxy in front of it.
fn is_https(exchange: &Exchange) -> bool {
    let is = |name| exchange.request.headers.get(name).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"https"));
    is(":scheme") || is("x-forwarded-proto")
}
