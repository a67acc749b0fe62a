//! Findings: every severity, every combination of what a contract says and what is checked.

use serde_json::{Value, json};

use super::Entities;
use crate::{Counts, Finding, FindingKind, Severity, audit_routes, findings};

/// The schemes of the contracts here.
fn schemes() -> Value {
    json!({
        "token": {"type": "http", "scheme": "bearer"},
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "people": {"type": "http", "scheme": "basic"},
        "login": {"type": "oauth2", "flows": {}},
        "identity": {"type": "openIdConnect", "openIdConnectUrl": "https://x.example"},
        "peer": {"type": "mutualTLS"},
    })
}

/// A contract with `GET path` of this security; `None` leaves it out.
fn contract(version: &str, global: Option<Value>, operations: &[(&str, Option<Value>)]) -> Value {
    let mut document = json!({
        "openapi": version, "info": {"title": "t", "version": "1"}, "paths": {}, "components": {"securitySchemes": schemes()},
    });
    if let Some(global) = global {
        document["security"] = global;
    }
    for (path, security) in operations {
        let mut operation = json!({"responses": {"200": {"description": "ok"}}});
        if let Some(security) = security {
            operation["security"] = security.clone();
        }
        document["paths"][*path] = json!({"get": operation});
    }
    json!({"id": "c", "enabled": true, "spec": document.to_string(), "base_path": ""})
}

fn found(credentials: &Value, contract: Option<Value>) -> Vec<Finding> {
    let mut route =
        json!({"id": "r", "enabled": true, "name": "", "plugins": [], "metadata": {}, "credentials": credentials});
    if contract.is_some() {
        route["plugins"] = json!([{"plugin": "SvcApiContract", "enabled": true, "config": {"contract": "c"}}]);
    }
    let contracts: Vec<Value> = contract.into_iter().collect();
    findings(&Entities::default().with("routes", &[route]).with("api-contracts", &contracts))
}

fn kinds(credentials: &Value, contract: Option<Value>) -> Vec<(Severity, FindingKind)> {
    found(credentials, contract).into_iter().map(|finding| (finding.severity, finding.kind)).collect()
}

fn check(kind: &str) -> Value {
    json!({"checks": [{"kinds": [kind]}], "envoy": []})
}

const HIGH: (Severity, FindingKind) = (Severity::High, FindingKind::Unauthenticated);
const MEDIUM: (Severity, FindingKind) = (Severity::Medium, FindingKind::SchemeMismatch);
const LOW: (Severity, FindingKind) = (Severity::Low, FindingKind::NoCredential);
const PUBLIC: (Severity, FindingKind) = (Severity::Info, FindingKind::Public);
const UNDECLARED: (Severity, FindingKind) = (Severity::Info, FindingKind::UndeclaredAuth);

/// What is checked, what the contract says, and what is found.
type Row<'a> = (&'a Value, Option<Value>, Option<(Severity, FindingKind)>);

