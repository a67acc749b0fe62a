//! The gRPC service, by hand: the messages come from the crate `snapshot`, so there is nothing to generate.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use snapshot::{Answered, Ask, AskGrant, Down, MAX_WAIT_MILLIS, Up};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, StdError, http};
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

use super::bodies::{Bodies, QuestionBody};
use super::counts;
use super::hub::LinkHub;
use super::pace::{BEGIN_TIME, BREATH, CATCH_UP, LIST_TIME, QUEUE, too_slow};
use super::tables::{self, WorkerTables};
use listen::{Admission, Closing, admission, withdrawn};

/// Bans or entries of the allowlist in one message: a worker takes a message whole.
const ENTRIES_PER_MESSAGE: usize = 500;
/// The room in the queue with which a message of the list that a link begins with is sent. Most of the list waits outside of the queue: a
/// copy of each message for each link that is slow would be much.
const LIST_ROOM: usize = QUEUE - 4;
/// Questions of one worker that are being answered: as many as a worker has under way. More of them have no answer.
const QUESTIONS: usize = 1000;
/// Answers in one message: as many as a worker carries out at once.
const ANSWERS_PER_MESSAGE: usize = 16;
/// Random bytes that a worker gets, as many as a key of its generator has.
const SEED: usize = 32;

/// The service over a hub.
#[derive(Clone, Debug)]
pub struct NodeLinkServer {
    hub: LinkHub,
    closing: Closing,
}

/// The gRPC service of the node link.
#[must_use]
pub fn service(hub: LinkHub) -> NodeLinkServer {
    service_until(hub, Closing::never())
}

/// The same, whose streams end with `closing`.
pub(crate) fn service_until(hub: LinkHub, closing: Closing) -> NodeLinkServer {
    NodeLinkServer { hub, closing }
}

impl NamedService for NodeLinkServer {
    const NAME: &'static str = "palisade.v1.NodeLink";
}

impl<B> Service<http::Request<B>> for NodeLinkServer
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
        let server = self.clone();
        Box::pin(async move {
            if request.uri().path() != "/palisade.v1.NodeLink/Stream" {
                return Ok(Status::unimplemented("the node link has one method, Stream").into_http());
            }
            let mut grpc = Grpc::new(ProstCodec::<Down, Up>::default());
            Ok(grpc.streaming(Method { server }, request).await)
        })
    }
}

struct Method {
    server: NodeLinkServer,
}

impl StreamingService<Up> for Method {
    type Response = Down;
    type ResponseStream = ReceiverStream<Result<Down, Status>>;
    type Future = BoxFuture<Response<Self::ResponseStream>, Status>;

    fn call(&mut self, request: Request<Streaming<Up>>) -> Self::Future {
        let (down, receiver) = mpsc::channel(QUEUE + 1);
        // Why the stream ends has a place of its own: a worker is cut off because its queue is full.
        let last_word = down.clone().try_reserve_owned();
        let NodeLinkServer { hub, closing } = self.server.clone();
        let admission = admission(request.extensions());
        tokio::spawn(async move {
            metrics::gauge!("palisade_link_streams").increment(1.0);
            let result = tokio::select! {
                result = run(&hub, request.into_inner(), &down, &admission) => result,
                () = closing.closed() => Err(Status::unavailable("this control plane is shutting down")),
                status = withdrawn(admission.clone()) => Err(status),
            };
            metrics::gauge!("palisade_link_streams").decrement(1.0);
            if let Err(status) = result {
                // Nothing to worry about: a worker that takes a new configuration ends its link and opens another.
                tracing::debug!(reason = status.message(), "a node link has ended");
                if let Ok(last_word) = last_word {
                    last_word.send(Err(status));
                }
            }
        });
        Box::pin(async move { Ok(Response::new(ReceiverStream::new(receiver))) })
    }
}

/// Serves one link to its end.
async fn run(
    hub: &LinkHub,
    mut ups: Streaming<Up>,
    down: &mpsc::Sender<Result<Down, Status>>,
    admission: &Admission,
) -> Result<(), Status> {
    let Some(mut changes) = begin(hub, down).await? else { return Ok(()) };
    let (names, named) = oneshot::channel();
    let (counted, taken) = watch::channel(0);
    let mut link = Link { hub, number: hub.number(), node: String::new(), named: Some(names), counted };
    let number = link.number;
    let told = async {
        match named.await {
            Ok(node) => counts::tell(hub, (node, number), taken, down).await,
            Err(_) => std::future::pending().await,
        }
    };
    let (tables, kept) = tables::keep(hub.material(), down.clone());
    let (asks, asked) = mpsc::channel(QUESTIONS);
    let (grants, granted) = mpsc::unbounded_channel();
    let bodies = Bodies::new(grants);
    // Both at once: an answer does not wait for the events and bans behind its question to be taken.
    tokio::select! {
        result = answer_all(hub, asked, granted, &bodies, down) => result,
        result = take_all(&mut link, &mut ups, &mut changes, (&asks, &bodies, &tables), down, admission) => result,
        ended = kept => ended,
        ended = told => ended,
    }
}

