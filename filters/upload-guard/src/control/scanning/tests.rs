//! Scanners of the tests' own, which answer, are slow, lie, and close.

mod answers;
mod real;
mod servers;

use std::sync::Arc;
use std::time::Duration;

use outbound::Outbound;
use serde_json::{Value, json};

use self::servers::{Clamd, Icap, clamd, eicar, icap};
use super::scanner::Scanner;
use super::*;
use crate::control::MalwareScanner;

const PATIENCE: Duration = Duration::from_secs(5);

fn definition(more: Value) -> MalwareScanner {
    serde_json::from_value(more).unwrap()
}

fn scanner(kind: &str, port: u16, more: Value) -> Scanner {
    let mut document = json!({ "kind": kind, "port": port, "timeout_millis": 1000 });
    document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Scanner::new(definition(document), Outbound::new(Vec::new()))
}

fn infected(name: &str) -> Result<Verdict, String> {
    Ok(Verdict::Infected(name.to_owned()))
}

async fn scan(scanner: &Scanner, content: &[u8]) -> Result<Verdict, String> {
    scanner.scan(content, PATIENCE).await
}

#[tokio::test]
async fn clamd_is_sent_files_in_a_stream() {
    let server = clamd(Clamd::Works { limit: 1 << 20 }).await;
    let scanner = scanner("clamd", server.port, json!({ "max_file_size": 3_000_000 }));
    assert_eq!(scan(&scanner, &eicar()).await, infected("Eicar-Test-Signature"));
    assert_eq!(scan(&scanner, b"plain").await, Ok(Verdict::Clean));
    assert_eq!(scan(&scanner, b"").await, Ok(Verdict::Clean));
    // Longer than a chunk, and what is found is at its end.
    let long = [vec![b'x'; 500_000], eicar()].concat();
    assert_eq!(scan(&scanner, &long).await, infected("Eicar-Test-Signature"));
    assert!(scan(&scanner, &vec![0; 2_000_000]).await.unwrap_err().contains("StreamMaxLength"));
    assert!(scan(&scanner, &vec![0; 3_000_001]).await.unwrap_err().contains("`max_file_size`"));
}

#[tokio::test]
async fn clamd_is_reached_by_a_socket_of_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clamd.ctl");
    servers::clamd_at(&path).await;
    let scanner = scanner("clamd", 1, json!({ "host": path.to_str().unwrap() }));
    assert_eq!(scan(&scanner, &eicar()).await, infected("Eicar-Test-Signature"));
    assert_eq!(scanner.check().await, Ok(()));
    std::fs::remove_file(&path).unwrap();
    assert!(scan(&scanner, b"x").await.unwrap_err().contains("takes no connection"));
}

#[tokio::test]
async fn a_scanner_that_fails_gives_no_verdict() {
    let liar = clamd(Clamd::Says("stream: Everything FOUND")).await;
    let liar = scanner("clamd", liar.port, json!({})).check().await;
    assert!(liar.unwrap_err().contains("finds Everything in a file of one character"));
    let down = scanner("clamd", servers::closed_port().await, json!({}));
    assert!(scan(&down, b"x").await.is_err() && down.check().await.is_err());
    for (how, why) in [
        (Clamd::Slow, "has not answered within"),
        (Clamd::Closes, "clamd"),
        (Clamd::Says("stream: maybe"), "clamd answered `stream: maybe`"),
        (Clamd::Says("HTTP/1.1 200 OK"), "clamd answered"),
        (Clamd::Says("stream: Can't allocate memory ERROR"), "Can't allocate memory"),
    ] {
        let server = clamd(how).await;
        let scanner = scanner("clamd", server.port, json!({ "timeout_millis": 200 }));
        let failure = scan(&scanner, &vec![7; 300_000]).await.unwrap_err();
        assert!(failure.contains(why), "{how:?}: {failure}");
    }
    for how in [
        Icap::Slow,
        Icap::Closes,
        Icap::Says("HTTP/1.1 200 OK\r\n\r\n"),
        Icap::Says("ICAP/1.0 500 Error\r\n\r\n"),
        Icap::Cut,
    ] {
        let server = icap(how).await;
        let scanner = scanner("icap", server.port, json!({ "timeout_millis": 200 }));
        assert!(scan(&scanner, &vec![7; 300_000]).await.is_err(), "{how:?}");
    }
    let wrong = icap(Icap::Works { methods: "REQMOD", preview: None, allows_204: true }).await;
    let scanner = scanner("icap", wrong.port, json!({}));
    assert!(scan(&scanner, b"x").await.unwrap_err().contains("does not take RESPMOD"));
}

#[tokio::test]
async fn icap_servers_get_a_preview_and_the_rest() {
    for mode in ["respmod", "reqmod"] {
        for preview in [None, Some(0), Some(4), Some(1024)] {
            for allows_204 in [true, false] {
                let what = format!("{mode} {preview:?} {allows_204}");
                let server = icap(Icap::Works { methods: "RESPMOD, REQMOD", preview, allows_204 }).await;
                let scanner = scanner("icap", server.port, json!({ "icap_mode": mode }));
                assert_eq!(scan(&scanner, &eicar()).await, infected("Eicar-Signature"), "{what}");
                assert_eq!(scan(&scanner, b"plain").await, Ok(Verdict::Clean), "{what}");
                let long = vec![b'x'; 200_000];
                assert_eq!(scan(&scanner, &long).await, Ok(Verdict::Clean), "{what}");
                let late = [long, eicar()].concat();
                assert_eq!(scan(&scanner, &late).await, infected("Eicar-Signature"), "{what}");
                // A connection serves all of them until something is found.
                assert_eq!(server.connections(), 2, "{what}");
                assert_eq!(server.asked().iter().filter(|line| line.starts_with("OPTIONS")).count(), 1, "{what}");
                let method = mode.to_uppercase();
                let first = format!("{method} icap://127.0.0.1:{}/avscan ICAP/1.0", server.port);
                assert_eq!(server.asked()[1], first, "{what}");
            }
        }
    }
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_opened_again() {
    let server = icap(Icap::OneEach).await;
    let scanner = scanner("icap", server.port, json!({}));
    for _ in 0..3 {
        assert_eq!(scan(&scanner, b"plain").await, Ok(Verdict::Clean));
    }
    assert!(server.connections() >= 3);
}

#[tokio::test]
async fn verdicts_are_kept_while_the_database_stays_the_same() {
    let server = clamd(Clamd::Works { limit: 1 << 20 }).await;
    let scanner = scanner("clamd", server.port, json!({}));
    let ask = async |digest: u8, now| scanner.verdict(b"plain", [digest; 32], now, PATIENCE).await.unwrap();
    ask(1, 0).await;
    ask(1, 0).await;
    assert_eq!(server.scans(), 2, "its version is not known yet");
    scanner.check().await.unwrap();
    // The check has scanned as well.
    for (digest, now, scans) in [(1, 0, 4), (1, 10, 4), (2, 10, 5), (2, 10, 5), (1, 3_600_001, 6)] {
        ask(digest, now).await;
        assert_eq!(server.scans(), scans, "{digest} at {now}");
    }
    server.update();
    scanner.check().await.unwrap();
    ask(1, 3_600_001).await;
    assert_eq!(server.scans(), 8, "another database");
}

#[test]
fn texts_of_scanners_are_shown_in_part() {
    assert_eq!(shown("a\u{1b}[31mb\r\nc"), "a[31mb");
    assert_eq!(shown(&"\u{e9}".repeat(300)).len(), 200);
    assert_eq!((shown(""), Arc::new(shown("\n"))), (String::new(), Arc::new(String::new())));
}
