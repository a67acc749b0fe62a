//! The API contract check: requests and responses beside an OpenAPI document.
//!
//! The control plane compiles the document. What is told of a mismatch names the place and what is expected there, never a value.

#[cfg(feature = "control")]
pub mod control;
mod messages;
mod report;

use std::borrow::Cow;
use std::rc::Rc;

use contract::{BodyCheck, BodyResult, Contract, Found, Head, Mismatch, Violation, missing_body};
use exchange::{
    Body, BodyNeed, Build, Exchange, Headers, Host, Level, Metric, Plugin, PluginDefinition, Role, Slot, Verdict,
};
use prost::Message as _;
use seclang::body::decode::{DecodeError, decode};

pub use messages::ApiContractStep;

/// The plugin.
pub const PLUGIN: PluginDefinition = PluginDefinition::new("api-contract", build).role(Role::Enforcement);

/// The factor by which a coded body may grow.
const MAX_RATIO: u32 = 100;

struct ApiContract {
    step: ApiContractStep,
    /// `None` where the document does not compile.
    contract: Option<Rc<Contract>>,
    limit: usize,
}

/// What is remembered of one exchange.
struct Seen {
    operation: u32,
    /// What is checked of the body that is due.
    body: BodyCheck,
}

fn build(config: &[u8], build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let step = ApiContractStep::decode(config).map_err(|error| error.to_string())?;
    let contract = if step.contract.is_empty() {
        None
    } else {
        Some(build.shared(&step.contract, |bytes| Contract::open(bytes).map(Rc::new))?)
    };
    let limit = usize::try_from(step.max_body_bytes).unwrap_or(usize::MAX);
    Ok(Box::new(ApiContract { step, contract, limit }))
}

impl Plugin for ApiContract {
    fn request(&self, exchange: &mut Exchange, has_body: bool, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let Some(contract) = &self.contract else {
            self.tell_broken(host);
            return Verdict::Pass;
        };
        let request = &exchange.request;
        let has = |name| request.headers.get(name).is_some();
        let preflight = has("origin") && has("access-control-request-method");
        let matched = match contract.find(&request.method, request.path_only(), preflight) {
            Found::Operation(matched) => matched,
            Found::Preflight => return Verdict::Pass,
            Found::UnknownPath => {
                let found = Violation::new(Mismatch::UnknownPath, "path", "no operation has this path");
                return self.mismatches(vec![found], "", None, exchange, host);
            }
            Found::MethodNotAllowed(allow) => {
                let found = Violation::new(Mismatch::MethodNotAllowed, "method", format!("expected one of {allow}"));
                return self.mismatches(vec![found], "", Some(allow), exchange, host);
            }
        };
        let header = |name: &str| joined(&request.headers, name);
        let head =
            Head { query: request.query(), header: &header, reject_unknown: self.step.reject_unknown_query_params };
        let mut found = contract.check_parameters(&matched, &head);
        let mut body = contract.request_body(matched.operation, request.headers.get("content-type"), has_body);
        if let BodyCheck::Wrong(violation) = body {
            found.push(violation);
            body = BodyCheck::None;
        } else if is_json(&body) && announces_more(&request.headers, self.limit) {
            found.push(self.too_large());
            body = BodyCheck::None;
        }
        let operation = matched.operation;
        if self.step.validate_responses {
            exchange::codings::limit(exchange);
        }
        let verdict = if found.is_empty() {
            Verdict::Pass
        } else {
            self.mismatches(found, &contract.label(operation), None, exchange, host)
        };
        let need = match &body {
            // One byte tells whether it is empty.
            BodyCheck::Required(None) => Some(BodyNeed { limit: 1 }),
            BodyCheck::Json(_) | BodyCheck::Required(Some(_)) => Some(BodyNeed { limit: self.limit }),
            BodyCheck::None | BodyCheck::Wrong(_) => None,
        };
        slot.put(Seen { operation, body });
        match need {
            Some(need) if verdict == Verdict::Pass && has_body => Verdict::NeedBody(need),
            _ => verdict,
        }
    }

    fn request_body(&self, exchange: &mut Exchange, body: Body<'_>, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let (Some(contract), Some(seen)) = (&self.contract, slot.get::<Seen>()) else { return Verdict::Pass };
        let schema = match seen.body {
            BodyCheck::Required(_) if body.bytes.is_empty() && body.complete => {
                return self.mismatches(vec![missing_body()], &contract.label(seen.operation), None, exchange, host);
            }
            BodyCheck::Json(_) if body.bytes.is_empty() && body.complete => return Verdict::Pass,
            BodyCheck::Required(Some(schema)) | BodyCheck::Json(schema) => schema,
            BodyCheck::Required(None) | BodyCheck::None | BodyCheck::Wrong(_) => return Verdict::Pass,
        };
        let found = self.check(contract, schema, body, &exchange.request.headers, false, host);
        match found {
            Some(violation) => self.mismatches(vec![violation], &contract.label(seen.operation), None, exchange, host),
            None => Verdict::Pass,
        }
    }

