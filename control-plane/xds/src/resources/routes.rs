//! Routes as one route configuration.
//!
//! What is in which virtual host, and in which order, is the business of `domains`.

use std::collections::BTreeMap;

use envoy_types::pb::envoy::config::route::v3::{
    DirectResponseAction, HeaderMatcher, RouteAction, RouteMatch, header_matcher, route_action, route_match,
};
use envoy_types::pb::envoy::r#type::matcher::v3::{StringMatcher, string_matcher::MatchPattern};
use envoy_types::pb::google::protobuf::{Any, Duration, UInt64Value};
use prost::{Message, Oneof};

use super::clusters;
use super::domains::{Domains, Entry};
use super::input::{NAME, RouteInput};
use crate::set::Kind;
use entities::host_pattern;

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

/// The domain of hosts that end with a dot.
pub(super) const DOTTED: &str = "*.";

/// What is wrong with the hosts and paths of a route.
pub(super) fn check(route: &RouteInput) -> Vec<String> {
    let hosts = route.hosts.iter().filter_map(|host| {
        let reason = host_pattern::problem(host)?;
        Some(format!("{host:?} is not a host: {reason}; write {}", host_pattern::EXPECTED))
    });
    let paths = route.paths.iter().filter(|path| !path.starts_with('/'));
    hosts.chain(paths.map(|path| format!("path {path:?} does not begin with /"))).collect()
}

/// The route configuration of a gateway that holds `request_buffer_bytes` of a request's body, encoded.
pub(super) fn route_configuration(routes: &[RouteInput], request_buffer_bytes: u64) -> Any {
    let request_limit = UInt64Value { value: request_buffer_bytes };
    let domains = Domains::of(routes);
    let hosts = domains.virtual_hosts().into_iter();
    let mut virtual_hosts: Vec<VirtualHost> = hosts
        .map(|(entries, domains)| VirtualHost {
            name: domains.first().cloned().unwrap_or_default(),
            domains,
            routes: entries.iter().filter_map(|entry| Some(envoy_route(routes.get(entry.route)?, entry))).collect(),
            request_body_buffer_limit: Some(request_limit),
        })
        .collect();
    if !virtual_hosts.is_empty() {
        virtual_hosts.push(dotted());
    }
    virtual_hosts.sort_by(|a, b| a.name.cmp(&b.name));
    let configuration = RouteConfiguration { name: NAME.into(), virtual_hosts, ignore_port_in_host_matching: true };
    Any { type_url: Kind::Route.type_url().into(), value: configuration.encode_to_vec() }
}

/// Answers hosts with a dot at their end with 400. The listener has taken away the one of an absolute name: what is left
/// was one of two, and a backend that takes away another would serve the site of a route that was not asked.
fn dotted() -> VirtualHost {
    let matches = Some(RouteMatch {
        path_specifier: Some(route_match::PathSpecifier::Prefix("/".to_owned())),
        ..RouteMatch::default()
    });
    let action = Action::DirectResponse(DirectResponseAction { status: 400, ..DirectResponseAction::default() });
    VirtualHost {
        name: DOTTED.to_owned(),
        domains: vec![DOTTED.to_owned()],
        routes: vec![Route { matches, action: Some(action), ..Route::default() }],
        request_body_buffer_limit: None,
    }
}

fn envoy_route(route: &RouteInput, entry: &Entry<'_>) -> Route {
    let fields = route
        .metadata
        .iter()
        .map(|(key, value)| (key.clone(), Value { kind: Some(ValueKind::Text(value.clone())) }))
        .collect();
    Route {
        matches: Some(RouteMatch {
            path_specifier: Some(route_match::PathSpecifier::Prefix(entry.path.into())),
            headers: entry.host_begins.map(host_begins).into_iter().collect(),
            ..RouteMatch::default()
        }),
        action: Some(action(route)),
        metadata: (!route.metadata.is_empty())
            .then(|| Metadata { filter_metadata: BTreeMap::from([(NAME.to_owned(), Struct { fields })]) }),
        name: route.envoy_route.clone(),
    }
}

/// Holds for requests whose host begins so.
fn host_begins(begin: &str) -> HeaderMatcher {
    let matcher = StringMatcher { match_pattern: Some(MatchPattern::Prefix(begin.to_owned())), ignore_case: true };
    HeaderMatcher {
        name: ":authority".into(),
        header_match_specifier: Some(header_matcher::HeaderMatchSpecifier::StringMatch(matcher)),
        ..HeaderMatcher::default()
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
