//! A resolver that knows two callers: a crawler of Google (66.249.66.1), and a server that only says that it is one.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::thread;

/// The address of the server that forges the crawler's name.
pub(crate) const FORGER: &str = "203.0.113.50";

const PTR: u16 = 12;
const A: u16 = 1;
const NXDOMAIN: u8 = 3;
/// How long an answer is valid, in seconds.
const TTL: u32 = 60;
/// The name of a record that is the one of the question (RFC 1035, section 4.1.4).
const SAME_NAME: u16 = 0xc00c;

/// Starts it on a free loopback port; it stops with the process.
pub(crate) fn start() -> io::Result<SocketAddr> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let address = socket.local_addr()?;
    thread::spawn(move || {
        let mut buffer = [0; 1500];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            if let Some(answer) = answer(&buffer[..length]) {
                let _ = socket.send_to(&answer, from);
            }
        }
    });
    Ok(address)
}

/// What is known of a name; an error for one that does not exist.
fn known(name: &str, kind: u16) -> Result<Option<Vec<u8>>, u8> {
    let crawler = "crawl-66-249-66-1.googlebot.com";
    match (name, kind) {
        ("1.66.249.66.in-addr.arpa", PTR) => Ok(Some(encoded(crawler))),
        ("50.113.0.203.in-addr.arpa", PTR) => Ok(Some(encoded("server-50.hosting.example"))),
        (name, A) if name == crawler => Ok(Some(vec![66, 249, 66, 1])),
        // The root, by which a resolver is found to work.
        ("", _) => Ok(None),
        _ => Err(NXDOMAIN),
    }
}

/// The answer to a question; none to what is no question.
fn answer(question: &[u8]) -> Option<Vec<u8>> {
    let (name, end) = name(question, 12)?;
    let kind = u16::from_be_bytes(question.get(end..end + 2)?.try_into().ok()?);
    let asked = question.get(12..end + 4)?;
    let found = known(&name, kind);
    let (code, record) = match &found {
        Ok(record) => (0, record.as_ref()),
        Err(code) => (*code, None),
    };
    let mut answer = question.get(..2)?.to_vec();
    // A response, recursion wanted and available.
    answer.extend([0x81, 0x80 | code, 0, 1, 0, u8::from(record.is_some()), 0, 0, 0, 0]);
    answer.extend(asked);
    if let Some(data) = record {
        answer.extend(SAME_NAME.to_be_bytes());
        answer.extend(kind.to_be_bytes());
        answer.extend([0, 1]);
        answer.extend(TTL.to_be_bytes());
        answer.extend(u16::try_from(data.len()).ok()?.to_be_bytes());
        answer.extend(data);
    }
    Some(answer)
}

/// The name at a position, in lower case, and where it ends.
fn name(message: &[u8], mut at: usize) -> Option<(String, usize)> {
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels.join("."), at));
        }
        let label = message.get(at..at + length).filter(|_| length < 64)?;
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        at += length;
    }
}

fn encoded(name: &str) -> Vec<u8> {
    let labels = name.split('.').flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat());
    labels.chain([0]).collect()
}
