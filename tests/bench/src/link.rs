//! A worker's end of the node link, without an Envoy around it.

use std::net::SocketAddr;

use snapshot::{Down, Up};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codec::Streaming;

/// Messages that wait for the connection.
const QUEUE: usize = 8;

/// Opens a stream on a connection of its own.
///
/// # Errors
///
/// When the control plane does not take it.
pub async fn connect(control: SocketAddr) -> Result<(mpsc::Sender<Up>, Streaming<Down>), String> {
    let endpoint =
        tonic::transport::Endpoint::from_shared(format!("http://{control}")).map_err(|error| error.to_string())?;
    let channel = endpoint.tcp_nodelay(true).connect().await.map_err(|error| error.to_string())?;
    let mut grpc = tonic::client::Grpc::new(channel);
    grpc.ready().await.map_err(|error| error.to_string())?;
    let (up, receiver) = mpsc::channel(QUEUE);
    let codec = tonic_prost::ProstCodec::<Up, Down>::default();
    let path = tonic::codegen::http::uri::PathAndQuery::from_static("/palisade.v1.NodeLink/Stream");
    let request = tonic::Request::new(ReceiverStream::new(receiver));
    let down = grpc.streaming(request, path, codec).await.map_err(|status| status.to_string())?;
    Ok((up, down.into_inner()))
}
