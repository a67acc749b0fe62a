//! Who has logged in at the provider, by its claims.

use accounts::{Role, normal_name};
use serde_json::Value;

use super::settings::Settings;
use super::token::Claims;

/// A person, as the provider describes them. Only issuer and subject say who they are; everything else may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The provider's own id of them (`sub`), never given to another person.
    pub subject: String,
    /// The name for a new operator, if a claim has one that can be a name.
    pub name: Option<String>,
    /// Their email address.
    pub email: Option<String>,
    /// Whether the provider has verified that the address is theirs.
    pub email_verified: bool,
    /// The role that the claims give.
    pub role: ProviderRole,
}

/// What the claims say about the role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderRole {
    /// This role, now and at each login.
    Given(Role),
    /// None: the person may not log in.
    Denied,
    /// Nothing: the role is that of the console; this one for a new operator.
    Local(Option<Role>),
}

// === impl Person ===

impl Person {
    pub(super) fn of(claims: &Claims, settings: &Settings) -> Person {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        // Some providers write the boolean as a text.
        let verified =
            matches!(claims.get("email_verified"), Some(Value::Bool(true))) || text("email_verified") == Some("true");
        Person {
            subject: text("sub").unwrap_or_default().to_owned(),
            name: settings.name_claims.iter().filter_map(|name| text(name)).find_map(normal_name),
            email: text("email").map(str::to_owned),
            email_verified: verified,
            role: role(claims, settings),
        }
    }
}

/// Whether the claims have all that the settings name; if not, the provider is asked for more.
pub(super) fn is_complete(claims: &Claims, settings: &Settings) -> bool {
    let named = settings.name_claims.iter().any(|name| claims.contains_key(name));
    let role = settings.role_claim.as_ref().is_none_or(|name| find(claims, name).is_some());
    named && role && claims.contains_key("email")
}

fn role(claims: &Claims, settings: &Settings) -> ProviderRole {
    let Some(name) = &settings.role_claim else { return ProviderRole::Local(settings.default_role) };
    let values: Vec<&str> = match find(claims, name) {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let given =
        settings.roles.iter().filter(|(value, _)| values.contains(&value.as_str())).map(|(_, role)| *role).max();
    given.or(settings.default_role).map_or(ProviderRole::Denied, ProviderRole::Given)
}

/// The claim of this name, or, if there is none, at the path whose parts are separated by dots (`realm_access.roles`).
fn find<'a>(claims: &'a Claims, name: &str) -> Option<&'a Value> {
    claims.get(name).or_else(|| {
        let (first, rest) = name.split_once('.')?;
        rest.split('.').try_fold(claims.get(first)?, |value, part| value.get(part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::tests::settings;

    fn of(claims: Value, change: impl FnOnce(&mut Settings)) -> Person {
        let mut settings = settings();
        change(&mut settings);
        Person::of(claims.as_object().unwrap(), &settings)
    }

    #[test]
    fn the_highest_role_counts_and_none_is_denied() {
        let role = |groups: Value, change: fn(&mut Settings)| of(serde_json::json!({ "groups": groups }), change).role;
        let same = |_: &mut Settings| {};
        assert_eq!(role(serde_json::json!(["x", "soc", "root"]), same), ProviderRole::Given(Role::Admin));
        assert_eq!(role("soc".into(), same), ProviderRole::Given(Role::Analyst));
        for none in [serde_json::json!([]), serde_json::json!(["SOC"]), serde_json::json!([["soc"]]), Value::Null] {
            assert_eq!(role(none.clone(), same), ProviderRole::Denied, "{none}");
            assert_eq!(role(none, |s| s.default_role = Some(Role::Viewer)), ProviderRole::Given(Role::Viewer));
        }
        let nested = serde_json::json!({ "realm_access": { "roles": ["soc"] } });
        let at = |s: &mut Settings| s.role_claim = Some("realm_access.roles".to_owned());
        assert_eq!(of(nested, at).role, ProviderRole::Given(Role::Analyst));
        assert_eq!(role("root".into(), |s| s.role_claim = None), ProviderRole::Local(None));
    }

    #[test]
    fn a_name_is_one_that_an_operator_can_have() {
        let named = |claims: Value| of(claims, |_| {}).name;
        assert_eq!(named(serde_json::json!({ "preferred_username": "Ada" })), Some("ada".to_owned()));
        let both = serde_json::json!({ "preferred_username": "Ada L", "email": "ada@example.com" });
        assert_eq!(named(both), Some("ada@example.com".to_owned()));
        assert_eq!(named(serde_json::json!({ "preferred_username": "Ä" })), None);
        for (value, verified) in [(true.into(), true), ("true".into(), true), ("yes".into(), false), (1.into(), false)]
        {
            assert_eq!(
                of(serde_json::json!({ "email_verified": Value::clone(&value) }), |_| {}).email_verified,
                verified,
                "{value}"
            );
        }
    }
}
