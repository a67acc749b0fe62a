//! Learning: a window over the traffic of a WAF config, and a report that says whether the config can block.

mod figures;
mod groups;
mod names;
mod profile;
mod report;
mod schemas;
mod trade_offs;
mod verify;

use kit::{
    BodyKind, Operation, OperationAnswer, OperationAudit, OperationBody, OperationContext, OperationGroup,
    OperationMethod, View,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::keep::Known;
use super::operations::{CONFLICTING, PREVIEW_SCHEMA, REFUSAL, audit, config, refuse, write};
use super::windows::Window;
use super::written::{Addition, AdditionKind, Written, free_numbers};
use crate::control::AtWork;
use crate::control::composition::elements;
use figures::mode;
use profile::{IDS_OF_PROFILE, Profiled, profiles};
pub(super) use profile::{ProfileRule, named_rules};
use report::report;
pub(super) use report::report_with;
pub(super) use trade_offs::TradeOff;
use verify::verify;
pub(super) use verify::{Effort, Verification, Verified, verify_with};

const GROUP: OperationGroup = OperationGroup {
    name: "learning",
    about: "Windows over the traffic of a WAF config: what its rules would refuse wrongly, and the exclusions that end it.",
};
/// The bytes of a body, at most.
const MAX_BODY: usize = 256 * 1024;
const NOT_YET: &str = "the windows are not read from the store yet: try again in a few seconds";
const BUSY: &str = "other reports are being made";

/// Makes one of the operations, which differ in little.
const fn operation(path: &'static str, id: &'static str, body: BodyKind, answer: fn() -> Value) -> Operation {
    Operation {
        path,
        method: OperationMethod::Post,
        id,
        group: &GROUP,
        summary: "",
        description: "",
        body,
        body_text: "The id of a WAF config.",
        max_body: MAX_BODY,
        example: || json!({ "config_ref": "shop" }),
        answer_text: "Done.",
        answer,
        schemas: &[],
        refusal: Some(REFUSAL),
        busy: BUSY,
        at_once: true,
        audit: None,
    }
}

/// A window begins.
pub(in crate::control) const START: Operation = Operation {
    summary: "Begin a learning window",
    description: "All gateways count from now on. A window that is there ends, and what it had is gone. The answer says what can be \
                  measured with the config as it is.",
    audit: Some(OperationAudit { action: "learning-start", of: of_config, detail: |_| Some("begun".to_owned()) }),
    ..operation("/learning/_start", "learningStart", BodyKind::of::<StartBody>(), schemas::started)
};
/// A window stops.
pub(in crate::control) const STOP: Operation = Operation {
    summary: "Stop a learning window",
    description: "Its report can be read until it is discarded.",
    audit: Some(OperationAudit { action: "learning-stop", of: of_config, detail: |_| Some("stopped".to_owned()) }),
    ..operation("/learning/_stop", "learningStop", BodyKind::of::<StopBody>(), schemas::done)
};
/// A window is discarded.
pub(in crate::control) const DISCARD: Operation = Operation {
    summary: "Discard a learning window",
    description: "What it has counted is gone.",
    audit: Some(OperationAudit { action: "learning-discard", of: of_config, detail: |_| Some("discarded".to_owned()) }),
    ..operation("/learning/_discard", "learningDiscard", BodyKind::of::<DiscardBody>(), schemas::done)
};
/// What a window has counted.
pub(in crate::control) const REPORT: Operation = Operation {
    summary: "Report on a learning window",
    description: "What was counted, exclusions that were verified one by one, and what they, another paranoia level and other \
                  thresholds would change. Each call verifies a few more exclusions; what is known stays known.",
    answer_text: "The report.",
    schemas: &[PREVIEW_SCHEMA],
    at_once: false,
    ..operation("/learning/_report", "learningReport", BodyKind::of::<ReportBody>(), schemas::report)
};
/// Verified exclusions are written.
pub(in crate::control) const LEARNING_APPLY: Operation = Operation {
    summary: "Write verified exclusions and rules of a profile",
    description: "All of the report that were verified, or those of them that are named; nothing that is not verified. Rules that report values \
                  outside of the profile of a parameter only where `parameters` names it.",
    body_text: "The id of a WAF config, the keys of entries, and the reason.",
    example: || json!({ "config_ref": "shop", "keys": ["942100|ARGS:content|/posts/{id}"], "reason": "learned in the first week" }),
    answer_text: "What was written.",
    refusal: Some(CONFLICTING),
    at_once: false,
    audit: Some(OperationAudit {
        action: "learning-apply",
        of: of_config,
        detail: |answer| {
            let written = answer.get("applied")?.as_array()?.iter();
            Some(written.filter_map(audit).collect::<Vec<_>>().join("; "))
        },
    }),
    ..operation("/learning/_apply", "learningApply", BodyKind::of::<LearningApplyBody>(), schemas::applied)
};

fn of_config(body: &Value) -> Option<String> {
    Some(format!("waf-configs/{}", body.get("config_ref")?.as_str()?))
}

/// The config whose window begins.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StartBody {
    /// The id of a WAF config.
    config_ref: String,
}

