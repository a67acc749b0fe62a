//! Routes as one route configuration.
//!
//! Envoy picks a virtual host first, by the most specific domain, and then the first route that matches in it. So every
//! domain gets the routes of its own, longest prefix first, and after them those of each wider domain that covers it: a
//! route for any host keeps working on a host that some other route names.

use std::collections::{BTreeMap, BTreeSet};

use envoy_types::pb::envoy::config::route::v3::{
    DirectResponseAction, RouteAction, RouteMatch, route_action, route_match,
};
use envoy_types::pb::google::protobuf::{Any, Duration, UInt64Value};
use prost::{Message, Oneof};

use super::{NAME, RouteInput, clusters};
use crate::xds::set::Kind;

// The generated types hold maps as HashMap, whose order, and so the encoded bytes, differs from run to run. These are the
// same messages, with the fields used here and ordered maps. Source: envoy.config.route.v3, envoy.config.core.v3.

#[derive(Clone, PartialEq, Message)]
struct RouteConfiguration {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    virtual_hosts: Vec<VirtualHost>,
    #[prost(bool, tag = "14")]
    ignore_port_in_host_matching: bool,
}

#[derive(Clone, PartialEq, Message)]
struct VirtualHost {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, repeated, tag = "2")]
    domains: Vec<String>,
    #[prost(message, repeated, tag = "3")]
    routes: Vec<Route>,
    #[prost(message, optional, tag = "25")]
    request_body_buffer_limit: Option<UInt64Value>,
}

#[derive(Clone, PartialEq, Message)]
struct Route {
    #[prost(message, optional, tag = "1")]
    matches: Option<RouteMatch>,
    #[prost(oneof = "Action", tags = "2, 7")]
    action: Option<Action>,
    #[prost(message, optional, tag = "4")]
    metadata: Option<Metadata>,
    #[prost(string, tag = "14")]
    name: String,
}

#[derive(Clone, PartialEq, Oneof)]
enum Action {
    #[prost(message, tag = "2")]
    Route(Box<RouteAction>),
    #[prost(message, tag = "7")]
    DirectResponse(DirectResponseAction),
}

#[derive(Clone, PartialEq, Message)]
struct Metadata {
    #[prost(btree_map = "string, message", tag = "1")]
    filter_metadata: BTreeMap<String, Struct>,
}

#[derive(Clone, PartialEq, Message)]
struct Struct {
    #[prost(btree_map = "string, message", tag = "1")]
    fields: BTreeMap<String, Value>,
}

#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(oneof = "ValueKind", tags = "3")]
    kind: Option<ValueKind>,
}

#[derive(Clone, PartialEq, Oneof)]
enum ValueKind {
    #[prost(string, tag = "3")]
    Text(String),
}

/// The route configuration of a gateway whose connections hold `buffer_limit_bytes`, encoded.
///
/// # Errors
///
/// A path that does not begin with `/`, or a host that Envoy cannot match.
pub(super) fn route_configuration(routes: &[RouteInput], buffer_limit_bytes: u32) -> Result<Any, String> {
    // A filter that has seen enough lets go of the body, but one read from the connection can bring a whole connection's
    // limit at once. With less room than both, Envoy itself answers 413 to some of the bodies that are to pass.
    let request_limit = UInt64Value { value: 2 * u64::from(buffer_limit_bytes) };
    let mut domains: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for (index, route) in routes.iter().enumerate() {
        for host in hosts(route)? {
            let entries = domains.entry(host).or_default();
            for path in paths(route)? {
                entries.push((path, index));
            }
        }
    }
    for entries in domains.values_mut() {
        // Stable: routes with an equal prefix keep their listed order.
        entries.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
    }
    // Domains with the same routes become one virtual host.
    let mut hosts: BTreeMap<Vec<(&str, usize)>, Vec<String>> = BTreeMap::new();
    for domain in domains.keys() {
        let chain = covering(domain).into_iter().filter_map(|wider| domains.get(&wider)).flatten().copied();
        hosts.entry(unshadowed(chain)).or_default().push(domain.clone());
    }
    let mut virtual_hosts: Vec<VirtualHost> = hosts
        .into_iter()
        .map(|(entries, domains)| VirtualHost {
            name: domains.first().cloned().unwrap_or_default(),
            domains,
            routes: entries
                .into_iter()
                .filter_map(|(path, index)| Some(envoy_route(routes.get(index)?, path)))
                .collect(),
            request_body_buffer_limit: Some(request_limit),
        })
        .collect();
    virtual_hosts.sort_by(|a, b| a.name.cmp(&b.name));
    let configuration = RouteConfiguration { name: NAME.into(), virtual_hosts, ignore_port_in_host_matching: true };
    Ok(Any { type_url: Kind::Route.type_url().into(), value: configuration.encode_to_vec() })
}

