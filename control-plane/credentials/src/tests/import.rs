//! Imports of configurations, and what becomes of routes.

use serde_json::{Value, json};

use crate::envoy::{self, Imported};
use crate::{RouteAction, plan, summary};

const GATEWAY: &str = include_str!("../../tests/data/gateway.yaml");
const MUTUAL_TLS: &str = include_str!("../../tests/data/mutual-tls.yaml");

fn imported(text: &str) -> Imported {
    envoy::read(text.as_bytes(), None).unwrap()
}

/// A line for each place of each route, with what is checked there.
fn shown(imported: &Imported) -> Vec<String> {
    let mut lines = Vec::new();
    for route in &imported.routes {
        for place in &route.places {
            let checks: Vec<String> = place
                .checks
                .iter()
                .map(|check| {
                    let kinds: Vec<_> = check.kinds.iter().map(|kind| serde_json::to_value(kind).unwrap()).collect();
                    let kinds: Vec<&str> = kinds.iter().map(|kind| kind.as_str().unwrap()).collect();
                    let mut text = format!("{} {}", check.checked_by, kinds.join("|"));
                    for (sign, list) in
                        [("@", &check.carriers), ("=", &check.methods), ("+", &check.include), ("-", &check.exclude)]
                    {
                        if !list.is_empty() {
                            text.push_str(&format!(" {sign}{}", list.join(",")));
                        }
                    }
                    text
                })
                .collect();
            let at = format!("{}/{}", place.listener, place.virtual_hosts.join("+"));
            lines.push(format!("{} at {at} {}: {}", route.name, place.path, checks.join("; ")));
        }
    }
    lines
}

#[test]
fn a_gateway_is_read() {
    let imported = imported(GATEWAY);
    let own = "@header:authorization,query:access_token";
    let both = "@header:authorization,header:x-partner-token,query:access_token";
    let but_options = "=GET,PUT,POST,DELETE,HEAD,PATCH,TRACE";
    let key = "envoy.filters.http.api_key_auth api_key";
    let basic = "envoy.filters.http.basic_auth basic @header:authorization";
    let expected = [
        format!("admin at tokens/shop ^/admin(?:/|$): jwt jwt {own} {but_options}"),
        format!("again at tokens/rest ^/again: jwt jwt {both} {but_options}"),
        "asked at services/services ^/asked: ext_authz external".to_owned(),
        "closed at services/services ^/closed: rbac client_certificate +^(?:/closed/[0-9]+)$".to_owned(),
        "docs at tokens/shop ^(?:/docs(/.*)?)$: ".to_owned(),
        format!("keyed at keys/keys ^/keyed: {key} @header:x-api-key"),
        // A GET without a token passes; the rule of all tokens is behind it.
        format!("orders at tokens/shop ^/orders: jwt jwt {both} =PUT,POST,DELETE,HEAD,PATCH,TRACE -^/orders/health$"),
        "orders at tokens/rest ^/internal/orders: ".to_owned(),
        format!("other-people at keys/keys ^/other-people: {basic}"),
        "peers at services/services ^/peers: rbac client_certificate =GET -^/peers/open; rbac client_certificate =PUT,POST,DELETE,OPTIONS,HEAD,PATCH,TRACE".to_owned(),
        format!("people at keys/keys ^/people: {basic}"),
        "portal at login/portal : envoy.filters.http.oauth2 oidc @cookie:BearerToken =GET,PUT,POST,DELETE,HEAD,PATCH,TRACE -^/public,^/healthz$".to_owned(),
        format!("query-keyed at keys/keys ^/query: {key} @query:key"),
        "shop-version at tokens/shop ^/version$: ".to_owned(),
        format!("split at keys/keys ^/split: {key} @header:x-api-key"),
        "split at keys/keys ^/split: ".to_owned(),
        "unasked at services/services ^/unasked: ".to_owned(),
    ];
    assert_eq!(shown(&imported), expected);
    assert_eq!(imported.listeners, ["tokens", "keys", "login", "services"]);
    let orders = imported.routes.iter().find(|route| route.name == "orders").unwrap();
    assert_eq!(
        (&orders.hosts[..], &orders.paths[..]),
        (&["*".to_owned()][..], &["/internal/orders".to_owned(), "/orders".to_owned()][..])
    );
    let admin = imported.routes.iter().find(|route| route.name == "admin").unwrap();
    assert_eq!((&admin.hosts[..], &admin.paths[..]), (&["shop.example".to_owned()][..], &["/admin".to_owned()][..]));
    let warnings: Vec<String> = imported.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 2, "{warnings:#?}");
    let http = "/filter_chains/0/filters/0/typed_config";
    assert!(
        warnings[0].starts_with(&format!(
            "/static_resources/listeners/0{http}/route_config/virtual_hosts/0/routes/4: the route has no name"
        )),
        "{}",
        warnings[0]
    );
    assert!(warnings[0].contains("`shop-version`"));
    assert!(warnings[1].starts_with(&format!("/static_resources/listeners/1{http}/http_filters/0: filter `envoy.filters.http.health_check` stands in front")), "{}", warnings[1]);
}

