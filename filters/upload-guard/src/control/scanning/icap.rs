//! ICAP (RFC 3507): OPTIONS, then RESPMOD or REQMOD with a preview.

mod message;

use tokio::io::{AsyncWrite, AsyncWriteExt as _, BufReader};

use self::message::{Head, Reply, read_reply};
use super::{IoStream, Verdict, shown};
use crate::control::{IcapMode, MalwareScanner};

/// How much is sent at once, in bytes.
const CHUNK: usize = 64 << 10;
/// The longest preview that is sent, in bytes.
const MAX_PREVIEW: usize = 64 << 10;
/// Headers by which servers name what they have found. `X-Infection-Found` and `X-Violations-Found` are of the extensions of ICAP
/// (draft-stecher-icap-subid), the others of single products.
const FOUND: [&str; 6] =
    ["x-infection-found", "x-virus-id", "x-virus-name", "x-violations-found", "x-infected", "x-blocked-reason"];

/// A connection, which serves one request after the other.
pub(super) type Connection = BufReader<Box<dyn IoStream>>;

/// What a service says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Options {
    /// How many bytes it wants to see first; `None` if it wants no preview.
    pub(super) preview: Option<usize>,
    /// It may answer that nothing is to be changed.
    pub(super) allows_204: bool,
    /// Its state, which changes with its database (`ISTag`); empty if it does not say.
    pub(super) tag: String,
}

/// Asks a service for its options.
///
/// # Errors
/// Why it cannot be used.
pub(super) async fn options(connection: &mut Connection, scanner: &MalwareScanner) -> Result<(Options, bool), String> {
    let request = head("OPTIONS", scanner, &[("Encapsulated", "null-body=0".to_owned())]);
    send(connection, request.as_bytes()).await?;
    let reply = read_reply(connection, 0, |_| false).await?;
    if reply.head.status != 200 {
        return Err(format!("the ICAP server answered OPTIONS with {}", reply.head.status));
    }
    let method = match scanner.icap_mode {
        IcapMode::Respmod => "RESPMOD",
        IcapMode::Reqmod => "REQMOD",
    };
    let methods = reply.head.get("methods").unwrap_or_default();
    if !methods.is_empty() && !methods.split(',').any(|known| known.trim().eq_ignore_ascii_case(method)) {
        return Err(format!("the service `{}` does not take {method}, but {}", scanner.service, shown(methods)));
    }
    let allows = reply.head.get("allow").unwrap_or_default();
    let options = Options {
        preview: reply.head.get("preview").and_then(|bytes| bytes.trim().parse().ok()),
        allows_204: allows.split(',').any(|status| status.trim() == "204"),
        tag: shown(reply.head.get("istag").unwrap_or_default().trim_matches('"')),
    };
    Ok((options, reply.head.keeps_alive()))
}

/// Sends a file; the verdict, and whether the connection serves another request.
///
/// # Errors
/// Why there is no verdict.
pub(super) async fn scan(
    connection: &mut Connection,
    scanner: &MalwareScanner,
    options: &Options,
    content: &[u8],
) -> Result<(Verdict, bool), String> {
    let (request, preview) = request(scanner, options, content);
    send(connection, &request).await?;
    let mut reply = read_reply(connection, content.len(), is_infected).await?;
    if reply.head.status == 100 {
        let rest = preview.and_then(|shown| content.get(shown..)).filter(|rest| !rest.is_empty());
        let Some(rest) = rest else { return Err("the ICAP server asks for more than there is".to_owned()) };
        send(connection, &chunked(rest)).await?;
        send(connection, b"0\r\n\r\n").await?;
        reply = read_reply(connection, content.len(), is_infected).await?;
    }
    let keeps = reply.head.keeps_alive() && reply.complete;
    verdict(&reply, content).map(|verdict| (verdict, keeps))
}

