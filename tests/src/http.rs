//! HTTP/1.1 by hand: any bytes out, what comes back in parts. No library would send what these tests send.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use serde_json::Value;

/// How long a test waits for one answer before it calls it none.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// No answer that a test reads is longer.
const MAX_BODY: usize = 256 << 20;

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Names in lower case with their values, in order.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body, chunks joined.
    pub body: Vec<u8>,
}

impl Response {
    /// The first value of a header, by its lower-case name, as text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<String> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    ///
    /// When it is none; with the body.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!("status {}, and the body is no JSON ({error}): {}", self.status, self.text())
        })
    }
}

/// A request under construction. Header names and values go out as they are.
#[derive(Debug, Clone)]
pub struct Request {
    method: String,
    target: Vec<u8>,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
    body: Option<Vec<u8>>,
    chunk: Option<usize>,
}

impl Request {
    /// A request with no headers but Host.
    #[must_use]
    pub fn new(method: &str, target: impl AsRef<[u8]>) -> Self {
        Self {
            method: method.to_owned(),
            target: target.as_ref().to_vec(),
            headers: Vec::new(),
            body: None,
            chunk: None,
        }
    }

    /// A GET with the headers that a browser sends.
    #[must_use]
    pub fn get(target: impl AsRef<[u8]>) -> Self {
        Self::new("GET", target)
            .header("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
            .header("accept", "text/html,application/json;q=0.9,*/*;q=0.8")
            .header("accept-language", "en-GB,en;q=0.5")
    }

    /// A POST with the headers that a browser sends.
    #[must_use]
    pub fn post(target: impl AsRef<[u8]>, content_type: &str, body: impl AsRef<[u8]>) -> Self {
        let mut request = Self::get(target).header("content-type", content_type).body(body);
        request.method = "POST".to_owned();
        request
    }

    /// A POST of JSON.
    #[must_use]
    pub fn json(target: impl AsRef<[u8]>, body: &Value) -> Self {
        Self::post(target, "application/json", body.to_string())
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.as_ref().to_vec(), value.as_ref().to_vec()));
        self
    }

    /// Gives it a body, with a content-length.
    #[must_use]
    pub fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = Some(body.as_ref().to_vec());
        self
    }

    /// Sends the body in chunks of `size` bytes instead of with a content-length.
    #[must_use]
    pub fn chunked(mut self, size: usize) -> Self {
        self.chunk = Some(size.max(1));
        self
    }

    /// The bytes on the wire.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(self.method.as_bytes());
        out.push(b' ');
        out.extend_from_slice(&self.target);
        out.extend_from_slice(b" HTTP/1.1\r\n");
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(b"host")) {
            out.extend_from_slice(b"host: demo.test\r\n");
        }
        for (name, value) in &self.headers {
            out.extend_from_slice(name);
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
        match (&self.body, self.chunk) {
            (None, _) => out.extend_from_slice(b"\r\n"),
            (Some(body), None) => {
                out.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
                out.extend_from_slice(body);
            }
            (Some(body), Some(size)) => {
                out.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
                for chunk in body.chunks(size) {
                    out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                    out.extend_from_slice(chunk);
                    out.extend_from_slice(b"\r\n");
                }
                out.extend_from_slice(b"0\r\n\r\n");
            }
        }
        out
    }

    /// Sends it on a connection of its own.
    ///
    /// # Errors
    ///
    /// When there is no answer, or none that is HTTP.
    pub fn send(&self, to: SocketAddr) -> io::Result<Response> {
        Connection::open(to)?.exchange(self)
    }

    /// Sends it on a connection of its own, from an address of this machine: every 127.x.y.z is one, and a caller of
    /// its own to a gateway.
    ///
    /// # Errors
    ///
    /// When there is no answer, or none that is HTTP.
    pub fn send_from(&self, source: Ipv4Addr, to: SocketAddr) -> io::Result<Response> {
        Connection::open_from(source, to)?.exchange(self)
    }
}

