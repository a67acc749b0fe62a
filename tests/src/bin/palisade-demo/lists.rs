//! What others would publish on the network: a threat feed, and a decision service (a double of CrowdSec's local API).

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::json;

/// A caller that the feed lists.
pub(crate) const LISTED: &str = "203.0.113.7";
/// A caller that the decision service bans.
pub(crate) const BANNED: &str = "198.51.100.23";
/// The key of the decision service.
pub(crate) const KEY: &str = "demo";

const LIST: &str = "# A list of bad callers\n203.0.113.0/28\n2001:db8:bad::/48\n";
/// The longest head of a request, in bytes.
const MAX_HEAD: usize = 16 * 1024;

/// Serves both on a free loopback port; it stops with the process.
pub(crate) fn start() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || drop(serve(stream)));
        }
    });
    Ok(address)
}

fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && head.len() < MAX_HEAD && stream.read(&mut byte)? > 0 {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let has_key = head.contains(&format!("x-api-key: {KEY}\r\n"));
    let (status, kind, body) = match path.split('?').next().unwrap_or_default() {
        "/list.txt" => ("200 OK", "text/plain", LIST.to_owned()),
        "/v1/decisions/stream" if !has_key => ("403 Forbidden", "application/json", "{}".to_owned()),
        "/v1/decisions/stream" => ("200 OK", "application/json", decisions(path.contains("startup=true"))),
        _ => ("404 Not Found", "text/plain", String::new()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// All decisions, or what has changed since: nothing.
fn decisions(all: bool) -> String {
    let ban = json!({
        "id": 1, "origin": "demo", "scenario": "demo/http-bruteforce", "scope": "Ip", "type": "ban", "value": BANNED, "duration": "4h0m0s",
    });
    let new = if all { json!([ban]) } else { json!(null) };
    json!({ "new": new, "deleted": null }).to_string()
}
