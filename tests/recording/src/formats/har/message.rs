//! Bodies of archives: text in Unicode, base64, or the fields of a form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::shape;
use crate::traffic::Headers;

/// `request.postData`. The standard knows no encoding; some recorders write one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PostData {
    mime_type: Option<String>,
    text: Option<String>,
    #[serde(alias = "_encoding")]
    encoding: Option<String>,
    #[serde(default)]
    params: Option<Vec<Param>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Param {
    name: String,
    value: Option<String>,
    file_name: Option<String>,
    content_type: Option<String>,
}

/// `response.content`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Content {
    size: Option<f64>,
    text: Option<String>,
    encoding: Option<String>,
}

/// The body of a request, with headers that fit it.
pub(super) fn request_body(
    data: Option<PostData>,
    announced: Option<f64>,
    headers: &mut Headers,
    notes: &mut Vec<String>,
) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    if let Some(data) = data {
        if let Some(kind) = data.mime_type.as_deref().filter(|kind| !kind.is_empty())
            && shape::value(headers, "content-type").is_none()
        {
            headers.push((b"content-type".to_vec(), kind.into()));
            notes.push("the content-type of the request is the one of its `postData`".to_owned());
        }
        body = match (data.text.filter(|text| !text.is_empty()), data.params.unwrap_or_default()) {
            (Some(text), _) => decode(text, data.encoding.as_deref(), "request.postData", notes)?,
            (None, params) if !params.is_empty() => {
                notes.push("the request's body was made from the parameters that were recorded".to_owned());
                form(&params, shape::value(headers, "content-type").unwrap_or_default())
            }
            (None, _) => Vec::new(),
        };
    }
    if body.is_empty() && announced.is_some_and(|size| size > 0.0) {
        notes.push("the recorder left out the request's body".to_owned());
    }
    // An encoding of a request's body stays: recorders do not decode requests.
    fit(headers, &body, "request", notes);
    Ok(body)
}

/// The body of a response, decompressed as recorders have it, with headers that fit it.
pub(super) fn response_body(
    content: Option<Content>,
    headers: &mut Headers,
    notes: &mut Vec<String>,
) -> Result<Vec<u8>, String> {
    let Some(content) = content else { return Ok(Vec::new()) };
    let is_text = content.encoding.as_deref().unwrap_or_default().is_empty();
    let body = decode(content.text.unwrap_or_default(), content.encoding.as_deref(), "response.content", notes)?;
    if is_text && !body.is_ascii() && !is_utf8(headers) {
        notes.push("the response's body is in UTF-8 now, not in the charset of its content-type".to_owned());
    }
    if body.is_empty() && content.size.is_some_and(|size| size > 0.0) {
        notes.push("the recorder left out the response's body".to_owned());
    }
    if !body.is_empty() {
        headers.retain(|(name, _)| name != b"content-encoding");
        // The length was that of the compressed body: no news where it changes.
        shape::fit_length(headers, &body);
    }
    fit(headers, &body, "response", notes);
    Ok(body)
}

/// The content-type names no other charset.
fn is_utf8(headers: &Headers) -> bool {
    let kind = String::from_utf8_lossy(shape::value(headers, "content-type").unwrap_or_default()).to_ascii_lowercase();
    kind.split_once("charset=").is_none_or(|(_, charset)| charset.trim_matches('"').starts_with("utf-8"))
}

fn fit(headers: &mut Headers, body: &[u8], whose: &str, notes: &mut Vec<String>) {
    // A response to HEAD or with 304 has a length and no body.
    if whose == "response" && body.is_empty() {
        return;
    }
    if let Some(announced) = shape::fit_length(headers, body) {
        notes.push(format!(
            "the {whose}'s body has {} bytes, {announced} were announced: the length is corrected",
            body.len()
        ));
    }
}

fn decode(text: String, encoding: Option<&str>, field: &str, notes: &mut Vec<String>) -> Result<Vec<u8>, String> {
    match encoding.unwrap_or_default() {
        "" => {
            if text.contains('\u{fffd}') {
                notes.push(format!("`{field}` lost bytes when it was recorded: it was no text"));
            }
            Ok(text.into_bytes())
        }
        "base64" => STANDARD.decode(text).map_err(|error| format!("`{field}.text` is no base64: {error}")),
        other => Err(format!("`{field}.encoding` is `{}`; only `base64` is known", other.escape_debug())),
    }
}

/// A form's body as a browser writes it.
fn form(params: &[Param], kind: &[u8]) -> Vec<u8> {
    let kind = String::from_utf8_lossy(kind);
    match kind.split_once("boundary=") {
        Some((_, boundary)) if kind.starts_with("multipart/") => {
            multipart(params, boundary.split(';').next().unwrap_or_default().trim().trim_matches('"'))
        }
        _ => {
            let fields = params.iter().map(|param| match param.value.as_deref() {
                Some(value) => format!("{}={}", plain(&param.name), plain(value)),
                None => plain(&param.name),
            });
            fields.collect::<Vec<_>>().join("&").into_bytes()
        }
    }
}

fn multipart(params: &[Param], boundary: &str) -> Vec<u8> {
    let mut out = String::new();
    for param in params {
        out.push_str(&format!("--{boundary}\r\ncontent-disposition: form-data; name=\"{}\"", param.name));
        if let Some(file) = &param.file_name {
            out.push_str(&format!("; filename=\"{file}\""));
        }
        if let Some(kind) = &param.content_type {
            out.push_str(&format!("\r\ncontent-type: {kind}"));
        }
        out.push_str(&format!("\r\n\r\n{}\r\n", param.value.as_deref().unwrap_or_default()));
    }
    out.push_str(&format!("--{boundary}--\r\n"));
    out.into_bytes()
}

/// Some recorders decode the fields, some do not: what could not stand in a form is encoded, all else stays.
fn plain(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'&' | b'=' | b'#');
    if text.bytes().all(is_plain) {
        text.to_owned()
    } else {
        form_urlencoded::byte_serialize(text.as_bytes()).collect()
    }
}
