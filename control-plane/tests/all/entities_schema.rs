//! The JSON Schemas of the collections take what the API takes, and refuse the shapes that it refuses.

use crate::entities_samples;

use std::path::{Path, PathBuf};

use crate::entities_support::Api;
use entities::Kind;
use entities::registry::{self, KINDS};
use jsonschema::Validator;
use serde_json::{Value, json};

fn validator(kind: &Kind) -> Validator {
    jsonschema::draft202012::new(entities::registry::schema(kind)).unwrap()
}

fn errors(validator: &Validator, document: &Value) -> Vec<String> {
    validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[tokio::test]
async fn every_collection_answers_its_schema() {
    let api = Api::new().await;
    for kind in KINDS.iter() {
        let answer = api.call("GET", &format!("/{}/_schema", kind.collection), None).await;
        assert_eq!(answer.status, 200);
        let schema = &answer.body;
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!((&schema["title"], &schema["additionalProperties"]), (&json!(kind.kind), &json!(false)));
        jsonschema::meta::validate(schema).unwrap();
        let properties = schema["properties"].as_object().unwrap();
        // What a document reads as that has nothing but what has no default.
        let (template, mut bare) = (kind.template(), entities_samples::minimal(kind));
        bare.as_object_mut().unwrap().retain(|field, value| template.get(field) != Some(value));
        let defaults = kind.read(bare.clone()).unwrap().shown();
        for (field, value) in template.as_object().unwrap() {
            let property = properties.get(field).unwrap_or_else(|| panic!("{}: no `{field}`", kind.kind));
            let description = property["description"].as_str();
            assert!(description.is_some_and(|text| !text.is_empty()), "{}: `{field}` has no description", kind.kind);
            if field != "kind" {
                let has_default = bare.get(field).is_none();
                let value = defaults.get(field).filter(|_| has_default).unwrap_or(value);
                // A default that depends on another field is told in words.
                let told = property["default"].is_null() && description.is_some_and(|text| text.contains("left out"));
                assert!(told || &property["default"] == value, "{}: the default of `{field}`: {property}", kind.kind);
            }
        }
        assert!(["id", "name", "tags", "metadata"].iter().all(|field| properties.contains_key(*field)));
    }
}

#[test]
fn templates_and_examples_are_valid() {
    for kind in KINDS.iter() {
        assert_eq!(errors(&validator(kind), &kind.template()), Vec::<String>::new(), "{}", kind.kind);
        // As the API answers it.
        let whole = kind.read(entities_samples::minimal(kind)).unwrap().shown();
        assert_eq!(errors(&validator(kind), &whole), Vec::<String>::new(), "{}", kind.kind);
    }
    let mut files = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../envoy/entities"), &mut files);
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        let document: Value = serde_saphyr::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let folder = file.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let kind = document.get("kind").and_then(Value::as_str).and_then(registry::by_kind);
        let kind = kind.or_else(|| registry::by_collection(folder)).unwrap();
        assert_eq!(errors(&validator(kind), &document), Vec::<String>::new(), "{}", file.display());
    }
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { walk(&path, files) } else { files.push(path) }
    }
}

#[test]
fn the_schema_refuses_the_shapes_that_the_api_refuses() {
    let cases = [
        ("waf-configs", json!({}), true),
        ("waf-configs", json!({"id": "a", "kind": "waf-config", "tags": ["x"], "metadata": {"any": [1]}}), true),
        ("waf-configs", json!([]), false),
        ("waf-configs", json!("x"), false),
        ("waf-configs", json!(null), false),
        ("waf-configs", json!({"kind": "route"}), false),
        ("waf-configs", json!({"enabled": "yes"}), false),
        ("waf-configs", json!({"enabled": null}), false),
        ("waf-configs", json!({"enabledd": true}), false),
        ("waf-configs", json!({"rules": "SecRuleEngine On"}), false),
        ("waf-configs", json!({"rules": [1]}), false),
        ("waf-configs", json!({"crs": {"paranoia_level": 2}}), true),
        ("waf-configs", json!({"crs": {"paranoia_level": "2"}}), false),
        ("waf-configs", json!({"crs": {"paranoia_level": -1}}), false),
        ("waf-configs", json!({"crs": {"paranoia": 2}}), false),
        ("waf-configs", json!({"oversize_body_action": "reject"}), true),
        ("waf-configs", json!({"oversize_body_action": "rejct"}), false),
        ("waf-configs", json!({"tags": "x"}), false),
        ("waf-configs", json!({"metadata": 1}), false),
        ("waf-configs", json!({"name": 1}), false),
        ("waf-configs", json!({"id": 7}), false),
        ("waf-rulesets", json!({"rules": ["x"]}), true),
        ("waf-rulesets", json!({"rulez": ["x"]}), false),
        ("threat-policies", json!({"tiers": [{"min_score": 40.5, "action": "deny"}]}), true),
        ("threat-policies", json!({"tiers": [{"min_score": 40, "action": "explode"}]}), true),
        ("threat-policies", json!({"tiers": [{"action": "deny"}]}), false),
        ("threat-policies", json!({"tiers": [{"min_score": "40"}]}), false),
        ("threat-policies", json!({"tiers": [{"min_score": 1, "status": 70000}]}), false),
        ("threat-policies", json!({"tiers": [{"min_score": 1, "status": -1}]}), false),
        ("threat-policies", json!({"tiers": [{"min_score": 1, "ban_for_seconds": 1.5}]}), false),
        ("threat-policies", json!({"tiers": {}}), false),
        ("threat-policies", json!({"ban_identity": "ip"}), true),
        ("threat-policies", json!({"ban_identity": "mac"}), false),
        ("threat-policies", json!({"challenge_provider": null, "waf_block_weight": 12.5}), true),
        ("threat-policies", json!({"waf_block_weight": null}), false),
        ("routes", json!({"backend": {"address": "b", "port": 80}, "plugins": [{"plugin": "SvcWaf"}]}), true),
        ("routes", json!({"backend": null}), true),
        ("routes", json!({"backend": {"address": "b"}}), false),
        ("routes", json!({"backend": {"address": "b", "port": 80, "protocol": "spdy"}}), false),
        ("routes", json!({"plugins": [{"enabled": true}]}), false),
        ("routes", json!({"plugins": [{"plugin": "SvcWaf", "plugin_index": "1"}]}), false),
        ("routes", json!({"plugins": [{"plugin": "SvcWaf", "plugin_index": null}]}), true),
        ("global-config", json!({"gateway": {"port": 8080}}), true),
        ("global-config", json!({"gateway": {"port": 80800}}), false),
        ("global-config", json!({"gateway": null}), false),
        ("global-config", json!({"identity": {"user_header": null, "trusted_hops": 1}}), true),
        ("global-config", json!({"identity": {"trusted_hops": -1}}), false),
        ("global-config", json!({"waf": {"fail_open": 1}}), false),
        ("global-config", json!({"incoming_request_validators": [{"plugin": "X", "config": []}]}), false),
    ];
    for (collection, document, valid) in cases {
        let kind = registry::by_collection(collection).unwrap();
        let read = kind.read(document.clone());
        assert_eq!(read.is_ok(), valid, "the API: {collection} {document}: {:?}", read.err());
        let found = errors(&validator(kind), &document);
        assert_eq!(found.is_empty(), valid, "the schema: {collection} {document}: {found:?}");
    }
}
