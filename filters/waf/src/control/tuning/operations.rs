//! The endpoints `tuning/...` of the console.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;

use kit::{
    BodyKind, BodyRefusal, EditError, Item, NamedSchema, Operation, OperationAnswer, OperationAudit, OperationBody,
    OperationContext, OperationGroup, OperationMethod, View,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::exclusion::{ExclusionKind, Place};
use super::matches::{KeptMatch, MAX_MATCHES, MatchStore};
use super::preview::{Bases, Bench, Preview, Previews};
use super::proposals::ProposeBody;
use super::schemas;
use super::target::Target;
use super::written::{Addition, AdditionKind, Plan, Written, number_of};
use crate::control::AtWork;
use crate::control::config::WafConfig;
use crate::control::operations::engines::Engines;
use crate::samples::messages::SampledRequest;

/// The bytes of a body, at most.
const MAX_BODY: usize = 64 * 1024;
/// The threads of a call, at most.
const MAX_THREADS: usize = 2;
/// The longest exclusion, in bytes.
const MAX_SECLANG: usize = 16 * 1024;

const GROUP: OperationGroup = OperationGroup {
    name: "tuning",
    about: "From a false positive to an exclusion that ends it and lets no known attack pass.",
};
const REFUSED: NamedSchema = NamedSchema { name: "TuningRefused", schema: schemas::refused };
const NOT_APPLIED: NamedSchema = NamedSchema { name: "TuningNotApplied", schema: schemas::not_applied };
pub(super) const PREVIEW_SCHEMA: NamedSchema = NamedSchema { name: "TuningPreview", schema: schemas::preview };
pub(super) const REFUSAL: BodyRefusal =
    BodyRefusal { as_done: false, schema: REFUSED, conflict: None, answer: refused };
pub(super) const CONFLICTING: BodyRefusal = BodyRefusal { conflict: Some(NOT_APPLIED), ..REFUSAL };
const BUSY: &str = "other exclusions are being tried";
pub(super) const NOT_YET: &str = "the matches are not read from the store yet: try again in a few seconds";

/// The matches.
pub(in crate::control) const MATCHES: Operation = Operation {
    path: "/tuning/_matches",
    method: OperationMethod::Get,
    id: "tuningMatches",
    group: &GROUP,
    summary: "List the matches that an exclusion can be written against",
    description: "The matches of all gateways, the last one first: at most 500. Of the rule with the most matches the oldest give way \
                  first, so that rare ones stay.",
    body: BodyKind::of::<MatchesBody>(),
    body_text: "",
    max_body: 0,
    example: || json!({}),
    answer_text: "The matches.",
    answer: schemas::matches,
    schemas: &[],
    refusal: None,
    busy: "other lists are being made",
    at_once: false,
    audit: None,
};
/// Exclusions for a match.
pub(in crate::control) const PROPOSE: Operation = Operation {
    path: "/tuning/_propose",
    method: OperationMethod::Post,
    id: "tuningPropose",
    group: &GROUP,
    summary: "Propose exclusions for a match",
    description: "The narrowest first, each with its preview. The first that is safe is recommended.",
    body: BodyKind::of::<ProposeBody>(),
    body_text: "The id of a match, or a WAF config, a rule, a target and a path.",
    max_body: MAX_BODY,
    example: || json!({ "sample_id": "5f0c2a7be1d94c38" }),
    answer_text: "The proposals.",
    answer: schemas::proposed,
    schemas: &[PREVIEW_SCHEMA],
    refusal: Some(REFUSAL),
    busy: BUSY,
    at_once: false,
    audit: None,
};
/// What an exclusion would change.
pub(in crate::control) const PREVIEW: Operation = Operation {
    path: "/tuning/_preview",
    method: OperationMethod::Post,
    id: "tuningPreview",
    group: &GROUP,
    summary: "Say what an exclusion would change",
    description: "The sample of the match, known attacks, and these attacks at the input of the match run through the engine that \
                  gateways run, without the exclusion and with it, and so does the beginning of the recording that was uploaded last, if there is \
                  one. Nothing is written.",
    body: BodyKind::of::<PreviewBody>(),
    body_text: "The id of a match, and the exclusion.",
    max_body: MAX_BODY,
    example: || {
        json!({
            "sample_id": "5f0c2a7be1d94c38",
            "seclang": "SecRuleUpdateTargetById 942100 \"!ARGS:content\"",
            "kind": "update_target",
        })
    },
    answer_text: "The preview.",
    answer: || PREVIEW_SCHEMA.reference(),
    schemas: &[PREVIEW_SCHEMA],
    refusal: Some(REFUSAL),
    busy: BUSY,
    at_once: false,
    audit: None,
};
/// An exclusion is written.
pub(in crate::control) const APPLY: Operation = Operation {
    path: "/tuning/_apply",
    method: OperationMethod::Post,
    id: "tuningApply",
    group: &GROUP,
    summary: "Write an exclusion",
    description: "It goes into a ruleset of its own for each WAF config, with who wrote it, when and why. It is previewed first: where the \
                  match cannot be had again, or known attacks are not caught any more, `force` is needed.",
    body: BodyKind::of::<ApplyBody>(),
    body_text: "The id of a match, the exclusion and the reason.",
    max_body: MAX_BODY,
    example: || {
        json!({
            "sample_id": "5f0c2a7be1d94c38",
            "seclang": "SecRuleUpdateTargetById 942100 \"!ARGS:content\"",
            "kind": "update_target",
            "reason": "editors write about SQL",
        })
    },
    answer_text: "The ruleset that it went to, and the preview.",
    answer: schemas::applied,
    schemas: &[PREVIEW_SCHEMA],
    refusal: Some(CONFLICTING),
    busy: BUSY,
    at_once: false,
    audit: Some(OperationAudit {
        action: "exclusion-apply",
        of: |_| None,
        detail: |answer| audit(answer.get("applied")?),
    }),
};
/// An exclusion is taken back.
pub(in crate::control) const REVERT: Operation = Operation {
    path: "/tuning/_revert",
    method: OperationMethod::Post,
    id: "tuningRevert",
    group: &GROUP,
    summary: "Take an exclusion back",
    description: "Removes it from the ruleset that `_apply` wrote it to.",
    body: BodyKind::of::<RevertBody>(),
    body_text: "The WAF config, and the number of the exclusion.",
    max_body: MAX_BODY,
    example: || json!({ "config_ref": "shop", "exclusion": 50000 }),
    answer_text: "What was removed.",
    answer: schemas::reverted,
    schemas: &[],
    refusal: Some(CONFLICTING),
    busy: BUSY,
    at_once: false,
    audit: Some(OperationAudit {
        action: "exclusion-revert",
        of: |body| Some(format!("waf-configs/{}", body.get("config_ref")?.as_str()?)),
        detail: |answer| audit(answer.get("reverted")?),
    }),
};

/// What is told of an exclusion that was written or taken back.
pub(super) fn audit(written: &Value) -> Option<String> {
    let (ruleset, entry) = (written.get("ruleset_id")?.as_str()?, written.get("entry")?.as_str()?);
    Some(format!("exclusion {} in the ruleset `{ruleset}`: {entry}", written.get("exclusion")?))
}

/// Nothing.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MatchesBody {}

/// An exclusion for a match.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PreviewBody {
    /// The `id` or `key` of a match.
    sample_id: String,
    /// The exclusion, at most 16 KiB.
    seclang: String,
    /// How it is written.
    #[serde(rename = "kind")]
    _kind: ExclusionKind,
}