#[test]
fn one_listener_is_read_alone() {
    let imported = envoy::read(GATEWAY.as_bytes(), Some("login")).unwrap();
    assert_eq!((imported.routes.len(), &imported.listeners[..]), (1, &["login".to_owned()][..]));
    let error = envoy::read(GATEWAY.as_bytes(), Some("logn")).unwrap_err().to_string();
    assert_eq!(error, "there is no listener `logn`; the file has `tokens`, `keys`, `login`, `services`");
}

#[test]
fn client_certificates_count_where_they_are_verified() {
    let imported = imported(MUTUAL_TLS);
    let expected = [
        "any at mesh/any : ".to_owned(),
        "mesh at mesh/mesh : tls client_certificate".to_owned(),
        "mesh at sds/mesh : tls client_certificate".to_owned(),
        "mesh at sds/mesh : ".to_owned(),
    ];
    assert_eq!(shown(&imported), expected);
    assert_eq!(imported.warnings.len(), 1, "{:?}", imported.warnings);
    assert!(imported.warnings[0].message.contains("any is accepted"));
}

#[test]
fn no_secret_is_kept_or_shown() {
    let imported = imported(GATEWAY);
    let plan = plan(&imported, &[]);
    let said = format!("{imported:?}{plan:?}{}", summary(&imported, &plan, false));
    assert!(GATEWAY.contains("SECRET") && GATEWAY.contains("U0VDUkVU"));
    assert!(!said.contains("SECRET") && !said.contains("U0VDUkVU"), "{said}");
}

