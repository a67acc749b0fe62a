//! Bans, as plugins set them and ask for them.

use node_state::bans::{self, Ban};
use node_state::{SharedData, allowlist};

use crate::{BanOrder, Exchange, Host, IdentityKind, IdentityRef, Level, Metric};

/// Which identity of the caller is banned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BanScope {
    /// The most specific one: an API key before a user before the address.
    #[default]
    Auto,
    /// The address, or the network of it that the route identifies callers by.
    Ip,
    /// The API key; without one nothing is banned.
    ApiKey,
}

/// A ban to set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewBan<'a> {
    /// Which identity of the caller is banned.
    pub scope: BanScope,
    /// For how long, in milliseconds from now; 0 counts as 1.
    pub millis: u64,
    /// Why, for the operator; nodes keep 256 bytes of it.
    pub reason: &'a str,
    /// The score that led to it: 0 to 100.
    pub score: f64,
}

/// The outcome of [`ban`] on this node. In every case but [`Banned::NoIdentity`] the control plane is asked to make the ban hold
/// everywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Banned {
    /// The ban on this identity is in force.
    InForce(String),
    /// The identity, or an address or network of the caller, is on the allowlist: nothing is in force here. The control plane's
    /// refusal is what operators see.
    Allowlisted(String),
    /// The ban on this identity could not be stored, because other workers were faster every time.
    NotStored(String),
    /// The caller has no identity of the scope.
    NoIdentity,
}

/// A ban that a caller is under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The identity of the caller that is banned, such as `ip:192.0.2.1`.
    pub key: String,
    /// When it ends, in milliseconds since the Unix epoch.
    pub until: u64,
    /// Why, for people.
    pub reason: String,
}

impl Standing {
    /// A sentence for the operator.
    #[must_use]
    pub fn describe(&self, now: u64) -> String {
        let seconds = self.until.saturating_sub(now).div_ceil(1000);
        format!("{} is banned for another {seconds} s: {}", self.key, self.reason)
    }
}

/// Puts a ban on the caller in force on this node at once, and asks the control plane to make it hold everywhere. A caller on the
/// allowlist is not banned.
pub fn ban(exchange: &Exchange, ban: &NewBan<'_>, host: &dyn Host) -> Banned {
    let Some(identity) = identity(exchange, ban.scope) else {
        return Banned::NoIdentity;
    };
    let (now, key) = (host.now(), identity.key());
    let until = now.saturating_add(ban.millis.max(1));
    let banned = if is_allowlisted(exchange, &key, host, now) {
        Banned::Allowlisted(key)
    } else {
        host.count(Metric::Bans);
        match bans::apply(host.shared(), &key, until, ban.reason, now) {
            Ok(()) => Banned::InForce(key),
            Err(_) => {
                let message = "palisade: a ban could not be noted on this node; the control plane is asked";
                host.log(Level::Warn, message);
                Banned::NotStored(key)
            }
        }
    };
    host.send_ban(BanOrder {
        identity,
        until,
        reason: ban.reason.to_owned(),
        score: ban.score,
        tags: exchange.score.tags().into_iter().map(str::to_owned).collect(),
        address: exchange.caller.ip.clone(),
    });
    banned
}

/// The outcome that [`ban`] would have on this node, without a ban: for plugins in dry run.
#[must_use]
pub fn preview(exchange: &Exchange, scope: BanScope, host: &dyn Host) -> Banned {
    match identity(exchange, scope).map(|identity| identity.key()) {
        None => Banned::NoIdentity,
        Some(key) if is_allowlisted(exchange, &key, host, host.now()) => Banned::Allowlisted(key),
        Some(key) => Banned::InForce(key),
    }
}

/// The first ban that the caller is under. A ban on a caller that was put on the allowlist later holds no longer.
#[must_use]
pub fn standing(exchange: &Exchange, host: &dyn Host) -> Option<Standing> {
    find(exchange, host, bans::standing).map(|(key, Ban { until, reason, .. })| Standing { key, until, reason })
}

/// The same, of those bans alone that are an operator's; `until` is when it ceases to be one.
#[must_use]
pub fn standing_by_hand(exchange: &Exchange, host: &dyn Host) -> Option<Standing> {
    let (key, Ban { until, hand_until, reason }) = find(exchange, host, bans::standing_by_hand)?;
    Some(Standing { key, until: hand_until.min(until), reason })
}

fn find(
    exchange: &Exchange,
    host: &dyn Host,
    of: fn(&dyn SharedData, &str, u64) -> Option<Ban>,
) -> Option<(String, Ban)> {
    let now = host.now();
    exchange.caller.keys().find_map(|key| {
        let ban = of(host.shared(), &key, now)?;
        // A fingerprint is that of many clients: the allowlist may name one of them by what it is itself.
        let by_others = key.starts_with("ja4:") && covers_any(exchange, host, now);
        (!by_others && !allowlist::covers(host.shared(), &key, now)).then_some((key, ban))
    })
}

/// Whether the allowlist has any identity of the caller.
fn covers_any(exchange: &Exchange, host: &dyn Host, now: u64) -> bool {
    exchange.caller.keys().any(|key| allowlist::covers(host.shared(), &key, now))
}

