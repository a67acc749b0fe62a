//! The control-plane side: the configuration of the plugin, and the inventory of what gateways report.

mod config;
mod operations;
mod seen;
mod tools;

use std::sync::Arc;

use kit::{Context, FieldProblem, Plugin};
use prost::Message as _;
use serde_json::{Map, Value};
use snapshot::content_hash;

use crate::QueryGuardStep;

use config::CompiledEndpoint;
pub use config::{EndpointConfig, QueryEndpointKind, QueryGuardConfig, QueryGuardMode};

/// `SvcQueryGuard`: GraphQL, JSON-RPC and MCP endpoints.
pub const PLUGIN: Plugin = Plugin {
    name: crate::PLUGIN.name,
    title: "query guard",
    documentation: include_str!("../docs.md"),
    classes: &["SvcQueryGuard"],
    order: 215,
    categories: &["api"],
    operations: operations::OPERATIONS,
    counted_once: &[crate::messages::OPERATIONS],
    compile: Some(compile),
    runtime: Some(|| Arc::new(seen::Seen::default())),
    gather: Some(|sources| Box::pin(seen::gather(sources))),
    ..Plugin::NONE
};

fn compile(config: &Map<String, Value>, context: &mut Context<'_>) -> Result<Option<Vec<u8>>, Vec<FieldProblem>> {
    let config = QueryGuardConfig::read(config)?;
    if config.endpoints.is_empty() {
        context.warnings.push("the query guard has no `endpoints`, so it watches nothing".to_owned());
        return Ok(None);
    }
    let mut endpoints = Vec::new();
    for (place, endpoint) in config.endpoints.iter().enumerate() {
        let CompiledEndpoint { endpoint: mut compiled, schema, warnings } =
            endpoint.compile(&format!("/endpoints/{place}"))?;
        context.warnings.extend(warnings.iter().map(|warning| format!("{}: {warning}", endpoint.path)));
        if let Some(schema) = schema {
            let hash = content_hash(&schema).to_vec();
            context.parts.insert(hash.clone(), schema.into());
            compiled.schema = hash;
        }
        *context.largest_body = endpoint.max_body_bytes.max(*context.largest_body);
        endpoints.push(compiled);
    }
    let step = QueryGuardStep {
        endpoints,
        enforce: config.mode == QueryGuardMode::Enforce,
        expose_errors: config.expose_errors,
        contribute: config.contribute,
        violation_weight: config.violation_weight,
        inventory: config.inventory,
    };
    Ok(Some(step.encode_to_vec()))
}

#[cfg(test)]
mod tests;
