//! Connections to an admin API, with TLS where its URL says so.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
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

    /// TLS with any certificate: for what neither sends nor believes a secret.
    pub(super) fn unchecked(at: SocketAddr) -> Result<Dial, CliError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| CliError::Other(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = ServerName::IpAddress(at.ip().into());
        Ok(Dial { authority: at.to_string(), tls: Some((TlsConnector::from(Arc::new(config)), name)) })
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

/// Takes every certificate whose holder has its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
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
