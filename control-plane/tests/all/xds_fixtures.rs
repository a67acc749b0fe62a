//! The golden resources in xds-fixtures: what the control plane must produce, in a form that Envoy itself reads.
//!
//! `UPDATE_FIXTURES=1` writes them anew. Each is then served to a real Envoy, which must take it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::xds_support::{ControlPlane, Envoy, noop_module, repository, sealed, until};
use envoy_types::pb::google::protobuf::Any;
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage, SerializeOptions};
use serde_json::{Value, json};
use xds::resources::{BackendInput, BackendTls, FilterInput, Gateway, ListenerSettings, RouteInput, build};
use xds::{Kind, ResourceSet};

/// Where a gateway of the fixtures has its modules.
const MODULES: &str = "/usr/lib/palisade";

fn minimal() -> Gateway {
    Gateway {
        listener: ListenerSettings::default(),
        routes: vec![RouteInput {
            id: "route_all".into(),
            envoy_route: "all".into(),
            backend: Some(BackendInput { address: "127.0.0.1".into(), port: 9000, ..BackendInput::default() }),
            ..RouteInput::default()
        }],
        filters: vec![filter("preset")],
        control_plane_cluster: None,
        ecds_only: false,
    }
}

fn full() -> Gateway {
    let shop = RouteInput {
        id: "route_shop".into(),
        envoy_route: "shop".into(),
        hosts: vec!["shop.example.com".into(), "*.shop.example.com".into()],
        paths: vec!["/".into(), "/static/".into()],
        backend: Some(BackendInput {
            address: "localhost".into(),
            port: 8443,
            tls: Some(BackendTls { server_name: "shop.internal".into(), ..BackendTls::default() }),
            http2: true,
            timeout_millis: 30_000,
        }),
        metadata: BTreeMap::from([
            ("svc-api-contract".into(), "api-contract_shop".into()),
            ("svc-policy".into(), "threat-policy_default".into()),
        ]),
    };
    let other = RouteInput {
        id: "route_api".into(),
        envoy_route: "api".into(),
        paths: vec!["/api/".into()],
        backend: Some(BackendInput {
            address: "192.0.2.10".into(),
            port: 80,
            timeout_millis: 2_500,
            ..BackendInput::default()
        }),
        ..RouteInput::default()
    };
    Gateway {
        listener: ListenerSettings {
            access_log: Some("/dev/stdout".into()),
            buffer_limit_bytes: 8_388_608,
            xff_num_trusted_hops: 1,
            removed_headers: vec!["x-user".into()],
            ..ListenerSettings::default()
        },
        routes: vec![shop, other],
        filters: vec![filter("threat-gate"), filter("waf"), filter("threat-response")],
        control_plane_cluster: None,
        ecds_only: false,
    }
}

fn filter(name: &str) -> FilterInput {
    FilterInput {
        name: name.into(),
        module_path: format!("{MODULES}/{name}.wasm"),
        snapshot: sealed(name, "x-api-key"),
    }
}

fn file_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Cluster => "cds.json",
        Kind::Listener => "lds.json",
        Kind::Route => "rds.json",
        Kind::Extension => "ecds.json",
    }
}

/// Envoy's own descriptions of its messages, from the crate that the resources are built with.
fn descriptors() -> DescriptorPool {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let package = metadata["packages"].as_array().unwrap().iter().find(|package| package["name"] == "envoy-types");
    let manifest = PathBuf::from(package.unwrap()["manifest_path"].as_str().unwrap());
    let protos = manifest.parent().unwrap().join("proto");
    let folders = ["data-plane-api", "xds", "googleapis", "protoc-gen-validate", "client_model", "cel-spec/proto"];
    let mut compiler = protox::Compiler::new(folders.map(|folder| protos.join(folder))).unwrap();
    compiler.include_imports(true);
    compiler
        .open_files([
            "envoy/config/cluster/v3/cluster.proto",
            "envoy/config/listener/v3/listener.proto",
            "envoy/config/route/v3/route.proto",
            "envoy/extensions/access_loggers/file/v3/file.proto",
            "envoy/extensions/access_loggers/filters/cel/v3/cel.proto",
            "envoy/extensions/filters/http/router/v3/router.proto",
            "envoy/extensions/filters/http/wasm/v3/wasm.proto",
            "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.proto",
            "envoy/extensions/http/early_header_mutation/header_mutation/v3/header_mutation.proto",
            "envoy/extensions/transport_sockets/tls/v3/tls.proto",
            "envoy/extensions/upstreams/http/v3/http_protocol_options.proto",
        ])
        .unwrap();
    DescriptorPool::from_file_descriptor_set(compiler.file_descriptor_set()).unwrap()
}

