//! Whom we trust.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper_rustls::ConfigBuilderExt as _;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, ConfigBuilder, WantsVerifier};
use tokio::sync::OnceCell;

use super::error::{OutboundError, OutboundFault};
use super::target::Target;

/// The certificates that servers are trusted by. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Trust(Arc<OnceCell<Arc<ClientConfig>>>);

/// Why no server can be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustError {
    /// The system has no certificates.
    System(String),
    /// The certificates of the system could not be read.
    Unread(String),
    /// A file holds none that can be used; what is wrong with it.
    File(PathBuf, String),
    /// TLS itself.
    Tls(String),
}

impl fmt::Display for TrustError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrustError::System(error) => {
                write!(f, "the system has no trusted certificates ({error}); install them, or name a file of them")
            }
            TrustError::Unread(error) => write!(f, "the certificates of the system cannot be read: {error}"),
            TrustError::File(file, what) => write!(f, "{} holds no certificates to trust: {what}", file.display()),
            TrustError::Tls(error) => write!(f, "TLS cannot be used: {error}"),
        }
    }
}

impl std::error::Error for TrustError {}

impl Trust {
    /// Those of the system (or of `SSL_CERT_FILE`, `SSL_CERT_DIR`), read when they are first needed.
    #[must_use]
    pub fn system() -> Trust {
        Trust(Arc::new(OnceCell::new()))
    }

    /// Those of a file in PEM, and no others.
    ///
    /// # Errors
    ///
    /// The file cannot be used, in a sentence that names it.
    pub fn file(file: &Path) -> Result<Trust, TrustError> {
        Ok(Trust(Arc::new(OnceCell::new_with(Some(Arc::new(client_config(Some(file))?))))))
    }

    pub(super) async fn config(&self, target: &Target) -> Result<Arc<ClientConfig>, OutboundError> {
        let read = || async {
            // Files are read.
            let reading = tokio::task::spawn_blocking(|| client_config(None));
            reading.await.map_err(|error| TrustError::Unread(error.to_string()))?.map(Arc::new)
        };
        let config = self.0.get_or_try_init(read).await;
        config
            .cloned()
            .map_err(|error: TrustError| OutboundError::new(OutboundFault::Tls, target.origin(), error.to_string()))
    }
}

/// TLS as a client: the certificates in `ca_file` (PEM), or those of the system.
///
/// # Errors
///
/// There are no certificates to trust.
pub fn client_config(ca_file: Option<&Path>) -> Result<ClientConfig, TrustError> {
    let builder = builder()?;
    let Some(file) = ca_file else {
        let with_roots = builder.with_native_roots().map_err(|error| TrustError::System(error.to_string()))?;
        return Ok(with_roots.with_no_client_auth());
    };
    let wrong = |what: String| TrustError::File(file.to_owned(), what);
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| wrong(error.to_string()))? {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(wrong("it contains no PEM certificate".to_owned()));
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// TLS that trusts no server, for calls without TLS.
pub(super) fn client_config_without_trust() -> Result<ClientConfig, TrustError> {
    Ok(builder()?.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}

fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, TrustError> {
    // Named and not taken from the process: another crate may have installed another one.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    builder.map_err(|error| TrustError::Tls(error.to_string()))
}