/// An exclusion to write.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApplyBody {
    /// The `id` or `key` of a match.
    sample_id: String,
    /// The exclusion, at most 16 KiB.
    seclang: String,
    /// How it is written.
    #[serde(rename = "kind")]
    _kind: ExclusionKind,
    /// Why, in at most 500 bytes; it is kept beside the exclusion.
    reason: String,
    /// Writes it although the match cannot be had again, or known attacks are not caught any more.
    #[serde(default)]
    force: bool,
}

/// An exclusion to take back.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RevertBody {
    /// The id of a WAF config.
    config_ref: String,
    /// The number of the exclusion.
    exclusion: u64,
}

/// A match as it is worked on.
pub(super) struct Asked {
    /// The id of the match; `None` where there is none.
    pub(super) sample_id: Option<String>,
    pub(super) config: String,
    pub(super) place: Place,
    /// How many callers have sent it who may teach something.
    pub(super) callers: usize,
    pub(super) request: Option<SampledRequest>,
    /// All other matches of the config.
    pub(super) others: Vec<KeptMatch>,
}

impl OperationBody for MatchesBody {
    const SCHEMA: &'static str = "TuningMatchesBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        let list = with_matches(context, |store| {
            let mut all: Vec<&KeptMatch> = store.all().collect();
            all.sort_by_key(|one| std::cmp::Reverse(one.last_seen()));
            all.into_iter().map(shown).collect::<Vec<_>>()
        });
        let matches = list.unwrap_or_default();
        OperationAnswer::Done(json!({
            "store": { "retained": matches.len(), "max": MAX_MATCHES },
            "scope": "cluster",
            "matches": matches,
        }))
    }
}

