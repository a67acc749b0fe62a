//! Whether there is anything that enforces a ban.

use std::fmt;

use exchange::Exemptions;

use super::expand;
use base::identity::Identity;
use entities::plugins::{PRESET_CLASSES, Plugin, active, by_name};
use entities::{EntitySet, Gateway, Item, Route};
use kit::{Acts, View};
use policies::ThreatPolicy;

/// A threat gate in a chain.
struct GateStep<'a> {
    /// The route that has it; `None` for the global chain, which every gateway has.
    route: Option<&'a Item<Route>>,
    policy: Item<ThreatPolicy>,
}

/// Why no gateway enforces a ban on an identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unenforced {
    /// No chain has a threat gate.
    NoGate,
    /// No gateway with such a chain runs the filter.
    NoFilter,
    /// No gateway with a threat gate verifies identities of this kind.
    Unverified {
        /// `ip`, `apikey`, `user` or `ja4`.
        kind: &'static str,
    },
    /// Every policy that a gate has exempts it.
    Exempt {
        /// Who is exempt.
        identity: Identity,
        /// One of the policies, by its id.
        policy: String,
    },
}

impl fmt::Display for Unenforced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unenforced::NoGate => {
                let gates = PRESET_CLASSES.into_iter().take(1).chain(gates().map(Plugin::class));
                let classes: Vec<String> = gates.map(|class| format!("`{class}`")).collect();
                let classes = classes.join(", ");
                write!(f, "no chain has a threat gate: neither an enabled route ({classes}) nor the global chain")
            }
            Unenforced::NoFilter => {
                let filters: Vec<String> = gates().map(|plugin| format!("`{}`", plugin.name)).collect();
                let filters = filters.join(", ");
                write!(f, "no gateway that has a chain with a threat gate runs the filter {filters} or `preset`")
            }
            Unenforced::Unverified { kind: "ja4" } => f.write_str(
                "no gateway with a threat gate knows TLS fingerprints: that needs `global-config.identity.tls_fingerprint`, and a \
                 listener that computes them (`gateway.tls`, or one of your own)",
            ),
            Unenforced::Unverified { kind } => write!(
                f,
                "no gateway with a threat gate verifies an identity of the kind `{kind}` (`global-config.identity`); the \
                 listener that xDS serves verifies `api_keys` and what a proxy in front has set"
            ),
            Unenforced::Exempt { identity, policy } => {
                write!(
                    f,
                    "{identity} is among the `exemptions` of every threat policy that a gate has, such as `{policy}`"
                )
            }
        }
    }
}

impl std::error::Error for Unenforced {}

/// Whether some gateway enforces a ban on this identity.
///
/// # Errors
///
/// None does; with the reason, for people.
pub fn enforces(set: &EntitySet, identity: &Identity) -> Result<(), Unenforced> {
    let global = set.global();
    let steps = gate_steps(set);
    if steps.is_empty() {
        return Err(Unenforced::NoGate);
    }
    let has = |gate: &GateStep<'_>, group: &str| gate.route.is_none_or(|route| route.is_in(group));
    let runs = |gateway: &Gateway| {
        gateway.filters.iter().any(|filter| filter == "preset" || gates().any(|plugin| plugin.name == filter))
    };
    let running: Vec<(&str, Gateway)> =
        global.gateways().filter(|(name, gateway)| runs(gateway) && steps.iter().any(|gate| has(gate, name))).collect();
    if running.is_empty() {
        return Err(Unenforced::NoFilter);
    }
    let kind = identity.kind();
    let knowing: Vec<&str> = running
        .iter()
        .filter(|(_, gateway)| global.identity.verifies(kind, gateway.delivery))
        .filter(|(_, gateway)| kind != "ja4" || gateway.may_have_fingerprints())
        .map(|(name, _)| *name)
        .collect();
    if knowing.is_empty() {
        return Err(Unenforced::Unverified { kind });
    }
    let mut reached = steps.iter().filter(|gate| knowing.iter().any(|group| has(gate, group))).peekable();
    let first = reached.peek().map(|gate| gate.policy.head.id.clone()).unwrap_or_default();
    match reached.all(|gate| exempts(&gate.policy, identity)) {
        true => Err(Unenforced::Exempt { identity: identity.clone(), policy: first }),
        false => Ok(()),
    }
}

