use serde_json::{Value, json};

use super::*;

fn read(config: &Value) -> Result<ApiContractConfig, Vec<kit::FieldProblem>> {
    ApiContractConfig::read(config.as_object().unwrap())
}

#[test]
fn the_defaults_are_those_of_the_specification() {
    let config = read(&json!({})).unwrap();
    let expected = json!({
        "mode": "monitor", "expose_errors": false, "contribute": false, "reject_unknown_query_params": false, "max_body_bytes": 1_048_576,
        "validate_responses": false, "unknown_path_weight": 20, "violation_weight": 30, "inventory": true, "drift_sampling_seconds": 60,
    });
    assert_eq!(read(&expected).unwrap(), config);
    assert_eq!(config.contract, None);
}

#[test]
fn wrong_fields_are_named() {
    for (config, pointer) in [
        (json!({ "mode": "block" }), "/mode"),
        (json!({ "max_body_bytes": 1 }), "/max_body_bytes"),
        (json!({ "violation_weight": 101 }), "/violation_weight"),
        (json!({ "unknown_path_weight": -1 }), "/unknown_path_weight"),
        (json!({ "drift_sampling_seconds": 0 }), "/drift_sampling_seconds"),
    ] {
        assert_eq!(read(&config).unwrap_err()[0].pointer, pointer);
    }
}

#[test]
fn a_preset_lays_it_down_where_it_is_switched_on() {
    let lay_down = PLUGIN.preset.lay_down.unwrap();
    let laid = |config: Value| lay_down(config.as_object().unwrap()).unwrap().0;
    assert_eq!(laid(json!({ "api_contract_id": "shop" })), None);
    assert_eq!(laid(json!({ "api_contract": true })), Some(json!({ "mode": "monitor" })));
    let all = json!({ "api_contract": true, "api_contract_id": "shop", "api_contract_mode": "enforce" });
    assert_eq!(laid(all), Some(json!({ "mode": "enforce", "contract": "shop" })));
    assert!(lay_down(json!({ "api_contract_mode": "block" }).as_object().unwrap()).is_err());
}
