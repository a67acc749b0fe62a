//! The gateway's configuration: `envoy/standalone.yaml`, with another filter configuration, other ports and another
//! access log. What it lets pass and what it refuses is the product's own choice.

use std::net::SocketAddr;
use std::path::Path;

use palisade_tests::bootstrap::{http2_cluster, wasm_filter};
use serde_json::{Value, json};

use super::access_log::FORMAT;

/// The configuration that gateways without a control plane have.
const STANDALONE: &str = include_str!("../../../../../envoy/standalone.yaml");
/// The name of its listener.
pub(super) const LISTENER: &str = "palisade";

/// The cluster of the control plane.
pub(super) const CONTROL: &str = "control";

/// What is different where recorded traffic runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Replay {
    /// The name of the only route; empty for the one that it has.
    pub(super) route: String,
    /// The node's id.
    pub(super) node: String,
    /// Where the cluster [`CONTROL`] is, if there is one.
    pub(super) control: Option<SocketAddr>,
}

/// The bootstrap, in JSON, with one filter of the module for each configuration. `ACCESS_LOG` in it stands for the log's path.
///
/// # Errors
///
/// A configuration that is not of the shape that is known here.
pub(super) fn render(
    filter: &Path,
    configurations: &[&[u8]],
    backend: SocketAddr,
    replay: Option<&Replay>,
) -> Result<String, String> {
    let mut bootstrap: Value =
        serde_saphyr::from_str(STANDALONE).map_err(|error| format!("envoy/standalone.yaml: {error}"))?;
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = "/static_resources/listeners/0";
    let manager = format!("{listener}/filter_chains/0/filters/0/typed_config");
    let name = filter.file_stem().unwrap_or_default().to_string_lossy();
    set(&mut bootstrap, "/admin/address", address(any))?;
    set(&mut bootstrap, &format!("{listener}/address"), address(any))?;
    let filters = format!("{manager}/http_filters");
    let filters = bootstrap.pointer_mut(&filters).and_then(Value::as_array_mut);
    let filters = filters.ok_or("envoy/standalone.yaml has no list of filters")?;
    let wasm = configurations.iter().enumerate().map(|(number, configuration)| {
        let mut wasm = wasm_filter(&name, filter, configuration);
        if number > 0 {
            // Filters of one module share a VM, unless their VMs are configured differently.
            wasm["name"] = format!("{name}-{number}").into();
            wasm["typed_config"]["config"]["vm_config"]["configuration"] = json!({
                "@type": "type.googleapis.com/google.protobuf.StringValue", "value": number.to_string(),
            });
        }
        wasm
    });
    filters.splice(..1, wasm);
    let log = format!("{manager}/access_log/0/typed_config");
    set(&mut bootstrap, &format!("{log}/path"), "ACCESS_LOG".into())?;
    set(&mut bootstrap, &format!("{log}/log_format/text_format_source"), json!({ "inline_string": FORMAT }))?;
    let endpoint = "/static_resources/clusters/0/load_assignment/endpoints/0/lb_endpoints/0/endpoint/address";
    set(&mut bootstrap, endpoint, address(backend))?;
    if let Some(Replay { route, node, control }) = replay {
        // The recorded peer is the connection's, for everything that asks.
        let listener = bootstrap.pointer_mut(listener).and_then(Value::as_object_mut);
        let listener = listener.ok_or("envoy/standalone.yaml has no listener")?;
        listener.insert("listener_filters".to_owned(), json!([proxy_protocol()]));
        set(&mut bootstrap, "/node/id", node.as_str().into())?;
        // Responses of the backend may have trailers.
        let backend = bootstrap.pointer_mut("/static_resources/clusters/0").and_then(Value::as_object_mut);
        let backend = backend.ok_or("envoy/standalone.yaml has no cluster")?;
        backend.insert("typed_extension_protocol_options".to_owned(), with_trailers());
        if let Some(control) = control {
            let clusters = bootstrap.pointer_mut("/static_resources/clusters").and_then(Value::as_array_mut);
            clusters.ok_or("envoy/standalone.yaml has no clusters")?.push(http2_cluster(CONTROL, *control));
        }
        if !route.is_empty() {
            let path = format!("{manager}/route_config/virtual_hosts/0/routes/0/name");
            set(&mut bootstrap, &path, route.as_str().into())?;
        }
    }
    Ok(bootstrap.to_string())
}

fn proxy_protocol() -> Value {
    let kind = "type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol";
    json!({ "name": "envoy.filters.listener.proxy_protocol", "typed_config": { "@type": kind } })
}

fn with_trailers() -> Value {
    json!({ "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": { "http_protocol_options": { "enable_trailers": true } },
    } })
}

/// Replaces what is there already: a path that leads nowhere would leave a fixed port or a log that nobody reads.
fn set(bootstrap: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let place = bootstrap.pointer_mut(path).ok_or_else(|| format!("envoy/standalone.yaml has no {path}"))?;
    *place = value;
    Ok(())
}

fn address(at: SocketAddr) -> Value {
    json!({ "socket_address": { "address": at.ip().to_string(), "port_value": at.port() } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_fixed_is_left_of_the_shipped_configuration() {
        let backend = SocketAddr::from(([127, 0, 0, 1], 4711));
        let text = render(Path::new("/filters/waf.wasm"), &[b"snapshot"], backend, None).unwrap();
        for fixed in ["18081", "10000", "9901", "/dev/stdout", "target/preset.json"] {
            assert!(!text.contains(fixed), "{fixed}");
        }
        for kept in ["\"merge_slashes\":true", "\"normalize_path\":true", "/filters/waf.wasm", "4711", "ACCESS_LOG"] {
            assert!(text.contains(kept), "{kept}");
        }
    }
}
