use kit::{FieldProblem, Settings as _};
use serde_json::{Value, json};

use super::*;
use crate::messages::{EnumerationLimits, ObjectGuardStep, ObjectPath, SurgeLimits, WalkLimits};

fn read(config: Value) -> Result<ObjectGuardConfig, Vec<FieldProblem>> {
    ObjectGuardConfig::read(config.as_object().unwrap())
}

fn step(config: Value) -> ObjectGuardStep {
    read(config).unwrap().step(&ObjectSettings { max_keys: 77 }).unwrap()
}

fn pointers(config: Value) -> Vec<String> {
    read(config).unwrap_err().into_iter().map(|problem| problem.pointer).collect()
}

#[test]
fn the_defaults_are_those_of_the_page() {
    let expected = ObjectGuardStep {
        paths: Vec::new(),
        auto_detect: true,
        contribute: false,
        budget: 0,
        budget_window_seconds: 3600,
        budget_logs: false,
        surge: Some(SurgeLimits {
            factor: 5.0,
            floor: 30,
            ceiling: 150,
            bucket_seconds: 60,
            learning: 60,
            warmup: 10,
            weight: 40.0,
        }),
        walk: Some(WalkLimits { min: 30, window_seconds: 600, max_gap: 3, weight: 50.0 }),
        enumeration: Some(EnumerationLimits {
            min: 20,
            ratio: 0.5,
            window_seconds: 300,
            statuses: vec![401, 403, 404],
            weight: 50.0,
        }),
        max_keys: 77,
    };
    assert_eq!(step(json!({})), expected);
    assert_eq!(ObjectSettings::default().max_keys, 20_000);
}

#[test]
fn every_field_is_in_the_step() {
    let config = json!({
        "paths": ["/a/{id}", { "path": "/b/*", "name": "files", "methods": ["get", "HEAD"], "budget": 7 }, { "path": "/c/{x}" }],
        "auto_detect": false, "contribute": true, "budget": 9, "budget_window_seconds": 60, "budget_action": "log",
        "surge_factor": 2.5, "surge_floor": 11, "warmup_ceiling": 12, "bucket_seconds": 13, "learning_buckets": 14, "warmup_buckets": 5,
        "sequential_min": 16, "sequential_window_seconds": 17, "sequential_max_gap": 18,
        "enumeration_min": 19, "enumeration_ratio": 0.25, "enumeration_window_seconds": 21, "denied_statuses": [410],
        "surge_weight": 1, "sequential_weight": 2, "enumeration_weight": 3,
    });
    let path = |template: &str| ObjectPath { template: template.to_owned(), ..ObjectPath::default() };
    let methods = vec!["GET".to_owned(), "HEAD".to_owned()];
    let expected = ObjectGuardStep {
        paths: vec![
            path("/a/{id}"),
            ObjectPath { name: "files".to_owned(), methods, budget: Some(7), ..path("/b/*") },
            path("/c/{x}"),
        ],
        auto_detect: false,
        contribute: true,
        budget: 9,
        budget_window_seconds: 60,
        budget_logs: true,
        surge: Some(SurgeLimits {
            factor: 2.5,
            floor: 11,
            ceiling: 12,
            bucket_seconds: 13,
            learning: 14,
            warmup: 5,
            weight: 1.0,
        }),
        walk: Some(WalkLimits { min: 16, window_seconds: 17, max_gap: 18, weight: 2.0 }),
        enumeration: Some(EnumerationLimits {
            min: 19,
            ratio: 0.25,
            window_seconds: 21,
            statuses: vec![410],
            weight: 3.0,
        }),
        max_keys: 77,
    };
    assert_eq!(step(config), expected);
}

