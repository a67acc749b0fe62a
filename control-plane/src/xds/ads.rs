//! The gRPC services: aggregated discovery, and that of filter configurations alone.

use std::pin::Pin;
use std::sync::Arc;

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_server::{
    AggregatedDiscoveryService, AggregatedDiscoveryServiceServer,
};
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use envoy_types::pb::envoy::service::extension::v3::extension_config_discovery_service_server::{
    ExtensionConfigDiscoveryService, ExtensionConfigDiscoveryServiceServer,
};
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::hub::Hub;
use super::session::{Output, Protocol, Session};
use super::set::Kind;
use crate::link::{Closing, admission, withdrawn};

/// Responses that wait for the connection. A session has at most one unanswered response per kind, so this never fills.
const QUEUE: usize = 8;

/// The services over a hub.
#[derive(Clone, Debug)]
pub struct Ads {
    hub: Hub,
    closing: Closing,
}

/// The same for those who have listeners of their own and take filters alone.
#[derive(Clone, Debug)]
pub struct Ecds(Ads);

/// The gRPC service that serves what is published in `hub`.
#[must_use]
pub fn service(hub: Hub) -> AggregatedDiscoveryServiceServer<Ads> {
    service_until(hub, Closing::never())
}

/// The same, whose streams end with `closing`.
pub(crate) fn service_until(hub: Hub, closing: Closing) -> AggregatedDiscoveryServiceServer<Ads> {
    AggregatedDiscoveryServiceServer::new(Ads { hub, closing })
}

/// The gRPC service that serves the filters' configurations of what is published in `hub`, on streams of their own.
#[must_use]
pub fn ecds_service(hub: Hub) -> ExtensionConfigDiscoveryServiceServer<Ecds> {
    ecds_service_until(hub, Closing::never())
}

/// The same, whose streams end with `closing`.
pub(crate) fn ecds_service_until(hub: Hub, closing: Closing) -> ExtensionConfigDiscoveryServiceServer<Ecds> {
    ExtensionConfigDiscoveryServiceServer::new(Ecds(Ads { hub, closing }))
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
        Ok(Response::new(serve(self.clone(), None, request)))
    }

    async fn delta_aggregated_resources(
        &self,
        request: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaAggregatedResourcesStream>, Status> {
        Ok(Response::new(serve(self.clone(), None, request)))
    }
}

#[tonic::async_trait]
impl ExtensionConfigDiscoveryService for Ecds {
    type StreamExtensionConfigsStream = Responses<DiscoveryResponse>;
    type DeltaExtensionConfigsStream = Responses<DeltaDiscoveryResponse>;