/// The request with the whole file or its preview; how many bytes the preview has.
fn request(scanner: &MalwareScanner, options: &Options, content: &[u8]) -> (Vec<u8>, Option<usize>) {
    let length = content.len();
    let (method, http, parts) = match scanner.icap_mode {
        IcapMode::Respmod => {
            let asked = "GET http://upload.invalid/file HTTP/1.1\r\nHost: upload.invalid\r\n\r\n".to_owned();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {length}\r\n\r\n"
            );
            let parts = format!("req-hdr=0, res-hdr={}, res-body={}", asked.len(), asked.len() + answer.len());
            ("RESPMOD", asked + &answer, parts)
        }
        IcapMode::Reqmod => {
            let asked = format!(
                "POST http://upload.invalid/file HTTP/1.1\r\nHost: upload.invalid\r\nContent-Type: application/octet-stream\r\n\
                 Content-Length: {length}\r\n\r\n"
            );
            let parts = format!("req-hdr=0, req-body={}", asked.len());
            ("REQMOD", asked, parts)
        }
    };
    let preview = options.preview.map(|bytes| bytes.min(MAX_PREVIEW).min(length));
    let mut headers = vec![("Allow", "204".to_owned())];
    if let Some(bytes) = preview {
        headers.push(("Preview", bytes.to_string()));
    }
    headers.push(("Encapsulated", parts));
    let mut bytes = head(method, scanner, &headers).into_bytes();
    bytes.extend_from_slice(http.as_bytes());
    let first = preview.and_then(|bytes| content.get(..bytes)).unwrap_or(content);
    bytes.extend_from_slice(&chunked(first));
    // Where the preview is the whole file, the server is told that nothing follows.
    let ends: &[u8] = if preview == Some(length) { b"0; ieof\r\n\r\n" } else { b"0\r\n\r\n" };
    bytes.extend_from_slice(ends);
    (bytes, preview.filter(|bytes| *bytes < length))
}

fn head(method: &str, scanner: &MalwareScanner, headers: &[(&str, String)]) -> String {
    let host = if scanner.host.contains(':') { format!("[{}]", scanner.host) } else { scanner.host.clone() };
    let mut text = format!(
        "{method} icap://{host}:{}/{} ICAP/1.0\r\nHost: {host}:{}\r\nUser-Agent: palisade/{}\r\n",
        scanner.port,
        scanner.service.trim_start_matches('/'),
        scanner.port,
        env!("CARGO_PKG_VERSION"),
    );
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text
}

fn chunked(content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(content.len() + 64);
    for chunk in content.chunks(CHUNK) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

async fn send<S: AsyncWrite + Unpin>(stream: &mut S, bytes: &[u8]) -> Result<(), String> {
    let sent = async {
        stream.write_all(bytes).await?;
        stream.flush().await
    };
    sent.await.map_err(|error| message::lost(&error))
}

/// What an answer says of a file.
fn verdict(reply: &Reply, content: &[u8]) -> Result<Verdict, String> {
    let head = &reply.head;
    if let Some(threat) = FOUND.iter().find_map(|name| found(head, name)) {
        return Ok(Verdict::Infected(threat));
    }
    match head.status {
        204 => Ok(Verdict::Clean),
        200 => match &reply.http {
            // What is unchanged is returned to clients that do not take 204, and by servers that do not know it.
            Some(http) if reply.complete && reply.body == content && (http.is_request || http.status == 200) => {
                Ok(Verdict::Clean)
            }
            Some(_) => Ok(Verdict::Infected("the ICAP server put another answer in its place".to_owned())),
            None => Err("the ICAP server answered 200 without a message".to_owned()),
        },
        status => Err(format!("the ICAP server answered {status}")),
    }
}

/// Whether a header names a threat. What follows is a page for people, which not every server sends to its end.
fn is_infected(head: &Head) -> bool {
    FOUND.iter().any(|name| found(head, name).is_some())
}

/// The threat that a header names.
fn found(head: &Head, name: &str) -> Option<String> {
    let value = head.get(name)?.trim();
    // `Type=0; Resolution=2; Threat=Eicar-Signature;`
    let threat = value.split(';').find_map(|part| part.trim().strip_prefix("Threat="));
    let threat = threat.unwrap_or(value);
    // Some name no virus by these words.
    let none = ["", "0", "none", "no", "clean", "false"];
    (!none.contains(&threat.to_ascii_lowercase().as_str())).then(|| shown(threat))
}

#[cfg(test)]
mod tests;