/// Greets a worker and sends it all that is live; the changes from then on, or `None` where the worker has left meanwhile.
///
/// # Errors
///
/// `unavailable` where what is live cannot be read, or not within [`BEGIN_TIME`]; `resource_exhausted` for a worker that reads too slowly.
async fn begin(
    hub: &LinkHub,
    down: &mpsc::Sender<Result<Down, Status>>,
) -> Result<Option<broadcast::Receiver<Arc<Down>>>, Status> {
    let (changes, live) = tokio::select! {
        subscribed = tokio::time::timeout(BEGIN_TIME, hub.subscribe()) => subscribed
            .map_err(|_| Status::unavailable("this control plane has no list of live bans yet; open a new stream later"))?
            .map_err(|error| Status::unavailable(error.to_string()))?,
        () = down.closed() => return Ok(None),
    };
    // Not before: a worker that was greeted takes the control plane to be back.
    down.send(Ok(greeting(hub)?)).await.map_err(|_| too_slow())?;
    send_live(down, &live, live.wanted()).await?;
    // Nothing of the list is kept for the life of the link.
    Ok(Some(changes))
}

/// Sends the list that a link begins with. Once its room is `wanted`, a worker that has had [`LIST_TIME`] for it is cut off.
async fn send_live(
    down: &mpsc::Sender<Result<Down, Status>>,
    live: &Down,
    wanted: impl Future<Output = ()>,
) -> Result<(), Status> {
    let gives_way = async {
        tokio::time::sleep(LIST_TIME).await;
        wanted.await;
    };
    tokio::select! {
        sent = send_all(down, live, LIST_ROOM) => sent,
        () = gives_way => Err(too_slow()),
    }
}

/// Takes what a worker sends, and sends it what changes.
async fn take_all(
    link: &mut Link<'_>,
    ups: &mut Streaming<Up>,
    changes: &mut broadcast::Receiver<Arc<Down>>,
    (asks, bodies, tables): (&mpsc::Sender<Asked>, &Bodies, &WorkerTables),
    down: &mpsc::Sender<Result<Down, Status>>,
    admission: &Admission,
) -> Result<(), Status> {
    loop {
        tokio::select! {
            up = ups.message() => match up? {
                Some(mut up) => {
                    link.speaks(&up.node, admission)?;
                    // First of all: messages wait for the answers.
                    for ask in std::mem::take(&mut up.asks) {
                        let body = bodies.of(&ask);
                        asks.send((link.node.as_str().into(), ask, body)).await.map_err(|_| too_slow())?;
                    }
                    bodies.take(std::mem::take(&mut up.chunks));
                    if let Some(kept) = up.tables.take() {
                        tables::check(&kept)?;
                        link.hub.tables_kept(link.number, &kept);
                        tables.said(kept);
                    }
                    let counted = up.counts.as_ref().map(|counts| counts.number);
                    link.hub.take(link.number, &link.node, up).await;
                    if let Some(number) = counted {
                        link.counted.send_replace(number);
                    }
                }
                None => return Ok(()),
            },
            change = changes.recv() => match change {
                Ok(change) => push(down, &change).await?,
                Err(RecvError::Lagged(_)) => return Err(too_slow()),
                Err(RecvError::Closed) => return Ok(()),
            },
            () = down.closed() => return Ok(()),
        }
    }
}

/// A question of a node, and what comes with it.
type Asked = (Arc<str>, Ask, QuestionBody);

/// Answers questions, each beside all others: a slow answer holds up none. With the link end the questions that are open.
async fn answer_all(
    hub: &LinkHub,
    mut asked: mpsc::Receiver<Asked>,
    mut granted: mpsc::UnboundedReceiver<AskGrant>,
    bodies: &Bodies,
    down: &mpsc::Sender<Result<Down, Status>>,
) -> Result<(), Status> {
    let (mut open, mut answers, mut grants) = (JoinSet::new(), Vec::new(), HashMap::new());
    loop {
        tokio::select! {
            Some((node, ask, body)) = asked.recv() => match open.len() {
                0..QUESTIONS => drop(open.spawn(answer(hub.clone(), node, ask, body, bodies.clone()))),
                // Only a worker that asks more than it may and does not read its answers comes to this.
                _ if answers.len() >= QUESTIONS => return Err(too_slow()),
                _ => {
                    bodies.end(ask.id);
                    answers.push(ask.answered(None));
                }
            },
            Some(answered) = open.join_next() => answers.extend(answered.ok().flatten()),
            // One of each body: a later one has what those before it had.
            Some(grant) = granted.recv() => drop(grants.insert(grant.id, grant)),
            Ok(permit) = down.reserve(), if !answers.is_empty() || !grants.is_empty() => {
                let answers = answers.drain(..answers.len().min(ANSWERS_PER_MESSAGE)).collect();
                let grants: Vec<AskGrant> = grants.drain().map(|(_, grant)| grant).collect();
                grants.iter().for_each(|grant| bodies.granted(grant));
                permit.send(Ok(Down { answers, grants, ..Down::default() }));
            }
            else => std::future::pending().await,
        }
    }
}

