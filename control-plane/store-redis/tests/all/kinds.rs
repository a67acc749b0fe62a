//! Other kinds of servers: TLS, Sentinel, a cluster.

use std::path::Path;
use std::process::Child;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use store::{Store as _, StoreError};

use crate::server::{RedisServer, free_port};

/// Ends a process with the test.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    // Another name than that of what it issues, or clients take that for self-signed.
    params.distinguished_name.push(DnType::CommonName, "test authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_needs_a_certificate_that_the_file_names() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (authority, other) = (authority(), authority());
    let made = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, "localhost");
    let (cert, key) = (params.signed_by(&made, &authority).unwrap().pem(), made.serialize_pem());
    let (cert, key) = (file("cert", cert), file("key", key));
    let (authority, other) = (file("authority", authority.pem()), file("other", other.pem()));
    let port = free_port().to_string();
    let arguments = [
        "--tls-port",
        &port,
        "--tls-cert-file",
        &cert,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &authority,
        "--tls-auth-clients",
        "no",
    ];
    let Some(server) = RedisServer::start_with(&arguments).await else { return };
    let store = server.open_at(&format!("rediss://localhost:{port}?ca_file={authority}")).await.unwrap();
    assert_eq!(store.entity_put("c", "a", "1".into(), 0).await, Ok(1));
    for wrong in [format!("rediss://localhost:{port}?ca_file={other}"), format!("rediss://localhost:{port}")] {
        let error = server.open_at(&wrong).await.err().unwrap();
        assert!(matches!(error, StoreError::Server { .. }), "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_name_the_primary() {
    let Some(server) = RedisServer::start().await else { return };
    let port = free_port();
    let file = server.folder.path().join("sentinel.conf");
    let text = format!("port {port}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {} 1\n", server.port);
    std::fs::write(&file, text).unwrap();
    let _sentinel = Guard(run(&server, &file));
    // The first one is not there.
    let url = format!("redis+sentinel://127.0.0.1:1,127.0.0.1:{port}/main");
    let opened = async {
        loop {
            match server.open_at(&url).await {
                Ok(store) => return store,
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    let store = tokio::time::timeout(Duration::from_secs(60), opened).await.unwrap();
    assert_eq!(store.entity_put("c", "a", "1".into(), 0).await, Ok(1));
    assert_eq!(server.open().await.entities().await.unwrap().revision, 1);
    let error = server.open_at(&format!("redis+sentinel://127.0.0.1:{port}/other")).await.err().unwrap().to_string();
    assert!(error.contains("no such server"), "{error}");
}

fn run(server: &RedisServer, file: &Path) -> Child {
    let mut command = server.command();
    command.arg(file).arg("--sentinel");
    command.spawn().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn any_node_of_a_cluster_leads_to_the_one_with_the_keys() {
    let (one, other) = (free_port().to_string(), free_port().to_string());
    let node = async |bus: &str| RedisServer::start_with(&["--cluster-enabled", "yes", "--cluster-port", bus]).await;
    let (Some(first), Some(second)) = (node(&one).await, node(&other).await) else { return };
    assert!(!first.ask("CLUSTER ADDSLOTSRANGE 0 16383").contains("-ERR"));
    assert!(!second.ask(&format!("CLUSTER MEET 127.0.0.1 {} {one}", first.port)).contains("-ERR"));
    let ready = async {
        while !second.ask("CLUSTER INFO").contains("cluster_state:ok") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), ready).await.unwrap();
    let store = second.open_at(&format!("redis+cluster://127.0.0.1:{}", second.port)).await.unwrap();
    assert_eq!(store.entity_put("c", "a", "1".into(), 0).await, Ok(1));
    assert_eq!(first.open().await.entities().await.unwrap().revision, 1);
}
