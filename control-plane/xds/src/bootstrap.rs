//! The file that Envoy starts with.

use serde_json::{Value, json};

/// The cluster by which Envoy, and the filters in it, reach the control plane.
pub const CONTROL_PLANE_CLUSTER: &str = "palisade-control-plane";

/// What Envoy reads from the control plane in one turn of a thread's loop, in bytes.
const LINK_BUFFER_BYTES: u32 = 32_768;

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
    /// TLS to that port; `None` is plain HTTP/2.
    pub tls: Option<ControlPlaneTls>,
    /// Path of a file with the node token, as Envoy's secret of the name [`NODE_TOKEN_SECRET`] (`envoy/node-token.yaml`); it
    /// is read anew when another file is moved in its place. `None` sends no token.
    pub token_file: Option<String>,
    /// The most client connections; more are refused.
    pub max_connections: u64,
    /// The most bytes of Envoy's own heap, the filters' VMs not counted; what holds most of it is given up before.
    pub max_heap_bytes: u64,
}

/// TLS to the control plane. All files are PEM, as the gateway sees them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ControlPlaneTls {
    /// The authorities that may have signed the control plane's certificate.
    pub authorities: String,
    /// The name or IP address that the certificate must be for; empty takes the host that is connected to.
    pub server_name: String,
    /// Certificate and key of this gateway, where the control plane asks for one.
    pub certificate: Option<(String, String)>,
}

/// The name of the secret that holds the node token.
pub const NODE_TOKEN_SECRET: &str = "palisade-node-token";

impl Default for BootstrapInput {
    /// A gateway beside its control plane: delta, admin on loopback, 50,000 connections, 2 GiB of heap.
    fn default() -> Self {
        Self {
            node_id: "gateway-1".into(),
            node_cluster: "palisade".into(),
            admin: Some(("127.0.0.1".into(), 9901)),
            control_plane: ("127.0.0.1".into(), 18000),
            tls: None,
            token_file: None,
            delta: true,
            max_connections: 50_000,
            max_heap_bytes: 2 << 30,
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
                // A worker takes what has come between requests: this much of a long list of bans at once.
                "per_connection_buffer_limit_bytes": LINK_BUFFER_BYTES,
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
        "layered_runtime": { "layers": [
            { "name": "palisade", "static_layer": {
                // Callers who reset what they open are not worked for, and share a worker with everyone else.
                "http.max_requests_per_io_cycle": 1,
                "overload.premature_reset_total_stream_count": 500,
                "overload.premature_reset_min_stream_lifetime_seconds": 1,
            } },
            { "name": "admin", "admin_layer": {} },
        ] },
        "overload_manager": overload_manager(input),
    });
    if let Some(tls) = &input.tls
        && let Some(cluster) = document.pointer_mut("/static_resources/clusters/0").and_then(Value::as_object_mut)
    {
        cluster.insert("transport_socket".into(), tls_socket(host, tls));
    }
    if let Some(file) = &input.token_file
        && let Some(options) = document
            .pointer_mut(
                "/static_resources/clusters/0/typed_extension_protocol_options/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
            )
            .and_then(Value::as_object_mut)
    {
        options.insert("http_filters".into(), token_filters(file));
    }
    if let (Some((address, port)), Some(object)) = (&input.admin, document.as_object_mut()) {
        object.insert(
            "admin".into(),
            json!({ "address": { "socket_address": { "address": address, "port_value": port } } }),
        );
    }
    document
}

/// What the whole gateway takes of connections, and of memory for what it holds.
fn overload_manager(input: &BootstrapInput) -> Value {
    const HEAP: &str = "envoy.resource_monitors.fixed_heap";
    let action = |name: &str, trigger: Value| {
        let mut trigger = trigger;
        if let Some(trigger) = trigger.as_object_mut() {
            trigger.insert("name".into(), HEAP.into());
        }
        json!({ "name": format!("envoy.overload_actions.{name}"), "triggers": [trigger] })
    };
    json!({
        "refresh_interval": "0.25s",
        // Requests are known by what they hold from 1 MiB on.
        "buffer_factory_config": { "minimum_account_to_track_power_of_two": 20 },
        "resource_monitors": [
            {
                "name": "envoy.resource_monitors.global_downstream_max_connections",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
                    "max_active_downstream_connections": input.max_connections,
                },
            },
            {
                "name": HEAP,
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.resource_monitors.fixed_heap.v3.FixedHeapConfig",
                    "max_heap_size_bytes": input.max_heap_bytes,
                },
            },
        ],
        "actions": [
            action("reset_high_memory_stream", json!({ "scaled": { "scaling_threshold": 0.85, "saturation_threshold": 0.95 } })),
            action("shrink_heap", json!({ "threshold": { "value": 0.9 } })),
            action("disable_http_keepalive", json!({ "threshold": { "value": 0.92 } })),
            action("stop_accepting_requests", json!({ "threshold": { "value": 0.95 } })),
            action("stop_accepting_connections", json!({ "threshold": { "value": 0.98 } })),
        ],
    })
}

fn tls_socket(host: &str, tls: &ControlPlaneTls) -> Value {
    let name = if tls.server_name.is_empty() { host } else { &tls.server_name };
    let is_address = name.parse::<std::net::IpAddr>().is_ok();
    let mut common = json!({
        "alpn_protocols": ["h2"],
        "validation_context": {
            "trusted_ca": { "filename": tls.authorities },
            "match_typed_subject_alt_names": [{
                "san_type": if is_address { "IP_ADDRESS" } else { "DNS" },
                "matcher": { "exact": name },
            }],
        },
    });
    if let (Some((certificate, key)), Some(common)) = (&tls.certificate, common.as_object_mut()) {
        let pair = json!([{ "certificate_chain": { "filename": certificate }, "private_key": { "filename": key } }]);
        common.insert("tls_certificates".into(), pair);
    }
    let mut context = json!({
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        "common_tls_context": common,
    });
    if let (false, Some(context)) = (is_address, context.as_object_mut()) {
        context.insert("sni".into(), name.into());
    }
    json!({ "name": "envoy.transport_sockets.tls", "typed_config": context })
}

/// The filters of the cluster: every request to the control plane gets the token, that of Envoy's own stream as well as
/// those of the filters' links.
fn token_filters(file: &str) -> Value {
    json!([
        {
            "name": "envoy.filters.http.credential_injector",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.filters.http.credential_injector.v3.CredentialInjector",
                "overwrite": true,
                "credential": {
                    "name": "envoy.http.injected_credentials.generic",
                    "typed_config": {
                        "@type": "type.googleapis.com/envoy.extensions.http.injected_credentials.generic.v3.Generic",
                        "credential": {
                            "name": NODE_TOKEN_SECRET,
                            "sds_config": { "path_config_source": { "path": file }, "resource_api_version": "V3" },
                        },
                        "header_value_prefix": "Bearer ",
                    },
                },
            },
        },
        {
            "name": "envoy.filters.http.upstream_codec",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec",
            },
        },
    ])
}
