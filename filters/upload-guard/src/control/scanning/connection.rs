//! Connections to scanners.

use std::time::Duration;

use outbound::Outbound;

use super::IoStream;
use crate::control::MalwareScanner;

/// Opens a connection: to a socket of this machine where the host is a path, otherwise over TCP. Scanners are in the operator's own
/// network as a rule, so private addresses may be reached.
///
/// # Errors
/// Why there is none.
pub(super) async fn open(
    scanner: &MalwareScanner,
    outbound: &Outbound,
    timeout: Duration,
) -> Result<Box<dyn IoStream>, String> {
    if scanner.host.starts_with('/') {
        let connecting = tokio::time::timeout(timeout, tokio::net::UnixStream::connect(&scanner.host));
        return match connecting.await {
            Ok(Ok(stream)) => Ok(Box::new(stream)),
            Ok(Err(error)) => Err(format!("the socket {} takes no connection: {error}", scanner.host)),
            Err(_) => Err(format!("the socket {} takes no connection in time", scanner.host)),
        };
    }
    let stream = outbound.reaching_private().connect(&scanner.host, scanner.port, timeout).await;
    Ok(Box::new(stream.map_err(|error| error.to_string())?))
}
