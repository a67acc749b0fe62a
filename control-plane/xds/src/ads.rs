//! The gRPC services: aggregated discovery, and that of filter configurations alone.
//!
//! They are written by hand, so that what many gateways are sent at once is in memory once (see `wire`).

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use prost::bytes::Bytes;
use tokio::sync::mpsc;
use tonic::body::Body;
use tonic::codec::Codec as _;
use tonic::codegen::{BoxFuture, Service, StdError, http};
use tonic::server::NamedService;
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;

use super::hub::Hub;
use super::session::{Output, Protocol, Session};
use super::set::Kind;
use super::wire::{self, Replies};
use listen::{Admission, Closing, admission, withdrawn};

/// Responses that wait for the connection. A session has at most one unanswered response per kind, so this never fills.
const QUEUE: usize = 8;

/// The aggregated discovery service.
#[derive(Clone, Debug)]
pub struct Ads(Discovery);

/// The discovery service of filter configurations, for those who have listeners of their own.
#[derive(Clone, Debug)]
pub struct Ecds(Discovery);

#[derive(Clone, Debug)]
struct Discovery {
    hub: Hub,
    closing: Closing,
}

/// The gRPC service that serves what is published in `hub`.
#[must_use]
pub fn service(hub: Hub) -> Ads {
    service_until(hub, Closing::never())
}

/// The same, whose streams end with `closing`.
pub fn service_until(hub: Hub, closing: Closing) -> Ads {
    Ads(Discovery { hub, closing })
}

/// The gRPC service that serves the filters' configurations of what is published in `hub`, on streams of their own.
#[must_use]
pub fn ecds_service(hub: Hub) -> Ecds {
    ecds_service_until(hub, Closing::never())
}

/// The same, whose streams end with `closing`.
pub fn ecds_service_until(hub: Hub, closing: Closing) -> Ecds {
    Ecds(Discovery { hub, closing })
}

impl NamedService for Ads {
    const NAME: &'static str = "envoy.service.discovery.v3.AggregatedDiscoveryService";
}

impl NamedService for Ecds {
    const NAME: &'static str = "envoy.service.extension.v3.ExtensionConfigDiscoveryService";
}

impl<B> Service<http::Request<B>> for Ads
where
    B: tonic::codegen::Body + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let response = match method(&request) {
            "StreamAggregatedResources" => self.0.serve::<DiscoveryRequest, B>(None, request),
            "DeltaAggregatedResources" => self.0.serve::<DeltaDiscoveryRequest, B>(None, request),
            _ => Status::unimplemented("aggregated discovery is served on streams").into_http(),
        };
        Box::pin(std::future::ready(Ok(response)))
    }
}

impl<B> Service<http::Request<B>> for Ecds
where
    B: tonic::codegen::Body + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let only = Some(Kind::Extension);
        let response = match method(&request) {
            "StreamExtensionConfigs" => self.0.serve::<DiscoveryRequest, B>(only, request),
            "DeltaExtensionConfigs" => self.0.serve::<DeltaDiscoveryRequest, B>(only, request),
            _ => {
                let why = "filters are served on streams; set api_type to GRPC or DELTA_GRPC";
                Status::unimplemented(why).into_http()
            }
        };
        Box::pin(std::future::ready(Ok(response)))
    }
}

/// The last segment of a call's path.
fn method<B>(request: &http::Request<B>) -> &str {
    request.uri().path().rsplit('/').next().unwrap_or_default()
}

impl Discovery {
    /// Serves a stream; `only` is the one kind that it is for, where it is not for all.
    fn serve<D: Dialect, B>(&self, only: Option<Kind>, request: http::Request<B>) -> http::Response<Body>
    where
        B: tonic::codegen::Body + Send + 'static,
        B::Error: Into<StdError> + Send + 'static,
    {
        let admission = admission(request.extensions());
        let decoder = ProstCodec::<(), D>::default().decoder();
        let requests = Streaming::new_request(decoder, request.into_body(), None, None);
        let (replies, receiver): (_, Replies) = mpsc::channel(QUEUE);
        let Discovery { hub, closing } = self.clone();
        tokio::spawn(async move {
            let result = tokio::select! {
                result = run(&hub, only, requests, &replies, &admission) => result,
                () = closing.closed() => Err(Status::unavailable("this control plane is shutting down")),
                status = withdrawn(admission.clone()) => Err(status),
            };
            if let Err(status) = result {
                // The client may be gone; there is nobody else to tell.
                let _gone = replies.send(Err(status)).await;
            }
        });
        wire::response(receiver)
    }
}

/// What the two protocols do differently around a session.
trait Dialect: prost::Message + Default + 'static {
    const PROTOCOL: Protocol;
    fn node(&self) -> Option<&Node>;
    fn type_url(&mut self) -> &mut String;
    fn feed(self, session: &mut Session) -> Vec<Output>;
}

impl Dialect for DiscoveryRequest {
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
}

impl Dialect for DeltaDiscoveryRequest {
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
}

/// Serves one stream to its end.
async fn run<D: Dialect>(
    hub: &Hub,
    only: Option<Kind>,
    mut requests: Streaming<D>,
    replies: &mpsc::Sender<Result<Vec<Bytes>, Status>>,
    admission: &Admission,
) -> Result<(), Status> {
    let Some(first) = requests.message().await? else { return Ok(()) };
    let Some(node) = first.node().filter(|node| !node.id.is_empty()).cloned() else {
        return Err(Status::invalid_argument("the first request names no node; set node.id in Envoy's bootstrap"));
    };
    admission.node(&node.id)?;
    let first = of_kind(first, only)?;
    let mut connected = Connected::new(hub, &node);
    hub.bound(&node.id, admission.binds(&node.id));
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
            if !connected.perform(output, replies).await {
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
    async fn perform(&self, output: Output, replies: &mpsc::Sender<Result<Vec<Bytes>, Status>>) -> bool {
        let (pieces, url, version) = match output {
            Output::State(reply) => (reply.encode(), reply.type_url, reply.version_info),
            Output::Delta(reply) => (reply.encode(), reply.type_url, reply.system_version_info),
            Output::Answered { kind, version, refused } => {
                self.hub.answered(&self.node, self.stream, kind, version, refused);
                return true;
            }
        };
        if let Some(kind) = Kind::of_type_url(&url) {
            let bytes = pieces.iter().map(Bytes::len).sum();
            self.hub.sent(&self.node, self.stream, kind, &version, bytes);
        }
        replies.send(Ok(pieces)).await.is_ok()
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
                    "a gateway asks for resources that its group does not get from the control plane (`delivery: ecds`); the request is ignored"
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