#[test]
fn what_a_contract_says_and_what_is_checked() {
    let (nothing, jwt, basic) = (json!({}), check("jwt"), check("basic"));
    let both = json!({"checks": [{"kinds": ["jwt"]}, {"kinds": ["api_key"]}]});
    let optional_key = json!({"checks": [{"kinds": ["api_key"], "mandatory": false}]});
    let token = || Some(json!([{"token": []}]));
    let or = || Some(json!([{"key": []}, {"token": []}]));
    let and = || Some(json!([{"key": [], "token": []}]));
    let optional = || Some(json!([{}, {"token": []}]));
    let table: [Row<'_>; 30] = [
        (&nothing, token(), Some(HIGH)),
        (&nothing, or(), Some(HIGH)),
        (&nothing, and(), Some(HIGH)),
        (&nothing, None, Some(LOW)),
        (&nothing, Some(json!([])), Some(PUBLIC)),
        (&nothing, Some(json!([{}])), Some(PUBLIC)),
        (&nothing, optional(), Some(PUBLIC)),
        (&optional_key, token(), Some(HIGH)),
        (&optional_key, Some(json!([])), Some(PUBLIC)),
        (&optional_key, None, Some(LOW)),
        (&jwt, token(), None),
        (&jwt, or(), None),
        (&jwt, and(), Some(MEDIUM)),
        (&jwt, None, None),
        (&jwt, Some(json!([])), Some(UNDECLARED)),
        (&jwt, Some(json!([{}])), Some(UNDECLARED)),
        (&jwt, optional(), None),
        (&basic, token(), Some(MEDIUM)),
        (&basic, or(), Some(MEDIUM)),
        (&basic, optional(), Some(UNDECLARED)),
        (&basic, Some(json!([{"people": []}])), None),
        (&both, and(), None),
        (&both, or(), None),
        (&both, Some(json!([{"peer": []}])), Some(MEDIUM)),
        (&both, Some(json!([{"peer": [], "key": []}, {"token": []}])), None),
        (&jwt, Some(json!([{"login": ["read"]}])), None),
        (&jwt, Some(json!([{"identity": []}])), None),
        (&jwt, Some(json!([{"gone": []}])), None),
        (&nothing, Some(json!([{"gone": []}])), Some(HIGH)),
        (&jwt, Some(json!("wrong")), None),
    ];
    for version in ["3.0.3", "3.1.0"] {
        for (credentials, security, expected) in &table {
            let expected: Vec<_> = expected.iter().copied().collect();
            // For the operation, and for the whole document.
            let own = contract(version, None, &[("/a", security.clone())]);
            assert_eq!(kinds(credentials, Some(own)), expected, "{credentials} {security:?}");
            let global = contract(version, security.clone(), &[("/a", None)]);
            assert_eq!(kinds(credentials, Some(global)), expected, "global {credentials} {security:?}");
        }
    }
    // What an operation says replaces what the document says.
    let replaced =
        contract("3.0.3", token(), &[("/a", Some(json!([]))), ("/b", None), ("/c", Some(json!([{"key": []}])))]);
    assert_eq!(kinds(&nothing, Some(replaced.clone())), [PUBLIC, HIGH, HIGH]);
    assert_eq!(kinds(&jwt, Some(replaced)), [UNDECLARED, MEDIUM]);
}

#[test]
fn each_kind_of_check_counts() {
    for (kind, scheme) in [
        ("api_key", "key"),
        ("jwt", "token"),
        ("oidc", "login"),
        ("session", "identity"),
        ("basic", "people"),
        ("biscuit", "token"),
        ("client_certificate", "peer"),
        ("external", "peer"),
        ("external", "key"),
    ] {
        let security = |name: &str| Some(contract("3.1.0", None, &[("/a", Some(json!([{name: []}])))]));
        assert_eq!(kinds(&check(kind), security(scheme)), [], "{kind}");
        let open = Some(contract("3.1.0", None, &[("/a", Some(json!([])))]));
        assert_eq!(kinds(&check(kind), open), [UNDECLARED], "{kind}");
    }
    for kind in ["hmac_signature", "http_signature"] {
        let asked = contract("3.1.0", None, &[("/a", Some(json!([{"token": []}])))]);
        assert_eq!(kinds(&check(kind), Some(asked)), [MEDIUM], "{kind}");
    }
}

