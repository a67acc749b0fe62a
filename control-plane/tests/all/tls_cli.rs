//! `palisade serve` with TLS, and the commands that call it.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use crate::cli_support::{Server, palisade, run_with, text};
use crate::tls_support::{Authority, connect, connector, shown};
use api::names::NAMESPACE;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

/// `palisade serve` that is to end at once: what it complains of.
fn refused(folder: &Path, options: &[&str]) -> String {
    let data = path(folder, "data");
    let mut arguments = vec!["serve", "--listen", "127.0.0.1:0", "--xds-listen", "127.0.0.1:0", "--data", &data];
    arguments.extend(options);
    let mut child = palisade(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    for attempt in 0.. {
        if child.try_wait().unwrap().is_some() {
            break;
        }
        if attempt == 3000 {
            child.kill().unwrap();
        }
        #[allow(clippy::disallowed_methods, reason = "a process is waited for, in no filter")]
        std::thread::sleep(Duration::from_millis(20));
    }
    let out = child.wait_with_output().unwrap();
    // One that was killed has no code.
    assert!(out.status.code().is_some_and(|code| code != 0), "{options:?} was taken: {}", text(&out.stderr));
    assert!(!folder.join("data").exists(), "a store was made for options that are wrong");
    text(&out.stderr)
}

fn export(server: &Server, data: &Path, ca: Option<&str>) -> Output {
    let mut command = palisade(&["export", "--force"]);
    command.arg(data.with_extension("exported"));
    if let Some(ca) = ca {
        command.args(["--ca", ca]);
    }
    command
        .env("PALISADE_URL", format!("https://{}", server.rest))
        .env("PALISADE_ADMIN_KEY_FILE", data.join("admin-key.json"))
        .output()
        .unwrap()
}

#[test]
fn a_health_check_goes_by_the_variables_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = Authority::new().issue("admin.example").write(folder.path(), "s");
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let healthy = |server: &Server, certificate: Option<&str>| {
        let (_, port) = server.rest.rsplit_once(':').unwrap();
        let mut command = palisade(&["healthy"]);
        command.env("PALISADE_LISTEN", format!("0.0.0.0:{port}"));
        certificate.map(|file| command.env("PALISADE_TLS_CERT", file));
        let out = command.output().unwrap();
        (out.status.code(), text(&out.stderr))
    };
    let plain = Server::start(&folder.path().join("plain"));
    assert_eq!(healthy(&plain, None), (Some(0), String::new()));
    let options = ["--tls-cert", certificate, "--tls-key", key, "--admin-host", "admin.example"];
    let secure = Server::start_with(&folder.path().join("secure"), &options);
    assert_eq!(healthy(&secure, Some(certificate)), (Some(0), String::new()), "its certificate is for another name");
    // Not the other way, and not where there is no server.
    assert_eq!(healthy(&secure, None).0, Some(1));
    let (code, said) = healthy(&plain, Some(certificate));
    assert!(code == Some(1) && said.contains("TLS has failed"), "{said}");
    let nowhere = palisade(&["healthy", "--listen", "127.0.0.1:1"]).output().unwrap();
    assert_eq!(nowhere.status.code(), Some(1));
}

#[test]
fn options_that_do_not_fit_are_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let (certificate, key) = authority.issue("127.0.0.1").write(folder.path(), "s");
    let (_, other_key) = authority.issue("127.0.0.1").write(folder.path(), "other");
    let (certificate, key, other_key) =
        (certificate.to_str().unwrap(), key.to_str().unwrap(), other_key.to_str().unwrap());
    for (options, said) in [
        (vec!["--tls-cert", certificate], "--tls-key"),
        (vec!["--tls-key", key], "--tls-cert"),
        (vec!["--xds-tls-cert", certificate], "--xds-tls-key"),
        (vec!["--xds-tls-key", key], "--xds-tls-cert"),
        (vec!["--xds-client-ca", certificate], "--xds-tls-cert"),
        (vec!["--tls-cert", certificate, "--tls-key", other_key], "/other.key is not that of"),
        (vec!["--xds-tls-cert", key, "--xds-tls-key", key], "/s.key: it contains no certificate"),
        (vec!["--node-token-file", "/nowhere/tokens"], "/nowhere/tokens: No such file"),
    ] {
        let complaint = refused(folder.path(), &options);
        assert!(complaint.contains(said), "{options:?}: {complaint}");
    }
    // The environment counts as the command line does.
    let out = palisade(&["serve", "--data", &path(folder.path(), "data")])
        .env("PALISADE_TLS_CERT", certificate)
        .output()
        .unwrap();
    assert!(!out.status.success() && text(&out.stderr).contains("--tls-key"), "{}", text(&out.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn entities_are_applied_over_https_and_certificates_change_on_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let authority = Authority::new();
    let first = authority.issue("127.0.0.1");
    let (certificate, key) = first.write(folder.path(), "s");
    fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();
    fs::write(folder.path().join("other-ca.pem"), Authority::new().pem()).unwrap();
    let (ca, other) = (path(folder.path(), "ca.pem"), path(folder.path(), "other-ca.pem"));
    let options = ["--tls-cert", certificate.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    let server = Server::start_with(&data, &options);

    fs::create_dir_all(folder.path().join("wanted/waf-rulesets")).unwrap();
    fs::write(folder.path().join("wanted/waf-rulesets/base.yaml"), "rules: [SecRuleEngine On]\n").unwrap();
    let out = palisade(&["apply", &path(folder.path(), "wanted")])
        .env("PALISADE_URL", format!("https://{}", server.rest))
        .env("PALISADE_CA", &ca)
        .env("PALISADE_ADMIN_KEY_FILE", data.join("admin-key.json"))
        .output()
        .unwrap();
    assert!(out.status.success(), "{}{}", text(&out.stdout), text(&out.stderr));
    let out = export(&server, &data, Some(&ca));
    assert!(out.status.success(), "{}", text(&out.stderr));
    let exported = fs::read_to_string(data.with_extension("exported").join("waf-rulesets/base.yaml")).unwrap();
    assert!(exported.contains("SecRuleEngine On"), "{exported}");
    let out = export(&server, &data, Some(&other));
    assert!(!out.status.success() && text(&out.stderr).contains("--ca"), "{}", text(&out.stderr));

    // The session cookie is for TLS alone, on loopback too.
    let added = run_with(
        &["operator", "add", "alice", "--email", "alice@example.com", "--data", data.to_str().unwrap()],
        "correct horse battery",
    );
    assert!(added.status.success(), "{added:?}");
    let mut stream = connect(&connector(&authority, None, &[]), server.rest.parse().unwrap()).await.unwrap();
    let body = r#"{"name": "alice", "password": "correct horse battery"}"#;
    let login = format!(
        "POST {NAMESPACE}/session/_login HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        server.rest,
        body.len()
    );
    stream.write_all(login.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = text(&answer);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("SameSite=Strict; Secure"), "{answer}");

    let renewed = authority.issue("127.0.0.1");
    renewed.write(folder.path(), "s");
    server.signal("HUP");
    let client = connector(&authority, None, &[]);
    let address = server.rest.parse().unwrap();
    for attempt in 0.. {
        if shown(&connect(&client, address).await.unwrap()) == renewed.der() {
            break;
        }
        assert!(attempt < 3000, "the new certificate is not shown: {}", fs::read_to_string(&server.log).unwrap());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let log = fs::read_to_string(&server.log).unwrap();
    assert!(log.contains("is valid until 4096-01-01"), "{log}");
    assert!(!log.contains("PRIVATE KEY"), "{log}");
}
