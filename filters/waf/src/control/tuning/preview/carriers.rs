//! The requests that attacks are put into.

use super::super::target::Target;
use super::attacks::{read, seen};
use crate::control::operations::trial::Trial;
use crate::control::tuning::corpus;
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
            headers: vec![SampledHeader { name: b"host".to_vec(), value: b"localhost".to_vec() }],
            ..SampledRequest::default()
        },
    }
}

/// A request that attacks at an input are put into and that is not refused for something else: one of the samples, or the first of them with
/// nothing in its other inputs, or one that has no others. `None` where there is none. `on` is the unique id of requests.
pub(super) fn clean_carrier<'s>(
    (trial, on): (&Trial<'_>, &[u8]),
    samples: impl Iterator<Item = &'s SampledRequest>,
    (target, path): (&Target, &str),
    others: &[Target],
) -> Option<SampledRequest> {
    let is_clean = |request: &SampledRequest| {
        // No attack is written in a method: the request is to be harmless with another one.
        let harmless = match target.method() {
            Some(_) => Some(SampledRequest { method: "POST".to_owned(), ..request.clone() }),
            None => corpus::inject(request, target, HARMLESS),
        };
        harmless.is_some_and(|request| seen(trial, &read(&request), on).is_some_and(|seen| !seen.blocked))
    };
    let mut carriers = samples.take(MAX_SAMPLES).map(|sample| carrier(Some(sample), target, path));
    let first = carriers.next();
    let clean = first.iter().cloned().chain(carriers).find(is_clean);
    let emptied = || {
        others.iter().take(MAX_EMPTIED).try_fold(first.clone()?, |request, other| {
            Some(corpus::inject(&request, other, HARMLESS).unwrap_or(request))
        })
    };
    let plain = || Some(carrier(None, target, path)).filter(is_clean);
    clean.or_else(|| emptied().filter(is_clean)).or_else(plain)
}
