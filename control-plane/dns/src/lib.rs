//! Questions to DNS resolvers: over UDP, and over TCP where an answer is truncated.

#[cfg(any(test, feature = "fake"))]
pub mod fake;
mod message;
mod system;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use domain::base::{Name, Rtype};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use message::{Parsed, Question, Records};
pub use system::system_resolvers;

/// A name as questions and answers have it.
pub type DnsName = Name<Vec<u8>>;

/// How often a question is asked where there are fewer resolvers, and how many of them are asked at most.
const ATTEMPTS: usize = 2;
const MAX_SERVERS: usize = 4;
/// The longest answer over UDP that is read, in bytes: questions announce no more than the 512 of the standard.
const MAX_UDP: usize = 1_280;
/// The longest answer over TCP, in bytes.
const MAX_TCP: usize = 16 * 1024;
/// How many datagrams that are no answer to the question are read before the attempt is given up.
const MAX_STRAY: usize = 16;

/// Asks resolvers, one after the other.
#[derive(Debug, Clone)]
pub struct Resolver {
    /// At least one; more than 4 are not asked.
    pub servers: Vec<SocketAddr>,
    /// How long one attempt takes at most.
    pub timeout: Duration,
}

/// Why there is no answer, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoAnswer(pub String);

impl Resolver {
    /// The host names of an address, from its PTR records; none where it has none.
    ///
    /// # Errors
    /// No resolver has answered in time, or with something that says nothing (SERVFAIL, REFUSED, no readable message).
    pub async fn names(&self, address: IpAddr) -> Result<Vec<DnsName>, NoAnswer> {
        let name = DnsName::reverse_from_addr(address).map_err(|_| NoAnswer("the name is too long".to_owned()))?;
        self.ask(name, Rtype::PTR).await.map(|records| records.names)
    }

    /// The addresses of a host name, of the family of `like`; none where the name does not exist.
    ///
    /// # Errors
    /// As of [`Resolver::names`].
    pub async fn addresses(&self, name: DnsName, like: IpAddr) -> Result<Vec<IpAddr>, NoAnswer> {
        let rtype = if like.is_ipv4() { Rtype::A } else { Rtype::AAAA };
        self.ask(name, rtype).await.map(|records| records.addresses)
    }

    /// Whether a resolver works: whatever it has of the root's name servers, it answers.
    ///
    /// # Errors
    /// As of [`Resolver::names`].
    pub async fn probe(&self) -> Result<(), NoAnswer> {
        self.ask(DnsName::root_vec(), Rtype::NS).await.map(|_| ())
    }

    async fn ask(&self, name: DnsName, rtype: Rtype) -> Result<Records, NoAnswer> {
        let mut why = NoAnswer("there is no resolver".to_owned());
        for server in self.servers.iter().cycle().take(ATTEMPTS.max(self.servers.len().min(MAX_SERVERS))) {
            let question = Question::new(name.clone(), rtype);
            match timeout(self.timeout, exchange(&question, *server)).await {
                Ok(Ok(records)) => return Ok(records),
                Ok(Err(error)) => why = NoAnswer(format!("{server}: {error}")),
                Err(_) => why = NoAnswer(format!("{server}: no answer within {} ms", self.timeout.as_millis())),
            }
        }
        Err(why)
    }
}

async fn exchange(question: &Question, server: SocketAddr) -> Result<Records, String> {
    match over_udp(question, server).await? {
        Some(records) => Ok(records),
        None => over_tcp(question, server).await,
    }
}

/// `None` where the answer is truncated.
async fn over_udp(question: &Question, server: SocketAddr) -> Result<Option<Records>, String> {
    let any = if server.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    // A socket of its own for each question: with a port of its own, an answer is harder to guess.
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).await.map_err(text)?;
    socket.connect(server).await.map_err(text)?;
    socket.send(&question.bytes()?).await.map_err(text)?;
    let mut buffer = vec![0; MAX_UDP];
    for _ in 0..MAX_STRAY {
        let length = socket.recv(&mut buffer).await.map_err(text)?;
        match question.read(buffer.get(..length).unwrap_or_default())? {
            Parsed::Stray => {}
            Parsed::Truncated => return Ok(None),
            Parsed::Records(records) => return Ok(Some(records)),
        }
    }
    Err("datagrams that are no answers".to_owned())
}

async fn over_tcp(question: &Question, server: SocketAddr) -> Result<Records, String> {
    let mut stream = TcpStream::connect(server).await.map_err(text)?;
    let bytes = question.bytes()?;
    let length = u16::try_from(bytes.len()).map_err(|_| "a question that is too long".to_owned())?;
    stream.write_all(&[&length.to_be_bytes()[..], &bytes].concat()).await.map_err(text)?;
    let length = usize::from(stream.read_u16().await.map_err(text)?);
    if length > MAX_TCP {
        return Err(format!("an answer of {length} bytes"));
    }
    let mut buffer = vec![0; length];
    stream.read_exact(&mut buffer).await.map_err(text)?;
    match question.read(&buffer)? {
        Parsed::Records(records) => Ok(records),
        Parsed::Stray => Err("an answer to another question".to_owned()),
        Parsed::Truncated => Err("an answer that is truncated over TCP".to_owned()),
    }
}

fn text(error: io::Error) -> String {
    error.kind().to_string()
}

#[cfg(test)]
mod tests;