/// The identity of the caller that a ban of a scope would be on.
#[must_use]
pub fn identity(exchange: &Exchange, scope: BanScope) -> Option<IdentityRef> {
    exchange.caller.identities().find(|identity| match scope {
        BanScope::Auto => true,
        BanScope::Ip => identity.kind == IdentityKind::Ip,
        BanScope::ApiKey => identity.kind == IdentityKind::ApiKey,
    })
}

/// The address itself may be on the allowlist, where the ban is on its network or on its owner.
fn is_allowlisted(exchange: &Exchange, key: &str, host: &dyn Host, now: u64) -> bool {
    let mut addresses = exchange.caller.keys().filter(|key| key.starts_with("ip:"));
    allowlist::covers(host.shared(), key, now) || addresses.any(|key| allowlist::covers(host.shared(), &key, now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeHost;

    fn caller() -> Exchange {
        let mut exchange = Exchange::default();
        exchange.caller.ip = "192.0.2.1".into();
        exchange.caller.user = Some("ada".into());
        exchange
    }

    fn of(scope: BanScope) -> NewBan<'static> {
        NewBan { scope, millis: 10_000, reason: "too many logins", score: 95.0 }
    }

    #[test]
    fn a_ban_holds_here_at_once_and_the_control_plane_is_asked() {
        let (host, exchange) = (FakeHost::at(1_000), caller());
        assert_eq!(preview(&exchange, BanScope::Ip, &host), Banned::InForce("ip:192.0.2.1".into()));
        assert_eq!(preview(&exchange, BanScope::ApiKey, &host), Banned::NoIdentity);
        assert_eq!((standing(&exchange, &host), host.bans.borrow().len()), (None, 0));
        assert_eq!(ban(&exchange, &of(BanScope::Ip), &host), Banned::InForce("ip:192.0.2.1".into()));
        let found = standing(&exchange, &host).unwrap();
        assert_eq!(found.describe(1_000), "ip:192.0.2.1 is banned for another 10 s: too many logins");
        assert_eq!(standing_by_hand(&exchange, &host), None);
        let orders = host.bans.borrow();
        assert_eq!((orders.len(), orders[0].until, orders[0].identity.key()), (1, 11_000, "ip:192.0.2.1".to_owned()));
        assert_eq!((orders[0].address.as_str(), orders[0].score), ("192.0.2.1", 95.0));
        assert_eq!(host.counts.borrow().get(&Metric::Bans), Some(&1));
        host.advance(10_000);
        assert_eq!(standing(&exchange, &host), None);
    }

    #[test]
    fn the_scope_says_who_is_banned() {
        let host = FakeHost::at(1_000);
        assert_eq!(ban(&caller(), &of(BanScope::Auto), &host), Banned::InForce("user:ada".into()));
        assert_eq!(ban(&caller(), &of(BanScope::ApiKey), &host), Banned::NoIdentity);
        assert_eq!(ban(&Exchange::default(), &of(BanScope::Ip), &host), Banned::NoIdentity);
        assert_eq!(host.bans.borrow().len(), 1, "without an identity nothing is asked");
    }

    #[test]
    fn a_ban_on_a_fingerprint_holds_for_all_clients_that_the_allowlist_does_not_name() {
        let host = FakeHost::at(1_000);
        let ja4 = "t13d1516h2_8daaf6152771_02713d6af862";
        bans::apply(&host.shared_data, &format!("ja4:{ja4}"), 90_000, "a botnet", 1_000).unwrap();
        assert_eq!(standing(&caller(), &host), None, "it is not known to have it");
        let mut exchange = caller();
        exchange.caller.ja4 = Some(ja4.into());
        assert_eq!(standing(&exchange, &host).unwrap().key, format!("ja4:{ja4}"));
        // A tier charges who is calling, never everyone with the same software.
        assert_eq!(exchange.caller.identity().unwrap().key(), "user:ada");
        for allowed in ["ip:192.0.2.0/24", "user:ada"] {
            let host = FakeHost::at(1_000);
            bans::apply(&host.shared_data, &format!("ja4:{ja4}"), 90_000, "a botnet", 1_000).unwrap();
            allowlist::apply(&host.shared_data, allowed, 90_000, 1_000).unwrap();
            assert_eq!(standing(&exchange, &host), None, "{allowed}");
        }
    }

    #[test]
    fn a_caller_on_the_allowlist_is_not_banned_but_the_control_plane_is_asked() {
        for allowed in ["user:ada", "ip:192.0.2.1"] {
            let host = FakeHost::at(1_000);
            allowlist::apply(&host.shared_data, allowed, 90_000, 1_000).unwrap();
            assert_eq!(preview(&caller(), BanScope::Auto, &host), Banned::Allowlisted("user:ada".into()));
            assert_eq!(ban(&caller(), &of(BanScope::Auto), &host), Banned::Allowlisted("user:ada".into()));
            assert_eq!((standing(&caller(), &host), host.bans.borrow().len()), (None, 1));
            assert_eq!(host.counts.borrow().get(&Metric::Bans), None);
        }
    }
}
