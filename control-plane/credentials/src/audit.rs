//! The audit of one route: what checks credentials beside what its contract asks for.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::contract::{Declared, DeclaredOperation, Security};
use crate::facts::{CredentialCheck, Credentials, EnvoyRoute};
use crate::schemes::{Scheme, satisfies};
use crate::scopes::{Matching, Scopes};
use crate::template::Template;

/// Labels that a finding lists, at most.
const MAX_LISTED: usize = 8;

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Only to be known.
    Info,
    /// To be looked at.
    Low,
    /// The gateway and the contract ask for different things.
    Medium,
    /// What should be closed is open.
    High,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Nothing checks a credential, and the contract declares none.
    Public,
    /// Something checks a credential on an endpoint that the contract says is public.
    UndeclaredAuth,
    /// Nothing checks a credential, and the contract is silent or absent.
    NoCredential,
    /// Something checks a credential, of another kind than the contract asks for.
    SchemeMismatch,
    /// The contract asks for a credential, and nothing checks one.
    Unauthenticated,
}

/// A finding about one operation, or about a route without a contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How grave it is; it follows from the kind.
    pub severity: Severity,
    /// What it is about.
    pub kind: FindingKind,
    /// The id of the route.
    pub route_id: String,
    /// The method of the operation; `*` for a route without a contract.
    pub method: String,
    /// The path of the operation as the contract has it; `*` for a route without a contract.
    pub path: String,
    /// What is wrong, where, and what to do; sentences for a person.
    pub detail: String,
    /// What checks a credential there.
    pub checks: Vec<String>,
    /// What the contract asks for, each alternative with its schemes; empty where it asks for nothing.
    pub declared: Vec<String>,
}

/// The checks of a route, made ready for the comparison with operations.
pub(crate) struct RouteChecks<'a> {
    route_id: &'a str,
    stated: &'a [CredentialCheck],
    places: Vec<Place<'a>>,
    scopes: Option<RefCell<Scopes>>,
    sets: BTreeMap<&'a [String], usize>,
}

/// A place where requests of the route arrive.
struct Place<'a> {
    /// `None` where nothing is known of Envoy.
    envoy: Option<&'a EnvoyRoute>,
    /// The index of its path among the sets.
    path: Option<usize>,
}

/// What is found for some paths in one place.
struct Candidate<'a> {
    kind: FindingKind,
    place: Option<&'a EnvoyRoute>,
    checks: Vec<&'a CredentialCheck>,
    /// One of the paths, where others of the operation are treated otherwise.
    example: Option<String>,
    /// Patterns could not be compared with the paths, so that checks with patterns count as none.
    undecided: bool,
}

// === impl FindingKind ===

impl FindingKind {
    /// How grave findings of this kind are.
    #[must_use]
    pub fn severity(self) -> Severity {
        match self {
            FindingKind::Unauthenticated => Severity::High,
            FindingKind::SchemeMismatch => Severity::Medium,
            FindingKind::NoCredential => Severity::Low,
            FindingKind::Public | FindingKind::UndeclaredAuth => Severity::Info,
        }
    }

    /// What follows from what the contract says and what is checked; `None` where both agree.
    pub(crate) fn of(security: &Security, checks: &[&CredentialCheck]) -> Option<FindingKind> {
        let kept = |alternatives: &[Vec<Scheme>]| {
            let checked = |scheme: &Scheme| checks.iter().any(|check| satisfies(check, &scheme.kind));
            alternatives.iter().any(|schemes| schemes.iter().all(checked))
        };
        match (security, checks.is_empty()) {
            (Security::Silent, true) => Some(FindingKind::NoCredential),
            (Security::Public | Security::Optional(_), true) => Some(FindingKind::Public),
            (Security::Required(_), true) => Some(FindingKind::Unauthenticated),
            (Security::Silent, false) => None,
            (Security::Public, false) => Some(FindingKind::UndeclaredAuth),
            (Security::Optional(asked), false) => (!kept(asked)).then_some(FindingKind::UndeclaredAuth),
            (Security::Required(asked), false) => (!kept(asked)).then_some(FindingKind::SchemeMismatch),
        }
    }
}

// === impl RouteChecks ===

