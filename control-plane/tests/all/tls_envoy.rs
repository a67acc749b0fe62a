//! A real Envoy that is let in by its certificate and its token, and so are the links of its filters.

use crate::xds_support;

use std::path::Path;
use std::sync::Arc;

use crate::tls_support::Authority;
use crate::xds_support::{ControlPlane, Envoy, backend, gateway, get, preset, until};
use link::NodePort;
use listen::NodeTokens;
use listen::{Alpn, Followed as _, Look, TlsConfig, TlsFiles};
use serde_json::Value;
use snapshot::Step;
use xds::bootstrap::{BootstrapInput, CONTROL_PLANE_CLUSTER, ControlPlaneTls, NODE_TOKEN_SECRET, bootstrap};
use xds::resources::{FilterInput, build};

/// Puts `envoy/node-token.yaml` with this token in the place of the one before.
fn put_token(file: &Path, token: &str) {
    let shipped = std::fs::read_to_string(xds_support::repository().join("envoy/node-token.yaml")).unwrap();
    assert!(shipped.contains("inline_string: TOKEN"));
    let fresh = file.with_extension("new");
    std::fs::write(&fresh, shipped.replace("inline_string: TOKEN", &format!("inline_string: {token}"))).unwrap();
    std::fs::rename(&fresh, file).unwrap();
}

/// Waits until the filter has said over its link that it runs `version`.
async fn runs(control_plane: &ControlPlane, version: &str) {
    until("the filter's report", async || {
        let nodes = control_plane.hub.nodes();
        let filters = &nodes.first()?.filters;
        filters.iter().any(|status| status.version == version && status.error.is_empty()).then_some(())
    })
    .await;
}

fn version(filter: &FilterInput) -> String {
    snapshot::open(&filter.snapshot).unwrap().0.to_owned()
}

/// `envoy/xds-tls.yaml` with its placeholders filled in.
fn shipped(port: u16, folder: &Path) -> Value {
    let file = xds_support::repository().join("envoy/xds-tls.yaml");
    let mut text = std::fs::read_to_string(file).unwrap();
    for (placeholder, value) in [
        ("address: control-plane.example, port_value: 18000", format!("address: 127.0.0.1, port_value: {port}")),
        ("control-plane.example", "control-plane.test".to_owned()),
        ("id: gateway-1", "id: test-node".to_owned()),
        ("port_value: 9901", "port_value: 0".to_owned()),
        ("/etc/palisade/control-plane-ca.pem", folder.join("servers-ca.pem").display().to_string()),
        ("/etc/palisade/node-token.yaml", folder.join("token.yaml").display().to_string()),
        ("/etc/palisade", folder.display().to_string()),
    ] {
        assert!(text.contains(placeholder), "{placeholder}");
        text = text.replace(placeholder, &value);
    }
    serde_saphyr::from_str(&text).unwrap()
}

