//! The API contract check: requests and responses beside an OpenAPI document.
//!
//! The control plane compiles the document. What is told of a mismatch names the place and what is expected there, never a value.

#[cfg(feature = "control")]
pub mod control;
mod drift;
pub mod inventory;
mod messages;
mod other;
mod report;

use std::borrow::Cow;
use std::rc::Rc;

use contract::{BodyCheck, BodyResult, Contract, Forms, Found, Mismatch, Violation, missing_body};
use exchange::{
    Body, BodyNeed, Build, Exchange, Headers, Host, Level, MatchedOperation, Metric, Plugin, PluginDefinition, Request,
    Role, Slot, Timer, Verdict, Workers,
};
use prost::Message as _;
use seclang::body::decode::{DecodeError, decode};

use drift::{Payload, Sampling};
use inventory::{Call, Inventory, Target};
use other::{is_preflight, is_read_whole, other_method};

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

/// A preflight of CORS whose body has not ended yet: with a byte in it, it is none.
struct OpenPreflight;

/// What is remembered of one exchange.
struct Seen {
    target: Target,
    /// What is checked of the body that is due. What is wrong with a body is so only if it is not empty.
    body: BodyCheck,
    /// The forms in which the body of the request may name a method beside its own.
    forms: Forms,
    /// The schemas that the body has to match as well, as one of operations that the head names beside its own.
    also: Vec<u32>,
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
        let preflight = is_preflight(request, has_body);
        let matched = match contract.find(&request.method, request.path_only(), preflight) {
            Found::Operation(matched) => matched,
            // One byte tells whether it has a body.
            Found::Preflight if has_body => {
                slot.put(OpenPreflight);
                return Verdict::NeedBody(BodyNeed { limit: 1 });
            }
            Found::Preflight => return Verdict::Pass,
            Found::UnknownPath => {
                let found = Violation::new(Mismatch::UnknownPath, "path", "no operation has this path");
                return self.outside(found, None, exchange, slot, host);
            }
            Found::MethodNotAllowed(allow) => return self.undeclared_method(allow, exchange, slot, host),
        };
        let header = |name: &str| joined(&request.headers, name);
        let kind = header("content-type");
        let head = self.head(request, &header);
        let mut found = contract.check_parameters(&matched, &head);
        let others = contract.named_in_head(&matched, &request.method, request.path_only(), &head);
        let allow = others.allow;
        if let Some(allow) = &allow {
            found.insert(0, other_method(allow));
        }
        let mut also = Vec::new();
        if found.is_empty() {
            (found, also) = self.as_others(contract, (&matched, &others.operations), request, has_body);
        }
        let mut body = contract.request_body(matched.operation, kind.as_deref(), has_body);
        if body == BodyCheck::None && has_body && is_stray(request) && !contract.has_body(matched.operation) {
            let detail = "the operation has no body, and some backends read one all the same";
            body = BodyCheck::Wrong(Violation::new(Mismatch::InvalidBody, "body", detail));
        }
        let is_post = request.method == b"POST" && has_body;
        let mut forms = match body {
            _ if !is_post => Forms::default(),
            // It is refused, whatever it names.
            BodyCheck::Wrong(_) => Forms::default(),
            _ => Forms::of(kind.as_deref().unwrap_or_default()),
        };
        // An optional body may turn out to be empty, which is none.
        let open = has_body && !request.streaming && content_length(&request.headers).is_none_or(|length| length == 0);
        let late = open && !contract.requires_body(matched.operation);
        if let BodyCheck::Wrong(violation) = &body
            && !late
        {
            found.push(violation.clone());
            body = BodyCheck::None;
        } else if announces_more(&request.headers, self.limit)
            && (is_json(&body) || !also.is_empty() || is_read_whole(contract, matched.operation, forms))
        {
            found.push(self.too_large());
            (body, forms, also) = (BodyCheck::None, Forms::default(), Vec::new());
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
            BodyCheck::Wrong(_) => Some(BodyNeed { limit: 1 }),
            _ if is_json(&body) || !forms.is_none() || !also.is_empty() => Some(BodyNeed { limit: self.limit }),
            BodyCheck::Required(_) => Some(BodyNeed { limit: 1 }),
            _ => None,
        };
        slot.put(Seen { target: Target::Operation(operation), body, forms, also, mismatch, sampled: false });
        match need {
            Some(need) if verdict == Verdict::Pass && has_body => Verdict::NeedBody(need),
            _ => verdict,
        }
    }

    fn request_body(&self, exchange: &mut Exchange, body: Body<'_>, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let Some(contract) = &self.contract else { return Verdict::Pass };
        if slot.take::<OpenPreflight>().is_some() {
            let request = &exchange.request;
            return match contract.find(&request.method, request.path_only(), false) {
                Found::MethodNotAllowed(allow) if !body.bytes.is_empty() || !body.complete => {
                    self.undeclared_method(allow, exchange, slot, host)
                }
                _ => Verdict::Pass,
            };
        }
        let Some(seen) = slot.get::<Seen>() else { return Verdict::Pass };
        let Target::Operation(operation) = seen.target else { return Verdict::Pass };
        let empty = body.bytes.is_empty() && body.complete;
        let read = !empty && (is_json(&seen.body) || !seen.forms.is_none() || !seen.also.is_empty());
        let plain = read.then(|| self.decoded(body, &exchange.request.headers));
        let also = std::mem::take(&mut seen.also);
        let mut allow = None;
        let mut found = match &seen.body {
            BodyCheck::Required(_) if empty => vec![missing_body()],
            BodyCheck::Wrong(violation) if !empty => vec![violation.clone()],
            BodyCheck::Required(Some(schema)) | BodyCheck::Json(schema) if !empty => {
                self.sample_request(contract, operation, body, exchange, host);
                match &plain {
                    Some(Ok(_)) if !body.complete => vec![self.too_large()],
                    Some(Ok(bytes)) => self.judge(contract, *schema, bytes, false, host),
                    Some(Err(violation)) => vec![violation.clone()],
                    None => Vec::new(),
                }
            }
            _ => Vec::new(),
        };
        match plain {
            Some(Ok(_)) if !body.complete && (!also.is_empty() || is_read_whole(contract, operation, seen.forms)) => {
                if found.is_empty() {
                    found.push(self.too_large());
                }
            }
            Some(Ok(bytes)) => {
                let (other, more) = self.named_in_body(contract, (operation, seen.forms, also), &bytes, exchange, host);
                if let Some(other) = &other {
                    found.insert(0, other_method(other));
                }
                if found.is_empty() {
                    found = more;
                }
                allow = other;
            }
            Some(Err(violation)) if found.is_empty() => found.push(violation),
            Some(Err(_)) | None => {}
        }
        if let Some(first) = found.first()
            && seen.mismatch.is_none()
        {
            seen.mismatch = self.would_refuse(Some(first));
        }
        self.mismatches(found, &contract.label(operation), allow, exchange, host)
    }

    /// What the operation wants besides a body was checked already, and a backend that answers so early may have refused the request.
    fn without_body(&self, _exchange: &mut Exchange, _status: u16, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        Verdict::Pass
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
        // A longer one is no mismatch: its backend promises no length. One in a coding of its own is not read.
        let plain = self.step.validate_responses.then(|| self.plain(body, &response.headers)).flatten();
        let found = plain.map(|bytes| self.judge(contract, schema, &bytes, true, host)).unwrap_or_default();
        if !found.is_empty() {
            self.report(&found, &contract.label(operation), exchange, host);
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
    /// A method that the path does not have; `allow` are those that it has.
    fn undeclared_method(&self, allow: String, exchange: &mut Exchange, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let found = Violation::new(Mismatch::MethodNotAllowed, "method", format!("expected one of {allow}"));
        self.outside(found, Some(allow), exchange, slot, host)
    }

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
        let (target, body, forms) = (Target::Outside, BodyCheck::None, Forms::default());
        slot.put(Seen { target, body, forms, also: Vec::new(), mismatch, sampled: false });
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

    /// Checks a JSON body without its coding. What a broken schema cannot judge is counted, and passes.
    pub(crate) fn judge(
        &self,
        contract: &Contract,
        schema: u32,
        bytes: &[u8],
        response: bool,
        host: &dyn Host,
    ) -> Vec<Violation> {
        match contract.check_body(schema, bytes, response) {
            BodyResult::Valid => Vec::new(),
            BodyResult::Invalid(violations) => violations,
            BodyResult::Unjudged => {
                host.count(Metric::PluginFailures);
                self.tell_unjudged(host);
                Vec::new()
            }
        }
    }

    /// The body of a request without its content coding, or why it cannot be read. A part of one may be given.
    fn decoded<'b>(&self, body: Body<'b>, headers: &Headers) -> Result<Cow<'b, [u8]>, Violation> {
        if !body.complete && body.bytes.is_empty() {
            return Err(Violation::new(Mismatch::InvalidBody, "body", "the body of an upgrade cannot be checked"));
        }
        let coding = exchange::codings::list(headers);
        if exchange::codings::is_identity(&coding) {
            return Ok(Cow::Borrowed(body.bytes));
        }
        if !body.complete {
            return Err(self.too_large());
        }
        decode(&coding, body.bytes, self.limit, MAX_RATIO).map(Cow::Owned).map_err(|error| match error {
            DecodeError::TooLarge => self.too_large(),
            DecodeError::Unknown => {
                let detail = "the content coding is not known, so that the body cannot be checked";
                Violation::new(Mismatch::UnsupportedMediaType, "header:content-encoding", detail)
            }
            error => Violation::new(Mismatch::InvalidBody, "body", error.to_string()),
        })
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

/// Whether a body comes with a method that has none. What follows the request for an upgrade is no body, unless one is announced.
fn is_stray(request: &Request) -> bool {
    matches!(request.method.as_slice(), b"GET" | b"HEAD") && (!request.streaming || request.upgrades_with_body())
}

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
pub(crate) fn joined<'h>(headers: &'h Headers, name: &str) -> Option<Cow<'h, [u8]>> {
    let mut all = headers.all(name);
    let first = all.next()?;
    let Some(second) = all.next() else { return Some(Cow::Borrowed(first)) };
    let mut values = vec![first, second];
    values.extend(all);
    Some(Cow::Owned(values.join(b",".as_slice())))
}

#[cfg(test)]
mod tests;