    fn response(&self, exchange: &mut Exchange, has_body: bool, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let (Some(contract), Some(seen)) = (&self.contract, slot.get::<Seen>()) else { return Verdict::Pass };
        let Some(response) = exchange.response.as_ref().filter(|_| self.step.validate_responses && !exchange.answered)
        else {
            return Verdict::Pass;
        };
        let partial = matches!(response.status, 206 | 304) || response.headers.get("content-range").is_some();
        let has_body = has_body && !partial && !response.streaming;
        let kind = response.headers.get("content-type");
        seen.body = contract.response_body(seen.operation, response.status, kind, has_body);
        if let BodyCheck::Wrong(violation) = &seen.body {
            let (violation, operation) = (violation.clone(), contract.label(seen.operation));
            self.report(&[violation], &operation, exchange, host);
            return Verdict::Pass;
        }
        if is_json(&seen.body) { Verdict::NeedBody(BodyNeed { limit: self.limit }) } else { Verdict::Pass }
    }

    fn response_body(&self, exchange: &mut Exchange, body: Body<'_>, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let (Some(contract), Some(seen)) = (&self.contract, slot.take::<Seen>()) else { return Verdict::Pass };
        let (BodyCheck::Json(schema), Some(response)) = (seen.body, &exchange.response) else { return Verdict::Pass };
        // A longer one is no mismatch: its backend promises no length.
        if body.complete && self.step.validate_responses {
            let found = self.check(contract, schema, body, &response.headers, true, host);
            if let Some(violation) = found {
                self.report(&[violation], &contract.label(seen.operation), exchange, host);
            }
        }
        Verdict::Pass
    }
}

impl ApiContract {
    /// Checks a JSON body. What a broken schema cannot judge is counted, and passes.
    fn check(
        &self,
        contract: &Contract,
        schema: u32,
        body: Body<'_>,
        headers: &Headers,
        response: bool,
        host: &dyn Host,
    ) -> Option<Violation> {
        if !body.complete {
            return Some(self.too_large());
        }
        let coding = headers.all("content-encoding").collect::<Vec<_>>().join(b",".as_slice());
        let bytes = if coding.iter().all(|byte| b" ,".contains(byte)) {
            Cow::Borrowed(body.bytes)
        } else {
            match decode(&coding, body.bytes, self.limit, MAX_RATIO) {
                Ok(bytes) => Cow::Owned(bytes),
                // A response in a coding of its own is not read.
                Err(_) if response => return None,
                Err(DecodeError::TooLarge) => return Some(self.too_large()),
                Err(DecodeError::Unknown) => {
                    let detail = "the content coding is not known, so that the body cannot be checked";
                    return Some(Violation::new(Mismatch::UnsupportedMediaType, "header:content-encoding", detail));
                }
                Err(error) => return Some(Violation::new(Mismatch::InvalidBody, "body", error.to_string())),
            }
        };
        match contract.check_body(schema, &bytes, response) {
            BodyResult::Valid => None,
            BodyResult::Invalid(violation) => Some(violation),
            BodyResult::Unjudged => {
                host.count(Metric::PluginFailures);
                self.tell_unjudged(host);
                None
            }
        }
    }

    fn too_large(&self) -> Violation {
        let detail = format!("the body has more than {} bytes, so that it cannot be checked", self.limit);
        Violation::new(Mismatch::BodyTooLarge, "body", detail)
    }

    fn tell_broken(&self, host: &dyn Host) {
        let name = &self.step.name;
        if report::is_due(host, b"broken", name.as_bytes(), report::HOUR) {
            let message = format!(
                "palisade: the API contract `{name}` does not compile and checks nothing: {}",
                self.step.broken
            );
            host.log(Level::Error, &message);
        }
    }

    fn tell_unjudged(&self, host: &dyn Host) {
        let name = &self.step.name;
        if report::is_due(host, b"unjudged", name.as_bytes(), report::MINUTE) {
            let message = format!(
                "palisade: a schema of the API contract `{name}` refers to itself in a circle, and checks nothing"
            );
            host.log(Level::Warn, &message);
        }
    }
}

/// Whether a JSON body is checked.
fn is_json(body: &BodyCheck) -> bool {
    matches!(body, BodyCheck::Json(_) | BodyCheck::Required(Some(_)))
}

/// Whether the announced length of a body is over the limit.
fn announces_more(headers: &Headers, limit: usize) -> bool {
    let length =
        headers.get("content-length").and_then(|length| std::str::from_utf8(length).ok()?.parse::<usize>().ok());
    length.is_some_and(|length| length > limit)
}

/// The values of a header, joined.
fn joined<'h>(headers: &'h Headers, name: &str) -> Option<Cow<'h, [u8]>> {
    let mut all = headers.all(name);
    let first = all.next()?;
    let Some(second) = all.next() else { return Some(Cow::Borrowed(first)) };
    let mut values = vec![first, second];
    values.extend(all);
    Some(Cow::Owned(values.join(b",".as_slice())))
}

#[cfg(test)]
mod tests;
