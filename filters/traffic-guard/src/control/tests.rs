use kit::FieldProblem;
use serde_json::{Value, json};

use super::*;
use crate::{Dimension, DimensionOfStep};

fn read(config: Value) -> Result<TrafficGuardConfig, Vec<FieldProblem>> {
    TrafficGuardConfig::read(config.as_object().unwrap())
}

fn pointers(config: Value) -> Vec<String> {
    read(config).unwrap_err().into_iter().map(|problem| problem.pointer).collect()
}

#[test]
fn the_defaults_are_those_of_the_page() {
    let step = read(json!({})).unwrap().step(&TrafficSettings::default());
    let watched = |dimension: Dimension, floor, weight| DimensionOfStep { dimension: dimension.into(), floor, weight };
    let expected = [
        watched(Dimension::Route, 20.0, 40.0),
        watched(Dimension::Source, 5.0, 40.0),
        watched(Dimension::Consumer, 10.0, 40.0),
        watched(Dimension::Asn, 20.0, 30.0),
    ];
    assert_eq!(step.dimensions, expected);
    assert_eq!((step.surge_factor, step.bucket_millis), (3.0, 10_000));
    assert_eq!((step.learning_buckets, step.warmup_buckets, step.max_keys), (60, 6, 200_000));
}

#[test]
fn every_field_is_in_the_step() {
    let config = json!({
        "route": false, "asn": false, "surge_factor": 2.5, "bucket_seconds": 5, "learning_buckets": 30, "warmup_buckets": 3,
        "source_floor": 1.5, "source_weight": 7, "consumer_floor": 2, "consumer_weight": 0,
        "route_floor": 3, "route_weight": 8, "asn_floor": 4, "asn_weight": 9,
    });
    let settings = TrafficSettings { max_keys: 77 };
    let step = read(config.clone()).unwrap().step(&settings);
    let found: Vec<_> = step.dimensions.iter().map(|one| (one.dimension(), one.floor, one.weight)).collect();
    assert_eq!(found, [(Dimension::Source, 1.5, 7.0), (Dimension::Consumer, 2.0, 0.0)]);
    assert_eq!((step.surge_factor, step.bucket_millis, step.max_keys), (2.5, 5_000, 77));
    assert_eq!((step.learning_buckets, step.warmup_buckets), (30, 3));
    let mut others = config;
    for (field, on) in [("route", true), ("asn", true), ("source", false), ("consumer", false)] {
        others[field] = json!(on);
    }
    let step = read(others).unwrap().step(&settings);
    let found: Vec<_> = step.dimensions.iter().map(|one| (one.dimension(), one.floor, one.weight)).collect();
    assert_eq!(found, [(Dimension::Route, 3.0, 8.0), (Dimension::Asn, 4.0, 9.0)]);
}

#[test]
fn each_fault_has_its_pointer() {
    let wrong = json!({
        "surge_factor": 1, "bucket_seconds": 0, "learning_buckets": 1, "warmup_buckets": 2, "route_floor": 0, "source_floor": -1,
        "consumer_floor": 1e9, "asn_floor": 0.01, "route_weight": 101, "source_weight": -1, "consumer_weight": 1000, "asn_weight": 100.5,
    });
    let expected = [
        "/surge_factor",
        "/bucket_seconds",
        "/learning_buckets",
        "/warmup_buckets",
        "/route_floor",
        "/source_floor",
        "/consumer_floor",
        "/asn_floor",
        "/route_weight",
        "/source_weight",
        "/consumer_weight",
        "/asn_weight",
    ];
    assert_eq!(pointers(wrong), expected);
    assert_eq!(pointers(json!({ "surge_factr": 3 })), ["/surge_factr"]);
    assert_eq!(pointers(json!({ "source": "yes" })), ["/source"]);
    assert_eq!(pointers(json!({ "warmup_buckets": 0 })), ["/warmup_buckets"]);
}

#[test]
fn a_preset_lays_it_down_with_the_factor_of_its_sensitivity() {
    let lay_down = |config: Value| PLUGIN.preset.lay_down.unwrap()(config.as_object().unwrap()).map(|laid| laid.0);
    assert_eq!(lay_down(json!({})).unwrap(), None);
    assert_eq!(lay_down(json!({ "traffic": false, "traffic_sensitivity": "high" })).unwrap(), None);
    for (sensitivity, factor) in [("low", 5.0), ("medium", 3.0), ("high", 2.0)] {
        let laid = lay_down(json!({ "traffic": true, "traffic_sensitivity": sensitivity })).unwrap();
        assert_eq!(laid, Some(json!({ "surge_factor": factor })));
    }
    assert_eq!(lay_down(json!({ "traffic": true })).unwrap(), Some(json!({ "surge_factor": 3.0 })));
    let wrong = lay_down(json!({ "traffic": true, "traffic_sensitivity": "extreme" })).unwrap_err();
    assert_eq!(wrong.pointer, "/traffic_sensitivity");
}

#[test]
fn settings_are_within_their_limits() {
    use kit::Settings as _;
    let places =
        |max_keys| TrafficSettings { max_keys }.check().into_iter().map(|found| found.pointer).collect::<Vec<_>>();
    assert_eq!(
        (places(0), places(1), places(5_000_001)),
        (vec!["/max_keys".to_owned()], vec![], vec!["/max_keys".to_owned()])
    );
    let named: TrafficSettings = serde_json::from_value(json!({ "max-keys": 9 })).unwrap();
    assert_eq!(named.max_keys, 9);
}
