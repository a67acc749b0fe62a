//! The upload guard: files of requests, by their names, their content and their archives.
//!
//! What a file is, is decided by the library `files`; this finds the files of a request and acts on the findings. A body is held up to
//! `body_limit`, inspected in one pass, and then goes on or is refused.

mod body;
mod codings;
#[cfg(feature = "control")]
pub mod control;
mod messages;
mod scan;

use std::borrow::Cow;

use exchange::{
    Action, Answer, Body, BodyNeed, Build, Category, Decision, Exchange, Host, Outcome, Plugin, PluginDefinition,
    Refusal, ReplyBody, Role, SecurityEvent, Signal, Slot, Verdict,
};
use files::json::Field;
use files::{Finding, Limits, Policy, Reason};
use prost::Message as _;

use body::{Finder, Inspector};
use codings::{Decoded, Undecodable};
pub use messages::{JsonField, ScanAnswer, ScanFiles, ScanVerdict, UploadStep};

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

    fn request_body(&self, exchange: &mut Exchange, body: Body<'_>, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let mut finder = Finder::new(&self.json_fields, self.max_files, Inspector::new(&self.policy));
        let complete = self.find(exchange, body, &mut finder);
        let partial = !complete && (finder.files > 0 || finder.may_go_on);
        if partial {
            exchange.score.add(signal(PARTIAL.into(), self.partial_note(), 0.0, host));
        }
        if let Some(refusal) = self.react(finder.sink.findings.list(), partial, exchange, host) {
            return refusal;
        }
        // Files may be where the body was not inspected.
        if finder.files > 0 || partial { self.scan(partial, exchange, slot) } else { Verdict::Pass }
    }

    /// No file reaches the backend.
    fn without_body(&self, _exchange: &mut Exchange, _status: u16, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        Verdict::Pass
    }

    fn answered(&self, exchange: &mut Exchange, answer: Answer, slot: &mut Slot, host: &dyn Host) -> Verdict {
        self.scanned(&answer, exchange, slot, host)
    }
}

impl UploadGuard {
    /// Undoes the content codings of a body and finds its files; whether all of it was there.
    fn find(&self, exchange: &Exchange, body: Body<'_>, finder: &mut Finder<'_, Inspector<'_>>) -> bool {
        let request = &exchange.request;
        if request.upgrades_with_body() {
            finder.sink.findings.add(Reason::UndecodableBody, "the body of an upgrade cannot be inspected".to_owned());
            return true;
        }
        let coding = exchange::codings::list(&request.headers);
        let ratio = u32::try_from(self.step.archive_max_ratio).unwrap_or(u32::MAX);
        match codings::decoded(&coding, body, self.limit, ratio) {
            Ok(Decoded { bytes, complete }) => {
                let coded = matches!(bytes, Cow::Owned(_));
                if coded {
                    finder.coded(request, body, &bytes);
                }
                finder.find(request, Body { bytes: &bytes, complete });
                complete
            }
            Err(Undecodable { reason, detail }) => {
                finder.sink.findings.add(reason, detail);
                true
            }
        }
    }

    /// That only the beginning of a body was inspected.
    fn partial_note(&self) -> String {
        format!("only the first {} bytes of the body were inspected", self.limit)
    }

    /// Leaves the signals of findings, and acts on the one that decides: the refusal, or an event of a guard that monitors.
    fn react(&self, findings: &[Finding], partial: bool, exchange: &mut Exchange, host: &dyn Host) -> Option<Verdict> {
        for finding in findings {
            let tag = format!("upload:{}", finding.reason.word());
            let weight = if finding.reason.is_attack() { self.step.weight } else { 0.0 };
            exchange.score.add(signal(tag, finding.detail.clone(), weight, host));
        }
        let Finding { reason, detail } = findings.iter().min_by_key(|finding| finding.reason)?;
        let (word, status) = (reason.word(), reason.status());
        let note = if partial { format!("; {}", self.partial_note()) } else { String::new() };
        let message = format!("{word}: {detail}{note}");
        if self.step.monitor {
            let message = format!("{message}; the request would have been refused with {status}");
            let decision = Decision::new(Action::Deny, exchange.score.total(), message).dry_run();
            observe(Category::Upload, &decision, exchange, host);
            return None;
        }
        let body = ReplyBody::Json(vec![
            ("error", "upload_refused".to_owned()),
            ("reason", word.to_owned()),
            ("detail", format!("{detail}{note}")),
        ]);
        Some(Verdict::Refuse(Refusal::new(status, Category::Upload, message).scored().body(body)))
    }
}

fn signal(tag: String, detail: String, weight: f64, host: &dyn Host) -> Signal {
    let (source, kind) = ("uploads".into(), "upload".into());
    Signal { source, kind, weight, confidence: 1.0, tag: tag.into(), detail, at: host.now() }
}

/// Emits an event about a request that goes on.
fn observe(category: Category, decision: &Decision, exchange: &mut Exchange, host: &dyn Host) {
    let event = SecurityEvent {
        category,
        outcome: Outcome::Observed,
        module: PLUGIN.name,
        message: &decision.reason,
        decision,
    };
    exchange.emit(&event, host);
}

#[cfg(test)]
mod tests;