/// A listener with one route and these filters.
fn listener(filters: Value, route: Value) -> Value {
    let mut filters = filters;
    filters.as_array_mut().unwrap().push(json!({"name": "router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}));
    let manager = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "route_config": {"virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [route]}]},
        "http_filters": filters,
    });
    json!({"name": "l", "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}]})
}

fn filter(kind: &str, config: Value) -> Value {
    let mut typed = config;
    typed["@type"] = json!(format!("type.googleapis.com/envoy.extensions.filters.http.{kind}"));
    json!({"name": "f", "typed_config": typed})
}

/// What is checked on the route, and the warnings.
fn checked(filter: Value, route: Value) -> (String, Vec<String>) {
    let imported = imported(&listener(json!([filter]), route).to_string());
    let (_, checks) = shown(&imported)[0]
        .clone()
        .split_once(": ")
        .map(|(place, checks)| (place.to_owned(), checks.to_owned()))
        .unwrap();
    (checks, imported.warnings.iter().map(ToString::to_string).collect())
}

fn plain() -> Value {
    json!({"name": "r", "match": {"prefix": "/"}, "direct_response": {"status": 200}})
}

#[test]
fn requirements_of_tokens() {
    let jwt = |requires: Value| {
        let config = json!({"providers": {"a": {"from_cookies": ["t"]}, "b": {}}, "rules": [{"match": {"prefix": "/"}, "requires": requires}]});
        checked(filter("jwt_authn.v3.JwtAuthentication", config), plain())
    };
    let any = |list: Value| json!({"requires_any": {"requirements": list}});
    let all = |list: Value| json!({"requires_all": {"requirements": list}});
    let a = || json!({"provider_name": "a"});
    for (requires, expected) in [
        (a(), "f jwt @cookie:t"),
        (json!({"providerAndAudiences": {"providerName": "a", "audiences": ["x"]}}), "f jwt @cookie:t"),
        (any(json!([a(), {"provider_name": "b"}])), "f jwt @cookie:t,header:authorization,query:access_token"),
        (any(json!([a(), {"allow_missing": {}}])), ""),
        (any(json!([a(), {"allow_missing_or_failed": {}}])), ""),
        (all(json!([a(), {"allow_missing": {}}])), "f jwt @cookie:t"),
        (all(json!([{"allow_missing": {}}, {"allow_missing_or_failed": {}}])), ""),
        (all(json!([any(json!([a(), {"allow_missing": {}}])), a()])), "f jwt @cookie:t"),
        (json!({"allow_missing": {}}), ""),
        (json!({"extract_only_without_validation": {}}), ""),
        (json!({}), ""),
    ] {
        assert_eq!(jwt(requires.clone()), (expected.to_owned(), vec![]), "{requires}");
    }
    for (wrong, pointer) in [
        (json!({"provider_name": "gone"}), "/requires/provider_name"),
        (json!({"provider_name": 1}), "/requires/provider_name"),
        (json!({"later": {}}), "/requires/later"),
        (json!([]), "/requires"),
        (any(json!({})), "/requires/requires_any/requirements"),
        (json!({"provider_name": "a", "allow_missing": {}}), "/requires"),
    ] {
        let (checks, warnings) = jwt(wrong.clone());
        assert_eq!(checks, "", "{wrong}");
        let rule = "/filter_chains/0/filters/0/typed_config/http_filters/0/typed_config/rules/0";
        assert!(warnings.iter().any(|warning| warning.starts_with(&format!("{rule}{pointer}: "))), "{warnings:?}");
    }
}

#[test]
fn filters_that_do_not_decide_are_no_check() {
    let service = || json!({"grpc_service": {}});
    let authz = |more: Value| {
        let mut config = service();
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        checked(filter("ext_authz.v3.ExtAuthz", config), plain()).0
    };
    assert_eq!(authz(json!({})), "f external");
    assert_eq!(authz(json!({"failure_mode_allow": true})), "f external");
    let half = json!({"filter_enabled": {"default_value": {"numerator": 50}}});
    assert_eq!(authz(half.clone()), "");
    assert_eq!(
        authz(json!({"filter_enabled": {"default_value": {"numerator": 100, "denominator": "HUNDRED"}}})),
        "f external"
    );
    let mut denied = half;
    denied["deny_at_disable"] = json!({"default_value": true});
    assert_eq!(authz(denied), "f external");
    for off in [
        json!({"shadow_mode": true}),
        json!({"filter_enabled_metadata": {"filter": "x"}}),
        json!({"shadow_mode": "no"}),
    ] {
        assert_eq!(authz(off), "");
    }
    assert_eq!(checked(filter("ext_authz.v3.ExtAuthz", json!({})), plain()).0, "");
    let missing = checked(filter("basic_auth.v3.BasicAuth", json!({"users": {}, "allow_missing": true})), plain());
    assert!(missing.0.is_empty() && missing.1[0].contains("allow_missing"), "{missing:?}");
    let passed = json!({"config": {"pass_through_matcher": [{"name": "authorization", "present_match": true}]}});
    let (checks, warnings) = checked(filter("oauth2.v3.OAuth2", passed), plain());
    assert!(checks.is_empty() && warnings[0].contains("callers choose their headers"), "{warnings:?}");
    assert_eq!(checked(filter("oauth2.v3.OAuth2", json!({"config": {}})), plain()).0, "f oidc @cookie:BearerToken");
    assert_eq!(checked(filter("oauth2.v3.OAuth2", json!({})), plain()).0, "");
    // A filter of a later release may have fields that change what it means.
    let (checks, warnings) = checked(filter("basic_auth.v3.BasicAuth", json!({"skip_when": {}})), plain());
    assert!(checks.is_empty() && warnings[0].contains("skip_when: the field is not known"), "{warnings:?}");
    for kind in ["lua.v3.Lua", "ext_proc.v3.ExternalProcessor", "composite.v3.Composite", "wasm.v3.Wasm"] {
        let (checks, warnings) = checked(filter(kind, json!({})), plain());
        assert!(checks.is_empty() && warnings[0].contains("counts as no check"), "{warnings:?}");
    }
    let matched = json!({"name": "f", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.common.matching.v3.ExtensionWithMatcher"}});
    let (checks, warnings) = checked(matched, plain());
    assert!(checks.is_empty() && warnings[0].contains("ExtensionWithMatcher"), "{warnings:?}");
    let discovered = json!({"name": "f", "config_discovery": {"type_urls": ["x"]}});
    let (checks, warnings) = checked(discovered, plain());
    assert!(checks.is_empty() && warnings[0].contains("ECDS"), "{warnings:?}");
    let mut off = filter("basic_auth.v3.BasicAuth", json!({}));
    off["disabled"] = json!(true);
    assert_eq!(checked(off.clone(), plain()).0, "");
    off["disabled"] = json!("maybe");
    assert_eq!(checked(off, plain()).0, "");
}

#[test]
fn the_most_specific_configuration_of_a_route_decides() {
    let basic = || filter("basic_auth.v3.BasicAuth", json!({}));
    let with = |config: Value| {
        let mut route = plain();
        route["typed_per_filter_config"] = config;
        checked(basic(), route)
    };
    let disabled = json!({"@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig", "disabled": true});
    assert_eq!(with(json!({"f": disabled})).0, "");
    assert_eq!(with(json!({"other": disabled})).0, "f basic @header:authorization");
    let users = json!({"@type": "x/envoy.extensions.filters.http.basic_auth.v3.BasicAuthPerRoute", "users": {}});
    assert_eq!(with(json!({"f": users})).0, "f basic @header:authorization");
    for wrong in [
        json!({"f": {}}),
        json!({"f": 1}),
        json!([]),
        json!({"f": {"@type": "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBACPerRoute"}}),
        json!({"f": {"@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig", "disabled": "x"}}),
    ] {
        assert_eq!(with(wrong.clone()).0, "", "{wrong}");
    }
    // A virtual host switches off, its route on again; a cluster off again.
    let mut document = listener(json!([basic()]), plain());
    let host = "/filter_chains/0/filters/0/typed_config/route_config/virtual_hosts/0";
    document.pointer_mut(host).unwrap()["typed_per_filter_config"] = json!({"f": disabled});
    assert_eq!(shown(&imported(&document.to_string())), ["r at l/v : "]);
    document.pointer_mut(&format!("{host}/routes/0")).unwrap()["typed_per_filter_config"] = json!({"f": users});
    assert_eq!(shown(&imported(&document.to_string())), ["r at l/v : f basic @header:authorization"]);
    document.pointer_mut(&format!("{host}/routes/0")).unwrap()["route"] = json!({"weighted_clusters": {"clusters": [{"name": "a"}, {"name": "b", "typed_per_filter_config": {"f": disabled}}]}});
    assert_eq!(shown(&imported(&document.to_string())), ["r at l/v : f basic @header:authorization", "r at l/v : "]);
    let config = "/filter_chains/0/filters/0/typed_config/route_config";
    let mut document = listener(json!([basic()]), plain());
    document.pointer_mut(config).unwrap()["typed_per_filter_config"] = json!({"f": disabled});
    assert_eq!(shown(&imported(&document.to_string())), ["r at l/v : "]);
}

#[test]
fn dumps_and_resources_are_read() {
    let any = |kind: &str, value: &Value| {
        let mut any = value.clone();
        any["@type"] = json!(format!("type.googleapis.com/{kind}"));
        any
    };
    let mut named = listener(json!([{"name": "f", "config_discovery": {}}]), plain());
    let manager = named.pointer_mut("/filter_chains/0/filters/0/typed_config").unwrap();
    let routes = manager.as_object_mut().unwrap().remove("route_config").unwrap();
    manager["rds"] = json!({"route_config_name": "main"});
    let mut routes = any("envoy.config.route.v3.RouteConfiguration", &routes);
    routes["name"] = json!("main");
    let basic = filter("basic_auth.v3.BasicAuth", json!({}));
    let ecds =
        any("envoy.config.core.v3.TypedExtensionConfig", &json!({"name": "f", "typed_config": basic["typed_config"]}));
    let listener_of = any("envoy.config.listener.v3.Listener", &named);
    let dump = json!({"configs": [
        {"@type": "type.googleapis.com/envoy.admin.v3.BootstrapConfigDump", "bootstrap": {"static_resources": {"listeners": []}}},
        {"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump"},
        {"@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump", "dynamic_listeners": [
            {"name": "l", "active_state": {"listener": listener_of}},
            {"name": "warming", "warming_state": {"listener": listener_of}}]},
        {"@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump", "dynamic_route_configs": [{"route_config": routes}]},
        {"@type": "type.googleapis.com/envoy.admin.v3.EcdsConfigDump", "ecds_filters": [{"ecds_filter": ecds}]},
    ]});
    let found = imported(&dump.to_string());
    assert_eq!(shown(&found), ["r at l/v : f basic @header:authorization"]);
    assert_eq!(found.warnings.len(), 1, "{:?}", found.warnings);
    let resources = json!({"version_info": "1", "resources": [listener_of, routes, ecds]});
    assert_eq!(shown(&imported(&resources.to_string())), ["r at l/v : f basic @header:authorization"]);
    let asked = json!({"configs": [
        {"@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump.DynamicListener", "name": "l", "active_state": {"listener": listener_of}},
        {"@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump.StaticRouteConfig", "route_config": routes},
    ]});
    assert_eq!(shown(&imported(&asked.to_string())), ["r at l/v : "]);
    // Without the routes there is a warning.
    let alone = imported(&named.to_string());
    assert!(alone.routes.is_empty() && alone.warnings.iter().any(|warning| warning.message.contains("config_dump")));
    for (wrong, what) in [
        (json!({}), "no configuration of Envoy"),
        (json!([]), "no configuration of Envoy"),
        (json!({"virtual_hosts": []}), "a route configuration alone"),
    ] {
        let error = envoy::read(wrong.to_string().as_bytes(), None).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    named["traffic_direction"] = json!("OUTBOUND");
    let outbound = imported(&named.to_string());
    assert!(outbound.listeners.is_empty() && outbound.warnings[0].message.contains("--listener"));
    assert_eq!(envoy::read(named.to_string().as_bytes(), Some("l")).unwrap().listeners, ["l"]);
}

#[test]
fn a_second_import_changes_what_differs_alone() {
    let first = imported(GATEWAY);
    let existing = json!({"id": "mine", "envoy_route": "keyed", "hosts": ["a.example"], "credentials": {"checks": [{"kinds": ["biscuit"]}], "envoy": []}});
    let made = plan(&first, std::slice::from_ref(&existing));
    let created = made.changes.iter().filter(|change| change.action == RouteAction::Create).count();
    assert_eq!((created, made.changes.len(), made.unchanged), (14, 15, 0));
    let mine = made.changes.iter().find(|change| change.id == "mine").unwrap();
    assert_eq!(mine.action, RouteAction::Change);
    assert_eq!(mine.differences[0].pointer, "/credentials/envoy/0");
    assert_eq!(mine.patch()[0]["path"], "/credentials/envoy");
    // As they are then.
    let mut routes: Vec<Value> = made
        .changes
        .iter()
        .filter(|change| change.action == RouteAction::Create)
        .map(|change| change.value.clone())
        .collect();
    let mut changed = existing;
    changed["credentials"]["envoy"] = mine.value.clone();
    routes.push(changed);
    let again = plan(&first, &routes);
    assert_eq!((again.changes.len(), again.unchanged), (0, 15));
    // One filter is taken away.
    let opened = GATEWAY.replacen("key_sources: [{query: key}]", "key_sources: [{query: other}]", 1);
    let second = plan(&imported(&opened), &routes);
    assert_eq!(second.changes.len(), 1);
    let change = &second.changes[0];
    assert_eq!((change.id.as_str(), change.action), ("query-keyed", RouteAction::Change));
    assert_eq!(change.differences.len(), 1);
    assert_eq!(change.differences[0].pointer, "/credentials/envoy/0/checks/0/carriers/0");
    // An import of one listener leaves what others have.
    let login = envoy::read(GATEWAY.as_bytes(), Some("login")).unwrap();
    assert_eq!(plan(&login, &routes).changes.len(), 0);
    // A route that its listener no longer has.
    let gone = GATEWAY.replacen("- name: keyed\n", "- name: renamed\n", 1);
    let third = plan(&imported(&gone), &routes);
    let ids: Vec<_> = third.changes.iter().map(|change| (change.id.as_str(), change.action)).collect();
    assert_eq!(ids, [("mine", RouteAction::Change), ("renamed", RouteAction::Create)]);
    assert_eq!(third.changes[0].value, json!([]));
}

#[test]
fn ids_are_made_of_names() {
    let document = |name: &str| {
        listener(json!([]), json!({"name": name, "match": {"prefix": "/"}, "direct_response": {}})).to_string()
    };
    for (name, taken, id) in
        [("a/b c", "", "a-b-c"), ("shop", "shop", "shop-2"), ("ü", "", "route"), ("_x_", "", "x"), ("..", "", "route")]
    {
        let existing = json!({"id": taken, "envoy_route": "other"});
        let made = plan(&imported(&document(name)), &[existing]);
        assert_eq!(made.changes[0].id, id, "{name}");
        assert_eq!(made.changes[0].value["envoy_route"], name);
    }
}

#[test]
fn own_listeners_are_read_without_a_warning_about_own_filters() {
    for text in [
        include_str!("../../../../envoy/standalone.yaml"),
        include_str!("../../../../envoy/ecds.yaml"),
        include_str!("../../../../envoy/separate-filters.yaml"),
    ] {
        let imported = imported(text);
        assert!(!imported.routes.is_empty());
        let about_filters = |warning: &&crate::envoy::ImportWarning| warning.pointer.contains("http_filters");
        assert_eq!(imported.warnings.iter().find(about_filters), None);
    }
}
