use super::*;

fn read_json(config: Value) -> Result<ErrorLeakageConfig, Vec<FieldProblem>> {
    read(config.as_object().unwrap())
}

#[test]
fn the_defaults_are_those_of_the_reference() {
    let config = read_json(json!({})).unwrap();
    assert_eq!((config.mode, config.body_limit, config.paranoia_level), (LeakageMode::Mask, 262_144, 1));
    assert_eq!((config.content_types.len(), config.weight), (0, 0.0));
    let step_of = step(config);
    assert!(!step_of.monitor && step_of.pass_ranges);
    assert!(!step(read_json(json!({ "ranges": "whole" })).unwrap()).pass_ranges);
}

#[test]
fn wrong_fields_are_named() {
    assert!(read_json(json!({ "modus": "mask" })).is_err());
    for (config, pointer) in [
        (json!({ "body_limit": 1 }), "/body_limit"),
        (json!({ "paranoia_level": 5 }), "/paranoia_level"),
        (json!({ "content_types": ["text"] }), "/content_types/0"),
        (json!({ "weight": 101 }), "/weight"),
        (json!({ "mode": "block" }), "/mode"),
        (json!({ "ranges": "some" }), "/ranges"),
    ] {
        let problems = read_json(config.clone()).unwrap_err();
        assert_eq!((problems.len(), problems[0].pointer.as_str()), (1, pointer), "{config}");
    }
}

#[test]
fn a_preset_lays_it_down_where_it_is_switched_on() {
    let lay_down = PLUGIN.preset.lay_down.unwrap();
    let laid = |config: Value| lay_down(config.as_object().unwrap()).unwrap().0;
    assert_eq!(laid(json!({})), None);
    assert_eq!(laid(json!({ "error_leakage": true })), Some(json!({ "mode": "mask" })));
    let monitor = json!({ "error_leakage": true, "error_leakage_mode": "monitor" });
    assert_eq!(laid(monitor), Some(json!({ "mode": "monitor" })));
    assert!(lay_down(json!({ "error_leakage_mode": "block" }).as_object().unwrap()).is_err());
}
