//! Envoy bootstraps for tests without a control plane, and small changes to those in `envoy/`.

use std::net::SocketAddr;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// A static gateway: one listener on a port that Envoy chooses, every path to one backend.
#[derive(Debug, Clone)]
pub struct Static {
    backend: SocketAddr,
    filters: Vec<Value>,
    clusters: Vec<Value>,
    access_log: bool,
    direct: Option<String>,
}

impl Static {
    /// The listener's name, by which [`crate::envoy::Envoy::listener`] finds its address.
    pub const LISTENER: &str = "test";
    /// The name of its only route, as filters see it.
    pub const ROUTE: &str = "demo";

    /// A gateway with no filter before its router.
    #[must_use]
    pub fn to(backend: SocketAddr) -> Self {
        Self { backend, filters: Vec::new(), clusters: Vec::new(), access_log: false, direct: None }
    }

    /// A gateway that answers every request itself with 200 and a page: what it costs is the gateway alone.
    #[must_use]
    pub fn answering(page: &str) -> Self {
        let mut gateway = Self::to(SocketAddr::from(([127, 0, 0, 1], 1)));
        gateway.direct = Some(page.to_owned());
        gateway
    }

    /// Adds a .wasm filter with its configuration, at the end of the chain.
    #[must_use]
    pub fn wasm(mut self, name: &str, module: &Path, configuration: &[u8]) -> Self {
        self.filters.push(wasm_filter(name, module, configuration));
        self
    }

    /// Adds an HTTP filter, at the end of the chain.
    #[must_use]
    pub fn filter(mut self, filter: Value) -> Self {
        self.filters.push(filter);
        self
    }

    /// Adds a cluster beside that of the backend.
    #[must_use]
    pub fn cluster(mut self, cluster: Value) -> Self {
        self.clusters.push(cluster);
        self
    }

    /// Writes an access log of the standard format.
    #[must_use]
    pub fn access_log(mut self) -> Self {
        self.access_log = true;
        self
    }

    /// The bootstrap, in JSON. `ACCESS_LOG` in it is replaced at the start.
    #[must_use]
    pub fn render(&self) -> String {
        let mut filters = self.filters.clone();
        filters.push(json!({
            "name": "envoy.filters.http.router",
            "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
        }));
        let access_log = if self.access_log {
            json!([{
                "name": "envoy.access_loggers.file",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog",
                    "path": "ACCESS_LOG",
                },
            }])
        } else {
            json!([])
        };
        let backend = json!({
            "name": "backend",
            "type": "STATIC",
            "connect_timeout": "2s",
            "load_assignment": {
                "cluster_name": "backend",
                "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address(self.backend)}}]}],
            },
        });
        let clusters: Vec<Value> = std::iter::once(backend).chain(self.clusters.iter().cloned()).collect();
        let mut route = json!({"name": Self::ROUTE, "match": {"prefix": "/"}});
        match &self.direct {
            Some(page) => route["direct_response"] = json!({"status": 200, "body": {"inline_string": page}}),
            None => route["route"] = json!({"cluster": "backend", "timeout": "30s"}),
        }
        let manager = json!({
            "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
            "stat_prefix": "test",
            "codec_type": "AUTO",
            "upgrade_configs": [{"upgrade_type": "websocket"}],
            "max_request_headers_kb": 96,
            "common_http_protocol_options": {"max_headers_count": 2000},
            "access_log": access_log,
            "http_filters": filters,
            "route_config": {
                "name": "test",
                "virtual_hosts": [{
                    "name": "test",
                    "domains": ["*"],
                    "routes": [route],
                }],
            },
        });
        json!({
            "admin": {"address": address(SocketAddr::from(([127, 0, 0, 1], 0)))},
            "static_resources": {
                "listeners": [{
                    "name": Self::LISTENER,
                    "address": address(SocketAddr::from(([127, 0, 0, 1], 0))),
                    "filter_chains": [{"filters": [{
                        "name": "envoy.filters.network.http_connection_manager",
                        "typed_config": manager,
                    }]}],
                }],
                "clusters": clusters,
            },
        })
        .to_string()
    }
}

/// A Wasm HTTP filter with its code from a local file.
#[must_use]
pub fn wasm_filter(name: &str, module: &Path, configuration: &[u8]) -> Value {
    json!({
        "name": name,
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm",
            "config": {
                "name": name,
                "root_id": name,
                "failure_policy": "FAIL_RELOAD",
                "allow_on_headers_stop_iteration": true,
                "vm_config": {
                    "vm_id": "palisade",
                    "runtime": "envoy.wasm.runtime.v8",
                    "code": {"local": {"filename": module}},
                },
                "configuration": {
                    "@type": "type.googleapis.com/google.protobuf.BytesValue",
                    "value": STANDARD.encode(configuration),
                },
            },
        },
    })
}

/// A cluster that speaks HTTP/2, as the control plane's port does.
#[must_use]
pub fn http2_cluster(name: &str, at: SocketAddr) -> Value {
    let endpoint = json!({"endpoint": {"address": address(at)}});
    json!({
        "name": name,
        "type": "STATIC",
        "connect_timeout": "1s",
        // As in the bootstraps in `envoy/`.
        "per_connection_buffer_limit_bytes": 32_768,
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]},
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": {"http2_protocol_options": {}},
            },
        },
    })
}

fn address(at: SocketAddr) -> Value {
    json!({"socket_address": {"address": at.ip().to_string(), "port_value": at.port()}})
}

/// One of the repository's own configurations (`envoy/NAME`), with its ports replaced: (as written, wanted).
///
/// # Panics
///
/// When the file is missing or does not have one of the ports, which would leave the test on a fixed one.
#[must_use]
pub fn shipped(name: &str, ports: &[(u16, u16)]) -> String {
    let path = crate::parts::root().join("envoy").join(name);
    let mut text =
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{} cannot be read: {error}", path.display()));
    for (written, wanted) in ports {
        let from = format!("port_value: {written} ");
        assert!(text.contains(&from), "{} has no `{from}`", path.display());
        text = text.replace(&from, &format!("port_value: {wanted} "));
    }
    text
}
