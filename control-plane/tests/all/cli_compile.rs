//! `palisade compile` makes of a folder what a control plane pushes for the same entities.

use std::fs;
use std::path::Path;

use crate::cli_support::{Server, palisade, text};
use envoy_types::pb::envoy::config::core::v3::{Node, TypedExtensionConfig};
use envoy_types::pb::envoy::extensions::filters::http::wasm::v3::Wasm;
use envoy_types::pb::envoy::service::discovery::v3::DiscoveryRequest;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use envoy_types::pb::google::protobuf::BytesValue;
use prost::Message as _;
use xds::Kind;

const GLOBAL: &str = "gateway: {filters: [threat-gate, waf, threat-response]}\ngroups: {eu: {filters: [preset]}}\n";

/// The snapshot that a server pushes to a node of a group for a filter.
async fn pushed(address: &str, group: &str, filter: &str) -> Vec<u8> {
    let mut client = AggregatedDiscoveryServiceClient::connect(format!("http://{address}")).await.unwrap();
    let (requests, queue) = tokio::sync::mpsc::channel(1);
    let node = Some(Node { id: "test".to_owned(), cluster: group.to_owned(), ..Node::default() });
    let resource_names = vec![format!("palisade.{filter}")];
    let type_url = Kind::Extension.type_url().to_owned();
    requests.send(DiscoveryRequest { node, resource_names, type_url, ..DiscoveryRequest::default() }).await.unwrap();
    let queue = tokio_stream::wrappers::ReceiverStream::new(queue);
    let mut answers = client.stream_aggregated_resources(queue).await.unwrap().into_inner();
    let answer = answers.message().await.unwrap().unwrap();
    let extension = TypedExtensionConfig::decode(answer.resources[0].value.as_slice()).unwrap();
    let wasm = Wasm::decode(extension.typed_config.unwrap().value.as_slice()).unwrap();
    BytesValue::decode(wasm.config.unwrap().configuration.unwrap().value.as_slice()).unwrap().value
}

#[tokio::test(flavor = "multi_thread")]
async fn compile_makes_the_very_bytes_that_the_server_pushes() {
    let folder = tempfile::tempdir().unwrap();
    let (data, entities) = (folder.path().join("data"), folder.path().join("entities"));
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../envoy/entities");
    for (file, text) in [
        ("routes/demo.yaml", fs::read_to_string(examples.join("routes/demo.yaml")).unwrap()),
        ("threat-policies/demo.yaml", fs::read_to_string(examples.join("threat-policies/demo.yaml")).unwrap()),
        ("waf-configs/demo.yaml", fs::read_to_string(examples.join("waf-configs/demo.yaml")).unwrap()),
        ("global-config/global.yaml", GLOBAL.to_owned()),
        ("routes/europe.yaml", "groups: [eu]\nplugins: [{plugin: SvcThreatGate}]\n".to_owned()),
    ] {
        let file = entities.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let server = Server::start(&data);
    let applied = palisade(&["apply", entities.to_str().unwrap(), "--url", &format!("http://{}", server.rest)])
        .arg("--key-file")
        .arg(data.join("admin-key.json"))
        .output()
        .unwrap();
    assert!(applied.status.success(), "{}{}", text(&applied.stdout), text(&applied.stderr));
    // What came out of the server again compiles to the same as well.
    let exported = folder.path().join("exported");
    let out = palisade(&["export", exported.to_str().unwrap(), "--url", &format!("http://{}", server.rest)])
        .arg("--key-file")
        .arg(data.join("admin-key.json"))
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let default = ["threat-gate", "waf", "threat-response"].map(|filter| ("default", filter));
    for (group, filter) in default.into_iter().chain([("eu", "preset")]) {
        let mut compiled = Vec::new();
        for source in [&entities, &exported] {
            let file = folder.path().join("snapshot");
            let out = palisade(&[
                "compile",
                "--link",
                "--filter",
                filter,
                "--group",
                group,
                "--entities",
                source.to_str().unwrap(),
            ])
            .arg("--out")
            .arg(&file)
            .output()
            .unwrap();
            assert!(out.status.success(), "{}{}", text(&out.stdout), text(&out.stderr));
            compiled.push(fs::read(&file).unwrap());
        }
        assert!(compiled[0] == compiled[1], "{filter}: the exported entities compile to something else");
        // The push may still be under way: the wait is for it, not for a time.
        let mut served = pushed(&server.xds, group, filter).await;
        for _ in 0..3000 {
            if served == compiled[0] {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            served = pushed(&server.xds, group, filter).await;
        }
        assert!(served == compiled[0], "{filter}: {} bytes are pushed, {} compiled", served.len(), compiled[0].len());
    }
}
