//! An HTTP/2 client (prior knowledge, no TLS).

use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper::header::{HeaderName, HeaderValue};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use crate::http::{PATIENCE, Response};

/// One request.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Names in lower case with their values.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body; empty for none.
    pub body: Vec<u8>,
}

impl Request {
    /// A GET without further headers.
    #[must_use]
    pub fn get(target: &str) -> Self {
        Self {
            method: "GET".into(),
            target: target.into(),
            headers: vec![
                ("user-agent".into(), b"Mozilla/5.0 (X11; Linux x86_64)".to_vec()),
                ("accept".into(), b"*/*".to_vec()),
            ],
            body: Vec::new(),
        }
    }

    /// A POST.
    #[must_use]
    pub fn post(target: &str, content_type: &str, body: impl AsRef<[u8]>) -> Self {
        let mut request = Self::get(target);
        request.method = "POST".into();
        request.headers.push(("content-type".into(), content_type.as_bytes().to_vec()));
        request.body = body.as_ref().to_vec();
        request
    }
}

/// [`exchange_as`] to a host named by its address.
///
/// # Errors
///
/// When the connection cannot be made.
pub fn exchange(to: SocketAddr, requests: &[Request]) -> Result<Vec<Result<Response, String>>, String> {
    exchange_as(&to.to_string(), to, requests)
}

/// Sends requests for a host at once on one connection and returns their answers in order.
///
/// A request that fails by itself (a reset stream) has its error in its place.
///
/// # Errors
///
/// When the connection cannot be made.
///
/// # Panics
///
/// When the system has no thread left.
pub fn exchange_as(host: &str, to: SocketAddr, requests: &[Request]) -> Result<Vec<Result<Response, String>>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let stream = TcpStream::connect(to).await.map_err(|error| error.to_string())?;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .max_header_list_size(1 << 20)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        // It ends when its last stream has; what goes wrong is told to the streams.
        tokio::spawn(async move { connection.await.ok() });
        let waiting: Vec<_> = requests
            .iter()
            .map(|request| tokio::spawn(one(sender.clone(), request.clone(), host.to_owned())))
            .collect();
        let mut answers = Vec::new();
        for answer in waiting {
            answers.push(answer.await.map_err(|error| error.to_string())?);
        }
        Ok(answers)
    })
}

async fn one(mut sender: http2::SendRequest<Full<Bytes>>, request: Request, host: String) -> Result<Response, String> {
    let mut built = hyper::Request::builder()
        .method(request.method.as_str())
        .uri(format!("http://{host}{}", request.target))
        .body(Full::new(Bytes::from(request.body)))
        .map_err(|error| error.to_string())?;
    for (name, value) in request.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?;
        let value = HeaderValue::from_bytes(&value).map_err(|error| error.to_string())?;
        built.headers_mut().append(name, value);
    }
    let exchange = async {
        let answer = sender.send_request(built).await.map_err(|error| error.to_string())?;
        let (head, body) = answer.into_parts();
        let body = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
        Ok(Response {
            status: head.status.as_u16(),
            headers: head
                .headers
                .iter()
                .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
                .collect(),
            body: body.to_vec(),
        })
    };
    tokio::time::timeout(PATIENCE + Duration::from_secs(1), exchange)
        .await
        .map_err(|_| "no answer in time".to_owned())?
}
