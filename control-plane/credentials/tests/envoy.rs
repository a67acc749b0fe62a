//! The real Envoy, with the configurations of the tests: it takes them, its dump is read as the file is, and it refuses what the import
//! says is checked, and nothing else.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests"
)]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use palisade_credentials::envoy::{self, Imported};
use palisade_credentials::{CredentialCheck, EnvoyRoute};
use regex_automata::meta::Regex;
use serde_json::Value;

const GATEWAY: &str = include_str!("data/gateway.yaml");
const MUTUAL_TLS: &str = include_str!("data/mutual-tls.yaml");

fn program() -> PathBuf {
    let program = std::env::var_os("PALISADE_ENVOY").map_or_else(|| "../../.cache/envoy/envoy".into(), PathBuf::from);
    assert!(program.exists(), "{} is missing: `make envoy` fetches it", program.display());
    program
}

/// A running Envoy; killed when dropped.
struct Envoy {
    child: Child,
    admin: String,
}

impl Drop for Envoy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Envoy {
    fn start(folder: &Path, text: &str) -> Envoy {
        let (config, address) = (folder.join("envoy.yaml"), folder.join("admin"));
        std::fs::write(&config, text).unwrap();
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let mut child = Command::new(program())
            .args(["--use-dynamic-base-id", "--concurrency", "1", "-l", "warn", "-c"])
            .arg(&config)
            .arg("--admin-address-path")
            .arg(&address)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        for _ in 0..600 {
            let admin = std::fs::read_to_string(&address).unwrap_or_default();
            if !admin.is_empty() && call(&admin, "GET", "/ready").is_ok_and(|(status, _)| status == 200) {
                return Envoy { child, admin };
            }
            if child.try_wait().unwrap().is_some() {
                break;
            }
            #[allow(clippy::disallowed_methods, reason = "a process is waited for, in no filter")]
            std::thread::sleep(Duration::from_millis(100));
        }
        let _ = child.kill();
        panic!("Envoy does not start: {}", std::fs::read_to_string(folder.join("log")).unwrap());
    }

    /// The address of each listener.
    fn listeners(&self) -> BTreeMap<String, String> {
        let (_, text) = call(&self.admin, "GET", "/listeners?format=json").unwrap();
        let listeners: Value = serde_json::from_str(&text).unwrap();
        let each = listeners["listener_statuses"].as_array().unwrap().iter().map(|listener| {
            let port = listener.pointer("/local_address/socket_address/port_value").unwrap();
            (listener["name"].as_str().unwrap().to_owned(), format!("127.0.0.1:{port}"))
        });
        each.collect()
    }
}

/// The status and the body of an answer.
fn call(address: &str, method: &str, path: &str) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    write!(stream, "{method} {path} HTTP/1.1\r\nhost: shop.example\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let body = answer.split_once("\r\n\r\n").map(|(head, body)| (head.to_ascii_lowercase(), body.to_owned()));
    let body = match body {
        Some((head, body)) if head.contains("transfer-encoding: chunked") => unchunked(&body),
        Some((_, body)) => body,
        None => String::new(),
    };
    Ok((status, body))
}

/// The status of an answer alone. Envoy keeps the connection for a second after it.
fn status(address: &str, method: &str, path: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(stream, "{method} {path} HTTP/1.1\r\nhost: shop.example\r\ncontent-length: 0\r\n\r\n").unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

fn unchunked(mut text: &str) -> String {
    let mut body = String::new();
    while let Some((size, rest)) = text.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let Some((chunk, behind)) = rest.split_at_checked(size).filter(|_| size > 0) else { break };
        body.push_str(chunk);
        text = behind.trim_start_matches("\r\n");
    }
    body
}

fn applies(check: &CredentialCheck, method: &str, path: &str) -> bool {
    let matches = |patterns: &[String]| patterns.iter().any(|pattern| Regex::new(pattern).unwrap().is_match(path));
    (check.methods.is_empty() || check.methods.iter().any(|own| own == method))
        && (check.include.is_empty() || matches(&check.include))
        && !matches(&check.exclude)
}

fn place<'a>(imported: &'a Imported, route: &str, listener: &str, host: &str) -> &'a EnvoyRoute {
    let route = imported.routes.iter().find(|known| known.name == route).unwrap();
    let is_here = |place: &&EnvoyRoute| place.listener == listener && place.virtual_hosts.iter().any(|own| own == host);
    route.places.iter().find(is_here).unwrap()
}

#[test]
fn envoy_refuses_what_the_import_says_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let envoy = Envoy::start(folder.path(), GATEWAY);
    let imported = envoy::read(GATEWAY.as_bytes(), None).unwrap();
    let (answered, dump) = call(&envoy.admin, "GET", "/config_dump").unwrap();
    assert_eq!(answered, 200);
    let dumped = envoy::read(dump.as_bytes(), None).unwrap();
    assert_eq!((dumped.routes, dumped.listeners), (imported.routes.clone(), imported.listeners.clone()));
    let listeners = envoy.listeners();
    let mut refused_in_all = 0;
    for (listener, host, route, paths) in [
        ("tokens", "shop", "orders", &["/orders", "/orders/1", "/orders/health", "/orders/health/x"][..]),
        ("tokens", "shop", "admin", &["/admin", "/admin/x"]),
        ("tokens", "shop", "docs", &["/docs", "/docs/a/b"]),
        ("tokens", "shop", "shop-version", &["/version"]),
        ("keys", "keys", "keyed", &["/keyed", "/keyed/x"]),
        ("keys", "keys", "query-keyed", &["/query"]),
        ("keys", "keys", "people", &["/people"]),
        ("keys", "keys", "other-people", &["/other-people"]),
        ("login", "portal", "portal", &["/", "/x", "/public", "/publicity", "/healthz", "/healthz/x"]),
        ("services", "services", "asked", &["/asked"]),
        ("services", "services", "unasked", &["/unasked"]),
        ("services", "services", "peers", &["/peers", "/peers/open", "/peers/open/x"]),
        ("services", "services", "closed", &["/closed", "/closed/1", "/closed/1x", "/closed/12"]),
    ] {
        let place = place(&imported, route, listener, host);
        for path in paths {
            for method in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
                let status = status(&listeners[listener], method, path);
                let refused = matches!(status, 401 | 403 | 302);
                assert!(refused || status == 200, "{method} {path}: {status}");
                let checked = place.checks.iter().any(|check| applies(check, method, path));
                refused_in_all += usize::from(refused);
                assert_eq!(refused, checked, "{method} {path} at {route}: {status}, {:?}", place.checks);
            }
        }
    }
    assert!(refused_in_all > 40, "{refused_in_all}");
}

#[test]
fn envoy_takes_the_configurations_of_the_tests() {
    let folder = tempfile::tempdir().unwrap();
    let key = rcgen::generate_simple_self_signed(["verified.example".to_owned()]).unwrap();
    std::fs::write(folder.path().join("cert.pem"), key.cert.pem()).unwrap();
    std::fs::write(folder.path().join("key.pem"), key.signing_key.serialize_pem()).unwrap();
    for (name, text) in [("gateway.yaml", GATEWAY), ("mutual-tls.yaml", MUTUAL_TLS)] {
        let file = folder.path().join(name);
        std::fs::write(&file, text.replace("@DIR@", folder.path().to_str().unwrap())).unwrap();
        let out = Command::new(program())
            .args(["--mode", "validate", "--use-dynamic-base-id", "-l", "error", "-c"])
            .arg(&file)
            .output()
            .unwrap();
        assert!(out.status.success(), "{name}: {}", String::from_utf8_lossy(&out.stderr));
    }
}
