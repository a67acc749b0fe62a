//! The sensitive data guard: masks or withholds card numbers, keys and the like in responses.
//!
//! Nothing of a value leaves the plugin but in its masked form: events, signals and logs have the name of the detector, how often
//! it matched, and roughly where.

#[cfg(feature = "control")]
pub mod control;
mod messages;

use exchange::{
    Action, Body, Build, Category, Decision, Exchange, Host, Outcome, Plugin, PluginDefinition, Refusal, ReplyBody,
    Role, SecurityEvent, Signal, Slot, Verdict,
};
use prost::Message as _;
use response_scan::sensitive::{Checksum, CustomPattern, Detector, Finding, Scanner, mask_all};
use response_scan::{Head, NO_PARTS, NO_PARTS_REASON, Responses, Text, offset_class};

pub use messages::{CustomDetector, DataAction, DetectorAction, PatternChecksum, SensitiveDataStep};

/// The plugin.
pub const PLUGIN: PluginDefinition = PluginDefinition::new("sensitive-data", build).role(Role::Detector);

/// The status of the answer in place of a response that is withheld.
const WITHHELD: u16 = 500;
/// The most detectors of a configuration.
pub const MAX_CUSTOM: usize = 16;

struct SensitiveData {
    step: SensitiveDataStep,
    responses: Responses,
    scanner: Scanner,
    actions: Vec<(Detector, DataAction)>,
}

/// What one detector has found in a response.
struct Matches {
    detector: Detector,
    action: DataAction,
    count: usize,
    first: usize,
}

fn build(config: &[u8], _build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let step = SensitiveDataStep::decode(config).map_err(|error| error.to_string())?;
    let unknown = || "the sensitive data guard has an action that this filter does not know".to_owned();
    let action = |action: i32| {
        DataAction::try_from(action).ok().filter(|action| *action != DataAction::Unspecified).ok_or_else(unknown)
    };
    let mut actions = Vec::new();
    for known in &step.detectors {
        let detector = Detector::BUILT_IN.into_iter().find(|detector| detector.name() == known.detector);
        let detector = detector.ok_or("the sensitive data guard has a detector that this filter does not know")?;
        actions.push((detector, action(known.action)?));
    }
    let built_in = actions.iter().map(|(detector, _)| *detector).collect();
    let mut custom = Vec::new();
    for (place, own) in (0u8..).zip(step.custom.iter().take(MAX_CUSTOM)) {
        let checksum = match own.checksum() {
            PatternChecksum::None => Checksum::None,
            PatternChecksum::Luhn => Checksum::Luhn,
            PatternChecksum::Mod97 => Checksum::Mod97,
        };
        let pattern = CustomPattern::new(&own.pattern, checksum);
        custom.push(pattern.map_err(|error| format!("the pattern of the detector `{}`: {error}", own.name))?);
        actions.push((Detector::Custom(place), action(own.action)?));
    }
    let threshold = usize::try_from(step.email_threshold).unwrap_or(usize::MAX);
    let responses = Responses {
        content_types: step.content_types.clone(),
        limit: usize::try_from(step.body_limit).unwrap_or(usize::MAX),
        whole: !step.pass_ranges,
        monitor: step.monitor,
    };
    Ok(Box::new(SensitiveData { scanner: Scanner::new(built_in, threshold, custom), step, responses, actions }))
}

impl Plugin for SensitiveData {
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
        let Some((inspection, text)) = Responses::text(exchange, body, slot) else { return Verdict::Pass };
        let units = text.units();
        let found = self.scanner.scan(&units);
        if found.is_empty() {
            return Verdict::Pass;
        }
        let form = inspection.form(&units);
        let masked = || {
            let mut units = units.to_vec();
            let masks = |finding: &&Finding| self.action(finding.detector) == DataAction::Mask;
            mask_all(&mut units, found.iter().filter(masks), form);
            text.written(&units)
        };
        self.react(&found, &text, &masked, exchange, host)
    }
}

impl SensitiveData {
    fn refuse_part(&self, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        // Nothing is withheld where no detector does more than to log.
        let only_logs = self.actions.iter().all(|(_, action)| *action <= DataAction::Log);
        if self.step.monitor || only_logs {
            let score = exchange.score.total();
            let decision = match only_logs {
                true => Decision::new(Action::Log, score, format!("{NO_PARTS_REASON}; it was not inspected")),
                false => Decision::new(Action::Deny, score, format!("{NO_PARTS_REASON}; it would not have been given"))
                    .dry_run(),
            };
            observe(&decision, exchange, host);
            return Verdict::Pass;
        }
        let body = ReplyBody::Json(vec![
            ("error", "range_not_satisfiable".to_owned()),
            ("message", "Ask for the whole of it.".to_owned()),
        ]);
        Verdict::Refuse(Refusal::new(NO_PARTS, Category::SensitiveData, NO_PARTS_REASON).body(body))
    }

