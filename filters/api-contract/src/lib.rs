//! The API contract check: requests and responses beside an OpenAPI document.
//!
//! The control plane compiles the document. What is told of a mismatch names the place and what is expected there, never a value.

#[cfg(feature = "control")]
pub mod control;
mod drift;
pub mod inventory;
mod messages;
mod report;

use std::borrow::Cow;
use std::rc::Rc;

use contract::{BodyCheck, BodyResult, Contract, Found, Head, Mismatch, Violation, missing_body};
use exchange::{
    Body, BodyNeed, Build, Exchange, Headers, Host, Level, MatchedOperation, Metric, Plugin, PluginDefinition, Role,
    Slot, Timer, Verdict, Workers,
};
use prost::Message as _;
use seclang::body::decode::{DecodeError, decode};

use drift::{Payload, Sampling};
use inventory::{Call, Inventory, Target};

pub use messages::ApiContractStep;

/// The plugin.
pub const PLUGIN: PluginDefinition = PluginDefinition::new("api-contract", build).role(Role::Enforcement);

/// The factor by which a coded body may grow.
const MAX_RATIO: u32 = 100;
/// How often a worker looks whether a report is due, in milliseconds.
const TICK: u32 = 1000;

struct ApiContract {
    step: ApiContractStep,
    /// `None` where the document does not compile.
    contract: Option<Rc<Contract>>,
    limit: usize,
    sampling: Sampling,
}

/// What is remembered of one exchange.
struct Seen {
    target: Target,
    /// What is checked of the body that is due. What is wrong with a body is so only if it is not empty.
    body: BodyCheck,
    /// The first mismatch that enforcing would have refused the request for.
    mismatch: Option<Violation>,
    /// The body of the response is looked at for the report.
    sampled: bool,
}

