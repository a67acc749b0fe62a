//! Snapshots as files, for gateways without a control plane.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::xds::resources::Gateway;

/// The filters of a gateway as a discovery response in JSON: what Envoy reads through `path_config_source`.
#[must_use]
pub fn discovery_response(gateway: &Gateway) -> Value {
    let resource = |filter: &crate::xds::resources::FilterInput| {
        json!({
            "@type": "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
            "name": format!("palisade.{}", filter.name),
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm",
                "config": {
                    "name": format!("palisade.{}", filter.name),
                    "root_id": filter.name,
                    "failure_policy": "FAIL_RELOAD",
                    "allow_on_headers_stop_iteration": true,
                    "vm_config": {
                        "vm_id": "palisade",
                        "runtime": "envoy.wasm.runtime.v8",
                        "code": { "local": { "filename": filter.module_path } },
                    },
                    "configuration": {
                        "@type": "type.googleapis.com/google.protobuf.BytesValue",
                        "value": STANDARD.encode(&filter.snapshot),
                    },
                },
            },
        })
    };
    json!({ "resources": gateway.filters.iter().map(resource).collect::<Vec<_>>() })
}
