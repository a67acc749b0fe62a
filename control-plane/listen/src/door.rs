//! Accepts the connections of a port and does the TLS handshake.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::connection::Connection;
use super::kept::Kept;
use super::tls::TlsConfig;
use crate::Throttle;
use base::clock;

/// How long nothing is accepted after the system had no means for another connection, such as a file descriptor.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// A port with its TLS, if it has one.
pub struct Door {
    listener: TcpListener,
    welcome: Welcome,
}

/// What is done with a connection that was accepted. Cheap to clone.
#[derive(Clone)]
pub(super) struct Welcome {
    /// Which port it is, for logs and metrics.
    pub(super) port: &'static str,
    tls: Option<Arc<Kept<TlsConfig>>>,
    handshake: Duration,
    /// Which addresses were complained of lately.
    complaints: Arc<Throttle>,
}

impl Door {
    /// A door to `listener`, which is `port` (`admin`, `xds`) in logs and metrics; without `tls` connections are taken as
    /// they are. A handshake may take as long as `handshake`.
    #[must_use]
    pub fn new(
        port: &'static str,
        listener: TcpListener,
        tls: Option<Arc<Kept<TlsConfig>>>,
        handshake: Duration,
    ) -> Door {
        Door { listener, welcome: Welcome { port, tls, handshake, complaints: Arc::new(Throttle::after(0)) } }
    }

    pub(super) fn welcome(&self) -> Welcome {
        self.welcome.clone()
    }

    /// The next connection, before its handshake. An error is one of the system's means and worth a [`PAUSE`].
    pub(super) fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        loop {
            match std::task::ready!(self.listener.poll_accept(cx)) {
                Ok((stream, peer)) => {
                    // Fails only on a connection that is gone, which its first use tells.
                    let _gone = stream.set_nodelay(true);
                    return Poll::Ready(Ok((stream, peer)));
                }
                Err(error) if is_of_the_connection(&error) => {}
                Err(error) => {
                    tracing::error!(port = self.welcome.port, %error, "no connection can be accepted; trying again");
                    return Poll::Ready(Err(error));
                }
            }
        }
    }
}

impl Welcome {
    /// Does the handshake with the certificate that is the newest now. `None` when it fails or takes too long.
    pub(super) async fn connection(&self, stream: TcpStream, peer: SocketAddr) -> Option<Connection> {
        let Some(tls) = &self.tls else {
            return Some(Connection::Plain(stream));
        };
        let acceptor = TlsAcceptor::from(Arc::clone(&tls.current().server));
        match tokio::time::timeout(self.handshake, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => Some(Connection::Tls(Box::new(stream))),
            Ok(Err(error)) => self.complain(peer, "failed", &error.to_string()),
            Err(_) => self.complain(peer, "timeout", "it took too long"),
        }
    }

    fn complain(&self, peer: SocketAddr, reason: &'static str, why: &str) -> Option<Connection> {
        metrics::counter!("palisade_tls_handshake_failures_total", "port" => self.port, "reason" => reason)
            .increment(1);
        // The first of an address within a minute: scanners and health checks would else fill the log.
        if self.complaints.failed(peer.ip(), clock::now_millis()).is_some_and(|wait| wait.first) {
            tracing::warn!(port = self.port, %peer, why, "a TLS handshake failed; further ones of this address are only counted");
        }
        None
    }
}

/// Whether an error of accepting is one of that connection alone.
fn is_of_the_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door").field("port", &self.welcome.port).field("tls", &self.welcome.tls).finish_non_exhaustive()
    }
}