    async fn stream_extension_configs(
        &self,
        request: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamExtensionConfigsStream>, Status> {
        Ok(Response::new(serve(self.0.clone(), Some(Kind::Extension), request)))
    }

    async fn delta_extension_configs(
        &self,
        request: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaExtensionConfigsStream>, Status> {
        Ok(Response::new(serve(self.0.clone(), Some(Kind::Extension), request)))
    }

    async fn fetch_extension_configs(
        &self,
        _request: Request<DiscoveryRequest>,
    ) -> Result<Response<DiscoveryResponse>, Status> {
        Err(Status::unimplemented("filters are served on streams; set api_type to GRPC or DELTA_GRPC"))
    }
}

/// What the two protocols do differently around a session.
trait Dialect: Send + 'static {
    type Reply: Send + 'static;
    const PROTOCOL: Protocol;
    fn node(&self) -> Option<&Node>;
    fn type_url(&mut self) -> &mut String;
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

    fn type_url(&mut self) -> &mut String {
        &mut self.type_url
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

    fn type_url(&mut self) -> &mut String {
        &mut self.type_url
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

/// Serves a stream; `only` is the one kind that it is for, where it is not for all.
fn serve<D: Dialect>(ads: Ads, only: Option<Kind>, request: Request<Streaming<D>>) -> Responses<D::Reply> {
    let admission = admission(request.extensions());
    let (replies, receiver) = mpsc::channel(QUEUE);
    tokio::spawn(async move {
        let Ads { hub, closing } = ads;
        let result = tokio::select! {
            result = run(&hub, only, request.into_inner(), &replies) => result,
            () = closing.closed() => Err(Status::unavailable("this control plane is shutting down")),
            status = withdrawn(admission) => Err(status),
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
    only: Option<Kind>,
    mut requests: Streaming<D>,
    replies: &mpsc::Sender<Result<D::Reply, Status>>,
) -> Result<(), Status> {
    let Some(first) = requests.message().await? else { return Ok(()) };
    let Some(node) = first.node().filter(|node| !node.id.is_empty()).cloned() else {
        return Err(Status::invalid_argument("the first request names no node; set node.id in Envoy's bootstrap"));
    };
    let first = of_kind(first, only)?;
    let mut connected = Connected::new(hub, &node);
    let mut feed = hub.set_for(&node);
    // Before the first set is published there is nothing to say: an empty answer would take down what the gateway serves.
    let given = tokio::select! {
        given = feed.next() => given,
        () = replies.closed() => None,
    };
    let Some(given) = given else { return Ok(()) };
    connected.version = given.version;
    let mut session = Session::new(D::PROTOCOL, given.set);
    let mut outputs = first.feed(&mut session);
    loop {
        for output in outputs {
            if !connected.perform::<D>(output, replies).await {
                return Ok(());
            }
        }
        connected.report(&session);
        outputs = tokio::select! {
            request = requests.message() => match request? {
                Some(request) => of_kind(request, only)?.feed(&mut session),
                None => return Ok(()),
            },
            given = feed.next() => {
                let Some(given) = given else { return Ok(()) };
                connected.version = given.version;
                session.publish(given.set)
            }
            () = replies.closed() => return Ok(()),
        };
    }
}

/// On a stream for one kind the type may be left out, and cannot be another.
fn of_kind<D: Dialect>(mut request: D, only: Option<Kind>) -> Result<D, Status> {
    let Some(kind) = only else { return Ok(request) };
    let url = request.type_url();
    if url.is_empty() {
        kind.type_url().clone_into(url);
    }
    if url == kind.type_url() {
        return Ok(request);
    }
    Err(Status::invalid_argument(format!("this stream serves {} alone, the request names {url}", kind.type_url())))
}

/// Keeps the node's status true, however the stream ends.
struct Connected<'a> {
    hub: &'a Hub,
    node: String,
    stream: u64,
    /// The version of the set that is being served.
    version: Arc<str>,
    /// What was last said of the stream: whether it has all of the set, and what is asked for in vain.
    said: Option<(Option<Arc<str>>, Vec<Kind>)>,
}

impl<'a> Connected<'a> {
    fn new(hub: &'a Hub, node: &Node) -> Self {
        Connected { hub, node: node.id.clone(), stream: hub.connected(node), version: Arc::from(""), said: None }
    }

    /// False when the client is gone.
    async fn perform<D: Dialect>(&self, output: Output, replies: &mpsc::Sender<Result<D::Reply, Status>>) -> bool {
        match D::reply(output) {
            Ok((reply, url, version)) => {
                if let Some(kind) = Kind::of_type_url(&url) {
                    self.hub.sent(&self.node, self.stream, kind, &version);
                }
                replies.send(Ok(reply)).await.is_ok()
            }
            Err(other) => {
                if let Output::Answered { kind, version, refused } = *other {
                    self.hub.answered(&self.node, self.stream, kind, version, refused);
                }
                true
            }
        }
    }

    /// Tells how far the client has got.
    fn report(&mut self, session: &Session) {
        let holds = session.is_settled().then(|| Arc::clone(&self.version));
        let not_served = session.not_served();
        let (held, asked) = self.said.as_ref().map_or((None, &[][..]), |(held, asked)| (Some(held), asked.as_slice()));
        if held != Some(&holds) {
            self.hub.holds(&self.node, self.stream, holds.as_ref());
        }
        if asked != not_served {
            for kind in not_served.iter().filter(|kind| !asked.contains(kind)) {
                tracing::warn!(
                    node = self.node,
                    r#type = kind.word(),
                    "a gateway asks for what its group does not take from here (`delivery: ecds`); it is not answered"
                );
            }
            self.hub.not_served(&self.node, self.stream, &not_served);
        }
        self.said = Some((holds, not_served));
    }
}

impl Drop for Connected<'_> {
    fn drop(&mut self) {
        self.hub.disconnected(&self.node, self.stream);
    }
}
