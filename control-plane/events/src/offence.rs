//! What the ledger may be fed with.

use std::net::IpAddr;

use super::event::{Kind, Source, TrailEvent};
use super::incidents::identity;

/// What an identity has done.
#[derive(Clone, Debug, PartialEq)]
pub struct Offence {
    /// The most specific identity that is known.
    pub key: String,
    /// When it was told, in milliseconds since 1970.
    pub at: u64,
    /// What it has done.
    pub deed: Deed,
    /// The address that it was done from; `None` where the gateway says none.
    pub address: Option<IpAddr>,
    /// The node that says so; empty where it is not known.
    pub node: String,
}

/// What the ledger charges for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Deed {
    /// A request of it was refused at this score, for anything but a standing ban, by a module whose trail does not say it as well.
    Denied(f64),
    /// A request of it was refused by the WAF.
    WafBlocked,
    /// The WAF has found something, and does not block.
    WafMonitored,
}

/// Whether the trail events of a module of this name say what its refusals are charged.
pub type ChargedByTrail = fn(&str) -> bool;

/// What an event of `node` says of its caller, where callers of IPv6 are judged by networks of `ipv6_prefix` bits; `None` where
/// there is nothing to charge.
pub(super) fn of(
    kind: &Kind,
    charged_by_trail: ChargedByTrail,
    node: &str,
    ipv6_prefix: u8,
    now: u64,
) -> Option<Offence> {
    let (source, deed): (&Source, Deed) = match kind {
        Kind::Security(event) => {
            let is = |field: &Option<String>, word: &str| field.as_deref() == Some(word);
            let classed = &event.event;
            let denial = ["deny", "maze", "ban"].into_iter().any(|action| is(&classed.action, action));
            let enforced = is(&classed.outcome, "blocked") && event.decision.enforced == Some(true);
            let has_trail = classed.module.as_deref().is_some_and(charged_by_trail);
            // A refusal for a ban that stands would make every ban last; what a trail says has its own weight.
            if !denial || !enforced || is(&classed.category, "ban") || has_trail {
                return None;
            }
            let score = event.threat.score().filter(|score| *score > 0.0)?;
            (&event.source, Deed::Denied(score))
        }
        Kind::Trail(TrailEvent { blocking: true, block, source }) if !block.is_null() => (source, Deed::WafBlocked),
        Kind::Trail(TrailEvent { blocking: false, source, .. }) => (source, Deed::WafMonitored),
        Kind::Trail(_) | Kind::Other => return None,
    };
    let identity = identity(source, ipv6_prefix)?;
    let key = format!("{}:{}", identity.kind, identity.value);
    Some(Offence { key, at: now, deed, address: source.address(), node: node.to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::event;
    use super::*;

    fn deed(event: &Value) -> Option<Deed> {
        let checked = event::check(event.to_string().as_bytes()).ok().unwrap();
        of(&checked.kind, |module| module == "detector-with-trail", "n1", 64, 7).map(|offence| {
            assert_eq!((offence.key.as_str(), offence.at, offence.node.as_str()), ("user:ada", 7, "n1"));
            assert_eq!(
                offence.address,
                Some(IpAddr::from([192, 0, 2, 1])),
                "a ban counts to the place that it comes from"
            );
            offence.deed
        })
    }

    #[test]
    fn only_enforced_denials_are_charged_and_those_of_a_trail_apart() {
        let security = |category: &str, action: &str, module: &str, enforced: bool| {
            json!({
                "@type": "SvcSecurityEvent", "threat": { "score": 55 },
                "event": { "category": category, "action": action, "module": module,
                           "outcome": if enforced { "blocked" } else { "observed" } },
                "source": { "ip": "192.0.2.1", "user": "ada" }, "decision": { "enforced": enforced },
            })
        };
        assert_eq!(deed(&security("threat", "deny", "threat-response", true)), Some(Deed::Denied(55.0)));
        assert_eq!(deed(&security("threat", "ban", "threat-response", true)), Some(Deed::Denied(55.0)));
        assert_eq!(deed(&security("threat", "maze", "bot-guard", true)), Some(Deed::Denied(55.0)));
        assert_eq!(deed(&security("threat", "deny", "threat-response", false)), None);
        assert_eq!(deed(&security("threat", "throttle", "threat-response", true)), None);
        assert_eq!(deed(&security("ban", "deny", "threat-gate", true)), None);
        assert_eq!(deed(&security("threat", "deny", "detector-with-trail", true)), None);
        assert_eq!(deed(&security("threat", "deny", "detector", true)), Some(Deed::Denied(55.0)));
        let trail = |blocking: bool, block: Value| {
            json!({ "@type": "SvcWafTrailEvent", "blocking": blocking, "block": block,
                    "source": { "ip": "192.0.2.1", "user": "ada" } })
        };
        assert_eq!(deed(&trail(true, json!({ "status": 403 }))), Some(Deed::WafBlocked));
        assert_eq!(deed(&trail(true, Value::Null)), None);
        assert_eq!(deed(&trail(false, Value::Null)), Some(Deed::WafMonitored));
    }
}