impl<'a> RouteChecks<'a> {
    pub(crate) fn new(route_id: &'a str, credentials: &'a Credentials) -> RouteChecks<'a> {
        let mut sets: BTreeMap<&'a [String], usize> = BTreeMap::new();
        let mut ordered: Vec<&'a [String]> = Vec::new();
        let mut set = |patterns: &'a [String]| {
            *sets.entry(patterns).or_insert_with(|| {
                ordered.push(patterns);
                ordered.len() - 1
            })
        };
        let placed = credentials.envoy.iter().flat_map(|place| &place.checks);
        for check in credentials.checks.iter().chain(placed).filter(|check| check.mandatory) {
            for patterns in [&check.include, &check.exclude] {
                if !patterns.is_empty() {
                    set(patterns);
                }
            }
        }
        let path = |place: &'a EnvoyRoute| (!place.path.is_empty()).then(|| std::slice::from_ref(&place.path));
        let mut places: Vec<Place<'a>> = credentials
            .envoy
            .iter()
            .map(|place| Place { envoy: Some(place), path: path(place).map(&mut set) })
            .collect();
        if places.is_empty() {
            places.push(Place { envoy: None, path: None });
        }
        let scopes = Scopes::new(&ordered).ok().map(RefCell::new);
        RouteChecks { route_id, stated: &credentials.checks, places, scopes, sets }
    }

    /// The findings of a route with a contract, one at most for each operation, in the order of the document.
    pub(crate) fn beside(&self, declared: &Declared) -> Vec<Finding> {
        declared.operations.iter().filter_map(|operation| self.operation(operation, declared)).collect()
    }

    /// The finding of a route without a contract; `why` says why it has none.
    pub(crate) fn alone(&self, why: &str) -> Option<Finding> {
        let candidates = |method| self.candidates(method, &Template::any(), &[], &Security::Silent);
        let worst =
            ["GET", "POST", "PUT", "PATCH", "DELETE"].into_iter().find_map(|method| worst(candidates(method)))?;
        let detail = format!(
            "{why}, and nothing checks a credential{}. Give the route a contract, or a check of credentials.",
            worst.place_and_example()
        );
        Some(self.finding("*", "*", worst.kind, detail, &worst.checks, &Security::Silent))
    }

    fn operation(&self, operation: &DeclaredOperation, declared: &Declared) -> Option<Finding> {
        let DeclaredOperation { method, path, template, security } = operation;
        let shadows = if self.sets.is_empty() { Vec::new() } else { template.preferred(&declared.templates) };
        let worst = worst(self.candidates(method, template, &shadows, security))?;
        let detail = detail(&worst, method, path, security);
        Some(self.finding(method, path, worst.kind, detail, &worst.checks, security))
    }

    fn finding(
        &self,
        method: &str,
        path: &str,
        kind: FindingKind,
        detail: String,
        checks: &[&CredentialCheck],
        security: &Security,
    ) -> Finding {
        Finding {
            severity: kind.severity(),
            kind,
            route_id: self.route_id.to_owned(),
            method: method.to_owned(),
            path: path.to_owned(),
            detail,
            checks: checks.iter().take(MAX_LISTED).map(|check| check.label()).collect(),
            declared: alternatives(security).iter().take(MAX_LISTED).map(|schemes| requirement(schemes)).collect(),
        }
    }

    /// What is found for each kind of path and each place.
    fn candidates(
        &self,
        method: &str,
        template: &Template,
        shadows: &[&Template],
        security: &Security,
    ) -> Vec<Candidate<'a>> {
        let everything = || vec![Matching { sets: Vec::new(), path: String::new() }];
        let (matchings, decided) = match &self.scopes {
            _ if self.sets.is_empty() => (everything(), true),
            Some(scopes) => match scopes.borrow_mut().of(template, shadows) {
                Ok(found) => (found, true),
                Err(_) => (everything(), false),
            },
            None => (everything(), false),
        };
        let mut candidates = Vec::new();
        let several = matchings.len() > 1;
        for Matching { sets, path } in matchings {
            // Where patterns cannot be decided, a check that has some is none, and every place may have the path.
            let matches = |index: usize| sets.get(index).copied();
            for place in &self.places {
                let here = place.envoy.is_none_or(|envoy| is_of(&envoy.methods, method));
                if !here || place.path.is_some_and(|index| matches(index) == Some(false)) {
                    continue;
                }
                let all = self.stated.iter().chain(place.envoy.into_iter().flat_map(|envoy| &envoy.checks));
                let checks: Vec<&'a CredentialCheck> =
                    all.filter(|check| self.applies(check, method, &matches)).collect();
                if let Some(kind) = FindingKind::of(security, &checks) {
                    let example = (several && decided).then(|| path.clone());
                    candidates.push(Candidate { kind, place: place.envoy, checks, example, undecided: !decided });
                }
            }
        }
        candidates
    }

    fn applies(&self, check: &CredentialCheck, method: &str, matches: &impl Fn(usize) -> Option<bool>) -> bool {
        let set = |patterns: &Vec<String>| self.sets.get(patterns.as_slice()).and_then(|index| matches(*index));
        check.mandatory
            && !check.kinds.is_empty()
            && is_of(&check.methods, method)
            && (check.include.is_empty() || set(&check.include) == Some(true))
            && (check.exclude.is_empty() || set(&check.exclude) == Some(false))
    }
}

