//! Certificates made at test time, and a TLS client.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use listen::{Alpn, Kept, TlsConfig, TlsFiles};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A certificate authority.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, in PEM.
#[derive(Clone)]
pub(crate) struct Issued {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // Another name than that of what it issues, or clients take that for self-signed.
        params.distinguished_name.push(DnType::CommonName, "test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for a name or an IP address.
    pub(crate) fn issue(&self, name: &str) -> Issued {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Issued { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

impl Issued {
    /// Writes the two files `<name>.pem` and `<name>.key`.
    pub(crate) fn write(&self, folder: &Path, name: &str) -> (PathBuf, PathBuf) {
        let (certificate, key) = (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
        std::fs::write(&certificate, &self.certificate).unwrap();
        std::fs::write(&key, &self.key).unwrap();
        (certificate, key)
    }

    pub(crate) fn der(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap()
    }
}

/// The authorities of control plane and gateways, and a node port's side of TLS that asks for the certificates of gateways.
pub(crate) struct Pki {
    /// Has `s.pem` and `s.key` of the server, and `gateways.pem`.
    pub(crate) folder: tempfile::TempDir,
    pub(crate) servers: Authority,
    pub(crate) gateways: Authority,
    pub(crate) kept: Arc<Kept<TlsConfig>>,
}

impl Pki {
    pub(crate) fn new() -> Pki {
        let folder = tempfile::tempdir().unwrap();
        let (servers, gateways) = (Authority::new(), Authority::new());
        let (certificate, key) = servers.issue("127.0.0.1").write(folder.path(), "s");
        let authorities = folder.path().join("gateways.pem");
        std::fs::write(&authorities, gateways.pem()).unwrap();
        let files = TlsFiles { certificate, key, client_authorities: Some(authorities) };
        let kept = Arc::new(TlsConfig::open("xDS TLS", files, Alpn::Grpc).unwrap());
        Pki { folder, servers, gateways, kept }
    }
}

/// A client that trusts one authority and offers these protocols.
pub(crate) fn connector(authority: &Authority, certificate: Option<&Issued>, alpn: &[&str]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match certificate {
        None => builder.with_no_client_auth(),
        Some(issued) => {
            let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![issued.der()], key).unwrap()
        }
    };
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    TlsConnector::from(Arc::new(config))
}

/// Connects to a server on loopback, whose certificate must be for 127.0.0.1.
pub(crate) async fn connect(connector: &TlsConnector, address: SocketAddr) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    connector.connect(ServerName::IpAddress(address.ip().into()), stream).await
}

/// The certificate that a server has shown.
pub(crate) fn shown(stream: &TlsStream<TcpStream>) -> CertificateDer<'static> {
    stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
}
