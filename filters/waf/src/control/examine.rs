//! WAF configs and rulesets by the rules that they lead to.

use super::composition::{Element, RuleWarning, elements, own_elements};
use super::config::{Crs, WafConfig, WafRuleset};
use super::coverage::{CRS_IGNORED, NO_BODIES, idle_rules, out_of_reach};
use super::lookups::LookupSources;
use super::rules::RuleCompiler;
use kit::{Checked, Entity as _, FieldProblem, Item, Remark, Tools, View};

/// The place of what is said of a WAF config's rulesets as it composes them.
const IN_RULESETS: &str = "/rulesets";

/// A WAF config with the rules that it composes.
pub(super) fn config(config: &Item<WafConfig>, view: &View<'_>, tools: &Tools) -> Result<Checked, Vec<FieldProblem>> {
    let elements = elements(config, view);
    let rules = tools.get::<RuleCompiler>().compile(&elements, &config.crs)?;
    // What holds of a ruleset by itself is said of the ruleset.
    let is_own = |warning: &&RuleWarning| pointer(&elements, warning).is_some() || warning.is_of_composition();
    let remark = |warning: &RuleWarning| {
        let problem = problem(&elements, warning);
        let also = (problem.pointer == IN_RULESETS).then(|| (WafRuleset::COLLECTION, config.rulesets.clone()));
        Remark { problem, also }
    };
    let remarks = rules.warnings.iter().filter(is_own).map(remark).collect();
    let mut unprotected = Vec::new();
    if rules.crs_ignored {
        unprotected.push(FieldProblem::new("/crs", CRS_IGNORED));
    } else {
        unprotected.extend(out_of_reach(&config.crs).map(|(field, why)| FieldProblem::new(field, why)));
    }
    let lacking = LookupSources::of(view).lacking(&rules.lookups);
    unprotected.extend(lacking.into_iter().map(|why| FieldProblem::new("/rules", why)));
    // Without any rule there is nothing to be idle.
    if !config.rules.is_empty() || !config.rulesets.is_empty() {
        unprotected.extend(idle_rules(&rules.coverage).map(|why| FieldProblem::new("/rules", why)));
        if config.inspect_input_body && !rules.coverage.request_bodies {
            unprotected.push(FieldProblem::new("/inspect_input_body", NO_BODIES));
        }
    }
    // Routes ask for the rules again.
    Ok(Checked { kept: Some(rules), remarks, unprotected })
}

/// A ruleset by itself.
pub(super) fn ruleset(
    ruleset: &Item<WafRuleset>,
    _view: &View<'_>,
    tools: &Tools,
) -> Result<Checked, Vec<FieldProblem>> {
    let elements: Vec<Element> = own_elements(&ruleset.rules).collect();
    let rules = tools.get::<RuleCompiler>().compile(&elements, &Crs::default())?;
    let alone = rules.warnings.iter().filter(|warning| !warning.is_of_composition());
    let remarks = alone.map(|warning| Remark { problem: problem(&elements, warning), also: None }).collect();
    Ok(Checked { remarks, ..Checked::default() })
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
