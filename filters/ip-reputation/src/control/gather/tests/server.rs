//! A publisher of lists that answers what a test says, byte by byte.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

#[derive(Clone)]
enum Answers {
    /// These bytes, and then the end of the connection.
    Raw(Vec<u8>),
    /// A list without an end.
    Endless,
    /// Nothing at all.
    Silence,
    /// With this list and its version; 304 where it is asked for another one.
    Versioned(String, String),
}

/// A publisher.
pub(super) struct Publisher {
    pub(super) address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    answers: Arc<Mutex<Answers>>,
}

impl Publisher {
    pub(super) async fn start() -> Publisher {
        Publisher::start_on("127.0.0.1").await
    }

    pub(super) async fn start_on(address: &str) -> Publisher {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, answers) = (Arc::<Mutex<Vec<String>>>::default(), Arc::new(Mutex::new(Answers::Raw(Vec::new()))));
        let (noted, current) = (Arc::clone(&seen), Arc::clone(&answers));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (noted, current) = (Arc::clone(&noted), Arc::clone(&current));
                tokio::spawn(async move { answer(stream, &noted, &current).await });
            }
        });
        Publisher { address, seen, answers }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/list", self.address)
    }

    /// The heads of all requests so far.
    pub(super) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    fn set(&self, answers: Answers) {
        *self.answers.lock().unwrap() = answers;
    }

    /// Answers with a status and a body from now on.
    pub(super) fn gives(&self, status: &str, headers: &str, body: &[u8]) {
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}connection: close\r\n\r\n", body.len());
        self.set(Answers::Raw([head.as_bytes(), body].concat()));
    }

    /// Answers with a list from now on.
    pub(super) fn lists(&self, list: &str) {
        self.gives("200 OK", "", list.as_bytes());
    }

    /// Answers with these bytes from now on.
    pub(super) fn sends(&self, bytes: &[u8]) {
        self.set(Answers::Raw(bytes.to_vec()));
    }

    /// Takes requests and never answers from now on.
    pub(super) fn is_silent(&self) {
        self.set(Answers::Silence);
    }

    pub(super) fn never_ends(&self) {
        self.set(Answers::Endless);
    }

    /// Answers with a version of a list from now on.
    pub(super) fn has_version(&self, version: &str, list: &str) {
        self.set(Answers::Versioned(version.to_owned(), list.to_owned()));
    }
}

async fn answer(mut stream: TcpStream, noted: &Mutex<Vec<String>>, current: &Mutex<Answers>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    noted.lock().unwrap().push(head.clone());
    let answers = current.lock().unwrap().clone();
    let bytes = match answers {
        Answers::Raw(bytes) => bytes,
        Answers::Versioned(version, _) if head.contains(&format!("if-none-match: \"{version}\"")) => {
            b"HTTP/1.1 304 Not Modified\r\nconnection: close\r\n\r\n".to_vec()
        }
        Answers::Versioned(version, list) => {
            let head = format!("HTTP/1.1 200 OK\r\netag: \"{version}\"\r\ncontent-length: {}\r\n\r\n", list.len());
            (head + &list).into_bytes()
        }
        Answers::Silence => {
            // Until the other side gives up.
            while stream.read_u8().await.is_ok() {}
            noted.lock().unwrap().push("given up".to_owned());
            return;
        }
        Answers::Endless => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").await;
            let lines = b"192.0.2.1\n".repeat(100_000);
            while stream.write_all(&lines).await.is_ok() {}
            return;
        }
    };
    let _ = stream.write_all(&bytes).await;
    let _ = stream.shutdown().await;
}
