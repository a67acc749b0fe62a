//! Generated lists, and who serves them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The feeds of the catalogue: id, entries, and the longest prefix of one. IPv6 where the prefix is longer than 32.
pub(crate) const CATALOGUE: [(&str, u32, u8); 14] = [
    ("tor-exit-nodes", 1_300, 32),
    ("firehol-level1", 4_500, 22),
    ("firehol-level2", 20_000, 32),
    ("firehol-level3", 19_000, 32),
    ("emerging-threats-compromised", 500, 32),
    ("spamhaus-drop", 1_500, 20),
    ("abuseipdb-blacklist", 10_000, 32),
    ("aws-ranges-v4", 8_500, 22),
    ("aws-ranges-v6", 4_000, 48),
    ("gcp-ranges-v4", 800, 20),
    ("digitalocean-ranges", 1_300, 22),
    ("cloudflare-v4", 15, 18),
    ("cloudflare-v6", 7, 36),
    ("azure-ranges", 10_500, 24),
];

/// Networks of autonomous systems where none are given, as many as there are of IPv4.
const NETWORKS: u32 = 412_000;

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// An address that callers may have.
    pub(crate) fn address(&mut self) -> Ipv4Addr {
        loop {
            let address = Ipv4Addr::from((self.next() >> 32) as u32);
            let [first, second, ..] = address.octets();
            // Not the resolvers' that no list may cover, nor what is no caller's.
            let is_canary = [1, 8, 9].contains(&first);
            let is_special = first == 0 || first == 10 || first == 127 || first >= 224 || address.is_private();
            if !(is_canary || is_special || (first, second) == (100, 64) || address.is_link_local()) {
                return address;
            }
        }
    }
}

/// A list of random networks.
pub(crate) fn networks(entries: u32, prefix: u8, random: &mut Random) -> String {
    let mut list = String::new();
    for _ in 0..entries {
        let _ = match prefix {
            33.. => {
                let bits = 0x2400 << 112 | u128::from(random.next()) << 48;
                writeln!(list, "{}/{prefix}", Ipv6Addr::from(bits >> (128 - prefix) << (128 - prefix)))
            }
            32 => writeln!(list, "{}", random.address()),
            _ => {
                let address = u32::from(random.address());
                writeln!(list, "{}/{prefix}", Ipv4Addr::from(address >> (32 - prefix) << (32 - prefix)))
            }
        };
    }
    list
}

/// Autonomous systems in the form of iptoasn.com, of lines of `first,last,number,name` or generated.
pub(crate) fn systems(lines: Option<&str>) -> String {
    let mut table = String::new();
    if let Some(lines) = lines {
        for line in lines.lines() {
            let mut fields = line.splitn(4, ',');
            if let (Some(first), Some(last), Some(number)) = (fields.next(), fields.next(), fields.next()) {
                let name = fields.next().unwrap_or_default().trim_matches('"');
                let _ = writeln!(table, "{first}\t{last}\t{number}\tZZ\t{name}");
            }
        }
        return table;
    }
    // From 1.0.0.0 to 223.255.255.255, side by side, each of its own size.
    let (mut random, mut first) = (Random(3), 0x0100_0000_u32);
    for number in 0..NETWORKS {
        let size = 256_u32 << (random.next() % 6);
        let Some(next) = first.checked_add(size).filter(|next| *next < 0xe000_0000) else { break };
        let owner = if number % 40 == 0 { "Example Hosting" } else { "Example Telecom" };
        let _ = writeln!(
            table,
            "{}\t{}\t{}\tZZ\t{owner}",
            Ipv4Addr::from(first),
            Ipv4Addr::from(next - 1),
            1 + number % 70_000
        );
        first = next;
    }
    table
}

/// Serves files by path, each as it is now.
#[derive(Clone)]
pub(crate) struct Files {
    pub(crate) address: SocketAddr,
    files: Arc<Mutex<BTreeMap<String, Arc<str>>>>,
}

impl Files {
    pub(crate) fn start() -> io::Result<Files> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let files = Files { address: listener.local_addr()?, files: Arc::default() };
        let served = files.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let served = served.clone();
                thread::spawn(move || drop(served.serve(stream)));
            }
        });
        Ok(files)
    }

    pub(crate) fn put(&self, path: &str, file: String) {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).insert(format!("/{path}"), file.into());
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? > 0 {
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let path = head.split(' ').nth(1).and_then(|target| target.split('?').next()).unwrap_or_default();
        let file = self.files.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        let (status, file) = file.map_or(("404 Not Found", "".into()), |file| ("200 OK", file));
        let length = file.len();
        write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n")?;
        stream.write_all(file.as_bytes())
    }
}
