//! A decision service that answers what a test says, byte by byte.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

#[derive(Clone)]
enum Reply {
    Raw(Vec<u8>),
    Endless,
    Silence,
}

#[derive(Default)]
struct Script {
    seen: Vec<String>,
    /// To a call for everything.
    whole: Option<Reply>,
    /// To calls for changes, one after the other; then nothing has changed.
    changes: VecDeque<Reply>,
}

/// A service.
pub(super) struct Service {
    pub(super) address: SocketAddr,
    script: Arc<Mutex<Script>>,
}

fn http(status: &str, headers: &str, body: &[u8]) -> Reply {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}connection: close\r\n\r\n", body.len());
    Reply::Raw([head.as_bytes(), body].concat())
}

impl Service {
    pub(super) async fn start() -> Service {
        Service::start_on("127.0.0.1").await
    }

    pub(super) async fn start_on(address: &str) -> Service {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let script = Arc::<Mutex<Script>>::default();
        let followed = Arc::clone(&script);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(answer(stream, Arc::clone(&followed)));
            }
        });
        Service { address, script }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The heads of all requests so far.
    pub(super) fn seen(&self) -> Vec<String> {
        self.script.lock().unwrap().seen.clone()
    }

    /// How often everything was asked for.
    pub(super) fn starts(&self) -> usize {
        self.seen().iter().filter(|head| head.contains("startup=true")).count()
    }

    fn whole(&self, reply: Reply) {
        self.script.lock().unwrap().whole = Some(reply);
    }

    /// Answers calls for everything so from now on.
    pub(super) fn gives(&self, status: &str, headers: &str, body: &[u8]) {
        self.whole(http(status, headers, body));
    }

    /// Answers calls for everything with these decisions from now on.
    pub(super) fn has(&self, decisions: &[String]) {
        self.gives("200 OK", "", format!("{{\"deleted\":null,\"new\":[{}]}}", decisions.join(",")).as_bytes());
    }

    /// Answers one call for changes so.
    pub(super) fn then(&self, status: &str, body: &[u8]) {
        self.script.lock().unwrap().changes.push_back(http(status, "", body));
    }

    /// Answers one call for changes with these.
    pub(super) fn changes(&self, new: &[String], deleted: &[String]) {
        self.then("200 OK", format!("{{\"deleted\":[{}],\"new\":[{}]}}", deleted.join(","), new.join(",")).as_bytes());
    }

    pub(super) fn never_ends(&self) {
        self.whole(Reply::Endless);
    }

    pub(super) fn is_silent(&self) {
        self.whole(Reply::Silence);
    }

    pub(super) fn sends(&self, bytes: &[u8]) {
        self.whole(Reply::Raw(bytes.to_vec()));
    }
}

/// A decision as the service writes it.
pub(super) fn decision(id: i64, scope: &str, value: &str, kind: &str, duration: &str) -> String {
    format!(
        r#"{{"duration":"{duration}","id":{id},"origin":"cscli","scenario":"manual","scope":"{scope}","type":"{kind}","value":"{value}"}}"#
    )
}

/// A ban of an address for an hour.
pub(super) fn ban(id: i64, address: &str) -> String {
    decision(id, "Ip", address, "ban", "59m59.5s")
}

async fn answer(mut stream: TcpStream, script: Arc<Mutex<Script>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let reply = {
        let mut script = script.lock().unwrap();
        script.seen.push(head.clone());
        let nothing = || http("200 OK", "", br#"{"deleted":null,"new":null}"#);
        match head.contains("startup=true") {
            true => script.whole.clone().unwrap_or_else(nothing),
            false => script.changes.pop_front().unwrap_or_else(nothing),
        }
    };
    match reply {
        Reply::Raw(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
        Reply::Silence => while stream.read_u8().await.is_ok() {},
        Reply::Endless => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"new\":[").await;
            let more = (ban(1, "192.0.2.1") + ",").repeat(10_000);
            while stream.write_all(more.as_bytes()).await.is_ok() {}
        }
    }
}
