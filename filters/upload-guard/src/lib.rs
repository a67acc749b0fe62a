//! The upload guard: files of requests, by their names, their content and their archives.
//!
//! What a file is, is decided by the library `files`; this finds the files of a request and acts on the findings. A body is held up to
//! `body_limit`, inspected in one pass, and then goes on or is refused.

mod body;
#[cfg(feature = "control")]
pub mod control;
mod messages;

use exchange::{
    Action, Body, BodyNeed, Build, Category, Decision, Exchange, Host, Outcome, Plugin, PluginDefinition, Refusal,
    ReplyBody, Role, SecurityEvent, Signal, Slot, Verdict,
};
use files::json::Field;
use files::{Finding, Limits, Policy, Reason};
use prost::Message as _;
use seclang::body::decode::{DecodeError, decode};
use seclang::body::decode_prefix;

use body::Inspected;
pub use messages::{JsonField, UploadStep};

/// The plugin.
pub const PLUGIN: PluginDefinition = PluginDefinition::new("upload-guard", build).role(Role::Detector);

/// The tag of the signal for a body of which only the beginning was inspected.
const PARTIAL: &str = "upload:partly_inspected";

struct UploadGuard {
    step: UploadStep,
    limit: usize,
    max_files: usize,
    policy: Policy,
    json_fields: Vec<Field>,
}

fn build(config: &[u8], _build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let step = UploadStep::decode(config).map_err(|error| error.to_string())?;
    let field = |field: &JsonField| {
        let read = Field::parse(&field.path, &field.name);
        read.map_err(|why| format!("the field `{}` of the upload guard: {why}", field.path))
    };
    let json_fields = step.json_fields.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let policy = Policy {
        allowed_extensions: step.allowed_extensions.clone(),
        denied_extensions: step.denied_extensions.clone(),
        allowed_types: step.allowed_types.clone(),
        denied_types: step.denied_types.clone(),
        check_mismatch: step.check_mismatch,
        max_file_size: step.max_file_size,
        reject_unreadable: step.reject_unreadable,
        check_entries: step.check_entries,
        limits: Limits {
            depth: step.archive_max_depth,
            entries: step.archive_max_entries,
            expanded: step.archive_max_expanded_size,
            ratio: step.archive_max_ratio,
        },
    };
    let limit = usize::try_from(step.body_limit).unwrap_or(usize::MAX);
    let max_files = usize::try_from(step.max_files).unwrap_or(usize::MAX);
    Ok(Box::new(UploadGuard { step, limit, max_files, policy, json_fields }))
}

impl Plugin for UploadGuard {
    fn request(&self, _exchange: &mut Exchange, has_body: bool, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        if has_body { Verdict::NeedBody(BodyNeed { limit: self.limit }) } else { Verdict::Pass }
    }

    fn request_body(&self, exchange: &mut Exchange, body: Body<'_>, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        let mut inspected = Inspected::default();
        let complete = self.inspect_coded(exchange, body, &mut inspected);
        let partial = (!complete && inspected.files > 0).then_some(self.limit);
        self.react(&inspected, partial, exchange, host)
    }
}

impl UploadGuard {
    /// Undoes the content codings of a body and inspects it; whether all of it was there.
    fn inspect_coded(&self, exchange: &Exchange, body: Body<'_>, inspected: &mut Inspected) -> bool {
        let request = &exchange.request;
        let coding = request.headers.all("content-encoding").collect::<Vec<_>>().join(b",".as_slice());
        let mut named = coding.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        if named.all(|name| name.is_empty() || name.eq_ignore_ascii_case(b"identity")) {
            self.inspect(request, body, inspected);
            return body.complete;
        }
        let ratio = u32::try_from(self.step.archive_max_ratio).unwrap_or(u32::MAX);
        let (bytes, complete) = match decode(&coding, body.bytes, self.limit, ratio) {
            Ok(bytes) => (bytes, body.complete),
            Err(DecodeError::Ratio) => {
                let detail = format!("the body expands to more than {ratio} times its length");
                inspected.findings.add(Reason::ArchiveBomb, detail);
                return true;
            }
            Err(error) => {
                let cut = error == DecodeError::TooLarge || error == DecodeError::Truncated && !body.complete;
                match decode_prefix(&coding, body.bytes, self.limit).filter(|_| cut) {
                    Some(bytes) => (bytes, false),
                    None => {
                        inspected.findings.add(Reason::UndecodableBody, error.to_string());
                        return true;
                    }
                }
            }
        };
        self.inspect(request, Body { bytes: &bytes, complete }, inspected);
        complete
    }

    fn react(
        &self,
        inspected: &Inspected,
        partial: Option<usize>,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Verdict {
        let note = partial.map(|bytes| format!("only the first {bytes} bytes of the body were inspected"));
        if let Some(note) = &note {
            exchange.score.add(signal(PARTIAL.into(), note.clone(), 0.0, host));
        }
        for finding in inspected.findings.list() {
            let tag = format!("upload:{}", finding.reason.word());
            exchange.score.add(signal(tag, finding.detail.clone(), self.step.weight, host));
        }
        let Some(Finding { reason, detail }) = inspected.findings.first() else {
            return Verdict::Pass;
        };
        let (word, status) = (reason.word(), reason.status());
        let mut message = format!("{word}: {detail}");
        if let Some(note) = &note {
            message.push_str("; ");
            message.push_str(note);
        }
        if self.step.monitor {
            message.push_str(&format!("; the request would have been refused with {status}"));
            let decision = Decision::new(Action::Deny, exchange.score.total(), message).dry_run();
            observe(&decision, exchange, host);
            return Verdict::Pass;
        }
        let detail = note.map_or_else(|| detail.clone(), |note| format!("{detail}; {note}"));
        let body = ReplyBody::Json(vec![
            ("error", "upload_refused".to_owned()),
            ("reason", word.to_owned()),
            ("detail", detail),
        ]);
        Verdict::Refuse(Refusal::new(status, Category::Upload, message).scored().body(body))
    }
}

fn signal(tag: String, detail: String, weight: f64, host: &dyn Host) -> Signal {
    let (source, kind) = ("uploads".into(), "upload".into());
    Signal { source, kind, weight, confidence: 1.0, tag: tag.into(), detail, at: host.now() }
}

/// Emits an event about a request that goes on.
fn observe(decision: &Decision, exchange: &mut Exchange, host: &dyn Host) {
    let event = SecurityEvent {
        category: Category::Upload,
        outcome: Outcome::Observed,
        module: PLUGIN.name,
        message: &decision.reason,
        decision,
    };
    exchange.emit(&event, host);
}

#[cfg(test)]
mod tests;
