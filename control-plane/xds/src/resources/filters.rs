//! Filters as ECDS resources.

use envoy_types::pb::envoy::config::core::v3::{
    AsyncDataSource, DataSource, TypedExtensionConfig, async_data_source, data_source,
};
use envoy_types::pb::envoy::extensions::filters::http::wasm::v3::Wasm;
use envoy_types::pb::envoy::extensions::wasm::v3::{FailurePolicy, PluginConfig, VmConfig, plugin_config};
use envoy_types::pb::google::protobuf::{BoolValue, BytesValue};
use envoy_types::util::pack_any;

use super::input::FilterInput;
use crate::parted::PartSet;

/// All filters of a gateway share one VM id, because shared data (bans, windows) is keyed by it.
const VM_ID: &str = "palisade";

/// The name of a filter's resource, and of its place in the listener.
pub(super) fn name(filter: &FilterInput) -> String {
    format!("palisade.{}", filter.name)
}

/// A filter's resource.
pub(super) struct Extension {
    /// The version of the snapshot in it.
    pub version: String,
    /// What Envoy is given.
    pub config: TypedExtensionConfig,
    /// The parts of the snapshot.
    pub parts: PartSet,
}

/// A filter's configuration.
///
/// # Errors
///
/// A snapshot that cannot be opened, is another filter's, or names another link than the gateway has.
pub(super) fn extension(filter: &FilterInput, link_cluster: Option<&str>) -> Result<Extension, String> {
    let (version, parts) =
        check_snapshot(filter, link_cluster).map_err(|error| format!("filter {:?}: {error}", filter.name))?;
    let code = DataSource {
        specifier: Some(data_source::Specifier::Filename(filter.module_path.clone())),
        ..DataSource::default()
    };
    let config = PluginConfig {
        name: name(filter),
        root_id: filter.name.clone(),
        configuration: Some(pack_any(BytesValue { value: filter.snapshot.clone() })),
        // A filter must not panic. Should one do so, the worker gets a new VM after a second instead of answering 503
        // for ever (fail closed) or letting everything pass (fail open).
        failure_policy: FailurePolicy::FailReload.into(),
        // Without this a filter that holds the headers to see the body first hangs the request.
        allow_on_headers_stop_iteration: Some(BoolValue { value: true }),
        vm: Some(plugin_config::Vm::VmConfig(VmConfig {
            vm_id: VM_ID.into(),
            runtime: "envoy.wasm.runtime.v8".into(),
            code: Some(AsyncDataSource { specifier: Some(async_data_source::Specifier::Local(code)) }),
            ..VmConfig::default()
        })),
        ..PluginConfig::default()
    };
    let typed_config = Some(pack_any(Wasm { config: Some(config) }));
    Ok(Extension { version, config: TypedExtensionConfig { name: name(filter), typed_config }, parts })
}

/// The version of a filter's snapshot and the hashes of its parts.
fn check_snapshot(filter: &FilterInput, link_cluster: Option<&str>) -> Result<(String, PartSet), String> {
    let (version, snapshot) = snapshot::open(&filter.snapshot).map_err(|error| error.to_string())?;
    let parts = snapshot.parts.iter().filter_map(|part| part.hash.as_slice().try_into().ok()).collect();
    if snapshot.filter != filter.name {
        return Err(format!("its snapshot was compiled for filter {:?}", snapshot.filter));
    }
    match (snapshot.link, link_cluster) {
        (Some(link), Some(cluster)) if link.cluster == cluster => Ok((version, parts)),
        (Some(link), expected) => Err(format!(
            "its snapshot links to cluster {:?}, the gateway's control plane is {}",
            link.cluster,
            expected.map_or("none".into(), |name| format!("{name:?}"))
        )),
        (None, _) => Ok((version, parts)),
    }
}
