//! The options of `palisade serve` for TLS and for who may connect.

use std::path::PathBuf;
use std::sync::Arc;

use super::kept::{Followed, Kept};
use super::tls::{Alpn, TlsConfig, TlsFiles};
use crate::access::NodeTokens;

/// The files of TLS and of the nodes' tokens. All are followed: what changes is in use a few seconds later, or at once on
/// SIGHUP.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ListenOptions {
    /// The certificate of the admin API, with those between it and its authority, in PEM. Without it: plain HTTP.
    #[arg(long, env = "PALISADE_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// The private key of --tls-cert, in PEM.
    #[arg(long, env = "PALISADE_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// The certificate of the xDS and node port, with those between it and its authority, in PEM. Without it: no TLS.
    #[arg(long, env = "PALISADE_XDS_TLS_CERT", value_name = "FILE", requires = "xds_tls_key")]
    pub xds_tls_cert: Option<PathBuf>,

    /// The private key of --xds-tls-cert, in PEM.
    #[arg(long, env = "PALISADE_XDS_TLS_KEY", value_name = "FILE", requires = "xds_tls_cert")]
    pub xds_tls_key: Option<PathBuf>,

    /// Gateways need a certificate signed by one of the authorities in this file (PEM).
    #[arg(long, env = "PALISADE_XDS_CLIENT_CA", value_name = "FILE", requires = "xds_tls_cert")]
    pub xds_client_ca: Option<PathBuf>,

    /// Gateways need one of the tokens in this file, one on each line, as `authorization: Bearer TOKEN`. Lines that begin
    /// with # count for nothing.
    #[arg(long, env = "PALISADE_NODE_TOKEN_FILE", value_name = "FILE")]
    pub node_token_file: Option<PathBuf>,
}

/// What the options lead to.
#[derive(Clone, Debug, Default)]
pub struct Opened {
    /// TLS of the admin API.
    pub admin: Option<Arc<Kept<TlsConfig>>>,
    /// TLS of the xDS and node port.
    pub xds: Option<Arc<Kept<TlsConfig>>>,
    /// The tokens of nodes.
    pub tokens: Option<Arc<Kept<NodeTokens>>>,
    /// Gateways need a certificate.
    pub client_certificates: bool,
}

impl ListenOptions {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// What is wrong with which file.
    pub fn open(&self) -> Result<Opened, String> {
        let files = |certificate: &Option<PathBuf>, key: &Option<PathBuf>, client: &Option<PathBuf>| {
            let (certificate, key) = (certificate.clone()?, key.clone()?);
            Some(TlsFiles { certificate, key, client_authorities: client.clone() })
        };
        let open = |name, files: Option<TlsFiles>, alpn| {
            files.map(|files| TlsConfig::open(name, files, alpn).map(Arc::new)).transpose()
        };
        Ok(Opened {
            admin: open("admin TLS", files(&self.tls_cert, &self.tls_key, &None), Alpn::Http)?,
            xds: open("xDS TLS", files(&self.xds_tls_cert, &self.xds_tls_key, &self.xds_client_ca), Alpn::Grpc)?,
            tokens: self.node_token_file.clone().map(|file| NodeTokens::open(file).map(Arc::new)).transpose()?,
            client_certificates: self.xds_client_ca.is_some(),
        })
    }
}

impl Opened {
    /// Everything whose files are to be followed.
    #[must_use]
    pub fn followed(&self) -> Vec<Arc<dyn Followed>> {
        let tls = [&self.admin, &self.xds].into_iter().flatten().map(|kept| Arc::clone(kept) as Arc<dyn Followed>);
        tls.chain(self.tokens.iter().map(|kept| Arc::clone(kept) as Arc<dyn Followed>)).collect()
    }

    /// Sets the gauges of how long the certificates still hold.
    pub fn gauge(&self) {
        for (port, kept) in [("admin", &self.admin), ("xds", &self.xds)] {
            if let Some(left) = kept.as_ref().and_then(|kept| kept.current().seconds_left()) {
                #[allow(clippy::cast_precision_loss, reason = "seconds to an expiry are far below 2^52")]
                metrics::gauge!("palisade_tls_certificate_expires_in_seconds", "port" => port).set(left as f64);
            }
        }
    }
}
