//! One connection to an address that was checked, for one request.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{HeaderName, HeaderValue, Request, Uri, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::Answer;
use super::error::{OutboundError, OutboundFault};
use super::redirect::Step;
use super::target::Target;

/// What every request says of itself, unless the call says something else.
pub(super) const USER_AGENT: &str = concat!("palisade/", env!("CARGO_PKG_VERSION"));

/// Set by the connection itself: a caller's value could turn one request into two.
const OF_THE_CONNECTION: [HeaderName; 9] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The first of `addresses` that takes a connection. None of them may use up the time of those after it.
pub(super) async fn open(
    target: &Target,
    addresses: &[SocketAddr],
    deadline: Instant,
) -> Result<TcpStream, OutboundError> {
    let mut why = String::new();
    for (index, address) in addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        let after = u32::try_from(addresses.len() - index).unwrap_or(u32::MAX);
        match tokio::time::timeout(left / after, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // One small request: waiting to fill a packet only costs time. Where it cannot be set, all works as well.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => why = format!("{} does not take a connection: {error}", address.ip()),
            Err(_) => why = format!("{} does not take a connection in time", address.ip()),
        }
    }
    Err(OutboundError::new(OutboundFault::Connection, target.origin(), why))
}

/// Sends the request of `step` and reads the whole answer.
pub(super) async fn exchange(
    target: &Target,
    stream: TcpStream,
    tls: Option<Arc<ClientConfig>>,
    step: &Step,
) -> Result<Answer, OutboundError> {
    let Some(config) = tls else { return send(target, stream, step).await };
    let fail = |what: String| OutboundError::new(OutboundFault::Tls, target.origin(), what);
    let name = ServerName::try_from(target.host().to_owned());
    let name = name.map_err(|_| fail("the host is not a name that a certificate can have".to_owned()))?;
    match TlsConnector::from(config).connect(name, stream).await {
        Ok(stream) => send(target, stream, step).await,
        // The peer's certificate or its TLS is not what we take; all else is a connection that broke.
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Err(fail(format!("TLS fails: {error}"))),
        Err(error) => {
            let what = format!("the connection ends while TLS is set up: {error}");
            Err(OutboundError::new(OutboundFault::Connection, target.origin(), what))
        }
    }
}

async fn send<S>(target: &Target, stream: S, step: &Step) -> Result<Answer, OutboundError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let fail = |fault, what: String| OutboundError::new(fault, target.origin(), what);
    let broken =
        |error: hyper::Error| fail(OutboundFault::Connection, format!("the exchange fails: {}", chain(&error)));
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // Ends with this call, also where it is given up.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let response = sender.send_request(request(target, step)?).await.map_err(broken)?;
    let (parts, body) = response.into_parts();
    let body = match Limited::new(body, step.max_answer_bytes).collect().await {
        Ok(whole) => whole.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            let what = format!("the answer is longer than {} bytes", step.max_answer_bytes);
            return Err(fail(OutboundFault::TooLong, what).with_status(parts.status));
        }
        Err(error) => {
            return Err(fail(OutboundFault::Connection, format!("the answer breaks off: {}", chain(error.as_ref()))));
        }
    };
    Ok(Answer { status: parts.status, headers: parts.headers, body })
}

fn request(target: &Target, step: &Step) -> Result<Request<Full<Bytes>>, OutboundError> {
    let wrong = |what: &str| OutboundError::new(OutboundFault::Url, target.origin(), what);
    let mut request = Request::new(Full::new(step.body.clone()));
    *request.method_mut() = step.method.clone();
    *request.uri_mut() = Uri::from(target.path().clone());
    let headers = request.headers_mut();
    *headers = step.headers.clone();
    for name in OF_THE_CONNECTION {
        headers.remove(name);
    }
    let host = HeaderValue::from_str(&target.authority()).map_err(|_| wrong("the host cannot be sent"))?;
    headers.insert(header::HOST, host);
    headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT));
    Ok(request)
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
