//! Answers of ICAP servers.

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

/// The longest head, in bytes, and the most lines of it.
const MAX_HEAD: usize = 32 << 10;
/// How much longer than the file the body of an answer may be: a page that says why it was refused.
const MAX_PAGE: usize = 256 << 10;

/// The head of an answer of ICAP or HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Head {
    pub(super) status: u16,
    /// The head of HTTP is that of a request.
    pub(super) is_request: bool,
    /// Names in lower case, and values.
    headers: Vec<(String, String)>,
}

/// An answer.
#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct Reply {
    pub(super) head: Head,
    /// The head of HTTP in it.
    pub(super) http: Option<Head>,
    pub(super) body: Vec<u8>,
    /// All of it was read, so that another answer can follow.
    pub(super) complete: bool,
}

impl Head {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn keeps_alive(&self) -> bool {
        !self.get("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    /// Reads a head: lines up to an empty one.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let first = lines.next()?;
        let mut words = first.split_ascii_whitespace();
        let version = words.next()?;
        let is_request = !version.starts_with("HTTP/") && !version.starts_with("ICAP/");
        let status = if is_request { 0 } else { words.next()?.parse().ok()? };
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        };
        Some(Self { status, is_request, headers: lines.filter_map(header).collect() })
    }
}

/// Reads an answer. The body of HTTP in it is read up to the length of the file and some more, and not at all where the head says
/// `enough`: then the connection serves no other request.
pub(super) async fn read_reply<S: AsyncBufRead + Unpin>(
    stream: &mut S,
    length: usize,
    enough: impl Fn(&Head) -> bool,
) -> Result<Reply, String> {
    let text = head_text(stream).await?;
    let head = Head::parse(&text).filter(|head| !head.is_request && text.starts_with("ICAP/"));
    let head = head.ok_or_else(|| format!("the ICAP server answered `{}`", super::shown(&text)))?;
    let mut reply = Reply { head, complete: true, ..Reply::default() };
    if enough(&reply.head) {
        reply.complete = false;
        return Ok(reply);
    }
    let parts = reply.head.get("encapsulated").unwrap_or_default().to_owned();
    let has = |part: &str| parts.split(',').any(|entry| entry.trim().to_ascii_lowercase().starts_with(part));
    if matches!(reply.head.status, 100 | 204) || parts.is_empty() {
        return Ok(reply);
    }
    for part in ["req-hdr", "res-hdr"] {
        if has(part) {
            let text = head_text(stream).await?;
            reply.http = Some(Head::parse(&text).ok_or("the ICAP server answered with no message of HTTP")?);
        }
    }
    if has("req-body") || has("res-body") || has("opt-body") {
        reply.complete = chunks(stream, &mut reply.body, length.saturating_add(MAX_PAGE)).await?;
    }
    Ok(reply)
}

/// The lines of a head.
async fn head_text<S: AsyncBufRead + Unpin>(stream: &mut S) -> Result<String, String> {
    let mut text = Vec::new();
    loop {
        let before = text.len();
        line(stream, &mut text).await?;
        let added = text.get(before..).unwrap_or_default();
        if added == b"\r\n" || added == b"\n" {
            // An empty line in front of a head is not its end.
            if before > 0 {
                return Ok(String::from_utf8_lossy(&text).into_owned());
            }
            text.clear();
        }
    }
}

/// Appends a line with its end.
async fn line<S: AsyncBufRead + Unpin>(stream: &mut S, text: &mut Vec<u8>) -> Result<(), String> {
    let room = u64::try_from(MAX_HEAD.saturating_sub(text.len())).unwrap_or(0);
    let read = stream.take(room).read_until(b'\n', text).await.map_err(|error| lost(&error))?;
    match text.last() {
        Some(b'\n') if read > 0 => Ok(()),
        _ if text.len() >= MAX_HEAD => Err("the ICAP server answered with too long a head".to_owned()),
        _ => Err("the ICAP server closed the connection in its answer".to_owned()),
    }
}

/// The chunks of a body, to `most` bytes; whether all of them were read.
async fn chunks<S: AsyncBufRead + Unpin>(stream: &mut S, body: &mut Vec<u8>, most: usize) -> Result<bool, String> {
    loop {
        let mut text = Vec::new();
        line(stream, &mut text).await?;
        let size = String::from_utf8_lossy(&text);
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| "the ICAP server sent a chunk without a length")?;
        if size == 0 {
            // Trailers, up to an empty line.
            loop {
                let mut text = Vec::new();
                line(stream, &mut text).await?;
                if text == b"\r\n" || text == b"\n" {
                    return Ok(true);
                }
            }
        }
        if body.len().saturating_add(size) > most {
            return Ok(false);
        }
        let before = body.len();
        let limit = u64::try_from(size).unwrap_or(u64::MAX);
        stream.take(limit).read_to_end(body).await.map_err(|error| lost(&error))?;
        let mut end = Vec::new();
        line(stream, &mut end).await?;
        if body.len() - before != size || !end.iter().all(u8::is_ascii_whitespace) {
            return Err("the ICAP server sent a damaged chunk".to_owned());
        }
    }
}

pub(super) fn lost(error: &std::io::Error) -> String {
    format!("the connection to the ICAP server was lost: {error}")
}