/// A domain and all that cover it, most specific first: `a.b.c`, `*.b.c`, `*.c`, `*`.
fn covering(domain: &str) -> Vec<String> {
    let mut all = vec![domain.to_owned()];
    let mut rest = domain.strip_prefix("*.").unwrap_or(domain);
    while let Some((_, parent)) = rest.split_once('.') {
        all.push(format!("*.{parent}"));
        rest = parent;
    }
    if domain != "*" {
        all.push("*".into());
    }
    all
}

/// Leaves out what can never match, because the same prefix or `/` stands before it.
fn unshadowed<'a>(chain: impl Iterator<Item = (&'a str, usize)>) -> Vec<(&'a str, usize)> {
    let mut seen = BTreeSet::new();
    let mut open = true;
    let mut kept = Vec::new();
    for (path, index) in chain {
        if open && seen.insert(path) {
            kept.push((path, index));
            open = path != "/";
        }
    }
    kept
}

fn hosts(route: &RouteInput) -> Result<BTreeSet<String>, String> {
    if route.hosts.is_empty() {
        return Ok(BTreeSet::from(["*".to_owned()]));
    }
    route.hosts.iter().map(|host| host_domain(&route.id, host)).collect()
}

fn host_domain(id: &str, host: &str) -> Result<String, String> {
    let host = host.to_ascii_lowercase();
    let fixed = host.strip_prefix("*.").unwrap_or(&host);
    let known = fixed.bytes().all(|byte| byte.is_ascii_graphic() && !b"*/?#@,".contains(&byte));
    if host == "*" || (known && !fixed.is_empty()) {
        return Ok(host);
    }
    Err(format!("route {id:?}: {host:?} is no host; write a name, *.name for all below it, or * for any"))
}

fn paths(route: &RouteInput) -> Result<Vec<&str>, String> {
    if let Some(path) = route.paths.iter().find(|path| !path.starts_with('/')) {
        return Err(format!("route {:?}: path {path:?} does not begin with /", route.id));
    }
    if route.paths.is_empty() {
        return Ok(vec!["/"]);
    }
    Ok(route.paths.iter().map(String::as_str).collect())
}

fn envoy_route(route: &RouteInput, path: &str) -> Route {
    let fields = route
        .metadata
        .iter()
        .map(|(key, value)| (key.clone(), Value { kind: Some(ValueKind::Text(value.clone())) }))
        .collect();
    Route {
        matches: Some(RouteMatch {
            path_specifier: Some(route_match::PathSpecifier::Prefix(path.into())),
            ..RouteMatch::default()
        }),
        action: Some(action(route)),
        metadata: (!route.metadata.is_empty())
            .then(|| Metadata { filter_metadata: BTreeMap::from([(NAME.to_owned(), Struct { fields })]) }),
        name: route.envoy_route.clone(),
    }
}

fn action(route: &RouteInput) -> Action {
    let Some(backend) = &route.backend else {
        return Action::DirectResponse(DirectResponseAction { status: 503, ..DirectResponseAction::default() });
    };
    let millis = backend.timeout_millis;
    Action::Route(Box::new(RouteAction {
        cluster_specifier: Some(route_action::ClusterSpecifier::Cluster(clusters::name(backend))),
        timeout: Some(Duration {
            seconds: i64::try_from(millis / 1000).unwrap_or(i64::MAX),
            nanos: i32::try_from(millis % 1000 * 1_000_000).unwrap_or(0),
        }),
        ..RouteAction::default()
    }))
}