fn build(config: &[u8], build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let step = ApiContractStep::decode(config).map_err(|error| error.to_string())?;
    let contract = if step.contract.is_empty() {
        None
    } else {
        Some(build.shared(&step.contract, |bytes| Contract::open(bytes).map(Rc::new))?)
    };
    let limit = usize::try_from(step.max_body_bytes).unwrap_or(usize::MAX);
    let sampling = Sampling::new(if step.inventory { step.drift_sampling_millis } else { 0 });
    Ok(Box::new(ApiContract { step, contract, limit, sampling }))
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
                return self.outside(found, None, exchange, slot, host);
            }
            Found::MethodNotAllowed(allow) => {
                let found = Violation::new(Mismatch::MethodNotAllowed, "method", format!("expected one of {allow}"));
                return self.outside(found, Some(allow), exchange, slot, host);
            }
        };
        let header = |name: &str| joined(&request.headers, name);
        let head =
            Head { query: request.query(), header: &header, reject_unknown: self.step.reject_unknown_query_params };
        let mut found = contract.check_parameters(&matched, &head);
        let allow = contract.overridden(&matched, &request.method, request.path_only(), &head);
        if let Some(allow) = &allow {
            let detail = format!("the request names another one beside it: expected one of {allow}");
            found.insert(0, Violation::new(Mismatch::MethodNotAllowed, "method", detail));
        }
        let mut body = contract.request_body(matched.operation, request.headers.get("content-type"), has_body);
        // An optional body may turn out to be empty, which is none.
        let open = has_body && !request.streaming && content_length(&request.headers).is_none_or(|length| length == 0);
        let late = open && !contract.requires_body(matched.operation);
        if let BodyCheck::Wrong(violation) = &body
            && !late
        {
            found.push(violation.clone());
            body = BodyCheck::None;
        } else if is_json(&body) && announces_more(&request.headers, self.limit) {
            found.push(self.too_large());
            body = BodyCheck::None;
        }
        let operation = matched.operation;
        let (template, parameters) = contract.named(&matched);
        exchange.operation = Some(MatchedOperation::new(template, parameters));
        if self.step.validate_responses {
            exchange::codings::limit(exchange);
        }
        let mismatch = self.would_refuse(found.first());
        let verdict = if found.is_empty() {
            Verdict::Pass
        } else {
            self.mismatches(found, &contract.label(operation), allow, exchange, host)
        };
        let need = match &body {
            // One byte tells whether it is empty.
            BodyCheck::Required(None) | BodyCheck::Wrong(_) => Some(BodyNeed { limit: 1 }),
            BodyCheck::Json(_) | BodyCheck::Required(Some(_)) => Some(BodyNeed { limit: self.limit }),
            BodyCheck::None => None,
        };
        slot.put(Seen { target: Target::Operation(operation), body, mismatch, sampled: false });
        match need {
            Some(need) if verdict == Verdict::Pass && has_body => Verdict::NeedBody(need),
            _ => verdict,
        }
    }

    fn request_body(&self, exchange: &mut Exchange, body: Body<'_>, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let (Some(contract), Some(seen)) = (&self.contract, slot.get::<Seen>()) else { return Verdict::Pass };
        let Target::Operation(operation) = seen.target else { return Verdict::Pass };
        let found = match &seen.body {
            BodyCheck::Required(_) if body.bytes.is_empty() && body.complete => vec![missing_body()],
            BodyCheck::Json(_) | BodyCheck::Wrong(_) if body.bytes.is_empty() && body.complete => Vec::new(),
            BodyCheck::Wrong(violation) => vec![violation.clone()],
            BodyCheck::Required(Some(schema)) | BodyCheck::Json(schema) => {
                let schema = *schema;
                self.sample_request(contract, operation, body, exchange, host);
                self.check(contract, schema, body, &exchange.request.headers, false, host)
            }
            BodyCheck::Required(None) | BodyCheck::None => Vec::new(),
        };
        if let Some(first) = found.first()
            && seen.mismatch.is_none()
        {
            seen.mismatch = self.would_refuse(Some(first));
        }
        self.mismatches(found, &contract.label(operation), None, exchange, host)
    }

    fn response(&self, exchange: &mut Exchange, has_body: bool, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let (Some(contract), Some(seen)) = (&self.contract, slot.get::<Seen>()) else { return Verdict::Pass };
        let Target::Operation(operation) = seen.target else { return Verdict::Pass };
        let Some(response) = exchange.response.as_ref().filter(|_| !exchange.answered) else { return Verdict::Pass };
        let partial = matches!(response.status, 206 | 304) || response.headers.get("content-range").is_some();
        let has_body = has_body && !partial && !response.streaming;
        let kind = response.headers.get("content-type");
        seen.sampled = !partial && self.sample_response(contract, operation, has_body, exchange, host);
        if self.step.validate_responses {
            seen.body = contract.response_body(operation, response.status, kind, has_body);
            if let BodyCheck::Wrong(violation) = &seen.body {
                let violation = violation.clone();
                self.report(&[violation], &contract.label(operation), exchange, host);
            }
        } else {
            seen.body = BodyCheck::None;
        }
        if seen.sampled || is_json(&seen.body) {
            Verdict::NeedBody(BodyNeed { limit: self.limit })
        } else {
            Verdict::Pass
        }
    }

    fn response_body(&self, exchange: &mut Exchange, body: Body<'_>, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let (Some(contract), Some(seen)) = (&self.contract, slot.get::<Seen>()) else { return Verdict::Pass };
        let (Target::Operation(operation), Some(response)) = (seen.target, &exchange.response) else {
            return Verdict::Pass;
        };
        if seen.sampled {
            let payload = Payload { route: &exchange.route.id, operation, status: response.status };
            let plain = self.plain(body, &response.headers);
            payload.send(&contract.label(operation), response.headers.get("content-type"), plain.as_deref(), host);
        }
        let BodyCheck::Json(schema) = seen.body else { return Verdict::Pass };
        // A longer one is no mismatch: its backend promises no length.
        if body.complete && self.step.validate_responses {
            let found = self.check(contract, schema, body, &response.headers, true, host);
            if !found.is_empty() {
                self.report(&found, &contract.label(operation), exchange, host);
            }
        }
        Verdict::Pass
    }

    fn finish(&self, exchange: &mut Exchange, slot: &mut Slot, host: &dyn Host) {
        let (Some(contract), Some(seen)) = (&self.contract, slot.take::<Seen>()) else { return };
        // Where no route of the control plane is meant, there is nothing to report on.
        if !self.step.inventory || exchange.route.id.is_empty() {
            return;
        }
        let label = || match seen.target {
            Target::Operation(operation) => contract.label(operation),
            Target::Outside => String::new(),
        };
        let call = Call {
            target: seen.target,
            label: &label,
            contract: &self.step.contract,
            mismatch: seen.mismatch.as_ref(),
            max_records: usize::try_from(self.step.max_records).unwrap_or(usize::MAX),
        };
        Inventory::of(host).count(&call, exchange, host);
    }

    fn timer(&self) -> Option<Timer> {
        // Each second, so that what comes after a silence is told soon.
        (self.step.inventory && self.contract.is_some()).then_some(Timer { millis: TICK, on: Workers::All })
    }

    fn on_timer(&self, host: &dyn Host) {
        Inventory::of(host).publish(&self.step.id, host);
    }
}

