//! Messages of RFC 5424 to a syslog server: over TCP with their length before them (RFC 6587), over TLS (RFC 5425), or one in each
//! datagram (RFC 5426).

mod message;

use std::fmt;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use axum::http::Uri;
use outbound::{Dialer, Duplex, PoolTrust};
use tokio::io::{AsyncWriteExt as _, ReadBuf};
use tokio::net::UdpSocket;

use super::server::{ServerError, retry};
use super::{Failure, Sink, Then, host_name};
use crate::queue::{Bounds, Line};
use message::Head;

/// The longest message in a datagram, in bytes: that of UDP over IPv4.
const MAX_DATAGRAM: usize = 65_507;
/// How long the server may take to take a batch.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A syslog server. A server that is gone is noticed before a batch is written, but RFC 5424 has no acknowledgement: what was on its way
/// when a connection broke is sent again, and what the server had taken and not stored is lost.
pub struct Syslog {
    origin: String,
    host: String,
    port: u16,
    transport: Transport,
    head: Head,
}

enum Transport {
    Stream { dialer: Dialer, open: Option<Box<dyn Duplex>> },
    Datagram { open: Option<UdpSocket> },
}

impl Syslog {
    /// A server at `tcp://HOST[:601]`, `tls://HOST[:6514]` or `udp://HOST[:514]`; nothing is sent yet. `facility` is a name of RFC 5424
    /// such as `local0`, `ca_file` names the certificates to trust instead of those of the system.
    ///
    /// # Errors
    ///
    /// The URL or the facility is none that can be used, or there are no certificates to trust.
    pub fn new(url: &Uri, facility: &str, ca_file: Option<&Path>) -> Result<Syslog, ServerError> {
        let wrong = |why: &str| ServerError::new(format!("the URL of the syslog server cannot be used: {why}"));
        let scheme = url.scheme_str().unwrap_or_default();
        let (trust, usual) = match scheme {
            "tcp" => (Some(PoolTrust::NoTls), 601),
            "tls" => (Some(ca_file.map_or(PoolTrust::System, PoolTrust::File)), 6514),
            "udp" => (None, 514),
            _ => return Err(wrong("tcp://HOST[:PORT], tls://… or udp://… is expected")),
        };
        let authority = url.authority().map(|authority| authority.as_str()).unwrap_or_default();
        let host = url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() || authority.contains('@') || !matches!(url.path(), "" | "/") || url.query().is_some() {
            return Err(wrong("it has a host and a port, and nothing else"));
        }
        let facility = facility_number(facility).ok_or_else(|| {
            ServerError::new(format!("there is no facility `{facility}`: {} are", FACILITIES.join(", ")))
        })?;
        let transport = match trust {
            Some(trust) => {
                let dialer = Dialer::new(trust).map_err(|error| ServerError::new(error.to_string()))?;
                Transport::Stream { dialer, open: None }
            }
            None => Transport::Datagram { open: None },
        };
        let head = Head::new(facility, &host_name(), std::process::id());
        Ok(Syslog {
            origin: format!("{scheme}://{authority}"),
            port: url.port_u16().unwrap_or(usual),
            host,
            transport,
            head,
        })
    }

    /// Scheme, host and port.
    #[must_use]
    pub fn origin(&self) -> String {
        self.origin.clone()
    }

    async fn send(&mut self, batch: &[Line]) -> Result<(), Failure> {
        let failed = |error: std::io::Error| retry(error.to_string(), None);
        match &mut self.transport {
            Transport::Stream { dialer, open } => {
                if let Some(stream) = open
                    && has_ended(&mut **stream).await
                {
                    *open = None;
                }
                let mut stream = match open.take() {
                    Some(stream) => stream,
                    None => dialer.connect(&self.host, self.port).await.map_err(failed)?,
                };
                let mut bytes = Vec::new();
                for line in batch {
                    let message = self.head.message(line);
                    bytes.extend(format!("{} ", message.len()).into_bytes());
                    bytes.extend(message);
                }
                stream.write_all(&bytes).await.map_err(failed)?;
                stream.flush().await.map_err(failed)?;
                // Not kept where anything failed: half a message may be written.
                *open = Some(stream);
                Ok(())
            }
            Transport::Datagram { open } => {
                let socket = match open {
                    Some(socket) => socket,
                    None => open.insert(connect(&self.host, self.port).await.map_err(failed)?),
                };
                let (mut refused, mut why) = (0, None);
                for (written, line) in batch.iter().enumerate() {
                    let message = self.head.message(line);
                    if message.len() > MAX_DATAGRAM {
                        refused += 1;
                        why = Some(format!("an event of {} bytes does not fit into a datagram", message.len()));
                    } else if let Err(error) = socket.send(&message).await {
                        *open = None;
                        return Err(Failure { written, refused, ..failed(error) });
                    }
                }
                match why {
                    Some(reason) => Err(Failure { written: batch.len(), refused, reason, then: Then::Drop }),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Sink for Syslog {
    const BATCH: Bounds = Bounds { lines: 500, bytes: 1 << 20 };

    async fn write(&mut self, batch: &[Line]) -> Result<(), Failure> {
        let sent = tokio::time::timeout(TIMEOUT, self.send(batch)).await;
        sent.unwrap_or_else(|_| Err(retry(format!("nothing was taken within {} s", TIMEOUT.as_secs()), None)))
    }
}

/// Whether the server has closed the connection. A syslog server sends nothing.
async fn has_ended(stream: &mut dyn Duplex) -> bool {
    let mut byte = [0];
    poll_fn(|context| {
        let mut buffer = ReadBuf::new(&mut byte);
        match Pin::new(&mut *stream).poll_read(context, &mut buffer) {
            Poll::Pending => Poll::Ready(false),
            Poll::Ready(Ok(())) => Poll::Ready(buffer.filled().is_empty()),
            Poll::Ready(Err(_)) => Poll::Ready(true),
        }
    })
    .await
}

async fn connect(host: &str, port: u16) -> std::io::Result<UdpSocket> {
    let found = tokio::net::lookup_host((host, port)).await?.next();
    let address: SocketAddr = found.ok_or_else(|| std::io::Error::other("the name has no address"))?;
    let any = if address.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(address).await?;
    Ok(socket)
}

/// The facilities of RFC 5424, in the order of their numbers.
const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp", "ntp",
    "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
];

fn facility_number(name: &str) -> Option<u8> {
    FACILITIES.iter().position(|known| *known == name).and_then(|number| u8::try_from(number).ok())
}

impl Clone for Syslog {
    /// With a connection of its own.
    fn clone(&self) -> Syslog {
        let transport = match &self.transport {
            Transport::Stream { dialer, .. } => Transport::Stream { dialer: dialer.clone(), open: None },
            Transport::Datagram { .. } => Transport::Datagram { open: None },
        };
        let Syslog { origin, host, port, head, .. } = self;
        Syslog { origin: origin.clone(), host: host.clone(), port: *port, transport, head: head.clone() }
    }
}

impl fmt::Debug for Syslog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Syslog").field(&self.origin).finish()
    }
}

#[cfg(test)]
mod tests;
