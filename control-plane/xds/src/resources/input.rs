//! A gateway as it is described, before it is anything of Envoy's.

use std::collections::BTreeMap;

use entities::{ListenerConfig, ServerTls};

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
    /// TLS of clients; `None` speaks plain text.
    pub tls: Option<ServerTls>,
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
            tls: None,
        }
    }
}

impl Default for BackendTls {
    /// The backend's own address as its name, verified by the system's authorities.
    fn default() -> Self {
        Self { server_name: String::new(), authorities: SYSTEM_AUTHORITIES.into() }
    }
}
