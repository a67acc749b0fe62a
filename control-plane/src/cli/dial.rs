//! Connections to an admin API, with TLS where its URL says so.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::error::CliError;
use listen;

/// How one control plane is reached.
pub(super) struct Dial {
    /// `host:port`.
    authority: String,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

/// A connection of either kind.
pub(super) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

impl Dial {
    /// Plain HTTP to `host:port`.
    pub(super) fn plain(authority: String) -> Dial {
        Dial { authority, tls: None }
    }

    /// TLS to `host:port`, whose certificate must be one for `host`, signed by an authority in the file `ca` (PEM) or,
    /// without one, by an authority that this system trusts.
    pub(super) fn tls(authority: String, host: &str, ca: Option<&Path>) -> Result<Dial, CliError> {
        let roots = match ca {
            Some(file) => {
                let bytes =
                    std::fs::read(file).map_err(|error| CliError::Io(format!("read {}", file.display()), error))?;
                listen::authorities(file, &bytes).map_err(|error| CliError::Other(error.to_string()))?
            }
            None => system_roots()?,
        };
        // The brackets of an IPv6 address belong to the URL.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host)
            .map_err(|error| CliError::Other(format!("`{authority}` cannot be used for TLS: {error}")))?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| CliError::Other(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Dial { authority, tls: Some((TlsConnector::from(Arc::new(config)), name)) })
    }

    /// A new connection.
    pub(super) async fn connect(&self) -> io::Result<Box<dyn Wire>> {
        let stream = TcpStream::connect(&self.authority).await?;
        let Some((connector, name)) = &self.tls else { return Ok(Box::new(stream)) };
        match connector.connect(name.clone(), stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(io::Error::new(error.kind(), explained(&error))),
        }
    }
}

/// The error of a failed handshake, with a hint for the user.
fn explained(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        // Authorities of the same name tell themselves apart by the signature alone.
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature)) => {
            "its certificate is signed by an authority that is not trusted here; --ca names a file with the right one"
                .to_owned()
        }
        _ => format!("TLS has failed: {error}"),
    }
}

fn system_roots() -> Result<RootCertStore, CliError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Stores of systems hold certificates that are none; each that can be used counts.
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added > 0 {
        return Ok(roots);
    }
    let why = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
    Err(CliError::Other(format!("this system trusts no certificate authority{why}; name a file with one by --ca")))
}