#[test]
fn include_and_exclude_are_honoured() {
    let token = || Some(json!([{"token": []}]));
    let operations = [
        ("/api/users", token()),
        ("/api/users/{id}", token()),
        ("/api/users/me", token()),
        ("/health", Some(json!([]))),
    ];
    let with = |include: &[&str], exclude: &[&str]| {
        let credentials = json!({"checks": [{"kinds": ["jwt"], "include": include, "exclude": exclude}]});
        let found = found(&credentials, Some(contract("3.0.3", None, &operations)));
        found.iter().map(|finding| format!("{:?} {}", finding.kind, finding.path)).collect::<Vec<_>>()
    };
    assert_eq!(with(&[], &[]), ["UndeclaredAuth /health"]);
    assert_eq!(with(&["^/api/"], &[]), ["Public /health"]);
    assert_eq!(
        with(&["^/api/users$"], &[]),
        ["Unauthenticated /api/users/{id}", "Unauthenticated /api/users/me", "Public /health"]
    );
    // Another operation has what is excluded.
    assert_eq!(with(&["^/api/"], &["^/api/users/me$"]), ["Unauthenticated /api/users/me", "Public /health"]);
    assert_eq!(with(&["^/api/"], &["^/api/users/[0-9]+$"]), ["Unauthenticated /api/users/{id}", "Public /health"]);
    assert_eq!(with(&["^/api/users/[^/]+$", "^/api/users$"], &[]), ["Public /health"]);
    // Two checks that cover an operation together.
    let credentials = json!({"checks": [
        {"kinds": ["jwt"], "include": ["^/api/users/[0-9]"]},
        {"kinds": ["api_key"], "exclude": ["^/api/users/[0-9]"]},
    ]});
    let either = contract("3.0.3", None, &[("/api/users/{id}", Some(json!([{"token": []}, {"key": []}])))]);
    assert_eq!(kinds(&credentials, Some(either)), []);
    let one = contract("3.0.3", None, &[("/api/users/{id}", token())]);
    let found = found(&credentials, Some(one));
    assert_eq!((found.len(), found[0].kind), (1, FindingKind::SchemeMismatch));
    assert!(found[0].detail.contains("on `/api/users/a`"), "{}", found[0].detail);
}

#[test]
fn the_base_path_counts() {
    let credentials = json!({"checks": [{"kinds": ["jwt"], "include": ["^/v1/a$"]}]});
    let mut own = contract("3.0.3", Some(json!([{"token": []}])), &[("/a", None)]);
    assert_eq!(kinds(&credentials, Some(own.clone())), [HIGH]);
    own["base_path"] = json!("/v1/");
    assert_eq!(kinds(&credentials, Some(own.clone())), []);
    own["base_path"] = json!("");
    let mut document: Value = serde_json::from_str(own["spec"].as_str().unwrap()).unwrap();
    document["servers"] = json!([{"url": "https://x.example/{version}", "variables": {"version": {"default": "v1"}}}]);
    own["spec"] = json!(document.to_string());
    assert_eq!(kinds(&credentials, Some(own)), []);
}

#[test]
fn places_in_envoy_are_compared_one_by_one() {
    let jwt = json!({"kinds": ["jwt"], "checked_by": "envoy.filters.http.jwt_authn"});
    let place = |listener: &str, path: &str, checks: &[&Value]| json!({"listener": listener, "virtual_hosts": ["shop"], "path": path, "checks": checks});
    let asked = || Some(contract("3.0.3", Some(json!([{"token": []}])), &[("/api/a", None), ("/other", None)]));
    let all = json!({"envoy": [place("outer", "", &[&jwt])]});
    assert_eq!(kinds(&all, asked()), []);
    let one_open = json!({"envoy": [place("outer", "", &[&jwt]), place("inner", "", &[])]});
    let found = found(&one_open, asked());
    assert_eq!(found.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [FindingKind::Unauthenticated; 2]);
    assert!(found[0].detail.contains("GET /api/a in virtual host `shop` of listener `inner`"), "{}", found[0].detail);
    // What does not get there is not checked there.
    let apart = json!({"envoy": [place("outer", "^/api", &[&jwt])]});
    assert_eq!(kinds(&apart, asked()), []);
    let open = json!({"envoy": [place("outer", "^/other", &[]), place("outer", "^/api", &[&jwt])]});
    assert_eq!(kinds(&open, asked()), [HIGH]);
    let mut of_methods = json!({"envoy": [place("outer", "", &[])]});
    of_methods["envoy"][0]["methods"] = json!(["POST"]);
    assert_eq!(kinds(&of_methods, asked()), []);
    // What the owner states holds everywhere.
    let stated = json!({"checks": [{"kinds": ["jwt"]}], "envoy": [place("outer", "", &[])]});
    assert_eq!(kinds(&stated, asked()), []);
    let mut get = json!({"checks": [{"kinds": ["jwt"], "methods": ["POST"]}]});
    assert_eq!(kinds(&get, asked()), [HIGH, HIGH]);
    get["checks"][0]["methods"] = json!(["GET"]);
    assert_eq!(kinds(&get, asked()), []);
}