/// A client connection that is kept.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    ///
    /// When nobody listens.
    pub fn open(to: SocketAddr) -> io::Result<Self> {
        Self::over(TcpStream::connect_timeout(&to, PATIENCE)?)
    }

    /// Connects from an address of this machine.
    ///
    /// # Errors
    ///
    /// When nobody listens or the address is not this machine's.
    pub fn open_from(source: Ipv4Addr, to: SocketAddr) -> io::Result<Self> {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        bind(&socket, &SocketAddr::from((source, 0)))?;
        connect(&socket, &to)?;
        Self::over(TcpStream::from(socket))
    }

    fn over(stream: TcpStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Waits at most this long for every answer, instead of [`PATIENCE`].
    ///
    /// # Errors
    ///
    /// When the system refuses the time.
    pub fn set_patience(&mut self, patience: Duration) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(Some(patience))
    }

    /// This end's address.
    ///
    /// # Errors
    ///
    /// When the connection is gone.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.stream.get_ref().local_addr()
    }

    /// Sends any bytes.
    ///
    /// # Errors
    ///
    /// When the peer has closed.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Says that nothing more will be sent.
    ///
    /// # Errors
    ///
    /// When the peer has closed.
    pub fn finish(&mut self) -> io::Result<()> {
        self.stream.get_mut().shutdown(std::net::Shutdown::Write)
    }

    /// One request, one answer.
    ///
    /// # Errors
    ///
    /// When there is no answer, or none that is HTTP.
    pub fn exchange(&mut self, request: &Request) -> io::Result<Response> {
        // A server that refuses early may close before it has read everything; its answer still counts.
        let written = self.write(&request.encode());
        match self.read(request.method == "HEAD") {
            Ok(response) => Ok(response),
            Err(error) => Err(written.err().unwrap_or(error)),
        }
    }

    /// Reads one whole answer, interim ones left out.
    ///
    /// # Errors
    ///
    /// When the connection ends before the answer does, or it is no HTTP.
    pub fn read(&mut self, bodyless: bool) -> io::Result<Response> {
        loop {
            let mut response = self.read_head()?;
            if response.status != 101 && response.status < 200 {
                continue;
            }
            if !bodyless && response.status != 101 && response.status != 204 && response.status != 304 {
                response.body = self.read_body(&response)?;
            }
            return Ok(response);
        }
    }

    /// Reads status and headers alone, for answers that go on (event streams, upgrades).
    ///
    /// # Errors
    ///
    /// When the connection ends first, or it is no HTTP.
    pub fn read_head(&mut self) -> io::Result<Response> {
        let line = self.line()?;
        let status = line
            .strip_prefix(b"HTTP/1.")
            .and_then(|rest| rest.get(2..5))
            .and_then(|code| std::str::from_utf8(code).ok())
            .and_then(|code| code.parse().ok())
            .ok_or_else(|| invalid(format!("no status line: {}", String::from_utf8_lossy(&line))))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let colon = line
                .iter()
                .position(|byte| *byte == b':')
                .ok_or_else(|| invalid(format!("no header: {}", String::from_utf8_lossy(&line))))?;
            headers.push((
                String::from_utf8_lossy(&line[..colon]).to_ascii_lowercase(),
                line[colon + 1..].trim_ascii().to_vec(),
            ));
        }
        Ok(Response { status, headers, body: Vec::new() })
    }

    /// Reads what has come, at least one byte.
    ///
    /// # Errors
    ///
    /// When nothing comes in time or the connection ends.
    pub fn read_some(&mut self) -> io::Result<Vec<u8>> {
        let bytes = self.stream.fill_buf()?.to_vec();
        if bytes.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.stream.consume(bytes.len());
        Ok(bytes)
    }

    fn read_body(&mut self, response: &Response) -> io::Result<Vec<u8>> {
        let chunked =
            response.header("transfer-encoding").is_some_and(|value| value.to_ascii_lowercase().contains("chunked"));
        let mut body = Vec::new();
        if chunked {
            loop {
                let line = String::from_utf8_lossy(&self.line()?).into_owned();
                let size = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16)
                    .map_err(|_| invalid(format!("no chunk size: {line}")))?;
                if size == 0 {
                    while !self.line()?.is_empty() {}
                    return Ok(body);
                }
                let start = body.len();
                if start + size > MAX_BODY {
                    return Err(invalid("the body is too long".into()));
                }
                body.resize(start + size, 0);
                self.stream.read_exact(&mut body[start..])?;
                self.line()?;
            }
        }
        match response.header("content-length") {
            Some(length) => {
                let length = length
                    .parse::<usize>()
                    .ok()
                    .filter(|length| *length <= MAX_BODY)
                    .ok_or_else(|| invalid(format!("content-length {length}")))?;
                body.resize(length, 0);
                self.stream.read_exact(&mut body)?;
            }
            None => {
                self.stream.by_ref().take(MAX_BODY as u64).read_to_end(&mut body)?;
            }
        }
        Ok(body)
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        if self.stream.read_until(b'\n', &mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        while line.last().is_some_and(|byte| matches!(byte, b'\r' | b'\n')) {
            line.pop();
        }
        Ok(line)
    }
}

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// A multipart/form-data body of fields and files, with its content type.
///
/// A part is (field name, file name, value).
#[must_use]
pub fn multipart(parts: &[(&str, Option<&str>, &[u8])]) -> (String, Vec<u8>) {
    let boundary = "----palisade-test-7d1c2f";
    let mut body = Vec::new();
    for (name, file, value) in parts {
        body.extend_from_slice(format!("--{boundary}\r\ncontent-disposition: form-data; name=\"{name}\"").as_bytes());
        if let Some(file) = file {
            body.extend_from_slice(
                format!("; filename=\"{file}\"\r\ncontent-type: application/octet-stream").as_bytes(),
            );
        }
        body.extend_from_slice(b"\r\n\r\n");
        body.extend_from_slice(value);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body)
}

/// Percent-encodes what may not stand in a query.
#[must_use]
pub fn percent(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect()
}
