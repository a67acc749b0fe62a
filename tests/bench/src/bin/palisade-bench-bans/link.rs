//! A worker's end of the node link, without an Envoy around it.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use snapshot::{BanRequest, Down, Up};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codec::Streaming;

use crate::crowd;

/// What a worker sends in one message.
const PER_MESSAGE: usize = 500;
/// It bounds a run that fails.
const PATIENCE: Duration = Duration::from_secs(300);

/// Has a control plane record bans as a node's workers do, and waits until it has told of all of them: they are durable then.
pub(crate) fn ban(control: SocketAddr, keys: &[String], until_millis: u64) -> Result<(), String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let work = async {
        let (up, mut down) = connect(control).await?;
        let mut waiting: HashSet<&str> = keys.iter().map(String::as_str).collect();
        for keys in keys.chunks(PER_MESSAGE) {
            let issued_at_millis = until_millis;
            let request = |key: &String| BanRequest {
                key: key.clone(),
                until_millis,
                reason: crowd::REASON.to_owned(),
                score: 60.0,
                tags: vec!["waf:blocked".to_owned(), "sqli".to_owned()],
                issued_at_millis,
                address: String::new(),
            };
            let bans = keys.iter().map(request).collect();
            up.send(Up { node: "bench".to_owned(), bans, ..Up::default() }).await.map_err(|error| error.to_string())?;
            // One message at a time, as far as it is known by then.
            let last = keys.last().map(String::as_str).unwrap_or_default();
            while waiting.contains(last) {
                let message = down.message().await.map_err(|status| status.to_string())?;
                let message = message.ok_or("the link has ended")?;
                for ban in message.bans.iter().filter(|ban| ban.until_millis > 0) {
                    waiting.remove(ban.key.as_str());
                }
            }
        }
        match waiting.len() {
            0 => Ok(()),
            left => Err(format!("the control plane has not told of {left} bans")),
        }
    };
    runtime
        .block_on(async { tokio::time::timeout(PATIENCE, work).await })
        .unwrap_or_else(|_| Err("the control plane does not get on with the bans".to_owned()))
}

async fn connect(control: SocketAddr) -> Result<(mpsc::Sender<Up>, Streaming<Down>), String> {
    let endpoint =
        tonic::transport::Endpoint::from_shared(format!("http://{control}")).map_err(|error| error.to_string())?;
    let channel = endpoint.tcp_nodelay(true).connect().await.map_err(|error| error.to_string())?;
    let mut grpc = tonic::client::Grpc::new(channel);
    grpc.ready().await.map_err(|error| error.to_string())?;
    let (up, receiver) = mpsc::channel(8);
    let codec = tonic_prost::ProstCodec::<Up, Down>::default();
    let path = tonic::codegen::http::uri::PathAndQuery::from_static("/palisade.v1.NodeLink/Stream");
    let request = tonic::Request::new(ReceiverStream::new(receiver));
    let down = grpc.streaming(request, path, codec).await.map_err(|status| status.to_string())?;
    Ok((up, down.into_inner()))
}
