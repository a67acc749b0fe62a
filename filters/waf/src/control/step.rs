//! From the configuration of the plugin to a step.

use prost::Message as _;
use seclang::BudgetLimits;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::composition::elements;
use super::config::{UndecodableBody, WafConfig, XmlDoctype};
use super::guard::WafGuard;
use super::lookups::LookupSources;
use super::rules::RuleCompiler;
use crate::{WafBudget, WafStep};
use kit::{Context, FieldProblem, Item, typed};
use policies::MAX_SCORE;

/// The plugin's configuration.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    /// The id of a WAF config.
    #[serde(rename = "ref")]
    reference: String,
    /// Matches become signals.
    #[serde(default = "yes")]
    contribute: bool,
    /// What a block weighs; by default what the threat policy of the chain says.
    #[serde(default)]
    block_weight: Option<f64>,
    /// What a match that blocks nothing weighs.
    #[serde(default = "match_weight")]
    match_weight: f64,
}

pub(super) fn compile(
    config: &Map<String, Value>,
    context: &mut Context<'_>,
) -> Result<Option<Vec<u8>>, Vec<FieldProblem>> {
    let config: Config = typed(Value::Object(config.clone())).map_err(|problem| vec![problem])?;
    let Some(waf) = context.view.get::<WafConfig>(&config.reference) else {
        let message = format!("there is no WAF config `{}`", config.reference);
        return Err(vec![FieldProblem::new("/ref", message).expected("the id of a WAF config")]);
    };
    let mut guard = WafGuard {
        config: waf.head.id.clone(),
        coverage: None,
        lookups: Vec::new(),
        block: waf.block,
        inspects_bodies: waf.inspect_input_body,
        contributes: config.contribute,
        crs_ignored: false,
    };
    if !waf.enabled {
        context.guards.push(Box::new(guard));
        return Ok(None);
    }
    let compiled =
        context.tools.get::<RuleCompiler>().compile(&elements(waf, context.view), &waf.crs).map_err(|problems| {
            let of_config = |problem: FieldProblem| {
                FieldProblem::new(
                    "/ref",
                    format!("the WAF config `{}` does not compile: {}", config.reference, problem.message),
                )
            };
            problems.into_iter().map(of_config).collect::<Vec<_>>()
        })?;
    guard.coverage = Some(compiled.coverage);
    let sources = LookupSources::of(context.view);
    guard.lookups = sources.lacking(&compiled.lookups);
    guard.crs_ignored = compiled.crs_ignored;
    context.guards.push(Box::new(guard));
    context.parts.insert(compiled.hash.to_vec(), compiled.program.clone());
    let step = WafStep {
        program: compiled.hash.to_vec(),
        contribute: config.contribute,
        block_weight: weight(config.block_weight.unwrap_or_else(|| policies::block_weight(context))),
        match_weight: weight(config.match_weight),
        fail_open: context.fail_open,
        places: compiled.lookups.places,
        zones: sources.zones_of(&compiled.lookups),
        ..step(waf)
    };
    for (inspected, limit) in
        [(waf.inspect_input_body, step.input_body_limit), (waf.inspect_output_body, step.output_body_limit)]
    {
        if inspected {
            *context.largest_body = limit.max(*context.largest_body);
        }
    }
    if waf.inspect_input_body {
        *context.largest_request = step.input_files_limit.max(*context.largest_request);
    }
    Ok(Some(step.encode_to_vec()))
}

/// The step of a WAF config, without its rules: no program, no signals, and closed where the engine fails.
#[must_use]
pub(super) fn step(waf: &Item<WafConfig>) -> WafStep {
    let limits = waf.body_limits();
    WafStep {
        id: waf.head.id.clone(),
        name: if waf.head.name.is_empty() { waf.head.id.clone() } else { waf.head.name.clone() },
        block: waf.block,
        inspect_input_body: waf.inspect_input_body,
        input_body_limit: limits.without_files,
        inspect_output_body: waf.inspect_output_body,
        output_body_limit: waf.output_body_limit.unwrap_or(WafConfig::DEFAULT_BODY_LIMIT),
        reject_oversize: limits.reject,
        decompressed_input_body_limit: waf.decompressed_limit(),
        max_input_compression_ratio: u32::try_from(waf.compression_ratio()).unwrap_or(u32::MAX),
        inspect_undecodable: waf.undecodable_body_action == UndecodableBody::InspectRaw,
        budget: Some(budget(waf.budget.limits())),
        allow_xml_doctype: waf.xml_doctype == XmlDoctype::Allow,
        input_files_limit: limits.total,
        ..WafStep::default()
    }
}

fn budget(limits: BudgetLimits) -> WafBudget {
    let BudgetLimits { work, work_per_byte, memory, memory_per_byte } = limits;
    WafBudget { work, work_per_byte, memory, memory_per_byte }
}

/// What a signal may weigh: scores end at 100.
fn weight(configured: f64) -> f64 {
    configured.clamp(0.0, MAX_SCORE)
}

fn yes() -> bool {
    true
}

fn match_weight() -> f64 {
    20.0
}