#[test]
fn a_route_without_a_contract_has_one_finding_at_most() {
    let found = found(&json!({}), None);
    let Finding { severity, kind, route_id, method, path, detail, .. } = &found[0];
    assert_eq!((found.len(), *severity, *kind, route_id.as_str()), (1, Severity::Low, FindingKind::NoCredential, "r"));
    assert_eq!((method.as_str(), path.as_str()), ("*", "*"));
    assert!(detail.contains("no contract") && detail.contains("Give the route"), "{detail}");
    assert_eq!(kinds(&check("jwt"), None), []);
    let partly = json!({"checks": [{"kinds": ["jwt"], "include": ["^/admin"]}]});
    assert_eq!(kinds(&partly, None), [LOW]);
    assert_eq!(
        kinds(&json!({"envoy": [{"listener": "l", "checks": [{"kinds": ["jwt"]}]}, {"listener": "m"}]}), None),
        [LOW]
    );
    let broken = |spec: &str| json!({"id": "c", "enabled": true, "spec": spec, "base_path": ""});
    for spec in ["", "{", "swagger: '2.0'", "openapi: 2.0.0", "a: [b"] {
        let found = super::audit::found(&json!({}), Some(broken(spec)));
        assert_eq!((found.len(), found[0].kind), (1, FindingKind::NoCredential), "{spec}");
        assert!(found[0].detail.contains("cannot be used"), "{}", found[0].detail);
    }
    let mut disabled = contract("3.0.3", Some(json!([{"token": []}])), &[("/a", None)]);
    disabled["enabled"] = json!(false);
    assert_eq!(kinds(&json!({}), Some(disabled)), [LOW]);
}

#[test]
fn the_contract_of_a_route_is_found_where_routes_name_it() {
    let asked = contract("3.0.3", Some(json!([{"token": []}])), &[("/a", None)]);
    let yaml =
        json!({"id": "y", "spec": "openapi: 3.1.0\npaths:\n  /y:\n    get:\n      security: []\n", "base_path": ""});
    let route = |id: &str, plugins: Value, metadata: Value| json!({"id": id, "name": "N", "plugins": plugins, "metadata": metadata, "credentials": {}});
    let routes = [
        route(
            "a",
            json!([{"plugin": "SvcApiContract", "config": {"contract": "c"}}]),
            json!({"svc-api-contract": "y"}),
        ),
        route("b", json!([]), json!({"svc-api-contract": "y"})),
        route(
            "c",
            json!([{"plugin": "SecuritySuitePreset", "config": {"api_contract": true, "api_contract_id": "c"}}]),
            json!({}),
        ),
        route("d", json!([{"plugin": "SecuritySuitePreset", "config": {"api_contract_id": "c"}}]), json!({})),
        route(
            "e",
            json!([{"plugin": "SvcApiContract", "enabled": false, "config": {"contract": "c"}}]),
            json!({"svc-api-contract": "y"}),
        ),
        route("f", json!([{"plugin": "SvcApiContract", "config": {}}]), json!({"svc-api-contract": "c"})),
        json!({"id": "off", "enabled": false}),
    ];
    let entities = Entities::default().with("routes", &routes).with("api-contracts", &[asked, yaml]);
    let audited = audit_routes(&entities, |_| true);
    let shown: Vec<_> = audited
        .iter()
        .map(|route| (route.route_id.as_str(), route.contract.as_deref(), route.findings[0].kind))
        .collect();
    let expected = [
        ("a", Some("c"), FindingKind::Unauthenticated),
        ("b", Some("y"), FindingKind::Public),
        ("c", Some("c"), FindingKind::Unauthenticated),
        ("d", None, FindingKind::NoCredential),
        ("e", Some("y"), FindingKind::Public),
        ("f", Some("c"), FindingKind::Unauthenticated),
    ];
    assert_eq!(shown, expected);
    assert_eq!(audit_routes(&entities, |id| id == "b").len(), 1);
    let all: Vec<Finding> = findings(&entities);
    assert_eq!(Counts::of(&all), Counts { high: 3, medium: 0, low: 1, info: 2 });
    assert_eq!(serde_json::to_value(Counts::of(&all)).unwrap(), json!({"high": 3, "medium": 0, "low": 1, "info": 2}));
}