/// The plugins that enforce bans.
fn gates() -> impl Iterator<Item = &'static Plugin> {
    active().filter(|plugin| plugin.acts == Acts::Bans)
}

/// Every threat gate in an enabled chain.
fn gate_steps(set: &EntitySet) -> Vec<GateStep<'_>> {
    let (global, view) = (set.global(), View::new(set));
    let mut found = Vec::new();
    for validator in global.incoming_request_validators.iter().filter(|validator| validator.enabled) {
        let policies = policies(&view, &validator.plugin, &validator.config);
        found.extend(policies.into_iter().map(|policy| GateStep { route: None, policy }));
    }
    for route in set.all::<Route>().filter(|route| route.enabled) {
        for plugin in route.plugins.iter().filter(|plugin| plugin.enabled) {
            let policies = policies(&view, &plugin.plugin, &plugin.config);
            found.extend(policies.into_iter().map(|policy| GateStep { route: Some(route), policy }));
        }
    }
    found
}

/// The policy of each gate that a plugin is or is expanded to.
fn policies(
    view: &View<'_>,
    plugin: &str,
    config: &serde_json::Map<String, serde_json::Value>,
) -> Vec<Item<ThreatPolicy>> {
    let is_gate = |name: &str| by_name(name).is_some_and(|plugin| plugin.acts == Acts::Bans);
    let policy = |config: &serde_json::Map<String, serde_json::Value>| {
        let named = config.get("policy").and_then(serde_json::Value::as_str);
        policies::policy(named, view).unwrap_or_else(|_| ThreatPolicy::builtin())
    };
    if !PRESET_CLASSES.contains(&plugin) {
        return if is_gate(plugin) { vec![policy(config)] } else { Vec::new() };
    }
    let expanded = expand::expand(config).unwrap_or_default();
    expanded.uses.iter().filter(|used| is_gate(&used.plugin)).map(|used| policy(&used.config)).collect()
}

