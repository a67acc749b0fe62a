//! Who is let in to xDS and the node link: where there are tokens, whoever brings one.

use std::sync::Arc;

use tokio::sync::watch;
use tonic::service::Interceptor;
use tonic::{Extensions, Request, Status};

use crate::access::{NodeTokens, Throttle};
use crate::clock;
use crate::listen::{Kept, Peer};

/// Checks the token of every stream. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    tokens: Option<Arc<Kept<NodeTokens>>>,
    /// Failures of an address.
    failures: Arc<Throttle>,
    /// Which addresses were told of in the log lately.
    complaints: Arc<Throttle>,
}

/// With which token a stream was let in; an extension of its request.
#[derive(Clone)]
pub(crate) struct Admission {
    digest: [u8; 32],
    tokens: watch::Receiver<Arc<NodeTokens>>,
}

impl Gate {
    /// Lets in who has one of `tokens`; where there are none, everybody.
    pub(super) fn new(tokens: Option<Arc<Kept<NodeTokens>>>) -> Gate {
        Gate { tokens, failures: Arc::default(), complaints: Arc::new(Throttle::after(0)) }
    }

    /// A right token always passes, whatever else comes from its address: many gateways may share one.
    fn check(&self, request: &Request<()>) -> Result<Option<Admission>, Status> {
        let Some(tokens) = &self.tokens else { return Ok(None) };
        let presented = bearer(request);
        let admitted = presented.and_then(|token| tokens.current().admit(token));
        if let Some(digest) = admitted {
            return Ok(Some(Admission { digest, tokens: tokens.subscribe() }));
        }
        let (reason, why) = match presented {
            None => ("missing", "this control plane wants a node token: send `authorization: Bearer TOKEN`"),
            Some(_) => ("wrong", "the node token is none that this control plane takes"),
        };
        metrics::counter!("palisade_node_auth_failures_total", "reason" => reason).increment(1);
        let now = clock::now_millis();
        let peer = request.extensions().get::<Peer>().map(|peer| peer.address);
        if peer.is_none_or(|peer| self.complaints.failed(peer.ip(), now).is_some_and(|wait| wait.first)) {
            tracing::warn!(
                ?peer,
                reason,
                "refused a gateway without the right token; more of this address are counted only"
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
        if let Some(admission) = admission {
            request.extensions_mut().insert(admission);
        }
        Ok(request)
    }
}

/// The admission of a request, where one was needed.
pub(crate) fn admission(extensions: &Extensions) -> Option<Admission> {
    extensions.get::<Admission>().cloned()
}

/// Completes when the token of a stream is one no more.
pub(crate) async fn withdrawn(admission: Option<Admission>) -> Status {
    if let Some(Admission { digest, mut tokens }) = admission
        && tokens.wait_for(|tokens| !tokens.hold(&digest)).await.is_ok()
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
