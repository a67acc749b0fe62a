//! The listener: connection manager, filter chain, event log.

use std::net::IpAddr;

use envoy_types::pb::envoy::config::accesslog::v3::{
    AccessLog, AccessLogFilter, ExtensionFilter, access_log, access_log_filter, extension_filter,
};
use envoy_types::pb::envoy::config::common::mutation_rules::v3::{HeaderMutation, header_mutation};
use envoy_types::pb::envoy::config::core::v3::{
    DataSource, ExtensionConfigSource, Http1ProtocolOptions, Http2ProtocolOptions, HttpProtocolOptions,
    SubstitutionFormatString, TypedExtensionConfig, data_source, http_protocol_options::HeadersWithUnderscoresAction,
    substitution_format_string,
};
use envoy_types::pb::envoy::config::listener::v3::{Filter, FilterChain, Listener, filter};
use envoy_types::pb::envoy::extensions::access_loggers::file::v3::{FileAccessLog, file_access_log};
use envoy_types::pb::envoy::extensions::access_loggers::filters::cel::v3::ExpressionFilter;
use envoy_types::pb::envoy::extensions::filters::http::router::v3::Router;
use envoy_types::pb::envoy::extensions::filters::http::wasm::v3::Wasm;
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, HttpFilter, Rds,
    http_connection_manager::{
        CodecType, PathWithEscapedSlashesAction, RouteSpecifier, ServerHeaderTransformation, UpgradeConfig,
    },
    http_filter,
};
use envoy_types::pb::envoy::extensions::http::early_header_mutation::header_mutation::v3::HeaderMutation as EarlyHeaderMutation;
use envoy_types::pb::google::protobuf::{BoolValue, Duration, UInt32Value};
use envoy_types::util::pack_any;
use prost::Name;

use entities::{EscapedSlashes, RequestTrailers, UnderscoreHeaders};

use super::common::{from_ads, seconds, socket_address};
use super::filters;
use super::input::{FilterInput, ListenerSettings, NAME};
use super::server_tls;

/// Filters leave their events here; Envoy stores what a Wasm filter sets under the prefix `wasm.`.
const EVENT_STATE: &str = "wasm.svc.event";
/// The host refuses more than 1024 header pairs to a Wasm filter; pseudo headers count too.
const MAX_HEADERS: u32 = 1000;
/// A 60 KB path must reach the filters, not Envoy's own limit.
const MAX_HEADERS_KB: u32 = 96;
/// What a caller may send on one request of HTTP/2 before the gateway has taken it, in bytes: a long body is held in the
/// gateway's own buffer, not in this one.
const STREAM_WINDOW: u32 = 256 << 10;
/// The same for all requests of a connection together.
const CONNECTION_WINDOW: u32 = 1 << 20;

/// Whether a listener can be made of its settings.
///
/// # Errors
///
/// An address that is no IP address.
pub(super) fn check(settings: &ListenerSettings) -> Result<(), String> {
    if settings.address.parse::<IpAddr>().is_err() {
        return Err(format!(
            "listener {:?}: {:?} is not an IP address; write 0.0.0.0 for all",
            settings.name, settings.address
        ));
    }
    Ok(())
}

/// The listener of a gateway.
pub(super) fn listener(settings: &ListenerSettings, filters: &[FilterInput]) -> Listener {
    let connection = Filter {
        name: "envoy.filters.network.http_connection_manager".into(),
        config_type: Some(filter::ConfigType::TypedConfig(pack_any(connection_manager(settings, filters)))),
    };
    Listener {
        name: settings.name.clone(),
        address: Some(socket_address(&settings.address, settings.port)),
        per_connection_buffer_limit_bytes: Some(UInt32Value { value: settings.buffer_limit_bytes }),
        listener_filters: settings.tls.iter().map(|_| server_tls::inspector()).collect(),
        filter_chains: vec![FilterChain {
            filters: vec![connection],
            transport_socket: settings.tls.as_ref().map(server_tls::socket),
            ..FilterChain::default()
        }],
        ..Listener::default()
    }
}