/// The first message of a stream. It shows the worker that the control plane answers, even if there are no bans.
fn greeting(hub: &LinkHub) -> Result<Down, Status> {
    let mut seed = vec![0; SEED];
    getrandom::fill(&mut seed).map_err(|error| Status::unavailable(error.to_string()))?;
    let counts = hub.counts().map(|counts| counts.greeting());
    Ok(Down { seed, counts, ..Down::default() })
}

/// The answer to a question; `None` if the worker does not wait for it any more.
async fn answer(hub: LinkHub, node: Arc<str>, ask: Ask, body: QuestionBody, bodies: Bodies) -> Option<Answered> {
    let millis = if ask.wait_millis == 0 { MAX_WAIT_MILLIS } else { ask.wait_millis.min(MAX_WAIT_MILLIS) };
    let id = ask.id;
    let answered = tokio::time::timeout(Duration::from_millis(millis.into()), hub.answer(node, ask, body)).await;
    bodies.end(id);
    answered.ok()
}

/// A link as its end is told, however it comes.
struct Link<'a> {
    hub: &'a LinkHub,
    number: u64,
    /// Only the first message of a worker need carry the node's id.
    node: String,
    /// Gets the node's id once it is known.
    named: Option<oneshot::Sender<String>>,
    /// Gets the number of the last counts that were taken.
    counted: watch::Sender<u64>,
}

impl Link<'_> {
    /// A message names its node, or does not. A stream has one node, which is the one that it was let in as.
    fn speaks(&mut self, claimed: &str, admission: &Admission) -> Result<(), Status> {
        if !self.node.is_empty() && (claimed.is_empty() || claimed == self.node) {
            return Ok(());
        }
        if !self.node.is_empty() {
            return Err(Status::permission_denied("this stream belongs to another node than the one that it names"));
        }
        self.node = admission.node(claimed)?;
        if !self.node.is_empty() {
            self.hub.bound(&self.node, admission.binds(&self.node));
            if let Some(named) = self.named.take() {
                let _ended = named.send(self.node.clone());
            }
        }
        Ok(())
    }
}

impl Drop for Link<'_> {
    fn drop(&mut self) {
        self.hub.ended(self.number, &self.node);
    }
}

/// A worker that does not keep up with single changes is cut off at once; for a long list it gets time.
async fn push(down: &mpsc::Sender<Result<Down, Status>>, change: &Down) -> Result<(), Status> {
    if change.bans.len().max(change.allowed.len()) > ENTRIES_PER_MESSAGE {
        // Tables and answers are in the queue as well: the list waits for one place, not for an empty queue.
        return send_all(down, change, 1).await;
    }
    messages(change).try_for_each(|message| down.try_send(Ok(message)).map_err(|_| too_slow()))
}

/// Sends a list of any length, each message once `room` messages have room in the queue, this one among them. While it waits it holds what
/// room there is: more than one is for a link that sends nothing else yet. A worker that makes no room within [`CATCH_UP`] is cut off.
async fn send_all(down: &mpsc::Sender<Result<Down, Status>>, list: &Down, room: usize) -> Result<(), Status> {
    for (place, message) in messages(list).enumerate() {
        if place > 0 {
            tokio::time::sleep(BREATH).await;
        }
        let reserved = tokio::time::timeout(CATCH_UP, down.reserve_many(room)).await;
        let mut permits = reserved.map_err(|_| too_slow())?.map_err(|_| too_slow())?;
        if let Some(permit) = permits.next() {
            permit.send(Ok(message));
        }
    }
    Ok(())
}

/// What is to be told, in messages of a bounded size: who is allowed first, so that no ban holds that ought not to.
fn messages(change: &Down) -> impl Iterator<Item = Down> {
    let allowed = change.allowed.chunks(ENTRIES_PER_MESSAGE);
    let bans = change.bans.chunks(ENTRIES_PER_MESSAGE);
    allowed
        .map(|allowed| Down { allowed: allowed.to_vec(), ..Down::default() })
        .chain(bans.map(|bans| Down { bans: bans.to_vec(), ..Down::default() }))
}

#[cfg(test)]
mod tests;
