//! The control-plane side: the collections of the plugin, how its rules are composed and compiled, and how it is configured.

mod composition;
mod config;
mod coverage;
mod examine;
mod guard;
mod lookups;
mod operations;
mod rules;
mod step;
mod tuning;

pub use composition::{Element, elements, own_elements};
pub use config::{Crs, OversizeBody, UndecodableBody, WafBudget, WafConfig, WafRuleset, XmlDoctype};
pub use rules::{CompiledRules, RuleCompiler};

use std::sync::Arc;

use guard::WithoutWaf;
use kit::{Guard, Kind, Plugin, Section};
use operations::GatewayTables;
use serde::Deserialize;
use serde_json::json;

/// `SvcWaf`: the rule engine.
pub const PLUGIN: Plugin = Plugin {
    name: crate::PLUGIN.name,
    title: "WAF",
    documentation: include_str!("../../docs.md"),
    classes: &["SvcWaf", "Waf", "IncomingRequestValidatorSvcWaf"],
    order: 220,
    kinds: &[Kind::of::<WafConfig>(), Kind::of::<WafRuleset>()],
    references: &[("ref", "waf-configs")],
    preset: Section {
        switch: Some("waf"),
        fields: &["waf_config"],
        references: &[("waf_config", "waf-configs")],
        index: 1.0,
        lay_down: Some(|config| {
            let fields: Fields = Section::read(config, &["waf", "waf_config"])?;
            let without = |why: WithoutWaf| Some(Box::new(why) as Box<dyn Guard>);
            Ok(match fields {
                Fields { waf: false, .. } => (None, without(WithoutWaf::Declined)),
                Fields { waf_config: None, .. } => (None, without(WithoutWaf::Unnamed)),
                Fields { waf_config: Some(config), .. } => (Some(json!({ "ref": config, "contribute": true })), None),
            })
        }),
    },
    operations: operations::OPERATIONS,
    tuning: Some(tuning::TUNING),
    charged_by_trail: true,
    counted_once: &[crate::samples::messages::MATCHES],
    compile: Some(step::compile),
    runtime: Some(|| Arc::new(AtWork::default())),
    gather: Some(|sources| {
        Box::pin(async move {
            let Some(at_work) = sources.runtime::<AtWork>() else { return };
            // Tests of rules look up in the tables that gateways have.
            at_work.tables.set(&sources.material);
            tuning::gather(sources, &at_work.reported).await;
        })
    }),
    inspects_trailers: true,
    check_chain: Some(guard::lacking),
    ..Plugin::NONE
};

/// What the plugin has at work.
#[derive(Default)]
struct AtWork {
    tables: GatewayTables,
    reported: tuning::Reported,
}

/// What it reads of a preset's configuration.
#[derive(Deserialize)]
#[serde(default)]
struct Fields {
    waf: bool,
    waf_config: Option<String>,
}

impl Default for Fields {
    fn default() -> Self {
        Self { waf: true, waf_config: None }
    }
}