impl OperationBody for PreviewBody {
    const SCHEMA: &'static str = "TuningPreviewBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        let view = View::new(context.entities);
        match previewed(&self.sample_id, &self.seclang, context, &view) {
            Ok((_, preview)) => OperationAnswer::Done(json!(preview)),
            Err(why) => refuse(&why),
        }
    }
}

impl OperationBody for ApplyBody {
    const SCHEMA: &'static str = "TuningApplyBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        if self.reason.trim().is_empty() {
            return refuse("`reason` is empty: say why the exclusion is needed");
        }
        let view = View::new(context.entities);
        let (asked, preview) = match previewed(&self.sample_id, &self.seclang, context, &view) {
            Ok(previewed) => previewed,
            Err(why) => return refuse(&why),
        };
        let with_preview = |error: &str| json!({ "error": error, "preview": preview });
        if !preview.compiles {
            return OperationAnswer::Refused(with_preview("the exclusion does not compile"));
        }
        if preview.reproduced && !preview.effective {
            return OperationAnswer::Refused(with_preview("the rule still matches with the exclusion"));
        }
        let doubt = if !preview.reproduced {
            Some("the match could not be had again, so whether the exclusion ends it is not known")
        } else if !preview.is_covered && preview.regressions.is_empty() {
            Some(
                "whether known attacks pass is not known: none runs where the exclusion holds, or no caller has used the method",
            )
        } else if !preview.safe {
            Some("known attacks are not caught any more, or other rules are silenced")
        } else {
            None
        };
        if let Some(doubt) = doubt.filter(|_| !self.force) {
            return OperationAnswer::Conflict(json!({ "error": doubt, "needs_force": true, "preview": preview }));
        }
        let plan = config(&asked.config, &view).and_then(|config| {
            let written = Written::of(config, context.entities, &view).ok_or("the WAF config is gone")?;
            let operator = context.writing.map_or("", |writing| writing.operator);
            let addition = Addition {
                kind: AdditionKind::Exclusion,
                number: number_of(&self.seclang, config, &view)?,
                seclang: self.seclang.clone(),
            };
            written.add(vec![addition], (operator, &self.reason, context.now_millis))
        });
        match plan {
            Ok(plan) => {
                write(plan, context, |shown| json!({ "done": true, "applied": shown.first(), "preview": preview }))
            }
            Err(why) => refuse(&why),
        }
    }
}

impl OperationBody for RevertBody {
    const SCHEMA: &'static str = "TuningRevertBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        let view = View::new(context.entities);
        let plan = config(&self.config_ref, &view).and_then(|config| {
            Written::of(config, context.entities, &view).ok_or("the WAF config is gone")?.remove(self.exclusion)
        });
        match plan {
            Ok(plan) => write(plan, context, |shown| json!({ "done": true, "reverted": shown.first() })),
            Err(why) => refuse(&why),
        }
    }
}

/// Writes what was planned.
pub(super) fn write(
    plan: Plan,
    context: &OperationContext<'_>,
    answer: impl FnOnce(Vec<Value>) -> Value,
) -> OperationAnswer {
    let shown = plan.shown();
    let Some(writing) = context.writing else { return refuse("this call cannot write") };
    match writing.writer.write(plan.edits) {
        Ok(()) => OperationAnswer::Done(answer(shown)),
        Err(EditError::Conflict) => {
            let error =
                "another operator has changed the config or its exclusions meanwhile: look at them and try again";
            OperationAnswer::Conflict(json!({ "error": error, "needs_force": false }))
        }
        Err(EditError::Refused(why) | EditError::Failed(why)) => refuse(&why),
    }
}

