//! Connections to a server of the operator's own choice that does not speak HTTP. No address is guarded, as in [`Pool`](crate::Pool).

use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::pool::PoolTrust;
use super::tls::{TrustError, client_config};

/// A connection, with TLS or without.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Makes connections. Cheap to clone.
#[derive(Clone)]
pub struct Dialer {
    tls: Option<TlsConnector>,
}

impl Dialer {
    /// One that trusts servers by these certificates; without TLS for [`PoolTrust::NoTls`].
    ///
    /// # Errors
    ///
    /// There are no certificates to trust.
    pub fn new(trust: PoolTrust<'_>) -> Result<Dialer, TrustError> {
        let config = match trust {
            PoolTrust::NoTls => None,
            PoolTrust::System => Some(client_config(None)?),
            PoolTrust::File(file) => Some(client_config(Some(file))?),
        };
        Ok(Dialer { tls: config.map(|config| TlsConnector::from(Arc::new(config))) })
    }

    /// A connection to a host. There is no limit of time.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, or is not trusted under this name.
    pub async fn connect(&self, host: &str, port: u16) -> io::Result<Box<dyn Duplex>> {
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(Box::new(tls.connect(name, stream).await?))
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer").field("tls", &self.tls.is_some()).finish()
    }
}