impl ApiContract {
    /// What is outside of the contract.
    fn outside(
        &self,
        found: Violation,
        allow: Option<String>,
        exchange: &mut Exchange,
        slot: &mut Slot,
        host: &dyn Host,
    ) -> Verdict {
        let mismatch = self.would_refuse(Some(&found));
        slot.put(Seen { target: Target::Outside, body: BodyCheck::None, mismatch, sampled: false });
        self.mismatches(vec![found], "", allow, exchange, host)
    }

    /// The mismatch for the report, where nothing is refused for it.
    fn would_refuse(&self, found: Option<&Violation>) -> Option<Violation> {
        found.filter(|_| !self.step.enforce && self.step.inventory).cloned()
    }

    /// Looks at the body of a request, where it is due.
    fn sample_request(
        &self,
        contract: &Contract,
        operation: u32,
        body: Body<'_>,
        exchange: &Exchange,
        host: &dyn Host,
    ) {
        let payload = Payload { route: &exchange.route.id, operation, status: 0 };
        let label = || contract.label(operation);
        if !body.complete || !self.sampling.is_due(payload, label, host) {
            return;
        }
        let headers = &exchange.request.headers;
        if let Some(plain) = self.plain(body, headers) {
            payload.send(&label(), headers.get("content-type"), Some(&plain), host);
        }
    }

    /// Looks at a response, where it is due; whether its body is wanted for that. A body of unknown length is not held for it: it may
    /// be a stream that never ends.
    fn sample_response(
        &self,
        contract: &Contract,
        operation: u32,
        has_body: bool,
        exchange: &Exchange,
        host: &dyn Host,
    ) -> bool {
        let Some(response) = &exchange.response else { return false };
        let payload = Payload { route: &exchange.route.id, operation, status: response.status };
        let label = || contract.label(operation);
        if !self.sampling.is_due(payload, label, host) {
            return false;
        }
        let kind = response.headers.get("content-type");
        let length = content_length(&response.headers).is_some_and(|length| length <= self.limit);
        let wanted = has_body && length && kind.is_some_and(names_json);
        if !wanted {
            payload.send(&label(), kind, None, host);
        }
        wanted
    }

    /// A whole body without its content coding; `None` where it cannot be decoded.
    fn plain<'b>(&self, body: Body<'b>, headers: &Headers) -> Option<Cow<'b, [u8]>> {
        if !body.complete {
            return None;
        }
        let coding = exchange::codings::list(headers);
        if exchange::codings::is_identity(&coding) {
            return Some(Cow::Borrowed(body.bytes));
        }
        decode(&coding, body.bytes, self.limit, MAX_RATIO).ok().map(Cow::Owned)
    }

    /// Checks a JSON body. What a broken schema cannot judge is counted, and passes.
    fn check(
        &self,
        contract: &Contract,
        schema: u32,
        body: Body<'_>,
        headers: &Headers,
        response: bool,
        host: &dyn Host,
    ) -> Vec<Violation> {
        if !body.complete && body.bytes.is_empty() {
            let detail = "the body of an upgrade cannot be checked";
            return vec![Violation::new(Mismatch::InvalidBody, "body", detail)];
        }
        if !body.complete {
            return vec![self.too_large()];
        }
        let coding = exchange::codings::list(headers);
        let bytes = if exchange::codings::is_identity(&coding) {
            Cow::Borrowed(body.bytes)
        } else {
            match decode(&coding, body.bytes, self.limit, MAX_RATIO) {
                Ok(bytes) => Cow::Owned(bytes),
                // A response in a coding of its own is not read.
                Err(_) if response => return Vec::new(),
                Err(DecodeError::TooLarge) => return vec![self.too_large()],
                Err(DecodeError::Unknown) => {
                    let detail = "the content coding is not known, so that the body cannot be checked";
                    return vec![Violation::new(Mismatch::UnsupportedMediaType, "header:content-encoding", detail)];
                }
                Err(error) => return vec![Violation::new(Mismatch::InvalidBody, "body", error.to_string())],
            }
        };
        match contract.check_body(schema, &bytes, response) {
            BodyResult::Valid => Vec::new(),
            BodyResult::Invalid(violations) => violations,
            BodyResult::Unjudged => {
                host.count(Metric::PluginFailures);
                self.tell_unjudged(host);
                Vec::new()
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

/// The content codings of a message.
/// Whether a media type is JSON.
fn names_json(content_type: &[u8]) -> bool {
    let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
    essence == b"application/json" || essence == b"text/json" || essence.ends_with(b"+json")
}

/// The announced length of a body.
fn content_length(headers: &Headers) -> Option<usize> {
    std::str::from_utf8(headers.get("content-length")?).ok()?.parse().ok()
}

/// Whether the announced length of a body is over the limit.
fn announces_more(headers: &Headers, limit: usize) -> bool {
    content_length(headers).is_some_and(|length| length > limit)
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
