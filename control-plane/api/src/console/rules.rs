//! `utils/_compile` and `utils/_test`: rules are checked and tried on the engine that gateways run.

use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::body::{self, Body, BodyProblem};
use super::state::Console;
use super::trial::{TrialRequest, TrialResponse};
use super::workbench::BuildError;
use super::{describe, report, trial};
use crate::error::ApiError;
use crate::openapi::Routes;
use base::clock;
use entities::{EntitySet, FieldProblem};
use kit::View;
use waf::control::{CRS_IGNORED, Composition, Element, ElementProblem, NO_BODIES, compose, idle_rules};
use waf::control::{Crs, WafConfig, WafRuleset};

/// The bytes of a body of `_compile`, at most.
const MAX_COMPILE: usize = 1024 * 1024;
/// The bytes of a body of `_test`, at most: rules as for `_compile`, and a request's and a response's body, each up to
/// what the engine inspects by default.
const MAX_TEST: usize = MAX_COMPILE + 2 * 2 * 1024 * 1024;

/// The fields of a WAF config that select rules.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct CompileBody {
    /// Rules in SecLang; `@import_preset crs` imports the core rule set.
    rules: Option<Vec<String>>,
    /// Rulesets, which precede the rules.
    #[schemars(with = "Option<Vec<describe::RulesetRefSchema>>")]
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
    #[schemars(with = "Option<Vec<describe::RulesetRefSchema>>")]
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

/// A composition with what is known of it before it is compiled.
struct Draft {
    elements: Vec<Element>,
    composition: Composition,
    /// There are rules or rulesets.
    is_given: bool,
    missing: Vec<String>,
    crs_problems: Vec<FieldProblem>,
    /// The elements that come from rulesets.
    of_rulesets: usize,
}

pub(super) fn router() -> Routes<Console> {
    let compiling = Routes::new().on(describe::compile(), compile).schema::<CompileBody>();
    let testing = Routes::new().on(describe::test(), test).schema::<TestBody>();
    compiling
        .layered(|router| router.layer(DefaultBodyLimit::max(MAX_COMPILE)))
        .merge(testing.layered(|router| router.layer(DefaultBodyLimit::max(MAX_TEST))))
        .schema_as("RulesRefused", describe::refused())
        .schema_as("TrialResult", describe::result())
}

async fn compile(State(console): State<Console>, headers: HeaderMap, body: Body) -> Result<Response, ApiError> {
    let body: CompileBody = match body::read(&headers, body) {
        Ok(body) => body,
        Err(problem) => return Ok(unreadable(problem)),
    };
    let entities = console.inner.entities.current();
    let work = move |workbench: &super::workbench::Workbench| {
        let draft = Draft::new(body.rules, body.rulesets, body.crs, &entities);
        match draft.build(workbench) {
            Ok(built) => json!({
                "done": true,
                "missing_rulesets": draft.missing,
                "crs_ignored": draft.composition.crs_ignored,
                "warning": draft.warning(&built),
            }),
            Err(refusal) => refusal,
        }
    };
    Ok(Json(console.inner.workbench.run(work).await?).into_response())
}

async fn test(State(console): State<Console>, headers: HeaderMap, body: Body) -> Result<Response, ApiError> {
    let body: TestBody = match body::read(&headers, body) {
        Ok(body) => body,
        Err(problem) => return Ok(unreadable(problem)),
    };
    let entities = console.inner.entities.current();
    let work = move |workbench: &super::workbench::Workbench| {
        let draft = Draft::new(body.rules, body.rulesets, body.crs, &entities);
        let built = match draft.build(workbench) {
            Ok(built) => built,
            Err(refusal) => return (StatusCode::OK, refusal),
        };
        match trial::run(&built.engine, &body.request, body.response.as_ref(), clock::now_millis()) {
            Ok(outcome) => {
                let answer = json!({
                    "done": true,
                    "result": report::result(&outcome),
                    "missing_rulesets": draft.missing,
                    "crs_ignored": draft.composition.crs_ignored,
                    "warning": draft.warning(&built),
                });
                (StatusCode::OK, answer)
            }
            Err(problem) => {
                let problem = problem.to_string();
                (StatusCode::BAD_REQUEST, json!({ "done": false, "error": problem, "errors": [] }))
            }
        }
    };
    Ok(console.inner.workbench.run(work).await.map(|(status, answer)| (status, Json(answer)))?.into_response())
}