#[test]
fn each_fault_has_its_pointer() {
    let wrong = json!({
        "paths": ["orders", { "path": "/a" }, { "path": "/a/{id}", "methods": ["GET", "G T"] }, { "path": "/a/{id}", "budget": 5121 },
            { "path": "/a/{id}", "name": "n".repeat(129) }, { "path": "/a/{id}", "nme": "x" }, 7, "/fine/{id}"],
        "budget": 5121, "budget_window_seconds": 0, "surge_factor": 1, "surge_floor": 0, "warmup_ceiling": 0, "bucket_seconds": 3601,
        "learning_buckets": 1, "warmup_buckets": 2, "sequential_min": 65, "sequential_window_seconds": 0,
        "sequential_max_gap": 1_000_001, "enumeration_min": 0, "enumeration_ratio": 0, "enumeration_window_seconds": 4,
        "surge_weight": 101, "sequential_weight": -1, "enumeration_weight": 100.5, "denied_statuses": [404, 99],
    });
    let expected = [
        "/paths/0",
        "/paths/1/path",
        "/paths/2/methods/1",
        "/paths/3/budget",
        "/paths/4/name",
        "/paths/5/nme",
        "/paths/6",
        "/budget",
        "/budget_window_seconds",
        "/surge_factor",
        "/surge_floor",
        "/warmup_ceiling",
        "/bucket_seconds",
        "/learning_buckets",
        "/warmup_buckets",
        "/sequential_min",
        "/sequential_window_seconds",
        "/sequential_max_gap",
        "/enumeration_min",
        "/enumeration_ratio",
        "/enumeration_window_seconds",
        "/surge_weight",
        "/sequential_weight",
        "/enumeration_weight",
        "/denied_statuses/1",
    ];
    assert_eq!(pointers(wrong), expected);
    assert_eq!(pointers(json!({ "paths": vec!["/a/{id}"; 257] })), ["/paths"]);
    assert_eq!(pointers(json!({ "denied_statuses": vec![404; 65] })), ["/denied_statuses"]);
    assert_eq!(pointers(json!({ "budget_action": "deny" })), ["/budget_action"]);
    assert_eq!(pointers(json!({ "bugdet": 5 })), ["/bugdet"]);
    let told = read(json!({ "paths": ["/a/x{id}"] })).unwrap_err().remove(0).to_string();
    assert_eq!(
        told,
        "/paths/0: `/a/x{id}`: a `{name}` is a whole segment (expected a path such as `/api/orders/{id}` or `/files/*`)"
    );
    assert_eq!(ObjectSettings { max_keys: 0 }.check().len(), 1);
    assert_eq!(ObjectSettings { max_keys: 1_000_000 }.check(), []);
}

#[test]
fn a_preset_lays_it_down_with_its_mode_its_paths_and_its_budget() {
    let lay_down = |config: Value| PLUGIN.preset.lay_down.unwrap()(config.as_object().unwrap()).map(|laid| laid.0);
    assert_eq!(lay_down(json!({})).unwrap(), None);
    assert_eq!(lay_down(json!({ "objects": false, "objects_budget": 5 })).unwrap(), None);
    let laid = lay_down(json!({ "objects": true })).unwrap().unwrap();
    assert_eq!(laid, json!({ "paths": [], "auto_detect": true, "contribute": false, "budget": 0 }));
    assert_eq!(step(laid), step(json!({})));
    let fields =
        json!({ "objects": true, "objects_mode": "score", "objects_paths": ["/o/{id}"], "objects_budget": 200 });
    let laid = lay_down(fields).unwrap().unwrap();
    assert_eq!(laid, json!({ "paths": ["/o/{id}"], "auto_detect": false, "contribute": true, "budget": 200 }));
    for (fields, pointer) in [
        (json!({ "objects_mode": "block" }), "/objects_mode"),
        (json!({ "objects_paths": ["/o/{id}", "/o"] }), "/objects_paths/1"),
        (json!({ "objects_budget": 5121 }), "/objects_budget"),
        (json!({ "objects_budget": -1 }), "/objects_budget"),
        (json!({ "objects": "yes" }), "/objects"),
    ] {
        assert_eq!(lay_down(fields).unwrap_err().pointer, pointer);
    }
}
