use super::*;

fn read(config: Value) -> Result<SensitiveDataConfig, Vec<FieldProblem>> {
    SensitiveDataConfig::read(config.as_object().unwrap())
}

#[test]
fn the_defaults_are_those_of_the_reference() {
    let config = read(json!({})).unwrap();
    assert_eq!((config.mode, config.email_threshold, config.body_limit), (SensitiveDataMode::Enforce, 50, 262_144));
    let step = config.step();
    assert!(step.pass_ranges && !read(json!({ "ranges": "whole" })).unwrap().step().pass_ranges);
    let actions: Vec<_> =
        step.detectors.iter().map(|known| (known.detector.as_str(), format!("{:?}", known.action()))).collect();
    let masked =
        ["card", "iban", "fr_nir", "us_ssn", "cloud_key", "service_token", "llm_key"].map(|name| (name, "MASK"));
    let expected = [masked.as_slice(), &[("private_key", "BLOCK"), ("jwt", "LOG"), ("email_bulk", "LOG")]].concat();
    let upper: Vec<_> = actions.iter().map(|(name, action)| (*name, action.to_ascii_uppercase())).collect();
    assert_eq!(upper, expected.iter().map(|(name, action)| (*name, (*action).to_owned())).collect::<Vec<_>>());
}

#[test]
fn wrong_fields_are_named() {
    let custom = |fields: Value| json!({ "custom_detectors": [fields] });
    for (config, pointer) in [
        (json!({ "detectors": { "cards": "mask" } }), "/detectors/cards"),
        (json!({ "email_threshold": 0 }), "/email_threshold"),
        (json!({ "body_limit": 1 }), "/body_limit"),
        (json!({ "content_types": ["*"] }), "/content_types/0"),
        (json!({ "weight": -1 }), "/weight"),
        (json!({ "ranges": true }), "/ranges"),
        (custom(json!({ "name": "Member", "pattern": "a" })), "/custom_detectors/0/name"),
        (custom(json!({ "name": "card", "pattern": "a" })), "/custom_detectors/0/name"),
        (custom(json!({ "name": "x", "pattern": "(" })), "/custom_detectors/0/pattern"),
        (custom(json!({ "name": "x", "pattern": "a+" })), "/custom_detectors/0/pattern"),
        (custom(json!({ "name": "x", "pattern": "a?" })), "/custom_detectors/0/pattern"),
    ] {
        let problems = read(config.clone()).unwrap_err();
        assert_eq!((problems.len(), problems[0].pointer.as_str()), (1, pointer), "{config}");
    }
    let problem = &read(json!({ "detectors": { "cards": "mask" } })).unwrap_err()[0];
    assert!(problem.message.contains("did you mean `card`?"), "{}", problem.message);
}

#[test]
fn a_detector_that_is_off_is_not_in_the_step() {
    let names = ["card", "iban", "fr_nir", "us_ssn", "cloud_key", "service_token", "llm_key", "private_key", "jwt"];
    let off: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), json!("off"))).collect();
    let step = read(json!({ "detectors": off })).unwrap().step();
    assert_eq!(step.detectors.iter().map(|known| known.detector.as_str()).collect::<Vec<_>>(), ["email_bulk"]);
}

#[test]
fn a_preset_lays_it_down_where_it_is_switched_on() {
    let lay_down = PLUGIN.preset.lay_down.unwrap();
    let laid = |config: Value| lay_down(config.as_object().unwrap()).unwrap().0;
    assert_eq!(laid(json!({})), None);
    assert_eq!(laid(json!({ "sensitive_data": true })), Some(json!({ "mode": "enforce", "detectors": {} })));
    let detectors = json!({ "jwt": "block" });
    let config =
        json!({ "sensitive_data": true, "sensitive_data_mode": "monitor", "sensitive_data_detectors": detectors });
    assert_eq!(laid(config), Some(json!({ "mode": "monitor", "detectors": detectors })));
    let unknown = json!({ "sensitive_data_detectors": { "x": "off" } });
    assert!(lay_down(unknown.as_object().unwrap()).is_err());
}
