//! The shape of a corpus' files.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::encode::{Part, form, multipart};
use crate::case::pairs;
use proxy_host::traffic::{Exchange, Headers, Request};

/// Where requests go that name no host.
const HOST: &str = "www.example.com";
/// The line between the parts of a body, like Chrome's.
const BOUNDARY: &str = "----WebKitFormBoundary7MA4YWxkTrZu0gWq";

/// Names and values in their order.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Pairs(#[serde(deserialize_with = "pairs")] pub(super) Vec<(String, String)>);

/// One file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) requests: Vec<Entry>,
}

/// One request. At most one of `form`, `body`, `base64` and `parts` makes its body.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// What it is; no two in a file are the same.
    pub(super) name: String,
    /// Whose headers it has, by a name in `clients.yaml`.
    client: String,
    /// GET, or POST where there is a body.
    method: Option<String>,
    host: Option<String>,
    /// As on the wire, up to the query.
    path: String,
    /// The query's fields, plainly; a query may also stand in `path`.
    #[serde(default)]
    query: Pairs,
    /// In addition to the client's; a header of the same name takes its place, and an empty value takes it away.
    #[serde(default)]
    headers: Pairs,
    /// The fields of a form, plainly.
    #[serde(default)]
    form: Pairs,
    /// A body as it is; `content-type` says what it is.
    body: Option<String>,
    /// A body that is no text.
    base64: Option<String>,
    /// The parts of a multipart body.
    #[serde(default)]
    parts: Vec<PartEntry>,
    #[serde(rename = "content-type")]
    content_type: Option<String>,
    /// The rules by which the core rule set denies it at paranoia level 1.
    #[serde(default)]
    pub(super) known: Vec<u64>,
}

/// A field or a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartEntry {
    name: String,
    file: Option<String>,
    #[serde(rename = "content-type")]
    content_type: Option<String>,
    text: Option<String>,
    base64: Option<String>,
}

/// Reads a YAML file.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_saphyr::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

impl Entry {
    /// The request as its client sends it.
    pub(super) fn exchange(self, clients: &BTreeMap<String, Pairs>) -> Result<Exchange, String> {
        let client = clients.get(&self.client).ok_or_else(|| format!("there is no client `{}`", self.client))?;
        let (body, content_type) = self.body()?;
        let path = match (self.query.0.is_empty(), self.path.contains('?')) {
            (true, _) => self.path.clone(),
            (false, false) => format!("{}?{}", self.path, form(&self.query.0)),
            (false, true) => return Err("there is a query in the path, and another one".to_owned()),
        };
        let method = match (self.method, body.is_empty()) {
            (Some(method), _) => method,
            (None, true) => "GET".to_owned(),
            (None, false) => "POST".to_owned(),
        };
        let mut headers: Headers = vec![
            (b":method".to_vec(), method.into_bytes()),
            (b":path".to_vec(), path.into_bytes()),
            (b":authority".to_vec(), self.host.unwrap_or_else(|| HOST.to_owned()).into_bytes()),
        ];
        let mut put = |name: &str, value: &str| {
            let name = name.to_ascii_lowercase().into_bytes();
            headers.retain(|(known, _)| *known != name);
            if !value.is_empty() {
                headers.push((name, value.as_bytes().to_vec()));
            }
        };
        client.0.iter().for_each(|(name, value)| put(name, value));
        if let Some(content_type) = &content_type {
            put("content-type", content_type);
        }
        if !body.is_empty() {
            put("content-length", &body.len().to_string());
        }
        self.headers.0.iter().for_each(|(name, value)| put(name, value));
        let request = Request { headers, body, ..Request::default() };
        Ok(Exchange { request, ..Exchange::default() })
    }

    /// The body, and what it is.
    fn body(&self) -> Result<(Vec<u8>, Option<String>), String> {
        let given = [!self.form.0.is_empty(), self.body.is_some(), self.base64.is_some(), !self.parts.is_empty()];
        if given.iter().filter(|given| **given).count() > 1 {
            return Err("there are two bodies".to_owned());
        }
        let (body, usual) = if !self.form.0.is_empty() {
            (form(&self.form.0).into_bytes(), Some("application/x-www-form-urlencoded".to_owned()))
        } else if !self.parts.is_empty() {
            let parts = self.parts.iter().map(PartEntry::part).collect::<Result<Vec<_>, _>>()?;
            (multipart(BOUNDARY, &parts), Some(format!("multipart/form-data; boundary={BOUNDARY}")))
        } else if let Some(encoded) = &self.base64 {
            (decode(encoded)?, None)
        } else {
            (self.body.clone().unwrap_or_default().into_bytes(), None)
        };
        let content_type = self.content_type.clone().or(usual);
        if !body.is_empty() && content_type.is_none() {
            return Err("the body has no content-type".to_owned());
        }
        Ok((body, content_type))
    }
}

impl PartEntry {
    fn part(&self) -> Result<Part, String> {
        let mut disposition = format!("form-data; name=\"{}\"", self.name);
        if let Some(file) = &self.file {
            disposition.push_str(&format!("; filename=\"{file}\""));
        }
        let mut headers = vec![(b"Content-Disposition".to_vec(), disposition.into_bytes())];
        if let Some(content_type) = &self.content_type {
            headers.push((b"Content-Type".to_vec(), content_type.clone().into_bytes()));
        }
        let body = match (&self.text, &self.base64) {
            (Some(text), None) => text.clone().into_bytes(),
            (None, Some(encoded)) => decode(encoded)?,
            _ => return Err(format!("the part `{}` needs `text` or `base64`", self.name)),
        };
        Ok(Part { headers, body })
    }
}

fn decode(encoded: &str) -> Result<Vec<u8>, String> {
    let packed: String = encoded.split_whitespace().collect();
    STANDARD.decode(packed).map_err(|error| format!("no base64: {error}"))
}
