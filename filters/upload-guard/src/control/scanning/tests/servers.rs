//! Scanners in memory: clamd and an ICAP server, by what their protocols say, and wrong in ways of their own.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, UnixListener};

/// The standard antivirus test file.
pub(super) fn eicar() -> Vec<u8> {
    [r"X5O!P%@AP[4\PZX54(P^)7CC)7}$", "EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"].concat().into_bytes()
}

fn is_infected(content: &[u8]) -> bool {
    memchr(content, &eicar())
}

fn memchr(content: &[u8], needle: &[u8]) -> bool {
    content.windows(needle.len()).any(|window| window == needle)
}

/// How a clamd behaves.
#[derive(Debug, Clone, Copy)]
pub(super) enum Clamd {
    Works { limit: usize },
    Slow,
    Closes,
    Says(&'static str),
}

/// How an ICAP server behaves.
#[derive(Debug, Clone, Copy)]
pub(super) enum Icap {
    Works {
        methods: &'static str,
        preview: Option<usize>,
        allows_204: bool,
    },
    /// It closes the connection after each answer, without saying so.
    OneEach,
    Slow,
    Closes,
    Says(&'static str),
    /// It closes in the middle of an answer.
    Cut,
}

/// A server at work.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) port: u16,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    connections: AtomicUsize,
    scans: AtomicUsize,
    version: AtomicUsize,
    asked: Mutex<Vec<String>>,
}

impl Server {
    pub(super) fn connections(&self) -> usize {
        self.counts.connections.load(Ordering::SeqCst)
    }

    pub(super) fn scans(&self) -> usize {
        self.counts.scans.load(Ordering::SeqCst)
    }

    /// The database of clamd is another one from now on.
    pub(super) fn update(&self) {
        self.counts.version.fetch_add(1, Ordering::SeqCst);
    }

    /// The first lines of requests.
    pub(super) fn asked(&self) -> Vec<String> {
        self.counts.asked.lock().unwrap().clone()
    }
}

pub(super) async fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().port()
}

pub(super) async fn clamd(how: Clamd) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = Server { port: listener.local_addr().unwrap().port(), counts: Arc::default() };
    let counts = Arc::clone(&server.counts);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counts.connections.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(serve_clamd(stream, how, Arc::clone(&counts)));
        }
    });
    server
}

pub(super) async fn clamd_at(path: &Path) {
    let listener = UnixListener::bind(path).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve_clamd(stream, Clamd::Works { limit: 1 << 20 }, Arc::default()));
        }
    });
}

async fn serve_clamd<S: AsyncRead + AsyncWrite + Unpin>(stream: S, how: Clamd, counts: Arc<Counts>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut command = Vec::new();
    stream.read_until(0, &mut command).await.ok()?;
    if command == b"zVERSION\0" {
        let version = counts.version.load(Ordering::SeqCst);
        let reply = format!("ClamAV 1.4.1/{version}/Tue Jan  7 10:26:04 2025\0");
        return stream.write_all(reply.as_bytes()).await.ok();
    }
    assert_eq!(command, b"zINSTREAM\0");
    counts.scans.fetch_add(1, Ordering::SeqCst);
    let limit = match how {
        Clamd::Works { limit } => limit,
        Clamd::Slow => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            return None;
        }
        Clamd::Closes => return None,
        Clamd::Says(_) => usize::MAX,
    };
    let mut content = Vec::new();
    loop {
        let length = usize::try_from(stream.read_u32().await.ok()?).unwrap();
        if length == 0 {
            break;
        }
        if content.len() + length > limit {
            stream.write_all(b"INSTREAM size limit exceeded. ERROR\0").await.ok()?;
            // As clamd does, it reads no further. What has come is read here, so that the reply is not lost with it.
            let _ =
                tokio::time::timeout(Duration::from_millis(200), tokio::io::copy(&mut stream, &mut tokio::io::sink()))
                    .await;
            return None;
        }
        let before = content.len();
        content.resize(before + length, 0);
        stream.read_exact(&mut content[before..]).await.ok()?;
    }
    let reply = match how {
        Clamd::Says(reply) => reply,
        _ if is_infected(&content) => "stream: Eicar-Test-Signature FOUND",
        _ => "stream: OK",
    };
    stream.write_all(format!("{reply}\0").as_bytes()).await.ok()
}

pub(super) async fn icap(how: Icap) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = Server { port: listener.local_addr().unwrap().port(), counts: Arc::default() };
    let counts = Arc::clone(&server.counts);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counts.connections.fetch_add(1, Ordering::SeqCst);
            let counts = Arc::clone(&counts);
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                while serve_icap(&mut stream, how, &counts).await.is_some() {}
            });
        }
    });
    server
}

