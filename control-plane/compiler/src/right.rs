//! WAF configs and rulesets whose rules are right, and what has no effect in them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::compiled::CompileProblem;
use super::composition::{Element, RuleWarning, elements, own_elements};
use super::guards::Guard;
use super::protection::{CRS_IGNORED, NO_BODIES, idle_rules};
use super::rules::{CompiledRules, RuleCompiler};
use super::steps::Chains;
use super::view::{Memory, View};
use entities::{Crs, Entity as _, EntitySet, FieldProblem, Item, WafConfig, WafRuleset};

/// The place of what is said of a WAF config's rulesets as it composes them.
pub(super) const IN_RULESETS: &str = "/rulesets";

/// A WAF config or a ruleset whose rules are right.
#[derive(Debug, Default)]
pub(super) struct Right {
    /// Those of a WAF config are kept: routes ask for them again.
    _rules: Option<Arc<CompiledRules>>,
    /// What has no effect in the rules.
    pub(super) idle: Vec<FieldProblem>,
    /// What leaves requests unprotected, for a WAF config that no chain has: of the others the chain says it.
    unprotected: Vec<FieldProblem>,
}

impl Right {
    /// A WAF config with the rules that it composes.
    pub(super) fn config(
        compiler: &RuleCompiler,
        config: &Item<WafConfig>,
        view: &View<'_>,
    ) -> Result<Right, Vec<FieldProblem>> {
        let elements = elements(config, view);
        let rules = compiler.compile(&elements, &config.crs)?;
        // What holds of a ruleset by itself is said of the ruleset.
        let is_own = |warning: &&RuleWarning| pointer(&elements, warning).is_some() || warning.is_of_composition();
        let idle = rules.warnings.iter().filter(is_own).map(|warning| problem(&elements, warning)).collect();
        let mut unprotected = Vec::new();
        if rules.crs_ignored {
            unprotected.push(FieldProblem::new("/crs", CRS_IGNORED));
        }
        // Without any rule there is nothing to be idle.
        if !config.rules.is_empty() || !config.rulesets.is_empty() {
            unprotected.extend(idle_rules(&rules.coverage).map(|why| FieldProblem::new("/rules", why)));
            if config.inspect_input_body && !rules.coverage.request_bodies {
                unprotected.push(FieldProblem::new("/inspect_input_body", NO_BODIES));
            }
        }
        Ok(Right { _rules: Some(rules), idle, unprotected })
    }

    /// A ruleset by itself.
    pub(super) fn ruleset(compiler: &RuleCompiler, ruleset: &WafRuleset) -> Result<Right, Vec<FieldProblem>> {
        let elements: Vec<Element> = own_elements(&ruleset.rules).collect();
        let rules = compiler.compile(&elements, &Crs::default())?;
        let alone = rules.warnings.iter().filter(|warning| !warning.is_of_composition());
        Ok(Right { idle: alone.map(|warning| problem(&elements, warning)).collect(), ..Right::default() })
    }
}

/// What WAF configs that no chain has would leave unprotected.
pub(super) fn unchained(set: &EntitySet, chains: &Chains, right: &Memory<Right>) -> Vec<CompileProblem> {
    let steps = chains.routes.iter().map(|chain| &chain.steps).chain([&chains.global]);
    let chained: BTreeSet<&str> = steps
        .flat_map(|steps| &steps.guards)
        .filter_map(|guard| match guard {
            Guard::Waf(waf) => Some(waf.config.as_str()),
            _ => None,
        })
        .collect();
    let mut found = Vec::new();
    let is_alone = |config: &&Item<WafConfig>| config.enabled && !chained.contains(config.head.id.as_str());
    for config in set.all::<WafConfig>().filter(is_alone) {
        let id = &config.head.id;
        let Some(right) = right.known(WafConfig::COLLECTION, id) else { continue };
        let of = |problem: &FieldProblem| CompileProblem {
            collection: WafConfig::COLLECTION,
            id: id.clone(),
            problem: problem.clone(),
        };
        found.extend(right.unprotected.iter().map(of));
    }
    found
}

fn pointer<'a>(elements: &'a [Element], warning: &RuleWarning) -> Option<&'a str> {
    elements.get(warning.element)?.pointer.as_deref()
}

fn problem(elements: &[Element], warning: &RuleWarning) -> FieldProblem {
    let line = warning.line.map(|line| format!("line {line}: ")).unwrap_or_default();
    match pointer(elements, warning) {
        Some(pointer) => FieldProblem::new(pointer, format!("{line}{}", warning.message)),
        None => FieldProblem::new(IN_RULESETS, warning.placed(elements)),
    }
}