/// Whether a policy exempts all addresses of an identity: its gate lets them pass, whatever the ban's origin.
fn exempts(policy: &ThreatPolicy, identity: &Identity) -> bool {
    let Some(network) = identity.network() else { return false };
    Exemptions::new(&policy.exemptions).is_ok_and(|exemptions| exemptions.cover_network(&network))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn set(entities: &[Value]) -> EntitySet {
        let folder = tempfile::tempdir().unwrap();
        for (number, entity) in entities.iter().enumerate() {
            std::fs::write(folder.path().join(format!("{number}.json")), entity.to_string()).unwrap();
        }
        EntitySet::from_dir(folder.path()).unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    fn enforces_bans(set: &EntitySet) -> Result<(), Unenforced> {
        enforces(set, &Identity::parse("ip:192.0.2.1").unwrap())
    }

    #[test]
    fn an_exemption_of_every_gate_wins_over_a_ban() {
        let policy = |id: &str, exemptions: Value| json!({"kind": "threat-policy", "id": id, "exemptions": exemptions});
        let route = |id: &str, policy: Value| {
            let config = json!({"policy": policy});
            json!({"kind": "route", "id": id, "plugins": [{"plugin": "SvcThreatGate", "config": config}]})
        };
        let office = policy("office", json!(["192.0.2.0/24", "2001:db8::7", "::ffff:203.0.113.0/120"]));
        let why = |set: &EntitySet, identity: &str| {
            enforces(set, &Identity::parse(identity).unwrap()).err().map(|why| why.to_string())
        };
        // None named is the first enabled one.
        for named in [json!("office"), Value::Null] {
            let one = set(&[office.clone(), route("r", named)]);
            for exempt in ["ip:192.0.2.1", "ip:203.0.113.7", "ip:192.0.2.128/25", "ip:2001:db8::7"] {
                assert!(why(&one, exempt).unwrap().contains("exemptions"), "{exempt}");
            }
            for other in ["ip:192.0.3.1", "ip:192.0.0.0/16", "ip:2001:db8::/64", "ip:::ffff:198.51.100.1"] {
                assert_eq!(why(&one, other), None, "{other}");
            }
        }
        let both = [office, policy("strict", json!([])), route("r", json!("office")), route("s", json!("strict"))];
        assert_eq!(why(&set(&both), "ip:192.0.2.1"), None, "one gate enforces it");
    }

    #[test]
    fn a_ban_on_a_fingerprint_needs_a_listener_that_computes_it() {
        let ja4 = Identity::parse("ja4:t13d1516h2_8daaf6152771_02713d6af862").unwrap();
        let why = |identity: Value, gateway: Value| {
            let gate = json!({"kind": "route", "id": "r", "plugins": [{"plugin": "SvcThreatGate"}]});
            let global = json!({"kind": "global-config", "identity": identity, "gateway": gateway});
            enforces(&set(&[gate, global]), &ja4).err().map(|why| why.to_string())
        };
        let (on, tls) = (json!({"tls_fingerprint": true}), json!({"certificate": "/c", "private_key": "/k"}));
        assert_eq!(why(on.clone(), json!({"tls": tls})), None);
        assert_eq!(why(on.clone(), json!({"delivery": "ecds"})), None, "it may compute it");
        for (identity, gateway) in [(on, json!({})), (json!({}), json!({"tls": tls}))] {
            assert!(why(identity, gateway).unwrap().contains("tls_fingerprint"));
        }
    }

    #[test]
    fn who_can_be_verified_depends_on_whose_the_listener_is() {
        let gate = json!({"kind": "route", "id": "r", "plugins": [{"plugin": "SvcThreatGate"}]});
        let why = |verifier: &Value, delivery: &str| {
            let identity = json!({"verified_by": [verifier], "trusted_hops": 1});
            let global = json!({"kind": "global-config", "identity": identity, "gateway": {"delivery": delivery}});
            enforces(&set(&[gate.clone(), global]), &Identity::parse("user:ada").unwrap())
                .err()
                .map(|why| why.to_string())
        };
        let proxy = json!({"kind": "trusted_header", "header": "x-user", "set_by": "proxy"});
        for never in [
            json!({"kind": "jwt", "path": ["payload", "sub"]}),
            json!({"kind": "metadata", "namespace": "a", "path": ["b"]}),
            json!({"kind": "mtls"}),
            json!({"kind": "basic_auth", "header": "x-user"}),
            json!({"kind": "trusted_header", "header": "x-user"}),
        ] {
            assert!(why(&never, "full").unwrap().contains("verifies"), "{never}");
            assert_eq!(why(&never, "ecds"), None, "{never}");
        }
        assert_eq!(why(&proxy, "full"), None);
        // A group whose gateways have no gate does not count.
        let groups = json!({"eu": {"delivery": "ecds", "filters": ["waf"]}});
        let identity = json!({"verified_by": [{"kind": "mtls"}]});
        let global = json!({"kind": "global-config", "identity": identity, "groups": groups});
        assert!(enforces(&set(&[gate, global]), &Identity::parse("user:ada").unwrap()).is_err());
    }

    #[test]
    fn a_gate_is_found_wherever_it_is() {
        let route = |plugins: Value| json!({"kind": "route", "id": "r", "plugins": plugins});
        let preset = || route(json!([{"plugin": "SecuritySuitePreset", "config": {}}]));
        assert!(enforces_bans(&set(&[preset()])).is_ok());
        assert!(enforces_bans(&set(&[route(json!([{"plugin": "SvcThreatGate"}]))])).is_ok());
        let everywhere = json!([{"plugin": "IncomingRequestValidatorSvcThreatGate"}]);
        let everywhere = json!({"kind": "global-config", "incoming_request_validators": everywhere});
        assert!(enforces_bans(&set(&[everywhere])).is_ok());
        let filters = json!({"kind": "global-config", "gateway": {"filters": ["waf", "threat-response"]}});
        for none in [
            vec![],
            vec![route(json!([]))],
            vec![route(json!([{"plugin": "SecuritySuitePreset", "config": {"gate": false}}]))],
            vec![route(json!([{"plugin": "SvcThreatGate", "enabled": false}]))],
            vec![preset(), filters],
        ] {
            assert!(enforces_bans(&set(&none)).is_err(), "{none:?}");
        }
    }
}
