//! The console's endpoints: `tuning/...`, and `utils/_compile` and `utils/_test`: rules are checked and tried on the engine that gateways run.

mod draft;
pub(super) mod engines;
mod report;
mod runtime;
mod schemas;
pub(super) mod trial;
mod trial_host;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::config::Crs;
use super::{AtWork, tuning};
use draft::{Draft, DraftRules};
use engines::Engines;
use kit::{
    BodyKind, BodyRefusal, Operation, OperationAnswer, OperationBody, OperationContext, OperationGroup, OperationMethod,
};
pub(super) use runtime::GatewayTables;
use schemas::{REFUSED, RESULT, RulesetRefSchema};
use trial::{Trial, TrialRequest, TrialResponse};

/// The bytes of a body of `_compile`, at most.
const MAX_COMPILE: usize = 1024 * 1024;
/// The bytes of a body of `_test`, at most: rules as for `_compile`, and a request's and a response's body, each up to
/// what the engine inspects by default.
const MAX_TEST: usize = MAX_COMPILE + 2 * 2 * 1024 * 1024;

const GROUP: OperationGroup = OperationGroup {
    name: "rules",
    about: "Checks and tests of rules on the engine that gateways run, without storing them.",
};
const REFUSAL: BodyRefusal = BodyRefusal { as_done: false, schema: REFUSED, conflict: None, answer: unreadable };
const BUSY: &str = "other rules are being compiled";

/// The operations of the plugin.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        path: "/utils/_compile",
        method: OperationMethod::Post,
        id: "compile",
        group: &GROUP,
        summary: "Check whether rules work together",
        description: "Checks what a WAF config with these fields would run. Rules that do not compile are answered with 200 and \
                      `done: false`.",
        body: BodyKind::of::<CompileBody>(),
        body_text: "The rules, at most 1 MiB.",
        max_body: MAX_COMPILE,
        example: || json!({ "rules": ["@import_preset crs", "SecRule ARGS:coupon \"!@rx ^[A-Z]{8}$\" \"id:10001,phase:2,deny,status:403\""] }),
        answer_text: "The rules compile, or the reason why not.",
        answer: schemas::compiled,
        schemas: &[REFUSED],
        refusal: Some(REFUSAL),
        busy: BUSY,
        at_once: false,
        audit: None,
    },
    Operation {
        path: "/utils/_test",
        method: OperationMethod::Post,
        id: "test",
        group: &GROUP,
        summary: "Try rules on a request",
        description: "The exchange is processed as by the WAF filter. Rules that do not compile are answered as by `_compile`.",
        body: BodyKind::of::<TestBody>(),
        body_text: "The rules and the exchange, at most 5 MiB.",
        max_body: MAX_TEST,
        example: || {
            json!({
                "rules": ["@import_preset crs"],
                "request": { "method": "GET", "uri": "/search", "query": { "q": "1' UNION SELECT password FROM users-- -" } },
            })
        },
        answer_text: "The outcome, or why the rules do not compile.",
        answer: schemas::tested,
        schemas: &[REFUSED, RESULT],
        refusal: Some(REFUSAL),
        busy: BUSY,
        at_once: false,
        audit: None,
    },
    tuning::MATCHES,
    tuning::PROPOSE,
    tuning::PREVIEW,
    tuning::APPLY,
    tuning::REVERT,
    tuning::START,
    tuning::STOP,
    tuning::DISCARD,
    tuning::REPORT,
    tuning::LEARNING_APPLY,
];

/// The fields of a WAF config that select rules.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct CompileBody {
    /// Rules in SecLang; `@import_preset crs` imports the core rule set.
    rules: Option<Vec<String>>,
    /// Rulesets, which precede the rules.
    #[schemars(with = "Option<Vec<RulesetRefSchema>>")]
    rulesets: Option<Vec<RulesetRef>>,
    /// Options of the core rule set.
    crs: Option<Crs>,
}

/// Rules, and an exchange to test them with.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct TestBody {
    /// Rules in SecLang; `@import_preset crs` imports the core rule set.
    rules: Option<Vec<String>>,
    /// Rulesets, which precede the rules.
    #[schemars(with = "Option<Vec<RulesetRefSchema>>")]
    rulesets: Option<Vec<RulesetRef>>,
    /// Options of the core rule set.
    crs: Option<Crs>,
    /// The request.
    #[schemars(default)]
    request: TrialRequest,
    /// The backend's response; without it the response phases are skipped.
    response: Option<TrialResponse>,
}

/// A ruleset: its id, or an object with the id in `id` or `ref`.
#[derive(Debug)]
struct RulesetRef(String);

// === impl CompileBody ===

impl OperationBody for CompileBody {
    const SCHEMA: &'static str = "CompileBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        let draft = Draft::new(rules(self.rules, self.rulesets, self.crs), context.entities);
        OperationAnswer::Done(match draft.build(&context.tools.get::<Engines>()) {
            Ok(built) => json!({
                "done": true,
                "missing_rulesets": draft.missing,
                "crs_ignored": draft.composition.crs_ignored,
                "warning": draft.warning(&built),
            }),
            Err(refusal) => refusal,
        })
    }
}

// === impl TestBody ===

impl OperationBody for TestBody {
    const SCHEMA: &'static str = "TestBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        let draft = Draft::new(rules(self.rules, self.rulesets, self.crs), context.entities);
        let built = match draft.build(&context.tools.get::<Engines>()) {
            Ok(built) => built,
            Err(refusal) => return OperationAnswer::Done(refusal),
        };
        let at_work = context.runtime::<AtWork>();
        let trial = Trial {
            engine: &built.engine,
            config: None,
            places: built.lookups.places,
            zones: draft.sources.zones_of(&built.lookups),
            tables: at_work.as_ref().map(|at_work| &at_work.tables),
            now_millis: context.now_millis,
        };
        match trial.run(&self.request, self.response.as_ref()) {
            Ok(outcome) => OperationAnswer::Done(json!({
                "done": true,
                "result": report::result(&outcome),
                "missing_rulesets": draft.missing,
                "crs_ignored": draft.composition.crs_ignored,
                "warning": draft.warning(&built),
            })),
            Err(problem) => {
                let problem = problem.to_string();
                OperationAnswer::Refused(json!({ "done": false, "error": problem, "errors": [] }))
            }
        }
    }
}

fn rules(rules: Option<Vec<String>>, rulesets: Option<Vec<RulesetRef>>, crs: Option<Crs>) -> DraftRules {
    let rulesets = rulesets.unwrap_or_default().into_iter().map(|reference| reference.0).collect();
    DraftRules { rules: rules.unwrap_or_default(), rulesets, crs: crs.unwrap_or_default() }
}

/// A body that is not what the endpoint takes.
fn unreadable(problem: &str) -> Value {
    json!({ "done": false, "error": problem, "error_description": problem, "errors": [] })
}

// === impl RulesetRef ===

impl<'de> Deserialize<'de> for RulesetRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RulesetRef, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let id = value.as_str().or_else(|| value.get("id").or_else(|| value.get("ref"))?.as_str());
        id.map(|id| RulesetRef(id.to_owned())).ok_or_else(|| {
            D::Error::custom("this names no ruleset, expected the id of one, or an object with its `id`")
        })
    }
}
