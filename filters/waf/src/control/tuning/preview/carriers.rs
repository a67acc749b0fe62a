//! The requests that attacks are put into.

use super::super::target::Target;
use super::attacks::{read, seen};
use crate::control::operations::trial::Trial;
use crate::control::tuning::corpus::{self, Spot, USER_AGENT};
use crate::samples::messages::{SampledHeader, SampledRequest};

/// The samples that are tried, at most, and the other inputs in which nothing is left.
const MAX_SAMPLES: usize = 8;
const MAX_EMPTIED: usize = 64;
/// What no rule looks at.
const HARMLESS: &[u8] = b"1";

/// The request that attacks are put into: the sample, or where there is none, one for the path. A body that is cut cannot be read: where the
/// input is not in it, it is left out, because it would be refused for itself.
pub(super) fn carrier(sample: Option<&SampledRequest>, target: &Target, path: &str) -> SampledRequest {
    let of_body = ["ARGS", "ARGS_NAMES", "ARGS_POST", "ARGS_POST_NAMES", "FILES", "FILES_NAMES", "REQUEST_BODY", "XML"];
    match sample {
        Some(sample) if sample.cut && !of_body.contains(&target.collection.as_str()) => {
            let is_of_body = |header: &&SampledHeader| !header.name.starts_with(b"content-");
            let headers = sample.headers.iter().filter(is_of_body).cloned().collect();
            SampledRequest { method: "GET".to_owned(), headers, body: Vec::new(), ..sample.clone() }
        }
        Some(sample) => sample.clone(),
        None => SampledRequest {
            method: "GET".to_owned(),
            uri: path.replace(['{', '}'], "").into_bytes(),
            protocol: "HTTP/1.1".to_owned(),
            headers: plain_headers(),
            ..SampledRequest::default()
        },
    }
}

/// The headers of a request that rules find nothing in.
fn plain_headers() -> Vec<SampledHeader> {
    let header = |name: &str, value: &str| SampledHeader { name: name.into(), value: value.into() };
    vec![header("host", "localhost"), header("user-agent", USER_AGENT), header("accept", "*/*")]
}

/// The request with no headers of the client but those that its body is read by.
fn bare(request: &SampledRequest) -> SampledRequest {
    let is_of_body = |header: &&SampledHeader| {
        let name = header.name.to_ascii_lowercase();
        name.starts_with(b"content-") || name == b"transfer-encoding"
    };
    let of_body = request.headers.iter().filter(is_of_body).cloned();
    SampledRequest { headers: plain_headers().into_iter().chain(of_body).collect(), ..request.clone() }
}

/// A request that attacks at an input are put into and in which rules find nothing else: one of the samples, or the first of them with nothing
/// in its other inputs and then without its headers, or one that has no others. `None` where there is none. `on` is the unique id of requests.
///
/// It is not enough that the request is not refused: with points that something else in it has, attacks would be caught that are not by
/// themselves.
pub(super) fn clean_carrier<'s>(
    (trial, on): (&Trial<'_>, &[u8]),
    samples: impl Iterator<Item = &'s SampledRequest>,
    (target, path): (&Target, &str),
    others: &[Target],
) -> Option<SampledRequest> {
    let is_clean = |request: &SampledRequest| {
        let is_harmless = |request: &SampledRequest| {
            seen(trial, &read(request), on).is_some_and(|seen| !seen.blocked && seen.score == 0.0)
        };
        // The request is to be harmless with another method.
        if target.method().is_some() {
            let method = if request.body.is_empty() { "GET" } else { "POST" };
            return is_harmless(&SampledRequest { method: method.to_owned(), ..request.clone() });
        }
        let harmless = |spot| match spot {
            // Characters that are raw are a part of the attack.
            Spot::RawQuery => Some(true),
            spot => corpus::inject_at(request, (target, path), spot, HARMLESS).map(|request| is_harmless(&request)),
        };
        corpus::spots(target).iter().all(|spot| harmless(*spot) == Some(true))
    };
    let mut carriers = samples.take(MAX_SAMPLES).map(|sample| carrier(Some(sample), target, path));
    let first = carriers.next();
    let clean = first.iter().cloned().chain(carriers).find(is_clean);
    let emptied = || {
        others.iter().take(MAX_EMPTIED).try_fold(first.clone()?, |request, other| {
            Some(corpus::inject(&request, other, HARMLESS).unwrap_or(request))
        })
    };
    let plain = || carrier(None, target, path);
    // A sample may have points for a header that is no other input: an address as the host, or a header that is not there.
    let fallbacks = [emptied(), first.as_ref().map(bare), emptied().as_ref().map(bare), Some(plain())];
    clean.or_else(|| fallbacks.into_iter().flatten().find(is_clean))
}