/// The resources of a kind as the JSON of a discovery response, which is also what Envoy reads from files.
fn response(pool: &DescriptorPool, set: &ResourceSet, kind: Kind) -> String {
    let any = pool.get_message_by_name("google.protobuf.Any").unwrap();
    let options = SerializeOptions::new().use_proto_field_name(true);
    let resources: Vec<Value> = set
        .iter(kind)
        .map(|(_, resource)| {
            let mut message = DynamicMessage::new(any.clone());
            message.set_field_by_name("type_url", prost_reflect::Value::String(resource.body.type_url.clone()));
            message.set_field_by_name("value", prost_reflect::Value::Bytes(resource.body.value.clone().into()));
            message.serialize_with_options(serde_json::value::Serializer, &options).unwrap()
        })
        .collect();
    let mut document = json!({ "resources": resources });
    document.sort_all_objects();
    format!("{document:#}\n")
}

/// Reads what [`response`] wrote, with a module that exists and a port that is free.
fn read_back(pool: &DescriptorPool, folder: &Path) -> ResourceSet {
    let any = pool.get_message_by_name("google.protobuf.Any").unwrap();
    let mut set = ResourceSet::default();
    for kind in Kind::ALL {
        let text = std::fs::read_to_string(folder.join(file_name(kind))).unwrap();
        let mut document: Value = serde_json::from_str(&text).unwrap();
        for resource in document["resources"].as_array_mut().unwrap() {
            let name = resource["name"].as_str().unwrap().to_owned();
            if let Some(port) = resource.pointer_mut("/address/socket_address/port_value") {
                *port = json!(0);
            }
            if let Some(module) = resource.pointer_mut("/typed_config/config/vm_config/code/local/filename") {
                assert!(module.as_str().unwrap().starts_with(MODULES));
                *module = json!(noop_module());
            }
            let options = DeserializeOptions::new();
            let message = DynamicMessage::deserialize_with_options(any.clone(), &*resource, &options).unwrap();
            let field = |name: &str| message.get_field_by_name(name).unwrap().into_owned();
            let (prost_reflect::Value::String(type_url), prost_reflect::Value::Bytes(value)) =
                (field("type_url"), field("value"))
            else {
                panic!("an Any without its two fields")
            };
            set.insert(kind, name, Any { type_url, value: value.to_vec() });
        }
    }
    set
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fixtures_are_what_is_built_and_envoy_takes_them() {
    let pool = descriptors();
    for (name, gateway) in [("minimal", minimal()), ("full", full())] {
        let folder = repository().join("xds-fixtures").join(name);
        let set = build(&gateway).unwrap();
        for kind in Kind::ALL {
            let (path, text) = (folder.join(file_name(kind)), response(&pool, &set, kind));
            if std::env::var_os("UPDATE_FIXTURES").is_some() {
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(&path, &text).unwrap();
            }
            let golden = std::fs::read_to_string(&path).unwrap_or_default();
            let differs = golden.lines().zip(text.lines()).position(|(a, b)| a != b).map_or(0, |line| line + 1);
            assert!(
                golden == text,
                "{} differs from what is built, first in line {differs}; if the change is meant, run this test with UPDATE_FIXTURES=1",
                path.display()
            );
        }

        let control_plane = ControlPlane::start(Vec::new()).await;
        control_plane.hub.publish(read_back(&pool, &folder));
        let envoy = Envoy::start(control_plane.address, true).await;
        until("every type is taken", async || {
            let node = control_plane.hub.nodes().into_iter().next()?;
            let refused: Vec<_> = node.types.iter().filter_map(|status| status.nack.as_ref()).collect();
            assert!(refused.is_empty(), "{name}: {refused:?}");
            let taken = node.types.iter().filter(|status| status.acked_version == status.sent_version).count();
            (taken == Kind::ALL.len()).then_some(())
        })
        .await;
        envoy.listener().await;
    }
}
