//! `palisade healthy`: does a control plane on this machine answer? For health checks of containers.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use super::dial::Dial;
use super::error::CliError;
use super::output::say;

/// How long the answer may take. Docker gives a check three seconds by the Dockerfile.
const PATIENCE: Duration = Duration::from_secs(2);
/// The bytes of an answer that are looked at.
const MAX_ANSWER: u64 = 1024;

/// `palisade healthy`.
#[derive(Debug, clap::Args)]
pub(super) struct HealthyCommand {
    /// The address of the admin API, as `palisade serve` has it; every address of this machine means loopback.
    #[arg(long, env = "PALISADE_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:8900")]
    listen: SocketAddr,

    /// That the admin API speaks TLS, which `palisade serve` does with this file. It is not read, and the certificate that the admin
    /// API shows is not checked: nothing secret is sent.
    #[arg(long, env = "PALISADE_TLS_CERT", value_name = "FILE")]
    tls_cert: Option<PathBuf>,
}

impl HealthyCommand {
    pub(super) async fn run(self) -> Result<(), CliError> {
        let at = reached(self.listen);
        let line = match tokio::time::timeout(PATIENCE, self.ask(at)).await {
            Ok(Ok(line)) => line,
            Ok(Err(error)) => return Err(CliError::Io(format!("call {at}"), error)),
            Err(_) => return Err(CliError::Other(format!("{at} does not answer within {} s", PATIENCE.as_secs()))),
        };
        if line.split(' ').nth(1) == Some("200") {
            return say(format_args!("{at} answers"));
        }
        Err(CliError::Other(format!("{at} answers /healthz with `{}`", line.escape_debug())))
    }

    /// The first line of the answer.
    async fn ask(&self, at: SocketAddr) -> io::Result<String> {
        let dial = match &self.tls_cert {
            Some(_) => Dial::unchecked(at).map_err(|error| io::Error::other(error.to_string()))?,
            None => Dial::plain(at.to_string()),
        };
        let mut wire = dial.connect().await?;
        let request = format!("GET /healthz HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\n\r\n");
        wire.write_all(request.as_bytes()).await?;
        let mut line = Vec::new();
        BufReader::new(wire.take(MAX_ANSWER)).read_until(b'\n', &mut line).await?;
        Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
    }
}

/// Where a server on this machine is reached that listens there.
fn reached(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_means_loopback() {
        let of = |text: &str| reached(text.parse().unwrap()).to_string();
        assert_eq!((of("0.0.0.0:8900"), of("[::]:1")), ("127.0.0.1:8900".to_owned(), "[::1]:1".to_owned()));
        assert_eq!(of("192.0.2.1:8900"), "192.0.2.1:8900");
    }
}
