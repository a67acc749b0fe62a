//! Whom we trust.

use std::path::Path;
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
    pub fn file(file: &Path) -> Result<Trust, String> {
        Ok(Trust(Arc::new(OnceCell::new_with(Some(Arc::new(client_config(Some(file))?))))))
    }

    pub(super) async fn config(&self, target: &Target) -> Result<Arc<ClientConfig>, OutboundError> {
        let read = || async {
            // Files are read.
            let reading = tokio::task::spawn_blocking(|| client_config(None));
            reading
                .await
                .map_err(|error| format!("the certificates of the system cannot be read: {error}"))?
                .map(Arc::new)
        };
        let config = self.0.get_or_try_init(read).await;
        config.cloned().map_err(|what| OutboundError::new(OutboundFault::Tls, target.origin(), what))
    }
}

/// TLS as a client: the certificates in `ca_file` (PEM), or those of the system.
pub(crate) fn client_config(ca_file: Option<&Path>) -> Result<ClientConfig, String> {
    let builder = builder()?;
    let Some(file) = ca_file else {
        let with_roots = builder.with_native_roots().map_err(|error| {
            format!("the system has no trusted certificates ({error}); install them, or name a file of them")
        })?;
        return Ok(with_roots.with_no_client_auth());
    };
    let wrong = |what: String| format!("{} holds no certificates to trust: {what}", file.display());
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
pub(crate) fn client_config_without_trust() -> Result<ClientConfig, String> {
    Ok(builder()?.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}

fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, String> {
    // Named and not taken from the process: another crate may have installed another one.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    builder.map_err(|error| format!("TLS cannot be used: {error}"))
}
