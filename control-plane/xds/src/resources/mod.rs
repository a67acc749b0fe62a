//! From a plain description of a gateway to Envoy's resources.
//!
//! [`build`] is pure and deterministic: equal input gives equal bytes, and so equal versions.

mod clusters;
mod domains;
mod filters;
mod listener;
mod routes;

use std::collections::{BTreeMap, BTreeSet};

use envoy_types::pb::envoy::config::core::v3::{
    Address, AggregatedConfigSource, ApiVersion, ConfigSource, SocketAddress, address, config_source, socket_address,
};
use envoy_types::pb::google::protobuf::Duration;

use super::set::{Kind, ResourceSet};
use entities::{Delivery, ListenerConfig};

/// The name of the route configuration, and the metadata namespace of routes.
pub const NAME: &str = "palisade";
/// The bundle of certificate authorities that backends are verified with where none is named.
pub const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// One gateway: a listener, its routes, and the filters in front of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gateway {
    /// Where it listens.
    pub listener: ListenerSettings,
    /// Its routes; their Envoy names must be unique.
    pub routes: Vec<RouteInput>,
    /// The filters, in the order in which requests meet them.
    pub filters: Vec<FilterInput>,
    /// The cluster of the bootstrap by which filters reach the control plane; `None` for a gateway without a node link.
    /// A snapshot whose link names another cluster is refused.
    pub control_plane_cluster: Option<String>,
    /// Another control plane owns listener, routes and clusters: only filters are served.
    pub ecds_only: bool,
}

/// Where and how a gateway listens.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerSettings {
    /// Name of the listener.
    pub name: String,
    /// IP address to bind, such as `0.0.0.0`.
    pub address: String,
    /// TCP port to bind; 0 lets the system choose.
    pub port: u16,
    /// File that gets every event that filters leave with a request, one line of JSON each; `None` writes none.
    pub access_log: Option<String>,
    /// The most bytes that Envoy holds for a connection in one direction, and so of a body for a filter. A request may
    /// hold twice as many for a moment, so that what is longer can pass once a filter has seen enough of it.
    pub buffer_limit_bytes: u32,
    /// The longest body of a request that filters hold, in bytes; what a connection may hold besides comes on top.
    pub largest_request_bytes: u64,
    /// How many proxies in front of this gateway append to `x-forwarded-for`; 0 trusts the peer's own address alone.
    pub xff_num_trusted_hops: u32,
    /// What it takes from callers, and for how long.
    pub http: ListenerConfig,
    /// Headers that clients may not send: they are taken from their requests.
    pub removed_headers: Vec<String>,
}

/// One route.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouteInput {
    /// Id of the route entity.
    pub id: String,
    /// The name that Envoy gives the route, by which filters find their chain (`xds.route_name`).
    pub envoy_route: String,
    /// Hosts: exact (`api.example.com`), by their end (`*.example.com`) or beginning (`api.*`), or any (`*`). Empty means
    /// any.
    pub hosts: Vec<String>,
    /// Path prefixes, each beginning with `/`. Empty means every path.
    pub paths: Vec<String>,
    /// Where requests go; without one they are answered with 503.
    pub backend: Option<BackendInput>,
    /// What the route tells filters: metadata in the namespace [`NAME`].
    pub metadata: BTreeMap<String, String>,
}

/// Where a route's requests go.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackendInput {
    /// IP address or DNS name.
    pub address: String,
    /// TCP port.
    pub port: u16,
    /// TLS to the backend; `None` speaks plain text.
    pub tls: Option<BackendTls>,
    /// The backend speaks HTTP/2.
    pub http2: bool,
    /// The most milliseconds that a response may take to begin and end; 0 for no limit.
    pub timeout_millis: u64,
}

/// TLS to a backend. Its certificate is always verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendTls {
    /// The name that is sent (SNI) and that the certificate must carry; empty takes the backend's address.
    pub server_name: String,
    /// File of the certificate authorities, as Envoy sees it.
    pub authorities: String,
}

/// One filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterInput {
    /// Its name (`preset`, `waf`, ...).
    pub name: String,
    /// Its .wasm file, as Envoy sees it.
    pub module_path: String,
    /// Its snapshot: an encoded `snapshot::Envelope`.
    pub snapshot: Vec<u8>,
}

/// What is wrong with a gateway's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildProblem {
    /// Id of the route entity that it lies in; `None` where it lies in no route.
    pub route: Option<String>,
    /// What is wrong, for the person who wrote it.
    pub message: String,
}

impl std::error::Error for BuildProblem {}

