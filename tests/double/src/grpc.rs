//! The double as a gRPC server, for a real gateway.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use snapshot::{Ask, Down, Up};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

use super::bodies::Bodies;
use super::{NODE_LINK, Script, Scripted, Seen, answer, question};

/// Messages that wait for a worker.
const QUEUE: usize = 4096;

/// A running server. Dropping it closes its port and its links.
#[derive(Debug)]
pub struct ControlPlane {
    address: SocketAddr,
    seen: Arc<Seen>,
    released: watch::Sender<bool>,
    runtime: Option<Runtime>,
}

impl ControlPlane {
    /// Starts one on a free loopback port.
    ///
    /// # Errors
    ///
    /// When the system has no port or no thread left.
    pub fn start(script: Script) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
        let (address, seen) = (listener.local_addr()?, Arc::<Seen>::default());
        let (released, release) = watch::channel(false);
        let service = Double { script, seen: Arc::clone(&seen), release };
        let serve = Server::builder().add_service(service).serve_with_incoming(TcpListenerStream::new(listener));
        runtime.spawn(serve);
        Ok(Self { address, seen, released, runtime: Some(runtime) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers the questions that were held, and all that come.
    pub fn release(&self) {
        self.released.send_replace(true);
    }

    /// What it has seen.
    #[must_use]
    pub fn seen(&self) -> &Seen {
        &self.seen
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[derive(Clone)]
struct Double {
    script: Script,
    seen: Arc<Seen>,
    release: watch::Receiver<bool>,
}

impl NamedService for Double {
    const NAME: &'static str = "palisade.v1.NodeLink";
}

impl Service<http::Request<Body>> for Double {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let double = self.clone();
        Box::pin(async move {
            if request.uri().path() != NODE_LINK {
                return Ok(Status::unimplemented("the node link has one method").into_http());
            }
            Ok(Grpc::new(ProstCodec::<Down, Up>::default()).streaming(double, request).await)
        })
    }
}

impl StreamingService<Up> for Double {
    type Response = Down;
    type ResponseStream = ReceiverStream<Result<Down, Status>>;
    type Future = BoxFuture<Response<Self::ResponseStream>, Status>;

    fn call(&mut self, request: Request<Streaming<Up>>) -> Self::Future {
        let (down, receiver) = mpsc::channel(QUEUE);
        let Self { script, seen, release } = self.clone();
        tokio::spawn(async move {
            seen.streams.fetch_add(1, Ordering::Relaxed);
            seen.open.fetch_add(1, Ordering::Relaxed);
            let _gone = down.send(Ok(Down::default())).await;
            let (mut ups, mut bodies) = (request.into_inner(), Bodies::default());
            while let Ok(Some(up)) = ups.message().await {
                for ask in up.asks {
                    seen.questions.fetch_add(1, Ordering::Relaxed);
                    let scripted = script(&question(&ask));
                    if let Some(message) = bodies.asked(&ask, &scripted) {
                        let _gone = down.send(Ok(message)).await;
                        if matches!(scripted, Scripted::Stall { .. }) {
                            tokio::spawn(carry_out(scripted, ask, down.clone(), release.clone()));
                        }
                    } else {
                        tokio::spawn(carry_out(scripted, ask, down.clone(), release.clone()));
                    }
                }
                for chunk in up.chunks {
                    let count = if chunk.abandoned { &seen.abandoned } else { &seen.chunks };
                    count.fetch_add(1, Ordering::Relaxed);
                    let released = *release.borrow();
                    if let Some(message) = bodies.take(&chunk, released) {
                        let _gone = down.send(Ok(message)).await;
                    }
                }
                seen.taking.store(bodies.len() as u64, Ordering::Relaxed);
            }
            seen.open.fetch_sub(1, Ordering::Relaxed);
        });
        Box::pin(async move { Ok(Response::new(ReceiverStream::new(receiver))) })
    }
}

async fn carry_out(
    scripted: Scripted,
    ask: Ask,
    down: mpsc::Sender<Result<Down, Status>>,
    mut release: watch::Receiver<bool>,
) {
    let message = match scripted {
        Scripted::Data(data) => Ok(answer(ask.id, Some(data))),
        Scripted::After(millis, data) => {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            Ok(answer(ask.id, Some(data)))
        }
        Scripted::Held(data) => {
            let _ended = release.wait_for(|released| *released).await;
            Ok(answer(ask.id, Some(data)))
        }
        Scripted::Unknown => Ok(answer(ask.id, None)),
        Scripted::Stall { .. } => {
            let _ended = release.wait_for(|released| *released).await;
            Ok(Bodies::released(&ask))
        }
        Scripted::Never | Scripted::Read { .. } => return,
        Scripted::Lose => Err(Status::unavailable("lost")),
    };
    let _gone = down.send(message).await;
}
