//! `docs/threat-model.md` names tests and attacks: every one of them exists.

use std::collections::BTreeMap;
use std::path::Path;

use adversary::case;
use palisade_tests::parts;

#[test]
fn every_test_and_every_attack_that_the_threat_model_names_exists() {
    let text = std::fs::read_to_string(parts::root().join("docs/threat-model.md")).expect("the threat model is there");
    let mut files = BTreeMap::new();
    for folder in ["control-plane", "filters", "tests"] {
        read(&parts::root().join(folder), &mut files);
    }
    let (mut named, mut missing) = (0, Vec::new());
    for (stem, test) in text.split('`').skip(1).step_by(2).filter_map(|code| code.split_once("::")) {
        let function = format!("fn {test}()");
        named += 1;
        if !files.get(stem).is_some_and(|texts: &Vec<String>| texts.iter().any(|text| text.contains(&function))) {
            missing.push(format!("{stem}::{test}"));
        }
    }
    let cases = case::all(None).expect("the cases are good");
    for id in text.split("case:").skip(1).filter_map(|rest| rest.split([',', ' ', '`', '\n', '|']).next()) {
        if id == "ID" {
            continue;
        }
        named += 1;
        if !cases.iter().any(|case| case.id == id || case.id.starts_with(&format!("{id}-"))) {
            missing.push(format!("case:{id}"));
        }
    }
    assert!(missing.is_empty(), "named in docs/threat-model.md, and not there: {missing:#?}");
    assert!(named > 60, "the document names {named} tests and attacks: is it still read?");
}

/// The texts of all Rust files below a folder, by the file's name without its ending; `tests.rs` and `mod.rs` also by their folder's name.
fn read(folder: &Path, files: &mut BTreeMap<String, Vec<String>>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the repository").flatten() {
        let path = entry.path();
        if path.is_dir() {
            read(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            if matches!(stem.as_str(), "tests" | "mod") {
                let folder = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
                files.entry(folder).or_default().push(text.clone());
            }
            files.entry(stem).or_default().push(text);
        }
    }
}
