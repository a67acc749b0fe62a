//! `envoy.filters.http.rbac`: a check where only callers with a credential are allowed, or all others are denied.

use std::collections::BTreeSet;

use super::expect;
use super::principal::Principal;
use crate::envoy::matching::{HeaderReach, Reach};
use crate::envoy::node::{Node, Notes};
use crate::envoy::paths;
use crate::envoy::rules::{self, Demand, Rule};
use crate::facts::{CredentialCheck, CredentialKind};

/// Permissions within each other, at most.
const MAX_DEPTH: usize = 16;

/// The rules of the filter.
pub(super) struct Rbac {
    rules: Vec<Rule>,
}

// === impl Rbac ===

impl Rbac {
    /// Reads the message that has `rules`; `None` where it enforces none.
    pub(super) fn read(config: &Node<'_>, notes: &Notes) -> Option<Rbac> {
        if let Some(matcher) = config.get("matcher") {
            notes.warn(&matcher, "a `matcher` is not read: the filter counts as no check");
            return None;
        }
        let rbac = config.object("rules", notes)?;
        rbac.only(&["action", "policies", "audit_logging_options"], notes);
        let action = rbac.word("action", &["ALLOW", "DENY", "LOG"], notes);
        // A word that is not known is a fault already.
        let action = if rbac.get("action").is_some() { action? } else { "ALLOW" };
        let policies: Vec<Policy> = match rbac.object("policies", notes) {
            Some(policies) => policies.each().map(|(_, policy)| Policy::read(&policy, notes)).collect(),
            None => Vec::new(),
        };
        match action {
            "ALLOW" => Some(Rbac { rules: allowed(policies) }),
            "DENY" => Some(Rbac { rules: policies.into_iter().flat_map(Policy::denied).collect() }),
            _ => None,
        }
    }
}

/// What the filter checks on a route.
pub(super) fn checks(
    filter: Option<&Rbac>,
    with: Option<(&str, &Node<'_>)>,
    route: &Reach,
    checked_by: &str,
    notes: &Notes,
) -> Vec<CredentialCheck> {
    let Ok(own) = expect(with, "rbac.v3.RBACPerRoute", notes) else { return Vec::new() };
    let own = own.map(|own| {
        own.only(&["rbac"], notes);
        // Without rules of its own the filter is off on the route.
        own.object("rbac", notes).and_then(|config| Rbac::read(&config, notes))
    });
    let rbac = match &own {
        Some(own) => own.as_ref(),
        None => filter,
    };
    rbac.map(|rbac| rules::checks(&rbac.rules, route, checked_by)).unwrap_or_default()
}

/// A policy: requests and callers.
struct Policy {
    reaches: Vec<Reach>,
    principal: Principal,
    /// An expression decides as well.
    conditional: bool,
}

// === impl Policy ===

impl Policy {
    fn read(node: &Node<'_>, notes: &Notes) -> Policy {
        node.only(&["permissions", "principals", "condition", "checked_condition", "cel_config"], notes);
        let permissions = node.list("permissions", notes);
        let reaches = permissions.iter().flat_map(|permission| reaches(permission, notes, MAX_DEPTH)).collect();
        let principals = node.list("principals", notes);
        if permissions.is_empty() || principals.is_empty() {
            notes.fault(node, "a policy has permissions and principals");
        }
        let principal = Principal::any_of(principals.iter().map(|one| Principal::read(one, notes)).collect());
        let conditional = node.get("condition").is_some() || node.get("checked_condition").is_some();
        if conditional {
            notes.warn(node, "the condition of the policy is not read: it counts as if it asked for no credential");
        }
        Policy { reaches, principal, conditional }
    }

    /// The rules of a policy that denies: who lacks a credential is refused.
    fn denied(self) -> Vec<Rule> {
        let Some(kinds) = self.principal.lacks.filter(|_| !self.conditional) else { return Vec::new() };
        let demand = demand(kinds);
        self.reaches.into_iter().map(|reach| Rule { reach, demand: Some(demand.clone()) }).collect()
    }
}

/// The rules of policies that allow: what any of them opens to callers without a credential is free, all else is closed to them.
fn allowed(policies: Vec<Policy>) -> Vec<Rule> {
    let (closed, open): (Vec<Policy>, Vec<Policy>) =
        policies.into_iter().partition(|policy| policy.principal.has.is_some());
    let kinds: BTreeSet<CredentialKind> =
        closed.into_iter().filter_map(|policy| policy.principal.has).flatten().collect();
    let mut rules: Vec<Rule> =
        open.into_iter().flat_map(|policy| policy.reaches).map(|reach| Rule { reach, demand: None }).collect();
    // Lists of addresses and paths alone check no credential.
    if !kinds.is_empty() {
        rules.push(Rule { reach: Reach::everything(), demand: Some(demand(kinds)) });
    }
    rules
}

fn demand(kinds: BTreeSet<CredentialKind>) -> Demand {
    Demand { kinds: kinds.into_iter().collect(), carriers: Vec::new() }
}

/// The requests of a permission, more where that cannot be said.
fn reaches(node: &Node<'_>, notes: &Notes, depth: usize) -> Vec<Reach> {
    let unknown = || vec![Reach { conditional: true, ..Reach::everything() }];
    let Some(depth) = depth.checked_sub(1) else {
        notes.fault(node, "permissions are nested too deep");
        return unknown();
    };
    let mut fields = node.each().filter(|(name, _)| *name != "@type");
    let (Some((name, inner)), None) = (fields.next(), fields.next()) else {
        notes.fault(node, "a permission has one field");
        return unknown();
    };
    let of_path = |path| Reach { path, ..Reach::everything() };
    match name {
        "any" => vec![Reach::everything()],
        "header" => {
            let mut reach = Reach::everything();
            reach.add(HeaderReach::of(&inner, notes));
            vec![reach]
        }
        "url_path" | "urlPath" => match paths::path_matcher(&inner, notes) {
            Some(path) => vec![of_path(Some(path).filter(|path| !path.is_everything()))],
            None => unknown(),
        },
        "uri_template" | "uriTemplate" => match paths::template(&inner, notes) {
            Some(path) => vec![of_path(Some(path))],
            None => unknown(),
        },
        "or_rules" | "orRules" => {
            inner.list("rules", notes).iter().flat_map(|rule| reaches(rule, notes, depth)).take(1_000).collect()
        }
        "and_rules" | "andRules" => {
            let all = inner.list("rules", notes);
            let mut found = vec![Reach::everything()];
            for rule in all {
                let others = reaches(&rule, notes, depth);
                let pairs = found.iter().flat_map(|one| others.iter().map(|other| one.clone().and(other.clone())));
                found = pairs.take(1_001).collect();
                if found.len() > 1_000 {
                    notes.fault(node, "the permission has too many combinations");
                    return unknown();
                }
            }
            found
        }
        "not_rule"
        | "notRule"
        | "metadata"
        | "sourced_metadata"
        | "sourcedMetadata"
        | "destination_ip"
        | "destinationIp"
        | "destination_port"
        | "destinationPort"
        | "destination_port_range"
        | "destinationPortRange"
        | "requested_server_name"
        | "requestedServerName"
        | "matcher" => unknown(),
        _ => {
            notes.fault(&inner, "the permission is not known to this release");
            unknown()
        }
    }
}