fn is_of(methods: &[String], method: &str) -> bool {
    methods.is_empty() || methods.iter().any(|known| known == method)
}

/// The gravest; of those the first.
fn worst(candidates: Vec<Candidate<'_>>) -> Option<Candidate<'_>> {
    candidates.into_iter().reduce(|one, other| if other.kind > one.kind { other } else { one })
}

// === impl Candidate ===

impl Candidate<'_> {
    fn place_and_example(&self) -> String {
        let place = self.place.map(|place| format!(" in {}", place.label())).unwrap_or_default();
        let example = self.example.as_ref().map(|path| format!(", for example on `{path}`")).unwrap_or_default();
        let undecided = if self.undecided {
            " (patterns of the route's checks are too complex to be compared with its paths, and count as no check)"
        } else {
            ""
        };
        format!("{place}{example}{undecided}")
    }
}

fn detail(found: &Candidate<'_>, method: &str, path: &str, security: &Security) -> String {
    let place = found.place_and_example();
    let asked = alternatives(security).iter().take(MAX_LISTED).map(|schemes| requirement(schemes)).collect::<Vec<_>>();
    let asked = asked.join(" or ");
    let checks = found.checks.iter().take(MAX_LISTED).map(|check| check.label()).collect::<Vec<_>>().join(", ");
    match (found.kind, security) {
        (FindingKind::Unauthenticated, _) => format!(
            "The contract asks for {asked}, and nothing checks a credential for {method} {path}{place}. Add a check of it, or \
             declare `security: []` if the operation is meant to be public."
        ),
        (FindingKind::SchemeMismatch, _) => format!(
            "The contract asks for {asked} for {method} {path}, and what is checked{place} is {checks}. Correct the contract or the \
             check: callers that follow the contract are refused, or one of several credentials is not checked."
        ),
        (FindingKind::NoCredential, _) => format!(
            "Nothing checks a credential for {method} {path}{place}, and the contract does not say whether one is needed. Declare \
             `security`, and add a check if it asks for a credential."
        ),
        (FindingKind::Public, Security::Optional(_)) => format!(
            "Nothing checks a credential for {method} {path}{place}. The contract makes {asked} optional: the backend has to check \
             it where it is sent."
        ),
        (FindingKind::Public, _) => {
            format!(
                "Nothing checks a credential for {method} {path}{place}, as the contract declares. Nothing to do if it is meant so."
            )
        }
        (FindingKind::UndeclaredAuth, _) => format!(
            "The contract lets callers without a credential use {method} {path}, and {checks} refuses them{place}. Declare the \
             credential, or exclude the path from the check."
        ),
    }
}

fn alternatives(security: &Security) -> &[Vec<Scheme>] {
    match security {
        Security::Required(asked) | Security::Optional(asked) => asked,
        Security::Silent | Security::Public => &[],
    }
}

fn requirement(schemes: &[Scheme]) -> String {
    schemes.iter().map(Scheme::label).collect::<Vec<_>>().join(" and ")
}
