//! Admission to xDS and the node link: which nodes a stream may speak for. With tokens, a client needs one; with client
//! certificates, the certificate names the nodes.

use std::sync::Arc;

use tokio::sync::watch;
use tonic::service::Interceptor;
use tonic::{Extensions, Request, Status};

use super::kept::Kept;
use super::node_names::NodeNames;
use super::node_tokens::{NodeToken, NodeTokens};
use super::nodes::Peer;
use super::throttle::Throttle;
use base::clock;

/// Checks the token of every stream. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Gate {
    tokens: Option<Arc<Kept<NodeTokens>>>,
    /// Failures of an address.
    failures: Arc<Throttle>,
    /// Which addresses were told of in the log lately.
    complaints: Arc<Throttle>,
}

/// The nodes that a stream was admitted as; an extension of its request. By default any node that it claims to be.
#[derive(Clone, Default)]
pub struct Admission {
    token: Option<(NodeToken, watch::Receiver<Arc<NodeTokens>>)>,
    /// The names in the certificate of the connection.
    certificate: Option<Arc<NodeNames>>,
}

impl Admission {
    /// The id of the node that speaks, where it says that it is `claimed`; empty text says nothing, which is enough where the
    /// token or certificate is for one node.
    ///
    /// # Errors
    ///
    /// It may not be that node, or no node has such an id.
    pub fn node(&self, claimed: &str) -> Result<String, Status> {
        let names = || self.names();
        if claimed.is_empty() {
            let only = names().find_map(NodeNames::only);
            return match only {
                Some(only) if names().all(|names| names.admit(only)) => Ok(only.to_owned()),
                _ => Err(Status::invalid_argument("the stream names no node, and what let it in is not for one alone")),
            };
        }
        NodeNames::check_id(claimed).map_err(|error| Status::invalid_argument(error.to_string()))?;
        if names().all(|names| names.admit(claimed)) {
            return Ok(claimed.to_owned());
        }
        metrics::counter!("palisade_node_auth_failures_total", "reason" => "node").increment(1);
        tracing::warn!(node = claimed, "a gateway claims a node id that its token or certificate does not cover");
        Err(Status::permission_denied(
            "the token or certificate of this stream does not cover the node id that it claims",
        ))
    }

    /// Whether a token or certificate names this node whole: what is for several (`edge-*`) lets each speak as any of them.
    pub fn binds(&self, node: &str) -> bool {
        self.names().any(|names| names.names(node))
    }

    fn names(&self) -> impl Iterator<Item = &NodeNames> {
        let token = self.token.as_ref().and_then(|(token, _)| token.nodes());
        token.into_iter().chain(self.certificate.as_deref())
    }
}

impl Gate {
    /// Admits clients with one of `tokens`; if there are none, all clients.
    pub fn new(tokens: Option<Arc<Kept<NodeTokens>>>) -> Gate {
        Gate { tokens, failures: Arc::default(), complaints: Arc::new(Throttle::after(0)) }
    }

    /// A right token always passes, whatever else comes from its address: many gateways may share one.
    fn check(&self, request: &Request<()>) -> Result<Admission, Status> {
        let certificate = request.extensions().get::<Peer>().and_then(|peer| peer.names.clone());
        let Some(tokens) = &self.tokens else { return Ok(Admission { token: None, certificate }) };
        let presented = bearer(request);
        let admitted = presented.and_then(|token| tokens.current().admit(token));
        if let Some(token) = admitted {
            return Ok(Admission { token: Some((token, tokens.subscribe())), certificate });
        }
        let (reason, why) = match presented {
            None => ("missing", "this control plane wants a node token: send `authorization: Bearer TOKEN`"),
            Some(_) => ("wrong", "the node token is not accepted by this control plane"),
        };
        metrics::counter!("palisade_node_auth_failures_total", "reason" => reason).increment(1);
        let now = clock::now_millis();
        let peer = request.extensions().get::<Peer>().map(|peer| peer.address);
        if peer.is_none_or(|peer| self.complaints.failed(peer.ip(), now).is_some_and(|wait| wait.first)) {
            tracing::warn!(
                ?peer,
                reason,
                "refused a gateway without a valid token; further ones of this address are only counted"
            );
        }
        match peer.and_then(|peer| self.failures.failed(peer.ip(), now)) {
            None => Err(Status::unauthenticated(why)),
            Some(wait) => {
                metrics::counter!("palisade_node_auth_throttled_total").increment(1);
                let seconds = wait.seconds;
                Err(Status::resource_exhausted(format!(
                    "too many failures from this address; try again in {seconds} s"
                )))
            }
        }
    }
}

impl Interceptor for Gate {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let admission = self.check(&request)?;
        // The token has served and goes no further.
        request.metadata_mut().remove("authorization");
        if let Some(peer) = request.extensions().get::<Peer>() {
            peer.admit();
        }
        request.extensions_mut().insert(admission);
        Ok(request)
    }
}

/// The admission of a request.
pub fn admission(extensions: &Extensions) -> Admission {
    extensions.get::<Admission>().cloned().unwrap_or_default()
}

/// Completes when the token of a stream is one no more.
pub async fn withdrawn(admission: Admission) -> Status {
    if let Some((token, mut tokens)) = admission.token
        && tokens.wait_for(|tokens| !tokens.hold(&token)).await.is_ok()
    {
        return Status::unauthenticated("the node token of this stream is taken no more");
    }
    std::future::pending().await
}

/// The token in a request's metadata; none where there are several.
fn bearer(request: &Request<()>) -> Option<&[u8]> {
    let mut values = request.metadata().get_all("authorization").iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.as_bytes().split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}
