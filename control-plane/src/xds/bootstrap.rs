//! The file that Envoy starts with.

use serde_json::{Value, json};

/// The cluster by which Envoy, and the filters in it, reach the control plane.
pub const CONTROL_PLANE_CLUSTER: &str = "palisade-control-plane";

/// What differs between one gateway's bootstrap and another's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootstrapInput {
    /// Name of this gateway among all; unique.
    pub node_id: String,
    /// Name of the group that it belongs to.
    pub node_cluster: String,
    /// IP address and port of Envoy's admin interface; `None` opens none.
    pub admin: Option<(String, u16)>,
    /// Host and port of the control plane's xDS and node port.
    pub control_plane: (String, u16),
    /// Asks for changes alone (delta); otherwise for the state of the world.
    pub delta: bool,
    /// The most client connections; more are refused.
    pub max_connections: u64,
}

impl Default for BootstrapInput {
    /// A gateway beside its control plane: delta, admin on loopback, 50,000 connections.
    fn default() -> Self {
        Self {
            node_id: "gateway-1".into(),
            node_cluster: "palisade".into(),
            admin: Some(("127.0.0.1".into(), 9901)),
            control_plane: ("127.0.0.1".into(), 18000),
            delta: true,
            max_connections: 50_000,
        }
    }
}

/// The bootstrap as JSON, which Envoy reads like YAML.
#[must_use]
pub fn bootstrap(input: &BootstrapInput) -> Value {
    let (host, port) = &input.control_plane;
    let literal = host.parse::<std::net::IpAddr>().is_ok();
    let mut document = json!({
        "node": { "id": input.node_id, "cluster": input.node_cluster },
        "dynamic_resources": {
            "ads_config": {
                "api_type": if input.delta { "DELTA_GRPC" } else { "GRPC" },
                "transport_api_version": "V3",
                "set_node_on_first_message_only": true,
                "grpc_services": [{ "envoy_grpc": { "cluster_name": CONTROL_PLANE_CLUSTER } }],
            },
            "cds_config": { "ads": {}, "resource_api_version": "V3", "initial_fetch_timeout": "0s" },
            "lds_config": { "ads": {}, "resource_api_version": "V3", "initial_fetch_timeout": "0s" },
        },
        "static_resources": {
            "clusters": [{
                "name": CONTROL_PLANE_CLUSTER,
                "type": if literal { "STATIC" } else { "STRICT_DNS" },
                "connect_timeout": "5s",
                "typed_extension_protocol_options": {
                    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                        "explicit_http_config": {
                            // A control plane that vanished without a word is noticed within half a minute.
                            "http2_protocol_options": { "connection_keepalive": { "interval": "20s", "timeout": "10s" } },
                        },
                    },
                },
                "load_assignment": {
                    "cluster_name": CONTROL_PLANE_CLUSTER,
                    "endpoints": [{ "lb_endpoints": [{ "endpoint": {
                        "address": { "socket_address": { "address": host, "port_value": port } },
                    } }] }],
                },
            }],
        },
        "overload_manager": {
            "resource_monitors": [{
                "name": "envoy.resource_monitors.global_downstream_max_connections",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
                    "max_active_downstream_connections": input.max_connections,
                },
            }],
        },
    });
    if let (Some((address, port)), Some(object)) = (&input.admin, document.as_object_mut()) {
        object.insert(
            "admin".into(),
            json!({ "address": { "socket_address": { "address": address, "port_value": port } } }),
        );
    }
    document
}