/// What the library makes for the same gateway.
fn made(port: u16, folder: &Path) -> Value {
    let text = |name: &str| folder.join(name).display().to_string();
    bootstrap(&BootstrapInput {
        node_id: "test-node".into(),
        admin: Some(("127.0.0.1".into(), 0)),
        control_plane: ("127.0.0.1".into(), port),
        tls: Some(ControlPlaneTls {
            authorities: text("servers-ca.pem"),
            server_name: "control-plane.test".into(),
            certificate: Some((text("gateway.pem"), text("gateway.key"))),
        }),
        token_file: Some(text("token.yaml")),
        ..BootstrapInput::default()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn envoy_and_its_filters_are_let_in_by_certificate_and_token() {
    are_let_in(made).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shipped_bootstrap_is_let_in_by_certificate_and_token() {
    are_let_in(shipped).await;
}

async fn are_let_in(bootstrap: fn(u16, &Path) -> Value) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (servers, gateways) = (Authority::new(), Authority::new());
    let (certificate, key) = servers.issue("control-plane.test").write(folder.path(), "server");
    gateways.issue("test-node").write(folder.path(), "gateway");
    std::fs::write(path("servers-ca.pem"), servers.pem()).unwrap();
    std::fs::write(path("gateways-ca.pem"), gateways.pem()).unwrap();
    std::fs::write(path("tokens"), "first-token-0123456789\n").unwrap();
    put_token(&path("token.yaml"), "first-token-0123456789");
    let files = TlsFiles { certificate, key, client_authorities: Some(path("gateways-ca.pem")) };
    let tokens = Arc::new(NodeTokens::open(path("tokens")).unwrap());
    let port = NodePort {
        tls: Some(Arc::new(TlsConfig::open("xDS TLS", files, Alpn::Grpc).unwrap())),
        tokens: Some(Arc::clone(&tokens)),
        ..NodePort::default()
    };
    let control_plane = ControlPlane::start_with(port, Vec::new()).await;
    let backend = backend("served").await;
    let publish = |filter: &FilterInput| {
        let mut described = gateway(backend, vec![filter.clone()]);
        described.control_plane_cluster = Some(CONTROL_PLANE_CLUSTER.into());
        control_plane.hub.publish(build(&described).unwrap());
    };
    let first = preset(Vec::new());
    publish(&first);
    let envoy = Envoy::start_with(&bootstrap(control_plane.address.port(), folder.path())).await;
    let listener = envoy.listener().await;
    until("the first answer", async || get(listener, "a", "/").await.filter(|answer| answer.1 == "served")).await;
    runs(&control_plane, &version(&first)).await;

    // A new token: first both are taken, then the gateway gets it, then the old one goes, and every stream with it.
    std::fs::write(path("tokens"), "second-token-0123456789\nfirst-token-0123456789\n").unwrap();
    assert_eq!(tokens.look(true), Look::Renewed);
    put_token(&path("token.yaml"), "second-token-0123456789");
    until("Envoy has read the token", async || {
        let (_, body) = get(envoy.admin, "localhost", "/stats?filter=sds.palisade-node-token.update_success").await?;
        (body.trim().rsplit(' ').next()? != "1").then_some(())
    })
    .await;
    std::fs::write(path("tokens"), "second-token-0123456789\n").unwrap();
    assert_eq!(tokens.look(true), Look::Renewed);
    let second = preset(vec![Step { plugin: "threat-gate".into(), ..Step::default() }]);
    publish(&second);
    runs(&control_plane, &version(&second)).await;
    assert_eq!(get(listener, "a", "/").await, Some((200, "served".into())), "{}", envoy.log());

    // What operators pass around does not show it.
    let (_, dump) = get(envoy.admin, "localhost", "/config_dump").await.unwrap();
    assert!(dump.contains(NODE_TOKEN_SECRET) && !dump.contains("second-token"), "the token is in the dump");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envoy_with_a_wrong_token_gets_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokens"), "first-token-0123456789\n").unwrap();
    put_token(&folder.path().join("token.yaml"), "wrong-token-0123456789");
    let tokens = Arc::new(NodeTokens::open(folder.path().join("tokens")).unwrap());
    let port = NodePort { tokens: Some(tokens), ..NodePort::default() };
    let control_plane = ControlPlane::start_with(port, Vec::new()).await;
    control_plane.hub.publish(build(&gateway(backend("served").await, Vec::new())).unwrap());
    let envoy = Envoy::start_with(&bootstrap(&BootstrapInput {
        node_id: "test-node".into(),
        admin: Some(("127.0.0.1".into(), 0)),
        control_plane: ("127.0.0.1".into(), control_plane.address.port()),
        token_file: Some(folder.path().join("token.yaml").display().to_string()),
        ..BootstrapInput::default()
    }))
    .await;
    until("the refusal", async || envoy.log().contains("closed: 16, the%20node%20token").then_some(())).await;
    assert!(control_plane.hub.nodes().is_empty(), "it was let in");
    put_token(&folder.path().join("token.yaml"), "first-token-0123456789");
    until("the node", async || control_plane.hub.nodes().first().filter(|node| node.connected).map(|_| ())).await;
}
