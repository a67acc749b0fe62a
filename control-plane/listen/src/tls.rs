//! What a port needs for TLS, made of files.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::server::WebPkiClientVerifier;
use rustls::sign::SingleCertAndKey;

use super::certificate::{certified_key, expiry, provider, read_authorities};
use super::error::ListenError;
use super::kept::Kept;
use base::clock;

/// The files of a port, all PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, then those between it and its authority.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
    /// Clients need a certificate signed by one of these authorities; `None` for no client certificates.
    pub client_authorities: Option<PathBuf>,
}

/// The protocols that a port offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alpn {
    /// HTTP/2 and HTTP/1.1: the admin API.
    Http,
    /// HTTP/2 alone: gRPC.
    Grpc,
}

/// The settings of a port's TLS connections: TLS 1.2 and 1.3.
#[derive(Clone)]
pub struct TlsConfig {
    pub(super) server: Arc<rustls::ServerConfig>,
    expires: Option<u64>,
}

impl TlsConfig {
    /// The settings made of these files, which follow the files once they are among those of [`super::follow`]. `name`
    /// tells logs and metrics which port it is.
    ///
    /// # Errors
    ///
    /// What is wrong with which file.
    pub fn open(name: &'static str, files: TlsFiles, alpn: Alpn) -> Result<Kept<TlsConfig>, ListenError> {
        let mut paths = vec![files.certificate.clone(), files.key.clone()];
        paths.extend(files.client_authorities.clone());
        Kept::open(name, paths, move |contents| {
            let config = TlsConfig::new(&files, contents, alpn)?;
            config.tell(name, &files);
            Ok(config)
        })
    }

    /// Seconds until the certificate ends, negative once it has; `None` where that is not known.
    #[must_use]
    pub fn seconds_left(&self) -> Option<i64> {
        let now = i64::try_from(clock::now_millis() / 1000).unwrap_or(i64::MAX);
        self.expires.map(|at| i64::try_from(at).unwrap_or(i64::MAX).saturating_sub(now))
    }

    fn new(files: &TlsFiles, contents: &[Vec<u8>], alpn: Alpn) -> Result<TlsConfig, String> {
        let bytes = |at: usize| contents.get(at).map(Vec::as_slice).unwrap_or_default();
        let key = certified_key((&files.certificate, &files.key), (bytes(0), bytes(1)))?;
        let expires = key.cert.first().and_then(expiry);
        let builder = rustls::ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let builder = match &files.client_authorities {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let roots = Arc::new(read_authorities(file, bytes(2))?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
                let verifier = verifier.map_err(|error| format!("{}: {error}", file.display()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut server = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(key)));
        server.alpn_protocols = match alpn {
            Alpn::Http => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            Alpn::Grpc => vec![b"h2".to_vec()],
        };
        Ok(TlsConfig { server: Arc::new(server), expires })
    }

    fn tell(&self, name: &str, files: &TlsFiles) {
        let file = files.certificate.display();
        match (self.expires, self.seconds_left()) {
            (Some(at), Some(left)) => {
                let at = clock::rfc3339(at.saturating_mul(1000));
                if left <= 0 {
                    tracing::warn!("{name}: the certificate in {file} has expired, at {at}");
                } else {
                    tracing::info!("{name}: the certificate in {file} is valid until {at}");
                }
            }
            _ => tracing::info!("{name}: the expiry of the certificate in {file} is unknown"),
        }
    }
}

impl fmt::Debug for TlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the key.
        f.debug_struct("TlsConfig").field("expires", &self.expires).finish_non_exhaustive()
    }
}
