//! The aggregated discovery service.

use std::pin::Pin;

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_server::{
    AggregatedDiscoveryService, AggregatedDiscoveryServiceServer,
};
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::hub::Hub;
use super::session::{Output, Protocol, Session};
use super::set::Kind;
use crate::link::Closing;

/// Responses that wait for the connection. A session has at most one unanswered response per kind, so this never fills.
const QUEUE: usize = 8;

/// The service over a hub.
#[derive(Clone, Debug)]
pub struct Ads {
    hub: Hub,
    closing: Closing,
}

/// The gRPC service that serves what is published in `hub`.
#[must_use]
pub fn service(hub: Hub) -> AggregatedDiscoveryServiceServer<Ads> {
    service_until(hub, Closing::never())
}

/// The same, whose streams end with `closing`.
pub(crate) fn service_until(hub: Hub, closing: Closing) -> AggregatedDiscoveryServiceServer<Ads> {
    AggregatedDiscoveryServiceServer::new(Ads { hub, closing })
}

type Responses<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl AggregatedDiscoveryService for Ads {
    type StreamAggregatedResourcesStream = Responses<DiscoveryResponse>;
    type DeltaAggregatedResourcesStream = Responses<DeltaDiscoveryResponse>;

    async fn stream_aggregated_resources(
        &self,
        request: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamAggregatedResourcesStream>, Status> {
        Ok(Response::new(serve::<DiscoveryRequest>(self.clone(), request.into_inner())))
    }

    async fn delta_aggregated_resources(
        &self,
        request: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaAggregatedResourcesStream>, Status> {
        Ok(Response::new(serve::<DeltaDiscoveryRequest>(self.clone(), request.into_inner())))
    }
}

/// What the two protocols do differently around a session.
trait Dialect: Send + 'static {
    type Reply: Send + 'static;
    const PROTOCOL: Protocol;
    fn node(&self) -> Option<&Node>;
    fn feed(self, session: &mut Session) -> Vec<Output>;
    /// The reply in an output, with its type URL and version.
    fn reply(output: Output) -> Result<(Self::Reply, String, String), Box<Output>>;
}

impl Dialect for DiscoveryRequest {
    type Reply = DiscoveryResponse;
    const PROTOCOL: Protocol = Protocol::StateOfTheWorld;

    fn node(&self) -> Option<&Node> {
        self.node.as_ref()
    }

    fn feed(self, session: &mut Session) -> Vec<Output> {
        session.state_request(self)
    }

    fn reply(output: Output) -> Result<(Self::Reply, String, String), Box<Output>> {
        match output {
            Output::State(reply) => {
                let (url, version) = (reply.type_url.clone(), reply.version_info.clone());
                Ok((reply, url, version))
            }
            other => Err(Box::new(other)),
        }
    }
}

impl Dialect for DeltaDiscoveryRequest {
    type Reply = DeltaDiscoveryResponse;
    const PROTOCOL: Protocol = Protocol::Delta;

    fn node(&self) -> Option<&Node> {
        self.node.as_ref()
    }

    fn feed(self, session: &mut Session) -> Vec<Output> {
        session.delta_request(self)
    }

    fn reply(output: Output) -> Result<(Self::Reply, String, String), Box<Output>> {
        match output {
            Output::Delta(reply) => {
                let (url, version) = (reply.type_url.clone(), reply.system_version_info.clone());
                Ok((reply, url, version))
            }
            other => Err(Box::new(other)),
        }
    }
}

fn serve<D: Dialect>(ads: Ads, requests: Streaming<D>) -> Responses<D::Reply> {
    let (replies, receiver) = mpsc::channel(QUEUE);
    tokio::spawn(async move {
        let Ads { hub, closing } = ads;
        let result = tokio::select! {
            result = run(&hub, requests, &replies) => result,
            () = closing.closed() => Err(Status::unavailable("this control plane is shutting down")),
        };
        if let Err(status) = result {
            // The client may be gone; there is nobody else to tell.
            let _gone = replies.send(Err(status)).await;
        }
    });
    Box::pin(ReceiverStream::new(receiver))
}

/// Serves one stream to its end.
async fn run<D: Dialect>(
    hub: &Hub,
    mut requests: Streaming<D>,
    replies: &mpsc::Sender<Result<D::Reply, Status>>,
) -> Result<(), Status> {
    let Some(first) = requests.message().await? else { return Ok(()) };
    let Some(node) = first.node().filter(|node| !node.id.is_empty()).cloned() else {
        return Err(Status::invalid_argument("the first request names no node; set node.id in Envoy's bootstrap"));
    };
    let guard = Connected::new(hub, &node);
    let mut sets = hub.set_for(&node.id);
    // Before the first set is published there is nothing to say: an empty answer would take down what the gateway serves.
    let current = loop {
        if let Some(set) = sets.borrow_and_update().clone() {
            break set;
        }
        tokio::select! {
            changed = sets.changed() => if changed.is_err() { return Ok(()) },
            () = replies.closed() => return Ok(()),
        }
    };
    let mut session = Session::new(D::PROTOCOL, current);
    let mut outputs = first.feed(&mut session);
    loop {
        for output in outputs {
            if !guard.perform::<D>(output, replies).await {
                return Ok(());
            }
        }
        outputs = tokio::select! {
            request = requests.message() => match request? {
                Some(request) => request.feed(&mut session),
                None => return Ok(()),
            },
            changed = sets.changed() => {
                if changed.is_err() {
                    return Ok(());
                }
                let published = sets.borrow_and_update().clone();
                published.map(|set| session.publish(set)).unwrap_or_default()
            }
            () = replies.closed() => return Ok(()),
        };
    }
}

/// Keeps the node's status true, however the stream ends.
struct Connected<'a> {
    hub: &'a Hub,
    node: String,
}

impl<'a> Connected<'a> {
    fn new(hub: &'a Hub, node: &Node) -> Self {
        hub.connected(node);
        Connected { hub, node: node.id.clone() }
    }

    /// False when the client is gone.
    async fn perform<D: Dialect>(&self, output: Output, replies: &mpsc::Sender<Result<D::Reply, Status>>) -> bool {
        match D::reply(output) {
            Ok((reply, url, version)) => {
                if let Some(kind) = Kind::of_type_url(&url) {
                    self.hub.sent(&self.node, kind, &version);
                }
                replies.send(Ok(reply)).await.is_ok()
            }
            Err(other) => {
                if let Output::Answered { kind, version, refused } = *other {
                    self.hub.answered(&self.node, kind, version, refused);
                }
                true
            }
        }
    }
}

impl Drop for Connected<'_> {
    fn drop(&mut self) {
        self.hub.disconnected(&self.node);
    }
}