fn previewed(
    id: &str,
    seclang: &str,
    context: &OperationContext<'_>,
    view: &View<'_>,
) -> Result<(Asked, Preview), String> {
    if seclang.len() > MAX_SECLANG {
        return Err(format!("`seclang` is over {MAX_SECLANG} bytes"));
    }
    let asked = asked(id, context)?;
    let preview = previews(&asked, context, view)?.preview(seclang);
    Ok((asked, preview))
}

pub(super) fn previews<'a>(
    asked: &Asked,
    context: &'a OperationContext<'_>,
    view: &'a View<'_>,
) -> Result<Previews<'a>, String> {
    let bench = Bench { traffic: context.traffic, ..bench(config(&asked.config, view)?, context, view) };
    let previews = Previews::new(bench, asked.place.clone(), asked.request.as_ref(), &asked.others)?;
    Ok(previews.with_callers(asked.callers))
}

/// What previews of a config run on, without recorded traffic.
pub(super) fn bench<'a>(config: &'a Item<WafConfig>, context: &OperationContext<'_>, view: &'a View<'_>) -> Bench<'a> {
    let (engines, bases): (Arc<Engines>, Arc<Bases>) = (context.tools.get(), context.tools.get());
    let (at_work, now_millis) = (context.runtime::<AtWork>(), context.now_millis);
    // A call leaves the rest of the machine to the others.
    let threads = available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
    Bench { view, config, engines, bases, at_work, now_millis, threads, traffic: None }
}

pub(super) fn asked(name: &str, context: &OperationContext<'_>) -> Result<Asked, String> {
    let found = with_matches(context, |store| {
        let one = store.get(name)?.clone();
        let is_other = |other: &&KeptMatch| other.matched.config == one.matched.config && other.key() != one.key();
        let others = store.all().filter(is_other).cloned().collect();
        Some((one, others))
    });
    let (one, others) = found
        .ok_or(NOT_YET)?
        .ok_or_else(|| format!("there is no match `{}`; it may have given way to newer ones", name.escape_debug()))?;
    let sample_id = Some(one.id());
    let matched = one.matched;
    let target = Target::parse(matched.target.as_bytes()).ok_or("the match names no input")?;
    let place = Place { rule_id: matched.rule_id, target, path: matched.path };
    let (config, callers) = (matched.config, matched.callers.len());
    Ok(Asked { sample_id, config, place, callers, request: matched.request, others })
}

pub(super) fn with_matches<T>(context: &OperationContext<'_>, work: impl FnOnce(&MatchStore) -> T) -> Option<T> {
    context.runtime::<AtWork>()?.reported.with(|known| work(&known.matches))
}

pub(super) fn config<'v>(id: &str, view: &View<'v>) -> Result<&'v Item<WafConfig>, String> {
    view.get::<WafConfig>(id).ok_or_else(|| format!("there is no WAF config `{}`", id.escape_debug()))
}

fn shown(one: &KeptMatch) -> Value {
    let matched = &one.matched;
    json!({
        "key": one.key(),
        "id": one.id(),
        "count": matched.count,
        "would_block": matched.would_block,
        "callers": matched.callers.len(),
        "rule_id": matched.rule_id,
        "target": Target::parse(matched.target.as_bytes()).map(|parsed| target(&parsed)),
        "method": matched.method,
        "path": matched.path,
        "blocked": matched.blocked,
        "at": one.first_seen,
        "last_seen": one.last_seen(),
        "references": matched.references,
        "config_ref": matched.config,
        "route_id": matched.route_id,
        "route_name": matched.route_name,
        "msg": matched.msg,
        "phase": matched.phase,
        "matched_value": String::from_utf8_lossy(&matched.value),
    })
}

/// An input, as it is shown.
pub(super) fn target(target: &Target) -> Value {
    json!({
        "collection": target.collection,
        "member": target.member.as_deref().map(String::from_utf8_lossy),
        "full": target.to_string(),
        "excludable": target.written().is_some(),
    })
}

pub(super) fn refuse(why: &str) -> OperationAnswer {
    OperationAnswer::Refused(refused(why))
}

fn refused(why: &str) -> Value {
    json!({ "error": why })
}
