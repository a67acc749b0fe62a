//! Rules that are no entity: composed, compiled and judged.

use serde_json::{Value, json};

use super::engines::{BuildError, Built, Engines};
use crate::control::composition::{Composition, Element, ElementProblem, compose};
use crate::control::config::{Crs, WafConfig, WafRuleset};
use crate::control::coverage::{CRS_IGNORED, NO_BODIES, idle_rules};
use crate::control::lookups::LookupSources;
use kit::{EntitySource, FieldProblem, View};

/// The fields of a WAF config that select rules.
pub(super) struct DraftRules {
    /// Rules in SecLang.
    pub(super) rules: Vec<String>,
    /// The ids of rulesets, which precede them.
    pub(super) rulesets: Vec<String>,
    /// Options of the core rule set.
    pub(super) crs: Crs,
}

/// A composition with what is known of it before it is compiled.
pub(super) struct Draft {
    elements: Vec<Element>,
    pub(super) composition: Composition,
    /// There are rules or rulesets.
    is_given: bool,
    /// The ids without a ruleset.
    pub(super) missing: Vec<String>,
    crs_problems: Vec<FieldProblem>,
    /// The elements that come from rulesets.
    of_rulesets: usize,
    /// What rules may look up.
    pub(super) sources: LookupSources,
}

// === impl Draft ===

impl Draft {
    pub(super) fn new(given: DraftRules, entities: &dyn EntitySource) -> Draft {
        let DraftRules { rules, rulesets, crs } = given;
        let view = View::new(entities);
        let missing = rulesets.iter().filter(|id| view.get::<WafRuleset>(id).is_none()).cloned().collect();
        let config = WafConfig { rules, crs, ..WafConfig::default() };
        let elements = compose(&rulesets, &config, &view);
        let composition = Composition::new(&elements, &crs);
        Draft {
            is_given: !rulesets.is_empty() || !config.rules.is_empty(),
            missing,
            crs_problems: crs.check(),
            // The last element holds what the fields of the configuration say.
            of_rulesets: elements.len().saturating_sub(config.rules.len() + 1),
            elements,
            composition,
            sources: LookupSources::of(&view),
        }
    }

    /// Compiles and builds it, or says why that cannot be, as the endpoints answer it.
    pub(super) fn build(&self, engines: &Engines) -> Result<Built, Value> {
        if !self.crs_problems.is_empty() {
            let errors = self.crs_problems.iter().map(|problem| (self.of_rulesets, "crs", problem.to_string()));
            return Err(refusal(errors.collect(), None));
        }
        engines.build(&self.composition).map_err(|error| match error {
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
    pub(super) fn warning(&self, built: &Built) -> Option<String> {
        let mut all = Vec::new();
        if self.composition.crs_ignored {
            all.push(CRS_IGNORED.to_owned());
        }
        all.extend(built.warnings.iter().map(|warning| warning.placed(&self.elements)));
        all.extend(self.sources.lacking(&built.lookups));
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
