//! A worker's end of the node link.

use std::net::SocketAddr;

use hyper_util::rt::TokioIo;
use snapshot::{BanChange, Down, Up};
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Code, Request, Status, Streaming};

use crate::tls_support::connect;

/// A connection over plain HTTP/2.
pub(crate) async fn plain(address: SocketAddr) -> Channel {
    Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap()
}

/// A connection over TLS.
pub(crate) async fn secure(address: SocketAddr, tls: TlsConnector) -> Result<Channel, tonic::transport::Error> {
    let dial = tower::service_fn(move |_: Uri| {
        let tls = tls.clone();
        async move { connect(&tls, address).await.map(TokioIo::new) }
    });
    // The scheme is that of the messages; TLS is the connector's.
    Endpoint::from_shared(format!("http://{address}")).unwrap().connect_with_connector(dial).await
}

/// A message with this `authorization` header.
pub(crate) fn with<T>(message: T, authorization: Option<&str>) -> Request<T> {
    let mut request = Request::new(message);
    if let Some(value) = authorization {
        request.metadata_mut().insert("authorization", value.parse().unwrap());
    }
    request
}

/// A worker whose stream is open for as long as it is kept.
pub(crate) struct Worker {
    pub(crate) up: mpsc::Sender<Up>,
    pub(crate) down: Streaming<Down>,
    /// What it mixes into its random numbers.
    pub(crate) seed: Vec<u8>,
}

impl Worker {
    /// Opens a stream with this `authorization` header, up to the greeting.
    pub(crate) async fn open(channel: Channel, authorization: Option<&str>) -> Result<Worker, Status> {
        let mut grpc = tonic::client::Grpc::new(channel);
        grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let (up, receiver) = mpsc::channel(8);
        let codec = tonic_prost::ProstCodec::<Up, Down>::default();
        let request = with(ReceiverStream::new(receiver), authorization);
        let down = grpc.streaming(request, "/palisade.v1.NodeLink/Stream".parse().unwrap(), codec).await?;
        let mut down = down.into_inner();
        let greeting = down.message().await?.ok_or_else(|| Status::unknown("the stream has ended"))?;
        assert!(greeting.seed.len() == 32 && greeting.bans.is_empty(), "a stream begins with a seed: {greeting:?}");
        Ok(Worker { up, down, seed: greeting.seed })
    }

    /// Opens a stream with this token; it is let in.
    pub(crate) async fn admitted(channel: Channel, token: Option<&str>) -> Worker {
        let authorization = token.map(|token| format!("Bearer {token}"));
        Worker::open(channel, authorization.as_deref()).await.unwrap()
    }

    pub(crate) async fn say(&self, up: Up) {
        self.up.send(up).await.unwrap();
    }

    /// The next message that changes bans: others come between.
    pub(crate) async fn bans(&mut self) -> Vec<BanChange> {
        loop {
            let down = self.down.message().await.unwrap().expect("the stream has ended");
            if !down.bans.is_empty() {
                return down.bans;
            }
        }
    }

    /// How the stream ends.
    pub(crate) async fn end(mut self) -> Code {
        loop {
            match self.down.message().await {
                Ok(Some(_)) => {}
                Ok(None) => return Code::Ok,
                Err(status) => return status.code(),
            }
        }
    }
}