/// The config whose window stops.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StopBody {
    /// The id of a WAF config.
    config_ref: String,
}

/// The config whose window is discarded.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DiscardBody {
    /// The id of a WAF config.
    config_ref: String,
}

/// The config that is reported on.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReportBody {
    /// The id of a WAF config.
    config_ref: String,
}

/// The exclusions to write.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LearningApplyBody {
    /// The id of a WAF config.
    config_ref: String,
    /// Entries, each `<rule>|<target>|<path>`; all verified ones if both this and `parameters` are absent.
    keys: Option<Vec<String>>,
    /// Parameters of the profile, each `<target>|<path>`, for which a rule is written that reports values outside of it; none if absent.
    parameters: Option<Vec<String>>,
    /// Why, in at most 500 bytes; it is kept beside each exclusion.
    reason: String,
}

impl OperationBody for StartBody {
    const SCHEMA: &'static str = "LearningStartBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        let view = View::new(context.entities);
        let config = match config(&self.config_ref, &view) {
            Ok(config) => config,
            Err(why) => return refuse(&why),
        };
        match with(context, |known| known.windows.start(&self.config_ref, context.now_millis)) {
            Some(()) => OperationAnswer::Done(json!({
                "done": true,
                "config": { "id": config.head.id, "name": config.head.name },
                "mode": mode(config),
            })),
            None => refuse(NOT_YET),
        }
    }
}

impl OperationBody for StopBody {
    const SCHEMA: &'static str = "LearningStopBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        done(with(context, |known| known.windows.stop(&self.config_ref, context.now_millis)), &self.config_ref)
    }
}

impl OperationBody for DiscardBody {
    const SCHEMA: &'static str = "LearningDiscardBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        done(with(context, |known| known.windows.discard(&self.config_ref)), &self.config_ref)
    }
}

impl OperationBody for ReportBody {
    const SCHEMA: &'static str = "LearningReportBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        let view = View::new(context.entities);
        let made = config(&self.config_ref, &view).and_then(|config| {
            let window = window(&self.config_ref, context)?;
            let verified = verify(&window, config, context, &view)?;
            report(&window, config, &verified, context, &view)
        });
        match made {
            Ok(report) => OperationAnswer::Done(report),
            Err(why) => refuse(&why),
        }
    }
}

