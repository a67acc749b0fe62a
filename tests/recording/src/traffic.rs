//! One exchange as a script: what the client sends, and what the backend answers.

/// Names and values in their order, as bytes. Names are in lower case, as a gateway gives them to filters.
pub type Headers = Vec<(Vec<u8>, Vec<u8>)>;

/// What happens: a request, and the answer that the backend would give to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exchange {
    /// The client's part.
    pub request: Request,
    /// The backend's part; it is not looked at where a filter answers in the backend's place.
    pub response: Response,
}

/// A request as it reaches the filters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Pseudo headers (`:method`, `:path`, `:authority`) and headers.
    pub headers: Headers,
    /// The body, without transfer encoding.
    pub body: Vec<u8>,
    /// Trailers; mostly none.
    pub trailers: Headers,
    /// The protocol as rules see it (`HTTP/1.1`).
    pub protocol: Vec<u8>,
    /// The client's address and port.
    pub peer: String,
    /// The gateway's own address and port that the connection came to.
    pub local: String,
    /// The name of the route that matches; empty for none.
    pub route: String,
    /// The bytes that the client writes, for engines that have a socket; empty where they follow from the rest, see
    /// [`Request::on_wire`].
    pub wire: Vec<u8>,
}

/// A response as it comes from the backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Headers without `:status`.
    pub headers: Headers,
    /// The body.
    pub body: Vec<u8>,
    /// Trailers; mostly none.
    pub trailers: Headers,
}

impl Exchange {
    /// About how many bytes it takes in memory.
    #[must_use]
    pub fn weight(&self) -> usize {
        let Exchange { request, response } = self;
        let lists = [&request.headers, &request.trailers, &response.headers, &response.trailers];
        let headers = lists.into_iter().flatten().map(|(name, value)| name.len() + value.len() + 48);
        512 + headers.sum::<usize>() + request.body.len() + request.wire.len() + response.body.len()
    }
}

impl Default for Request {
    fn default() -> Self {
        Self {
            headers: Vec::new(),
            body: Vec::new(),
            trailers: Vec::new(),
            protocol: b"HTTP/1.1".to_vec(),
            peer: "127.0.0.1:40000".to_owned(),
            local: "127.0.0.1:80".to_owned(),
            route: String::new(),
            wire: Vec::new(),
        }
    }
}

impl Default for Response {
    fn default() -> Self {
        Self { status: 200, headers: Vec::new(), body: Vec::new(), trailers: Vec::new() }
    }
}

impl Request {
    /// A request without a body.
    #[must_use]
    pub fn get(path: &str) -> Self {
        let pairs = [(":method", "GET"), (":path", path), (":authority", "localhost")];
        let headers = pairs.map(|(name, value)| (name.into(), value.into())).to_vec();
        Self { headers, ..Self::default() }
    }

    /// The first value of a header or pseudo header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.iter().find(|(known, _)| known == name.as_bytes()).map(|(_, value)| value.as_slice())
    }

    /// The bytes that a client writes: [`Request::wire`], or the headers and the body with its length.
    #[must_use]
    pub fn on_wire(&self) -> Vec<u8> {
        if !self.wire.is_empty() {
            return self.wire.clone();
        }
        let value = |name: &str| self.header(name).unwrap_or_default();
        let mut out = [value(":method"), b" ", value(":path"), b" ", &self.protocol, b"\r\n"].concat();
        let mut put = |name: &[u8], value: &[u8]| {
            [name, b": ", value, b"\r\n"].iter().for_each(|part| out.extend_from_slice(part));
        };
        if let Some(host) = self.header(":authority") {
            put(b"host", host);
        }
        for (name, value) in self.headers.iter().filter(|(name, _)| !name.starts_with(b":")) {
            put(name, value);
        }
        let framed = |name: &str| self.header(name).is_some();
        if !self.body.is_empty() && !framed("content-length") && !framed("transfer-encoding") {
            put(b"content-length", self.body.len().to_string().as_bytes());
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&self.body);
        out
    }

    /// Method, path and protocol, for people: control bytes are escaped.
    #[must_use]
    pub fn line(&self) -> String {
        let word = |name| self.header(name).unwrap_or_default().escape_ascii().to_string();
        format!("{} {} {}", word(":method"), word(":path"), self.protocol.escape_ascii())
    }
}
