//! One exchange of the comparison.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use snapshot::content_hash;

use proxy_host::traffic::Headers;

/// What both engines are given: an exchange as it is on the wire, without transfer encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// `SEED-NUMBER`, or for one that began as a test of a rule set's suite, `SEED-NUMBER-TEST`.
    pub name: String,
    /// The address of the client.
    pub client: String,
    /// The method.
    pub method: Vec<u8>,
    /// The target: no control bytes, no space.
    pub uri: Vec<u8>,
    /// `HTTP/1.1`
    pub protocol: String,
    /// The headers, names as the client wrote them, values without NUL and line ends.
    pub headers: Headers,
    /// The body: any bytes.
    pub body: Vec<u8>,
    /// The status of the response.
    pub status: u16,
    /// The headers of the response.
    pub response_headers: Headers,
    /// The body of the response: any bytes.
    pub response_body: Vec<u8>,
    /// Whether our engine reads the body as nothing but what its type says.
    pub declared_only: bool,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            name: String::new(),
            client: "192.0.2.7".to_owned(),
            method: b"GET".to_vec(),
            uri: b"/".to_vec(),
            protocol: "HTTP/1.1".to_owned(),
            headers: Headers::new(),
            body: Vec::new(),
            status: 200,
            response_headers: Headers::new(),
            response_body: Vec::new(),
            declared_only: false,
        }
    }
}

impl Case {
    /// The line that [`super::peer`] is given: one JSON object, byte strings in base64.
    #[must_use]
    pub fn json(&self) -> Value {
        let of = |bytes: &[u8]| STANDARD.encode(bytes);
        let pairs = |headers: &Headers| -> Vec<Value> {
            headers.iter().map(|(name, value)| json!([of(name), of(value)])).collect()
        };
        json!({
            "name": self.name,
            "client": self.client,
            "method": of(&self.method),
            "uri": of(&self.uri),
            "version": self.protocol,
            "headers": pairs(&self.headers),
            "body": of(&self.body),
            "status": self.status,
            "response_headers": pairs(&self.response_headers),
            "response_body": of(&self.response_body),
        })
    }

    /// Eight hexadecimal digits of a hash over everything both engines are given.
    #[must_use]
    pub fn digest(&self) -> String {
        // Sorted: in what order a JSON object keeps its members is up to how serde_json was built.
        let members = match (Self { name: String::new(), ..self.clone() }).json() {
            Value::Object(members) => members.into_iter().collect::<BTreeMap<_, _>>(),
            _ => BTreeMap::new(),
        };
        let text = serde_json::to_string(&members).unwrap_or_default();
        let hash = content_hash(text.as_bytes());
        hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The first value of a header of the request; empty if there is none.
    #[must_use]
    pub fn header(&self, name: &str) -> &[u8] {
        let mut headers = self.headers.iter();
        let found = headers.find(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()));
        found.map(|(_, value)| value.as_slice()).unwrap_or_default()
    }

    /// The exchange for people: control bytes and others that do not print are escaped.
    #[must_use]
    pub fn text(&self) -> String {
        let show = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let headers = |headers: &Headers| -> String {
            headers.iter().map(|(name, value)| format!("{}: {}\n", show(name), show(value))).collect()
        };
        format!(
            "{} {} {}\n{}\n{}\n\n{}\n{}\n{}\n",
            show(&self.method),
            show(&self.uri),
            self.protocol,
            headers(&self.headers),
            show(&self.body),
            self.status,
            headers(&self.response_headers),
            show(&self.response_body)
        )
    }
}
