//! A real Envoy whose listener has its certificate from an SDS secret, and uses a renewed one.

use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use entities::{ServerTls, TlsSecret};
use envoy_types::pb::envoy::config::core::v3::{DataSource, data_source};
use envoy_types::pb::envoy::extensions::transport_sockets::tls::v3::{Secret, TlsCertificate, secret};
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use envoy_types::pb::envoy::service::secret::v3::secret_discovery_service_server::{
    SecretDiscoveryService, SecretDiscoveryServiceServer,
};
use envoy_types::util::pack_any;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use crate::tls_support::{Authority, Issued, connect, connector, shown};
use crate::xds_support::{ControlPlane, Envoy, backend, gateway, until};
use link::NodePort;
use xds::bootstrap::{BootstrapInput, bootstrap};
use xds::resources::build;

const SECRET: &str = "shop";
const SECRET_TYPE: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
const CLUSTER: &str = "secrets";

/// Puts a secret in the place of the one before.
fn put(file: &Path, issued: &Issued) {
    let secret = json!({
        "@type": SECRET_TYPE, "name": SECRET,
        "tls_certificate": {
            "certificate_chain": { "inline_string": issued.certificate }, "private_key": { "inline_string": issued.key },
        },
    });
    let fresh = file.with_extension("new");
    std::fs::write(&fresh, json!({ "resources": [secret] }).to_string()).unwrap();
    std::fs::rename(&fresh, file).unwrap();
}

/// The answer of a server with a secret.
fn answer(issued: &Issued, version: &str) -> DiscoveryResponse {
    let inline = |text: &str| {
        Some(DataSource {
            specifier: Some(data_source::Specifier::InlineString(text.to_owned())),
            ..DataSource::default()
        })
    };
    let certificate = TlsCertificate {
        certificate_chain: inline(&issued.certificate),
        private_key: inline(&issued.key),
        ..TlsCertificate::default()
    };
    let secret = Secret { name: SECRET.into(), r#type: Some(secret::Type::TlsCertificate(certificate)) };
    DiscoveryResponse {
        version_info: version.into(),
        nonce: version.into(),
        type_url: SECRET_TYPE.into(),
        resources: vec![pack_any(secret)],
        ..DiscoveryResponse::default()
    }
}

/// A server of one secret.
struct Secrets(watch::Receiver<DiscoveryResponse>);

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl SecretDiscoveryService for Secrets {
    type DeltaSecretsStream = Answers<DeltaDiscoveryResponse>;
    type StreamSecretsStream = Answers<DiscoveryResponse>;

    async fn delta_secrets(
        &self,
        _request: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaSecretsStream>, Status> {
        Err(Status::unimplemented("whole answers alone"))
    }

    async fn stream_secrets(
        &self,
        _request: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamSecretsStream>, Status> {
        Ok(Response::new(Box::pin(WatchStream::new(self.0.clone()).map(Ok))))
    }

    async fn fetch_secrets(&self, _request: Request<DiscoveryRequest>) -> Result<Response<DiscoveryResponse>, Status> {
        Err(Status::unimplemented("streams alone"))
    }
}

/// A gateway whose listener ends TLS with a secret; `clusters` are more of its bootstrap.
async fn served(secret: TlsSecret, clusters: &[Value]) -> (ControlPlane, Envoy, SocketAddr) {
    let control_plane = ControlPlane::start_with(NodePort::default(), Vec::new()).await;
    let mut described = gateway(backend("served").await, Vec::new());
    described.listener.tls = Some(ServerTls { sds: Some(secret), ..ServerTls::default() });
    control_plane.hub.publish(build(&described).unwrap());
    let mut bootstrap = bootstrap(&BootstrapInput {
        node_id: "test-node".into(),
        admin: Some(("127.0.0.1".into(), 0)),
        control_plane: ("127.0.0.1".into(), control_plane.address.port()),
        ..BootstrapInput::default()
    });
    bootstrap["static_resources"]["clusters"].as_array_mut().unwrap().extend_from_slice(clusters);
    let envoy = Envoy::start_with(&bootstrap).await;
    let listener = envoy.listener().await;
    (control_plane, envoy, listener)
}

/// Waits until the listener shows a certificate.
async fn shows(authority: &Authority, listener: SocketAddr, issued: &Issued, envoy: &Envoy) {
    let client = connector(authority, None, &["http/1.1"]);
    let waits = until("the certificate", async || {
        let stream = connect(&client, listener).await.ok()?;
        (shown(&stream) == issued.der()).then_some(())
    });
    let in_time = tokio::time::timeout(Duration::from_secs(20), waits).await;
    assert!(in_time.is_ok(), "{}", envoy.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_has_its_certificate_from_a_secret_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sds.json");
    let authority = Authority::new();
    let (first, second) = (authority.issue("127.0.0.1"), authority.issue("127.0.0.1"));
    put(&file, &first);
    let secret = TlsSecret { name: SECRET.into(), file: file.display().to_string(), ..TlsSecret::default() };
    let (_control_plane, envoy, listener) = served(secret, &[]).await;
    shows(&authority, listener, &first, &envoy).await;
    put(&file, &second);
    shows(&authority, listener, &second, &envoy).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_has_its_certificate_from_a_cluster_of_the_bootstrap() {
    let authority = Authority::new();
    let (first, second) = (authority.issue("127.0.0.1"), authority.issue("127.0.0.1"));
    let (renew, secrets) = watch::channel(answer(&first, "1"));
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = server.local_addr().unwrap().port();
    let service = SecretDiscoveryServiceServer::new(Secrets(secrets));
    tokio::spawn(Server::builder().add_service(service).serve_with_incoming(TcpIncoming::from(server)));
    let address = json!({ "socket_address": { "address": "127.0.0.1", "port_value": port } });
    let cluster = json!({
        "name": CLUSTER,
        "type": "STATIC",
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": { "http2_protocol_options": {} },
            },
        },
        "load_assignment": {
            "cluster_name": CLUSTER,
            "endpoints": [{ "lb_endpoints": [{ "endpoint": { "address": address } }] }],
        },
    });
    let secret = TlsSecret { name: SECRET.into(), cluster: CLUSTER.into(), ..TlsSecret::default() };
    let (_control_plane, envoy, listener) = served(secret, &[cluster]).await;
    shows(&authority, listener, &first, &envoy).await;
    renew.send(answer(&second, "2")).unwrap();
    shows(&authority, listener, &second, &envoy).await;
}