async fn head<S: AsyncRead + Unpin>(stream: &mut BufReader<S>) -> Option<String> {
    let mut text = String::new();
    while !text.ends_with("\r\n\r\n") {
        if stream.read_line(&mut text).await.ok()? == 0 {
            return None;
        }
    }
    Some(text)
}

/// The chunks up to the last one, and whether that one says that nothing follows.
async fn chunks<S: AsyncRead + Unpin>(stream: &mut BufReader<S>, content: &mut Vec<u8>) -> Option<bool> {
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let size = usize::from_str_radix(line.split(';').next().unwrap().trim(), 16).unwrap();
        let before = content.len();
        content.resize(before + size, 0);
        stream.read_exact(&mut content[before..]).await.ok()?;
        let mut end = String::new();
        stream.read_line(&mut end).await.ok()?;
        assert_eq!(end, "\r\n");
        if size == 0 {
            return Some(line.contains("ieof"));
        }
    }
}

/// One request; `None` where the connection ends.
async fn serve_icap<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut BufReader<S>,
    how: Icap,
    counts: &Counts,
) -> Option<()> {
    let asked = head(stream).await?;
    counts.asked.lock().unwrap().push(asked.lines().next().unwrap().to_owned());
    let (methods, preview, allows_204) = match how {
        Icap::Works { methods, preview, allows_204 } => (methods, preview, allows_204),
        Icap::OneEach | Icap::Cut => ("RESPMOD", None, true),
        Icap::Slow => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            return None;
        }
        Icap::Closes => return None,
        Icap::Says(text) => {
            stream.write_all(text.as_bytes()).await.ok()?;
            return None;
        }
    };
    let ends = matches!(how, Icap::OneEach).then_some(());
    if asked.starts_with("OPTIONS") {
        let preview = preview.map(|bytes| format!("Preview: {bytes}\r\n")).unwrap_or_default();
        let allow = if allows_204 { "Allow: 204\r\n" } else { "" };
        let answer = format!(
            "ICAP/1.0 200 OK\r\nMethods: {methods}\r\nISTag: \"tag-1\"\r\n{preview}{allow}Encapsulated: null-body=0\r\n\r\n"
        );
        stream.write_all(answer.as_bytes()).await.ok()?;
        return ends.is_none().then_some(());
    }
    counts.scans.fetch_add(1, Ordering::SeqCst);
    let heads = if asked.starts_with("RESPMOD") { 2 } else { 1 };
    let mut http = String::new();
    for _ in 0..heads {
        http = head(stream).await?;
    }
    assert_eq!(asked.contains("Preview: "), preview.is_some(), "{asked}");
    let mut content = Vec::new();
    let whole = chunks(stream, &mut content).await?;
    if let Some(bytes) = preview {
        assert!(content.len() <= bytes, "{} bytes of preview", content.len());
        if !whole {
            stream.write_all(b"ICAP/1.0 100 Continue\r\n\r\n").await.ok()?;
            chunks(stream, &mut content).await?;
        }
    }
    let infected = is_infected(&content);
    let page = "HTTP/1.1 403 Forbidden\r\nContent-Type: text/html\r\n\r\n";
    if matches!(how, Icap::Cut) {
        stream.write_all(b"ICAP/1.0 200 OK\r\nEncapsulated: res-hdr=0, res-body=20\r\n\r\nHTTP/1.1 200").await.ok()?;
        return None;
    }
    let answer = match infected {
        true => format!(
            "ICAP/1.0 200 OK\r\nISTag: \"tag-1\"\r\nX-Infection-Found: Type=0; Resolution=2; Threat=Eicar-Signature;\r\n\
             Encapsulated: res-hdr=0, res-body={}\r\n\r\n{page}5\r\nfound\r\n0\r\n\r\n",
            page.len()
        )
        .into_bytes(),
        false if allows_204 => b"ICAP/1.0 204 No Content\r\nISTag: \"tag-1\"\r\n\r\n".to_vec(),
        // A server that does not know 204 sends back what it got.
        false => {
            let part = if heads == 2 { "res" } else { "req" };
            let head = format!("ICAP/1.0 200 OK\r\nEncapsulated: {part}-hdr=0, {part}-body={}\r\n\r\n{http}", http.len());
            let chunk = format!("{:x}\r\n", content.len());
            let body: &[&[u8]] = if content.is_empty() { &[b"0\r\n\r\n"] } else { &[chunk.as_bytes(), &content, b"\r\n0\r\n\r\n"] };
            [head.as_bytes(), &body.concat()].concat()
        }
    };
    stream.write_all(&answer).await.ok()?;
    ends.is_none().then_some(())
}
