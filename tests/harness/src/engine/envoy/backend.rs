//! What the gateway forwards to: it takes whatever comes and answers as the suite's backend does.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use ftw::request::reflected;
use proxy_host::traffic::{Headers, Response};

/// The most that a body may have: more than any test's.
const MAX_BODY: u64 = 64 << 20;

/// A running backend. Its thread lives as long as this process does; it costs nothing while nobody asks.
#[derive(Debug)]
pub(super) struct Backend {
    address: SocketAddr,
    prepared: Prepared,
    last: Last,
}

/// The headers and the body of the last request.
type Last = Arc<Mutex<Option<(Headers, Vec<u8>)>>>;

/// What it answers next, whatever it is asked; `None` where it answers as the suite's backend does.
type Prepared = Arc<Mutex<Option<Response>>>;

/// A request as the gateway forwards it.
struct Forwarded {
    bodyless: bool,
    path: Vec<u8>,
    headers: Headers,
    body: Vec<u8>,
}

impl Backend {
    /// Starts one on a free loopback port.
    ///
    /// # Errors
    ///
    /// When the system has no port or no thread left.
    pub(super) fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let prepared = Prepared::default();
        let last = Last::default();
        let shared = (Arc::clone(&prepared), Arc::clone(&last));
        thread::Builder::new().name("backend".into()).spawn(move || {
            for stream in listener.incoming().flatten() {
                let (prepared, last) = shared.clone();
                // A connection that breaks shows as the gateway's 503.
                thread::spawn(move || serve(stream, &prepared, &last));
            }
        })?;
        Ok(Self { address, prepared, last })
    }

    /// Has it give this answer from now on.
    pub(super) fn prepare(&self, response: Response) {
        *self.prepared.lock().unwrap_or_else(PoisonError::into_inner) = Some(response);
    }

    /// Takes the headers and the body of the last request.
    pub(super) fn take_last(&self) -> Option<(Headers, Vec<u8>)> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

fn serve(stream: TcpStream, prepared: &Prepared, last: &Last) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader)? {
        let prepared = prepared.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let response = prepared.or_else(|| reflected(&request.path, &request.body).ok()).unwrap_or_default();
        *last.lock().unwrap_or_else(PoisonError::into_inner) = Some((request.headers, request.body));
        writer.write_all(&write(&response, request.bodyless))?;
    }
    Ok(())
}

/// The next request; `None` where the connection ends.
fn read(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Forwarded>> {
    let Some(line) = read_line(reader)? else { return Ok(None) };
    let mut words = line.split(|&byte| byte == b' ');
    let bodyless = words.next() == Some(b"HEAD");
    let path = words.next().unwrap_or_default().to_vec();
    let (mut length, mut chunked) = (0, false);
    let mut headers = Headers::new();
    while let Some(line) = read_line(reader)?.filter(|line| !line.is_empty()) {
        if let Some(colon) = line.iter().position(|&byte| byte == b':') {
            let (name, value) = line.split_at(colon);
            headers.push((name.to_ascii_lowercase(), value[1..].trim_ascii().to_vec()));
        }
        let text = String::from_utf8_lossy(&line).to_ascii_lowercase();
        match text.split_once(':') {
            Some(("content-length", value)) => length = value.trim().parse().unwrap_or(0),
            Some(("transfer-encoding", value)) => chunked = value.contains("chunked"),
            _ => {}
        }
    }
    let mut body = Vec::new();
    if !chunked {
        reader.by_ref().take(length.min(MAX_BODY)).read_to_end(&mut body)?;
        return Ok(Some(Forwarded { bodyless, path, headers, body }));
    }
    while let Some(size) = read_line(reader)? {
        let size = String::from_utf8_lossy(&size).into_owned();
        let size = u64::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16).unwrap_or(0);
        reader.by_ref().take(size.min(MAX_BODY)).read_to_end(&mut body)?;
        // The line end of a chunk, or the last of the trailers.
        while read_line(reader)?.is_some_and(|line| !line.is_empty()) {}
        if size == 0 {
            break;
        }
    }
    Ok(Some(Forwarded { bodyless, path, headers, body }))
}

/// A line without its end; `None` where nothing follows.
fn read_line(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if reader.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(line.trim_ascii_end().to_vec()))
}

fn write(response: &Response, bodyless: bool) -> Vec<u8> {
    let mut out = format!("HTTP/1.1 {} As asked\r\n", response.status).into_bytes();
    // The body is framed by its length, whatever it was framed by once.
    let framing: [&[u8]; 3] = [b"content-length", b"transfer-encoding", b"connection"];
    for (name, value) in response.headers.iter().filter(|(name, _)| !framing.contains(&name.as_slice())) {
        for part in [name.as_slice(), b": ", value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    // A response to HEAD says the length that one to GET would have, and one without a body may have none.
    let allowed = !matches!(response.status, 204 | 304);
    match response.trailers.is_empty() {
        true if allowed => out.extend_from_slice(format!("content-length: {}\r\n", response.body.len()).as_bytes()),
        true => {}
        false => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
    }
    out.extend_from_slice(b"\r\n");
    if bodyless || !allowed {
        return out;
    }
    if response.trailers.is_empty() {
        out.extend_from_slice(&response.body);
        return out;
    }
    out.extend_from_slice(format!("{:x}\r\n", response.body.len()).as_bytes());
    out.extend_from_slice(&response.body);
    out.extend_from_slice(b"\r\n0\r\n");
    for (name, value) in &response.trailers {
        [name, b": ".as_slice(), value, b"\r\n"].iter().for_each(|part| out.extend_from_slice(part));
    }
    out.extend_from_slice(b"\r\n");
    out
}