    fn react(
        &self,
        found: &[Finding],
        text: &Text<'_>,
        masked: &dyn Fn() -> Vec<u8>,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Verdict {
        let matches = self.matches(found);
        for matches in &matches {
            exchange.score.add(self.signal(matches, host));
        }
        let strictest = matches.iter().map(|matches| matches.action).max().unwrap_or(DataAction::Log);
        // What follows the inspected part would follow the masked one: the frame refuses to replace a part of a body.
        let maskable = text.complete;
        let named: Vec<String> = matches.iter().map(|matches| self.describe(matches)).collect();
        let mut reason = format!("sensitive data in the response: {}", named.join(", "));
        if !text.complete {
            reason.push_str("; only the beginning of the body was inspected");
        }
        let (action, would, done) = match strictest {
            DataAction::Block => (Action::Deny, "the response would have been withheld", "the response was withheld"),
            DataAction::Mask if maskable => (Action::Log, "it would have been masked", "it was masked"),
            DataAction::Mask => (
                Action::Deny,
                "the response would have been withheld, because its body cannot be masked as a whole",
                "the response was withheld, because its body cannot be masked as a whole",
            ),
            // The same in either mode.
            DataAction::Log | DataAction::Unspecified => (Action::Log, "it was reported", "it was reported"),
        };
        reason.push_str("; ");
        reason.push_str(if self.step.monitor { would } else { done });
        if self.step.monitor || strictest <= DataAction::Log {
            let decision = Decision::new(action, exchange.score.total(), reason);
            let decision = if strictest > DataAction::Log { decision.dry_run() } else { decision };
            observe(&decision, exchange, host);
            return Verdict::Pass;
        }
        if strictest == DataAction::Mask && maskable {
            observe(&Decision::new(Action::Log, exchange.score.total(), reason).enforced(), exchange, host);
            return Verdict::ReplaceBody(masked());
        }
        let body = ReplyBody::Json(vec![
            ("error", "response_withheld".to_owned()),
            ("message", "The response was withheld.".to_owned()),
        ]);
        Verdict::Refuse(Refusal::new(WITHHELD, Category::SensitiveData, reason).body(body))
    }

    fn matches(&self, found: &[Finding]) -> Vec<Matches> {
        let mut list: Vec<Matches> = Vec::new();
        for finding in found {
            match list.iter_mut().find(|matches| matches.detector == finding.detector) {
                Some(matches) => matches.count += 1,
                None => {
                    let action = self.action(finding.detector);
                    list.push(Matches { detector: finding.detector, action, count: 1, first: finding.start });
                }
            }
        }
        list
    }

    fn action(&self, detector: Detector) -> DataAction {
        self.actions.iter().find(|(known, _)| *known == detector).map_or(DataAction::Log, |(_, action)| *action)
    }

    fn name(&self, detector: Detector) -> &str {
        match detector {
            Detector::Custom(place) => {
                self.step.custom.get(usize::from(place)).map_or("custom", |own| own.name.as_str())
            }
            built_in => built_in.name(),
        }
    }

    fn describe(&self, matches: &Matches) -> String {
        let Matches { detector, count, first, .. } = *matches;
        format!("{} ({count} times, the first {})", self.name(detector), offset_class(first))
    }

    fn signal(&self, matches: &Matches, host: &dyn Host) -> Signal {
        Signal {
            source: "sensitive_data".into(),
            kind: "sensitive_data".into(),
            weight: self.step.weight,
            confidence: 1.0,
            tag: format!("dlp:{}", self.name(matches.detector)).into(),
            detail: self.describe(matches),
            at: host.now(),
        }
    }
}

/// Emits an event about a response that goes on.
fn observe(decision: &Decision, exchange: &mut Exchange, host: &dyn Host) {
    let event = SecurityEvent {
        category: Category::SensitiveData,
        outcome: Outcome::Observed,
        module: PLUGIN.name,
        message: &decision.reason,
        decision,
    };
    exchange.emit(&event, host);
}

#[cfg(test)]
mod tests;