fn connection_manager(settings: &ListenerSettings, filters: &[FilterInput]) -> HttpConnectionManager {
    let http = &settings.http;
    let fingerprints = settings.tls.iter().map(|_| server_tls::fingerprints());
    let mut http_filters: Vec<HttpFilter> = fingerprints.chain(filters.iter().map(discovered)).collect();
    http_filters.push(HttpFilter {
        name: "envoy.filters.http.router".into(),
        config_type: Some(http_filter::ConfigType::TypedConfig(pack_any(Router::default()))),
        ..HttpFilter::default()
    });
    HttpConnectionManager {
        codec_type: CodecType::Auto.into(),
        stat_prefix: settings.name.clone(),
        http_filters,
        route_specifier: Some(RouteSpecifier::Rds(Rds {
            config_source: Some(from_ads()),
            route_config_name: NAME.into(),
        })),
        common_http_protocol_options: Some(HttpProtocolOptions {
            idle_timeout: whole_seconds(http.connection_idle_timeout_seconds),
            max_headers_count: Some(UInt32Value { value: MAX_HEADERS }),
            headers_with_underscores_action: match http.underscore_headers {
                UnderscoreHeaders::Reject => HeadersWithUnderscoresAction::RejectRequest,
                UnderscoreHeaders::Drop => HeadersWithUnderscoresAction::DropHeader,
                UnderscoreHeaders::Allow => HeadersWithUnderscoresAction::Allow,
            }
            .into(),
            ..HttpProtocolOptions::default()
        }),
        // Trailers of HTTP/1.1 are dropped by the gateway itself, those of HTTP/2 by the filters.
        http_protocol_options: Some(Http1ProtocolOptions {
            enable_trailers: http.request_trailers == RequestTrailers::Inspect,
            ..Http1ProtocolOptions::default()
        }),
        http2_protocol_options: Some(Http2ProtocolOptions {
            max_concurrent_streams: Some(UInt32Value { value: http.max_concurrent_streams }),
            initial_stream_window_size: Some(UInt32Value { value: STREAM_WINDOW }),
            initial_connection_window_size: Some(UInt32Value { value: CONNECTION_WINDOW }),
            max_header_field_size_kb: Some(UInt32Value { value: MAX_HEADERS_KB }),
            ..Http2ProtocolOptions::default()
        }),
        max_request_headers_kb: Some(UInt32Value { value: MAX_HEADERS_KB }),
        request_headers_timeout: whole_seconds(http.request_headers_timeout_seconds),
        request_timeout: whole_seconds(http.request_timeout_seconds),
        stream_idle_timeout: whole_seconds(http.stream_idle_timeout_seconds),
        server_header_transformation: ServerHeaderTransformation::PassThrough.into(),
        use_remote_address: Some(BoolValue { value: true }),
        xff_num_trusted_hops: settings.xff_num_trusted_hops,
        normalize_path: Some(BoolValue { value: true }),
        merge_slashes: true,
        strip_trailing_host_dot: true,
        path_with_escaped_slashes_action: match http.escaped_slashes {
            EscapedSlashes::Reject => PathWithEscapedSlashesAction::RejectRequest,
            EscapedSlashes::Unescape => PathWithEscapedSlashesAction::UnescapeAndForward,
            EscapedSlashes::Redirect => PathWithEscapedSlashesAction::UnescapeAndRedirect,
            EscapedSlashes::Keep => PathWithEscapedSlashesAction::KeepUnchanged,
        }
        .into(),
        upgrade_configs: vec![UpgradeConfig { upgrade_type: "websocket".into(), ..UpgradeConfig::default() }],
        access_log: settings.access_log.iter().map(|path| event_log(path)).collect(),
        early_header_mutation_extensions: removal(&settings.removed_headers).into_iter().collect(),
        ..HttpConnectionManager::default()
    }
}

fn whole_seconds(count: u32) -> Option<Duration> {
    seconds(i64::from(count))
}

/// Takes headers from clients, before the route is chosen and any filter sees them.
fn removal(headers: &[String]) -> Option<TypedExtensionConfig> {
    let remove = |name: &String| HeaderMutation { action: Some(header_mutation::Action::Remove(name.clone())) };
    let mutation = EarlyHeaderMutation { mutations: headers.iter().map(remove).collect() };
    (!headers.is_empty()).then(|| TypedExtensionConfig {
        name: "envoy.http.early_header_mutation.header_mutation".into(),
        typed_config: Some(pack_any(mutation)),
    })
}

fn discovered(filter: &FilterInput) -> HttpFilter {
    HttpFilter {
        name: filters::name(filter),
        config_type: Some(http_filter::ConfigType::ConfigDiscovery(ExtensionConfigSource {
            config_source: Some(from_ads()),
            type_urls: vec![Wasm::type_url()],
            ..ExtensionConfigSource::default()
        })),
        ..HttpFilter::default()
    }
}

/// One line per request that has an event, and nothing else: the line is what the filters left, which is JSON already.
fn event_log(path: &str) -> AccessLog {
    let has_event =
        ExpressionFilter { expression: format!("'{EVENT_STATE}' in filter_state"), ..ExpressionFilter::default() };
    let line = SubstitutionFormatString {
        format: Some(substitution_format_string::Format::TextFormatSource(DataSource {
            specifier: Some(data_source::Specifier::InlineString(format!("%FILTER_STATE({EVENT_STATE}:PLAIN)%\n"))),
            ..DataSource::default()
        })),
        ..SubstitutionFormatString::default()
    };
    AccessLog {
        name: "envoy.access_loggers.file".into(),
        filter: Some(AccessLogFilter {
            filter_specifier: Some(access_log_filter::FilterSpecifier::ExtensionFilter(ExtensionFilter {
                name: "envoy.access_loggers.extension_filters.cel".into(),
                config_type: Some(extension_filter::ConfigType::TypedConfig(pack_any(has_event))),
            })),
        }),
        config_type: Some(access_log::ConfigType::TypedConfig(pack_any(FileAccessLog {
            path: path.into(),
            access_log_format: Some(file_access_log::AccessLogFormat::LogFormat(line)),
        }))),
    }
}
