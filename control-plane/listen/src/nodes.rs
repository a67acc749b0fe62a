//! The connections of the xDS and node port, for the gRPC server.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep};
use tokio_stream::Stream;
use tonic::transport::server::Connected;

use super::certificate::node_names;
use super::connection::Connection;
use super::door::{Door, PAUSE};
use super::node_names::NodeNames;

/// Handshakes that are under way at the same time; more connections wait to be accepted.
const HANDSHAKES: usize = 512;

/// Accepts connections, does their handshakes side by side, and hands over those that succeed.
pub struct NodeConnections {
    door: Door,
    opening: Duration,
    /// Certificates of clients name their nodes.
    binds: bool,
    handshakes: JoinSet<Option<NodeConnection>>,
    pause: Option<Pin<Box<Sleep>>>,
}

/// A connection that is closed if no stream is admitted within a time.
pub struct NodeConnection {
    connection: Connection,
    peer: Peer,
    opening: Option<Pin<Box<Sleep>>>,
}

/// Who has connected; an extension of every request of the connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The address that it connects from.
    pub address: SocketAddr,
    /// The nodes that its certificate is for, where one was asked for and it binds.
    pub names: Option<Arc<NodeNames>>,
    admitted: Arc<AtomicBool>,
}

impl NodeConnections {
    /// The connections of `door`, which have `opening` for their first stream. Where `binds` says so, a client with a
    /// certificate is the node that it names.
    pub fn new(door: Door, opening: Duration, binds: bool) -> NodeConnections {
        NodeConnections { door, opening, binds, handshakes: JoinSet::new(), pause: None }
    }
}

impl Stream for NodeConnections {
    type Item = io::Result<NodeConnection>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            match this.handshakes.poll_join_next(cx) {
                Poll::Ready(Some(Ok(Some(connection)))) => return Poll::Ready(Some(Ok(connection))),
                Poll::Ready(Some(_)) => continue,
                Poll::Ready(None) | Poll::Pending => {}
            }
            if this.handshakes.len() >= HANDSHAKES {
                return Poll::Pending;
            }
            if let Some(pause) = &mut this.pause {
                std::task::ready!(pause.as_mut().poll(cx));
                this.pause = None;
            }
            match std::task::ready!(this.door.poll_accept(cx)) {
                Ok((stream, address)) => {
                    let (welcome, opening, binds) = (this.door.welcome(), this.opening, this.binds);
                    this.handshakes.spawn(async move {
                        let connection = welcome.connection(stream, address).await?;
                        let certificate = connection.client_certificate().filter(|_| binds);
                        let names = certificate.map(|certificate| Arc::new(node_names(certificate)));
                        let peer = Peer { address, names, admitted: Arc::default() };
                        Some(NodeConnection { connection, peer, opening: Some(Box::pin(sleep(opening))) })
                    });
                }
                Err(_) => this.pause = Some(Box::pin(sleep(PAUSE))),
            }
        }
    }
}

impl Peer {
    /// A stream of this connection was let in: it may stay.
    pub fn admit(&self) {
        self.admitted.store(true, Ordering::Relaxed);
    }
}

impl Connected for NodeConnection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for NodeConnection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Some(opening) = &mut this.opening {
            if this.peer.admitted.load(Ordering::Relaxed) {
                this.opening = None;
            } else if opening.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "no stream was admitted in time")));
            }
        }
        Pin::new(&mut this.connection).poll_read(cx, buffer)
    }
}

impl AsyncWrite for NodeConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(cx)
    }
}
