//! From a configuration and a contract to a step.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use contract::compile::{Compiled, Options, compile as compile_document};
use kit::{Context, FieldProblem, Item, Tool};
use prost::Message as _;
use serde_json::{Map, Value};
use snapshot::content_hash;

use super::{ApiContract, ApiContractConfig, ApiContractMode, ApiSettings, ROUTE_KEY};
use crate::ApiContractStep;

/// A compiled contract, or why it does not compile.
type Outcome = Arc<Result<Compiled, String>>;

/// The contracts that a pass has compiled, by id and whether they have their responses.
#[derive(Default)]
struct CompiledContracts(Mutex<HashMap<(String, bool), Known>>);

struct Known {
    entity: ApiContract,
    outcome: Outcome,
    used: bool,
}

impl Tool for CompiledContracts {
    /// What a pass has not asked for is forgotten in the one behind: a large document is compiled once for each of its versions.
    fn end_pass(&self) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, known| std::mem::take(&mut known.used));
    }
}

impl CompiledContracts {
    fn get(&self, item: &Item<ApiContract>, options: Options) -> Outcome {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (item.head.id.clone(), options.responses);
        if let Some(known) = all.get_mut(&key).filter(|known| known.entity == item.body) {
            known.used = true;
            return Arc::clone(&known.outcome);
        }
        let compiled = compile_document(&item.body.spec, &item.body.base_path, options);
        let outcome: Outcome = Arc::new(compiled.map_err(|error| error.to_string()));
        all.insert(key, Known { entity: item.body.clone(), outcome: Arc::clone(&outcome), used: true });
        outcome
    }
}

pub(super) fn compile(
    config: &Map<String, Value>,
    context: &mut Context<'_>,
) -> Result<Option<Vec<u8>>, Vec<FieldProblem>> {
    let config = ApiContractConfig::read(config)?;
    let of_route = || context.metadata.get(ROUTE_KEY).and_then(Value::as_str).map(str::to_owned);
    let Some(id) = config.contract.clone().or_else(of_route) else {
        let warning = format!(
            "the API contract check has no `contract`, and the route's metadata has no `{ROUTE_KEY}`: it checks nothing"
        );
        context.warnings.push(warning);
        return Ok(None);
    };
    let Some(item) = context.view.get::<ApiContract>(&id) else {
        let problem = FieldProblem::new("/contract", format!("there is no API contract `{}`", id.escape_debug()));
        return Err(vec![problem.expected("the id of an API contract")]);
    };
    if !item.body.enabled {
        context.warnings.push(format!("the API contract `{id}` is disabled: it checks nothing"));
        return Ok(None);
    }
    let options = Options { responses: config.validate_responses };
    let outcome = context.tools.get::<CompiledContracts>().get(item, options);
    let max_records = context.settings::<ApiSettings>().inventory.max_records;
    let mut step = step(&config, item, max_records);
    match &*outcome {
        Ok(compiled) => {
            let hash = content_hash(&compiled.image).to_vec();
            context.parts.insert(hash.clone(), compiled.image.clone().into());
            step.contract = hash;
            *context.largest_body = config.max_body_bytes.max(*context.largest_body);
        }
        Err(error) => {
            context.warnings.push(format!("the API contract `{id}` does not compile and checks nothing: {error}"));
            step.broken.clone_from(error);
        }
    }
    Ok(Some(step.encode_to_vec()))
}

fn step(config: &ApiContractConfig, item: &Item<ApiContract>, max_records: u32) -> ApiContractStep {
    ApiContractStep {
        contract: Vec::new(),
        name: if item.head.name.is_empty() { item.head.id.clone() } else { item.head.name.clone() },
        broken: String::new(),
        enforce: config.mode == ApiContractMode::Enforce,
        expose_errors: config.expose_errors,
        contribute: config.contribute,
        reject_unknown_query_params: config.reject_unknown_query_params,
        max_body_bytes: config.max_body_bytes,
        validate_responses: config.validate_responses,
        unknown_path_weight: config.unknown_path_weight,
        violation_weight: config.violation_weight,
        inventory: config.inventory,
        drift_sampling_millis: config.drift_sampling_seconds.saturating_mul(1000),
        id: item.head.id.clone(),
        max_records,
    }
}
