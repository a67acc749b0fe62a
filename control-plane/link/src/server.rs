//! The port that gateways connect to: xDS and the node link in one HTTP/2 server.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;

use super::hub::LinkHub;
use listen::{Closing, Door, Gate, Kept, Limits, NodeConnections, NodeTokens, TlsConfig};
use xds::Hub;

/// A gateway that vanished without a word is noticed within half a minute.
const KEEPALIVE: Duration = Duration::from_secs(20);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long connections may take to close once their streams have ended.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The bytes of the headers of a stream, at most: a token among them.
const MAX_HEADER_BYTES: u32 = 32 * 1024;

/// Who may connect, and how.
#[derive(Clone, Debug, Default)]
pub struct NodePort {
    /// TLS, with certificates of clients where its files have authorities for them; `None` is plain HTTP/2.
    pub tls: Option<Arc<Kept<TlsConfig>>>,
    /// Streams need one of these tokens; `None` admits every client.
    pub tokens: Option<Arc<Kept<NodeTokens>>>,
    /// Many gateways share a certificate: who has it is whom it says it is. Otherwise it is the node that the certificate
    /// names.
    pub shared_certificates: bool,
    /// How long a handshake and the first stream may take.
    pub limits: Limits,
}

/// Serves xDS and the node link on `listener`, to every client and without TLS, until `shutdown` completes. Open streams are
/// ended then.
///
/// # Errors
///
/// What the transport could not go on with.
pub async fn serve(
    listener: TcpListener,
    hub: Hub,
    link: LinkHub,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), tonic::transport::Error> {
    serve_with(NodePort::default(), listener, hub, link, shutdown).await
}

/// [`serve`] to those whom `port` lets in.
///
/// # Errors
///
/// What the transport could not go on with.
pub async fn serve_with(
    port: NodePort,
    listener: TcpListener,
    hub: Hub,
    link: LinkHub,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), tonic::transport::Error> {
    let door = Door::new("xds", listener, port.tls, port.limits.handshake);
    let gate = Gate::new(port.tokens);
    let (stopping, closing) = Closing::new();
    let stopped = closing.clone();
    let server = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .http2_max_header_list_size(Some(MAX_HEADER_BYTES))
        .add_service(InterceptedService::new(xds::ads::service_until(hub.clone(), closing.clone()), gate.clone()))
        .add_service(InterceptedService::new(xds::ads::ecds_service_until(hub, closing.clone()), gate.clone()))
        .add_service(InterceptedService::new(super::service::service_until(link, closing), gate))
        .serve_with_incoming_shutdown(
            NodeConnections::new(door, port.limits.opening, !port.shared_certificates),
            async move {
                shutdown.await;
                stopping.send_replace(true);
            },
        );
    let cut = async {
        stopped.closed().await;
        tokio::time::sleep(LAST_WORDS).await;
    };
    tokio::select! {
        result = server => result,
        () = cut => Ok(()),
    }
}
