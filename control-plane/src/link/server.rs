//! The port that gateways connect to: xDS and the node link in one HTTP/2 server.

use std::future::Future;
use std::time::Duration;

use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use super::closing::Closing;
use super::hub::LinkHub;
use crate::xds::Hub;

/// A gateway that vanished without a word is noticed within half a minute.
const KEEPALIVE: Duration = Duration::from_secs(20);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long connections may take to close once their streams have ended.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Serves xDS and the node link on `listener` until `shutdown` completes. Open streams are ended then.
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
    let (stopping, closing) = Closing::new();
    let stopped = closing.clone();
    let server = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .add_service(crate::xds::ads::service_until(hub.clone(), closing.clone()))
        .add_service(crate::xds::ads::ecds_service_until(hub, closing.clone()))
        .add_service(super::service::service_until(link, closing))
        .serve_with_incoming_shutdown(TcpIncoming::from(listener).with_nodelay(Some(true)), async move {
            shutdown.await;
            stopping.send_replace(true);
        });
    let cut = async {
        stopped.closed().await;
        tokio::time::sleep(LAST_WORDS).await;
    };
    tokio::select! {
        result = server => result,
        () = cut => Ok(()),
    }
}
