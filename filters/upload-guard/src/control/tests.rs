use serde_json::{Value, json};

use super::*;

fn read(config: Value) -> Result<UploadGuardConfig, Vec<FieldProblem>> {
    UploadGuardConfig::read(config.as_object().unwrap())
}

#[test]
fn the_defaults_are_those_of_the_reference() {
    let config = read(json!({})).unwrap();
    assert_eq!(
        (config.mode, config.check_mismatch, config.max_files, config.max_file_size),
        (UploadMode::Enforce, true, 100, 0)
    );
    assert_eq!((config.archive_max_depth, config.archive_max_entries), (3, 10_000));
    assert_eq!((config.archive_max_expanded_size, config.archive_max_ratio), (268_435_456, 100));
    assert_eq!(
        (config.unreadable_archive_action, config.scan_failure_action),
        (RejectAction::Reject, RejectAction::Reject)
    );
    assert_eq!((config.check_archive_entry_extensions, config.body_limit), (false, 1_048_576));
    assert_eq!((config.allowed_extensions.len(), config.allowed_types.len(), &config.scanner), (0, 0, &None));
    let step = config.step();
    assert_eq!(
        (step.denied_extensions.len(), step.denied_types),
        (46, vec!["executable".to_owned(), "script".to_owned(), "html".to_owned()])
    );
}

#[test]
fn what_is_allowed_by_name_is_taken_out_of_the_usual_denials() {
    let step = read(json!({ "allowed_extensions": ["svg"], "allowed_types": ["script"] })).unwrap().step();
    assert!(step.denied_extensions.len() == 45 && !step.denied_extensions.contains(&"svg".to_owned()));
    assert_eq!(step.denied_types, ["executable", "html"]);
    let both = read(json!({ "allowed_extensions": ["svg"], "denied_extensions": ["svg", "exe"], "denied_types": [] }))
        .unwrap();
    assert_eq!(
        (both.step().denied_extensions, both.step().denied_types.len()),
        (vec!["svg".to_owned(), "exe".to_owned()], 0)
    );
    let warnings = both.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("allows and denies the extensions `svg`"), "{warnings:?}");
    let warned = |config: Value| read(config).unwrap().warnings().len();
    assert_eq!((warned(json!({ "max_file_size": 1_048_577 })), warned(json!({ "max_file_size": 1_048_576 }))), (1, 0));
}

#[test]
fn wrong_fields_are_named() {
    for (config, pointer) in [
        (json!({ "mode": "block" }), "/mode"),
        (json!({ "allowed_extensions": [".pdf"] }), "/allowed_extensions/0"),
        (json!({ "denied_extensions": ["exe", "EXE"] }), "/denied_extensions/1"),
        (json!({ "allowed_types": ["pictures"] }), "/allowed_types/0"),
        (json!({ "denied_types": ["jpg"] }), "/denied_types/0"),
        (json!({ "max_files": 0 }), "/max_files"),
        (json!({ "archive_max_depth": 11 }), "/archive_max_depth"),
        (json!({ "archive_max_entries": 0 }), "/archive_max_entries"),
        (json!({ "archive_max_expanded_size": 1 }), "/archive_max_expanded_size"),
        (json!({ "archive_max_ratio": 0 }), "/archive_max_ratio"),
        (json!({ "unreadable_archive_action": "drop" }), "/unreadable_archive_action"),
        (json!({ "body_limit": 1 }), "/body_limit"),
        (json!({ "scan_failure_action": "x" }), "/scan_failure_action"),
        (json!({ "json_fields": [{ "path": "a[" }] }), "/json_fields/0/path"),
        (json!({ "weight": 101 }), "/weight"),
    ] {
        let problems = read(config.clone()).unwrap_err();
        assert_eq!((problems.len(), problems[0].pointer.as_str()), (1, pointer), "{config} {problems:?}");
    }
    let problem = &read(json!({ "denied_types": ["imag"] })).unwrap_err()[0];
    assert!(problem.message.contains("did you mean `image`?"), "{}", problem.message);
}

#[test]
fn a_preset_lays_it_down_where_it_is_switched_on() {
    let lay_down = PLUGIN.preset.lay_down.unwrap();
    let laid = |config: Value| lay_down(config.as_object().unwrap()).unwrap().0;
    assert_eq!(laid(json!({})), None);
    let config = json!({
        "uploads": true, "uploads_mode": "monitor", "uploads_allowed_extensions": ["pdf"], "uploads_scanner": "clam",
        "uploads_scan_failure_action": "allow",
    });
    let expected =
        json!({ "mode": "monitor", "allowed_extensions": ["pdf"], "scanner": "clam", "scan_failure_action": "allow" });
    assert_eq!(laid(config), Some(expected));
    let plain = laid(json!({ "uploads": true })).unwrap();
    assert_eq!(read(plain).unwrap(), UploadGuardConfig::default());
    let wrong = json!({ "uploads_allowed_extensions": ["*.pdf"] });
    assert_eq!(lay_down(wrong.as_object().unwrap()).map(|_| ()).unwrap_err().pointer, "/uploads_allowed_extensions/0");
}

#[test]
fn sockets_of_services_can_be_named_and_no_others() {
    let check = |document: Value| kit::unsaved::<MalwareScanner>(document, &Nothing).map(|item| item.body.host.clone());
    assert_eq!(check(json!({ "host": "/run/clamav/clamd.ctl" })).unwrap(), "/run/clamav/clamd.ctl");
    assert!(check(json!({ "host": "/var/run/clamd.sock" })).is_ok());
    for document in [
        json!({ "host": "/run/../etc/x" }),
        json!({ "host": "/etc/clamd.ctl" }),
        json!({ "host": "/run/clam av" }),
        json!({ "host": "/run/x", "kind": "icap" }),
        json!({ "host": format!("/run/{}", "a".repeat(100)) }),
    ] {
        assert_eq!(check(document.clone()).unwrap_err().pointer, "/host", "{document}");
    }
}

struct Nothing;

impl kit::References for Nothing {
    fn exists(&self, _collection: &str, _id: &str) -> Option<bool> {
        None
    }
}