impl std::fmt::Display for BuildProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.route {
            Some(id) => write!(f, "route {id:?}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// Everything for which [`build`] would refuse a gateway, but for the filters' snapshots: the admission of entities asks
/// this of each group, so that what is stored can be served. It costs much less than to build.
#[must_use]
pub fn check(gateway: &Gateway) -> Vec<BuildProblem> {
    let mut problems = check_names(gateway);
    if gateway.ecds_only {
        return problems;
    }
    for route in &gateway.routes {
        let found = route.backend.as_ref().and_then(|backend| clusters::check(backend).err());
        let found = found.into_iter().chain(routes::check(route));
        problems.extend(found.map(|message| BuildProblem { route: Some(route.id.clone()), message }));
    }
    let listener = listener::check(&gateway.listener).err();
    problems.extend(listener.map(|message| BuildProblem { route: None, message }));
    problems
}

/// Builds the resources of a gateway.
///
/// # Errors
///
/// What is wrong with the input, for the person who wrote it: which route or filter, which field.
pub fn build(gateway: &Gateway) -> Result<ResourceSet, BuildProblem> {
    if let Some(problem) = check(gateway).into_iter().next() {
        return Err(problem);
    }
    let mut set = ResourceSet::new(if gateway.ecds_only { Delivery::Ecds } else { Delivery::Full });
    if !gateway.ecds_only {
        insert_own(&mut set, gateway);
    }
    for filter in &gateway.filters {
        let (version, config) = filters::extension(filter, gateway.control_plane_cluster.as_deref())
            .map_err(|message| BuildProblem { route: None, message })?;
        set.insert_message(Kind::Extension, config.name.clone(), &config);
        set.note_snapshot(filter.name.clone(), version);
    }
    Ok(set)
}

/// What only a gateway has whose listener is ours.
fn insert_own(set: &mut ResourceSet, gateway: &Gateway) {
    for backend in gateway.routes.iter().filter_map(|route| route.backend.as_ref()) {
        let cluster = clusters::cluster(backend);
        set.insert_message(Kind::Cluster, cluster.name.clone(), &cluster);
    }
    let listener = listener::listener(&gateway.listener, &gateway.filters);
    set.insert_message(Kind::Listener, listener.name.clone(), &listener);
    let request_buffer = request_buffer_bytes(&gateway.listener);
    set.insert(Kind::Route, NAME, routes::route_configuration(&gateway.routes, request_buffer));
}

/// How many bytes of one request's body may be held. A filter that has seen enough releases the body, but one read from
/// the connection can bring a whole connection's limit at once. With less room than both, Envoy itself answers 413 to some
/// of the bodies that are to pass.
fn request_buffer_bytes(listener: &ListenerSettings) -> u64 {
    let connection = u64::from(listener.buffer_limit_bytes);
    listener.largest_request_bytes.max(connection).saturating_add(connection)
}

fn check_names(gateway: &Gateway) -> Vec<BuildProblem> {
    let mut problems = Vec::new();
    let mut names = BTreeSet::new();
    for route in &gateway.routes {
        let name = &route.envoy_route;
        let message = if name.is_empty() {
            "envoy_route is empty; filters find a route's chain by this name".to_owned()
        } else if !names.insert(name.as_str()) {
            format!("another route already has envoy_route {name:?}; give each its own, filters find their chain by it")
        } else {
            continue;
        };
        problems.push(BuildProblem { route: Some(route.id.clone()), message });
    }
    let mut names = BTreeSet::new();
    for filter in &gateway.filters {
        let name = &filter.name;
        let message = if name.is_empty() || !names.insert(name.as_str()) {
            format!("filter {name:?}: each filter needs a unique name")
        } else if filter.module_path.is_empty() {
            format!("filter {name:?}: module_path is empty; name the .wasm file that Envoy is to load")
        } else {
            continue;
        };
        problems.push(BuildProblem { route: None, message });
    }
    problems
}

// === impl ListenerSettings ===

impl Default for ListenerSettings {
    /// Every address, port 8080, 1 MiB of buffer, no event file, no trusted hop.
    fn default() -> Self {
        Self {
            name: NAME.into(),
            address: "0.0.0.0".into(),
            port: 8080,
            access_log: None,
            buffer_limit_bytes: 1_048_576,
            largest_request_bytes: 0,
            xff_num_trusted_hops: 0,
            http: ListenerConfig::default(),
            removed_headers: Vec::new(),
        }
    }
}

// === impl BackendTls ===

impl Default for BackendTls {
    /// The backend's own address as its name, verified by the system's authorities.
    fn default() -> Self {
        Self { server_name: String::new(), authorities: SYSTEM_AUTHORITIES.into() }
    }
}

/// A TCP address.
fn socket_address(host: &str, port: u16) -> Address {
    Address {
        address: Some(address::Address::SocketAddress(SocketAddress {
            address: host.into(),
            port_specifier: Some(socket_address::PortSpecifier::PortValue(u32::from(port))),
            ..SocketAddress::default()
        })),
    }
}

/// "Ask the ADS stream, and wait as long as it takes": a listener must not open before its filters and routes are there.
fn from_ads() -> ConfigSource {
    ConfigSource {
        resource_api_version: ApiVersion::V3.into(),
        initial_fetch_timeout: Some(Duration::default()),
        config_source_specifier: Some(config_source::ConfigSourceSpecifier::Ads(AggregatedConfigSource {})),
        ..ConfigSource::default()
    }
}

fn seconds(seconds: i64) -> Option<Duration> {
    Some(Duration { seconds, nanos: 0 })
}

#[cfg(test)]
mod tests;