#[test]
fn reports_get_what_they_show() {
    let credentials = json!({"checks": [{"kinds": ["api_key"], "checked_by": "portal", "mandatory": false, "include": ["^/a"]}],
        "envoy": [{"listener": "l", "virtual_hosts": ["v", "w"], "checks": [{"kinds": ["jwt"], "checked_by": "jwt"}]}]});
    let asked = contract("3.0.3", None, &[("/a", Some(json!([{"key": [], "people": []}, {"peer": []}])))]);
    let route = json!({"id": "r", "plugins": [], "metadata": {"svc-api-contract": "c"}, "credentials": credentials});
    let entities = Entities::default().with("routes", &[route]).with("api-contracts", &[asked]);
    let shown = serde_json::to_value(audit_routes(&entities, |_| true)).unwrap();
    let expected = json!([
        {"plugin": "portal", "label": "portal (API key)", "schemes": ["apiKey"], "include": ["^/a"], "exclude": [], "enforcing": false},
        {"plugin": "jwt", "label": "jwt (JWT) in virtual host `v` (and 1 more) of listener `l`",
         "schemes": ["bearer", "oauth2", "openIdConnect"], "include": [], "exclude": [], "enforcing": true},
    ]);
    assert_eq!(shown[0]["checks"], expected);
    let finding = &shown[0]["findings"][0];
    assert_eq!((&finding["severity"], &finding["kind"]), (&json!("medium"), &json!("scheme_mismatch")));
    assert_eq!(finding["declared"], json!(["key (apiKey) and people (basic)", "peer (mutualTLS)"]));
    assert_eq!(finding["checks"], json!(["jwt (JWT)"]));
    let detail = finding["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("The contract asks for key (apiKey) and people (basic) or peer (mutualTLS) for GET /a, "),
        "{detail}"
    );
}

#[test]
fn patterns_that_cannot_be_decided_hide_nothing() {
    let hard = ["[ab][^c]{14}d[^e]{14}f[^g]{13}h[^i]{12}j", "k[^l]{14}m", "n[^o]{15}p"];
    let credentials = json!({"checks": [{"kinds": ["jwt"], "exclude": hard}]});
    let found = found(&credentials, Some(contract("3.0.3", Some(json!([{"token": []}])), &[("/{a}", None)])));
    assert_eq!((found.len(), found[0].kind), (1, FindingKind::Unauthenticated));
    assert!(found[0].detail.contains("too complex"), "{}", found[0].detail);
    let wrong = json!({"checks": [{"kinds": ["jwt"], "include": ["("]}]});
    assert_eq!(kinds(&wrong, Some(contract("3.0.3", Some(json!([{"token": []}])), &[("/a", None)]))), [HIGH]);
}

#[test]
fn thousands_of_operations_are_compared() {
    let paths: Vec<String> = (0..3_000).map(|number| format!("/{{tenant}}/things/{number}/{{id}}")).collect();
    let operations: Vec<(&str, Option<Value>)> = paths.iter().map(|path| (path.as_str(), None)).collect();
    let all = contract("3.0.3", Some(json!([{"token": []}])), &operations);
    let credentials = json!({"checks": [{"kinds": ["jwt"], "exclude": ["^/[^/]+/things/7/", "/things/[0-9]+/x$"]}]});
    let found = found(&credentials, Some(all));
    assert_eq!(found.len(), 3_000);
    assert!(found.iter().all(|finding| finding.kind == FindingKind::Unauthenticated));
    assert!(found[8].detail.contains("for example on `/a/things/8/x`"), "{}", found[8].detail);
    assert!(!found[7].detail.contains("for example"), "{}", found[7].detail);
}
