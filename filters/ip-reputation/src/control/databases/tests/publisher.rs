//! A publisher of one file.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

/// What it answers, and the requests that it has seen.
#[derive(Default)]
struct Shelf {
    status: String,
    /// Whole lines.
    headers: String,
    body: Vec<u8>,
    /// What the file is called: 304 where it is asked for another one.
    version: Option<String>,
    seen: Vec<String>,
}

/// A publisher.
pub(super) struct Publisher {
    address: SocketAddr,
    shelf: Arc<Mutex<Shelf>>,
}

impl Publisher {
    pub(super) fn start() -> Publisher {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shelf = Arc::<Mutex<Shelf>>::default();
        let current = Arc::clone(&shelf);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
                    head.push(byte[0]);
                }
                let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
                let mut shelf = current.lock().unwrap();
                let is_known = shelf.version.as_ref().is_some_and(|version| head.contains(&format!("\"{version}\"")));
                shelf.seen.push(head);
                let answer = match is_known {
                    true => b"HTTP/1.1 304 Not Modified\r\nconnection: close\r\n\r\n".to_vec(),
                    false => {
                        let (status, length, headers) = (&shelf.status, shelf.body.len(), &shelf.headers);
                        let etag = shelf.version.as_ref().map(|version| format!("etag: \"{version}\"\r\n"));
                        let etag = etag.unwrap_or_default();
                        let head = format!(
                            "HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}{etag}connection: close\r\n\r\n"
                        );
                        [head.as_bytes(), &shelf.body].concat()
                    }
                };
                let _ = stream.write_all(&answer);
            }
        });
        Publisher { address, shelf }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// Answers with a status, headers and a body from now on.
    pub(super) fn answers(&self, status: &str, headers: &str, body: &[u8]) {
        let mut shelf = self.shelf.lock().unwrap();
        (shelf.status, shelf.headers, shelf.body) = (status.to_owned(), headers.to_owned(), body.to_vec());
        shelf.version = None;
    }

    /// Has a file from now on.
    pub(super) fn has(&self, body: &[u8]) {
        self.answers("200 OK", "", body);
    }

    /// Has a version of a file from now on.
    pub(super) fn has_version(&self, version: &str, body: &[u8]) {
        self.has(body);
        self.shelf.lock().unwrap().version = Some(version.to_owned());
    }

    /// The heads of all requests so far.
    pub(super) fn seen(&self) -> Vec<String> {
        self.shelf.lock().unwrap().seen.clone()
    }
}