impl Draft {
    fn new(
        rules: Option<Vec<String>>,
        rulesets: Option<Vec<RulesetRef>>,
        crs: Option<Crs>,
        entities: &EntitySet,
    ) -> Draft {
        let ids: Vec<String> = rulesets.unwrap_or_default().into_iter().map(|reference| reference.0).collect();
        let missing = ids.iter().filter(|id| entities.get::<WafRuleset>(id).is_none()).cloned().collect();
        let crs = crs.unwrap_or_default();
        let config = WafConfig { rules: rules.unwrap_or_default(), crs, ..WafConfig::default() };
        let elements = compose(&ids, &config, &View::new(entities));
        let composition = Composition::new(&elements, &crs);
        Draft {
            is_given: !ids.is_empty() || !config.rules.is_empty(),
            missing,
            crs_problems: crs.check(),
            // The last element holds what the fields of the configuration say.
            of_rulesets: elements.len().saturating_sub(config.rules.len() + 1),
            elements,
            composition,
        }
    }

    /// Compiles and builds it, or says why that cannot be, as the endpoints answer it.
    fn build(&self, workbench: &super::workbench::Workbench) -> Result<super::workbench::Built, Value> {
        if !self.crs_problems.is_empty() {
            let errors = self.crs_problems.iter().map(|problem| (self.of_rulesets, "crs", problem.to_string()));
            return Err(refusal(errors.collect(), None));
        }
        workbench.build(&self.composition).map_err(|error| match error {
            BuildError::Elements(problems) => {
                let first = problems.first().map(|problem| headline(problem, self.origin(problem)));
                let errors = problems
                    .iter()
                    .map(|problem| (self.index(problem), self.origin(problem), problem.diagnostic.to_string()));
                refusal(errors.collect(), first)
            }
            BuildError::Engine(message) => refusal(Vec::new(), Some(format!("the engine cannot be built: {message}"))),
        })
    }

    /// An element's place in the composition as it is specified: rulesets, options of the core rule set, rules.
    fn index(&self, problem: &ElementProblem) -> usize {
        match problem.element {
            Some(index) if index < self.of_rulesets => index,
            Some(index) => index + usize::from(self.composition.crs_options),
            None => self.of_rulesets,
        }
    }

    fn origin<'a>(&'a self, problem: &'a ElementProblem) -> &'a str {
        let element = problem.element.and_then(|index| self.elements.get(index));
        element.map_or(problem.diagnostic.origin.as_str(), |element| &element.origin)
    }

    /// A setting that is valid but probably a mistake.
    fn warning(&self, built: &super::workbench::Built) -> Option<String> {
        let mut all = Vec::new();
        if self.composition.crs_ignored {
            all.push(CRS_IGNORED.to_owned());
        }
        all.extend(built.warnings.iter().map(|warning| warning.placed(&self.elements)));
        // Without any rule there is nothing to be idle.
        if self.is_given {
            all.extend(idle_rules(&built.coverage));
            if !built.coverage.request_bodies {
                all.push(NO_BODIES.to_owned());
            }
        }
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// What is wrong in one line, for those who show no more.
fn headline(problem: &ElementProblem, origin: &str) -> String {
    let found = &problem.diagnostic;
    match found.origin == origin {
        true => format!("{origin}, line {}: {}", found.line, found.message),
        false => format!("{origin}: {} ({}, line {})", found.message, found.origin, found.line),
    }
}

fn refusal(errors: Vec<(usize, &str, String)>, first: Option<String>) -> Value {
    let more = errors.len().saturating_sub(1);
    let mut error = first.or_else(|| errors.first().map(|(_, _, message)| message.clone())).unwrap_or_default();
    if more > 0 {
        error.push_str(&format!(" (and {more} more)"));
    }
    let errors: Vec<Value> = errors
        .into_iter()
        .map(|(index, origin, message)| json!({ "index": index, "origin": origin, "message": message }))
        .collect();
    json!({ "done": false, "error": error, "errors": errors })
}

/// A body that is not what the endpoint takes.
fn unreadable(problem: BodyProblem) -> Response {
    let answer = json!({
        "done": false, "error": problem.description, "error_description": problem.description, "errors": []
    });
    (problem.status, Json(answer)).into_response()
}

impl<'de> Deserialize<'de> for RulesetRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RulesetRef, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let id = value.as_str().or_else(|| value.get("id").or_else(|| value.get("ref"))?.as_str());
        id.map(|id| RulesetRef(id.to_owned())).ok_or_else(|| {
            D::Error::custom("this names no ruleset, expected the id of one, or an object with its `id`")
        })
    }
}
