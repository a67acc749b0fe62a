//! The options of `palisade serve` for TLS and for who may connect.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use super::error::{ListenError, NodeNameError};
use super::kept::{Followed, Kept};
use super::node_names::NodeNames;
use super::node_tokens::NodeTokens;
use super::tls::{Alpn, TlsConfig, TlsFiles};

/// The files of TLS and of the nodes' tokens. All are followed: what changes is in use a few seconds later, or at once on
/// SIGHUP.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ListenOptions {
    /// The certificate chain of the admin API, in PEM. Without it: plain HTTP.
    #[arg(long, env = "PALISADE_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// The private key of --tls-cert, in PEM.
    #[arg(long, env = "PALISADE_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// The certificate chain of the xDS and node port, in PEM. Without it: no TLS.
    #[arg(long, env = "PALISADE_XDS_TLS_CERT", value_name = "FILE", requires = "xds_tls_key")]
    pub xds_tls_cert: Option<PathBuf>,

    /// The private key of --xds-tls-cert, in PEM.
    #[arg(long, env = "PALISADE_XDS_TLS_KEY", value_name = "FILE", requires = "xds_tls_cert")]
    pub xds_tls_key: Option<PathBuf>,

    /// Gateways need a certificate signed by one of the authorities in this file (PEM).
    #[arg(long, env = "PALISADE_XDS_CLIENT_CA", value_name = "FILE", requires = "xds_tls_cert")]
    pub xds_client_ca: Option<PathBuf>,

    /// Many gateways share a certificate: any of them may claim the id of another. Without this a gateway's id is one of the
    /// names in its certificate (DNS name, URI, else common name).
    #[arg(long, env = "PALISADE_XDS_SHARED_CERTIFICATES", requires = "xds_client_ca")]
    pub xds_shared_certificates: bool,

    /// Gateways need one of the tokens in this file, one on each line, as `authorization: Bearer TOKEN`. `node=ID TOKEN` is
    /// for the gateway of that id, or for all whose ids begin or end alike (`node=edge-*`, `node=*.example`); a token
    /// without `node=` is for every id. `derive=SECRET` in place of a token gives each of these gateways a token of its own
    /// (`palisade node-token`). Lines that begin with # are ignored.
    #[arg(long, env = "PALISADE_NODE_TOKEN_FILE", value_name = "FILE")]
    pub node_token_file: Option<PathBuf>,

    /// If the file of --node-token-file does not exist, it is made at the start, with a fresh token for the gateway of this
    /// id, or for all whose ids begin or end alike (`edge-*`, `*.example`).
    #[arg(long, env = "PALISADE_NODE_TOKEN_CREATE", value_name = "ID", requires = "node_token_file",
          value_parser = node_name)]
    pub node_token_create: Option<String>,

    /// DANGEROUS: allows the xDS and node port to listen beyond loopback without tokens or client certificates. Any client that
    /// reaches it can read the configuration and its secrets, and send events and bans.
    #[arg(long, env = "PALISADE_XDS_OPEN")]
    pub xds_open: bool,
}

fn node_name(name: &str) -> Result<String, NodeNameError> {
    NodeNames::parse(name).map(|_| name.to_owned())
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
    /// Many gateways share one.
    pub shared_certificates: bool,
}

impl ListenOptions {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// What is wrong with which file.
    pub fn open(&self) -> Result<Opened, ListenError> {
        if let (Some(file), Some(node)) = (&self.node_token_file, &self.node_token_create) {
            let made = NodeTokens::create_file(file, node);
            if made.map_err(|error| ListenError::Create(file.clone(), error))? {
                tracing::info!(file = %file.display(), node, "made a token for gateways");
            }
        }
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
            shared_certificates: self.xds_shared_certificates,
        })
    }

    /// Whether the xDS and node port may listen at `address`: without a token or a certificate on loopback alone.
    ///
    /// # Errors
    ///
    /// It may not; with what to do.
    pub fn may_listen(&self, address: SocketAddr) -> Result<(), ListenError> {
        let asks = self.node_token_file.is_some() || self.xds_client_ca.is_some();
        if asks || self.xds_open || address.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        Err(ListenError::Open(address))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_token_or_certificate_the_port_is_on_loopback_alone() {
        let refused = |options: &ListenOptions, address: &str| options.may_listen(address.parse().unwrap()).is_err();
        let none = ListenOptions::default();
        for outside in ["0.0.0.0:1", "[::]:1", "192.0.2.1:1", "[2001:db8::1]:1", "[::ffff:192.0.2.1]:1"] {
            assert!(refused(&none, outside), "{outside}");
            let file = Some(PathBuf::from("x"));
            for options in [
                ListenOptions { node_token_file: file.clone(), ..none.clone() },
                ListenOptions { xds_client_ca: file, ..none.clone() },
                ListenOptions { xds_open: true, ..none.clone() },
            ] {
                assert!(!refused(&options, outside), "{outside}");
            }
            // TLS alone lets everybody in.
            assert!(refused(&ListenOptions { xds_tls_cert: Some("x".into()), ..none.clone() }, outside));
        }
        for loopback in ["127.0.0.1:1", "127.8.8.8:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(!refused(&none, loopback), "{loopback}");
        }
    }

    #[test]
    fn a_token_is_made_where_there_is_no_file_and_only_then() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        let options = ListenOptions {
            node_token_file: Some(file.clone()),
            node_token_create: Some("edge-*".into()),
            ..ListenOptions::default()
        };
        let opened = options.open().unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let token = text.lines().last().unwrap().strip_prefix("node=edge-* ").unwrap();
        assert_eq!(token.len(), 64);
        let known = opened.tokens.unwrap().current().admit(token.as_bytes()).unwrap();
        assert!(known.nodes().unwrap().admit("edge-1") && !known.nodes().unwrap().admit("core-1"));
        options.open().unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "it stays as it is");
    }
}