impl OperationBody for LearningApplyBody {
    const SCHEMA: &'static str = "LearningApplyBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        if self.reason.trim().is_empty() {
            return refuse("`reason` is empty: say why the exclusions are needed");
        }
        let view = View::new(context.entities);
        let plan = config(&self.config_ref, &view).and_then(|config| {
            let window = window(&self.config_ref, context)?;
            let verified = match (&self.keys, &self.parameters) {
                // Rules of a profile alone need no preview.
                (None, Some(_)) => Vec::new(),
                _ => verify(&window, config, context, &view)?,
            };
            let named = |one: &&Verified| self.keys.as_ref().is_none_or(|keys| keys.contains(&one.key()));
            let accepted: Vec<&Verified> = verified.iter().filter(|one| one.accepted).filter(named).collect();
            let rules = elements(config, &view);
            let known = profiles(&window, rules.iter().map(|element| element.text.as_str()));
            let parameters = self.parameters.as_deref().unwrap_or_default();
            let profiled = named_profiles(&known, parameters)?;
            if accepted.is_empty() && (profiled.is_empty() || self.keys.is_some()) {
                return Err("none of the exclusions is verified: the report says why, entry by entry".to_owned());
            }
            let numbers = free_numbers(config, &view, accepted.len() + profiled.len() * IDS_OF_PROFILE)?;
            let (of_exclusions, of_profiles) = numbers.split_at_checked(accepted.len()).unwrap_or_default();
            let of = |kind, number, seclang: Option<String>| Some(Addition { kind, number, seclang: seclang? });
            let exclusions = accepted.iter().zip(of_exclusions);
            let mut additions: Vec<Addition> = exclusions
                .filter_map(|(one, number)| of(AdditionKind::Exclusion, *number, one.written(*number)))
                .collect();
            let profiles = profiled.into_iter().zip(of_profiles.chunks_exact(IDS_OF_PROFILE));
            additions.extend(profiles.filter_map(|(one, ids)| {
                let ids: [u64; IDS_OF_PROFILE] = ids.try_into().ok()?;
                let [number, _] = ids;
                of(AdditionKind::Profile, number, one.rule(ids))
            }));
            let written = Written::of(config, context.entities, &view).ok_or("the WAF config is gone")?;
            let operator = context.writing.map_or("", |writing| writing.operator);
            written.add(additions, (operator, &self.reason, context.now_millis))
        });
        match plan {
            Ok(plan) => write(plan, context, |shown| json!({ "done": true, "count": shown.len(), "applied": shown })),
            Err(why) => refuse(&why),
        }
    }
}

/// The profiles that are named.
///
/// # Errors
/// One of them has no rule, or it is written already; for people.
fn named_profiles<'p>(known: &'p [Profiled], names: &[String]) -> Result<Vec<&'p Profiled>, String> {
    let find = |name: &String| {
        let found = known.iter().find(|one| one.has_key(name) && one.has_rule());
        let shown = name.escape_debug();
        let one = found.ok_or_else(|| {
            format!("`{shown}` is no parameter with a rule: the report says which are, and why others are not")
        })?;
        match one.written() {
            Some(number) => {
                Err(format!("`{shown}` has the rule {number} already: take it back first, to write another one"))
            }
            None => Ok(one),
        }
    };
    let mut found: Vec<&Profiled> = Vec::new();
    for name in names {
        let one = find(name)?;
        if !found.iter().any(|before| before.key() == one.key()) {
            found.push(one);
        }
    }
    Ok(found)
}

fn with<T>(context: &OperationContext<'_>, work: impl FnOnce(&mut Known) -> T) -> Option<T> {
    context.runtime::<AtWork>()?.reported.with(work)
}

fn window(config: &str, context: &OperationContext<'_>) -> Result<Window, String> {
    let window = with(context, |known| known.windows.get(config).cloned()).ok_or(NOT_YET)?;
    window.ok_or_else(|| no_window(config))
}

fn done(changed: Option<bool>, config: &str) -> OperationAnswer {
    match changed {
        Some(true) => OperationAnswer::Done(json!({ "done": true })),
        Some(false) => refuse(&no_window(config)),
        None => refuse(NOT_YET),
    }
}

fn no_window(config: &str) -> String {
    format!("the WAF config `{}` has no such learning window: `_start` begins one", config.escape_debug())
}

#[cfg(test)]
mod tests;
