//! TLS of the listener, and the fingerprints of its clients.

use envoy_types::pb::envoy::config::core::v3::api_config_source::ApiType;
use envoy_types::pb::envoy::config::core::v3::config_source::ConfigSourceSpecifier;
use envoy_types::pb::envoy::config::core::v3::grpc_service::{EnvoyGrpc, TargetSpecifier};
use envoy_types::pb::envoy::config::core::v3::{
    ApiConfigSource, ApiVersion, ConfigSource, DataSource, GrpcService, PathConfigSource, SubstitutionFormatString,
    TransportSocket, data_source, substitution_format_string, transport_socket,
};
use envoy_types::pb::envoy::config::listener::v3::{ListenerFilter, listener_filter};
use envoy_types::pb::envoy::extensions::filters::common::set_filter_state::v3::{FilterStateValue, filter_state_value};
use envoy_types::pb::envoy::extensions::filters::http::set_filter_state::v3::Config as SetFilterState;
use envoy_types::pb::envoy::extensions::filters::listener::tls_inspector::v3::TlsInspector;
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::{HttpFilter, http_filter};
use envoy_types::pb::envoy::extensions::transport_sockets::tls::v3::{
    CommonTlsContext, DownstreamTlsContext, SdsSecretConfig, TlsCertificate,
};
use envoy_types::pb::google::protobuf::BoolValue;
use envoy_types::util::pack_any;

use entities::{ServerTls, TlsSecret};

/// What filters read fingerprints from, and what Envoy writes there.
const FINGERPRINTS: [(&str, &str); 2] = [("svc.ja4", "%TLS_JA4_FINGERPRINT%"), ("svc.ja3", "%TLS_JA3_FINGERPRINT%")];

/// Reads the first message of a connection, and computes the client's fingerprints of it.
pub(super) fn inspector() -> ListenerFilter {
    let inspector = TlsInspector {
        enable_ja3_fingerprinting: Some(BoolValue { value: true }),
        enable_ja4_fingerprinting: Some(BoolValue { value: true }),
        ..TlsInspector::default()
    };
    ListenerFilter {
        name: "envoy.filters.listener.tls_inspector".into(),
        config_type: Some(listener_filter::ConfigType::TypedConfig(pack_any(inspector))),
        ..ListenerFilter::default()
    }
}

/// Ends TLS with the certificate of the gateway.
pub(super) fn socket(tls: &ServerTls) -> TransportSocket {
    let (mut tls_certificates, mut secrets) = (Vec::new(), Vec::new());
    match &tls.sds {
        Some(secret) => secrets.push(discovered(secret)),
        None => tls_certificates.push(of_files(tls)),
    }
    let context = DownstreamTlsContext {
        common_tls_context: Some(CommonTlsContext {
            tls_certificates,
            tls_certificate_sds_secret_configs: secrets,
            alpn_protocols: vec!["h2".into(), "http/1.1".into()],
            ..CommonTlsContext::default()
        }),
        ..DownstreamTlsContext::default()
    };
    TransportSocket {
        name: "envoy.transport_sockets.tls".into(),
        config_type: Some(transport_socket::ConfigType::TypedConfig(pack_any(context))),
    }
}

fn of_files(tls: &ServerTls) -> TlsCertificate {
    let file = |path: &String| {
        Some(DataSource { specifier: Some(data_source::Specifier::Filename(path.clone())), ..DataSource::default() })
    };
    TlsCertificate {
        certificate_chain: file(&tls.certificate),
        private_key: file(&tls.private_key),
        ..TlsCertificate::default()
    }
}

/// Where the gateway fetches a secret.
fn discovered(secret: &TlsSecret) -> SdsSecretConfig {
    let source = match secret.cluster.is_empty() {
        true => ConfigSourceSpecifier::PathConfigSource(PathConfigSource {
            path: secret.file.clone(),
            ..PathConfigSource::default()
        }),
        false => {
            let cluster = EnvoyGrpc { cluster_name: secret.cluster.clone(), ..EnvoyGrpc::default() };
            let service =
                GrpcService { target_specifier: Some(TargetSpecifier::EnvoyGrpc(cluster)), ..GrpcService::default() };
            ConfigSourceSpecifier::ApiConfigSource(ApiConfigSource {
                api_type: ApiType::Grpc.into(),
                transport_api_version: ApiVersion::V3.into(),
                grpc_services: vec![service],
                ..ApiConfigSource::default()
            })
        }
    };
    SdsSecretConfig {
        name: secret.name.clone(),
        sds_config: Some(ConfigSource {
            resource_api_version: ApiVersion::V3.into(),
            config_source_specifier: Some(source),
            ..ConfigSource::default()
        }),
    }
}

/// Writes the fingerprints where our filters read them. In front of them, and of nothing that a client can write: no header is involved.
pub(super) fn fingerprints() -> HttpFilter {
    let value = |(object, format): (&str, &str)| {
        let source = DataSource {
            specifier: Some(data_source::Specifier::InlineString(format.into())),
            ..DataSource::default()
        };
        FilterStateValue {
            factory_key: "envoy.string".into(),
            skip_if_empty: true,
            key: Some(filter_state_value::Key::ObjectKey(object.into())),
            value: Some(filter_state_value::Value::FormatString(SubstitutionFormatString {
                omit_empty_values: true,
                format: Some(substitution_format_string::Format::TextFormatSource(source)),
                ..SubstitutionFormatString::default()
            })),
            ..FilterStateValue::default()
        }
    };
    let config = SetFilterState {
        on_request_headers: FINGERPRINTS.map(value).into_iter().collect(),
        ..SetFilterState::default()
    };
    HttpFilter {
        name: "palisade.fingerprints".into(),
        config_type: Some(http_filter::ConfigType::TypedConfig(pack_any(config))),
        ..HttpFilter::default()
    }
}
