//! The error leakage guard: replaces responses that show errors of the application by a neutral one.
//!
//! It reads the body of a response as far as its limit, and a match in it replaces the response as a whole: a part of an error is
//! an error still. What was found is named by its family and rule, never quoted.

#[cfg(feature = "control")]
pub mod control;
mod messages;

use exchange::{
    Action, Body, Build, Category, Decision, Exchange, Headers, Host, Outcome, Plugin, PluginDefinition, Refusal,
    ReplyBody, Role, SecurityEvent, Signal, Slot, Verdict,
};
use prost::Message as _;
use response_scan::leakage::{Leak, MAX_LEVEL, Scanner};
use response_scan::{Head, NO_PARTS, NO_PARTS_REASON, Responses, Text, offset_class};

pub use messages::ErrorLeakageStep;

/// The plugin.
pub const PLUGIN: PluginDefinition = PluginDefinition::new("error-leakage", build).role(Role::Detector);

/// The status that takes the place of one that is no error.
const INTERNAL_ERROR: u16 = 500;

/// Headers of the backend that the new answer keeps: what a client needs to read it, to authenticate, or to come again.
const KEPT: [&str; 4] = ["retry-after", "vary", "www-authenticate", "x-request-id"];
/// The same for all headers that begin so.
const KEPT_PREFIX: &str = "access-control-";

struct ErrorLeakage {
    step: ErrorLeakageStep,
    responses: Responses,
    scanner: Scanner,
}

fn build(config: &[u8], _build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let step = ErrorLeakageStep::decode(config).map_err(|error| error.to_string())?;
    let level = u8::try_from(step.paranoia_level).ok().filter(|level| (1..=MAX_LEVEL).contains(level));
    let level = level.ok_or("the error leakage guard has a paranoia level that this filter does not know")?;
    let responses = Responses {
        content_types: step.content_types.clone(),
        limit: usize::try_from(step.body_limit).unwrap_or(usize::MAX),
        whole: !step.pass_ranges,
        monitor: step.monitor,
    };
    Ok(Box::new(ErrorLeakage { step, responses, scanner: Scanner::new(level) }))
}

impl Plugin for ErrorLeakage {
    fn request(&self, exchange: &mut Exchange, _has_body: bool, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        self.responses.request(exchange, host);
        Verdict::Pass
    }

    fn response(&self, exchange: &mut Exchange, has_body: bool, slot: &mut Slot, host: &dyn Host) -> Verdict {
        match self.responses.response(exchange, has_body, slot) {
            Head::Pass => Verdict::Pass,
            Head::Hold(need) => Verdict::NeedBody(need),
            Head::Part => self.refuse_part(exchange, host),
        }
    }

    fn response_body(&self, exchange: &mut Exchange, body: Body<'_>, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let Some((_, text)) = Responses::text(exchange, body, slot) else { return Verdict::Pass };
        let leaks = self.scanner.scan(&text.units());
        if leaks.is_empty() {
            return Verdict::Pass;
        }
        self.react(&leaks, &text, exchange, host)
    }
}

impl ErrorLeakage {
    fn refuse_part(&self, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        if self.step.monitor {
            observe(format!("{NO_PARTS_REASON}; it would not have been given"), exchange, host);
            return Verdict::Pass;
        }
        let body = ReplyBody::Json(vec![
            ("error", "range_not_satisfiable".to_owned()),
            ("message", "Ask for the whole of it.".to_owned()),
        ]);
        Verdict::Refuse(Refusal::new(NO_PARTS, Category::Leakage, NO_PARTS_REASON).body(body))
    }

    fn react(&self, leaks: &[Leak], text: &Text<'_>, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        for leak in leaks {
            exchange.score.add(self.signal(leak, host));
        }
        let status = exchange.response.as_ref().map_or(0, |response| response.status);
        let answer = if status >= 400 { status } else { INTERNAL_ERROR };
        let named: Vec<String> = leaks.iter().map(describe).collect();
        let mut reason =
            format!("the response with status {status} shows an error of the application: {}", named.join(", "));
        if !text.complete {
            reason.push_str("; only the beginning of the body was inspected");
        }
        if self.step.monitor {
            reason.push_str(&format!("; it would have been replaced by an answer with status {answer}"));
            observe(reason, exchange, host);
            return Verdict::Pass;
        }
        let body = ReplyBody::Json(vec![
            ("error", "internal_error".to_owned()),
            ("message", "Something went wrong.".to_owned()),
        ]);
        let refusal = Refusal::new(answer, Category::Leakage, reason).body(body);
        Verdict::Refuse(match &exchange.response {
            Some(response) => with_kept_headers(refusal, &response.headers),
            None => refusal,
        })
    }

    fn signal(&self, leak: &Leak, host: &dyn Host) -> Signal {
        Signal {
            source: "leakage".into(),
            kind: "leakage".into(),
            weight: self.step.weight,
            confidence: 1.0,
            tag: format!("leakage:{}", leak.family.name()).into(),
            detail: describe(leak),
            at: host.now(),
        }
    }
}

/// Emits an event about a response that goes on, and that a guard in the mode `mask` would have kept back.
fn observe(reason: String, exchange: &mut Exchange, host: &dyn Host) {
    let decision = Decision::new(Action::Deny, exchange.score.total(), reason).dry_run();
    let event = SecurityEvent {
        category: Category::Leakage,
        outcome: Outcome::Observed,
        module: PLUGIN.name,
        message: &decision.reason,
        decision: &decision,
    };
    exchange.emit(&event, host);
}

fn describe(leak: &Leak) -> String {
    format!("{} ({}) {}", leak.family.name(), leak.rule, offset_class(leak.at))
}

fn with_kept_headers(refusal: Refusal, headers: &Headers) -> Refusal {
    headers.regular().filter_map(|(name, value)| Some((std::str::from_utf8(name).ok()?, value))).fold(
        refusal,
        |refusal, (name, value)| {
            let kept = KEPT.contains(&name) || name.starts_with(KEPT_PREFIX);
            if kept { refusal.header(name, value) } else { refusal }
        },
    )
}

#[cfg(test)]
mod tests;
