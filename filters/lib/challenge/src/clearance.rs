//! The clearance: what a solved puzzle or a token earns.

use exchange::Exchange;
use serde::{Deserialize, Serialize};

use crate::Challenges;
use crate::binding::Binding;
use crate::keys::{self, Purpose};
use crate::puzzle::{ClearanceClaim, whole};

/// How far a score may rise above the one that a clearance was earned at. Beyond it the caller has done worse since than
/// what it worked for, and works again.
const SCORE_MARGIN: u32 = 20;
/// The most cookies of that name that are tried: those of other paths, and those that another host of the domain has set, may come first.
const MAX_COOKIES: usize = 16;

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
        let caller = Binding::of(&self.settings, exchange);
        let good = |value: &[u8]| {
            self.keys.open::<Clearance>(Purpose::Clearance, value).is_some_and(|clearance| {
                clearance.exp > now
                    && caller.admits(&clearance.ip, &clearance.ua)
                    && self.is_worth(clearance.score, score)
            })
        };
        self.cookies(exchange, "").into_iter().any(good)
    }

    /// The values of the caller's cookies that may be this provider's, with what ends their names: of its own name, and of the one that it
    /// has when other providers are enabled.
    pub(crate) fn cookies<'e>(&self, exchange: &'e Exchange, suffix: &str) -> Vec<&'e [u8]> {
        let names = [&self.settings.cookie_name, &self.settings.other_cookie_name];
        let names = names.into_iter().filter(|name| !name.is_empty());
        names.flat_map(|name| cookies(exchange, &format!("{name}{suffix}")).collect::<Vec<_>>()).collect()
    }

    /// Whether what was earned at one score is good for another.
    pub(crate) fn is_worth(&self, earned_at: u32, score: f64) -> bool {
        whole(score) <= earned_at.saturating_add(SCORE_MARGIN)
    }

    /// The `set-cookie` header of a clearance for what was done.
    pub(crate) fn cookie(&self, earned: ClearanceClaim, exchange: &Exchange, now: u64) -> Vec<u8> {
        let seconds = self.settings.clearance_ttl_seconds;
        let clearance = Clearance {
            exp: now.saturating_add(seconds.saturating_mul(1000)),
            ip: earned.ip,
            ua: earned.ua,
            score: earned.score,
        };
        let value = self.keys.sign(Purpose::Clearance, &clearance);
        let secure = if is_https(exchange) { "; Secure" } else { "" };
        let name = &self.settings.cookie_name;
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}").into_bytes()
    }
}

/// The values of the caller's cookies of a name that have the form of a token, as many as are tried.
pub(crate) fn cookies<'e>(exchange: &'e Exchange, name: &str) -> impl Iterator<Item = &'e [u8]> {
    let lines = exchange.request.headers.all("cookie");
    let pairs = lines.flat_map(|line| line.split(|byte| *byte == b';')).map(<[u8]>::trim_ascii);
    let values = pairs.filter_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
    values.filter(|value| keys::is_token(value)).take(MAX_COOKIES)
}

/// Whether the caller speaks HTTPS, to the gateway or to a proxy in front of it.
pub(crate) fn is_https(exchange: &Exchange) -> bool {
    let is = |name| exchange.request.headers.get(name).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"https"));
    is(":scheme") || is("x-forwarded-proto")
}
