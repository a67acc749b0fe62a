//! Backends as clusters.

use std::net::IpAddr;

use envoy_types::pb::envoy::config::cluster::v3::{CircuitBreakers, Cluster, circuit_breakers::Thresholds, cluster};
use envoy_types::pb::envoy::config::core::v3::{
    DataSource, Http2ProtocolOptions, RoutingPriority, TransportSocket, data_source, transport_socket,
};
use envoy_types::pb::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints, lb_endpoint,
};
use envoy_types::pb::envoy::extensions::transport_sockets::tls::v3::{
    CertificateValidationContext, CommonTlsContext, SubjectAltNameMatcher, UpstreamTlsContext, common_tls_context,
    subject_alt_name_matcher::SanType,
};
use envoy_types::pb::envoy::extensions::upstreams::http::v3::{
    HttpProtocolOptions,
    http_protocol_options::{ExplicitHttpConfig, UpstreamProtocolOptions, explicit_http_config::ProtocolConfig},
};
use envoy_types::pb::envoy::r#type::matcher::v3::{StringMatcher, string_matcher::MatchPattern};
use envoy_types::pb::google::protobuf::UInt32Value;
use envoy_types::util::pack_any;

use super::common::{seconds, socket_address};
use super::input::{BackendInput, BackendTls};

const HTTP_OPTIONS: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
const CONNECT_TIMEOUT_SECONDS: i64 = 5;
/// What a backend may have at once of connections, and of requests that run or wait for one. A gateway's own limit is 1024,
/// and it answers 503 to what is beyond: too few when a tarpit releases many requests at once. Callers are limited by
/// the gateway's connections (`envoy/xds.yaml`), the backend by itself.
const MOST_AT_ONCE: UInt32Value = UInt32Value { value: 50_000 };

/// The cluster's name says where it leads, so that two routes to one backend share it and a route that moves to another
/// backend gets another cluster: the old one serves until no route names it.
pub(super) fn name(backend: &BackendInput) -> String {
    let mut name = format!("backend:{}:{}", backend.address, backend.port);
    if let Some(tls) = &backend.tls {
        name.push_str(":tls");
        if !tls.server_name.is_empty() || *tls != BackendTls::default() {
            name.push_str(&format!("({},{})", tls.server_name, tls.authorities));
        }
    }
    if backend.http2 {
        name.push_str(":h2");
    }
    name
}

/// Whether a backend can be a cluster.
///
/// # Errors
///
/// An address that Envoy does not take, or port 0.
pub(super) fn check(backend: &BackendInput) -> Result<(), String> {
    if backend.address.is_empty() || backend.port == 0 {
        return Err(format!(
            "its backend {:?} port {} cannot be reached; give a host and a port from 1 to 65535",
            backend.address, backend.port
        ));
    }
    Ok(())
}

/// The cluster of a backend.
pub(super) fn cluster(backend: &BackendInput) -> Cluster {
    let name = name(backend);
    let literal = backend.address.parse::<IpAddr>().is_ok();
    let discovery = if literal { cluster::DiscoveryType::Static } else { cluster::DiscoveryType::StrictDns };
    let mut cluster = Cluster {
        name: name.clone(),
        connect_timeout: seconds(CONNECT_TIMEOUT_SECONDS),
        cluster_discovery_type: Some(cluster::ClusterDiscoveryType::Type(discovery.into())),
        circuit_breakers: Some(CircuitBreakers {
            thresholds: vec![Thresholds {
                priority: RoutingPriority::Default.into(),
                max_connections: Some(MOST_AT_ONCE),
                max_pending_requests: Some(MOST_AT_ONCE),
                max_requests: Some(MOST_AT_ONCE),
                ..Thresholds::default()
            }],
            ..CircuitBreakers::default()
        }),
        load_assignment: Some(ClusterLoadAssignment {
            cluster_name: name,
            endpoints: vec![LocalityLbEndpoints {
                lb_endpoints: vec![LbEndpoint {
                    host_identifier: Some(lb_endpoint::HostIdentifier::Endpoint(Endpoint {
                        address: Some(socket_address(&backend.address, backend.port)),
                        ..Endpoint::default()
                    })),
                    ..LbEndpoint::default()
                }],
                ..LocalityLbEndpoints::default()
            }],
            ..ClusterLoadAssignment::default()
        }),
        ..Cluster::default()
    };
    if !literal {
        cluster.dns_lookup_family = cluster::DnsLookupFamily::V4Preferred.into();
    }
    if backend.http2 {
        let options = HttpProtocolOptions {
            upstream_protocol_options: Some(UpstreamProtocolOptions::ExplicitHttpConfig(ExplicitHttpConfig {
                protocol_config: Some(ProtocolConfig::Http2ProtocolOptions(Http2ProtocolOptions::default())),
            })),
            ..HttpProtocolOptions::default()
        };
        cluster.typed_extension_protocol_options.insert(HTTP_OPTIONS.into(), pack_any(options));
    }
    if let Some(tls) = &backend.tls {
        cluster.transport_socket = Some(tls_socket(backend, tls));
    }
    cluster
}

fn tls_socket(backend: &BackendInput, tls: &BackendTls) -> TransportSocket {
    let name = if tls.server_name.is_empty() { &backend.address } else { &tls.server_name };
    // An address is no server name: it is not sent, and the certificate must carry it as an address.
    let by_address = name.parse::<IpAddr>().is_ok();
    let validation = CertificateValidationContext {
        trusted_ca: Some(DataSource {
            specifier: Some(data_source::Specifier::Filename(tls.authorities.clone())),
            ..DataSource::default()
        }),
        match_typed_subject_alt_names: vec![SubjectAltNameMatcher {
            san_type: if by_address { SanType::IpAddress } else { SanType::Dns }.into(),
            matcher: Some(StringMatcher {
                match_pattern: Some(MatchPattern::Exact(name.clone())),
                ..StringMatcher::default()
            }),
            ..SubjectAltNameMatcher::default()
        }],
        ..CertificateValidationContext::default()
    };
    let context = UpstreamTlsContext {
        sni: if by_address { String::new() } else { name.clone() },
        common_tls_context: Some(CommonTlsContext {
            alpn_protocols: vec![if backend.http2 { "h2" } else { "http/1.1" }.into()],
            validation_context_type: Some(common_tls_context::ValidationContextType::ValidationContext(validation)),
            ..CommonTlsContext::default()
        }),
        ..UpstreamTlsContext::default()
    };
    TransportSocket {
        name: "envoy.transport_sockets.tls".into(),
        config_type: Some(transport_socket::ConfigType::TypedConfig(pack_any(context))),
    }
}
