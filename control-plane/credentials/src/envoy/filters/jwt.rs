//! `envoy.filters.http.jwt_authn`.

use std::collections::{BTreeMap, BTreeSet};

use super::expect;
use crate::envoy::matching::Reach;
use crate::envoy::node::{Node, Notes, short};
use crate::envoy::rules::{self, Demand, Rule};
use crate::facts::{CredentialCheck, CredentialKind};
use crate::schemes::carrier;

/// Requirements within each other, at most.
const MAX_DEPTH: usize = 16;
/// Where tokens are looked for if a provider does not say.
const DEFAULT_CARRIERS: [&str; 2] = ["header:authorization", "query:access_token"];

/// The rules of the filter.
pub(super) struct Jwt {
    rules: Vec<Rule>,
    /// `requirement_map`; `None` for a requirement that lets requests without a token pass.
    named: BTreeMap<String, Option<Demand>>,
    /// Preflight requests pass.
    frees_preflight: bool,
}

/// Where the tokens of each provider are.
type Providers<'a> = BTreeMap<&'a str, BTreeSet<String>>;

// === impl Jwt ===

impl Jwt {
    pub(super) fn read(config: &Node<'_>, notes: &Notes) -> Jwt {
        config.only(
            &[
                "providers",
                "rules",
                "filter_state_rules",
                "bypass_cors_preflight",
                "requirement_map",
                "strip_failure_response",
                "stat_prefix",
            ],
            notes,
        );
        let providers: Providers<'_> = match config.object("providers", notes) {
            Some(providers) => providers.each().map(|(name, provider)| (name, carriers(&provider, notes))).collect(),
            None => Providers::new(),
        };
        let named: BTreeMap<String, Option<Demand>> = match config.object("requirement_map", notes) {
            Some(map) => {
                map.each().map(|(name, node)| (name.to_owned(), requirement(&node, &providers, notes))).collect()
            }
            None => BTreeMap::new(),
        };
        let mut rules = Vec::new();
        for rule in config.list("rules", notes) {
            let reach = match rule.object("match", notes) {
                Some(matching) => Reach::of_route_match(&matching, notes),
                None => {
                    notes.fault(&rule, "the rule has no match");
                    continue;
                }
            };
            rule.only(&["match", "requires", "requirement_name"], notes);
            let demand = match (rule.object("requires", notes), rule.text("requirement_name", notes)) {
                (Some(requires), _) => requirement(&requires, &providers, notes),
                (None, Some(name)) => named_requirement(&named, name, &rule, notes),
                (None, None) => None,
            };
            if demand.is_some() && reach.conditional {
                notes.warn(&rule, "more than path and method decides whether the rule applies: it counts as no check");
            }
            rules.push(Rule { reach, demand });
        }
        if let Some(states) = config.get("filter_state_rules") {
            notes.warn(&states, "what other filters say decides on these requirements: they count as no check");
        }
        Jwt { rules, named, frees_preflight: config.flag("bypass_cors_preflight", notes).unwrap_or(false) }
    }

    pub(super) fn checks(
        &self,
        with: Option<(&str, &Node<'_>)>,
        route: &Reach,
        checked_by: &str,
        notes: &Notes,
    ) -> Vec<CredentialCheck> {
        let Ok(own) = expect(with, "jwt_authn.v3.PerRouteConfig", notes) else { return Vec::new() };
        let preflight = self
            .frees_preflight
            .then(|| Rule { reach: Reach { methods: Some(vec!["OPTIONS"]), ..Reach::everything() }, demand: None });
        let mut applied: Vec<Rule> = preflight.into_iter().collect();
        match own {
            None => applied.extend(self.rules.iter().cloned()),
            Some(own) => {
                own.only(&["disabled", "requirement_name"], notes);
                if own.flag("disabled", notes).unwrap_or(false) {
                    return Vec::new();
                }
                let Some(name) = own.text("requirement_name", notes) else {
                    notes.fault(own, "neither `disabled` nor `requirement_name` is set");
                    return Vec::new();
                };
                applied.push(Rule {
                    reach: Reach::everything(),
                    demand: named_requirement(&self.named, name, own, notes),
                });
            }
        }
        rules::checks(&applied, route, checked_by)
    }
}

fn named_requirement(
    named: &BTreeMap<String, Option<Demand>>,
    name: &str,
    node: &Node<'_>,
    notes: &Notes,
) -> Option<Demand> {
    match named.get(name) {
        Some(demand) => demand.clone(),
        None => {
            notes.fault(node, format!("`requirement_map` has no `{}`", short(name)));
            None
        }
    }
}

/// Where a provider's tokens are.
fn carriers(provider: &Node<'_>, notes: &Notes) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for header in provider.list("from_headers", notes) {
        found.extend(header.text("name", notes).map(|name| carrier("header", name)));
    }
    for (field, place) in [("from_params", "query"), ("from_cookies", "cookie")] {
        for entry in provider.list(field, notes) {
            found.extend(entry.own_text(notes).map(|name| carrier(place, name)));
        }
    }
    if found.is_empty() {
        found.extend(DEFAULT_CARRIERS.map(str::to_owned));
    }
    found
}

/// What a requirement asks for; `None` where a request without a valid token passes.
fn requirement(node: &Node<'_>, providers: &Providers<'_>, notes: &Notes) -> Option<Demand> {
    let places = places(node, providers, notes, MAX_DEPTH)?;
    let carriers = places.into_iter().filter(|place| place.len() <= 256).take(16).collect();
    Some(Demand { kinds: vec![CredentialKind::Jwt], carriers })
}

/// The places of the tokens that a requirement asks for.
fn places(node: &Node<'_>, providers: &Providers<'_>, notes: &Notes, depth: usize) -> Option<BTreeSet<String>> {
    let Some(depth) = depth.checked_sub(1) else {
        notes.fault(node, "requirements are nested too deep");
        return None;
    };
    let mut fields = node.each().filter(|(name, _)| *name != "@type");
    // Without any the filter verifies nothing.
    let (name, inner) = fields.next()?;
    if fields.next().is_some() {
        notes.fault(node, "a requirement has one field");
        return None;
    }
    let provider = |name: Option<&str>| match providers.get(name?) {
        Some(places) => Some(places.clone()),
        None => {
            notes.fault(&inner, "there is no such provider");
            None
        }
    };
    let each = || inner.list("requirements", notes).into_iter().map(|one| places(&one, providers, notes, depth));
    match name {
        "provider_name" | "providerName" => provider(inner.own_text(notes)),
        "provider_and_audiences" | "providerAndAudiences" => {
            inner.only(&["provider_name", "audiences"], notes);
            provider(inner.text("provider_name", notes))
        }
        "requires_any" | "requiresAny" => {
            let all: Vec<_> = each().collect();
            if all.is_empty() {
                return None;
            }
            // One that lets requests pass is enough to let them pass.
            all.into_iter().try_fold(BTreeSet::new(), |mut places, one| {
                places.extend(one?);
                Some(places)
            })
        }
        "requires_all" | "requiresAll" => {
            let found: Vec<BTreeSet<String>> = each().flatten().collect();
            (!found.is_empty()).then(|| found.into_iter().flatten().collect())
        }
        "allow_missing" | "allowMissing" | "allow_missing_or_failed" | "allowMissingOrFailed" => None,
        "extract_only_without_validation" | "extractOnlyWithoutValidation" => None,
        _ => {
            notes.fault(&inner, "the requirement is not known to this release");
            None
        }
    }
}
